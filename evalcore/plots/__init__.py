"""One file a page: a metric's DataFrame in, a figure out. A plot draws every number it is given and computes none."""
