"""Levels of care."""
