"""What a result depends on, as hashes: the parameters, and the source code that computes."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import sys
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
        package = name.partition(".")[0]
        if file is not None and package not in _FOREIGN:
            found[name.removeprefix("gmil.")] = Path(file)
            found |= {} if package == "gmil" else _modules_beside(name, Path(file))
    if tuned:
        found["paper.tables.tuning"] = _PACKAGE / "paper" / "tables" / "tuning.py"
    _add_imports(found)
    engine = [path for path in (_PACKAGE / "engine").rglob("*") if path.suffix in {".py", *_COMPILED}]
    return found | {path.relative_to(_PACKAGE).as_posix(): path for path in engine}


def _modules_beside(name: str, path: Path) -> dict[str, Path]:
    """Return the modules that a module of somebody else's imports from its own folder, or package, and so on."""
    folder = path.parents[name.count(".") + (path.name == "__init__.py")]
    found, waiting = {name: path}, [(name, path)]
    while waiting:
        for imported in _imports(*waiting.pop()):
            file = Path(getattr(sys.modules.get(imported), "__file__", None) or "")
            own = imported.partition(".")[0] != "gmil"  # what gmil imports is followed for every class
            beside = own and file.suffix == ".py" and file.is_relative_to(folder)
            if beside and imported not in found and "site-packages" not in file.relative_to(folder).parts:
                found[imported] = file
                waiting.append((imported, file))
    return found


def _imports(name: str, path: Path) -> list[str]:
    """Return the names of modules that a file imports, and of what may be one."""
    package, names = name if path.name == "__init__.py" else name.rpartition(".")[0], []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = ".".join(package.split(".")[: len(package.split(".")) + 1 - node.level]) if node.level else ""
            module = ".".join(filter(None, [above, node.module]))
            names += [module, *(f"{module}.{alias.name}" for alias in node.names)]
    return names


def _add_imports(found: dict[str, Path]) -> None:
    """Add the modules of gmil that those found import, and that they import."""
    waiting = list(found.values())
    while waiting:
        path = waiting.pop()
        for name in _gmil_imports(path, path.stat().st_mtime_ns):
            target = _file_of(_PACKAGE, name)
            if target is not None and name not in found and not name.startswith(_NOT_NUMERIC):
                found[name] = target
                waiting.append(target)


@cache
def _file_of(package: Path, name: str) -> Path | None:
    """Return the file of a module or package inside gmil, None for anything else; gmil itself imports everything."""
    place = package / name.replace(".", "/")
    files = (place.with_suffix(".py"), place / "__init__.py") if name else ()
    return next((file for file in files if file.is_file()), None)


@cache
def _gmil_imports(path: Path, changed: int) -> tuple[str, ...]:  # noqa: ARG001  a changed file is read again
    names = [name for name in _imports("", path) if name.partition(".")[0] == "gmil"]
    return tuple(dict.fromkeys(name.removeprefix("gmil").removeprefix(".") for name in names))


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
