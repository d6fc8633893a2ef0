"""Targets as numbers or as text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..rows.labels import label_number, number_text, parse_float

if TYPE_CHECKING:
    from .base import ReadOptions


def reads_as_number(text: str) -> bool:
    """Whether the text is a number."""
    try:
        parse_float(text)
    except ValueError:
        return False
    return True


def read_target(text: str, labels: bool | None) -> tuple[float, str | None]:
    """Read a target given as text: its number, and its text if it is a label (otherwise None).

    A target is a label if it is not a number, or is a whole number that float64 cannot represent; with `labels=False`
    it is always a number. The number is NaN if the text is not a number, and may be infinite.

    Examples
    --------
    >>> read_target("1.0", None), read_target("yes", None), read_target("9007199254740993", None)
    ((1.0, None), (nan, 'yes'), (9007199254740992.0, '9007199254740993'))
    >>> read_target("yes", False)
    (nan, None)
    """
    try:
        value = parse_float(text)
    except ValueError:
        return math.nan, None if labels is False else text
    exact = labels is False or not math.isfinite(value) or not math.isnan(label_number(text))
    return value, None if exact else text


def is_inexact(text: str) -> bool:
    """Whether the text is a whole number that float64 cannot represent."""
    return reads_as_number(text) and read_target(text, None)[1] is not None


def canonical(text: str) -> str:
    """A label; a number in its shortest form."""
    value = label_number(text)
    return text if value != value else number_text(value)


def label_text(y: np.ndarray) -> np.ndarray:
    """Targets as text; numbers in their shortest form, whole numbers without a decimal point.

    Examples
    --------
    >>> label_text(np.array([1.0, -1.0, 0.5])).tolist()
    ['1', '-1', '0.5']
    """
    if y.dtype.kind not in "fiub":
        return y.astype(str)
    values, back = np.unique(y, return_inverse=True)
    texts = [number_text(v) for v in values.tolist()]
    return np.array(texts or [""])[back] if len(values) else np.array([], "<U1")


def label_fault(label: str) -> str | None:
    """Why a label cannot be stored in an array of text or written as UTF-8; None if it can."""
    if "\0" in label:
        return f"label {label!r} holds a NUL character"
    return None if is_unicode(label) else f"label {label!r} is not Unicode text"


def is_unicode(text: str) -> bool:
    """Whether the text can be encoded as UTF-8; JSON escapes can give half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def merge_labels(y: np.ndarray, labels: dict[int, str], options: ReadOptions) -> np.ndarray | None:
    """Targets as numbers, or all as text if some rows have labels; None if no target was asked for."""
    if options.target is None:
        return None
    if not options.labels and not labels:
        return y
    y = label_text(y)
    if labels:
        size = max(map(len, labels.values()))
        y = y.astype(f"<U{max(size, y.dtype.itemsize // 4)}")
        for t, text in labels.items():
            y[t] = text
    return y
