"""Runs: many questions to a model at once, each answer saved as it comes, stopped and started again at any moment.

A run is a row, found again by the fingerprint of what it asks; its questions are rows as well. Any number of processes work on it at once:
each takes questions in small lots by writing its number on them, and says every two seconds that it lives. What a dead one held is free again.
"""
