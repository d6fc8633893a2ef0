"""Hindsight: online linear learning that knows its regret."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for type checkers, which do not read the table below
    from .batch.isotonic import isotonic as isotonic
    from .batch.perceptron import hard_halfspace as hard_halfspace
    from .batch.separability import fewest_mistakes as fewest_mistakes
    from .batch.separability import separate as separate
    from .certificates.certificate import Certificate as Certificate
    from .certificates.certificate import Certificates as Certificates
    from .certificates.coverage import CoverageCertificate as CoverageCertificate
    from .certificates.risk import RiskCertificate as RiskCertificate
    from .certificates.risk import risk_certificate as risk_certificate
    from .certificates.theorems import Verdict as Verdict
    from .charts.plots import plot_link as plot_link
    from .charts.plots import plot_potential as plot_potential
    from .charts.plots import plot_regret as plot_regret
    from .charts.plots import plot_reliability as plot_reliability
    from .charts.plots import plot_weights as plot_weights
    from .errors import AssumptionWarning as AssumptionWarning
    from .errors import MismatchError as MismatchError
    from .errors import ModelError as ModelError
    from .errors import RowError as RowError
    from .errors import SourceError as SourceError
    from .estimators.auto import AutoClassifier as AutoClassifier
    from .estimators.auto import AutoRegressor as AutoRegressor
    from .estimators.calibrator import Calibrator as Calibrator
    from .estimators.descent import DescentClassifier as DescentClassifier
    from .estimators.descent import DescentRegressor as DescentRegressor
    from .estimators.exponentiated_gradient import EGRegressor as EGRegressor
    from .estimators.generative import GenerativeClassifier as GenerativeClassifier
    from .estimators.glm_tron import GLMtronRegressor as GLMtronRegressor
    from .estimators.gradient_descent import GradientDescentClassifier as GradientDescentClassifier
    from .estimators.gradient_descent import GradientDescentRegressor as GradientDescentRegressor
    from .estimators.isotonic import IsotonicRegressor as IsotonicRegressor
    from .estimators.isotron import GLMtronBatchRegressor as GLMtronBatchRegressor
    from .estimators.isotron import IsotronClassifier as IsotronClassifier
    from .estimators.isotron import IsotronRegressor as IsotronRegressor
    from .estimators.least_squares import LeastSquares as LeastSquares
    from .estimators.mistake_driven import PerceptronClassifier as PerceptronClassifier
    from .estimators.mistake_driven import WinnowClassifier as WinnowClassifier
    from .estimators.perceptron import BatchPerceptronClassifier as BatchPerceptronClassifier
    from .estimators.ridge import RidgeRegressor as RidgeRegressor
    from .estimators.threshold import ThresholdClassifier as ThresholdClassifier
    from .estimators.widrow_hoff import WidrowHoffRegressor as WidrowHoffRegressor
    from .online.facts import Facts as Facts
    from .online.learners import Learner as Learner
    from .online.learners import register as register
    from .online.panel import Panel as Panel
    from .reports.estimators import report as report
    from .serve.client import Client as Client
    from .sources import open_source as open_source
    from .storage.model import load as load
    from .training.evaluation import evaluate as evaluate
    from .training.figures import Evaluation as Evaluation
    from .training.model import Model as Model
    from .training.session import learn as learn

__version__ = "0.2.0"

_PUBLIC = {  # public names by module
    "batch.isotonic": ["isotonic"],
    "batch.perceptron": ["hard_halfspace"],
    "batch.separability": ["fewest_mistakes", "separate"],
    "certificates.certificate": ["Certificate", "Certificates"],
    "certificates.coverage": ["CoverageCertificate"],
    "certificates.risk": ["RiskCertificate", "risk_certificate"],
    "certificates.theorems": ["Verdict"],
    "charts.plots": ["plot_link", "plot_potential", "plot_regret", "plot_reliability", "plot_weights"],
    "errors": ["AssumptionWarning", "MismatchError", "ModelError", "RowError", "SourceError"],
    "estimators.auto": ["AutoClassifier", "AutoRegressor"],
    "estimators.calibrator": ["Calibrator"],
    "estimators.descent": ["DescentClassifier", "DescentRegressor"],
    "estimators.exponentiated_gradient": ["EGRegressor"],
    "estimators.generative": ["GenerativeClassifier"],
    "estimators.glm_tron": ["GLMtronRegressor"],
    "estimators.gradient_descent": ["GradientDescentClassifier", "GradientDescentRegressor"],
    "estimators.isotonic": ["IsotonicRegressor"],
    "estimators.isotron": ["GLMtronBatchRegressor", "IsotronClassifier", "IsotronRegressor"],
    "estimators.least_squares": ["LeastSquares"],
    "estimators.mistake_driven": ["PerceptronClassifier", "WinnowClassifier"],
    "estimators.perceptron": ["BatchPerceptronClassifier"],
    "estimators.ridge": ["RidgeRegressor"],
    "estimators.threshold": ["ThresholdClassifier"],
    "estimators.widrow_hoff": ["WidrowHoffRegressor"],
    "online.facts": ["Facts"],
    "online.learners": ["Learner", "register"],
    "online.panel": ["Panel"],
    "reports.estimators": ["report"],
    "sources": ["open_source"],
    "storage.model": ["load"],
    "serve.client": ["Client"],
    "training.evaluation": ["evaluate"],
    "training.figures": ["Evaluation"],
    "training.model": ["Model"],
    "training.session": ["learn"],
}
_PACKAGES = ("cluster", "density", "echo", "forecast")
_HOME = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = sorted([*_HOME, "certify"])


def certify(model: Any, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Certificate | Certificates:
    """Return the certificate of a trained model over the rows it was trained on.

    Parameters
    ----------
    model : estimator
        A fitted estimator with a method `certify`, or a scikit-learn Pipeline that ends in one.
    X : array, CSR matrix, dataframe or callable
        The rows the model was trained on, in that order.
    y : array, default=None
        The targets of the rows.
    sample_weight : array, default=None
        The weight of each row; None is 1.
    **options
        Passed to the model's own `certify`.

    Returns
    -------
    Certificate or Certificates
        The certificate; one per class for one-vs-rest.

    Examples
    --------
    >>> import hindsight
    >>> X, y = [[1.0], [-1.0]], [1, -1]
    >>> model = hindsight.PerceptronClassifier().fit(X, y)
    >>> hindsight.certify(model, X, y).verdict.name
    'HOLDS'
    """
    from .estimators.mixins.estimator import last_step

    model, X = last_step(model, X)
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
