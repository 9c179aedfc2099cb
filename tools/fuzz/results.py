"""Cases, what came out of them, and which outcomes are bad."""

from __future__ import annotations

from dataclasses import dataclass

FINE = ("same", "refused", "changed", "large")
BAD = ("unnoticed", "not finite", "raw", "crash", "hang", "memory", "code")
OUTCOMES = (*FINE, *BAD)


@dataclass(frozen=True)
class Case:
    """One mutated file: the seed of the run, its group and its number make its bytes."""

    seed: int
    group: str
    number: int

    def __str__(self) -> str:
        return f"{self.seed}:{self.group}:{self.number}"

    @classmethod
    def parse(cls, text: str) -> Case:
        """Read what `str` writes."""
        seed, group, number = text.split(":")
        return cls(int(seed), group, int(number))


@dataclass(frozen=True)
class Result:
    """What a case was, and what came out of it."""

    case: str
    target: str
    file: str
    mutation: str
    outcome: str = ""
    note: str = ""

    @property
    def is_bad(self) -> bool:
        """Tell whether gmil must be mended."""
        return self.outcome in BAD
