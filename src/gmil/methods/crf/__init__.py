"""A conditional random field over bags (MI-CRF)."""
