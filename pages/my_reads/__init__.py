"""What one has read."""
