"""Tests of the room judges."""
