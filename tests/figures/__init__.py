"""Tests of the room figures."""
