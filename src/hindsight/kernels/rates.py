"""The rate of each round."""

from typing import NamedTuple

import numpy as np


class RateSchedule(NamedTuple):
    """The rate of round t = 1, 2, ...: rates[t - 1] where rates are given, else eta t^-power."""

    eta: float
    power: float
    rates: np.ndarray

    def rate(self, t):
        if self.rates.size > 0:
            return self.rates[int(t) - 1]
        return self.eta if self.power == 0.0 else self.eta * t**-self.power
