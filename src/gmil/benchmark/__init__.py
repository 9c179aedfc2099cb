"""Benchmarks of many methods on many sets: measured cell by cell, on record bag by bag, verified figure by figure."""

from __future__ import annotations

from gmil.benchmark.leaderboard import leaderboard, read_leaderboard, write_leaderboard
from gmil.benchmark.records import MethodRecords
from gmil.benchmark.runner import run
from gmil.benchmark.shelf import Shelf
from gmil.benchmark.specification import Benchmark, Budget, load_benchmark, parse_benchmark
from gmil.benchmark.verification import verify

__all__ = [
    "Benchmark",
    "Budget",
    "MethodRecords",
    "Shelf",
    "leaderboard",
    "load_benchmark",
    "parse_benchmark",
    "read_leaderboard",
    "run",
    "verify",
    "write_leaderboard",
]
