"""Settle conflicting reads."""
