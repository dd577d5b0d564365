"""What was imported by mistake is hidden, renamed or merged, never deleted, and can be brought back."""
