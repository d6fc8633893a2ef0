"""Products of two columns: of numbers a number, of categories the pair, of both the number in the category's place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...errors import OptionError
from .encoders import Encoded, Indicators

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .encoders import Encoder

SIGN = " × "


def product_name(pair: Sequence[str]) -> str:
    """The name of the product of two columns."""
    return SIGN.join(pair)


def check_pairs(pairs: Sequence[Sequence[str]], encoders: Mapping[str, Encoder]) -> None:
    """Refuse products of columns that are not used, or hold text or dates."""
    for pair in pairs:
        if len(pair) != 2:
            raise OptionError("cross", f"takes two columns, as a,b; got {','.join(pair)!r}")
        for name in pair:
            if name not in encoders:
                raise OptionError("cross", f"{name!r} is not a column that is learnt from")
            kind = encoders[name].decided.type
            if kind not in ("number", "boolean", "category"):
                raise OptionError("cross", f"takes numbers and categories; {name!r} is a column of type {kind}")


def product_of(pair: Sequence[str], a: Encoded, b: Encoded) -> Encoded:
    """The product of two encoded columns; 0, or no feature, where a value of either is missing."""
    nothing = np.zeros(0, np.int64)
    if a.values is not None and b.values is not None:
        values = a.values * b.values
        return Encoded(np.where(np.isfinite(values), values, 0.0), nothing)
    name = product_name(pair)
    if a.values is None and b.values is None:
        return Encoded(None, nothing, category_pairs(name, a.named, b.named))
    numbers, named = (a.values, b.named) if b.values is None else (b.values, a.named)
    assert numbers is not None
    numbers = np.where(np.isfinite(numbers), numbers, 0.0)
    return Encoded(None, nothing, [Indicators(name, m.rows, m.codes, m.texts, numbers[m.rows]) for m in named])


def category_pairs(name: str, one: Sequence[Indicators], other: Sequence[Indicators]) -> list[Indicators]:
    """The pairs of categories; each row has at most one of each."""
    out = []
    for a in one:
        for b in other:
            rows, i, j = np.intersect1d(a.rows, b.rows, assume_unique=True, return_indices=True)
            if len(rows):
                met, codes = np.unique(np.column_stack([a.codes[i], b.codes[j]]), axis=0, return_inverse=True)
                texts = [f"{a.texts[x]}{SIGN}{b.texts[y]}" for x, y in met.tolist()]
                out.append(Indicators(name, rows, codes.ravel(), texts))
    return out
