"""What a row says of where it was computed."""

from __future__ import annotations

import sys
from types import SimpleNamespace

from gmil.paper.runs import environment


def torch_with(used):
    cuda = SimpleNamespace(is_initialized=lambda: used, get_device_name=lambda: "a GPU")
    return SimpleNamespace(__version__="9.9+cu1", cuda=cuda)


def test_networks_name_pytorch_and_the_gpu_that_they_used(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert "torch" not in environment.versions()
    monkeypatch.setitem(sys.modules, "torch", torch_with(used=False))
    assert environment.versions()["torch"] == "9.9+cu1"
    assert "gpu" not in environment.machine()
    monkeypatch.setitem(sys.modules, "torch", torch_with(used=True))
    assert environment.machine()["gpu"] == "a GPU"


def test_gmil_has_a_version_wherever_it_is_imported_from():
    assert environment.versions()["gmil"][0].isdigit()
