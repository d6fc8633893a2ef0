"""Echo cancellation by a Widrow-Hoff run over the delay line of a signal, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..kernels.floats import Floats
from ..online.learners import widrow_hoff
from ..online.run import Run
from ..rows.matrices import rows_of
from ..validation import number, whole

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

FULL_SCALE = 32768.0  # of 16-bit samples, which stand for -1 to 1


class EchoCanceller:
    """Cancel an echo block by block, as samples arrive.

    The features of sample t are the last `taps` samples of the far end, x_t = (far[t], far[t-1], ...), and its target
    is mic[t]. The weights are the impulse response of the room: w.x_t is the predicted echo, and the residual mic[t] -
    w.x_t is the output. Each sample is predicted before it is learnt, by the implicit Widrow-Hoff rule

        w += (mic[t] - w.x_t) x_t / (1/eta + |x_t|^2),

    which signal processing calls normalised least mean squares (NLMS) with the regularisation 1/eta. Rows are
    overlapping windows of one buffer, without copies. The result does not depend on how the signal is divided into
    blocks.

    Parameters
    ----------
    taps : int, default=512
        Length of the delay line in samples, which is the longest echo that can be cancelled. 512 samples are 32 ms at
        16 kHz.
    eta : float, default=1.0
        Learning rate, above 0. If 1/eta is far below |x_t|^2 the filter adapts as fast as possible; if it is far above,
        it adapts slowly and averages out noise and near-end talk. `cancel` chooses it from the power of the far end.
        `KalmanCanceller` distinguishes talk from echo by itself.

    Attributes
    ----------
    run : Run
        The run, with its weights (that of the oldest sample first), rounds and facts.
    samples : int
        Number of samples processed.

    References
    ----------
    .. [1] B. Widrow and M. E. Hoff, "Adaptive switching circuits", IRE WESCON Convention Record, 1960.
    .. [2] S. Haykin, *Adaptive Filter Theory*, Prentice Hall, fifth edition, 2013, chapter 7.

    Examples
    --------
    >>> import numpy as np
    >>> from hindsight.echo import EchoCanceller
    >>> far = np.random.default_rng(0).standard_normal(4000)
    >>> mic = 0.5 * np.concatenate([np.zeros(3), far[:-3]])  # the far end, three samples late
    >>> canceller = EchoCanceller(taps=8, eta=1.0)
    >>> blocks = [canceller.process(far[k : k + 100], mic[k : k + 100]) for k in range(0, 4000, 100)]
    >>> bool(np.abs(blocks[0]).max() > 0.01), bool(np.abs(blocks[-1]).max() < 1e-6)
    (True, True)
    >>> canceller.room.round(3) + 0.0
    array([0. , 0. , 0. , 0.5, 0. , 0. , 0. , 0. ])
    """

    def __init__(self, taps: int = 512, eta: float = 1.0) -> None:
        self.taps = whole("taps", taps)
        self.eta = number("eta", eta, 0.0)
        self.run = Run(widrow_hoff(self.eta, "implicit"), self.taps, intercept=False)
        self.samples = 0
        self._past: Floats = np.zeros(self.taps - 1)

    @property
    def room(self) -> Floats:
        """The impulse response learnt so far, starting with the weight of the current sample."""
        return self.run.weights[::-1]

    @property
    def setting(self) -> str:
        """The filter and its settings in words."""
        return f"η = {self.eta:.4g}"

    def process(self, far: ArrayLike, mic: ArrayLike) -> Floats:
        """Return the next block of the microphone's signal without the predicted echo, and learn from it.

        Parameters
        ----------
        far, mic : array-like of shape (n,)
            Corresponding samples of both signals: floating-point numbers, or 16-bit integers, which are divided by
            32768.

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
        if not x.size:
            return x
        line = np.concatenate((self._past, x, np.zeros(1)))  # a window more: a single row would be compiled anew
        work, kept = np.empty((3, x.size)), self.run.snapshot()
        rows = rows_of(windows(line, self.taps), 0.0)
        played = self.run.play_block(rows, 0, x.size, y, np.ones(x.size), work)
        if played < x.size:
            self.run.restore(kept)
            raise ValueError(f"sample {self.samples + played:,} cannot be learnt: the numbers are too large")
        self.samples += x.size
        self._past = line[x.size : -1]
        return y - work[0]


def windows(line: Floats, taps: int) -> Floats:
    """All windows of `taps` consecutive samples, one per row, as a view."""
    return sliding_window_view(line, taps, writeable=True)


def check_block(far: ArrayLike, mic: ArrayLike, first: int) -> tuple[Floats, Floats]:
    """The samples of a block of both signals, checked to be finite and of equal length."""
    x, y = samples(far, "far", first), samples(mic, "mic", first)
    if x.size != y.size:
        raise ValueError(f"far and mic must have as many samples as each other, got {x.size:,} and {y.size:,}")
    return x, y


def samples(signal: ArrayLike, name: str, first: int = 0) -> Floats:
    """Return the samples of a signal as float64, checked to be finite.

    Parameters
    ----------
    signal : array-like of shape (n,)
        Floating-point numbers, or 16-bit integers, which are divided by 32768.
    name : str
        The name of the signal in errors.
    first : int, default=0
        The index of its first sample, for errors.
    """
    given = np.asarray(signal)
    if given.ndim != 1:
        raise ValueError(f"{name} must be one channel, a vector of samples; got shape {given.shape}")
    if given.dtype.newbyteorder("=") == np.int16:
        return given / FULL_SCALE
    if given.dtype.kind != "f":
        raise ValueError(f"{name} must hold floating-point numbers or 16-bit integers, got {given.dtype}")
    out: Floats = np.ascontiguousarray(given, dtype=np.float64)
    if not np.isfinite(out).all():
        bad = int(np.flatnonzero(~np.isfinite(out))[0])
        raise ValueError(f"{name}, sample {first + bad:,}: {out[bad]} is not a finite number")
    return out
