"""What is taken away."""
