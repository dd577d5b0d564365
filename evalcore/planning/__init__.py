"""What to read next, and how much."""
