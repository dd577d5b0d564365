"""Help: the pages of docs/."""
