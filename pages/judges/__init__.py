"""Judges against physicians."""
