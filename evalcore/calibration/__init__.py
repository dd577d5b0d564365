"""Calibration: stated confidence against what turned out right, spread against the panel's, and routing to a human."""

SEED = 19
"""Of every draw that the page and the command show, so that both have the same numbers."""
