"""Tests of the room reading."""
