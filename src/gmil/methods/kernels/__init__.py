"""Kernels between bags: set kernels, graph kernel, PPMM."""
