"""Models, estimators and densities in one file each.

This module does not know the classes. A file names the class of its content, which is registered as the content of such
files by ``storable(..., file="model")``.
"""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

from ..errors import ModelError
from . import container
from .codec import decode, encode
from .registry import PACKAGE, entry_of, want

KINDS = ("model", "estimator", "density")


def versions() -> dict[str, str]:
    """Return the versions of this package, Python, numpy and numba."""
    from importlib.metadata import version

    found = {PACKAGE: sys.modules[PACKAGE].__version__, "python": platform.python_version()}
    return found | {name: version(name) for name in ("numpy", "numba")}


def save(path: str | os.PathLike[str], kind: str, value: Any) -> None:
    """Write a value to one file; a reader finds the previous file or the new one, never a part of either.

    Parameters
    ----------
    path : str or path-like
        The file.
    kind : {"model", "estimator", "density", "checkpoint"}
        The kind of file.
    value : object
        Plain values, text, lists, dicts, arrays and objects of registered classes.

    Raises
    ------
    ModelError
        If a part of the value cannot be saved, or the file cannot be written.
    """
    try:
        document, tensors = encode(value)
    except TypeError as error:
        raise ModelError(f"{os.fspath(path)}: cannot be saved: {error}") from None
    container.write(path, kind, document, tensors)


def save_estimator(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write an estimator to one file; `load` returns an equal one, whose predictions are the same bits.

    Parameters
    ----------
    estimator : object
        An estimator of this package, fitted or not.
    path : str or path-like
        The file; one that exists is replaced.

    Raises
    ------
    ModelError
        If the estimator, or a part of it, cannot be saved, or the file cannot be written.
    """
    save_content("estimator", estimator, path)


def save_content(kind: str, value: Any, path: str | os.PathLike[str]) -> None:
    """Write an estimator or a density, according to `kind`, with the versions of the software; see `save`."""
    if not _is_content(kind, value):
        name = type(value).__name__
        raise ModelError(f"{os.fspath(path)}: cannot be saved: {name} is not {_a(kind)} of {PACKAGE}")
    save(path, kind, {kind: value, "versions": versions()})


def load(path: str | os.PathLike[str]) -> Any:
    """Return the model, estimator or density saved in a file.

    Nothing in the file is executed: it holds numbers and text, and the names of registered classes.

    Parameters
    ----------
    path : str or path-like
        A file written by the `save` of a model, an estimator or a density, or by ``hindsight learn --save`` and
        ``hindsight density --save``.

    Returns
    -------
    Model, estimator or density
        What was saved, equal in every bit.

    Raises
    ------
    ModelError
        If the file cannot be read, is damaged, or uses a class that is not registered.

    Examples
    --------
    >>> import os, tempfile
    >>> import hindsight
    >>> regressor = hindsight.WidrowHoffRegressor(eta=0.5).fit([[1.0], [2.0]], [1.0, 2.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model")
    ...     regressor.save(path)
    ...     same = hindsight.load(path)
    >>> bool((same.predict([[3.0]]) == regressor.predict([[3.0]])).all())
    True
    """
    return opened(path)[0]


def opened(path: str | os.PathLike[str]) -> tuple[Any, dict[str, str]]:
    """Return the model, estimator or density saved in a file, and the versions of the software that wrote it.

    Raises
    ------
    ModelError
        As `load`.
    """
    kind, document, tensors = container.read(path, KINDS)
    try:
        found = decode(document, tensors)
        value: Any
        made_with: Any
        if kind != "model" and isinstance(found, dict):
            value, made_with = found.get(kind), found.get("versions")
        else:
            value, made_with = found, getattr(found, "versions", None)
        want(_is_content(kind, value), f"it does not hold {_a(kind)}")
        texts = [*made_with, *made_with.values()] if isinstance(made_with, dict) else [None]
        want(all(type(text) is str for text in texts), "`versions` must be a mapping of strings")
    except ModelError as error:
        raise ModelError(f"{os.fspath(path)}: {error}") from None
    return value, made_with


def _a(kind: str) -> str:
    return f"{'an' if kind == 'estimator' else 'a'} {kind}"


def _is_content(kind: str, value: Any) -> bool:
    """Whether the class of the value is registered as the content of files of this kind."""
    entry = entry_of(type(value))
    return entry is not None and entry.file == kind
