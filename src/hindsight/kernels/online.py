"""The online loop: predict a row, take the step, add up the facts."""

import numpy as np

from .compiler import inlined, kernel
from .simd import fuse, larger, smaller, wide

MOST = 1e292  # that a row may add to a fact: then the sum over fewer than 2^53 rows is finite
PROGRESS = np.dtype([("rounds", np.float64), ("reach", np.float64)], align=True)


def begin_progress(reach: float) -> np.ndarray:
    """The progress of a run before its first round: rounds played, and a bound on the entries of its state."""
    progress = np.zeros(1, PROGRESS).view(np.recarray)
    progress[0].reach = reach
    return progress


@inlined
def countable(loss, geometry, z, q, top, y, c):
    """Whether the loss, the squared gradient and the squared target of a row are finite, and so are their sums.

    If all numbers are moderate they are finite without a check, since losses grow no faster than e^(z^2).
    """
    if abs(z) < 16.0 and abs(y) + q + top + c < 1e20:
        return True
    slope = c * loss.slope(z, y)
    return abs(c * loss.value(z, y)) + slope * slope * geometry.dual_norm(q, top) + c * y * y < MOST


@inlined
def play_row(rows, t, y, c, loss, update, geometry, rate, state, run):
    """Predict row t and take its step: (whether it could be taken, margin, |x|_2^2, |x|_inf, rate, step).

    A row of weight 0 is predicted but not learnt. If the row, its loss or its step is not finite, or its indices do not
    ascend or are not below the width, the state does not change.
    """
    rows.ready(t)
    z, q, top = geometry.dot(state, rows, t)
    eta, d = 0.0, 0.0
    fine = abs(z) + q < np.inf
    if fine and c != 0.0:
        fine = countable(loss, geometry, z, q, top, y, c)
    if fine and c != 0.0:
        eta = rate.at(run.rounds + 1.0)
        a = eta * c
        geometry.keep_pace(state, eta)
        d = -a * update.effective_slope(loss, geometry, state, rows, t, z, q, y, a)
        # `reach` bounds the numbers of the state from above; it is made exact before a step is refused.
        far, reach = abs(d) * top * geometry.reach(state), run.reach
        if not reach + far < geometry.limit():
            reach = geometry.largest(state)
            fine = reach + far < geometry.limit() or d == 0.0
        if fine:
            run.reach = reach + far
            run.rounds += 1.0
            geometry.tick(state)
            geometry.step(loss, state, rows, t, z, y, c, d)
    return fine, z, q, top, eta, d


# What a replay notes of each round: the step d, what the state says it added to the conjugate of the potential, the
# margin after it, and what rounding may have added to that change; or the step alone, where there is room for no more.
# Without room for any round nothing is noted.
TAKEN, ADDED, AFTER, ROUNDED = range(4)
NO_NOTES = np.empty((0, 4))


@inlined
def note_round(notes, geometry, state, rows, t, i, mark, z, d):
    """Record round i, in which row t was played; `mark` is the mark of the state before it."""
    after = geometry.dot(state, rows, t)[0]
    notes[i, TAKEN], notes[i, AFTER] = d, after
    notes[i, ADDED] = geometry.conjugate_change(state, mark, d, z, after)
    notes[i, ROUNDED] = geometry.rounding(state, rows, t, d)


@kernel
def play(rows, first, last, y, c, loss, update, geometry, rate, state, progress, z, q, top, facts, notes):
    """Play rows first..last: for each, margin and norms into z, q = |x|_2^2 and top = |x|_inf, then the step.

    Returns the number of rows played, which is smaller if a row cannot be played (see `play_row`). A first row that
    only sets the start is not a round. The facts of the rounds are plain sums in the order played, so that they do not
    depend on the sizes of chunks; they are held in local variables meanwhile.
    """
    wide()
    run = progress[0]
    constant, noting, mark = rate.is_constant(), notes.shape[0] != 0, (0.0, 0.0)
    whole = noting and notes.shape[1] == 4
    sums = read_sums(facts)
    played = last - first
    for i in range(last - first):
        if whole:
            mark = geometry.mark(state)
        opening = geometry.opens(state, rows)
        fine, zi, qi, ti, eta, d = play_row(rows, first + i, y[i], c[i], loss, update, geometry, rate, state, run)
        z[i], q[i], top[i] = zi, qi, ti
        if not fine:
            played = i
            break
        if c[i] == 0.0:
            continue
        if opening:
            continue
        if whole:
            note_round(notes, geometry, state, rows, first + i, i, mark, zi, d)
        elif noting:
            notes[i, TAKEN] = d
        sums = tally(loss, geometry, zi, qi, ti, y[i], c[i], sums)
        if not constant:
            tally_rate(loss, geometry, zi, qi, ti, y[i], c[i], eta, facts)
    write_sums(facts, sums)
    if constant:
        tally_constant(rate.eta, facts)
    return played


# ---------------------------------------------------------------- facts


@inlined
def read_sums(facts):
    """The sums and maxima that every round changes, as local variables."""
    f = facts[0]
    return (
        f.rounds,
        f.weight,
        f.loss,
        f.square,
        f.mistakes,
        f.mistake_weight,
        f.mistake_norm,
        f.target,
        f.gradient,
        f.order_margin,
        f.order_norm,
        f.x2,
        f.xinf,
        f.weight_x2,
        f.weight_xinf,
        f.weight_max,
        f.target_max,
    )


@inlined
def write_sums(facts, sums):
    f = facts[0]
    f.rounds, f.weight, f.loss, f.square, f.mistakes, f.mistake_weight, f.mistake_norm, f.target, f.gradient = sums[:9]
    f.order_margin, f.order_norm = sums[9:11]
    f.x2, f.xinf, f.weight_x2, f.weight_xinf, f.weight_max, f.target_max = sums[11:]


@inlined
def tally(loss, geometry, z, q, top, y, c, sums):
    """The sums and maxima of the facts with one more round."""
    rounds, weight, total, square, wrong, wrong_c, wrong_q, target, gradients = sums[:9]
    order_z, order_q, x2, xinf, cx2, cxinf, cmax, ymax = sums[9:]
    t = rounds + 1.0
    slope, error = c * loss.slope(z, y), loss.error(z, y)
    miss = 1.0 if loss.wrong(z, y) else 0.0  # no branch: it could not be predicted
    return (
        t,
        weight + c,
        fuse(c, loss.value(z, y), total),
        fuse(c * error, error, square),
        wrong + miss,
        fuse(miss, c, wrong_c),
        fuse(miss * c, c * q, wrong_q),
        fuse(c * y, y, target),
        gradients + slope * slope * geometry.dual_norm(q, top),  # rounded twice, in every kernel that plays
        fuse(t * z, z, order_z),
        fuse(t, q, order_q),
        larger(x2, q),
        larger(xinf, top),
        larger(cx2, c * q),
        larger(cxinf, c * top * top),
        larger(cmax, c),
        larger(ymax, abs(y)),
    )


@inlined
def tally_rate(loss, geometry, z, q, top, y, c, eta, facts):
    """Add a round to the facts that contain the rate, for changing rates."""
    f = facts[0]
    slope = c * loss.slope(z, y)
    f.rate += eta
    f.rate_loss += eta * (c * loss.value(z, y))
    f.rate_gradient += eta * eta * (slope * slope * geometry.dual_norm(q, top))
    f.rate_x2, f.rate_xinf = larger(f.rate_x2, eta * (c * q)), larger(f.rate_xinf, eta * (c * top * top))
    f.rate_max, f.rate_min = larger(f.rate_max, eta), smaller(f.rate_min, eta)


@inlined
def tally_constant(eta, facts):
    """Set the facts that contain the rate, for a constant rate."""
    f = facts[0]
    if f.rounds > 0.0:
        f.rate, f.rate_loss = eta * f.rounds, eta * f.loss
        f.rate_gradient = eta * eta * f.gradient if f.gradient > 0.0 else 0.0  # the square of a rate may be infinite
        f.rate_x2, f.rate_xinf, f.rate_max, f.rate_min = eta * f.weight_x2, eta * f.weight_xinf, eta, eta


# ---------------------------------------------------------------- what margins mean


@kernel
def largest(geometry, state):
    """The largest number of the state, which bounds it until the first step."""
    return geometry.largest(state)


@kernel
def margin(rows, geometry, state):
    """The margin of the one row of `rows`."""
    rows.ready(0)
    return geometry.dot(state, rows, 0)[0]


@kernel
def moderate(rows):
    """Whether every value of the single row of `rows` is 0 or has powers that neither overflow nor underflow."""
    fine = True
    a, b = rows.span(0)
    for k in range(a, b):
        size = abs(rows.entry(0, k))
        fine &= size == 0.0 or 1e-30 < size < 1e30
    return fine


@kernel
def losses(loss, z, y, out):
    """The loss of each round."""
    for t in range(z.size):
        out[t] = loss.value(z[t], y[t])


@kernel
def slopes(loss, z, y, out):
    """The slope in z of each round."""
    for t in range(z.size):
        out[t] = loss.slope(z[t], y[t])


@kernel
def curvatures(loss, z, out):
    """The second derivative at each margin."""
    for t in range(z.size):
        out[t] = loss.curvature(z[t])


@kernel
def means(loss, z, out):
    """The prediction of each margin."""
    for t in range(z.size):
        out[t] = loss.mean(z[t])
