"""Simple references: one instance at a time, statistics of bags."""
