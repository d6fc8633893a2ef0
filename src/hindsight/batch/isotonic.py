"""Isotonic regression: the exact monotone fit of least weighted squares, by pooling adjacent violators.

Points are sorted by z, and points of equal z are merged into one (their mean, with their total weight). Neighbours in
the wrong order are pooled until none are left. The value of a pool is the mean of its members, so each level is
calibrated. With a Lipschitz constant L the fit also changes by at most L (z_j - z_i) between any two points; see
`kernels.lipschitz`.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels import isotonic as kernels
from ..kernels.floats import Floats
from ..kernels.lipschitz import lipschitz_fit
from ..storage.fields import is_finite, is_vector
from ..storage.registry import storable, want

if TYPE_CHECKING:
    from collections.abc import Callable

NONE, ALL = np.uint64(0), np.uint64(2**64 - 1)  # masks of the indices of weights: one weight for all, or one each
LARGE = 1 << 17  # points from which a second thread is worth its cost
SMALL = 1 << 11  # points below which digits cost more than comparisons


@storable
@dataclass(frozen=True)
class Pools:
    """The pools of an isotonic fit, in ascending order of z.

    Attributes
    ----------
    left, right : ndarray
        The smallest and the largest z of each pool.
    value : ndarray
        The value of each pool: the weighted mean of its members, or with a Lipschitz constant the value where the fit
        is constant.
    weight : ndarray
        The total weight of each pool.
    count : ndarray of int
        The number of points of each pool; points of weight 0 are not counted.
    """

    left: Floats
    right: Floats
    value: Floats
    weight: Floats
    count: NDArray[np.int64]

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        sizes = {values.shape for values in fields.values()}
        want(len(sizes) == 1 and len(min(sizes)) == 1 and (0,) not in sizes, "pools must be vectors of one length")
        finite = all(is_finite(fields[name]) for name in ("left", "right", "value"))
        want(finite and bool((fields["left"] <= fields["right"]).all()), "pools must lie between finite numbers")

    def knots(self) -> tuple[Floats, Floats]:
        """Return the knots of the fit for plotting: z in ascending order, and the value at each."""
        two = self.left < self.right
        at = np.repeat(self.left, 1 + two)
        at[np.cumsum(1 + two) - 1] = self.right
        return at, np.repeat(self.value, 1 + two)


@storable
@dataclass(frozen=True)
class Isotonic:
    """An isotonic fit.

    Attributes
    ----------
    fit : ndarray
        The fitted value at every point, in the order given.
    pools : Pools
        The pools of the fit.
    increasing : bool
        Whether the fit is nondecreasing.
    """

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
    """Fit the monotone f that minimises Sigma w (y - f(z))^2, optionally with a Lipschitz constant.

    The fit is exact, in O(m) for ascending z and O(m log m) otherwise. Points of equal z share one value, and the order
    of the points does not matter, bit for bit. A point of weight 0 does not affect the fit; its value is interpolated.

    Parameters
    ----------
    z : array_like of shape (m,)
        Where the values were observed; finite numbers, at least one.
    y : array_like of shape (m,)
        The values; finite numbers.
    weight : array_like of shape (m,), default None
        Weights, at least 0 and not all 0; None is 1.
    increasing : bool or "auto", default True
        Whether f is nondecreasing or nonincreasing; "auto" chooses by the sign of the rank correlation.
    lipschitz : float, default None
        L above 0, such that |f(z_i) - f(z_j)| <= L |z_i - z_j|; None requires only that f is monotone.

    Returns
    -------
    Isotonic
        The fit and its pools.

    Raises
    ------
    ValueError
        If a number is not finite, a weight is negative, or all weights are 0.

    References
    ----------
    .. [1] M. Ayer, H. D. Brunk, G. M. Ewing, W. T. Reid, E. Silverman, "An empirical distribution function for
       sampling with incomplete information", Annals of Mathematical Statistics, 1955.
    .. [2] L. Yeganova, W. J. Wilbur, "Isotonic regression under Lipschitz constraint", Journal of Optimization Theory
       and Applications, 2009.

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
    z: Floats, y: Floats, w: Floats | None, sign: float, constant: float, *, values: bool = True
) -> tuple[Floats, Pools]:
    """Return the fit of checked points, in the order given (empty unless `values`), and its pools."""
    if w is not None and not w.all():
        keep = w > 0.0
        kept, pools = fit_pools(z[keep], y[keep], w[keep], sign, constant, values=values)
        fit = np.empty(z.size if values else 0)
        if values:
            fit[keep], fit[~keep] = kept, interpolate(*pools.knots(), np.ascontiguousarray(z[~keep]))
        return fit, pools
    ascends, strictly = kernels.ascending(z)
    order, at = None, z
    if not ascends:
        order, strictly = stable_order(z)
        y, w = take(y, order), None if w is None else take(w, order)
        if not strictly or constant < math.inf:  # otherwise z matters only at the ends of pools
            at = take(z, order)
    weights, mask = (np.ones(1), NONE) if w is None else (w, ALL)
    fit, weight, start = np.empty(z.size), np.empty(z.size), np.empty(z.size + 1, np.uint64)
    if constant == math.inf:
        count = kernels.pav(at[:0] if strictly else at, y, weights, mask, sign, fit, weight, start)
    else:
        where = np.empty(z.size)
        count = kernels.points(at, y, weights, mask, sign, where, fit, weight, start)
        fit[:count] = lipschitz_fit(where[:count], fit[:count], weight[:count], constant)
        count = kernels.join(fit, weight, start, count)
    first = start[: count + 1].astype(np.int64)
    left, right = first[:-1], first[1:] - 1
    if order is not None:
        left, right = order[left], order[right]
    pools = Pools(z[left], z[right], sign * fit[:count], weight[:count].copy(), np.diff(first))
    if not values:
        return np.empty(0), pools
    kernels.spread(fit, first, count, sign, fit)
    if order is None:
        return fit, pools
    out, indices = np.empty(z.size), order
    in_halves(lambda a, b: kernels.scatter(fit[a:b], indices[a:b], out), z.size)
    return out, pools


def argsort(z: Floats) -> NDArray[Any]:
    """Return the indices that sort z, in a stable order."""
    return stable_order(z)[0]


def stable_order(z: Floats) -> tuple[NDArray[Any], bool]:
    """Return the indices that sort z, in a stable order, and whether all z are known to be different.

    It sorts 64-bit numbers once, which have the leading bits of z above the index, in two threads if there are many.
    """
    m = z.size
    least, most = kernels.key_range(z)
    index_bits = (m - 1).bit_length()
    shift = np.uint64(max(0, (int(most) - int(least)).bit_length() + index_bits - 64))
    bits = np.uint64(index_bits)
    packed: NDArray[np.uint64] = np.empty(m, np.uint64)
    in_halves(lambda a, b: kernels.pack(z[a:b], least, shift, bits, a, packed[a:b]), m)
    half = m // 2
    if m >= LARGE and _threads() > 1:
        halves = [packed[:half], packed[half:]]

        def sort_half(k: int) -> None:
            halves[k] = radix_sort(halves[k], index_bits)

        in_two(sort_half, 2)
        (a, b), merged = halves, np.empty(m, np.uint64)
        i = kernels.split_point(a, b, half)
        pair = ((a[:i], b[: half - i], merged[:half]), (a[i:], b[half - i :], merged[half:]))
        in_two(lambda k: kernels.merge(*pair[k]), 2)
        packed = merged
    else:
        packed = radix_sort(packed, index_bits)
    order: NDArray[Any] = np.empty(m, np.uint32 if m < 1 << 32 else np.int64)
    settled, strictly = kernels.unpack(packed, z, shift, bits, order)
    if settled:
        return order, strictly
    return np.argsort(z, kind="stable").astype(order.dtype), False  # many z share their leading bits and yet differ


def radix_sort(a: NDArray[np.uint64], low: int) -> NDArray[np.uint64]:
    """Return the numbers in ascending order, by bits `low` and above. Numbers that agree in these bits must ascend
    already. `a` is overwritten."""
    if a.size < SMALL:
        a.sort()
        return a
    digit = int(kernels.DIGIT)
    counts, other = np.zeros((-(-(64 - low) // digit), 1 << digit), np.uint64), np.empty_like(a)
    kernels.count_digits(a, np.uint64(low), counts)
    for p, each in enumerate(counts):
        if each.max() < a.size:
            kernels.by_digit(a, np.uint64(low + p * digit), each, other)
            a, other = other, a
    return a


def take(a: Floats, order: NDArray[Any]) -> Floats:
    """Return the entries of a in this order."""
    out = np.empty(order.size)
    in_halves(lambda first, last: kernels.gather(a, order[first:last], out[first:last]), order.size)
    return out


def check_knots(knots: Any) -> None:
    """Refuse knots that are not a pair of vectors: nondecreasing positions and the values there."""
    known = isinstance(knots, tuple) and len(knots) == 2 and all(map(is_vector, knots))
    want(known and knots[0].size == knots[1].size > 0, "knots must be two vectors of one length")
    want(is_finite(knots[0]) and is_finite(knots[1]), "knots must be finite")
    want(bool((np.diff(knots[0]) >= 0.0).all()), "knots must ascend")


def interpolate(at: Floats, value: Floats, x: Floats) -> Floats:
    """Return the fit with these knots at x: linear between them, constant beyond."""
    out = np.empty(x.size)
    kernels.interpolate(x, at, value, out)
    return out


def _threads() -> int:
    return int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]  # made at import


def in_halves(work: Callable[[int, int], Any], count: int) -> list[Any]:
    """Call work(a, b) over 0..count, in two fixed halves if `count` is large, and return the results."""
    ends = (0, count) if count < LARGE else (0, count // 2, count)
    return in_two(lambda k: work(ends[k], ends[k + 1]), len(ends) - 1)


def in_two(work: Callable[[int], Any], parts: int) -> list[Any]:
    """Call work(0) and, if there are two parts, work(1), in a second thread if available, and return the results."""
    if parts < 2 or _threads() < 2:
        return [work(k) for k in range(parts)]
    with ThreadPoolExecutor(1) as other:
        second = other.submit(work, 1)
        return [work(0), second.result()]


# ---------------------------------------------------------------- checks


def check_points(z: ArrayLike, y: ArrayLike, weight: ArrayLike | None) -> tuple[Floats, Floats, Floats | None]:
    """Return z, y and weights as float64, or raise a ValueError that says what is wrong."""
    (zs, _), (ys, far) = _numbers("z", z), _numbers("y", y)
    if ys.shape != zs.shape:
        raise ValueError(f"z and y must have the same length, got {zs.size} and {ys.size}")
    ws = None if weight is None else _numbers("weight", weight)[0]
    if ws is not None:
        if ws.shape != zs.shape:
            raise ValueError(f"weight must have one number per point: {zs.size} points, got {ws.size}")
        if ws.min() < 0.0:
            bad = int((ws < 0.0).argmax())
            raise ValueError(f"weight[{bad}] = {float(ws[bad])!r} must be at least 0")
        if not ws.any():
            raise ValueError("all weights are zero: there is nothing to fit")
    check_size(zs.size if ws is None else total_weight(ws), far)
    return zs, ys, ws


def total_weight(w: Floats) -> float:
    """Return the sum of weights; infinity if it overflows."""
    with np.errstate(over="ignore"):
        return float(w.sum())


def check_size(total: float, largest: float) -> None:
    """Refuse a total weight and a largest |y| whose product overflows."""
    if not total * max(1.0, largest) < 1e300:
        raise ValueError(f"total weight {total:g} times max |y| {largest:g} overflows: scale weight or y")
    if total < 1e-290:
        raise ValueError(f"total weight {total:g} is too small to divide by: scale weight")


def _numbers(name: str, values: ArrayLike) -> tuple[Floats, float]:
    """Return a one-dimensional array of finite float64 numbers, and the largest absolute value."""
    out: Floats = np.require(values, np.float64, ("C", "W"))  # a read-only array would compile every loop again
    if out.ndim != 1 or np.ndim(values) != 1:
        raise ValueError(f"{name} must be one-dimensional, got {np.ndim(values)} dimensions")
    if out.size == 0:
        raise ValueError(f"{name} is empty: give at least one point")
    top = float(kernels.largest(out))
    if not top < math.inf:
        bad = int((~np.isfinite(out)).argmax())
        raise ValueError(f"{name}[{bad}] = {float(out[bad])!r} is not finite")
    return out, top


def check_lipschitz(value: Any) -> float:
    """Return the Lipschitz constant; infinity for None."""
    if value is None:
        return math.inf
    known = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not known or not value > 0.0:
        raise ValueError(f"lipschitz must be a number above 0, or None; got {value!r}")
    return float(value)


def check_increasing(increasing: Any, z: Floats, y: Floats, w: Floats | None) -> bool:
    """Return whether to fit a nondecreasing function."""
    if isinstance(increasing, (bool, np.bool_)):
        return bool(increasing)
    if increasing != "auto":
        raise ValueError(f"increasing must be True, False or 'auto'; got {increasing!r}")
    if w is not None and not w.all():
        z, y = z[w > 0.0], y[w > 0.0]
    return float(_ranks(z) @ _ranks(y)) >= 0.0


def _ranks(a: Floats) -> Floats:
    """Return the rank of each number minus the mean rank; ties share their mean."""
    order = argsort(a)
    out = np.empty(a.size)
    kernels.ranks(a, order, out)
    return out
