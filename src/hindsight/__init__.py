"""Hindsight: online linear learning that knows its regret."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .certificate import Certificate, Certificates
    from .certification import MismatchError
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
    from .theorems import Verdict

__version__ = "0.1.0"

_HOME = {
    "AssumptionWarning": "estimators",
    "Certificate": "certificate",
    "Certificates": "certificate",
    "DescentClassifier": "estimators",
    "DescentRegressor": "estimators",
    "EGRegressor": "estimators",
    "Facts": "facts",
    "GLMtronRegressor": "estimators",
    "PerceptronClassifier": "estimators",
    "MismatchError": "certification",
    "RowError": "run",
    "Verdict": "theorems",
    "WidrowHoffRegressor": "estimators",
    "WinnowClassifier": "estimators",
}

__all__ = [
    "AssumptionWarning",
    "Certificate",
    "Certificates",
    "DescentClassifier",
    "DescentRegressor",
    "EGRegressor",
    "Facts",
    "GLMtronRegressor",
    "MismatchError",
    "PerceptronClassifier",
    "RowError",
    "Verdict",
    "WidrowHoffRegressor",
    "WinnowClassifier",
    "certify",
]


def certify(model: Any, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Certificate | Certificates:
    """The certificate of a trained model over the rows it was trained on; see the model's own `certify`."""
    return model.certify(X, y, sample_weight, **options)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: numba and scikit-learn take a second, which not every use needs."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
