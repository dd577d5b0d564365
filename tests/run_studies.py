"""The studies on which tests of runs work."""
