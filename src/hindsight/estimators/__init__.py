"""scikit-learn estimators."""

from ..errors import AssumptionWarning
from .classify import DescentClassifier, PerceptronClassifier, WinnowClassifier
from .regress import DescentRegressor, EGRegressor, GLMtronRegressor, WidrowHoffRegressor

__all__ = [
    "AssumptionWarning",
    "DescentClassifier",
    "DescentRegressor",
    "EGRegressor",
    "GLMtronRegressor",
    "PerceptronClassifier",
    "WidrowHoffRegressor",
    "WinnowClassifier",
]
