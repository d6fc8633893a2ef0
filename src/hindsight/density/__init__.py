"""Densities learnt online: each row is predicted before it is learnt, so the log loss needs no held-out rows."""

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
