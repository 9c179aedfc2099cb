"""Gradients in space and time: their sums, their directions, and cells of both; what HOG3D is made of."""
