"""What is taken away: tables with a codebook, the methods of a paper, the bundle."""
