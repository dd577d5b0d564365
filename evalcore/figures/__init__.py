"""What every figure shares: the frame, the colours, the words of shares. A figure draws every number it is given and computes none."""
