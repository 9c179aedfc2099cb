"""A case from its number to its outcome, inside a child process."""

from __future__ import annotations

import dataclasses
import shutil
import warnings
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet  # noqa: F401  gmil imports these late, and importing them takes long
import skops.io  # noqa: F401
from tests.model_files import make
from tools.fuzz import targets, watch
from tools.fuzz.judging import Rules, judge
from tools.fuzz.mutations import Mutated, mutate
from tools.fuzz.mutations.folders import add_entry
from tools.fuzz.mutations.plain import edit_byte_at
from tools.fuzz.results import Case, Result
from tools.fuzz.seeds import SMALL_MAT, Seed, data_seeds, model_seeds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tools.fuzz.judging import Values

GROUPS = ("models", "data", "mat")
_FOLDER_ENTRY = 0.2
_STRIDE = 617  # a prime: few cases are spread over the file, and as many as it has bytes meet every byte


class Fuzzer:
    """Makes and tries the cases of one set of seeds; ``scratch`` is where the mutated files lie."""

    def __init__(self, seeds: Path, scratch: Path) -> None:
        warnings.simplefilter("ignore")
        self._scratch = scratch
        small = Seed(".mat, one byte", SMALL_MAT, seeds / "data" / SMALL_MAT, "read")
        self._seeds = {"models": model_seeds(seeds), "data": data_seeds(seeds), "mat": [small]}
        self._expected: dict[Seed, Values] = {}

    @cached_property
    def _problems(self) -> dict[str, Any]:
        return make.problems()

    def __call__(self, case: Case, announce: Callable[[Result], None]) -> Result:
        """Make the file of a case, say what it is, use it and judge what happens."""
        seed = self._seed_of(case)
        expected = self._before(seed)
        path, mutated = self.write(case)
        result = Result(str(case), seed.target, seed.name, mutated.name)
        announce(result)
        is_model = case.group == "models"
        rules = Rules(
            expected,
            guarded=mutated.guarded and (seed.guarded or not is_model),
            may_be_large=not is_model,
            must_be_finite=is_model,
        )
        outcome, note = judge(self._use(seed, path), self._scratch, len(mutated.data), rules)
        return dataclasses.replace(result, outcome=outcome, note=note)

    def write(self, case: Case) -> tuple[Path, Mutated]:
        """Write the mutated file, or the folder with it."""
        seed = self._seed_of(case)
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._scratch.mkdir(parents=True)
        rng = np.random.default_rng((case.seed, GROUPS.index(case.group), case.number))
        path = self._scratch / seed.path.name
        if seed.path.is_dir():
            shutil.copytree(seed.path, path)
            return path, _mutate_folder(path, rng)
        mutated = self._mutate(case, seed, rng)
        path.write_bytes(mutated.data)
        return path, mutated

    def _mutate(self, case: Case, seed: Seed, rng: np.random.Generator) -> Mutated:
        data = seed.path.read_bytes()
        if case.group == "mat":
            return Mutated("edit byte", edit_byte_at(data, case.number * _STRIDE % len(data), rng), guarded=False)
        signed = case.group == "models" and case.number // len(self._seeds["models"]) % 2 == 1
        mutated = mutate(data, seed.path.name, rng, signed=signed)
        return dataclasses.replace(mutated, name=f"{mutated.name}, signed") if signed else mutated

    def _seed_of(self, case: Case) -> Seed:
        """Take the seeds in turn, so that few cases meet many files."""
        seeds = self._seeds[case.group]
        return seeds[case.number % len(seeds)]

    def _before(self, seed: Seed) -> Values:
        """Return what a file gives that nobody mutated; it must give something."""
        if seed not in self._expected:
            self._use(seed, seed.path)()  # imports what gmil imports late
            with watch.acts(self._scratch) as seen:
                self._expected[seed] = self._use(seed, seed.path)()
            if seen:
                msg = f"{seed.name} as gmil wrote it: {seen[0]}"
                raise RuntimeError(msg)
        return self._expected[seed]

    def _use(self, seed: Seed, path: Path) -> Callable[[], Values]:
        if seed.use == "model":
            return partial(targets.use_model, path, self._problems[seed.problem][0])
        return partial(targets.use_data if seed.use == "read" else targets.use_lazily, path)


def _mutate_folder(folder: Path, rng: np.random.Generator) -> Mutated:
    """Mutate one file of a folder, or add an entry that is no file."""
    size = sum(path.stat().st_size for path in folder.iterdir())
    if rng.random() < _FOLDER_ENTRY:
        return Mutated(add_entry(folder, rng), bytes(size), guarded=False)
    files = sorted(folder.iterdir())
    path = files[int(rng.integers(len(files)))]
    mutated = mutate(path.read_bytes(), path.name, rng)
    path.write_bytes(mutated.data)
    return Mutated(mutated.name, bytes(size), guarded=mutated.guarded and path.suffix == ".parquet")
