"""Concepts as points and boxes: diverse density, EM-DD, axis-parallel rectangles."""
