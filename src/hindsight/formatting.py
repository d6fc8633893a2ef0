"""Numbers and structures as people and JSON read them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def _n(value: float) -> str:
    """Six digits, with commas where they help."""
    if float(value).is_integer() and abs(value) < 1e12:
        return f"{value:,.0f}"
    if 1e3 <= abs(value) < 1e9:
        return f"{value:,.{max(0, 5 - int(math.log10(abs(value))))}f}"
    return f"{value:.6g}"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
