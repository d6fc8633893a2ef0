"""Hindsight: online linear learning that knows its regret."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .batch.isotonic import isotonic
    from .batch.perceptron import hard_halfspace
    from .batch.separability import fewest_mistakes, separate
    from .certificates.certificate import Certificate, Certificates
    from .certificates.risk import RiskCertificate, risk_certificate
    from .certificates.theorems import Verdict
    from .errors import MismatchError, ModelError, RowError
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
    from .estimators.calibrator import Calibrator
    from .estimators.generative import GenerativeClassifier
    from .estimators.gradient_descent import GradientDescentClassifier, GradientDescentRegressor
    from .estimators.isotonic import IsotonicRegressor
    from .estimators.isotron import GLMtronBatchRegressor, IsotronClassifier, IsotronRegressor
    from .estimators.least_squares import LeastSquares
    from .estimators.perceptron import BatchPerceptronClassifier
    from .estimators.threshold import ThresholdClassifier
    from .online.facts import Facts
    from .sources import SourceError, open_source
    from .storage.model import Model, load

__version__ = "0.1.0"

_HOME = {
    "AssumptionWarning": "errors",
    "BatchPerceptronClassifier": "estimators.perceptron",
    "Calibrator": "estimators.calibrator",
    "Certificate": "certificates.certificate",
    "Certificates": "certificates.certificate",
    "DescentClassifier": "estimators",
    "DescentRegressor": "estimators",
    "EGRegressor": "estimators",
    "Facts": "online.facts",
    "GLMtronBatchRegressor": "estimators.isotron",
    "GLMtronRegressor": "estimators",
    "GenerativeClassifier": "estimators.generative",
    "GradientDescentClassifier": "estimators.gradient_descent",
    "GradientDescentRegressor": "estimators.gradient_descent",
    "IsotonicRegressor": "estimators.isotonic",
    "IsotronClassifier": "estimators.isotron",
    "IsotronRegressor": "estimators.isotron",
    "LeastSquares": "estimators.least_squares",
    "MismatchError": "errors",
    "Model": "storage.model",
    "ModelError": "errors",
    "PerceptronClassifier": "estimators",
    "RowError": "errors",
    "RiskCertificate": "certificates.risk",
    "SourceError": "errors",
    "ThresholdClassifier": "estimators.threshold",
    "Verdict": "certificates.theorems",
    "WidrowHoffRegressor": "estimators",
    "WinnowClassifier": "estimators",
    "fewest_mistakes": "batch.separability",
    "hard_halfspace": "batch.perceptron",
    "isotonic": "batch.isotonic",
    "load": "storage.model",
    "open_source": "sources",
    "risk_certificate": "certificates.risk",
    "separate": "batch.separability",
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
