"""WeightedGMIL on a GPU: fit, prediction and a whole 10-fold on data of the size of MED11 that lies on the device.

The data are those of `benchmarks/gpu.py`, made on the device itself. Printed are the times of a fit, of
`decision_function` about 80 bags and of `gmil.cross_validate`, where the time goes (every stage waits for the device,
so that the sum is more than the whole), the memory, and how far decisions are from those of the processor on a few
bags. ``--probe`` adds the time of single kernels. The last lines are one JSON object.

    python benchmarks/gpu_weighted.py --out found                     # the real size, on a GPU
    python benchmarks/gpu_weighted.py --backend torch:cpu --bags 60 --instances 30000 --features 50   # anywhere
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import sys
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))  # without an installation
sys.path.insert(0, str(Path(__file__).resolve().parent))

import gmil
from gmil.engine import describe_torch, resolve
from gpu import make_data, mean_auc, print_and_write, say, synchronize, timed

STAGES = [
    "gmil.weighted.streaming:draw_samples",
    "gmil.weighted.streaming:_read",
    "gmil.weighted.streaming:choose_centers",
    "gmil.weighted.streaming:fit_views",
    "gmil.weighted.streaming:weigh_views",
    "gmil.weighted.streaming:finish_views",
    "gmil.weighted.witness_fitting:draft_scorers",
    "gmil.weighted.witness_fitting:weigh_witnesses",
    "gmil.weighted.streaming:vectors_of",
    "gmil.weighted.streaming:_decisions",
    "gmil.weighted.fitting:weigh",
    "gmil.weighted.fitting:bag_features",
    "gmil.weighted.on_device.ridge:fit_candidates",
    "gmil.weighted.on_device.ridge:_distances",
    "gmil.weighted.on_device.ridge:_fit_ridge",
    "gmil.weighted.on_device.ridge:_eigh",
    "gmil.weighted.on_device.noisy_or:fit_on_device",
    "gmil.weighted.block_vectors:in_single_precision",
    "gmil.weighted.block_vectors:largest_and_total",
    "gmil.weighted.block_vectors:similarities",
    "gmil.weighted.block_vectors:as_array",
    "gmil.weighted.block_vectors:_moments",
    "gmil.weighted.block_vectors:_range",
    "gmil.engine.torch.kernels:Segments.moments",
    "gmil.engine.torch.backend:TorchBackend.sq_distances",
    "gmil.engine.torch.backend:TorchBackend.bag_min",
    "gmil.engine.torch.backend:TorchBackend.bag_max",
]


def main():
    asked = parse()
    device = resolve(asked.backend).device
    say(f"{describe_torch()}, on {device}")
    start = time.perf_counter()
    bags, y = make_data(asked, device)
    synchronize(device)
    input_gb = bags.n_instances * bags.n_features * 4 / 1e9
    say(f"{bags}, {input_gb:.2f} GB on the device, made in {time.perf_counter() - start:.1f} s")
    found = {"torch": describe_torch(), "arguments": vars(asked), "input_gb": input_gb}
    if asked.probe:
        found["probe"] = report("probe", probe(bags, asked, device))
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    model = gmil.WeightedGMIL(backend=asked.backend, random_state=0)
    found["fit"], fitted = timed(lambda: model.fit(bags, y), device, asked.repeats)
    report("fit", found["fit"])
    some = bags[: min(80, len(bags))]
    found["predict 80 bags"], _ = timed(lambda: fitted.decision_function(some), device, asked.repeats)
    report("predict 80 bags", found["predict 80 bags"])
    found["stages of a fit"] = report("stages of a fit", stages(lambda: model.fit(bags, y), device))
    found["stages of predict"] = report("stages of predict", stages(lambda: model.decision_function(some), device))
    if asked.folds:
        cv = functools.partial(gmil.cross_validate, model, bags, y, cv=asked.folds)
        found["cross-validation"], result = timed(cv, device, min(asked.repeats, 1))
        found["cross-validation"]["auc"] = mean_auc(result)
        report(f"{asked.folds}-fold", found["cross-validation"])
        if not asked.brief:
            found["stages of a cross-validation"] = report("stages of a cross-validation", stages(cv, device))
    if device.type == "cuda":
        found["peak_memory_gb"] = report("peak memory, GB", torch.cuda.max_memory_allocated() / 1e9)
    if asked.host:
        X = bags.tensor_on(device)
        there = gmil.LazyBags.from_array(X.cpu().numpy(), bags.source_offsets)
        found["fit from the host"] = report("fit from the host", timed(lambda: model.fit(there, y), device, 1)[0])
    found["check"] = report("check", check(bags, y, asked))
    print_and_write(found, asked.out)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bags", type=int, default=813)
    parser.add_argument("--instances", type=int, default=2_600_000)
    parser.add_argument("--features", type=int, default=1000)
    parser.add_argument("--events", type=int, default=5)
    parser.add_argument("--folds", type=int, default=10, help="0: no cross-validation")
    parser.add_argument("--witnesses", type=float, default=0.05, help="the share of frames that show the event")
    parser.add_argument("--checked", type=int, default=100, help="bags whose decisions are compared with the processor")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", default="torch", help="torch, torch:cuda or torch:cpu")
    parser.add_argument("--probe", action="store_true", help="time single kernels too")
    parser.add_argument("--host", action="store_true", help="time a fit whose data lie in the memory of the host too")
    parser.add_argument("--brief", action="store_true", help="no stages of the cross-validation")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def report(name, value):
    say(f"{name}: {json.dumps(value, default=str)}")
    return value


def stages(function, device):
    """Return the seconds that every stage took, those of the stages within it left out, and how often it was called."""
    seconds, calls, running = defaultdict(float), defaultdict(int), []

    @contextmanager
    def stage(name):
        synchronize(device)
        start = time.perf_counter()
        running.append(0.0)
        yield
        synchronize(device)
        whole = time.perf_counter() - start
        seconds[name] += whole - running.pop()
        calls[name] += 1
        if running:
            running[-1] += whole

    def watched(name, inner):
        @functools.wraps(inner)
        def call(*args, **more):
            with stage(name):
                return inner(*args, **more)

        return call

    restore = []
    for place in STAGES:
        module, _, path = place.partition(":")
        *owner, name = path.split(".")
        holder = functools.reduce(getattr, owner, importlib.import_module(module))
        restore.append((holder, name, getattr(holder, name)))
        setattr(holder, name, watched(path, getattr(holder, name)))
    try:
        with stage("everything else"):
            function()
    finally:
        for holder, name, inner in restore:
            setattr(holder, name, inner)
    order = sorted(seconds, key=seconds.get, reverse=True)
    return {name: [round(seconds[name], 4), calls[name]] for name in order}


def probe(bags, asked, device):
    """Return the seconds of single kernels of the sizes that a fit has."""
    from gmil.engine.torch.kernels import segments, sq_distances
    from gmil.weighted.on_device import ridge

    X = bags.tensor_on(device)
    n, step = len(bags), min(len(X), 466_000)
    generator = torch.Generator(device).manual_seed(1)
    vectors = torch.randn((n, 2 * asked.features), device=device, generator=generator)
    kernel = torch.exp(-torch.cdist(vectors, vectors) / asked.features)
    several = kernel.double().expand(26, n, n).contiguous()
    cuts = np.clip(bags.source_offsets[: int(np.searchsorted(bags.source_offsets, step)) + 1], 0, step)
    block, centers, own = X[:step], X[:: len(X) // 200][:200], segments(cuts, device)
    shift = block[:1000].mean(dim=0)
    eye = torch.eye(n, device=device, dtype=torch.float64)
    kernels = {
        "eigh, one, float64": lambda: torch.linalg.eigh(kernel.double()),
        "eigh, one, float32": lambda: torch.linalg.eigh(kernel),
        "eigh, 26, float64": lambda: torch.linalg.eigh(several),
        "eigh, 26, float32": lambda: torch.linalg.eigh(several.float()),
        "cholesky and inverse, 22, float64": lambda: torch.cholesky_inverse(torch.linalg.cholesky(several[:22] + eye)),
        "inverse, 22, float64": lambda: torch.linalg.inv(several[:22] + eye),
        "L1 distances of bags": lambda: torch.cdist(vectors, vectors, p=1),
        "medians of 26 kernels": lambda: several.float().flatten(1).sort(dim=1),
        "block: scale": lambda: (block - shift).div_(shift + 1),
        "block: unit length": lambda: block / torch.linalg.vector_norm(block, dim=1, keepdim=True),
        "block: distances to 200 centres": lambda: sq_distances(block, centers),
        "block: minimum": lambda: own.min(block),
        "block: moments": lambda: own.moments(block),
        "block: double precision": block.double,
    }
    seconds = {name: timed(function, device, 2)[0]["least_s"] for name, function in kernels.items()}
    for number in (1, 4, 16, ridge._STREAMS):
        ridge._STREAMS = number
        seconds[f"eigh, 26, float64, {number} at a time"] = timed(lambda: ridge._eigh(several), device, 2)[0]["least_s"]
    return seconds


def check(bags, y, asked):
    """Compare decisions about a few bags, thinned, with those of the processor."""
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.choice(len(bags), min(asked.checked, len(bags)), replace=False))
    rows = [start + np.sort(rng.choice(size, min(size, 150), replace=False))
            for start, size in zip(bags.offsets[chosen], bags.sizes[chosen], strict=True)]  # fmt: skip
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in rows])])
    small = gmil.Bags(bags.take(np.concatenate(rows)), offsets)
    labels = y[chosen]
    found = {"bags": len(small), "instances": small.n_instances}
    for sample_size in ("auto", small.n_instances // 3):
        setting = {"sample_size": sample_size, "random_state": 0, "n_centers": 100}
        known = gmil.WeightedGMIL(**setting, backend="auto").fit(small, labels)
        there = gmil.WeightedGMIL(**setting, backend=asked.backend).fit(small, labels)
        decided, other = known.decision_function(small), there.decision_function(small)
        same = known.set_params(backend=asked.backend).decision_function(small)
        size = float(np.abs(decided).max())
        found[f"sample_size={sample_size}"] = {
            "one model, largest difference of decisions": float(np.abs(same - decided).max()) / size,
            "two fits, largest difference of decisions": float(np.abs(other - decided).max()) / size,
            "two fits, root mean square": float(np.sqrt(np.mean((other - decided) ** 2))) / size,
            "predictions that differ": float(((other > 0) != (decided > 0)).mean()),
            "witnesses decide": [
                bool(any(s["stacking"].any() for s in m.witnesses_["scorers"])) for m in (known, there)
            ],
        }
    return found


if __name__ == "__main__":
    main()
