"""Echo cancellation for two complete signals, with the attenuation over time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..formatting import _plain
from ..kernels.floats import Floats
from ..validation import choice, whole
from .canceller import EchoCanceller, samples, windows
from .kalman import KalmanCanceller

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from ..certificates.certificate import Certificate

WINDOW = 0.25  # seconds over which powers are taken, and of a block
QUIET = 1e-200  # energy up to which a signal is silent; its inverse is too loud
SPECTRUM = 1024  # samples of a segment whose spectrum is taken
FILTERS = ("kalman", "nlms")
LARGE = 10.0  # the default step: eta times the mean of |x_t|^2


@dataclass(frozen=True)
class Cancelled:
    """The result of `cancel`.

    Attributes
    ----------
    clean : ndarray of shape (n,)
        The microphone's signal without the predicted echo; float32 for 16-bit and float32 signals, otherwise float64.
    canceller : KalmanCanceller or EchoCanceller
        The filter after the last sample.
    rate : int
        Samples per second.
    times : ndarray of shape (windows,)
        The end of each window of a quarter of a second, in seconds.
    mic_power, clean_power : ndarray of shape (windows,)
        Mean square of the microphone's signal and of the residual in each window.
    seconds : float
        Duration of the computation.
    far, mic : ndarray of shape (n,)
        The signals as given.
    """

    clean: NDArray[Any]
    canceller: KalmanCanceller | EchoCanceller
    rate: int
    times: Floats
    mic_power: Floats
    clean_power: Floats
    seconds: float
    far: NDArray[Any]
    mic: NDArray[Any]

    @property
    def erle(self) -> Floats:
        """Echo return loss enhancement in dB, one number per window; NaN if the microphone is silent.

        This is the ratio of the powers of the microphone's signal and the residual. Near-end talk is not removed, so it
        lowers this ratio.
        """
        return decibels(self.mic_power, self.clean_power)

    @property
    def duration(self) -> float:
        """Length of the signals in seconds."""
        return self.clean.size / self.rate

    @property
    def real_time_factor(self) -> float:
        """Seconds of sound processed per second."""
        return self.duration / self.seconds

    def erle_between(self, start: float = 0.0, end: float | None = None) -> float:
        """Return the echo return loss enhancement in dB over the windows between two times in seconds.

        Parameters
        ----------
        start : float, default=0.0
            The start of the time range, in seconds.
        end : float or None, default=None
            The end of the time range, in seconds; None is the end of the signals.

        Returns
        -------
        float
            The enhancement; NaN if the microphone is silent.
        """
        within = (self.times > start + 0.5 * WINDOW) & (self.times <= (np.inf if end is None else end) + 1e-9)
        sums = (np.array([float(power[within].sum())]) for power in (self.mic_power, self.clean_power))
        return float(decibels(*sums)[0])

    def spectra(self, start: float = 0.0, end: float | None = None) -> tuple[Floats, Floats, Floats]:
        """Return frequencies in Hz, and the power spectral densities of the microphone's signal and the residual
        (Welch's method).

        Parameters
        ----------
        start : float, default=0.0
            The start of the time range, in seconds.
        end : float or None, default=None
            The end of the time range, in seconds; None is the end of the signals.
        """
        from scipy.signal import welch

        last = self.clean.size if end is None else round(end * self.rate)
        part = slice(round(start * self.rate), last)
        size = min(SPECTRUM, self.clean[part].size)
        if size < 1:
            raise ValueError(f"there are no samples from {start:g} s to {last / self.rate:g} s")
        pairs = [welch(samples(s[part], "signal"), self.rate, nperseg=size) for s in (self.mic, self.clean)]
        return pairs[0][0], pairs[0][1], pairs[1][1]

    def to_dict(self) -> dict[str, Any]:
        """Settings and results without the signals, as plain numbers, strings, lists and None (for NaN), for JSON."""
        eta = getattr(self.canceller, "eta", None)
        settings = {"rate": self.rate, "taps": self.canceller.taps, "filter": FILTERS[eta is not None], "eta": eta}
        figures = {"duration": self.duration, "seconds": self.seconds, "real_time_factor": self.real_time_factor}
        curves = {"times": self.times, "erle": self.erle}
        return dict(_plain(settings | figures | {"erle_total": self.erle_between()} | curves))

    def certify(self, *, tol: float = 0.01) -> Certificate:
        """Return the certificate of NLMS: its squared error, that of the best fixed filter in hindsight, and the bound.

        The run is replayed. Computing the best filter over all samples takes far longer than the run itself.

        Parameters
        ----------
        tol : float, default=0.01
            Relative accuracy to which the best filter is computed.

        Returns
        -------
        Certificate

        Raises
        ------
        ValueError
            If the filter is not NLMS: there is no theorem for other filters.
        """
        if not isinstance(self.canceller, EchoCanceller):
            raise ValueError("there is no theorem for the Kalman filter: cancel with filter='nlms'")
        from ..certificates.certify import certify_run
        from ..rows.data import Data

        taps = self.canceller.taps
        line = np.concatenate((np.zeros(taps - 1), samples(self.far, "far")))
        data = Data(windows(line, taps), samples(self.mic, "mic"))
        return certify_run(self.canceller.run, data, tol=tol)


def cancel(
    far: ArrayLike,
    mic: ArrayLike,
    rate: int = 16_000,
    *,
    taps: int = 512,
    filter: str = "kalman",
    eta: float | None = None,
) -> Cancelled:
    """Cancel the echo of the far end in the signal of a microphone.

    Parameters
    ----------
    far : array-like of shape (n,)
        The signal played by the loudspeaker: floating-point numbers, or 16-bit integers, which are divided by 32768.
    mic : array-like of shape (n,)
        The signal of the microphone during the same time.
    rate : int, default=16000
        Samples per second.
    taps : int, default=512
        Length of the filter in samples.
    filter : {"kalman", "nlms"}, default="kalman"
        "kalman" is `KalmanCanceller`, which is robust to near-end talk; "nlms" is `EchoCanceller`, which learns faster
        at first and after the room changes, and has a certificate. See docs/echo.md.
    eta : float, default=None
        Learning rate of "nlms"; None is 10 divided by the mean of |x_t|^2 over the far end: the volume then does not
        matter, and a step corrects 10/11 of the error when the far end has its average power.

    Returns
    -------
    Cancelled
        The residual, and the attenuation over time.

    Raises
    ------
    ValueError
        If a signal is silent, the signals differ in length, or a sample is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from hindsight import echo
    >>> rng = np.random.default_rng(0)
    >>> far = rng.standard_normal(16_000)
    >>> mic = np.convolve(far, 0.1 * rng.standard_normal(64))[:16_000]
    >>> found = echo.cancel(far, mic, taps=64, filter="nlms")
    >>> bool(found.erle_between(0.5) > 100.0), found.certify().verdict.value
    (True, 'HOLDS')
    """
    far, mic = np.asarray(far), np.asarray(mic)
    if not isinstance(rate, (int, np.integer)) or rate < 1:
        raise ValueError(f"rate must be a whole number of samples per second, got {rate!r}")
    far_power, mic_power = check_signals(far, mic, int(rate))
    taps = whole("taps", taps)
    rule: KalmanCanceller | EchoCanceller
    if choice("filter", filter, FILTERS) == "nlms":
        rule = EchoCanceller(taps, LARGE / (taps * far_power) if eta is None else eta)
    elif eta is None:
        rule = KalmanCanceller(taps, mic_power / far_power)
    else:
        raise ValueError(f"eta is for filter='nlms': the Kalman filter chooses its steps; got {eta!r}")
    type(rule)(taps).process(np.zeros(1), np.zeros(1))  # compiled code is loaded before the clock starts
    clean = np.empty(mic.size, np.float64 if 8 in (far.itemsize, mic.itemsize) else np.float32)
    powers = []
    began = time.perf_counter()
    for a, b in spans(mic.size, int(rate)):
        y = samples(mic[a:b], "mic", a)
        residual = rule.process(far[a:b], y)
        clean[a:b] = residual
        powers.append((b / rate, float(np.mean(y * y)), float(np.mean(residual * residual))))
    seconds = time.perf_counter() - began
    times, before, after = np.array(powers).T
    return Cancelled(clean, rule, int(rate), times, before, after, seconds, far, mic)


def check_signals(far: NDArray[Any], mic: NDArray[Any], rate: int) -> tuple[float, float]:
    """The mean squares of both signals, which are checked to be of equal length, finite and not silent."""
    found = []
    for name, signal in (("far", far), ("mic", mic)):
        total = 0.0
        for a, b in spans(signal.size, rate):
            part = samples(signal[a:b], name, a)
            with np.errstate(over="ignore"):
                total += float(part @ part)
        found.append(total)
    if far.shape != mic.shape:
        raise ValueError(f"far and mic must have as many samples as each other, got {far.size:,} and {mic.size:,}")
    for name, total in zip(("far", "mic"), found, strict=True):
        if not QUIET < total < 1.0 / QUIET:
            raise ValueError(f"{name} is " + ("silent: there is nothing to learn" if total < 1.0 else "too loud"))
    return found[0] / far.size, found[1] / mic.size


def spans(size: int, rate: int) -> Iterator[tuple[int, int]]:
    """The start and the end of each window."""
    step = max(1, round(WINDOW * rate))
    return ((a, min(size, a + step)) for a in range(0, size, step))


def decibels(power: Floats, over: Floats) -> Floats:
    """10 log10 of a ratio of powers; NaN if both are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return 10.0 * np.log10(power / over)
