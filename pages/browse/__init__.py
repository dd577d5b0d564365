"""Find conversations, read them, and override."""
