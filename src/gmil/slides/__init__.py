"""Whole-slide images: folders of patch embeddings as TRIDENT, CLAM, STAMP and others write them, joined to labels."""
