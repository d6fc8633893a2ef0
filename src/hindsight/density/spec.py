"""Densities from a specification such as ``hour:categorical(24),minutes:exponential,x+y:gaussian``."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..rows.labels import number_text
from .counts import Bernoulli, Categorical, Histogram, Poisson
from .durations import Exponential, Gamma
from .gaussian import FullGaussian, Gaussian
from .ngram import NGram
from .product import Product

FAMILIES = (
    "gaussian (several columns a+b: with their covariance), categorical or categorical(k) or categorical(x|y|z), "
    "bernoulli, poisson, exponential, gamma(shape), histogram(low|high|bins), ngram(order)"
)
# The densities of one column that take numbers, and how few and how many of them.
KINDS: dict[str, tuple[Any, int, int]] = {
    "gaussian": (Gaussian, 0, 0),
    "bernoulli": (Bernoulli, 0, 0),
    "poisson": (Poisson, 0, 0),
    "exponential": (Exponential, 0, 0),
    "gamma": (Gamma, 0, 1),
    "histogram": (Histogram, 2, 3),
    "ngram": (NGram, 0, 1),
}
ITEM = re.compile(r"\s*([^:,]+?)\s*:\s*([a-z]+)\s*(?:\(([^)]*)\))?\s*(?:,|$)")


def parse(text: str, forget: float = 1.0) -> Product:
    """Make the product described by a specification.

    Parameters
    ----------
    text : str
        ``name:family`` for each column, separated by commas; symbols are strings, or 0..k−1 for a number k.
    forget : float, default 1.0
        Forgetting factor in (0, 1] that multiplies the statistics of earlier rows at each row; 1 forgets nothing.

    Returns
    -------
    Product
        One density per column.

    Raises
    ------
    ValueError
        If the text is not a valid specification.

    Examples
    --------
    >>> parse("hour:categorical(24),minutes:exponential").names
    ['hour', 'minutes']
    """
    densities: dict[Any, Any] = {}
    place = 0
    while place < len(text):
        found = ITEM.match(text, place)
        if found is None:
            raise ValueError(f"--columns: cannot read {text[place:]!r}; write name:family, where family is {FAMILIES}")
        names, family, inside = found.groups()
        key: Any = tuple(name.strip() for name in names.split("+")) if "+" in names else names
        if key in densities:
            raise ValueError(f"--columns: column {names!r} appears twice")
        densities[key] = make(names, family, inside, len(key) if isinstance(key, tuple) else 1, forget)
        place = found.end()
    if not densities:
        raise ValueError(f"--columns: name at least one column: name:family, where family is {FAMILIES}")
    return Product(densities)


def make(names: str, family: str, inside: str | None, columns: int, forget: float) -> Any:
    """Make the density of one item of a specification."""
    args = [] if inside is None else [part.strip() for part in inside.split("|")]
    if columns > 1:
        if family != "gaussian" or args:
            raise ValueError(f"--columns: {names}: several columns at once take gaussian alone, not {family}")
        return FullGaussian(columns, forget=forget)
    if family == "categorical":
        if len(args) == 1 and args[0].isdigit():
            return Categorical(int(args[0]), forget=forget)
        return Categorical(args or None, forget=forget)
    if family == "ngram" and forget < 1.0:
        raise ValueError(f"--columns: {names}: n-grams do not fade, so --forget must be 1")
    if family not in KINDS:
        raise ValueError(f"--columns: {names}: there is no family {family!r}; there are {FAMILIES}")
    kind, *counts = KINDS[family]
    values = numbers_in_brackets(names, family, args, counts)
    if family == "ngram":
        return kind(*map(int, values))
    if family == "histogram":
        values[2:] = map(int, values[2:])
    return kind(*values, forget=forget)


def numbers_in_brackets(names: str, family: str, args: list[str], count: list[int]) -> list[float]:
    """The numbers in parentheses, checked to be as many as the family takes."""
    try:
        values = [float(arg) for arg in args]
    except ValueError:
        raise ValueError(f"--columns: {names}: {family}({'|'.join(args)}): numbers are needed there") from None
    if not count[0] <= len(values) <= count[1]:
        wanted = " or ".join(map(str, sorted(set(count))))
        raise ValueError(f"--columns: {names}: {family} takes {wanted} numbers in brackets, got {len(values)}")
    return values


def as_symbols(density: Any, values: Any) -> np.ndarray:
    """A column as its density takes it: if symbols are strings, numbers become their shortest decimal strings.

    Examples
    --------
    >>> as_symbols(Categorical(), [1234567.0, 0.5]).tolist()
    ['1234567', '0.5']
    """
    values = np.asarray(values)
    if values.dtype.kind not in "fiub" or not isinstance(density, Categorical) or not density.takes_text:
        return values
    distinct, places = np.unique(values, return_inverse=True)
    texts = [str(value) if isinstance(value, bool) else number_text(value) for value in distinct.tolist()]
    return np.array(texts, np.str_)[places]
