"""Ways to spoil a file, by what the file is.

A mutation is a function of what is to be changed and a random generator. The same generator makes the same bytes.
"""

from __future__ import annotations

from tools.fuzz.mutations.choice import Mutated, mutate

__all__ = ["Mutated", "mutate"]
