"""Hindsight: online linear learning that knows its regret."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .estimators import (
        AssumptionWarning,
        DescentClassifier,
        DescentRegressor,
        EGRegressor,
        GLMtronRegressor,
        PerceptronClassifier,
        WidrowHoffRegressor,
        WinnowClassifier,
    )
    from .facts import Facts
    from .run import RowError

__version__ = "0.1.0"

_HOME = {
    "AssumptionWarning": "estimators",
    "DescentClassifier": "estimators",
    "DescentRegressor": "estimators",
    "EGRegressor": "estimators",
    "Facts": "facts",
    "GLMtronRegressor": "estimators",
    "PerceptronClassifier": "estimators",
    "RowError": "run",
    "WidrowHoffRegressor": "estimators",
    "WinnowClassifier": "estimators",
}

__all__ = [
    "AssumptionWarning",
    "DescentClassifier",
    "DescentRegressor",
    "EGRegressor",
    "Facts",
    "GLMtronRegressor",
    "PerceptronClassifier",
    "RowError",
    "WidrowHoffRegressor",
    "WinnowClassifier",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: numba and scikit-learn take a second, which not every use needs."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
