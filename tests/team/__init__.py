"""Tests of the room team."""
