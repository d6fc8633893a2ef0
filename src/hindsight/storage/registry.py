"""The registry of classes that may be saved; documents refer to them by name.

A document calls a class of this package by the module that registers it ("online.run:Run"), an estimator by its public
name ("hindsight:EGRegressor"), and a class of user code by its bare name (":Huber"). A class of this package that is
not registered yet is found by importing its module. A document never causes any other module to be imported.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable

    Check = Callable[[dict[str, Any]], None]

HOOK = "_check_saved"  # the static method with which a class checks its own fields

Class = TypeVar("Class", bound=type)
PACKAGE = __name__.partition(".")[0]
MODULE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*", re.ASCII)


class Storable(NamedTuple):
    """How objects of a class are saved."""

    cls: Any
    typed: bool
    checks: tuple[Check, ...]
    omit: tuple[str, ...]
    file: str | None


_registered: dict[str, Storable] = {}  # by name in documents
_names: dict[type, str] = {}


def storable(
    cls: Class,
    *,
    check: Check | None = None,
    where: str | None = None,
    omit: tuple[str, ...] = (),
    file: str | None = None,
) -> Class:
    """Register a class whose objects may be saved in models and checkpoints.

    Enums are saved by the name of the member, dataclasses and named tuples by their fields, other objects by their
    attributes. The values must be of types that can be saved themselves: plain values, text, lists, tuples, dicts,
    arrays, random generators and objects of registered classes. Loading runs no code of the file: fields are decoded,
    checked and assigned. The state of an object is what its ``__getstate__`` returns; ``__setstate__``, if defined,
    assigns the fields.

    The content of a file is not trusted, and compiled loops do not check their inputs, so every size, index and count
    that they rely on is checked here. A class and its bases may each have a static method ``_check_saved`` that takes
    all fields as a dict and raises an error if its own are invalid (see `want`). Fields of dataclasses and named tuples
    must have their annotated types, unless `check` validates them.

    Parameters
    ----------
    cls : type
        The class. As a decorator, `storable` comes outermost.
    check : callable, default=None
        Called with the fields as a dict before an object is made, and before any ``_check_saved``.
    where : str, default=None
        The module that registers the class, and whose import therefore suffices to load files; None is the module of
        the class. The name of the package itself means that the class is one of its public names.
    omit : tuple of str, default=()
        Attributes that are neither saved nor loaded.
    file : {"model", "estimator", "density"}, default=None
        The kind of file whose content may be an object of this class.

    Returns
    -------
    type
        The class itself.

    Raises
    ------
    ValueError
        If another class is registered under the same name.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> from hindsight.storage.codec import decode, encode
    >>> from hindsight.storage.registry import storable
    >>> @storable
    ... class Huber(NamedTuple):
    ...     delta: float
    >>> decode(*encode([Huber(0.5)]))
    [Huber(delta=0.5)]
    """
    module = where or cls.__module__
    home = module.removeprefix(f"{PACKAGE}.") if module.partition(".")[0] == PACKAGE else ""
    name = f"{home}:{cls.__name__}"
    other = _registered.get(name)
    if other is not None and (other.cls.__module__, other.cls.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(f"a class named {cls.__name__} of module {other.cls.__module__} is already registered")
    own = [vars(kind)[HOOK].__func__ for kind in reversed(cls.__mro__) if HOOK in vars(kind)]
    typed = check is None and (issubclass(cls, tuple) or dataclasses.is_dataclass(cls))
    _registered[name] = Storable(cls, typed, (*([] if check is None else [check]), *own), omit, file)
    _names[cls] = name
    return cls


def want(condition: bool, what: str) -> None:
    """Raise a ModelError about an invalid document unless the condition holds.

    Parameters
    ----------
    condition : bool
        Whether the document is valid.
    what : str
        The rest of the message, such as "`rounds` must be an integer".

    Raises
    ------
    ModelError
        If the condition does not hold.

    Examples
    --------
    >>> from hindsight.storage.registry import want
    >>> want(1 + 1 == 2, "sums must be right")
    """
    if not condition:
        raise ModelError(f"invalid document: {' '.join(what.split())}")  # one line, whatever it shows of the file


def name_of(cls: type) -> str | None:
    """Return the name of a class in documents, or None if its objects cannot be saved."""
    name = _names.get(cls)
    return name if name is not None and _registered[name].cls is cls and _is_public(name) else None


def entry_of(cls: type) -> Storable | None:
    """Return how objects of a class are saved, or None if they cannot be."""
    name = name_of(cls)
    return None if name is None else _registered[name]


def find(name: str) -> Storable:
    """Return the class with this name in documents, importing the module of this package that registers it.

    Raises
    ------
    ModelError
        If there is no such class, or it belongs to user code and is not registered.
    """
    home, _, short = name.partition(":")
    if home == "":
        if name not in _registered:
            raise ModelError(
                f"the model uses {_shown(short)}, which is not registered: "
                "import the module that registers it first (command: --extend FILE)"
            )
        return _registered[name]
    if name not in _registered:
        with suppress(ImportError):
            if home == PACKAGE:
                _ = _is_public(name) and getattr(sys.modules[PACKAGE], short)
            elif MODULE.fullmatch(home):
                import_module(f"{PACKAGE}.{home}")
    if name not in _registered or not _is_public(name):
        raise ModelError(f"the model uses {_shown(short)} of {_shown(home)}, which this version does not have")
    return _registered[name]


def _is_public(name: str) -> bool:
    """Whether the name does not claim to be public, or is indeed public."""
    home, _, short = name.partition(":")
    return home != PACKAGE or short in sys.modules[PACKAGE].__all__


def _shown(name: str) -> str:
    """A name shortened for a one-line message."""
    return name[:60] if name.replace(".", "_").isidentifier() else repr(name[:60])
