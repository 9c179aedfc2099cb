"""Time MILES and APR of the package ``mil`` 1.0.5 (PyPI) and ours, on the same folds of the same scaled bags.

``mil`` imports parts of TensorFlow that no longer exist, even for the two methods that need none of it. It runs in an
environment of its own, where this script puts empty modules in place of TensorFlow::

    python -m venv peer
    peer/bin/pip install scikit-learn
    peer/bin/pip install --no-deps mil==1.0.5
    python benchmarks/peer_mil.py --peer peer/bin/python musk1 elephant

Every instance is scaled to mean 0 and deviation 1 with the training instances of its fold before the clock starts.
Both MILES have sigma^2 = 4.5^2 and C = 0.5, the defaults of ``mil``; both APR have their own defaults. The seconds are
those of ``fit`` and ``predict`` in all folds, on one thread.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

METHODS = ("miles", "apr")
SIGMA2, PRICE = 4.5**2, 0.5


class Anything(types.ModuleType):
    """A module in which every name is a class that does nothing."""

    __all__: tuple[str, ...] = ()
    __path__: tuple[str, ...] = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self if name in ("keras", "layers", "metrics", "utils", "backend") else type(name, (), {})


def without_tensorflow():
    names = ("", ".keras", ".keras.metrics", ".keras.backend", ".keras.utils", ".keras.layers")
    for name in (*names, ".keras.wrappers", ".keras.wrappers.scikit_learn"):
        sys.modules[f"tensorflow{name}"] = Anything(f"tensorflow{name}")


def peer_models():
    without_tensorflow()
    from mil.models.bag_level.miles import MILES
    from mil.models.instance_level.apr import APR

    return {"miles": lambda: MILES(sigma2=SIGMA2, C=PRICE), "apr": lambda: APR(verbose=0)}


def our_models():
    import gmil

    miles = {"gamma": 1 / SIGMA2, "C": PRICE, "scale": None, "random_state": 0}
    return {"miles": lambda: gmil.MILES(**miles), "apr": lambda: gmil.APR()}


def run(models, method, instances, offsets, y, folds):
    """Return seconds and accuracy of a whole cross-validation."""
    bag_of = np.repeat(np.arange(len(y)), np.diff(offsets))
    seconds, right = 0.0, 0
    for fold in range(folds.max() + 1):
        test = folds == fold
        training = instances[~test[bag_of]]
        deviation = training.std(axis=0)
        scaled = (instances - training.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
        bags = np.split(scaled, offsets[1:-1])
        seen, new = ([bags[i] for i in np.flatnonzero(which)] for which in (~test, test))
        model = models[method]()
        start = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            found = model.fit(seen, y[~test]).predict(new)
        seconds += time.perf_counter() - start
        right += int((np.asarray(found) == y[test]).sum())
    return {"seconds": seconds, "accuracy": right / len(y)}


def in_the_other_environment(python, method, data):
    done = subprocess.run(
        [python, __file__, "--as-peer", str(data), method], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout)


def compare(name, methods, python):
    import gmil
    from gmil.model_selection.crossval import fold_numbers

    data = gmil.datasets.load(name)
    parts = {"instances": data.bags.instances, "offsets": data.bags.offsets, "y": np.asarray(data.y == 1, dtype=int)}
    parts["folds"] = fold_numbers(10, parts["y"], None, 0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(file, **parts)
        for method in methods:
            ours = run(our_models(), method, **parts)
            print(name, method, "gmil", ours, "mil", in_the_other_environment(python, method, file), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=["musk1"])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--peer", metavar="PYTHON", help="The interpreter of the environment that has mil.")
    parser.add_argument("--as-peer", nargs=2, metavar=("DATA", "METHOD"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.as_peer:
        file, method = arguments.as_peer
        print(json.dumps(run(peer_models(), method, **np.load(file))))
        return
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # for the other process, and for our kernels
    with threadpool_limits(1):
        for name in arguments.datasets:
            compare(name, arguments.methods, arguments.peer)


if __name__ == "__main__":
    main()
