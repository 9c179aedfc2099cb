"""What `WeightedGMIL` learns where its data lies, on the device of PyTorch.

Nothing here is imported before a backend in PyTorch is asked for.
"""
