"""The fitted space: instances as a model sees them, scaled, projected, whitened, embedded, each of them optional."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from gmil.engine import resolve
from gmil.engine.resident import device_of, is_tensor
from gmil.errors import BagValidationError, count_of
from gmil.io.model_files.schema import Array, Fields, Flag, Kind, OrMissing, OrNone, Plain
from gmil.transform.embedding import FITTED_EMBEDDING, Embedding
from gmil.transform.scaling import ColumnSummary, column_units, rank_knots, tensor_summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances
    from gmil.scale import LazyBags

METRICS = ("euclidean", "mahalanobis")


class Space(NamedTuple):
    """Instances as a model sees them; every part is fitted on training instances, and None where it is left out.

    The parts are applied in this order. `on_device_of` gives a space for tensors of PyTorch.
    """

    shift: Any = None  # (n_features,)
    divisor: Any = None  # (n_features,): (x - shift) / divisor
    unit_length: bool = False  # then every instance to length 1
    knots: Any = None  # (n_features, n_knots): ranks among training instances, in place of a scaling
    pca_mean: Any = None  # (n_features,)
    pca_components: Any = None  # (n_components, n_features)
    whitening: Any = None  # (n_components, n_components), symmetric
    embedding: Embedding | None = None

    def apply(self, X: Any, backend: Backend | None = None) -> Any:
        """Take instances into this space; ``X`` itself stays as it is.

        Parameters
        ----------
        X : array, sparse array or torch.Tensor of shape (n_instances, n_features)
            A tensor asks for a space that lies on its device.
        backend : Backend, optional
            What computes ranks; by default the fastest, in one thread.
        """
        if self.knots is not None:
            return (backend or resolve("auto", 1)).column_ranks(X, self.knots)
        taken = _scaled(X, self)
        if self.pca_components is not None:
            # Projecting the mean apart keeps sparse instances sparse.
            projected = taken @ self.pca_components.T - self.pca_mean @ self.pca_components.T
            taken = projected if is_tensor(X) else np.asarray(projected, dtype=X.dtype)
        if self.whitening is not None:
            taken = dense(taken) @ self.whitening
            taken = taken if is_tensor(X) else np.asarray(taken, dtype=X.dtype)
        return taken if self.embedding is None else self.embedding.apply(taken)

    def on_device_of(self, X: Any) -> Space:
        """Return the same space for rows of a tensor of PyTorch.

        Parameters
        ----------
        X : torch.Tensor
            It gives the device and the precision. Ranks and embeddings are computed from arrays alone.
        """
        from gmil.engine.torch.tensors import to_device

        parts = {name: to_device(part, X.device, X.dtype) for name, part in self._asdict().items() if _is_array(part)}
        return self._replace(**parts)

    def is_same(self, other: Space) -> bool:
        """Tell whether another space is this one, without looking at what was fitted."""
        nothing_fitted = all(part is None for space in (self, other) for part in space if not isinstance(part, bool))
        return self is other or (nothing_fitted and self.unit_length == other.unit_length)

    def is_a_scaling(self) -> bool:
        """Tell whether instances are scaled alone: not ranked, projected, whitened or embedded."""
        return all(part is None for part in self[3:])

    @classmethod
    def from_file(cls, parts: Any) -> Any:
        """Return the space of a plain tuple that a file holds; what is none stays as it is, for a check to refuse."""
        if type(parts) is not tuple or len(parts) > len(cls._fields):
            return parts
        space = cls(*parts)
        embedding = cast("Any", space.embedding)
        is_whole = type(embedding) is tuple and len(embedding) == len(Embedding._fields)
        return space._replace(embedding=Embedding(*embedding)) if is_whole else space


def _is_array(part: Any) -> bool:
    return isinstance(part, np.ndarray)


def _scaled(X: Any, space: Space) -> Any:
    is_ours = False  # whether X is a copy already, which the next step may overwrite
    if space.shift is not None:
        X, is_ours = X - space.shift, True
    if space.divisor is not None:
        X, is_ours = _divide_columns(X, space.divisor, in_place=is_ours), True
    return _unit_length(X, in_place=is_ours) if space.unit_length else X


def _divide_columns(X: Any, divisor: Any, *, in_place: bool) -> Any:
    if is_tensor(X):
        return X.div_(divisor) if in_place else X / divisor
    if not sp.issparse(X):
        return np.divide(X, divisor, out=X if in_place else None)
    divided = X.copy()
    divided.data = divided.data / divisor[divided.indices]
    return divided


def _unit_length(X: Any, *, in_place: bool) -> Any:
    """Bring every instance to length 1; one of zeros stays as it is."""
    if is_tensor(X):
        from gmil.engine.torch.kernels import unit_rows

        return unit_rows(X, in_place=in_place)
    if sp.issparse(X):
        return sp.csr_array(normalize(X))
    lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
    lengths[lengths == 0] = 1
    return np.divide(X, lengths[:, None], out=X if in_place else None)


def dense(X: Any) -> Floats:
    """Return instances as a dense array."""
    return X.toarray() if sp.issparse(X) else X


def resident_tensor(bags: LazyBags, backend: Backend, spaces: Sequence[Space]) -> Any | None:
    """Return the instances where they lie on the device of the backend, and the spaces only scale them; else None."""
    if not all(space.is_a_scaling() for space in spaces):
        return None
    return bags.tensor_on(device_of(backend))


# -------------------------------------------------------------------------------- fitting


def fit_scaling(X: Instances | ColumnSummary | None, how: str | None) -> Space:
    """Learn a scaling from training instances, or from a summary of their columns.

    Parameters
    ----------
    X : array, sparse array or torch.Tensor of shape (n_instances, n_features), ColumnSummary or None
        None will do for no scaling and for "l2".
    how : str or None
        "standard" (mean 0, deviation 1), "minmax" (range [0, 1]), "l2" (every instance to length 1), a
        combination of the first two with "+l2", "global" (the range of the whole matrix to [0, 1], then
        divided by the root of the number of features, so that distances are root mean squares), "rank" (every
        feature by its rank among the training instances), or None.
    """
    if how is None:
        return Space()
    if how == "rank":
        return Space(knots=rank_knots(cast("Floats", X)))
    column_part, _, length_part = how.partition("+")
    if column_part == "l2":
        return Space(unit_length=True)
    known = tensor_summary(X) if is_tensor(X) else cast("Instances | ColumnSummary", X)
    shift, divisor = column_units(known, column_part)
    if sp.issparse(known):
        if length_part:
            msg = f"scale={how!r} moves the origin, which would make sparse instances dense. Use scale='l2'."
            raise BagValidationError(msg)
        # Distances do not see a shift, so sparse instances stay sparse without it.
        return Space(None, divisor.astype(known.dtype))
    return Space(shift.astype(known.dtype), divisor.astype(known.dtype), unit_length=bool(length_part))


def fit_space(
    X: Instances,
    scale: str | None,
    n_components: float | None,
    generator: np.random.Generator,
    metric: str = "euclidean",
) -> tuple[Space, Instances]:
    """Learn the space from training instances; return it and the instances in it."""
    space = fit_scaling(X, scale)
    instances = space.apply(X)
    if n_components is not None:
        space = with_components(space, X, n_components, generator)
        instances = space.apply(X)
    if metric == "euclidean":
        return space, instances
    if sp.issparse(instances):
        msg = (
            "metric='mahalanobis' needs dense instances, sparse ones are not supported: whitening would fill every "
            "zero. Pass dense bags, or a whole number as n_components."
        )
        raise BagValidationError(msg)
    whitening = whitening_map(instances)
    return space._replace(whitening=whitening), np.asarray(instances @ whitening, dtype=X.dtype)


def with_components(space: Space, X: Instances, n_components: int | float, generator: np.random.Generator) -> Space:
    """Return a scaling followed by principal components of instances; so many, or a share of the variance."""
    scaled, most = space.apply(X), min(X.shape)
    if n_components > most:
        msg = (
            f"n_components={n_components} is above what the data allow: {X.shape[0]} training instances of "
            f"{count_of(X.shape[1], 'feature has', 'features have')} at most {most} components."
        )
        raise BagValidationError(msg)
    if sp.issparse(scaled) and isinstance(n_components, float):
        msg = f"n_components={n_components}, a share of the variance, needs dense instances. Pass a whole number."
        raise BagValidationError(msg)
    from sklearn.decomposition import PCA  # a quarter of the time of importing gmil, and seldom needed

    seed = int(generator.integers(2**31 - 1))
    solver = "full" if isinstance(n_components, float) else "auto"
    pca = PCA(n_components, svd_solver=solver, random_state=seed).fit(scaled)
    return space._replace(pca_mean=np.asarray(pca.mean_).ravel(), pca_components=pca.components_)


def whitening_map(X: Floats) -> Floats:
    """Return the symmetric map S^-1/2, after which Euclidean distances are Mahalanobis distances.

    S is the covariance of the instances, shrunk towards a multiple of the identity as Ledoit and Wolf do: with few
    instances it stays invertible, with none that differ it is left out.
    """
    from sklearn.covariance import LedoitWolf  # slow to import, and seldom needed

    covariance = LedoitWolf().fit(np.asarray(X, dtype=np.float64)).covariance_
    variances, axes = np.linalg.eigh(covariance)
    if variances[-1] <= 0:
        return np.eye(X.shape[1])
    variances = np.maximum(variances, variances[-1] * len(variances) * np.finfo(np.float64).eps)
    whitening: Floats = (axes / np.sqrt(variances)) @ axes.T
    return whitening


# -------------------------------------------------------------------------------- as a part of a model


def fitted_space(n_features: str = "d", n_components: str = "c") -> Kind:
    """Return what a fitted attribute is that holds a space; the lengths have these names."""
    return Fields(
        OrNone(Array(n_features)),
        OrNone(Array(n_features, above=0)),
        Flag(),
        OrNone(Array(n_features, "t")),
        OrNone(Array(n_features)),
        OrNone(Array(n_components, n_features)),
        OrNone(Array("w", "w")),
        OrNone(FITTED_EMBEDDING),
    )


_PARTS_OF_0_1_0 = {
    "shift": "scale_shift_",
    "divisor": "scale_divisor_",
    "unit_length": "unit_length_",
    "pca_mean": "pca_mean_",
    "pca_components": "pca_components_",
    "whitening": "whitening_",
    "embedding": "embedding_",
}
"""Files of 0.1.0 hold the parts of a space as attributes of their own."""


class SpaceMixin:
    """An estimator that sees instances in a fitted space, ``space_``; it stands to the left of `BagEstimator`."""

    space_: Space

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "space_": fitted_space(),
        **dict.fromkeys(_PARTS_OF_0_1_0.values(), OrMissing(Plain(np.ndarray, bool, tuple))),
    }

    def _complete(self) -> None:
        cast("Any", super())._complete()
        found = vars(self)
        if "space_" in found:
            self.space_ = Space.from_file(self.space_)
        elif "scale_shift_" in found:
            parts = {part: found.pop(name, None) for part, name in _PARTS_OF_0_1_0.items()}
            if parts["unit_length"] is None:
                parts["unit_length"] = str(found.get("scale")).endswith("l2")
            self.space_ = Space.from_file(tuple(Space()._replace(**parts)))
