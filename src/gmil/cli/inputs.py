"""What commands are given: data, methods and their settings."""

from __future__ import annotations

import ast
import contextlib
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import gmil
from gmil.cli.console import said_warnings, say
from gmil.cli.methods import method_named
from gmil.errors import BagValidationError, ColumnWarning, GmilError, LabelError, count_of, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sklearn.base import BaseEstimator

    from gmil.bags.roles import Named
    from gmil.io.model_files import Origin


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
    target: str | None = None  # the kind of the labels, once it is known
    folds: Any = None


class Reader(NamedTuple):
    """How to read data: its columns, and whether in blocks."""

    bag: str | None = None
    label: str | None = None
    features: str | None = None
    exclude: tuple[str, ...] = ()
    decimal: str = "."
    group: str | None = None
    instance_labels: str | None = None
    stream: bool = False
    dask: str | None = None
    labels: tuple[str, ...] = ()
    layout: str | None = None
    mpp: float | None = None
    patch_size: float | None = None
    splits: str | None = None
    known: tuple[str, ...] | None = None
    """The features of a model; these are taken, in its order, where no others are named."""
    origin: Origin | None = None
    """What a model remembers of its data: columns, for those that are not named and are there."""
    target_kind: str | None = None
    event: str | None = None

    def of_model(self, model: Any, origin: Origin) -> Reader:
        """Return what reads the columns that a model knows."""
        names = getattr(model, "feature_names_in_", None)
        return self._replace(known=None if names is None else tuple(names), origin=origin)

    def origin_of(self, bags: Any) -> Origin:
        """Return what a model that is fitted on bags is to remember; of bags on disk no marks."""
        from gmil.bags.roles import is_pattern
        from gmil.io.model_files.origin import Origin, marks_of

        one = self.features is not None and not isinstance(self.feature_columns, list) and not is_pattern(self.features)
        marks = () if isinstance(bags, gmil.LazyBags) else tuple(marks_of(bags))
        return Origin(self.bag, self.label, self.group, self.features if one else None, marks, self.event)

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
            if _is_of_slides(found.bags):
                fix = "Name a table of slides with --labels, and its column with --label."
            elif _is_folder(found.bags):
                fix = "Put them into labels.csv in that folder, with the columns bag and label."
            msg = f"{found.name} has no labels. {fix}"
            raise BagValidationError(msg)
        return found

    def read(self, data: str, *, in_memory: bool = False, needs_labels: bool = True) -> LabelledBags:
        """Read a bundled or fetchable data set by name, a file or a folder.

        Without --stream and --dask, the size of the data decides whether it is read in blocks; with groups it is read
        at once. Where no labels are needed, those that are missing or wrong do no harm.
        """
        from gmil.bags.bag_columns import groups_of
        from gmil.bags.roles import carried_as
        from gmil.cli.targets.kinds import read_times
        from gmil.io.reading import read_named
        from gmil.io.scanning import scan_named
        from gmil.io.slide_folders import Request, is_slide_folder

        streams = self.stream or bool(self.dask)
        if not is_dataset(data) and Path(data).is_dir() and (self.layout or is_slide_folder(Path(data))):
            return self._read_slides(Path(data), in_memory=in_memory, needs_labels=needs_labels)
        if self.group is not None and streams:
            msg = f"--group {self.group} needs the data in memory, but --stream and --dask read blocks. Leave out one."
            raise BagValidationError(msg)
        path = Path(data)
        if is_dataset(data):
            bunch = gmil.datasets.load(data)
            bags = _with_features(bunch.bags, self.known)
            groups = bunch.groups if self.group is None else groups_of(bunch.bags, self.group)
            return LabelledBags(data, bags, bunch.y, groups, self._labels_of_set(bunch, data), self.target_kind)
        if not path.exists():
            names = ", ".join(gmil.datasets.dataset_names())
            msg = f"There is no file {data!r}, and no data set of that name; the data sets are {names}."
            raise BagValidationError(msg)
        reader = self._with_remembered(path, streams)
        may_stream = reader.group is None and not in_memory
        read: Any = scan_named if streams or (may_stream and _is_large(path, reader.bag)) else read_named
        carried = {"group": reader.group, "instances": self.instance_labels, "event": reader.event}
        try:
            with said_warnings(), carried_as(**carried):
                request = Request(
                    self.labels or None, None, None, None, self.layout, self.mpp, self.patch_size, self.splits
                )
                bags, y = read(path, reader._named(), request)
                bags = _with_features(bags, self.known)
        except LabelError as error:
            if needs_labels:
                raise
            bags, y = _with_features(error.bags, self.known), None
        if y is not None and reader.event is not None:
            y = read_times(bags, y, reader.event, needs_labels=needs_labels)
        groups = groups_of(bags, reader.group)
        return LabelledBags(path.name, bags, y, groups, self._labels_of_instances(bags), self.target_kind)

    def _read_slides(self, folder: Path, *, in_memory: bool, needs_labels: bool) -> LabelledBags:
        """Read a folder of slides, in blocks; where no labels are needed, nor bags named, every slide is a bag."""
        from gmil.io.slide_folders import Request, read_cohort

        labels = self.labels or (None if needs_labels or self.bag is not None else ())
        reader = self._with_remembered(folder, streams=False) if needs_labels else self
        further = reader.layout, reader.mpp, reader.patch_size, reader.splits, reader.event
        with said_warnings():
            found = read_cohort(
                folder, Request(labels, reader.bag, reader.label, reader.group, *further), in_memory=in_memory
            )
        sizes = count_of(len(found.bags), "bag"), count_of(found.bags.n_instances, "patch", "patches")
        say(f"{folder} is read as {found.layout}: {', '.join(sizes)}.")
        instance_y = self._labels_of_patches(found.bags)
        return LabelledBags(folder.name, found.bags, found.y, found.groups, instance_y, self.target_kind, found.folds)

    def _labels_of_patches(self, bags: Any) -> Any:
        """Return what the table that --instances names has of every patch, None without it."""
        from gmil.slides.patch_labels import read_patch_labels

        return None if self.instance_labels is None else read_patch_labels(bags, self.instance_labels)

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

    def _named(self) -> Named:
        from gmil.bags.roles import Named

        info = tuple(column for column in (self.group, self.instance_labels, self.event) if column is not None)
        return Named(self.bag, self.label, self.feature_columns, info, self.exclude, self.known, self.decimal)

    def _with_remembered(self, path: Path, streams: bool) -> Reader:
        """Return the reader with the columns that a model remembers, those that the data has."""
        if self.origin is None or not self.origin.columns:
            return self
        from gmil.io.reading import column_names

        there = column_names(path, self.labels)
        found: dict[str, Any] = {
            role: name
            for role, name in self.origin.columns.items()
            if getattr(self, role) is None and (there is None or name in there)
        }
        if streams:  # groups need the data in memory, and predictions need no groups
            found.pop("group", None)
        return self._replace(**found)


def _with_features(bags: Any, known: tuple[str, ...] | None) -> Any:
    """Return bags with the features that a model knows, in its order; those without names as they are."""
    own = bags.feature_names
    if known is None or own is None or own == known:
        return bags
    absent = [repr(name) for name in known if name not in own]
    if absent:
        msg = f"The model needs {len(known)} features, and {len(absent)} of them are not there: {listed(absent)}."
        raise BagValidationError(msg, fix="Add or rename them.")
    further = [repr(name) for name in own if name not in set(known)]
    if further:
        warnings.warn(ColumnWarning(f"The model does not know {listed(further)}: left out."), stacklevel=2)
    bags = bags.load() if isinstance(bags, gmil.LazyBags) else bags
    return bags.with_instances(bags.instances[:, [own.index(name) for name in known]], known)


def _is_folder(bags: Any) -> bool:
    from gmil.scale.folder import FolderSource

    return isinstance(bags, gmil.LazyBags) and isinstance(bags.source, FolderSource)


def _is_of_slides(bags: Any) -> bool:
    from gmil.slides.source import SlideSource

    return isinstance(getattr(bags, "source", None), SlideSource)


def is_dataset(data: str) -> bool:
    """Tell whether data is the name of a data set, and of no file here."""
    return data in gmil.datasets.dataset_names() and not Path(data).exists()


def _is_large(path: Path, bag: str | None) -> bool:
    """Tell whether data is a folder, or a Parquet file that would take much memory."""
    if path.is_dir():
        return True
    if path.suffix.lower() != ".parquet" or path.stat().st_size < _SMALLEST_LARGE_FILE:
        return False
    try:
        with warnings.catch_warnings(action="ignore"):
            lazy, _ = gmil.scan(path, bag=bag)
    except GmilError:  # to read it will say what is wrong
        return False
    return lazy.n_instances * lazy.n_features * lazy.dtype.itemsize > LARGE


@contextlib.contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """Yield a client of the cluster at an address, and close it behind; None where there is no address."""
    if address is None:
        yield None
        return
    from gmil.scale.dask import connect

    client = connect(address)
    try:
        yield client
    finally:
        client.close()


def for_method(estimator: Any, data: LabelledBags, client: Any = None) -> LabelledBags:
    """Return the data as a method can take it: in blocks, on a cluster if there is one, or in memory."""
    if not isinstance(data.bags, gmil.LazyBags):
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
    missing: str = "error"

    def asked(self, default: str) -> str:
        """Return the method as it was asked for, which may be written in several ways."""
        return self.method or ("gmil" if self.paper else default)

    @property
    def name(self) -> str:
        """The method that is meant: --paper gives settings of gmil and of no other."""
        method = None if self.method is None else method_named(self.method)
        if self.paper and method not in (None, "gmil"):
            msg = f"--paper gives the settings of gmil, but the method is {self.method!r}."
            raise BagValidationError(msg)
        return "gmil" if self.paper else method or DEFAULT_METHOD

    def name_for(self, data: LabelledBags, defaults: dict[str, str]) -> str:
        """Return the method that is meant for data: where none was named, that of the kind of its target."""
        return self.name if self.method or self.paper else defaults[data.target or "classes"]

    def estimator(self, data: LabelledBags, seed: int | None = None) -> BaseEstimator:
        """Return the estimator for data; behind a step for missing values, where one is asked for."""
        from gmil.cli.targets.kinds import DEFAULTS
        from gmil.pipeline import imputing

        name = self.name_for(data, DEFAULTS)
        start = gmil.GMIL.from_paper(data.name).get_params() if self.paper else {}
        found = make_estimator(name, self.settings, self.positive, data.y, start)
        return imputing(found if seed is None else seeded(found, self.settings, seed), self.missing)


def make_estimator(
    method: str, settings: tuple[str, ...], positive: str | None, y: Any, start: dict[str, Any] | None = None
) -> BaseEstimator:
    """Build the classifier that the command line describes; ``start`` are parameters that settings override."""
    method = method_named(method)
    estimator = gmil.own_methods.all_methods()[method]()
    parameters = {**(start or {}), **dict(parse_setting(text) for text in settings)}
    if positive is not None:
        parameters["pos_label"] = label_among(positive, y)
    elif estimator.get_params().get("pos_label", False) is None and "pos_label" not in parameters:
        parameters |= _positive_text(y)
    known = sorted(estimator.get_params())
    if positive is not None and "pos_label" not in known:
        msg = f"{method} has no parameter 'pos_label', which --positive would set. Leave out --positive."
        raise BagValidationError(msg)
    unknown = [name for name in parameters if name not in known]
    if unknown:
        valid = f"its parameters are {listed(known, most=60)}" if known else "it has none"
        msg = f"{method} has no parameter {unknown[0]!r}; {valid}."
        raise BagValidationError(msg)
    return estimator.set_params(**parameters)


def _positive_text(y: Any) -> dict[str, Any]:
    """Return which of two texts is taken as positive, and say it once; of two numbers it is the larger."""
    labels = sorted(set(y.tolist())) if y is not None and y.dtype.kind == "U" else []
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
