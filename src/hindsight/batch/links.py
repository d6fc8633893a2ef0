"""Known links u, nondecreasing and Lipschitz, which map a margin to a mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from ..kernels.floats import EPS, Floats
from ..online.margins import each_loss, each_mean
from ..online.parts import LINKS
from .isotonic import argsort, take


class LinkFunction(NamedTuple):
    """A link as a function of arrays: u, its Lipschitz constant, and its integral (None if unknown)."""

    name: str
    u: Callable[[Floats], Floats]
    lipschitz: float
    integral: Callable[[Floats], Floats] | None


def link_of(loss: Any) -> LinkFunction:
    """Return the link of a matching loss; its integral is the loss for the target 0."""

    def integral(z: Floats) -> Floats:
        return each_loss(loss, z, np.zeros(z.size))

    return LinkFunction(loss.link, partial(each_mean, loss), loss.link_lipschitz, integral)


LINK_FUNCTIONS = {name: link_of(loss) for name, loss in LINKS.items()}


def own_link(function: Callable[..., Any], lipschitz: Any) -> LinkFunction:
    """Return a user-defined link, from a function of arrays or a function of numbers that numba can compile."""
    known = isinstance(lipschitz, (int, float, np.integer, np.floating)) and not isinstance(lipschitz, bool)
    if not known or not 0.0 < lipschitz < math.inf:
        raise ValueError(f"a link of your own needs its Lipschitz constant, lipschitz > 0; got {lipschitz!r}")
    over_arrays = _over_arrays(function)

    def u(z: Floats) -> Floats:
        return np.asarray(over_arrays(z.copy()), np.float64)

    return LinkFunction(getattr(function, "__name__", "own"), u, float(lipschitz), None)


@lru_cache(maxsize=64)
def _over_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function itself if it takes arrays, otherwise compiled to do so."""
    probe = np.array([-1.0, 0.0, 1.0])
    try:
        if np.shape(function(probe.copy())) == probe.shape:
            return function
    except (TypeError, ValueError):
        pass
    import numba

    try:
        vectorised: Callable[..., Any] = numba.vectorize(function)  # type: ignore[no-untyped-call]
        vectorised(probe)
    except Exception as error:
        raise ValueError(f"the link must take an array, or be a function that numba can compile: {error}") from error
    return vectorised


def check_link(link: LinkFunction, z: Floats, mean: Floats) -> None:
    """Refuse a user's link that decreases, grows faster than declared, or is not finite at the margins seen."""
    if mean.shape != z.shape or not np.isfinite(mean).all():
        bad = int((~np.isfinite(mean)).argmax()) if mean.shape == z.shape else 0
        seen = float(mean.flat[bad])
        raise ValueError(f"link {link.name!r} gives {seen!r} at z = {float(z[bad])!r}, which is not finite")
    fault = link_fault(z, mean, link.lipschitz)
    if fault is not None:
        raise ValueError(f"link {link.name!r} {fault}")


def link_fault(z: Floats, mean: Floats, lipschitz: float) -> str | None:
    """Describe where the means decrease, or grow faster than declared, by more than rounding; None if nowhere.

    Every pair of margins is compared: u and lipschitz z - u must both be nondecreasing along z.
    """
    order = argsort(z)
    z, mean = take(z, order), take(mean, order)
    room = 1e-12 * max(1.0, float(np.abs(mean).max()))
    slack = room + 4.0 * EPS * lipschitz * float(np.abs(z).max())
    for values, most, what in ((mean, room, "falls"), (lipschitz * z - mean, slack, "rises faster than lipschitz")):
        wrong = np.maximum.accumulate(values) - values > most
        if wrong.any():
            k = int(wrong.argmax())
            j = int(values[:k].argmax())
            return (
                f"{what}: u({float(z[j])!r}) = {float(mean[j])!r}, "
                f"u({float(z[k])!r}) = {float(mean[k])!r} (lipschitz = {lipschitz:g})"
            )
    return None
