"""What a row says of where it was computed."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest

from gmil import ABMIL, GMIL, Impute, make_pipeline
from gmil.paper.runs import environment


def torch_with(used):
    cuda = SimpleNamespace(is_initialized=lambda: used, get_device_name=lambda: "a GPU")
    return SimpleNamespace(__version__="9.9+cu1", cuda=cuda)


@pytest.mark.parametrize("model", [ABMIL(), make_pipeline(Impute(), ABMIL()), GMIL(backend="torch:cuda")])
def test_what_uses_pytorch_names_it_and_the_gpu(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", torch_with(used=True))
    columns = {name: json.loads(text) for name, text in environment.as_columns(model).items()}
    assert columns["versions"]["torch"] == "9.9+cu1"
    assert columns["machine"]["gpu"] == "a GPU"
    monkeypatch.setitem(sys.modules, "torch", torch_with(used=False))
    assert "gpu" not in json.loads(environment.as_columns(model)["machine"])


def test_other_rows_do_not_depend_on_what_else_is_loaded(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", torch_with(used=True))
    assert environment.as_columns(GMIL()) == environment.as_columns()
    assert "torch" not in environment.versions()


def test_gmil_has_a_version_wherever_it_is_imported_from():
    assert environment.versions()["gmil"][0].isdigit()
