"""Known links."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from .isotonic import argsort, taken

Floats = NDArray[np.float64]


class Link(NamedTuple):
    """A known nondecreasing link: u over an array, its Lipschitz constant, and its integral (None: not known)."""

    name: str
    u: Callable[[Floats], Floats]
    lipschitz: float
    integral: Callable[[Floats], Floats] | None


ROOT = math.sqrt(2.0 * math.pi)


def _clip(z: Floats) -> Floats:
    return np.clip(z, 0.0, 1.0)


LINKS = {
    link.name: link
    for link in (
        Link("identity", lambda z: z, 1.0, lambda z: 0.5 * z * z),
        Link("logistic", expit, 0.25, lambda z: np.logaddexp(0.0, z)),
        Link("probit", ndtr, 1.0 / ROOT, lambda z: z * ndtr(z) + np.exp(-0.5 * z * z) / ROOT),
        Link("clipped", _clip, 1.0, lambda z: _clip(z) * (z - 0.5 * _clip(z))),
        Link("tanh", lambda z: expit(2.0 * z), 0.5, lambda z: 0.5 * np.logaddexp(0.0, 2.0 * z)),
    )
}


def own_link(function: Callable[..., Any], lipschitz: Any) -> Link:
    """A user's link: a function of an array, or one of a number that numba can compile."""
    known = isinstance(lipschitz, (int, float, np.integer, np.floating)) and not isinstance(lipschitz, bool)
    if not known or not 0.0 < lipschitz < math.inf:
        raise ValueError(f"a link of your own needs its Lipschitz constant, lipschitz > 0; got {lipschitz!r}")
    whole = _over_arrays(function)

    def u(z: Floats) -> Floats:
        return np.asarray(whole(z.copy()), np.float64)

    return Link(getattr(function, "__name__", "own"), u, float(lipschitz), None)


@lru_cache(maxsize=64)
def _over_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself if it takes arrays, otherwise compiled to do so."""
    probe = np.array([-1.0, 0.0, 1.0])
    try:
        if np.shape(function(probe.copy())) == probe.shape:
            return function
    except (TypeError, ValueError):
        pass
    import numba

    try:
        whole: Callable[..., Any] = numba.vectorize(function)  # type: ignore[no-untyped-call]
        whole(probe)
    except Exception as error:
        raise ValueError(f"the link takes neither an array nor what numba can compile: {error}") from error
    return whole


def check_link(link: Link, z: Floats, mean: Floats) -> None:
    """Refuse a user's link that falls, rises faster than declared, or is not finite at the margins seen."""
    if mean.shape != z.shape or not np.isfinite(mean).all():
        bad = int((~np.isfinite(mean)).argmax()) if mean.shape == z.shape else 0
        seen = float(mean.flat[bad])
        raise ValueError(f"link {link.name!r} gives {seen!r} at z = {float(z[bad])!r}, which is not finite")
    order = argsort(z)
    z, mean = taken(z, order), taken(mean, order)
    rise, run = np.diff(mean), np.diff(z)
    room = 1e-12 * max(1.0, float(np.abs(mean).max()))
    for wrong, what in ((rise < -room, "falls"), (rise > link.lipschitz * run + room, "rises faster than lipschitz")):
        if wrong.any():
            k = int(wrong.argmax())
            raise ValueError(
                f"link {link.name!r} {what}: u({float(z[k])!r}) = {float(mean[k])!r}, "
                f"u({float(z[k + 1])!r}) = {float(mean[k + 1])!r} (lipschitz = {link.lipschitz:g})"
            )
