"""Members of a panel that process each row together: what depends only on the rows is computed once for all of them.

The numbers of all members for one coordinate are adjacent, so that memory is read once, with one SIMD lane per member.
Each member performs the same operations in the same order as it would alone.
"""

from typing import NamedTuple

import numpy as np

from .compiler import inlined, kernel
from .diagonal_newton import shrinkage
from .online import countable, read_sums, tally, tally_constant, write_sums
from .rows import ascends
from .running import meet_target, scales, spread_of
from .simd import alike, beside, larger, load, over, plus, root, smaller, store, times, wide


class RunningRows(NamedTuple):
    """The parts of the state of running members that depend only on rows and targets; see `RunningState`."""

    largest_x: np.ndarray
    power: np.ndarray
    nonzeros: np.ndarray
    base: np.ndarray
    low: np.ndarray
    high: np.ndarray
    steep: np.ndarray
    heaviest: np.ndarray
    begun: np.ndarray


class DiagonalRows(NamedTuple):
    """The same for diagonal Newton members."""

    largest_x: np.ndarray
    base: np.ndarray
    low: np.ndarray
    high: np.ndarray
    steep: np.ndarray
    begun: np.ndarray


class Out(NamedTuple):
    """The outputs: `own` has three numbers for each member of the panel and row; `places` are the members' indices.

    A fourth number, if there is room, is the step. `z`, `q`, `d` and `bends` (curvatures) belong to the current row,
    with one number for each member that plays.
    """

    own: np.ndarray
    places: np.ndarray
    z: np.ndarray
    q: np.ndarray
    d: np.ndarray
    bends: np.ndarray


@inlined
def note(out, i, top, loss, geometry, y, c):
    """Write margins and norms of row i; return whether they, and the losses if it is learnt, are finite."""
    fine = True
    for m in range(out.z.size):
        place = out.places[m]
        out.own[place, 0, i], out.own[place, 1, i], out.own[place, 2, i] = out.z[m], out.q[m], top
        fine &= abs(out.z[m]) + out.q[m] < np.inf
        if c != 0.0:
            fine &= countable(loss, geometry, out.z[m], out.q[m], top, y, c)
    return fine


@inlined
def advance(out, i, progress, top):
    """Count round i and bound how far the steps went; return whether they are finite."""
    for m in range(out.z.size):
        if not progress[m].reach + abs(out.d[m]) * top < np.inf:
            return False
    if out.own.shape[1] > 3:
        for m in range(out.z.size):
            out.own[out.places[m], 3, i] = out.d[m]
    for m in range(out.z.size):
        progress[m].reach += abs(out.d[m]) * top
        progress[m].rounds += 1.0
    return True


@inlined
def tally_members(loss, geometry, out, y, c, played, opened, facts):
    """Add up the facts of the rounds, member by member, as `online.play` does."""
    for m in range(out.z.size):
        own, mine = out.places[m], facts[m : m + 1]
        sums = read_sums(mine)
        for i in range(played):
            if c[i] != 0.0 and i != opened:
                z, q, top = out.own[own, 0, i], out.own[own, 1, i], out.own[own, 2, i]
                sums = tally(loss, geometry, z, q, top, y[i], c[i], sums)
        write_sums(mine, sums)
        tally_constant(1.0, mine)


# ---------------------------------------------------------------- running


@inlined
def predict_running(lanes, scale, state, numbers, fresh, j, k, x, steep):
    """`lanes` (margins and norms) with coordinate j, whose metrics go to place k of `fresh`."""
    z, q = lanes
    mean, top = spread_of(state, j, x)
    reach, at = steep * top, np.int64(j) * 3 * fresh.shape[1]
    size = fresh.shape[1]
    theta, metric, squares = load(z, numbers, at), load(z, numbers, at + size), load(z, numbers, at + 2 * size)
    new = times(times(alike(z, mean), root(plus(squares, alike(z, reach * reach)))), scale)
    a = larger(metric, new)
    store(fresh, np.int64(k) * size, a)
    value = alike(z, x)
    ratio = over(value, a)
    return plus(z, times(theta, ratio)), plus(q, times(value, ratio))


@inlined
def learn_running(d, state, numbers, fresh, j, k, x, known):
    """What a row leaves behind in coordinate j."""
    size = fresh.shape[1]
    at = np.int64(j) * 3 * size
    if known:
        store(numbers, at + size, load(d, fresh, np.int64(k) * size))
    g = times(d, alike(d, x))
    store(numbers, at, plus(load(d, numbers, at), g))
    store(numbers, at + 2 * size, plus(load(d, numbers, at + 2 * size), times(g, g)))
    state.largest_x[j] = larger(state.largest_x[j], abs(x))
    state.power[j] += x * x
    state.nonzeros[j] += 1.0


@inlined
def margins_running(rows, t, etas, declared, state, numbers, fresh, out):
    """Margins and norms of row t into `out`; the largest |x|."""
    last = state.largest_x.size - 1
    if not ascends(rows, t, last + 1):
        out.z[:], out.q[:] = np.nan, np.inf
        return 0.0
    span, steep = scales(state, declared)
    etas = beside(etas)
    scale = over(alike(etas, 1.0), times(etas, alike(etas, span)))
    z, q, top, check = alike(etas, state.base[0]), alike(etas, 0.0), 0.0, 0.0
    a, b = rows.span(t)
    for k in range(a, b):
        x = np.float64(rows.entry(t, k))
        top = larger(top, abs(x))
        check += 0.0 * x
        if span > 0.0 and x * x != 0.0:
            z, q = predict_running((z, q), scale, state, numbers, fresh, rows.index(k), k - a, x, steep)
    if rows.bias != 0.0:
        top = larger(top, rows.bias)
        if span > 0.0:
            z, q = predict_running((z, q), scale, state, numbers, fresh, last, b - a, rows.bias, steep)
    store(out.z, 0, z)
    store(out.q, 0, plus(q, alike(q, check)))
    return top


@kernel
def play_running(
    rows, first, last, y, c, loss, geometry, etas, declared, state, numbers, fresh, progress, facts, out
):  # fmt: skip
    """Play rows first..last with all running members, and return how many were played; see `online.play`."""
    wide()
    played, opened, end = last - first, -1, state.largest_x.size - 1
    like = beside(etas)
    for i in range(last - first):
        t = first + i
        rows.ready(t)
        top = margins_running(rows, t, etas, declared, state, numbers, fresh, out)
        fine = note(out, i, top, loss, geometry, y[i], c[i])
        if fine and c[i] != 0.0:
            span, _ = scales(state, declared)
            known = span > 0.0
            out.d[:] = 0.0
            if known:
                loss.implicit_each(like, out.z, y[i], c[i], out.q, out.d)
            for m in range(out.z.size):
                out.d[m] *= -c[i]
            fine = advance(out, i, progress, top)
            if fine:
                state.heaviest[0] = larger(state.heaviest[0], c[i])
                if meet_target(loss, state, rows, y[i], declared):
                    d = load(like, out.d, 0)
                    a, b = rows.span(t)
                    for k in range(a, b):
                        x = np.float64(rows.entry(t, k))
                        if x * x != 0.0:
                            learn_running(d, state, numbers, fresh, rows.index(k), k - a, x, known)
                    if rows.bias != 0.0:
                        learn_running(d, state, numbers, fresh, end, b - a, rows.bias, known)
                else:
                    opened = i
        if not fine:
            played = i
            break
    tally_members(loss, geometry, out, y, c, played, opened, facts)
    return played


# ---------------------------------------------------------------- diagonal Newton


@inlined
def divisor_of(priors, kappas, curved, top):
    """The divisors of all members if the accumulated curvature, including the row, is `curved`."""
    size = alike(priors, top)
    return plus(times(times(priors, size), size), times(kappas, curved))


@inlined
def curved_with(curvature, curved, x):
    """The accumulated curvature, including the row."""
    value = alike(curvature, x)
    return plus(curved, times(times(curvature, value), value))


@inlined
def predict_diagonal(z, state, numbers, j, x, size):
    """`z` with coordinate j."""
    w = load(z, numbers, np.int64(j) * 2 * size)
    return plus(z, times(times(w, alike(z, shrinkage(state, j, x))), alike(z, x)))


@inlined
def margins_diagonal(rows, t, priors, state, numbers, out):
    """Margins and norms of row t into `out`; the largest |x|."""
    size, last = out.z.size, state.largest_x.size - 1
    if not ascends(rows, t, last + 1):
        out.z[:], out.q[:] = np.nan, np.inf
        return 0.0
    z, q, top = alike(beside(priors), state.base[0]), 0.0, 0.0
    a, b = rows.span(t)
    for k in range(a, b):
        x = np.float64(rows.entry(t, k))
        if x * x == 0.0:
            continue
        z = predict_diagonal(z, state, numbers, rows.index(k), x, size)
        q += x * x
        top = larger(top, abs(x))
    if rows.bias != 0.0:
        z = predict_diagonal(z, state, numbers, last, rows.bias, size)
        q += rows.bias * rows.bias
        top = larger(top, rows.bias)
    store(out.z, 0, z)
    out.q[:] = q
    return top


@inlined
def solve_diagonal(inside, priors, kappas, curvature, state, numbers, j, x, size):
    """`inside`, the sum of x^2 over the divisors, with coordinate j."""
    top, value = larger(state.largest_x[j], abs(x)), alike(inside, x)
    curved = curved_with(curvature, load(inside, numbers, (np.int64(j) * 2 + 1) * size), x)
    return plus(inside, times(value, over(value, divisor_of(priors, kappas, curved, top))))


@inlined
def learn_diagonal(d, priors, kappas, curvature, state, numbers, j, x, size):
    """What a row leaves behind in coordinate j."""
    top, at = larger(state.largest_x[j], abs(x)), np.int64(j) * 2 * size
    curved = curved_with(curvature, load(d, numbers, at + size), x)
    w = times(load(d, numbers, at), alike(d, shrinkage(state, j, x)))
    store(numbers, at, plus(w, times(d, over(alike(d, x), divisor_of(priors, kappas, curved, top)))))
    store(numbers, at + size, curved)
    state.largest_x[j] = top


@inlined
def slopes_diagonal(rows, t, y, c, loss, priors, kappas, declared, state, numbers, out):
    """The steps of all members on row t into `out`."""
    size, last = out.z.size, state.largest_x.size - 1
    if declared == 0.0 and state.begun[0] == 0.0 and rows.bias != 0.0:
        out.d[:] = -c * 0.0
        return
    for m in range(size):
        z = out.z[m] if declared != 0.0 else smaller(larger(out.z[m], state.low[0]), state.high[0])
        out.d[m], out.bends[m] = z, c * loss.curvature(z)
    priors, kappas = beside(priors), beside(kappas)
    curvature, inside = load(priors, out.bends, 0), alike(priors, 0.0)
    a, b = rows.span(t)
    for k in range(a, b):
        x = np.float64(rows.entry(t, k))
        if x * x != 0.0:
            inside = solve_diagonal(inside, priors, kappas, curvature, state, numbers, rows.index(k), x, size)
    if rows.bias != 0.0:
        inside = solve_diagonal(inside, priors, kappas, curvature, state, numbers, last, rows.bias, size)
    store(out.q, 0, inside)  # margins and norms are noted already
    store(out.z, 0, load(inside, out.d, 0))
    loss.implicit_each(inside, out.z, y, c, out.q, out.d)
    for m in range(size):
        out.d[m] *= -c


@kernel
def play_diagonal(
    rows, first, last, y, c, loss, geometry, priors, kappas, declared, state, numbers, progress, facts, out
):  # fmt: skip
    """Play rows first..last with all diagonal Newton members, and return how many were played; see `online.play`."""
    wide()
    played, opened, end, size = last - first, -1, state.largest_x.size - 1, out.z.size
    all_priors, all_kappas = beside(priors), beside(kappas)
    for i in range(last - first):
        t = first + i
        rows.ready(t)
        top = margins_diagonal(rows, t, priors, state, numbers, out)
        fine = note(out, i, top, loss, geometry, y[i], c[i])
        if fine and c[i] != 0.0:
            slopes_diagonal(rows, t, y[i], c[i], loss, priors, kappas, declared, state, numbers, out)
            fine = advance(out, i, progress, top)
            if fine and meet_target(loss, state, rows, y[i], declared):
                d, curvature = load(all_priors, out.d, 0), load(all_priors, out.bends, 0)
                a, b = rows.span(t)
                for k in range(a, b):
                    x = np.float64(rows.entry(t, k))
                    if x * x != 0.0:
                        learn_diagonal(d, all_priors, all_kappas, curvature, state, numbers, rows.index(k), x, size)
                if rows.bias != 0.0:
                    learn_diagonal(d, all_priors, all_kappas, curvature, state, numbers, end, rows.bias, size)
            elif fine:
                opened = i
        if not fine:
            played = i
            break
    tally_members(loss, geometry, out, y, c, played, opened, facts)
    return played
