"""Files as streams of rows: opened, bounded, recognised."""
