"""Confidence against reality."""
