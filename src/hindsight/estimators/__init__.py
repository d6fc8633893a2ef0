"""scikit-learn estimators, one idea per module; what they share is in `mixins`."""

from ..errors import AssumptionWarning
from .auto import AutoClassifier, AutoRegressor
from .descent import DescentClassifier, DescentRegressor
from .exponentiated_gradient import EGRegressor
from .glm_tron import GLMtronRegressor
from .mistake_driven import PerceptronClassifier, WinnowClassifier
from .ridge import RidgeRegressor
from .widrow_hoff import WidrowHoffRegressor

__all__ = [
    "AssumptionWarning",
    "AutoClassifier",
    "AutoRegressor",
    "DescentClassifier",
    "DescentRegressor",
    "EGRegressor",
    "GLMtronRegressor",
    "PerceptronClassifier",
    "RidgeRegressor",
    "WidrowHoffRegressor",
    "WinnowClassifier",
]
