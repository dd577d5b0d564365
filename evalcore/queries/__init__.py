"""Every read: SQL in, rows or a DataFrame out."""
