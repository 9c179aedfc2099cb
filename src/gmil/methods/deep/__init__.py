"""Neural networks on bags, trained by PyTorch: pooled, with attention, or as a transformer."""
