"""The compiled kernels against scikit-learn and NumPy (and, where installed, scikit-learn-intelex, faiss, superkmeans).

``python benchmarks/engine.py [--only musk1,musk2,fit,vocabulary,assign,bags,memory] [--rounds 7] [--out STEM]``

Threads are fixed: ours gets two, a peer the better of one and two.
"""

from __future__ import annotations

import argparse
import importlib.util
import resource
import subprocess
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from gmil.datasets import load_musk1, load_musk2
from gmil.engine import describe_native, gram_kmeans, gram_matrix, kmeans, kmeans_subsets, resolve
from side_by_side import Comparison, Way, compare, peers, write

if TYPE_CHECKING:
    from collections.abc import Callable

THREADS = 2
NATIVE = resolve("native", n_jobs=THREADS)


def clumps(n: int, d: int, seed: int) -> np.ndarray:
    """Return correlated integers in overlapping clumps, as the surface distances of conformers are."""
    rng = np.random.default_rng(seed)
    mixing = rng.standard_normal((12, d))
    centers = rng.standard_normal((max(4, n // 60), 12))
    X = (centers[rng.integers(len(centers), size=n)] + 0.5 * rng.standard_normal((n, 12))) @ mixing
    return np.round(40 * X + 25 * rng.standard_normal((n, d)))


def fit(rounds: int) -> list[Comparison]:
    X = clumps(10_000, 1000, seed=3).astype(np.float32)
    ours = kmeans(X, 50, backend=NATIVE, generator=np.random.default_rng(0))
    theirs = KMeans(50, n_init=1, random_state=0).fit(X)
    others = peers("sklearn KMeans", lambda: KMeans(50, n_init=1, random_state=0).fit(X))
    also = []
    if importlib.util.find_spec("sklearnex"):
        also.append(Way("scikit-learn-intelex", _intelex_fit(X, 50), THREADS))
    notes = {"inertia against sklearn": round(ours.inertia / theirs.inertia_, 4), "iterations": ours.n_iter}
    return [
        compare(
            "fit k-means, 10 000 x 1000, K = 50, float32",
            Way("gmil", lambda: kmeans(X, 50, backend=NATIVE, generator=np.random.default_rng(0)), THREADS),
            others,
            also=also,
            rounds=rounds,
            target=8,
            aim=13,
            notes={**notes, "sklearn iterations": theirs.n_iter_},
        )
    ]


def vocabulary(rounds: int) -> list[Comparison]:
    """Compare with faiss, ten iterations each; it starts from random rows, and gives no labels."""
    if not importlib.util.find_spec("faiss"):
        print("vocabulary: faiss is not installed")
        return []
    rng = np.random.default_rng(0)
    blobs = rng.standard_normal((1000, 128))[rng.integers(1000, size=50_000)] + rng.standard_normal((50_000, 128))
    kinds = {"clumps": clumps(50_000, 128, seed=3), "blobs": blobs, "no clusters": rng.standard_normal((50_000, 128))}
    return [
        _vocabulary(f"{kind}, {n} thread{'s' * (n > 1)}", X.astype(np.float32), n, rounds)
        for kind, X in kinds.items()
        for n in (1, THREADS)
    ]


def _vocabulary(kind: str, X: np.ndarray, n_threads: int, rounds: int) -> Comparison:
    backend = resolve("native", n_jobs=n_threads)

    def ours() -> Any:
        return kmeans(X, 1000, backend=backend, generator=np.random.default_rng(0), max_iter=10)

    def inertia(centers: np.ndarray) -> float:
        return float(NATIVE.assign(X, centers)[1].sum(dtype=np.float64))

    found, theirs = inertia(ours().centers), _faiss_fit(X, n_threads)
    also, notes = [], {"inertia against faiss": round(found / inertia(theirs()), 4)}
    if importlib.util.find_spec("superkmeans"):
        other = _superkmeans_fit(X, n_threads)
        also.append(Way("superkmeans", other, n_threads))
        notes["inertia against superkmeans"] = round(found / inertia(other()), 4)
    return compare(
        f"k-means, 50 000 x 128, K = 1000, ten iterations, {kind}",
        Way("gmil", ours, n_threads),
        [Way("faiss", theirs, n_threads)],
        also=also,
        rounds=rounds,
        target=1,
        aim=2,
        notes=notes,
    )


def _faiss_fit(X: np.ndarray, n_threads: int) -> Callable[[], Any]:
    import faiss

    def fit() -> np.ndarray:
        faiss.omp_set_num_threads(n_threads)
        model = faiss.Kmeans(X.shape[1], 1000, niter=10, seed=0)
        model.train(X)
        return model.centroids

    return fit


def _superkmeans_fit(X: np.ndarray, n_threads: int) -> Callable[[], Any]:
    from superkmeans import SuperKMeans

    def fit() -> np.ndarray:
        # By default it looks at three tenths of the rows, and stops earlier.
        all_rows = {"sampling_fraction": 1.0, "early_termination": False, "hierarchical": False}
        return np.asarray(SuperKMeans(1000, X.shape[1], iters=10, n_threads=n_threads, **all_rows).train(X))

    return fit


def assign(rounds: int) -> list[Comparison]:
    X = np.random.default_rng(0).standard_normal((400_000, 1000), dtype=np.float32)
    centers = X[:50].copy()
    model = KMeans(50, init=centers, n_init=1, max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X[:1000])
    model.cluster_centers_ = centers
    also = []
    if importlib.util.find_spec("faiss"):
        also.append(Way("faiss", _faiss_search(X, centers), THREADS))
    if importlib.util.find_spec("sklearnex"):
        also.append(Way("scikit-learn-intelex", _intelex_predict(X, centers), THREADS))
    ours = Way("gmil", lambda: NATIVE.assign(X, centers), THREADS)
    others = peers("sklearn KMeans.predict", lambda: model.predict(X))
    title = "assign 400 000 x 1000 to 50 centres"
    found = compare(title, ours, others, also=also, rounds=rounds, target=1.8, aim=2.3)
    # The shape that BLAS is best at, small enough for the caches: no kernel can be expected to win more than this.
    side = round((X.shape[0] * X.shape[1] * len(centers)) ** (1 / 3))
    square = X.ravel()[: side * side].reshape(side, side)
    bound = compare(
        "what could be won: as many products of numbers in one square product by BLAS",
        Way("sgemm, square", lambda: square @ square, THREADS),
        others,
        rounds=rounds,
    )
    product = compare(
        "the same product by BLAS",
        Way("gmil", lambda: NATIVE.assign(X, centers), THREADS),
        [Way("sgemm", lambda: X @ centers.T, THREADS)],
        rounds=rounds,
        target=0.85,
    )
    read = compare(
        "one read of the data",
        Way("gmil", lambda: NATIVE.assign(X, centers), THREADS),
        [Way("sum", lambda: X.sum(), THREADS)],
        rounds=3,
        notes={"gigabytes": X.nbytes / 1e9},
    )
    return [found, bound, product, read]


def _faiss_search(X: np.ndarray, centers: np.ndarray) -> Callable[[], Any]:
    import faiss

    index = faiss.IndexFlatL2(X.shape[1])
    index.add(centers)
    return lambda: index.search(X, 1)


def _intelex_predict(X: np.ndarray, centers: np.ndarray) -> Callable[[], Any]:
    from sklearnex.cluster import KMeans as IntelexKMeans

    model = IntelexKMeans(len(centers), init=centers, n_init=1, max_iter=1).fit(X[:1000])
    return lambda: model.predict(X)


def _intelex_fit(X: np.ndarray, n_clusters: int) -> Callable[[], Any]:
    from sklearnex.cluster import KMeans as IntelexKMeans

    return lambda: IntelexKMeans(n_clusters, n_init=1, random_state=0).fit(X)


def bags(rounds: int) -> list[Comparison]:
    rng = np.random.default_rng(0)
    found = []
    for dtype in (np.float64, np.float32):
        values = rng.random((1_000_000, 12)).astype(dtype)
        offsets = np.append(0, np.cumsum(rng.multinomial(1_000_000 - 100_000, np.ones(100_000) / 100_000) + 1))
        found.append(
            compare(
                f"bag minimum, 1 000 000 x 12 in 100 000 bags, {np.dtype(dtype).name}",
                Way("gmil", lambda v=values, o=offsets: NATIVE.bag_min(v, o), THREADS),
                [Way("np.minimum.reduceat", lambda v=values, o=offsets: np.minimum.reduceat(v, o[:-1], axis=0))],
                rounds=rounds,
                target=6,
                aim=10,
            )
        )
    return found


def _folds(n: int, n_folds: int = 10, seed: int = 0) -> np.ndarray:
    fold = np.random.default_rng(seed).permutation(n) % n_folds
    return np.stack([fold != f for f in range(n_folds)])


def _generators(n: int) -> list[np.random.Generator]:
    return [np.random.default_rng(i) for i in range(n)]


def _sklearn_folds(X: np.ndarray, members: np.ndarray, n_clusters: int) -> list[float]:
    return [KMeans(n_clusters, n_init=1, random_state=i).fit(X[rows]).inertia_ for i, rows in enumerate(members)]


def musk1(rounds: int) -> list[Comparison]:
    X = load_musk1().bags.instances
    members = _folds(len(X))
    gram = gram_matrix(X, backend=NATIVE)

    def ours(given: np.ndarray | None = None) -> Any:
        return gram_kmeans(
            gram_matrix(X, backend=NATIVE) if given is None else given,
            members,
            10,
            backend=NATIVE,
            generators=_generators(10),
        )

    theirs = np.mean(_sklearn_folds(X, members, 10))
    return [
        compare(
            f"ten folds of Musk1, 476 x 166, K = 10, {what}",
            Way("gmil", lambda g=given: ours(g), THREADS),
            peers("sklearn KMeans", lambda: _sklearn_folds(X, members, 10)),
            rounds=2 * rounds,
            target=target,
            aim=aim,
            notes={"inertia against sklearn": round(float(ours().inertia.mean() / theirs), 4)},
        )
        for what, given, target, aim in (
            ("with the Gram matrix", None, 12, 25),
            ("Gram matrix shared", gram, None, None),
        )
    ]


def musk2(rounds: int) -> list[Comparison]:
    X = load_musk2().bags.instances.astype(np.float32)
    members = _folds(len(X))

    def ours() -> Any:
        return kmeans_subsets(X, members, 22, backend=NATIVE, generators=_generators(10))

    inertia = np.mean([run.inertia for run in ours()]) / np.mean(_sklearn_folds(X, members, 22))
    return [
        compare(
            "ten folds of Musk2, 6598 x 166, K = 22, float32",
            Way("gmil", ours, THREADS),
            peers("sklearn KMeans", lambda: _sklearn_folds(X, members, 22)),
            rounds=rounds,
            target=5,
            aim=8,
            notes={"inertia against sklearn": round(float(inertia), 4)},
        )
    ]


def memory(rounds: int) -> list[Comparison]:  # noqa: ARG001
    """Print how much memory assignment needs beyond its input and its result, measured in a process of its own."""
    code = (
        "import resource, numpy as np\n"
        "from gmil.engine import resolve\n"
        "X = np.zeros((200_000, 500), dtype=np.float32); X += 1; C = np.eye(100, 500, dtype=np.float32)\n"
        "backend = resolve('native', n_jobs=2); backend.assign(X[:1000], C)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "labels, nearest = backend.assign(X, C)\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print((after - before) * 1024 - labels.nbytes - nearest.nbytes)\n"
    )
    beyond = int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
    matrix = 200_000 * 100 * 4
    print(
        f"assign 200 000 x 500 to 100 centres: {beyond / 1e6:.2f} MB beyond input and result; "
        f"all distances would take {matrix / 1e6:.0f} MB"
    )
    if beyond > matrix / 10:
        msg = f"Assignment needed {beyond} bytes beyond its input and result."
        raise SystemExit(msg)
    return []


CASES = {
    "musk1": musk1,
    "musk2": musk2,
    "fit": fit,
    "vocabulary": vocabulary,
    "assign": assign,
    "bags": bags,
    "memory": memory,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(CASES), help="which cases, separated by commas")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=None, help="write OUT.json and OUT.md")
    options = parser.parse_args()
    print(describe_native())
    about = {"native": describe_native(), "threads": THREADS, "rounds": options.rounds}
    found: list[Comparison] = []
    for name in options.only.split(","):
        found += CASES[name](options.rounds)
        if options.out is not None:
            write(found, options.out, about)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
