"""What a result depends on, as hashes: the parameters, and the source code that computes."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

_PACKAGE = Path(__file__).parents[2]
_CORE = ("model_selection/crossval", "model_selection/metrics")
# They are imported by numeric modules but cannot change a number: texts of errors, files, tables, explanations.
_NOT_NUMERIC = ("errors", "safety", "io", "datasets", "bags.tables", "bags.display", "greedy.explanation", "paper")
_FOREIGN = ("builtins", "abc", "typing", "sklearn", "numpy")
_COMPILED = {".pyx", ".pxd", ".cpp", ".hpp", ".c", ".h"}


def code_fingerprint(cls: type, *, tuned: bool = False) -> str:
    """Return a hash of the source that the results of a class depend on.

    That is the engine with its C++ sources, cross-validation and the modules that define the class and its bases, all
    of gmil that these import, and for tuned results the tuning. Comments, docstrings and layout do not count.
    """
    digest = hashlib.sha256()
    for name, path in sorted(_sources(cls, tuned).items()):
        digest.update(f"{name}\0{_source_hash(path, path.stat().st_mtime_ns)}\0".encode())
    return digest.hexdigest()


def canonical(value: Any) -> Any:
    """Return parameters as what JSON can say, the same for equal parameters.

    An estimator among them is named by its class; its own parameters stand beside it, as ``get_params`` lists
    them.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(key): canonical(item) for key, item in sorted(value.items())}
    if isinstance(value, (list, tuple)):
        return [canonical(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return canonical(value.tolist())
    if isinstance(value, BaseEstimator):
        return {"class": f"{type(value).__module__}.{type(value).__qualname__}"}
    if callable(value):
        return {"function": f"{value.__module__}.{value.__qualname__}"}
    return str(value)


def canonical_json(value: Any) -> str:
    """Return ``canonical(value)`` as one line of JSON with sorted keys.

    >>> canonical_json({"b": np.int64(1), "a": (None, 0.5)})
    '{"a":[null,0.5],"b":1}'
    """
    return json.dumps(canonical(value), sort_keys=True, separators=(",", ":"))


def _sources(cls: type, tuned: bool) -> dict[str, Path]:
    found = {name.replace("/", "."): _PACKAGE / f"{name}.py" for name in _CORE}
    for base in cls.__mro__:
        module = inspect.getmodule(base)
        file, name = getattr(module, "__file__", None), getattr(module, "__name__", "")
        if file is not None and name.partition(".")[0] not in _FOREIGN:
            found[name.removeprefix("gmil.")] = Path(file)
    if tuned:
        found["paper.tables.tuning"] = _PACKAGE / "paper" / "tables" / "tuning.py"
    _add_imports(found)
    engine = [path for path in (_PACKAGE / "engine").rglob("*") if path.suffix in {".py", *_COMPILED}]
    return found | {path.relative_to(_PACKAGE).as_posix(): path for path in engine}


def _add_imports(found: dict[str, Path]) -> None:
    """Add the modules of gmil that those found import, and that they import."""
    waiting = list(found.values())
    while waiting:
        path = waiting.pop()
        for name in _gmil_imports(path, path.stat().st_mtime_ns):
            target = _file_of(name)
            if target is not None and name not in found and not name.startswith(_NOT_NUMERIC):
                found[name] = target
                waiting.append(target)


def _file_of(name: str) -> Path | None:
    """Return the file of a module or package inside gmil, None for anything else; gmil itself imports everything."""
    place = _PACKAGE / name.replace(".", "/")
    files = (place.with_suffix(".py"), place / "__init__.py") if name else ()
    return next((file for file in files if file.is_file()), None)


@cache
def _gmil_imports(path: Path, changed: int) -> tuple[str, ...]:  # noqa: ARG001  a changed file is read again
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gmil":
            module = (node.module or "").removeprefix("gmil").removeprefix(".")
            names += [module, *(f"{module}.{alias.name}".removeprefix(".") for alias in node.names)]
        elif isinstance(node, ast.Import):
            names += [alias.name.removeprefix("gmil.") for alias in node.names if alias.name.startswith("gmil.")]
    return tuple(dict.fromkeys(names))


@cache
def _source_hash(path: Path, changed: int) -> str:  # noqa: ARG001  a changed file is read again
    text = path.read_bytes()
    if path.suffix == ".py":
        text = _meaning(text.decode()).encode()
    return hashlib.sha256(text).hexdigest()


def _meaning(source: str) -> str:
    """Return Python source without comments, docstrings and layout, alike under every version of Python."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) or not body:
            continue
        first = body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            node.body = body[1:] or [ast.Pass()]
    return _spelled(tree)


def _spelled(node: Any) -> str:
    """Write a syntax tree down; what is empty is left out, as new versions of Python add such fields."""
    if isinstance(node, list):
        return f"[{' '.join(map(_spelled, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [f"{name}={_spelled(value)}" for name, value in ast.iter_fields(node) if value is not None and value != []]
    return f"({' '.join([type(node).__name__, *fields])})"


def package_version(package: str) -> str:
    """Return the version of an installed package, or "not installed"."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
