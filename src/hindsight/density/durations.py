"""Densities of durations: Gamma distributions of known shape; shape 1 is the exponential."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import gammaln, xlogy

from ..kernels import densities as kernels
from .base import Density, check_statistics, prior_above_0
from .online import storable_density


@storable_density
class Gamma(Density):
    """Gamma-distributed durations of known shape with a Gamma(a, b) prior for the rate; the predictive is a beta prime.

    The prior is conjugate (Bernardo and Smith, 1994, docs/bibliography.md).

    Parameters
    ----------
    shape : float or array-like of shape (columns,), default 2.0
        Shape, above 0; 1 is the exponential (which also allows durations of 0), and shapes above 1 have a mode above 0.
    a : float or array-like of shape (columns,), default 0.5
        Sum of the shapes of the pseudo-durations of the prior, above 0.
    b : float or array-like of shape (columns,), default 0.01
        Sum of these pseudo-durations, above 0.
    columns, forget
        As in `Gaussian`.

    Examples
    --------
    >>> Gamma(shape=2, a=1, b=1).update([1.0, 2.0, 3.0]).describe()
    'mean 2'
    """

    name, unit = "gamma", "a duration (a finite number above 0)"

    def __init__(
        self, shape: float = 2.0, a: Any = 0.5, b: Any = 0.01, *, columns: int = 1, forget: float = 1.0
    ) -> None:
        prior = prior_above_0(columns, a=a, b=b, shape=shape)
        super().__init__(kernels.Waiting(prior), 2, forget)
        if (prior[2] == 1.0).all():
            self.unit = "a duration (a finite number, at least 0)"

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        check_statistics(fields, kernels.Waiting, 3, 2, slice(0, 1))

    logpdf = Density.logp

    def _marginal(self) -> float:
        (a, b, shape), total, logs, n = self.part.prior, self.state[:, 0], self.state[:, 1], self.n[:, None]
        gained = gammaln(a + shape * n) - gammaln(a) - n * gammaln(shape) + (shape - 1.0) * logs
        return float((a * np.log1p(total / b) + shape * n * np.log(b + total) - gained).sum())

    def _best(self) -> float:
        shape, total, logs, n = self.part.prior[2], self.state[:, 0], self.state[:, 1], self.n[:, None]
        if ((total == 0.0) & (n > 0.0)).any():
            return -math.inf
        power = shape * n
        best = (shape - 1.0) * logs - n * gammaln(shape) + xlogy(power, power / np.maximum(total, 1e-300)) - power
        return float(-best.sum())

    def _mean(self) -> np.ndarray:
        (a, b, shape), total = self.part.prior, self.state[0, 0]
        return np.asarray(shape * (b + total) / (a + shape * self.n[0]))

    def _draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        (a, b, shape), total = self.part.prior, self.state[0, 0]
        rate = rng.gamma(a + shape * self.n[0], 1.0 / (b + total), (size, self.columns))
        return np.asarray(rng.gamma(shape, 1.0, rate.shape) / rate)

    def describe(self) -> str:
        return "mean " + ", ".join(f"{mean:.4g}" for mean in self._mean()[:5])


@storable_density
class Exponential(Gamma):
    """Exponential durations with a Gamma(a, b) prior for the rate; the predictive is a Lomax.

    Parameters
    ----------
    a : float or array-like of shape (columns,), default 0.5
        Number of pseudo-durations of the prior, above 0.
    b : float or array-like of shape (columns,), default 0.01
        Sum of these pseudo-durations, above 0.
    columns, forget
        As in `Gamma`.

    Examples
    --------
    >>> Exponential(a=1, b=1).update([1.0, 2.0, 3.0]).describe()
    'mean 1.75'
    """

    name = "exponential"

    def __init__(self, a: Any = 0.5, b: Any = 0.01, *, columns: int = 1, forget: float = 1.0) -> None:
        super().__init__(1.0, a, b, columns=columns, forget=forget)
