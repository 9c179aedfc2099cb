"""The page of parameters says what the constructors say, and one name means one thing in all of them."""

from __future__ import annotations

import inspect
from dataclasses import field

import pytest
from tools import parameters

import gmil
from gmil import parameters as parameter_module
from gmil.parameters import PARAMETERS

CLASSES = dict(gmil.all_estimators())
ONE_DEFAULT = {"pos_label": None, "n_jobs": None, "n_processes": None, "backend": "auto", "random_state": None}


def test_the_page_is_what_the_classes_say():
    assert parameters.PAGE.read_text(encoding="utf-8") == parameters.page(), "run `make parameters`"


@pytest.mark.parametrize("name", CLASSES)
def test_one_name_has_one_default(name):
    found = {n: p.default for n, p in inspect.signature(CLASSES[name]).parameters.items() if n in ONE_DEFAULT}
    assert found == {each: ONE_DEFAULT[each] for each in found}


@pytest.mark.parametrize("name", CLASSES)
def test_constructors_only_assign(name):
    model = CLASSES[name]()
    defaults = {n: p.default for n, p in inspect.signature(CLASSES[name]).parameters.items()}
    assert vars(model).keys() == defaults.keys()
    assert all(getattr(model, each) is value for each, value in defaults.items())


@pytest.mark.parametrize("name", CLASSES)
def test_every_parameter_has_a_rule(name):
    cls = CLASSES[name]
    if hasattr(cls, "_parameter_constraints"):
        assert set(cls._parameter_constraints) == set(inspect.signature(cls).parameters)
        for each in set(cls._parameter_constraints) & {"n_jobs", "n_processes", "backend", "pos_label", "tune"}:
            assert list(map(str, cls._parameter_constraints[each])) == list(map(str, PARAMETERS[each]))


@pytest.mark.parametrize("name", CLASSES)
def test_few_classes_stand_above_an_estimator(name):
    above = [base for base in CLASSES[name].__mro__[1:] if base.__module__.startswith("gmil.")]
    assert len(above) <= 5


def test_declared_parameters_make_a_constructor_that_keeps_those_of_the_classes_above():
    @parameter_module.parameters
    class Above:
        scale: str | None = "minmax"
        C: float = 1.0
        random_state: int | None = None

    @parameter_module.parameters
    class Below(Above):
        first: int = field(default=2, kw_only=False)
        C: float = 3.0
        tune: bool = False

    signature = inspect.signature(Below)
    assert str(signature.replace(return_annotation=signature.empty)) == (
        "(first: 'int' = 2, *, C: 'float' = 3.0, scale: 'str | None' = 'minmax', tune: 'bool' = False, "
        "random_state: 'int | None' = None)"
    )
    assert vars(Below(5, tune=True)) == {"scale": "minmax", "C": 3.0, "random_state": None, "first": 5, "tune": True}
    assert set(Below._parameter_constraints) == {"C", "random_state", "tune"}
    with pytest.raises(TypeError):
        Below(5, "standard")


def test_a_docstring_gets_the_texts_that_all_estimators_share():
    text = gmil.MILES.__doc__
    assert 'scale : {None, "standard", "minmax", "l2", "standard+l2", "minmax+l2", "global"}, default="minmax"' in text
    assert text.count("\nn_jobs : int or None, default=None\n    Threads of the compiled kernels.") == 1
    assert "classes_ : array of shape (n_classes,)" in text
    assert "classes_ : array of shape (2,)" in gmil.APR.__doc__
    assert gmil.EMDD.__doc__.count("n_jobs : ") == 1, "a text of its own is kept"
    assert "Starts that are worked on at the same time" in gmil.EMDD.__doc__
