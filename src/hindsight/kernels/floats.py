"""Double precision: the type of its arrays, and its rounding unit."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
