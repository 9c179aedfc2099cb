"""``python -m tools.fuzz``: mutate files, load them, and print what came out."""

from __future__ import annotations

import argparse
import contextlib
import heapq
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import track
from tools.fuzz.results import Case
from tools.fuzz.runner import SECONDS_PER_CASE, run
from tools.fuzz.seeds import write_seeds
from tools.fuzz.state import State, fingerprint
from tools.fuzz.table import show
from tools.fuzz.watch import scratch_folder
from tools.fuzz.work import Fuzzer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tools.fuzz.results import Result

_WIDTH = 160
_STATE = Path("results/fuzz/state.jsonl")


def parser() -> argparse.ArgumentParser:
    """Return the options of the command."""
    found = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    found.add_argument("--models", type=int, default=10_000, help="mutated model files (default: %(default)s)")
    found.add_argument("--data", type=int, default=3_000, help="mutated data files (default: %(default)s)")
    found.add_argument("--mat", type=int, default=1_300, help="single bytes of a .mat file (default: %(default)s)")
    found.add_argument("--seed", type=int, default=0, help="another seed makes other files (default: %(default)s)")
    found.add_argument("--seconds", type=float, default=float("inf"), help="begin no case after so many seconds")
    found.add_argument("--jobs", type=int, default=2, help="child processes (default: %(default)s)")
    found.add_argument("--state", type=Path, default=_STATE, help="where results are kept (default: %(default)s)")
    found.add_argument("--case", type=Case.parse, help="try one case, SEED:GROUP:NUMBER, and nothing else")
    found.add_argument("--keep", type=Path, help="with --case: a folder to write the mutated file to")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 where gmil must be mended, else 0."""
    options = parser().parse_args(arguments)
    console = Console()
    if not console.is_terminal:  # the table is wide, and a file has no width
        console = Console(width=_WIDTH)
    code = fingerprint()
    seeds = options.state.parent / f"seeds-{code}"
    _forget_other_seeds(seeds)
    write_seeds(seeds)
    if options.case is not None:
        return _try_one(options.case, seeds, options.keep, console)
    state = State(options.state, code)
    wanted = list(_cases(options))
    known = {result.case for result in state.results}
    missing = [case for case in wanted if str(case) not in known]
    found = run(partial(Fuzzer, seeds), missing, jobs=options.jobs, seconds=options.seconds)
    with contextlib.suppress(KeyboardInterrupt):  # what is there is shown, and the same command goes on
        state.add(track(found, "Fuzzing", total=len(missing), console=console, transient=True))
    asked = set(map(str, wanted))
    results = [result for result in state.results if result.case in asked]
    show(results, console)
    if len(results) < len(wanted):
        console.print(f"{len(wanted) - len(results)} of {len(wanted)} cases are left: the same command goes on.")
    return int(any(result.is_bad for result in results))


def _cases(options: argparse.Namespace) -> Iterator[Case]:
    """Yield the cases of all groups, mixed evenly: a limit of time then cuts all of them short alike."""
    counts = {"models": options.models, "data": options.data, "mat": options.mat}
    groups = [[(i / count, Case(options.seed, group, i)) for i in range(count)] for group, count in counts.items()]
    for _, case in heapq.merge(*groups, key=lambda pair: pair[0]):
        yield case


def _forget_other_seeds(seeds: Path) -> None:
    for old in seeds.parent.glob("seeds-*"):
        if old != seeds:
            shutil.rmtree(old, ignore_errors=True)


def _try_one(case: Case, seeds: Path, keep: Path | None, console: Console) -> int:
    result: Result
    (result,) = run(partial(Fuzzer, seeds), [case], jobs=1, seconds_per_case=SECONDS_PER_CASE)
    for name in ("case", "target", "file", "mutation", "outcome", "note"):
        console.print(f"{name}: {getattr(result, name)}", markup=False, highlight=False, soft_wrap=True)
    if keep is not None:
        scratch = scratch_folder()
        path, _ = Fuzzer(seeds, scratch / "case").write(case)
        keep.mkdir(parents=True, exist_ok=True)
        shutil.move(path, keep / path.name)
        shutil.rmtree(scratch)
        console.print(f"file: {keep / path.name}")
    return int(result.is_bad)


if __name__ == "__main__":
    sys.exit(main())
