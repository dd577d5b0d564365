"""Tests of the room calibration."""
