"""Conversion of labels to the targets of one-vs-rest runs, and of margins to labels.

Two classes share one run, in which the second class is positive. With more classes there is one run per class, in which
that class is positive and all others are negative. In both cases the runs belong to the *last* ``runs`` classes.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

MAX_WHOLE = 2.0**53  # from here on float64 does not hold every whole number
MAX_PLAIN = 1e16  # from here on whole numbers are written with an exponent
LABEL_TYPES = {"boolean": (bool, np.bool_), "integer": (int, np.integer), "float": (float, np.floating)}
BOOLEANS = {"0": False, "1": True, "false": False, "true": True}
READ_LABEL: dict[str, Callable[[str], Any]] = {
    "boolean": lambda text: BOOLEANS[text.lower()],
    "integer": lambda text: int(Decimal(text)),
    "float": float,
    "text": str,
}


def run_count(classes: int) -> int:
    """Return the number of runs that learn this many classes.

    Examples
    --------
    >>> run_count(2), run_count(3)
    (1, 3)
    """
    return 1 if classes == 2 else classes


def encode_labels(labels: np.ndarray, classes: Sequence[Any] | np.ndarray) -> np.ndarray:
    """Return the index of each label among the classes, -1 for an unknown label.

    Parameters
    ----------
    labels : ndarray of shape (n_rows,)
        Labels of any type.
    classes : sequence of length n_classes
        The classes, all different and of the same type as the labels.

    Returns
    -------
    codes : ndarray of int8 or, from 127 classes on, int32, of shape (n_rows,)

    Examples
    --------
    >>> encode_labels(np.array(["b", "a", "c"]), ["a", "b"])
    array([ 1,  0, -1], dtype=int8)
    """
    kind = np.int8 if len(classes) < 127 else np.int32
    codes: np.ndarray = np.full(len(labels), -1, kind)
    for code, label in enumerate(classes):  # adding up is many times faster than assigning through a mask
        codes += np.multiply(labels == label, code + 1, dtype=kind)
    return codes


def parse_float(text: str) -> float:
    """Return the number that a text denotes, or raise a ValueError.

    Unlike `float`, it rejects underscores such as 1_0, and digits of other scripts; in data these are text.

    Examples
    --------
    >>> parse_float(" 1e1 ")
    10.0
    >>> parse_float("1_0")
    Traceback (most recent call last):
    ValueError: '1_0' is not a number
    """
    if "_" in text or not text.isascii():
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def label_number(text: str) -> float:
    """Return the number that a label denotes, NaN for text.

    An integer that float64 cannot represent is text, since as a number it would equal its neighbour.

    Examples
    --------
    >>> label_number("+1.0"), label_number("9007199254740992"), label_number("9007199254740993"), label_number("1_0")
    (1.0, 9007199254740992.0, nan, nan)
    """
    try:
        value = parse_float(text)
    except ValueError:
        return math.nan
    if not math.isfinite(value) or (abs(value) >= MAX_WHOLE and Decimal(text.strip()) != Decimal(repr(value))):
        return math.nan
    return value


def number_text(value: int | float | Decimal) -> str:
    """Return a number as text, which is the same for equal numbers of different types; integers have no decimal point.

    Examples
    --------
    >>> number_text(1), number_text(1.0), number_text(Decimal("1.00")), number_text(0.5), number_text(2**53 + 1)
    ('1', '1', '1', '0.5', '9007199254740993')
    """
    try:
        number = float(value)
    except OverflowError:
        return str(value)
    if not math.isfinite(number):
        return repr(number)
    if not isinstance(value, float) and Decimal(value) != Decimal(repr(number)):
        return format(Decimal(value).normalize(), "f")
    return str(int(number)) if number.is_integer() and abs(number) < MAX_PLAIN else repr(number)


def numbers_of(classes: Sequence[str]) -> list[float]:
    """Return classes written as text as numbers; NaN, which equals no label, for one that is not a number.

    Examples
    --------
    >>> encode_labels(np.array([1.0, 0.5]), numbers_of(["0.50", "1", "none"]))
    array([1, 0], dtype=int8)
    """
    return [label_number(label) for label in classes]


def label_type(types: Iterable[type], before: str | None = None) -> str | None:
    """Return the type of labels whose values have these types; earlier labels had the type `before`.

    Examples
    --------
    >>> label_type([bool]), label_type([int, np.float64]), label_type([int], "text"), label_type([])
    ('boolean', 'float', 'text', None)
    """
    for each in types:
        now = next((name for name, of in LABEL_TYPES.items() if issubclass(each, of)), "text")
        before = now if before is None else max(before, now, key=[*READ_LABEL].index)
    return before


def type_of_texts(labels: Sequence[str]) -> str:
    """Return the type of labels that were read from text: boolean, integer or float if all of them are, otherwise text.

    Examples
    --------
    >>> [type_of_texts(labels) for labels in (["False", "True"], ["0", "1"], ["0.5", "1"], ["0", "one"])]
    ['boolean', 'integer', 'float', 'text']
    """
    if all(text.lower() in ("false", "true") for text in labels):
        return "boolean"
    numbers = numbers_of(labels)
    return "text" if any(map(math.isnan, numbers)) else "integer" if all(v.is_integer() for v in numbers) else "float"


def typed_labels(labels: Sequence[str], kind: str) -> np.ndarray:
    """Return labels written as text as values of their type.

    Parameters
    ----------
    labels : sequence of str
        The labels.
    kind : {"boolean", "integer", "float", "text"}
        Their type.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        If the type is unknown, or a label is not of this type.

    Examples
    --------
    >>> typed_labels(["0", "1"], "boolean").tolist(), typed_labels(["-1", "1e+16"], "integer").tolist()
    ([False, True], [-1, 10000000000000000])
    """
    try:
        return np.array([READ_LABEL[kind](text) for text in labels])
    except (KeyError, ArithmeticError):
        raise ValueError(f"the labels {', '.join(labels)} are not of the type {kind!r}") from None


def negative_target(targets: str) -> float:
    """Return the target of a row of another class: 0 for a loss of targets in [0, 1] ("unit"), otherwise -1."""
    return 0.0 if targets == "unit" else -1.0


def targets_of_runs(codes: np.ndarray, classes: int, targets: str, runs: int | None = None) -> list[np.ndarray]:
    """Return the targets of each run: 1 for the rows of its class, 0 or -1 for the others.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows,)
        The class of each row, by its index.
    classes : int
        Number of classes.
    targets : {"unit", "sign", "real"}
        The targets of the loss: "unit" gives 0 and 1, the others -1 and 1.
    runs : int, default=None
        Number of runs; None is `run_count(classes)`.

    Returns
    -------
    list of ndarray of float64

    Examples
    --------
    >>> targets_of_runs(np.array([1, 0]), 2, "sign")
    [array([ 1., -1.])]
    >>> targets_of_runs(np.array([1, 0, 2]), 3, "unit")
    [array([0., 1., 0.]), array([1., 0., 0.]), array([0., 0., 1.])]
    """
    low = negative_target(targets)
    count = run_count(classes) if runs is None else runs
    return [(1.0 - low) * (codes == code) + low for code in range(classes - count, classes)]


def target_of_runs(code: int, classes: int, targets: str, runs: int) -> list[float]:
    """Return what `targets_of_runs` gives, for a single row.

    Examples
    --------
    >>> target_of_runs(0, 2, "sign", 1), target_of_runs(0, 3, "unit", 3)
    ([-1.0], [1.0, 0.0, 0.0])
    """
    low = negative_target(targets)
    return [1.0 if code == k else low for k in range(classes - runs, classes)]


def chosen_codes(margins: np.ndarray) -> np.ndarray:
    """Return the index of the class with the largest margin.

    One column (or one dimension) stands for two classes, and the second is chosen if the margin is above 0. With
    several columns, ties go to the first.

    Examples
    --------
    >>> chosen_codes(np.array([0.5, 0.0])), chosen_codes(np.array([[1.0, 3.0, 3.0]]))
    (array([1, 0]), array([1]))
    """
    if margins.ndim == 1 or margins.shape[1] == 1:
        return (margins.reshape(len(margins)) > 0.0).astype(np.int64)
    return margins.argmax(axis=1)


def count_mistakes(margins: np.ndarray, codes: np.ndarray) -> int:
    """Return the number of misclassified rows; for two classes a margin of 0 is a mistake.

    Parameters
    ----------
    margins : ndarray of shape (n_rows, n_runs)
        Margins, one column per run.
    codes : ndarray of int of shape (n_rows,)
        The class of each row, by its index.

    Examples
    --------
    >>> count_mistakes(np.array([[0.5], [0.0], [-1.0]]), np.array([1, 0, 0]))
    1
    """
    if margins.shape[1] == 1:
        return int((np.where(codes == 1, margins[:, 0], -margins[:, 0]) <= 0.0).sum())
    return int((margins.argmax(axis=1) != codes).sum())


def class_probabilities(positive: np.ndarray) -> np.ndarray:
    """Return class probabilities, one column per class, from the probability of the positive class in each run.

    With several runs the probabilities of a row are scaled to sum to 1; if all of them are 0 they become equal.

    Examples
    --------
    >>> class_probabilities(np.array([[0.25]]))
    array([[0.75, 0.25]])
    >>> class_probabilities(np.array([[0.5, 0.5, 1.0], [0.0, 0.0, 0.0]])).round(2)
    array([[0.25, 0.25, 0.5 ],
           [0.33, 0.33, 0.33]])
    """
    if positive.shape[1] == 1:
        return np.hstack([1.0 - positive, positive])
    total = positive.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, positive / np.where(total > 0.0, total, 1.0), 1.0 / positive.shape[1])
