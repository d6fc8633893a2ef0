"""Parts that estimators share, one idea per module; an estimator inherits those that it needs."""

from .estimator import EstimatorMixin, FitMixin
from .labels import ClassWeightMixin, LabelsMixin
from .linear import (
    LinearClassifierMixin,
    LinearMixin,
    LinearRegressorMixin,
    LogisticProbabilityMixin,
    MarginClassifierMixin,
)
from .rows import BoundNotScoreMixin, RowsMixin, TargetsMixin
from .runs import IntervalsMixin, RunsMixin, SetsMixin
from .single_rows import SingleRowMixin

__all__ = [
    "BoundNotScoreMixin",
    "ClassWeightMixin",
    "EstimatorMixin",
    "FitMixin",
    "IntervalsMixin",
    "LabelsMixin",
    "LinearClassifierMixin",
    "LinearMixin",
    "LinearRegressorMixin",
    "LogisticProbabilityMixin",
    "MarginClassifierMixin",
    "RowsMixin",
    "RunsMixin",
    "SetsMixin",
    "SingleRowMixin",
    "TargetsMixin",
]
