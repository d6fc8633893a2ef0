"""A frequency-domain Kalman filter, which takes smaller steps during near-end talk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..kernels.floats import Floats
from ..validation import number, whole
from .canceller import check_block

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

BLOCK = 128  # samples that are learnt at a time
STAYS = 0.999  # how much of the room is still there a block later
SMOOTH = 0.5  # how much of the estimate of the near end's spectrum is kept from block to block
LOUDEST = 1e100  # samples up to which squares do not overflow
SILENT = 1e-290  # below it there is nothing to divide by


class KalmanCanceller:
    """Cancel an echo block by block, as samples arrive, even during near-end talk.

    The room is modelled by a filter W of `taps` samples, in partitions of 128 samples that are kept as spectra. For
    every frequency the canceller estimates the variance C of W and the power S of everything in the residual that is
    not echo (noise and near-end talk). Both determine the step, once every 128 samples:

        W += C conj(X) E / (sum |X|^2 C + 2 S),    C *= 1 - |X|^2 C / (2 (sum |X|^2 C + 2 S)),

    where X are the spectra of the far end and E is the spectrum of the residual. The filter thus hardly changes while
    somebody talks, and adapts again afterwards. Each sample is predicted without delay, before it is learnt. There is
    no theorem for this filter, unlike for `EchoCanceller`.

    Parameters
    ----------
    taps : int, default=512
        Length of the filter in samples: how long an echo is cancelled. 512 are 32 ms at 16 kHz.
    gain : float, default=1.0
        Prior of the power gain of the room, above 0: the initial variance C. `cancel` uses the ratio of the powers of
        the microphone and the far end.

    Attributes
    ----------
    samples : int
        Number of samples processed.

    References
    ----------
    .. [1] G. Enzner and P. Vary, "Frequency-domain adaptive Kalman filter for acoustic echo control in hands-free
       telephones", Signal Processing 86(6), 2006.
    .. [2] F. Kuech, E. Mabande and G. Enzner, "State-space architecture of the partitioned-block-based acoustic echo
       controller", ICASSP 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from hindsight.echo import KalmanCanceller
    >>> far = np.random.default_rng(0).standard_normal(16_000)
    >>> mic = 0.5 * np.concatenate([np.zeros(3), far[:-3]])  # the far end, three samples late
    >>> canceller = KalmanCanceller(taps=8)
    >>> blocks = [canceller.process(far[k : k + 100], mic[k : k + 100]) for k in range(0, 16_000, 100)]
    >>> canceller.room.round(3) + 0.0
    array([0. , 0. , 0. , 0.5, 0. , 0. , 0. , 0. ])
    """

    def __init__(self, taps: int = 512, gain: float = 1.0) -> None:
        self.taps, self.gain = whole("taps", taps), number("gain", gain, 0.0)
        parts = -(-self.taps // BLOCK)
        self.samples = 0
        self._line: Floats = np.zeros(2 * BLOCK)  # the far end: the block before, and as much of this one as is there
        self._residual: Floats = np.zeros(2 * BLOCK)  # zeros, and what is left of this block
        self._spectra = np.zeros((parts, BLOCK + 1), np.complex128)  # of the far end, the newest first
        self._room = np.zeros_like(self._spectra)
        self._doubt: Floats = np.full(self._room.shape, self.gain)
        self._other: Floats = np.zeros(BLOCK + 1)
        places = np.arange(2 * BLOCK) + BLOCK * np.arange(parts)[:, None]
        self._inside = (np.arange(2 * BLOCK) < BLOCK) & (places < self.taps)

    @property
    def room(self) -> Floats:
        """The impulse response learnt so far, starting with the weight of the current sample."""
        return np.fft.irfft(self._room, axis=1)[:, :BLOCK].reshape(-1)[: self.taps]

    @property
    def setting(self) -> str:
        """The filter and its settings in words."""
        return "Kalman filter"

    def process(self, far: ArrayLike, mic: ArrayLike) -> Floats:
        """Return the next block of the microphone's signal without the predicted echo, and learn from it.

        Parameters
        ----------
        far, mic : array-like of shape (n,)
            As for `EchoCanceller.process`. The division of the signal into blocks changes the result only by rounding.

        Returns
        -------
        ndarray of shape (n,)
            The residual: the microphone's signal minus the predicted echo.

        Raises
        ------
        ValueError
            If the blocks differ in length, or a sample is not finite; then nothing is learnt.
        """
        x, y = check_block(far, mic, self.samples)
        large = np.flatnonzero(np.maximum(np.abs(x), np.abs(y)) > LOUDEST)
        if large.size:
            raise ValueError(f"sample {self.samples + int(large[0]):,} cannot be learnt: the numbers are too large")
        out, k = np.empty(x.size), 0
        while k < x.size:
            here = BLOCK + self.samples % BLOCK
            end = min(2 * BLOCK, here + x.size - k)
            step = end - here
            self._line[here:end] = x[k : k + step]
            self._spectra[0] = np.fft.rfft(self._line)
            echo = np.fft.irfft((self._spectra * self._room).sum(axis=0))
            self._residual[here:end] = out[k : k + step] = y[k : k + step] - echo[here:end]
            k, self.samples = k + step, self.samples + step
            if end == 2 * BLOCK:
                self._learn()
        return out

    def _learn(self) -> None:
        """Take the step of a whole block, and make room for the next."""
        residual, power = np.fft.rfft(self._residual), np.abs(self._spectra) ** 2
        self._other = SMOOTH * self._other + (1.0 - SMOOTH) * np.abs(residual) ** 2
        total = (power * self._doubt).sum(axis=0) + 2.0 * self._other
        share = np.divide(self._doubt, total, out=np.zeros_like(self._doubt), where=total > SILENT)
        step = np.fft.irfft(share * self._spectra.conj() * residual, axis=1) * self._inside
        self._room += np.fft.rfft(step, axis=1)
        self._doubt *= STAYS**2 * (1.0 - 0.5 * share * power)
        self._doubt += (1.0 - STAYS**2) * np.abs(self._room) ** 2
        self._spectra = np.roll(self._spectra, 1, axis=0)
        self._line[:BLOCK], self._line[BLOCK:] = self._line[BLOCK:], 0.0
