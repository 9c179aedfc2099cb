"""GMIL on a GPU: a whole 10-fold cross-validation of data of the size of MED11 that lies on the device.

Word histograms with hidden witnesses are made on the device itself. Printed are the time of the whole
`gmil.cross_validate`, of its stages, of the bare product with all stacked centres, of one read of the data, and how
labels, counts and decisions compare with double precision. The last lines are one JSON object.

    python benchmarks/gpu.py                                        # the real size, on a GPU
    python benchmarks/gpu.py --instances 20000 --bags 60 --features 50 --sample 2000   # anywhere
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))  # without an installation

import gmil
from gmil.engine import describe_torch, kmeans, reference, resolve
from gmil.engine.torch.clustering import kmeans_jobs
from gmil.engine.torch.passes import Stack, measure
from gmil.engine.torch.tensors import to_device
from gmil.fold_work import Fold
from gmil.greedy.clustering import rows_to_cluster
from gmil.greedy.streaming import _among_all
from gmil.model_selection.folds import estimator_seed, fold_numbers, strata
from gmil.sampling import make_generator
from gmil.transform.space import Space

WORDS_PER_FRAME = 60
SCENES = 40
SCENES_PER_VIDEO = 5


def main():
    asked = parse()
    backend = resolve(asked.backend)
    device = backend.device
    say(f"{describe_torch()}, on {device}")
    bags, y = make_data(asked, device)
    X = bags.tensor_on(device)
    say(f"{bags}, {X.numel() * X.element_size() / 1e9:.2f} GB on the device")
    model = gmil.GMIL(asked.clusters, asked.positive, asked.negative, sample_size=asked.sample, backend=asked.backend)
    torch.set_float32_matmul_precision("highest")
    found = {"torch": describe_torch(), "python": sys.version.split()[0], "arguments": vars(asked)}
    found["whole"] = {}
    for precision in ("highest", "high"):
        torch.set_float32_matmul_precision(precision)
        name = "float32" if precision == "highest" else "tf32"
        seconds, result = timed(lambda: gmil.cross_validate(model, bags, y, cv=asked.folds), device, asked.repeats)
        found["whole"][name] = {**seconds, "auc": mean_auc(result), "accuracy": result.accuracy()}
        say(f"10-fold, {name}: {found['whole'][name]}")
        if precision == "highest":
            exact = result
        else:
            found["whole"][name]["predictions_that_differ_from_float32"] = float(
                (result.predictions != exact.predictions).mean()
            )
    torch.set_float32_matmul_precision("highest")
    found["stages"], centers, inertia = time_stages(bags, y, model, asked, device)
    found["bare"] = time_bare(X, centers, device, asked.repeats)
    found["check"] = {"inertia_over_that_of_the_reference": inertia, **check(X, bags, centers, asked)}
    if device.type == "cuda":
        found["peak_memory_gb"] = torch.cuda.max_memory_allocated() / 1e9
    print_and_write(found, asked.out)


def print_and_write(found, out):
    """Print figures as JSON, and write them to a file where one is named."""
    text = json.dumps(found, indent=2, default=str)
    print(text)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.with_suffix(".json").write_text(text + "\n")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bags", type=int, default=813)
    parser.add_argument("--instances", type=int, default=2_600_000)
    parser.add_argument("--features", type=int, default=1000)
    parser.add_argument("--events", type=int, default=5)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--clusters", type=int, default=50)
    parser.add_argument("--positive", type=int, default=3)
    parser.add_argument("--negative", type=int, default=9)
    parser.add_argument("--sample", type=int, default=10_000)
    parser.add_argument("--witnesses", type=float, default=0.05, help="the share of frames that show the event")
    parser.add_argument("--checked", type=int, default=20_000, help="rows that are compared with double precision")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", default="torch", help="torch, torch:cuda or torch:cpu")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def say(text):
    print(text, file=sys.stderr, flush=True)


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def timed(function, device, repeats):
    """Return the median, least and first time of a function in seconds, and what it returns."""
    seconds = []
    for _ in range(repeats + 1):
        synchronize(device)
        start = time.perf_counter()
        value = function()
        synchronize(device)
        seconds.append(time.perf_counter() - start)
    times = {"median_s": float(np.median(seconds[1:])), "least_s": min(seconds[1:]), "first_s": seconds[0]}
    return {name: round(value, 6) for name, value in times.items()}, value


def make_data(asked, device):
    """Return bags of word histograms on the device, and an indicator matrix with one event a bag."""
    host = np.random.default_rng(asked.seed)
    shares = host.lognormal(0, 0.6, size=asked.bags)
    sizes = 1 + host.multinomial(asked.instances - asked.bags, shares / shares.sum())
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    common = np.arange(1, asked.features + 1) ** -0.8
    common /= common.sum()

    def mixed(share):
        return (1 - share) * common + share * host.dirichlet(np.full(asked.features, 0.02))

    scenes = torch.tensor(np.array([mixed(0.3) for _ in range(SCENES)]), device=device, dtype=torch.float32)
    events = torch.tensor(np.array([mixed(0.8) for _ in range(asked.events)]), device=device, dtype=torch.float32)
    generator = torch.Generator(device).manual_seed(asked.seed)
    X = torch.zeros((asked.instances, asked.features), device=device)
    event_of = np.arange(asked.bags) % asked.events
    for bag, (start, stop) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
        size = stop - start
        shown = torch.tensor(host.integers(SCENES, size=SCENES_PER_VIDEO), device=device)
        scene_of = shown[torch.arange(size, device=device) * SCENES_PER_VIDEO // size]
        n_witnesses = min(size, max(1, round(asked.witnesses * size)))
        first = int(host.integers(size - n_witnesses + 1))
        chances = scenes[scene_of]
        chances[first : first + n_witnesses] = 0.4 * chances[first : first + n_witnesses] + 0.6 * events[event_of[bag]]
        words = torch.multinomial(chances, WORDS_PER_FRAME, replacement=True, generator=generator)
        X[start:stop].scatter_add_(1, words, torch.full((), 1 / WORDS_PER_FRAME, device=device).expand(words.shape))
    y = (event_of[:, None] == np.arange(asked.events)).astype(np.int64)
    return gmil.LazyBags.from_array(X, offsets), y


def mean_auc(result):
    return float(np.nanmean([result.one_vs_rest(i).auc() for i in range(result.y.shape[1])]))


def time_stages(bags, y, model, asked, device):
    """Return the time of every stage of the cross-validation, and the centres of all folds."""
    X, stages = bags.tensor_on(device), {}
    folds = fold_numbers(asked.folds, strata(y), None, 0)
    jobs = [Fold(folds != fold, estimator_seed(0, 0, fold)) for fold in range(asked.folds)]

    def draw():
        generators = [make_generator(job.seed) for job in jobs]
        labels = np.zeros(len(bags), dtype=np.int64)
        rows = [
            _among_all(bags, job.training, rows_to_cluster(bags[job.training], labels[job.training], model, generator))
            for job, generator in zip(jobs, generators, strict=True)
        ]
        return generators, rows

    stages["draw samples on the host"], (_, rows) = timed(draw, device, asked.repeats)
    stages["gather samples"], samples = timed(
        lambda: torch.stack([X[to_device(own, device)] for own in rows]), device, asked.repeats
    )
    stages["k-means++ and Lloyd, all folds"], found = timed(
        lambda: kmeans_jobs(samples, asked.clusters, generators=draw()[0]), device, asked.repeats
    )
    stages["k-means++ and Lloyd, all folds"]["iterations"] = [clusters.n_iter for clusters in found]
    starts = [X[to_device(own[: asked.clusters], device)].cpu().numpy() for own in rows]
    stages["Lloyd alone, ten iterations"], _ = timed(
        lambda: kmeans_jobs(samples, asked.clusters, generators=[], init=starts, max_iter=10), device, asked.repeats
    )
    centers = [clusters.centers for clusters in found]
    stack = Stack(Space().apply, centers)
    wanted = np.ones(len(bags), dtype=bool)
    stages["one pass, all folds"], _ = timed(
        lambda: measure(X, bags.source_offsets, wanted, [stack]), device, asked.repeats
    )
    for name, seconds in stages.items():
        say(f"{name}: {seconds}")
    # From the same start; where instances tie between centres, rounding may lead elsewhere, and as far down.
    wide = samples[0].cpu().numpy().astype(np.float64)
    expected = kmeans(wide, asked.clusters, backend=resolve("numpy"), generator=draw()[0][0])
    return stages, centers, found[0].inertia / expected.inertia


def time_bare(X, centers, device, repeats):
    """Return the time of the product with all centres, in both precisions, and of one read of the data."""
    stacked = to_device(np.concatenate(centers), device)
    step = max(1, (1 << 28) // len(stacked))
    out = torch.empty((min(step, len(X)), len(stacked)), device=device)

    def product():
        for start in range(0, len(X), step):
            rows = X[start : start + step]
            torch.mm(rows, stacked.mT, out=out[: len(rows)])

    times = {}
    for name, precision in (("product float32", "highest"), ("product tf32", "high")):
        torch.set_float32_matmul_precision(precision)
        times[name], _ = timed(product, device, repeats)
    torch.set_float32_matmul_precision("highest")
    times["one read"], _ = timed(X.sum, device, repeats)
    say(f"bare: {times}")
    return times


def check(X, bags, centers, asked):
    """Compare labels, counts and minima of the first rows with the reference in double precision."""
    n_bags = max(1, int(np.searchsorted(bags.source_offsets, asked.checked, side="right")) - 1)
    offsets = bags.source_offsets[: n_bags + 1]
    rows = X[: offsets[-1]]
    wide = rows.cpu().numpy().astype(np.float64)
    found = {"rows": len(wide), "bags": n_bags}
    for name, precision in (("float32", "highest"), ("tf32", "high")):
        torch.set_float32_matmul_precision(precision)
        stack = Stack(Space().apply, centers)
        counts, minima, _ = measure(rows, offsets, np.ones(n_bags, dtype=bool), [stack])
        moved, worst, ties = 0, 0.0, 0
        for number, own in enumerate(centers):
            columns = slice(number * len(own), (number + 1) * len(own))
            squares = reference.sq_distances(wide, own.astype(np.float64))
            expected = reference.bag_histograms(squares.argmin(axis=1), offsets, len(own))
            moved += int(np.abs(counts[:, columns] - expected).sum()) // 2
            least = reference.bag_min(squares, offsets)
            worst = max(worst, float((np.abs(minima[:, columns] - least) / np.maximum(least, 1e-12)).max()))
            two = np.partition(squares, 1, axis=1)[:, :2]
            ties += int((two[:, 1] - two[:, 0] <= 1e-5 * two[:, 0]).sum())
        found[name] = {
            "rows_counted_in_another_bin": moved,
            "of": len(wide) * len(centers),
            "rows_whose_two_nearest_are_1e-5_apart": ties,
            "largest_relative_error_of_a_squared_minimum": worst,
        }
    torch.set_float32_matmul_precision("highest")
    say(f"check: {found}")
    return found


if __name__ == "__main__":
    main()
