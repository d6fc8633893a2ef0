"""Densities learnt online (N0, probability modelling): each predicts before it learns, so its log loss is honest."""

from .certificate import DensityCertificate
from .counts import Bernoulli, Categorical, Histogram, Poisson
from .durations import Exponential, Gamma
from .gaussian import FullGaussian, Gaussian
from .keyed import Keyed
from .ngram import NGram
from .product import Product

__all__ = [
    "Bernoulli",
    "Categorical",
    "DensityCertificate",
    "Exponential",
    "FullGaussian",
    "Gamma",
    "Gaussian",
    "Histogram",
    "Keyed",
    "NGram",
    "Poisson",
    "Product",
]
