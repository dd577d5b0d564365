"""Tests of the room importing."""
