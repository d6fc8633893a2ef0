"""Sound in WAV files: one channel of 16-bit or floating-point samples, 8 to 48 kHz."""

from __future__ import annotations

import io
import os
import struct
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from ..storage.container import replace
from .canceller import FULL_SCALE

if TYPE_CHECKING:
    from numpy.typing import NDArray

LOWEST, HIGHEST = 8_000, 48_000  # samples per second
# What scipy raises where the bytes are not as they should be.
UNREADABLE = (ValueError, EOFError, LookupError, ArithmeticError, NameError, struct.error)
FORMATS = (np.dtype(np.int16), np.dtype(np.float32), np.dtype(np.float64))


def read(path: str | os.PathLike[str]) -> tuple[int, NDArray[Any]]:
    """Read one channel from a WAV file; the samples are memory-mapped, not copied.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    rate : int
        Samples per second.
    samples : ndarray of shape (n,)
        int16, float32 or float64.

    Raises
    ------
    SourceError
        If the file is not of this kind.
    """
    from scipy.io import wavfile

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", wavfile.WavFileWarning)  # of chunks that are no samples
            rate, found = wavfile.read(path, mmap=True)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror or error}") from None
    except UNREADABLE as error:
        raise SourceError(f"{path}: not a WAV file, or cut short: {' '.join(str(error).split())}") from None
    if found.ndim != 1:
        raise SourceError(f"{path}: {found.shape[1]} channels, where one is needed: keep one, or mix them first")
    if not LOWEST <= rate <= HIGHEST:
        raise SourceError(f"{path}: {rate:,} samples per second, which must be {LOWEST:,} to {HIGHEST:,}")
    if found.dtype.newbyteorder("=") not in FORMATS:
        bits = 8 * found.dtype.itemsize
        raise SourceError(f"{path}: {bits}-bit {found.dtype.name} samples: convert them to 16-bit integers or floats")
    if not found.size:
        raise SourceError(f"{path}: there are no samples")
    return int(rate), found


def write(path: str | os.PathLike[str], rate: int, clean: NDArray[Any], dtype: Any) -> int:
    """Write samples to a WAV file atomically, and return how many of them were clipped to 16 bits.

    Parameters
    ----------
    path : str or path
        The file.
    rate : int
        Samples per second.
    clean : ndarray of shape (n,)
        The samples, usually between -1 and 1.
    dtype : dtype
        The type to write: int16, float32 or float64. Floating-point numbers are not clipped.
    """
    from scipy.io import wavfile

    over, out = 0, io.BytesIO()
    if np.dtype(dtype) == np.int16:
        scaled = np.rint(clean * FULL_SCALE)
        over = int(np.count_nonzero((scaled < -FULL_SCALE) | (scaled > FULL_SCALE - 1.0)))
        clean = np.clip(scaled, -FULL_SCALE, FULL_SCALE - 1.0)
    wavfile.write(out, rate, clean.astype(dtype, copy=False))
    replace(os.fspath(path), [out.getbuffer()])
    return over
