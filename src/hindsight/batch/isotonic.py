"""Isotonic regression (N4 §2): the monotone fit of least weighted squares, exactly, by pooling adjacent violators.

Points are sorted by z, those of equal z become one (their mean, their total weight), and neighbours out of order are
pooled until none is left. Every pool's value is the mean of its members, so each level is calibrated. With a Lipschitz
constant L the fit also moves by at most L (z_j - z_i) between any two points: see `lipschitz`.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels import isotonic as pooling
from ..kernels.lipschitz import lipschitz_fit
from ..storage.registry import storable

if TYPE_CHECKING:
    from collections.abc import Callable


Floats = NDArray[np.float64]
NONE, ALL = np.uint64(0), np.uint64(2**64 - 1)  # masks of the places of weights
LARGE = 1 << 17  # points from which a second thread pays


@storable
@dataclass(frozen=True)
class Pools:
    """The pools of a fit, by ascending z: an array each.

    left, right : the least and the largest z of the pool.
    value : its level, the weighted mean of its members (with a Lipschitz constant, merely where the fit is level).
    weight, count : the total weight, and how many points it has; points of weight 0 are not counted.
    """

    left: Floats
    right: Floats
    value: Floats
    weight: Floats
    count: NDArray[np.int64]

    def knots(self) -> tuple[Floats, Floats]:
        """The fit as a line to draw: z ascending, and the value at each."""
        two = self.left < self.right
        at = np.repeat(self.left, 1 + two)
        at[np.cumsum(1 + two) - 1] = self.right
        return at, np.repeat(self.value, 1 + two)


@storable
@dataclass(frozen=True)
class Isotonic:
    """A fit: its value at every point in the order given, its pools, and whether it is nondecreasing."""

    fit: Floats
    pools: Pools
    increasing: bool


def isotonic(
    z: ArrayLike,
    y: ArrayLike,
    weight: ArrayLike | None = None,
    increasing: bool | str = True,
    lipschitz: float | None = None,
) -> Isotonic:
    """The monotone f that makes Sigma w (y - f(z))^2 smallest; with a Lipschitz constant, among those it allows.

    Exact, in O(m) for ascending z and O(m log m) otherwise; points of equal z share one value, and the order of the
    points does not matter, bit for bit. A point of weight 0 has no say; its value is read off the others' fit.

    Parameters
    ----------
    z, y : where, and what; m finite numbers each, at least one.
    weight : of each point, at least 0 and not all 0; None is 1.
    increasing : nondecreasing (True) or nonincreasing (False); "auto" goes by the sign of the rank correlation.
    lipschitz : L above 0, so that |f(z_i) - f(z_j)| <= L |z_i - z_j|; None asks for monotony alone.

    Examples
    --------
    >>> isotonic([1, 2, 3, 4], [1.0, 3.0, 2.0, 4.0]).fit
    array([1. , 2.5, 2.5, 4. ])
    >>> isotonic([1, 2, 3, 4], [1.0, 3.0, 2.0, 4.0], lipschitz=1.0).fit
    array([1.5, 2.5, 2.5, 3.5])
    """
    z, y, w = check_points(z, y, weight)
    constant = check_lipschitz(lipschitz)
    rising = check_increasing(increasing, z, y, w)
    fit, pools = fit_pools(z, y, w, 1.0 if rising else -1.0, constant)
    return Isotonic(fit, pools, rising)


def fit_pools(
    z: Floats, y: Floats, w: Floats | None, sign: float, constant: float, *, whole: bool = True
) -> tuple[Floats, Pools]:
    """The fit in the order given (empty unless `whole`) and its pools, of points that were checked."""
    if w is not None and not w.all():
        keep = w > 0.0
        kept, pools = fit_pools(z[keep], y[keep], w[keep], sign, constant, whole=whole)
        fit = np.empty(z.size if whole else 0)
        if whole:
            fit[keep], fit[~keep] = kept, read(*pools.knots(), np.ascontiguousarray(z[~keep]))
        return fit, pools
    ascends, strictly = pooling.survey(z)
    order, at = None, z
    if not ascends:
        order, strictly = ordered(z)
        y, w = taken(y, order), None if w is None else taken(w, order)
        if not strictly or constant < math.inf:  # otherwise z matters at the ends of pools alone
            at = taken(z, order)
    weights, mask = (np.ones(1), NONE) if w is None else (w, ALL)
    fit, weight, start = np.empty(z.size), np.empty(z.size), np.empty(z.size + 1, np.uint64)
    if constant == math.inf:
        count = pooling.pav(at[:0] if strictly else at, y, weights, mask, sign, fit, weight, start)
    else:
        where = np.empty(z.size)
        count = pooling.points(at, y, weights, mask, sign, where, fit, weight, start)
        fit[:count] = lipschitz_fit(where[:count], fit[:count], weight[:count], constant)
        count = pooling.join(fit, weight, start, count)
    first = start[: count + 1].astype(np.int64)
    left, right = first[:-1], first[1:] - 1
    if order is not None:
        left, right = order[left], order[right]
    pools = Pools(z[left], z[right], sign * fit[:count], weight[:count].copy(), np.diff(first))
    if not whole:
        return np.empty(0), pools
    pooling.spread(fit, first, count, sign, fit)
    if order is None:
        return fit, pools
    out, places = np.empty(z.size), order
    _share(lambda a, b: pooling.scatter(fit[a:b], places[a:b], out), z.size)
    return out, pools


def argsort(z: Floats) -> NDArray[Any]:
    """The stable order of z."""
    return ordered(z)[0]


def ordered(z: Floats) -> tuple[NDArray[Any], bool]:
    """The stable order of z, and whether no two are known to be equal.

    One sort of 64-bit numbers, in two threads where that pays: the leading bits of z above the place.
    """
    m = z.size
    least, most = pooling.ends(z)
    places = (m - 1).bit_length()
    shift = np.uint64(max(0, (int(most) - int(least)).bit_length() + places - 64))
    bits = np.uint64(places)
    packed: NDArray[np.uint64] = np.empty(m, np.uint64)
    _share(lambda a, b: pooling.pack(z[a:b], least, shift, bits, a, packed[a:b]), m)
    half = m // 2
    if m >= LARGE and _threads() > 1:
        _share(lambda a, b: packed[a:b].sort(), m)
        a, b, merged = packed[:half], packed[half:], np.empty(m, np.uint64)
        i = pooling.part(a, b, half)
        pair = ((a[:i], b[: half - i], merged[:half]), (a[i:], b[half - i :], merged[half:]))
        in_two(lambda k: pooling.merge(*pair[k]), 2)
        packed = merged
    else:
        packed.sort()
    order: NDArray[Any] = np.empty(m, np.uint32 if m < 1 << 32 else np.int64)
    settled, strictly = pooling.settle(packed, z, shift, bits, order)
    if settled:
        return order, strictly
    return np.argsort(z, kind="stable").astype(order.dtype), False  # many z agree in all leading bits, and yet differ


def taken(a: Floats, order: NDArray[Any]) -> Floats:
    """a in this order."""
    out = np.empty(order.size)
    _share(lambda first, last: pooling.gather(a, order[first:last], out[first:last]), order.size)
    return out


def read(at: Floats, value: Floats, x: Floats) -> Floats:
    """The fit with these knots at x: straight lines between them, level beyond."""
    out = np.empty(x.size)
    pooling.between(x, at, value, out)
    return out


def _threads() -> int:
    return int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]  # made at import


def _share(work: Callable[[int, int], Any], count: int) -> None:
    """work(a, b) over 0..count, in two halves where that pays."""
    if count < LARGE or _threads() < 2:
        work(0, count)
    else:
        ends = (0, count // 2, count)
        in_two(lambda k: work(ends[k], ends[k + 1]), 2)


def in_two(work: Callable[[int], Any], parts: int) -> None:
    """work(0) and, if there are two parts, work(1): beside it where there is a second thread."""
    if parts < 2 or _threads() < 2:
        for k in range(parts):
            work(k)
        return
    with ThreadPoolExecutor(1) as other:
        second = other.submit(work, 1)
        work(0)
        second.result()


# ---------------------------------------------------------------- checks


def check_points(z: ArrayLike, y: ArrayLike, weight: ArrayLike | None) -> tuple[Floats, Floats, Floats | None]:
    """z, y and weights as float64, or one clear error."""
    (zs, _), (ys, far) = _numbers("z", z), _numbers("y", y)
    if ys.shape != zs.shape:
        raise ValueError(f"z and y must have as many numbers each, got {zs.size} and {ys.size}")
    ws = None if weight is None else _numbers("weight", weight)[0]
    if ws is not None:
        if ws.shape != zs.shape:
            raise ValueError(f"weight must have one number a point: {zs.size} points, got {ws.size}")
        if ws.min() < 0.0:
            bad = int((ws < 0.0).argmax())
            raise ValueError(f"weight[{bad}] = {float(ws[bad])!r} must be at least 0")
        if not ws.any():
            raise ValueError("all weights are zero: there is nothing to fit")
    check_size(zs.size if ws is None else total(ws), far)
    return zs, ys, ws


def total(w: Floats) -> float:
    """The sum of weights."""
    with np.errstate(over="ignore"):
        return float(w.sum())


def check_size(heavy: float, far: float) -> None:
    """Refuse weights and values whose sums leave the range of numbers: total weight and largest |y|."""
    if not heavy * max(1.0, far) < 1e300:
        raise ValueError(f"total weight {heavy:g} times max |y| {far:g} overflows: scale weight or y")
    if heavy < 1e-290:
        raise ValueError(f"total weight {heavy:g} is too small to divide by: scale weight")


def _numbers(name: str, values: ArrayLike) -> tuple[Floats, float]:
    """One dimension of finite float64 numbers, and the largest absolute value."""
    out: Floats = np.require(values, np.float64, ("C", "W"))  # read-only ones would compile every loop anew
    if out.ndim != 1 or np.ndim(values) != 1:
        raise ValueError(f"{name} must be one-dimensional, got {np.ndim(values)} dimensions")
    if out.size == 0:
        raise ValueError(f"{name} is empty: give at least one point")
    top = float(pooling.largest(out))
    if not top < math.inf:
        bad = int((~np.isfinite(out)).argmax())
        raise ValueError(f"{name}[{bad}] = {float(out[bad])!r} is not finite")
    return out, top


def check_lipschitz(value: Any) -> float:
    """The Lipschitz constant; infinity for None."""
    if value is None:
        return math.inf
    known = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not known or not value > 0.0:
        raise ValueError(f"lipschitz must be a number above 0, or None; got {value!r}")
    return float(value)


def check_increasing(increasing: Any, z: Floats, y: Floats, w: Floats | None) -> bool:
    """Whether to fit a nondecreasing function."""
    if isinstance(increasing, (bool, np.bool_)):
        return bool(increasing)
    if increasing != "auto":
        raise ValueError(f"increasing must be True, False or 'auto'; got {increasing!r}")
    if w is not None and not w.all():
        z, y = z[w > 0.0], y[w > 0.0]
    return float(_ranks(z) @ _ranks(y)) >= 0.0


def _ranks(a: Floats) -> Floats:
    """The rank of each number less the mean rank; ties share theirs."""
    order = argsort(a)
    out = np.empty(a.size)
    pooling.ranks(a, order, out)
    return out
