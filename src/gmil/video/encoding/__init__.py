"""Descriptors behind one interface, and what turns those of a stretch of video into one vector."""
