"""Data, people, reading, plans and runs."""
