"""Classifiers that are a transformer of bags to vectors and a classifier of these vectors."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.svm import LinearSVC

from gmil.base import BagClassifier, grouped_fit
from gmil.engine import resolve
from gmil.fold_work import EACH_ALONE, Steps
from gmil.io.model_files.fitted import check_model
from gmil.io.model_files.schema import Array, Fitted, Kind, Number, OrMissing, Plain, check_shape, refuse
from gmil.methods.shared.tuning import KernelSetting, Tuning, kernel_settings
from gmil.parameters import parameters
from gmil.transform.space import SpaceMixin, fitted_space

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gmil.bags import Bags
    from gmil.base import Training
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats
    from gmil.transform.vectors import BagVectorizer

_C_FACTORS = (0.1, 1.0, 10.0)
_MAX_ITER = 100_000


class OfTransformer:
    """A fitted attribute of a classifier that its transformer has."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        return self if model is None else getattr(model.transformer_, self.name)

    def __set__(self, model: Any, value: Any) -> None:
        if "transformer_" in vars(model):
            setattr(model.transformer_, self.name, value)
        else:  # a file of 0.1.0, in which the classifier has it
            vars(model)[self.name] = value


@parameters
class VectorClassifier(SpaceMixin, BagClassifier):
    """A classifier of two or more classes on the vectors of a transformer, which shares its parameters."""

    scale: str | None = "minmax"
    pos_label: Any = None
    n_jobs: int | None = None
    backend: str = "auto"

    _transformer: ClassVar[type[BagVectorizer]]
    _steps: ClassVar[Steps] = EACH_ALONE  # a model has its own where settings share them, see `share_steps`

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "transformer_": Fitted("_vectors_of", n_features="d"),
        "space_": OrMissing(fitted_space()),
    }

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "_transformer" in vars(cls):
            cls._parameter_constraints |= cls._transformer._parameter_constraints
        moved = {name: OrMissing(Plain(object)) for name, kind in vars(cls).items() if isinstance(kind, OfTransformer)}
        cls._fitted_attributes = {**moved, **vars(cls).get("_fitted_attributes", {})}

    def _new_transformer(self) -> BagVectorizer:
        """Return the transformer, not fitted, of the features that the classifier knows."""
        transformer = self._transformer(**{name: getattr(self, name) for name in self._transformer._get_param_names()})
        for name in ("n_features_in_", "feature_names_in_", "_steps"):
            if name in vars(self):
                setattr(transformer, name, getattr(self, name))
        return transformer

    def _fit_vectors(self, bags: Bags, backend: Backend, generator: np.random.Generator) -> Floats:
        """Fit the transformer, and return the vectors of training bags."""
        transformer = self._new_transformer()

        def fit() -> tuple[BagVectorizer, Floats]:
            transformer._keep_parameters()
            return transformer, transformer._fit_vectors(bags, backend, generator)

        self.transformer_, vectors = self._steps.once(("vectors", transformer._key()), fit, generator)
        return vectors

    def _decide(self, X: Any) -> Floats:
        bags, backend = self._check_new(X), resolve(self.backend, self.n_jobs)
        transformer = self.transformer_
        # Models that share their steps are asked about the same bags. The transformer is kept, so that its id is.
        key = "new vectors", id(transformer)
        _, vectors = self._steps.once(key, lambda: (transformer, transformer._vectors_of(bags, backend)))
        return self._decide_vectors(vectors)

    @abstractmethod
    def _decide_vectors(self, vectors: Floats) -> Floats:
        """Return what ``_decide`` returns about bags of these vectors, (n_bags, n_columns)."""

    def _decide_without(self, bags: Bags) -> Iterator[tuple[Any, Floats]]:
        for rows, vectors in self.transformer_._vectors_without(bags, resolve(self.backend, self.n_jobs)):
            yield rows, self._decide_vectors(vectors)

    def _complete(self) -> None:
        """Make the transformer of what files of 0.1.0 give the classifier itself."""
        super()._complete()
        found = self.__dict__
        if "transformer_" in found and type(self.transformer_) is not self._transformer:
            got = f"is a {type(self.transformer_).__name__}"
            refuse(f"transformer_ of {type(self).__name__}", f"a {self._transformer.__name__}", got)
        if "space_" not in found:
            return
        transformer = self._new_transformer()
        names = [name for name, kind in vars(type(self)).items() if isinstance(kind, OfTransformer)]
        for name in ("space_", *names):
            if name in found:
                setattr(transformer, name, found.pop(name))
        transformer._complete()
        check_model(transformer)
        self.transformer_ = transformer


class EmbeddedClassifier(VectorClassifier):
    """A linear support vector machine on one vector per bag."""

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "coef_": Array("v", "P"),
        "intercept_": Array("P"),
        "C_": OrMissing(Number(above=0)),
    }

    C: float
    tune: bool
    C_: float
    coef_: Floats
    intercept_: Floats

    fit = grouped_fit

    def _learn(self, training: Training) -> None:
        vectors = self._fit_vectors(training.bags, training.backend, training.generator)
        self._fit_linear(training, lambda _width, _known: vectors)

    def _decide_vectors(self, vectors: Floats) -> Floats:
        return self._linear_decisions(vectors, self.coef_, self.intercept_)

    def _decision_of_nothing(self) -> Floats:
        return self.intercept_

    def _complete(self) -> None:
        super()._complete()
        if hasattr(self, "transformer_"):
            n_columns, weights = len(self.transformer_.get_feature_names_out()), getattr(self, "coef_", np.empty(0))
            check_shape(np.shape(weights)[:1], (n_columns,), f"the first axis of coef_ of {type(self).__name__}", {})

    def _machine(self, price: float, seed: int) -> Any:
        return LinearSVC(C=price, max_iter=_MAX_ITER, random_state=seed)

    def _fit_linear(
        self,
        training: Training,
        embed: Callable[[float, Booleans], Floats],
        gamma: float = 1.0,
        factors: Sequence[float] = (1.0,),
    ) -> tuple[float, Any]:
        """Choose a width and a price and learn the weights; return the width and the machine.

        ``embed(width, known)`` returns the vectors of all training bags, without columns that come from other bags
        than those ``known``: no new bag has a column of its own.
        """
        labels, seed = training.labels, int(training.generator.integers(2**31 - 1))
        settings = kernel_settings(gamma, widths=factors, costs=[self.C * factor for factor in _C_FACTORS])

        def decide(setting: KernelSetting, test: Booleans) -> Floats:
            vectors = embed(setting.gamma, ~test)
            machine = self._machine(setting.C, seed).fit(vectors[~test], labels[~test])
            return np.asarray(machine.decision_function(vectors[test]))

        best = Tuning.of(training, self.tune).choose(settings, KernelSetting(gamma, self.C), decide)
        width, self.C_ = best.gamma, best.C
        machine = self._machine(self.C_, seed).fit(embed(width, np.ones(len(labels), dtype=bool)), labels)
        self.coef_, self.intercept_ = machine.coef_.T.copy(), np.asarray(machine.intercept_)
        return width, machine
