"""Saving learners: which classes are losses, updates, geometries, rates and states, and checks of their fields."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..storage.fields import annotations_of, is_vector
from ..storage.registry import name_of, storable, want

PARTS: dict[str, set[type]] = {"loss": set(), "update": set(), "geometry": set(), "rate": set()}
POSITIVE = ("eta", "radius", "rates")  # parameters of parts that must be above 0
PENALTIES = ("l1", "l2")  # and at least 0


def register_part(role: str, cls: Any, where: str | None = None) -> None:
    """Allow learners that are loaded from a file to have this class as a part.

    Parameters
    ----------
    role : {"loss", "update", "geometry", "rate"}
        The role of the part in a learner.
    cls : type
        A NamedTuple of numbers and vectors.
    where : str, default=None
        As in `hindsight.storage.registry.storable`.
    """
    PARTS[role].add(cls)
    if name_of(cls) is not None:  # a learner of the user's own may have our parts: documents go on calling them ours
        return
    storable(cls, check=partial(check_fields, cls), where=where)
    if role == "geometry":
        storable(cls.State, where=where)


def check_fields(cls: Any, fields: dict[str, Any]) -> None:
    """Refuse parameters of a part that are not finite numbers or vectors of them."""
    hints = annotations_of(cls)
    for name, value in fields.items():
        what, hint = f"`{cls.__name__}.{name}`", hints.get(name)
        if hint is np.ndarray or (isinstance(value, np.ndarray) and hint not in (float, int, bool)):
            want(is_vector(value) and bool(np.isfinite(value).all()), f"{what} must be a vector of finite numbers")
        else:
            kinds = (float,) if hint is float else (float, int, bool)
            want(type(value) in kinds and abs(value) < np.inf, f"{what} must be a finite number")
        want(name not in POSITIVE or bool(np.all(value > 0)), f"{what} must be above 0")
        want(name not in PENALTIES or bool(np.all(value >= 0)), f"{what} must be at least 0")
    for name, low, high in getattr(cls, "ranges", ()):
        want(low < fields[name] < high, f"`{cls.__name__}.{name}` must be above {low:g} and below {high:g}")


def check_learner(fields: dict[str, Any]) -> None:
    """Refuse a learner whose parts do not have the right kind."""
    for role, classes in PARTS.items():
        want(type(fields[role]) in classes, f"the learner's `{role}` must be a {role}")
    want(isinstance(fields["name"], str), "the learner's `name` must be a string")
    kinds = ("real", "sign", "unit", "count")
    want(fields["targets"] in kinds, "the learner's `targets` must be real, sign, unit or count")
    want(fields["score"] in ("loss", "square"), "the learner's `score` must be loss or square")
    want(fields["theorem"] is None or isinstance(fields["theorem"], str), "the learner's `theorem` must be a string")
