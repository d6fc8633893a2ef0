"""The rate of each round: a value, not a type, so that one compiled loop serves them all."""

from typing import NamedTuple

import numpy as np

from .compiler import part


@part
class RateSchedule(NamedTuple):
    """The rate of round t = 1, 2, ...: rates[t - 1] where rates are given, otherwise eta t^-power."""

    eta: float
    power: float
    rates: np.ndarray

    def at(self, t):
        if self.rates.size > 0:
            return self.rates[np.int64(t) - 1]
        return self.eta if self.power == 0.0 else self.eta * t**-self.power

    def is_constant(self):
        return self.power == 0.0 and self.rates.size == 0

    def of_rounds(self, rounds: int) -> np.ndarray:
        """The rates of the first rounds, as an array."""
        if self.rates.size:
            return self.rates[:rounds]
        if self.power == 0.0:
            return np.full(rounds, self.eta)
        return self.eta * np.arange(1.0, rounds + 1.0) ** -self.power
