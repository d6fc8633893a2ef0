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
    from .estimators.batch import GradientDescentClassifier, GradientDescentRegressor
    from .estimators.calibrator import Calibrator
    from .estimators.generative import GenerativeClassifier
    from .estimators.halfspace import BatchPerceptronClassifier
    from .estimators.isotonic import IsotonicRegressor
    from .estimators.isotron import GLMtronBatchRegressor, IsotronClassifier, IsotronRegressor
    from .estimators.least_squares import LeastSquares
    from .estimators.threshold import ThresholdClassifier
    from .facts import Facts
    from .files import ModelError
    from .generalisation import RiskCertificate, risk_certificate
    from .halfspace import hard_halfspace
    from .model import Model, load
    from .monotone import isotonic
    from .run import RowError
    from .separability import fewest_mistakes, separate
    from .sources import SourceError, open_source
    from .theorems import Verdict

__version__ = "0.1.0"

_HOME = {
    "AssumptionWarning": "estimators",
    "BatchPerceptronClassifier": "estimators.halfspace",
    "Calibrator": "estimators.calibrator",
    "Certificate": "certificate",
    "Certificates": "certificate",
    "DescentClassifier": "estimators",
    "DescentRegressor": "estimators",
    "EGRegressor": "estimators",
    "Facts": "facts",
    "GLMtronBatchRegressor": "estimators.isotron",
    "GLMtronRegressor": "estimators",
    "GenerativeClassifier": "estimators.generative",
    "GradientDescentClassifier": "estimators.batch",
    "GradientDescentRegressor": "estimators.batch",
    "IsotonicRegressor": "estimators.isotonic",
    "IsotronClassifier": "estimators.isotron",
    "IsotronRegressor": "estimators.isotron",
    "LeastSquares": "estimators.least_squares",
    "MismatchError": "certification",
    "Model": "model",
    "ModelError": "files",
    "PerceptronClassifier": "estimators",
    "RowError": "run",
    "RiskCertificate": "generalisation",
    "SourceError": "sources",
    "ThresholdClassifier": "estimators.threshold",
    "Verdict": "theorems",
    "WidrowHoffRegressor": "estimators",
    "WinnowClassifier": "estimators",
    "fewest_mistakes": "separability",
    "hard_halfspace": "halfspace",
    "isotonic": "monotone",
    "load": "model",
    "open_source": "sources",
    "risk_certificate": "generalisation",
    "separate": "separability",
}

_PACKAGES = ("density", "forecast")

__all__ = [
    "AssumptionWarning",
    "BatchPerceptronClassifier",
    "Calibrator",
    "Certificate",
    "Certificates",
    "DescentClassifier",
    "DescentRegressor",
    "EGRegressor",
    "Facts",
    "GLMtronBatchRegressor",
    "GLMtronRegressor",
    "GenerativeClassifier",
    "GradientDescentClassifier",
    "GradientDescentRegressor",
    "IsotonicRegressor",
    "IsotronClassifier",
    "IsotronRegressor",
    "LeastSquares",
    "MismatchError",
    "Model",
    "ModelError",
    "PerceptronClassifier",
    "RiskCertificate",
    "RowError",
    "SourceError",
    "ThresholdClassifier",
    "Verdict",
    "WidrowHoffRegressor",
    "WinnowClassifier",
    "certify",
    "fewest_mistakes",
    "hard_halfspace",
    "isotonic",
    "load",
    "open_source",
    "risk_certificate",
    "separate",
]


def certify(model: Any, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Certificate | Certificates:
    """The certificate of a trained model over the rows it was trained on; see the model's own `certify`."""
    return model.certify(X, y, sample_weight, **options)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: numba and scikit-learn take a second, which not every use needs."""
    if name in _PACKAGES:
        return import_module(f".{name}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
