"""Read what is assigned."""
