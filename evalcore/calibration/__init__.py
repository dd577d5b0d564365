"""Calibration: stated confidence against what turned out right, spread against the panel's, and routing to a human."""
