"""Known links u, nondecreasing and Lipschitz, through which a margin predicts a mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..kernels.floats import EPS, Floats
from ..online.parts import LINKS
from .isotonic import argsort, take


class LinkFunction(NamedTuple):
    """A link over arrays: u, its Lipschitz constant, and its integral (None if unknown)."""

    name: str
    u: Callable[[Floats], Floats]
    lipschitz: float
    integral: Callable[[Floats], Floats] | None


ROOT = math.sqrt(2.0 * math.pi)


def _expit(z: Floats) -> Floats:
    from scipy.special import expit  # which takes 0.1 s, and which most runs do not need

    return expit(z)


def _ndtr(z: Floats) -> Floats:
    from scipy.special import ndtr

    return ndtr(z)


def _clip(z: Floats) -> Floats:
    return np.clip(z, 0.0, 1.0)


FORMULAS: dict[str, tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]] = {  # u and its integral
    "identity": (lambda z: z, lambda z: 0.5 * z * z),
    "logistic": (_expit, lambda z: np.logaddexp(0.0, z)),
    "probit": (_ndtr, lambda z: z * _ndtr(z) + np.exp(-0.5 * z * z) / ROOT),
    "clipped": (_clip, lambda z: _clip(z) * (z - 0.5 * _clip(z))),
    "tanh": (lambda z: _expit(2.0 * z), lambda z: 0.5 * np.logaddexp(0.0, 2.0 * z)),
}
LINK_FUNCTIONS = {  # the links of the online learners: their names and constants are those of the losses
    name: LinkFunction(name, FORMULAS[name][0], LINKS[name].link_lipschitz, FORMULAS[name][1]) for name in LINKS
}


def own_link(function: Callable[..., Any], lipschitz: Any) -> LinkFunction:
    """Return the link of a user's own: a function of an array, or one of a number that numba can compile."""
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
    """Where the means at margins fall, or rise faster than declared, beyond rounding, in words; None if nowhere.

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
