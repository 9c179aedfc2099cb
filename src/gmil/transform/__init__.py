"""Transformers: what becomes of instances (scaling, fitted spaces) and of bags (vectors)."""
