"""Levels of care: cases, predictions, rates and their correction, harm."""
