"""What every column of a table is: the bag, the label, features, information about instances, or nothing.

Every door from a table to bags asks here, so that one table gives the same bags whatever way it comes.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

from gmil.bags import tables
from gmil.errors import BagValidationError, ColumnWarning, listed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

BAG_NAMES = ("bag", "bag_id", "bag_ids", "bagid", "bag_name", "bag_index", "molecule_name")
LABEL_NAMES = ("label", "labels", "bag_label", "y", "class", "target")
INSTANCE_LABEL_NAMES = ("y_instance", "instance_y", "instance_label", "instance_labels")
"""Labels of instances, which measure scores and must not teach."""


class Named(NamedTuple):
    """The columns (arrays, variables, attributes) that a user has named; others are found by name and type.

    Features, and columns to drop, may be patterns such as ``desc_*``.
    """

    bag: str | None = None
    label: str | None = None
    features: str | Sequence[str] | None = None
    info: str | Sequence[str] = ()
    drop: str | Sequence[str] = ()
    known: Sequence[str] | None = None
    """The features of a fitted model, which are taken where no others are named; further columns are left out."""
    decimal: str = "."
    """What separates the whole part of a number from the rest, in a text file."""

    def all_of(self, role: str) -> list[str]:
        """Return the names given for a role; one name alone is a list of one."""
        given = getattr(self, role)
        return [given] if isinstance(given, str) else list(given or ())

    def dropped(self, names: Sequence[str]) -> list[str]:
        """Return the columns to drop, of those that there are."""
        return [name for given in self.all_of("drop") for name in _matching(names, given, "drop")]

    def wants(self, name: str) -> bool:
        """Tell whether a column is among the features that were named; without any, each may be."""
        given = self.known if self.features is None else self.all_of("features")
        return given is None or self.names(name) or any(fnmatchcase(name, one) for one in given if is_pattern(one))

    def names(self, name: str) -> bool:
        """Tell whether a column was named as a feature, letter by letter."""
        return name in (self.known or () if self.features is None else self.all_of("features"))


class Roles(NamedTuple):
    """The columns of a table by what they are; columns that are none of these are left out."""

    bag: str | None
    label: str | None
    features: str | tuple[str, ...]
    """One list column, or columns of numbers."""
    info: tuple[str, ...]

    @property
    def feature_columns(self) -> tuple[str, ...]:
        """The columns that hold features."""
        return (self.features,) if isinstance(self.features, str) else self.features


class Rows(NamedTuple):
    """The rows of a table, one an instance, in plain parts."""

    matrix: Any
    ids: NDArray[Any]
    labels: NDArray[Any] | None = None
    feature_names: Any = None
    info: pa.Table | None = None
    bag_names: NDArray[Any] | None = None
    """The id of the bag of every row, where ``ids`` only number the bags."""
    is_numbered: bool = False
    """Whether ids 0, 1, ... are the places of bags, and not their names."""


def roles_of(schema: pa.Schema, named: Named, *, keeps_labels: bool = True, needs_bag: bool = True) -> Roles:
    """Return the roles of columns: those named, and for others those that their names and types suggest.

    ``keeps_labels`` says whether the caller returns labels; one that does not warns about a label left out.
    ``needs_bag`` is False for a table that is one bag.
    """
    for name in named.all_of("info"):
        choose(schema.names, name, (), "info")
    bag, label = choose_roles(schema.names, named, needs_bag=needs_bag)
    named = named._replace(drop=[name for name in named.dropped(schema.names) if name not in (bag, label)])
    for role, column in (("bag", bag), ("label", label)):
        if column is not None and tables.is_nested(schema.field(column).type):
            msg = f"The {role} column {column!r} must hold one number or text a row, got {schema.field(column).type}."
            raise BagValidationError(msg, parameter=role, fix=f"Name another with {{{role}}}")
    reserved = {bag, label, *named.all_of("info"), *named.all_of("drop")}
    if named.features is not None:
        chosen = named_features(schema, named.features, reserved)
    elif named.known is not None and not _has_features_column(schema):
        chosen = _known_features(schema, named.known, reserved)
    else:
        chosen = _default_features(schema, reserved)
        silent = label if named.label is None and not keeps_labels else None
        _warn_about_labels(schema, chosen, reserved - {silent})
    carried = _carried(schema, chosen, {bag, label, *named.all_of("drop")}, named.all_of("info"))
    return Roles(bag, label, chosen, carried)


@contextlib.contextmanager
def carried_as(**columns: str | None) -> Iterator[None]:
    """Let errors about columns of information say what these are for, such as ``group`` or ``instances``."""
    try:
        yield
    except BagValidationError as error:
        named = {role: rf"The (?:info )?\w+ {re.escape(repr(name))} " for role, name in columns.items()}
        role = next((role for role, pattern in named.items() if re.search(pattern, error.args[0])), None)
        if error.parameter == "info" and role is not None:
            error.args = (error.args[0].replace("The info ", f"The {role} ", 1),)
            error.parameter = role
            error.fix = error.fix and error.fix.replace("{info}", f"{{{role}}}")
        raise


def rows_of(table: pa.Table, roles: Roles) -> Rows:
    """Take a table apart by the roles of its columns."""
    return Rows(
        tables.feature_matrix(table, roles.features),
        tables.id_values(table.column(roles.bag)),
        None if roles.label is None else tables.values(table.column(roles.label)),
        tables.feature_names(table.schema, roles.features),
        table.select(list(roles.info)) if roles.info else None,
    )


def choose_roles(names: Sequence[str], named: Named, *, needs_bag: bool = True) -> tuple[str | None, str | None]:
    """Return the names of the bag column and of the label column, None where there is none."""
    tables.refuse_equal_names(names)
    others = {name for role in ("features", "info", "drop", "known") for name in named.all_of(role)}
    bag = choose(names, named.bag, BAG_NAMES, "bag", taken={*others, named.label or ""})
    if needs_bag:
        bag = require(bag, names, "bag")
    return bag, choose(names, named.label, LABEL_NAMES, "label", taken={*others, bag or ""})


def choose(
    names: Sequence[str],
    given: str | None,
    known: Sequence[str],
    role: str,
    *,
    taken: Collection[str] = (),
    noun: str = "column",
) -> str | None:
    """Return the name that plays a role: the one given, else the only one that is known to play it.

    ``known[0]`` goes before all others; two others are ambiguous. ``taken`` names play another role.
    """
    if given is not None:
        if given not in names:
            msg = f"The {role} {noun} {given!r} is not there; {_those_there(names, noun)}."
            raise BagValidationError(msg, parameter=role, fix=f"Name another with {{{role}}}")
        return given
    free = [name for name in names if name not in taken]
    if known[0] in free:
        return known[0]
    found = [name for name in free if name.casefold() in known]
    if noun == "column":
        found = [name for name in found if not is_coordinate(name, names)]
    if len(found) > 1:
        msg = f"The {role} {noun} is ambiguous: {' and '.join(map(repr, found))} could each be it."
        raise BagValidationError(msg, parameter=role, fix=f"Name it with {{{role}}}")
    return found[0] if found else None


def require(chosen: str | None, names: Sequence[str], role: str, noun: str = "column") -> str:
    """Return a name that was found; one that was not is an error that lists the names there are."""
    if chosen is None:
        msg = f"No {role} {noun} was found; {_those_there(names, noun)}."
        raise BagValidationError(msg, parameter=role, fix=f"Name it with {{{role}}}")
    return chosen


def _those_there(names: Sequence[str], noun: str) -> str:
    return f"the {noun}s are {listed([repr(name) for name in names], most=12)}"


def is_coordinate(name: str, names: Sequence[str]) -> bool:
    """Tell the y beside an x from the y that is a label."""
    return name.casefold() == "y" and any(other.casefold() == "x" for other in names)


def is_called_label(name: str, names: Sequence[str]) -> bool:
    """Tell whether a column among others is called as labels of bags or instances are."""
    return name.casefold() in (*LABEL_NAMES, *INSTANCE_LABEL_NAMES) and not is_coordinate(name, names)


def is_pattern(text: str) -> bool:
    """Tell whether a text stands for several names: ``desc_*``, ``f?``, ``f[0-9]``."""
    return any(sign in text for sign in "*?[")


def _matching(names: Sequence[str], given: str, role: str) -> list[str]:
    """Return the name that was given, or all that a pattern stands for; none is an error."""
    found = [name for name in names if fnmatchcase(name, given)] if is_pattern(given) and given not in names else []
    return found or [require(choose(names, given, (), role), names, role)]


def named_features(
    schema: pa.Schema, features: str | Sequence[str], reserved: Collection[str | None] = ()
) -> str | tuple[str, ...]:
    """Return the features that someone named, one list column or columns of numbers; others are refused.

    Of what a pattern stands for, columns of numbers are taken that play no other role.
    """
    if isinstance(features, str) and features in schema.names and tables.is_list(schema.field(features).type):
        _refuse_lists_of_others(schema, features)
        return features
    free = [field.name for field in schema if field.name not in reserved and tables.is_number(field.type)]
    given = [features] if isinstance(features, str) else list(features)
    exact = {name for name in given if name in schema.names or not is_pattern(name)}
    several = [[name] if name in exact else _matching(free, name, "features") for name in given]
    names = tuple(dict.fromkeys(name for some in several for name in some))
    for name in names:
        choose(schema.names, name, (), "features")
        kind = schema.field(name).type
        if not tables.is_number(kind):
            msg = f"The features column {name!r} must hold numbers, got {kind}."
            raise BagValidationError(msg, parameter="features", fix="Leave it out with {features}")
    _refuse_none(names)
    return names


def _known_features(schema: pa.Schema, known: Sequence[str], reserved: set[str | None]) -> tuple[str, ...]:
    """Return the features of a model, in its order; columns that are missing are an error, further ones a warning."""
    absent = [repr(name) for name in known if name not in schema.names]
    if absent:
        msg = (
            f"The model needs {len(known)} columns, and {len(absent)} of them are not there: {listed(absent)}; "
            f"{_those_there(schema.names, 'column')}."
        )
        raise BagValidationError(msg, fix="Add or rename them.")
    named_features(schema, known)
    further = [repr(name) for name in _default_columns(schema, reserved) if name not in set(known)]
    if further:
        warnings.warn(ColumnWarning(f"The model does not know {listed(further)}: left out."), stacklevel=4)
    return tuple(known)


def _has_features_column(schema: pa.Schema) -> bool:
    name = tables.FEATURES_COLUMN
    return name in schema.names and tables.is_list(schema.field(name).type)


def _default_features(schema: pa.Schema, reserved: set[str | None]) -> str | tuple[str, ...]:
    """Return the list column ``features`` where there is one, else every column of numbers that is nothing else.

    The index that pandas or R wrote along is no feature: rows that are sorted by class would give the class away. Nor
    is another label, nor another number of the bag.
    """
    if _has_features_column(schema):
        _refuse_lists_of_others(schema, tables.FEATURES_COLUMN)
        return tables.FEATURES_COLUMN
    names = _default_columns(schema, reserved)
    _refuse_none(names)
    return names


def _default_columns(schema: pa.Schema, reserved: set[str | None]) -> tuple[str, ...]:
    return tuple(
        field.name
        for field in schema
        if field.name not in reserved and tables.is_number(field.type) and may_teach(field.name, schema.names)
    )


def may_teach(name: str, names: Sequence[str]) -> bool:
    """Tell whether a column of numbers among others is a feature by its name: no label, number of the bag, or row."""
    is_other = tables.is_row_number(name) or is_called_label(name, names) or name.casefold() in BAG_NAMES
    return not is_other


def is_carried(name: str) -> bool:
    """Tell whether a column of numbers that is no feature tells about instances: their labels, or another bag."""
    return name.casefold() in (*BAG_NAMES, *INSTANCE_LABEL_NAMES)


def _refuse_lists_of_others(schema: pa.Schema, name: str) -> None:
    kind = schema.field(name).type
    if not tables.is_number(kind.value_type):
        msg = f"The features column {name!r} must hold lists of numbers, got {kind}."
        raise BagValidationError(msg, parameter="features", fix="Name others with {features}")


def _refuse_none(names: Sequence[str]) -> None:
    if not names:
        msg = "No features column was found: no number column is left beside the bag and the label."
        raise BagValidationError(msg, parameter="features", fix="Name them with {features}")


def _warn_about_labels(schema: pa.Schema, chosen: str | tuple[str, ...], named: set[str | None]) -> None:
    """Say which columns would be features if they were not called as labels are."""
    if isinstance(chosen, str):
        return
    numbers = [field.name for field in schema if field.name not in named and tables.is_number(field.type)]
    warn_of_labels([name for name in numbers if is_called_label(name, schema.names)])


def warn_of_labels(left_out: Sequence[str]) -> None:
    """Say which columns are no features because of their names."""
    if left_out:
        msg = f"A column of labels is no feature: {listed([repr(name) for name in left_out])} is left out."
        fix = "If it is the label, name it with {label} If it is a feature, name it in {features}"
        warnings.warn(ColumnWarning(msg, parameter="label", fix=fix), stacklevel=5)


def _carried(
    schema: pa.Schema, chosen: str | tuple[str, ...], used: set[str | None], info: Sequence[str]
) -> tuple[str, ...]:
    """Return the columns for ``instance_info``: those named, labels of instances, and what cannot be a feature.

    Beside a list column of features, every other column is information about the instance.
    """
    if isinstance(chosen, str):
        return tuple(name for name in schema.names if name not in used | {chosen})
    return tuple(
        field.name
        for field in schema
        if field.name in info
        or (field.name not in used | set(chosen) and (is_carried(field.name) or not tables.is_number(field.type)))
    )
