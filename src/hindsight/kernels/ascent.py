"""Dual coordinate ascent over rows: the loop behind the comparators of loss bounds."""

from .compiler import helper, kernel
from .floats import EPS


@helper
def nearest_slope(loss, y, g, left, right):
    """A point between `left` and `right` where the slope is about g, and how much phi - g z varies there.

    The given interval is only as wide as a rounding error of larger margins, so a few bisections reach the last digit.
    """
    for _ in range(60):
        middle = 0.5 * (left + right)
        if middle == left or middle == right:
            break
        if loss.slope(middle, y) < g:
            left = middle
        else:
            right = middle
    return right, (right - left) * (loss.slope(right, y) - loss.slope(left, y))


@kernel
def ascend(rows, order, y, a, b, loss, geometry, kappa, state, alpha, conjugate):
    """Visit the rows in order and update alpha, conjugate = -a phi*(alpha/a), and the geometry's state.

    By the Fenchel equality -phi*(g) = phi(z) - g z if g is a slope at z. If g is only known to be a slope at some point
    between two points, this is too large by at most their distance times the difference of their slopes. That amount is
    subtracted, and so is a bound on the rounding error.
    """
    for i in range(order.size):
        t = order[i]
        if a[t] == 0.0:
            continue
        margin = geometry.dot(state, rows, t)[0]
        before = margin + b[t] * alpha[t]
        g = loss.implicit(before, y[t], a[t] * b[t])
        z = before - b[t] * a[t] * g
        over = 0.0
        if loss.slope(z, y[t]) != g:
            h = 16.0 * EPS * (abs(before) + abs(before - z))
            if loss.slope(z - h, y[t]) <= g <= loss.slope(z + h, y[t]):
                z, over = nearest_slope(loss, y[t], g, z - h, z + h)
            else:  # an inexact implicit slope: bisection between 0 and the explicit one
                near, far = 0.0, loss.slope(before, y[t])
                for _ in range(60):
                    g = 0.5 * (near + far)
                    z = before - b[t] * a[t] * g
                    if (g - loss.slope(z, y[t])) * far < 0.0:
                        near = g
                    else:
                        far = g
                g = loss.slope(z, y[t])
        new = a[t] * g
        value = a[t] * loss.value(z, y[t])
        conjugate[t] = value - new * z - a[t] * over - 4.0 * EPS * (abs(value) + abs(new * z))
        d = new - alpha[t]
        if d != 0.0:
            geometry.step(loss, state, rows, t, margin, y[t], 1.0, -d / kappa)
            alpha[t] = new


@kernel
def hinge_along(m, c, rho):  # type: ignore[no-untyped-def]
    """The hinge loss of rho d, and its slope in rho, for margins m along d."""
    total, slope = 0.0, 0.0
    for t in range(m.size):
        short = 1.0 - rho * m[t]
        if short > 0.0:
            total += c[t] * short
            slope -= c[t] * m[t]
    return total, slope
