"""Tests of the room triage."""
