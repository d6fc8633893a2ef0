"""The parts of learners, by name, and what each must implement.

`register` adds user-defined parts and learners, which learners, estimators and the command then accept by name.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

from ..kernels.entropic import Balanced, Simplex
from ..kernels.euclidean import Euclidean
from ..kernels.losses import Absolute, Clipped, Hinge, Huber, Logistic, Poisson, Probit, Quantile, Square, Tanh
from ..kernels.scale_free import ScaleFree
from ..kernels.updates import Explicit, Implicit
from ..validation import choice, number

OWN_LOSSES = (
    Square(2.0), Absolute(1.0), Logistic(1.0), Hinge(1.0), Hinge(0.0), Quantile(0.5), Huber(1.0), Poisson(1.0),
)  # fmt: skip
LOSSES: dict[str, Any] = {loss.name: loss for loss in OWN_LOSSES}
LINKS: dict[str, Any] = {  # each known link by its matching loss, whose slope is u(z) - y
    loss.link: loss for loss in (Square(1.0), Logistic(1.0), Clipped(1.0), Probit(1.0), Tanh(1.0))
}
UPDATES: dict[str, Any] = {update.name: update for update in (Explicit(1.0), Implicit(1.0))}
GEOMETRIES: dict[str, Any] = {kind.name: kind for kind in (Euclidean, Simplex, Balanced, ScaleFree)}

METHODS = {
    "loss": {
        "value": "z, y",
        "slope": "z, y",
        "implicit": "z, y, a",
        "mean": "z",
        "error": "z, y",
        "wrong": "z, y",
        "rounded_step": "w, d, x",
        "steepness": "span",
    },
    "update": {"effective_slope": "loss, geometry, state, rows, t, z, q, y, a"},
    "geometry": {"dot": "state, rows, t", "step": "loss, state, rows, t, z, y, c, d", "weights": "state"},
    "rate": {"at": "t", "is_constant": ""},
}
OPTIONAL = {
    "geometry": {
        "solve": "loss, state, rows, t, z, q, y, a",
        "tick": "state",
        "keep_pace": "state, eta",
        "opens": "state, rows",
        "dual_norm": "q, top",
        "reach": "state",
        "largest": "state",
        "limit": "",
        "mark": "state",
        "conjugate_change": "state, mark, d, z, after",
        "rounding": "state, rows, t, d",
    }
}


def check_part(kind: str, given: Any) -> None:
    """Refuse a part that lacks a method of its kind, or whose method takes other arguments, in one sentence."""
    cls: Any = type(given)
    _check_class(kind, cls)


@cache
def _check_class(kind: str, cls: type) -> None:
    for method, arguments in METHODS[kind].items():
        if not callable(getattr(cls, method, None)):
            raise TypeError(f"{cls.__name__} must implement {_call(method, arguments)} to be a {kind}")
    for method, arguments in (METHODS[kind] | OPTIONAL.get(kind, {})).items():
        found = getattr(cls, method, None)
        if found is None:
            continue
        if f"{method}({', '.join(inspect.signature(found).parameters)})" != _call(method, arguments):
            raise TypeError(f"{cls.__name__}.{method}{inspect.signature(found)} must be {_call(method, arguments)}")
    if kind == "geometry" and not hasattr(cls, "State"):
        raise TypeError(f"{cls.__name__} must have a class attribute State, the class of its state, to be a geometry")


def _call(method: str, arguments: str) -> str:
    return f"{method}(self{', ' if arguments else ''}{arguments})"


def loss_of(name: str, **settings: Any) -> Any:
    """The loss of this name, with the settings that are not None as its parameters.

    Examples
    --------
    >>> loss_of("huber", delta=2.0, quantile=None)
    Huber(delta=2.0)
    """
    loss = LOSSES[choice("loss", name, LOSSES)]
    given = {setting: value for setting, value in settings.items() if value is not None}
    ends = {setting: ends for setting, *ends in loss.ranges}
    for setting, value in given.items():
        if setting not in loss._fields:
            raise ValueError(f"{setting} is not a setting of the loss {name!r}")
        given[setting] = number(setting, value, *ends.get(setting, ()))
    return loss._replace(**given)


def kind_of(given: Any) -> str | None:
    """The kind of a part: the one whose methods, or most of them, it has."""
    kind = given if isinstance(given, type) else type(given)
    for name, telling in (("update", "effective_slope"), ("loss", "slope"), ("geometry", "dot")):
        if hasattr(kind, telling):
            return name
    return None
