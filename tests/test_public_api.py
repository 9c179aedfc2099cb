"""The public names: they exist, and they are documented."""

from __future__ import annotations

import inspect
import re

import pytest
from tests.estimators import fitted, small

import gmil

SECTIONS = [
    "Parameters",
    "Attributes",
    "Returns",
    "Yields",
    "Raises",
    "Warns",
    "See Also",
    "Notes",
    "References",
    "Examples",
]


# ------------------------------------------------------------------ a small reader of numpydoc


def sections_of(docstring):
    """Return the sections of a docstring as a dict of lists of lines, in order."""
    lines = inspect.cleandoc(docstring).splitlines()
    starts = [i for i in range(1, len(lines)) if re.fullmatch(r"-{3,}", lines[i])]
    ends = [*(start - 1 for start in starts[1:]), len(lines)]
    return {lines[start - 1]: lines[start + 1 : end] for start, end in zip(starts, ends[: len(starts)], strict=True)}


def underlines_of(docstring):
    lines = inspect.cleandoc(docstring).splitlines()
    return [(lines[i - 1], lines[i]) for i in range(1, len(lines)) if re.fullmatch(r"-{3,}", lines[i])]


def documented_names(section):
    """Return the names at the left margin of a section, without stars; ``a, b : int`` are two."""
    heads = [line.partition(" :")[0] for line in section if line and not line.startswith(" ")]
    return [name.strip().lstrip("*") for head in heads for name in head.split(",")]


def signature_names(function):
    names = list(inspect.signature(function).parameters)
    return [name for name in names if name not in ("self", "cls")]


# ------------------------------------------------------------------ what there is to document


def is_ours(thing):
    return getattr(thing, "__module__", "").split(".")[0] == "gmil"


def public_methods(cls):
    """Yield names and functions of all public methods that gmil itself defines, inherited ones too."""
    for name, member in inspect.getmembers(cls):
        if name.startswith("_") or not is_ours(member):
            continue
        if inspect.isfunction(member) or inspect.ismethod(member):
            yield f"{cls.__name__}.{name}", member


def public_properties(cls):
    for name, member in inspect.getmembers(cls, lambda member: isinstance(member, property)):
        if not name.startswith("_") and is_ours(member.fget):
            yield f"{cls.__name__}.{name}", member


PUBLIC = {name: getattr(gmil, name) for name in gmil.__all__}
CLASSES = {name: thing for name, thing in PUBLIC.items() if inspect.isclass(thing)}
METHODS = {name: member for cls in CLASSES.values() for name, member in public_methods(cls)}
PROPERTIES = {name: member for cls in CLASSES.values() for name, member in public_properties(cls)}
FUNCTIONS = {name: thing for name, thing in PUBLIC.items() if inspect.isfunction(thing)}
CALLABLES = {**FUNCTIONS, **METHODS}
WITH_INIT = {name: cls for name, cls in CLASSES.items() if inspect.isfunction(cls.__init__) and is_ours(cls.__init__)}
DOCUMENTED = {**CLASSES, **CALLABLES, **PROPERTIES}


def parametrize(things):
    return pytest.mark.parametrize(("name", "thing"), things.items(), ids=things)


def test_there_is_something_to_test():
    assert {"GMIL", "Bags", "PerInstance", "load"} <= set(PUBLIC)
    assert {"GMIL.fit", "GMIL.save", "GMIL.predict", "Bags.from_list", "PerInstance.transform"} <= set(METHODS)
    assert {"Bags.shape", "Bags.sizes"} <= set(PROPERTIES)
    assert {"GMIL", "Bags", "PerInstance", "Explanation"} <= set(WITH_INIT)


def test_public_names_are_unique_and_not_private():
    assert len(set(gmil.__all__)) == len(gmil.__all__)
    assert not [name for name in gmil.__all__ if name.startswith("_")]


def test_every_estimator_is_public():
    assert {name for name, _ in gmil.all_estimators()} <= set(gmil.__all__)


def test_dir_shows_public_names_and_packages_alone():
    shown = [name for name in dir(gmil) if not name.startswith("__")]
    assert set(gmil.__all__) <= set(shown)
    assert {"checks", "datasets", "methods", "reporting"} <= set(shown)
    assert not {"Any", "TYPE_CHECKING", "annotations", "guard", "import_module", "version", "warnings"} & set(shown)
    packages = set(shown) - set(gmil.__all__)
    assert all(inspect.ismodule(getattr(gmil, name)) for name in packages)


def test_every_error_is_one_of_ours():
    errors = [cls for cls in CLASSES.values() if issubclass(cls, Exception)]
    assert errors
    assert all(issubclass(error, gmil.GmilError) for error in errors)


@parametrize(DOCUMENTED)
def test_everything_public_has_a_docstring(name, thing):
    docstring = inspect.getdoc(thing)
    assert docstring
    assert docstring.split("\n\n")[0].endswith(".")


@parametrize(DOCUMENTED)
def test_sections_are_those_of_numpydoc_and_in_its_order(name, thing):
    found = underlines_of(inspect.getdoc(thing))
    assert [title for title, underline in found if len(title) != len(underline)] == []
    titles = [title for title, _ in found]
    assert [title for title in titles if title not in SECTIONS] == []
    assert titles == sorted(titles, key=SECTIONS.index)


@parametrize({name: thing for name, thing in CALLABLES.items() if signature_names(thing)})
def test_the_documented_parameters_of_functions_are_those_of_the_signature(name, thing):
    section = sections_of(inspect.getdoc(thing)).get("Parameters", [])
    assert documented_names(section) == signature_names(thing)


@parametrize(WITH_INIT)
def test_the_documented_parameters_of_classes_are_those_of_the_signature(name, thing):
    # All errors have one constructor, which the first of them describes.
    sections = sections_of(gmil.GmilError.__doc__ if issubclass(thing, gmil.GmilError) else thing.__doc__)
    # The fields of a result that users only read are its attributes.
    section = sections["Parameters"] if "Parameters" in sections else sections["Attributes"]
    assert documented_names(section) == signature_names(thing.__init__)


ESTIMATOR_CLASSES = dict(gmil.all_estimators())


@parametrize(ESTIMATOR_CLASSES)
def test_the_documented_attributes_are_there_after_fit(name, thing):
    model, _, _ = fitted(small(thing))
    documented = documented_names(sections_of(thing.__doc__)["Attributes"])
    assert documented
    assert [attribute for attribute in documented if not hasattr(model, attribute)] == []


@parametrize(ESTIMATOR_CLASSES)
def test_every_estimator_has_an_example(name, thing):
    assert any(line.startswith(">>>") for line in sections_of(thing.__doc__)["Examples"])
