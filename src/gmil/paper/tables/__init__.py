"""The tables of the paper, and the figures it published."""
