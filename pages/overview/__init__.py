"""Where the study stands."""
