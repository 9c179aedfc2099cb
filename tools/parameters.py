"""Write docs/reference/parameters.md: the constructor parameters of every estimator, read from the classes.

Usage: python tools/parameters.py
"""

from __future__ import annotations

import inspect
from pathlib import Path

import gmil

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "parameters.md"

SHARED = ("C", "kernel", "gamma", "scale", "tune", "max_iter", "pos_label", "n_jobs", "backend", "random_state")

HEAD = """\
# Parameters of every class

This page lists the constructor parameters of every estimator, with their defaults. One name means one thing in all
classes. `make parameters` writes it from the classes, and a test keeps it true. A dash means that the class has no
such parameter.
"""

NOTES = """\
## Why some defaults differ

Figures in the [results](../results/accuracy.md) depend on these defaults, so they stay.

- `C`: 10 for kernels between instances and bags; 1 for linear machines on long vectors (`MILES`, `VLADClassifier`,
  `FisherVectorClassifier`); 1000 for `MICRF`, whose slack is a mean over bags. `MICA` has `nu`, also the cost of a
  mean.
- `kernel`: `MICA` is linear, as published. `SetKernelSVM` and `DensityRatio` name kernels of another kind; there the
  kernel between instances is `instance_kernel`.
- `scale`: "minmax" if distances or kernels are compared; "standard" if every feature has its own weight or variance
  (`MICA`, `DiverseDensity`, `EMDD`, `SingleInstance`, `FisherVectorClassifier`); None if the method uses features as
  they are (`APR`, `GMIL`, `DensityRatio`) or scales its own vectors (`BagStatistics`); "auto" is "minmax", or with
  `tune` the better of two (`PPMM`).
- `tune`: False except for `SetKernelSVM`, whose figures are those with tuning.
- `max_iter`: the iterations differ: machines, linear programs, Lloyd's or L-BFGS iterations.
- `n_jobs` is the number of threads everywhere, `n_processes` that of processes. None is every core for the compiled
  kernels. The starts of `DiverseDensity` and `EMDD` are Python code, where None is one.

`fit` takes `groups` if something is chosen or scored on folds of the training bags, and `sample_weight` if a weight
of 2 is the same as the bag twice.
"""


def parameters_of(cls: type) -> dict[str, str]:
    """Return the default of every constructor parameter, as it is written in Python."""
    return {
        name: "required" if parameter.default is parameter.empty else repr(parameter.default)
        for name, parameter in inspect.signature(cls).parameters.items()
    }


def page() -> str:
    """Return the text of the page."""
    classes = dict(gmil.all_estimators())
    known = {name: parameters_of(cls) for name, cls in classes.items()}
    shared = [[name, *(_code(own.get(each)) for each in SHARED)] for name, own in known.items()]
    others = [
        [name, ", ".join(f"`{each}={value}`" for each, value in own.items() if each not in SHARED) or "-"]
        for name, own in known.items()
    ]
    fits = [
        [
            name,
            *("yes" if each in inspect.signature(cls.fit).parameters else "-" for each in ("groups", "sample_weight")),
        ]
        for name, cls in classes.items()
    ]
    parts = [
        HEAD,
        "## Shared parameters\n\n" + _table(["class", *(f"`{each}`" for each in SHARED)], shared),
        NOTES,
        "## Other parameters\n\n" + _table(["class", "parameters and defaults"], others),
        "## Arguments of `fit` besides `X` and `y`\n\n" + _table(["class", "`groups`", "`sample_weight`"], fits),
    ]
    return "\n".join(parts)


def _code(value: str | None) -> str:
    return "-" if value is None else f"`{value}`"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
