"""Kernels in PyTorch, on a processor or on a GPU.

Nothing here is imported before ``backend="torch"`` is asked for: PyTorch is large, slow to import, and optional.
"""
