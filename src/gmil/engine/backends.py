"""Which implementation of the kernels runs."""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, cast

from gmil.engine import reference
from gmil.engine.threads import n_threads
from gmil.errors import BackendUnavailableError, installing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine.arrays import Booleans, Floats, Instances, Integers
    from gmil.engine.margins import Margins
    from gmil.engine.rbf import Points
    from gmil.engine.reference import BagMinima, Clusters, GramClusters

_log = logging.getLogger(__name__)

BACKENDS = ("auto", "numpy", "native", "torch", "torch:cpu", "torch:cuda")
"""What the parameter ``backend`` of an estimator may be."""
_AUTOMATIC = ("numpy", "native")  # what "auto" chooses from, the fastest last
_BY_NAME = BACKENDS[1:]


class Backend(Protocol):
    """The kernels that every backend offers; ``gmil.engine.reference`` documents each."""

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def n_threads(self) -> int: ...  # noqa: D102

    def sq_distances(self, X: Instances, centers: Floats) -> Floats: ...  # noqa: D102

    def sparse_sq_distances(self, rows: Any, matrix: Floats, terms: Floats, per_row: Floats) -> Floats: ...  # noqa: D102

    def l1_distances(self, X: Floats, Y: Floats) -> Floats: ...  # noqa: D102

    def column_ranks(self, X: Floats, knots: Floats) -> Floats: ...  # noqa: D102

    def rbf_sums(self, left: Points, right: Points, gammas: Sequence[float]) -> Floats: ...  # noqa: D102

    def assign(self, X: Instances, centers: Floats) -> tuple[Integers, Floats]: ...  # noqa: D102

    def assign_sums(  # noqa: D102
        self, X: Instances, centers: Floats
    ) -> tuple[Integers, Floats, Floats, Integers]: ...

    def seed(self, X: Instances, n_clusters: int, uniforms: Floats) -> Integers: ...  # noqa: D102

    def lloyd(self, X: Instances, centers: Floats, max_iter: int) -> Clusters: ...  # noqa: D102

    def gram_matrix(self, X: Instances) -> Floats: ...  # noqa: D102

    def gram_seed(self, gram: Floats, members: Booleans, uniforms: Floats) -> Integers: ...  # noqa: D102

    def gram_lloyd(  # noqa: D102
        self, gram: Floats, members: Booleans, starts: Integers, max_iter: int
    ) -> GramClusters: ...

    def solve_svm(  # noqa: D102
        self, kernel: Floats, positive: Booleans, costs: Floats, start: Margins | None = None
    ) -> Margins: ...

    def bag_min(self, values: Floats, offsets: Integers) -> Floats: ...  # noqa: D102

    def bag_max(self, values: Floats, offsets: Integers) -> Floats: ...  # noqa: D102

    def bag_mean(self, values: Floats, offsets: Integers) -> Floats: ...  # noqa: D102

    def bag_deviation(self, values: Floats, offsets: Integers) -> Floats: ...  # noqa: D102

    def bag_moments(self, values: Floats, offsets: Integers) -> Floats: ...  # noqa: D102

    def bag_two_min(self, values: Floats, offsets: Integers) -> BagMinima: ...  # noqa: D102

    def bag_histograms(self, labels: Integers, offsets: Integers, n_bins: int) -> Integers: ...  # noqa: D102

    def class_histograms(  # noqa: D102
        self, labels: Integers, offsets: Integers, classes: Integers, n_classes: int, n_bins: int
    ) -> Integers: ...


def available_backends() -> list[str]:
    """Return the names of the backends that can run here."""
    return [name for name in _BY_NAME if ":" not in name and why_not(name) is None]


@cache
def why_not(backend: str) -> str | None:
    """Return why a backend cannot run here, or None where it can."""
    if backend not in _BY_NAME:
        return f"gmil has no backend of that name, only {list(_BY_NAME)}"
    if backend == "native":
        try:
            import gmil.engine.native.backend  # noqa: F401
        except ImportError as error:
            return f"its compiled kernels cannot be loaded ({error})"
    return _why_not_torch(backend) if is_torch(backend) else None


def _why_not_torch(backend: str) -> str | None:
    try:
        import torch
    except ImportError as error:
        return f"PyTorch cannot be loaded ({error})"
    if backend == "torch:cuda" and not torch.cuda.is_available():
        return "PyTorch sees no GPU"
    return None


def is_torch(backend: str) -> bool:
    """Tell whether this is the name of a backend that runs in PyTorch."""
    return backend.partition(":")[0] == "torch"


def resolve(backend: str = "auto", n_jobs: int | None = None) -> Backend:
    """Return the backend of that name; ``"auto"`` is the fastest that can run here, PyTorch aside.

    ``n_jobs`` is the number of threads that a kernel may use: None is every core of this process (or what
    ``OMP_NUM_THREADS`` allows), -1 is every core. The NumPy reference leaves threads to its BLAS, PyTorch to itself.
    """
    if backend == "auto":
        backend = next(name for name in reversed(_AUTOMATIC) if why_not(name) is None)
        _log_fallback(backend)
    reason = why_not(backend)
    if reason is not None:
        raise BackendUnavailableError(_unavailable(backend, reason))
    if backend == "native":
        from gmil.engine.native.backend import NativeBackend

        return NativeBackend(n_threads(n_jobs))
    if is_torch(backend):
        from gmil.engine.torch.backend import TorchBackend

        return TorchBackend(backend)
    return cast("Backend", reference)


def describe_native() -> dict[str, Any]:
    """Return whether the compiled kernels run here, with which instructions and how many threads."""
    reason = why_not("native")
    if reason is not None:
        return {"compiled": False, "reason": reason}
    from gmil.engine.native.backend import simd_level, simd_levels

    return {"compiled": True, "simd": simd_level(), "simd_levels": simd_levels(), "threads": n_threads()}


def describe_torch() -> dict[str, Any]:
    """Return whether PyTorch runs here, its version, and the devices that it sees."""
    reason = why_not("torch")
    if reason is not None:
        return {"installed": False, "reason": reason}
    import torch

    from gmil.engine.torch.tensors import choose_device

    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {"installed": True, "version": torch.__version__, "device": str(choose_device("torch")), "gpus": gpus}


@cache
def _log_fallback(chosen: str) -> None:
    if chosen != _AUTOMATIC[-1]:
        _log.info("backend='auto' is %r: %r cannot run, %s.", chosen, _AUTOMATIC[-1], why_not(_AUTOMATIC[-1]))


def _unavailable(backend: str, reason: str) -> str:
    fix = "Pass one of them, or backend='auto'."
    if backend == "native":
        fix = f"Install a C++17 compiler, then gmil again from its sources (pip install --force-reinstall .). {fix}"
    if is_torch(backend):
        install = installing("torch").rstrip(".")
        fix = f"{install}, on a machine with a GPU. {fix}" if backend == "torch:cuda" else f"{install}. {fix}"
    return f"backend={backend!r} cannot run here: {reason}. The backends that can are {available_backends()}. {fix}"
