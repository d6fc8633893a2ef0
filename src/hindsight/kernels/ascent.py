"""Dual coordinate ascent over rows: the loop behind the rivals of loss bounds."""

from .compiler import kernel
from .floats import EPS


@kernel
def ascend(rows, order, y, a, b, loss, geometry, kappa, state, alpha, conjugate):
    """Visit the rows in order and update alpha, conjugate = -a phi*(alpha/a), and the geometry's state."""
    for i in range(order.size):
        t = order[i]
        if a[t] == 0.0:
            continue
        margin = geometry.dot(state, rows, t)[0]
        before = margin + b[t] * alpha[t]
        g = loss.implicit(before, y[t], a[t] * b[t])
        z = before - b[t] * a[t] * g
        slope = loss.slope(z, y[t])
        if slope != g:
            # The equality needs g to be a slope at z, or between the slopes on both sides of a kink there;
            # an inexact implicit slope is replaced by bisection between 0 and the explicit one.
            h = 16.0 * EPS * (abs(before) + abs(before - z))
            if not loss.slope(z - h, y[t]) <= g <= loss.slope(z + h, y[t]):
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
        conjugate[t] = a[t] * loss.value(z, y[t]) - new * z
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
