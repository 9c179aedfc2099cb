"""What commands are given: data, methods and their settings."""

from __future__ import annotations

import ast
import contextlib
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil import datasets
from gmil.base import methods
from gmil.cli.console import in_options, say
from gmil.errors import BagValidationError, GmilError, LabelError, listed
from gmil.greedy import GMIL
from gmil.paper.runs.data import groups_of
from gmil.scale import LazyBags
from gmil.scale.dask import connect
from gmil.scale.folder import FolderSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sklearn.base import BaseEstimator


DEFAULT_METHOD = "weighted-gmil"
INSTANCE_LABELS = "y_instance"
"""What files call the labels of instances."""
LARGE = 1 << 30
"""Bytes in memory above which a Parquet file is read in blocks."""
_SMALLEST_LARGE_FILE = 1 << 23


class LabelledBags(NamedTuple):
    """Bags, their labels, groups and labels of instances (None where there are none) and the name to show."""

    name: str
    bags: Any  # Bags, or LazyBags
    y: Any
    groups: Any = None
    instance_y: Any = None


class Reader(NamedTuple):
    """How to read data: its columns, and whether in blocks."""

    bag: str | None = None
    label: str | None = None
    features: str | None = None
    group: str | None = None
    instance_labels: str | None = None
    stream: bool = False
    dask: str | None = None

    @property
    def feature_columns(self) -> list[str] | str | None:
        """The columns that --features names: several, or one that may be a list."""
        text = self.features
        return [name.strip() for name in text.split(",")] if text and "," in text else text

    def labelled(self, data: str, *, in_memory: bool = False) -> LabelledBags:
        """Read data that must have labels."""
        found = self.read(data, in_memory=in_memory)
        if found.y is None:
            fix = "Name the label column with --label."
            if isinstance(found.bags, LazyBags) and isinstance(found.bags.source, FolderSource):
                fix = "Put them into labels.csv in that folder, with the columns bag and label."
            msg = f"{found.name} has no labels. {fix}"
            raise BagValidationError(msg)
        return found

    def read(self, data: str, *, in_memory: bool = False, needs_labels: bool = True) -> LabelledBags:
        """Read a bundled or fetchable data set by name, a file or a folder.

        Without --stream and --dask, the size of the data decides whether it is read in blocks; with groups it is read
        at once. Where no labels are needed, those that are missing or wrong do no harm.
        """
        streams = self.stream or bool(self.dask)
        if self.group is not None and streams:
            msg = f"--group {self.group} needs the data in memory, but --stream and --dask read blocks. Leave out one."
            raise BagValidationError(msg)
        path = Path(data)
        if is_dataset(data):
            bunch = datasets.load(data)
            groups = groups_of(bunch.bags, self.group)
            return LabelledBags(data, bunch.bags, bunch.y, groups, self._labels_of_set(bunch, data))
        if not path.exists():
            names = ", ".join(datasets.dataset_names())
            msg = f"There is no file {data!r}, and no data set of that name; the data sets are {names}."
            raise BagValidationError(msg)
        may_stream = self.group is None and not in_memory
        read: Any = datasets.scan if streams or (may_stream and _is_large(path, self.bag)) else datasets.read
        info = [column for column in (self.group, self.instance_labels) if column is not None]
        try:
            with _said_warnings():
                bags, y = read(data, bag=self.bag, label=self.label, features=self.feature_columns, info=info)
        except LabelError as error:
            if needs_labels:
                raise
            bags, y = error.bags, None
        except BagValidationError as error:
            if error.parameter == "info" and repr(self.instance_labels) in str(error):
                error.fix = error.fix.replace("info", "instances")
            raise
        return LabelledBags(path.name, bags, y, groups_of(bags, self.group), self._labels_of_instances(bags))

    def _labels_of_set(self, bunch: Any, name: str) -> Any:
        """Return the labels of instances of a data set by name, where they are asked for."""
        if self.instance_labels is None:
            return None
        if bunch.instance_y is None or self.instance_labels != INSTANCE_LABELS:
            called = "" if self.instance_labels == INSTANCE_LABELS else f" that are called {self.instance_labels!r}"
            msg = f"The data set {name} has no labels of instances{called}. Leave out --instances, or its COLUMN."
            raise BagValidationError(msg)
        return bunch.instance_y

    def _labels_of_instances(self, bags: Any) -> Any:
        """Return the column that --instances names, None without it."""
        if self.instance_labels is None:
            return None
        table = bags.instance_info
        if table is None or self.instance_labels not in table.column_names:
            msg = f"--instances {self.instance_labels} names no column about instances, or one of the features."
            raise BagValidationError(msg)
        return table.column(self.instance_labels).to_numpy()


def is_dataset(data: str) -> bool:
    """Tell whether data is the name of a data set, and of no file here."""
    return data in datasets.dataset_names() and not Path(data).exists()


@contextlib.contextmanager
def _said_warnings() -> Iterator[None]:
    """Print what a reader warns about as one sentence each, without the line of code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(in_options(warning.message) for warning in caught):
        say(text)


def _is_large(path: Path, bag: str | None) -> bool:
    """Tell whether data is a folder, or a Parquet file that would take much memory."""
    if path.is_dir():
        return True
    if path.suffix.lower() != ".parquet" or path.stat().st_size < _SMALLEST_LARGE_FILE:
        return False
    try:
        with warnings.catch_warnings(action="ignore"):
            lazy, _ = datasets.scan(path, bag=bag)
    except GmilError:  # to read it will say what is wrong
        return False
    return lazy.n_instances * lazy.n_features * lazy.dtype.itemsize > LARGE


@contextlib.contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """Yield a client of the cluster at an address, and close it behind; None where there is no address."""
    if address is None:
        yield None
        return
    client = connect(address)
    try:
        yield client
    finally:
        client.close()


def for_method(estimator: Any, data: LabelledBags, client: Any = None) -> LabelledBags:
    """Return the data as a method can take it: in blocks, on a cluster if there is one, or in memory."""
    if not isinstance(data.bags, LazyBags):
        return data
    if not getattr(estimator, "_reads_blocks", False):
        return data._replace(bags=data.bags.load())
    return data if client is None else data._replace(bags=data.bags.on(client))


class Method(NamedTuple):
    """Which method, and with what parameters."""

    method: str | None
    settings: tuple[str, ...]
    positive: str | None
    paper: bool

    @property
    def name(self) -> str:
        """The method that is meant: --paper gives settings of gmil and of no other."""
        if self.paper and self.method not in (None, "gmil"):
            msg = f"--paper gives the settings of gmil, but the method is {self.method!r}."
            raise BagValidationError(msg)
        return "gmil" if self.paper else self.method or DEFAULT_METHOD

    def estimator(self, data: LabelledBags) -> BaseEstimator:
        """Return the classifier for data."""
        start = GMIL.from_paper(data.name).get_params() if self.paper else {}
        return make_estimator(self.name, self.settings, self.positive, data.y, start)


def make_estimator(
    method: str, settings: tuple[str, ...], positive: str | None, y: Any, start: dict[str, Any] | None = None
) -> BaseEstimator:
    """Build the classifier that the command line describes; ``start`` are parameters that settings override."""
    known = methods()
    if method not in known:
        msg = f"There is no method {method!r}; the methods are {', '.join(sorted(known))}."
        raise BagValidationError(msg)
    estimator = known[method]()
    parameters = {**(start or {}), **dict(parse_setting(text) for text in settings)}
    if positive is not None:
        parameters["pos_label"] = label_among(positive, y)
    elif estimator.get_params().get("pos_label", False) is None and "pos_label" not in parameters:
        parameters |= _positive_text(y)
    unknown = [name for name in parameters if name not in estimator.get_params()]
    if unknown:
        valid = listed(sorted(estimator.get_params()), most=60)
        msg = f"{method} has no parameter {unknown[0]!r}; its parameters are {valid}."
        raise BagValidationError(msg)
    return estimator.set_params(**parameters)


def _positive_text(y: Any) -> dict[str, Any]:
    """Return which of two texts is taken as positive, and say it once; of two numbers it is the larger."""
    labels = np.unique(y).tolist() if y is not None and y.dtype.kind == "U" else []
    if len(labels) != 2:
        return {}
    say(f"The labels are texts; {labels[1]!r} is taken as the positive class. Choose with --positive.")
    return {"pos_label": labels[1]}


def seeded(estimator: BaseEstimator, settings: tuple[str, ...], seed: int) -> BaseEstimator:
    """Give an estimator its seed, where it takes one and the settings name none."""
    if "random_state" in estimator.get_params() and not any(s.startswith("random_state=") for s in settings):
        estimator.set_params(random_state=seed)
    return estimator


def parse_setting(text: str) -> tuple[str, Any]:
    """Split NAME=VALUE; a value that is no Python literal is a string.

    >>> parse_setting("n_clusters=20")
    ('n_clusters', 20)
    >>> parse_setting("scale=l2")
    ('scale', 'l2')
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        msg = f"--set takes NAME=VALUE, got {text!r}."
        raise BagValidationError(msg)
    try:
        return name.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        return name.strip(), value.strip()


def label_among(text: str, y: Any) -> Any:
    """Return the label that is written as ``text``."""
    labels = sorted(set(y.tolist()), key=str)
    if len(labels) > 2:
        msg = (
            f"--positive {text} names the positive class of two, but the data has {len(labels)}: "
            f"{listed([str(x) for x in labels])}. Leave it out: every class is set against all others."
        )
        raise BagValidationError(msg)
    for label in labels:
        if str(label) == text:
            return label
    msg = f"--positive {text} is not a label of the data; its labels are {listed([str(x) for x in labels])}."
    raise BagValidationError(msg)
