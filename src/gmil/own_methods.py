"""Methods that are not gmil's: a class that somebody names as ``package.module:Class``, or an installed plugin.

A module is imported because its name stands on the command line, or because a package that is installed names it in the
entry point group ``gmil.methods``. A name in a file is only looked up among those that are already here.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
import sysconfig
import traceback
from functools import reduce
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator

from gmil.errors import BagValidationError, GmilError, MethodFailedError
from gmil.registry import methods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.metadata import EntryPoint

GROUP = "gmil.methods"
_LIBRARIES = ("stdlib", "platstdlib", "purelib", "platlib")
"""Folders of installed code, as `sysconfig` names them."""
_EXAMPLE = "Write package.module:Class, as in mymethods:MeanVector."

_own: dict[str, Callable[[], Any]] = {}


def all_methods() -> dict[str, Any]:
    """Return what makes each classifier, by its name on the command line: gmil's, and own ones that were named."""
    return {**methods(), **_own}


def own_methods() -> dict[str, Any]:
    """Return what makes each own method that was named, by its name."""
    return dict(_own)


def import_method(text: str) -> str:
    """Import ``package.module:Class``, which a person has named, and return its name among the methods.

    The current directory is searched first, as by ``python -m``.
    """
    module, _, name = text.partition(":")
    if not module or not name:
        msg = f"The method {text!r} names no {'class' if module else 'module'}. {_EXAMPLE}"
        raise BagValidationError(msg)
    return _enlist(text, _attribute(_imported(module, text), module, name))


def plugin_names() -> list[str]:
    """Return the names of methods that installed packages offer and gmil does not have; nothing is imported."""
    return sorted({plugin.name for plugin in entry_points(group=GROUP)} - set(methods()))


def load_plugin(name: str) -> str | None:
    """Import the method that an installed package offers under a name, and return the name; None where none does."""
    plugin = next(iter(entry_points(group=GROUP, name=name)), None)
    return None if plugin is None else _enlist(name, _loaded(plugin))


@contextlib.contextmanager
def failures_told(name: str) -> Iterator[None]:
    """Turn what an own method raises into one sentence with its place; errors of gmil's methods stay what they are."""
    try:
        yield
    except GmilError:
        raise
    except Exception as error:
        if name not in _own:
            raise
        msg = f"The method {name!r} failed: {_reason(error)} ({_place(error, _own[name])})."
        raise MethodFailedError(msg) from error


def label_of(name: str) -> str:
    """Return what an own method is called in tables.

    >>> label_of("mymethods.means:MeanVector")
    'MeanVector'
    """
    return name.rpartition(":")[2]


def _imported(module: str, text: str) -> Any:
    folder = os.getcwd()  # noqa: PTH109  as it stands in sys.path
    if folder not in sys.path:
        sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(module)
    except Exception as error:  # what a module raises is up to the module
        absent = error.name if isinstance(error, ModuleNotFoundError) else None
        missing = absent is not None and f"{module}.".startswith(f"{absent}.")
        reason = f"there is no module {absent!r}" if missing else _reason(error)
        fix = "Install it, or start gmil in the folder that it is in." if missing else "Correct the module."
        msg = f"The method {text!r} cannot be imported: {reason}. {fix}"
        raise BagValidationError(msg) from error


def _attribute(module: Any, where: str, name: str) -> Any:
    try:
        return reduce(getattr, name.split("."), module)
    except AttributeError as error:
        msg = f"The module {where!r} has no class {name!r}. {_EXAMPLE}"
        raise BagValidationError(msg) from error


def _loaded(plugin: EntryPoint) -> Any:
    try:
        return plugin.load()
    except Exception as error:
        msg = (
            f"The method {plugin.name!r} is that of an installed plugin, {plugin.value}, which cannot be loaded: "
            f"{_reason(error)}. Repair the package, or remove it."
        )
        raise BagValidationError(msg) from error


def _enlist(name: str, make: Any) -> str:
    """Keep a method under its name, where it makes what can be cross-validated."""
    rule = "It must be a class, or a function, that returns a scikit-learn classifier of bags without any argument."
    try:
        made = make()
    except Exception as error:
        msg = f"The method {name!r} cannot be made: {_reason(error)}. {rule}"
        raise BagValidationError(msg) from error
    absent = [what for what in ("fit", "predict") if not callable(getattr(made, what, None))]
    if absent:
        msg = f"The method {name!r} has no {' and no '.join(absent)}. {rule}"
        raise BagValidationError(msg)
    if not isinstance(made, BaseEstimator):
        msg = f"The method {name!r} has no parameters to copy. Derive it from sklearn.base.BaseEstimator."
        raise BagValidationError(msg)
    _own[name] = make
    return name


def _place(error: Exception, make: Callable[[], Any]) -> str:
    """Return the last line of somebody's own code that an error went through, or that it went through none."""
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    frames += re.findall(r'File "([^"]+)", line (\d+)', str(error.__cause__))  # of another process
    own = [(file, line) for file, line in frames if _is_own(Path(file), make)]
    if not own:
        return "where gmil calls it: check what its methods take and return"
    return f"{Path(own[-1][0]).name}, line {own[-1][1]}"


def _is_own(file: Path, make: Callable[[], Any]) -> bool:
    """Tell whether a file is of the package of a method, or of neither gmil nor an installed library."""
    package = sys.modules.get(make.__module__.partition(".")[0])
    homes = getattr(package, "__path__", None) or [getattr(package, "__file__", None) or ""]
    if any(file == Path(home) or Path(home) in file.parents for home in homes):
        return True
    libraries = [Path(__file__).parent, *(Path(sysconfig.get_path(name)) for name in _LIBRARIES)]
    return file.exists() and not any(folder in file.parents for folder in libraries)


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
