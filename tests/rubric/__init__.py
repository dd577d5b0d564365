"""Tests of the room rubric."""
