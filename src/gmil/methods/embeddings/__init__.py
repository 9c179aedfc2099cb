"""Bags as vectors for a linear machine: MILES, VLAD, Fisher vectors."""
