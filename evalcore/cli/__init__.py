"""The command line: options in, the acts and figures of the rooms out."""
