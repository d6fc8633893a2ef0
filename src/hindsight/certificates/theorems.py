"""The theorems: what each says, where it stands, and its bound: the only place where a bound is written.

Every bound holds for every comparator u, so the functions take what is known of u. The forms are general: norms
explicit, weights c_t, a start w_1, rates that change. A weight multiplies the loss. Functions take numbers, or arrays
with the sums after each round, and give the bound after each. ``docs/theory.md`` has statements and proofs.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ..storage.registry import storable

Sums = TypeVar("Sums", float, np.ndarray)  # a sum, or the sums after each round


@storable
class Verdict(enum.Enum):
    """What a certificate says of its bound."""

    HOLDS = "HOLDS"  # measured <= bound, every assumption was checked on this very data
    VOID = "VOID"  # an assumption is not met, so nothing is promised
    UNCHECKABLE = "UNCHECKABLE"  # no theorem here, or one whose assumption no data can show
    BROKEN = "BROKEN"  # measured > bound: a bug of ours


@storable
@dataclass(frozen=True)
class Theorem:
    """A theorem: its name, who proved it, what it says for every u, and its section of the theory page.

    Attributes
    ----------
    name, source, statement : str
        As shown in certificates.
    anchor : str
        Of the section of ``docs/theory.md``.
    own : str
        What its bound takes from the run, in words: another rate would have met others.
    """

    name: str
    source: str
    statement: str
    anchor: str = ""
    own: str = ""


WIDROW_HOFF = Theorem(
    "Widrow-Hoff", "Cesa-Bianchi, Long, Warmuth 1996", "L ≤ L_u/(1 − ηX²) + |u − w₁|²/η", "widrow-hoff"
)
WIDROW_HOFF_MET = Theorem(
    "Widrow-Hoff, as met", "Cesa-Bianchi, Long, Warmuth 1996",
    "L ≤ Σ gₜ²/(1 − η|xₜ|²) + (|u − w₁|² − |u − w₍T₊₁₎|²)/η", "norms-and-distances-as-met", "norms at their largest",
)  # fmt: skip
WIDROW_HOFF_PLAIN = Theorem(
    "Widrow-Hoff, changing rates, as met", "Cesa-Bianchi, Long, Warmuth 1996",
    "L ≤ Σ gₜ²/(1 − ηₜ|xₜ|²) + Σ (|u − wₜ|² − |u − wₜ₊₁|²)/ηₜ", "norms-and-distances-as-met",
)  # fmt: skip
WIDROW_HOFF_RATES = Theorem(
    "Widrow-Hoff, changing rates", "Cesa-Bianchi, Long, Warmuth 1996",
    "Σ ηₜℓₜ² ≤ |u − w₁|² + Σ ηₜgₜ²/(1 − ηₜ|xₜ|²)", "widrow-hoff-rates",
)  # fmt: skip
IMPLICIT = Theorem(
    "implicit Widrow-Hoff", "Kivinen, Warmuth 1997", "L ≤ (1 + ηX²)(L_u + |u − w₁|²/η)", "implicit-widrow-hoff"
)
IMPLICIT_MET = Theorem(
    "implicit Widrow-Hoff, as met", "Kivinen, Warmuth 1997",
    "L ≤ (1 + ηX²)(L_u + (|u − w₁|² − |u − w₍T₊₁₎|²)/η)", "norms-and-distances-as-met",
)  # fmt: skip
EG = Theorem(
    "exponentiated gradient", "Kivinen, Warmuth 1997", "L ≤ L_u/(1 − η(U·X∞)²) + 2 RE(u‖w₁)/η",
    "exponentiated-gradient",
)  # fmt: skip
EG_MET = Theorem(
    "exponentiated gradient, as met", "Kivinen, Warmuth 1997",
    "L ≤ Σ gₜ²/(1 − ηVₜ) + 2 (RE(u‖w₁) − RE(u‖w₍T₊₁₎))/η", "normalisers-as-met", "norms at their largest",
)  # fmt: skip
CONVEX = Theorem(
    "descent on a convex loss", "Zinkevich 2003", "Σ loss(wₜ) ≤ Σ loss(u) + D(u, w₁)/η + (η/2) Σ|gₜ|∗²",
    "convex-descent", "gradients",
)  # fmt: skip
CONVEX_MET = Theorem(
    "descent on a convex loss, as met", "Zinkevich 2003",
    "Σ loss(wₜ) ≤ Σ loss(u) + (D(u, w₁) − D(u, w₍T₊₁₎))/η + (η/2) Σ|gₜ|∗²", "norms-and-distances-as-met", "gradients",
)  # fmt: skip
CONVEX_PLAIN = Theorem(
    "descent, changing rates, as met", "Zinkevich 2003",
    "Σ loss(wₜ) ≤ Σ loss(u) + Σ (D(u, wₜ) − D(u, wₜ₊₁))/ηₜ + ½ Σ ηₜ|gₜ|∗²", "norms-and-distances-as-met", "gradients",
)  # fmt: skip
CONVEX_RATES = Theorem(
    "descent, changing rates", "Zinkevich 2003", "Σ ηₜ loss(wₜ) ≤ Σ ηₜ loss(u) + D(u, w₁) + ½ Σ ηₜ²|gₜ|∗²",
    "convex-descent-rates", "gradients",
)  # fmt: skip
PERCEPTRON_NOISY = Theorem(
    "perceptron, any data", "Novikoff 1962, with hinge losses", "M ≤ H + |u|√(Σ over mistakes of |x|²)", "perceptron"
)
PERCEPTRON_SCALE_FREE = Theorem(
    "perceptron, scale-free", "Novikoff 1962, in the metric of the run",
    "M ≤ H + √(Σ Mᵢ²uᵢ²) √(Σ over mistakes of Σ xᵢ²/Mᵢ²)", "scale-free",
)  # fmt: skip
WINNOW = Theorem("Winnow", "Littlestone 1988", "M ≤ (RE(u‖w₁) + η H_δ)/(ηδ − ln cosh(ηX∞))", "winnow", "mistakes")
WINNOW_MET = Theorem(
    "Winnow, as met", "Littlestone 1988",
    "M ≤ (RE(u‖w₁) + η H_δ)/(ηδ − N), N the mean of ln Σ pᵢe^(ηyxᵢ) over the mistakes",
    "normalisers-as-met", "mistakes",
)  # fmt: skip
GLM_TRON = Theorem(
    "GLM-tron", "Kakade, Kalai, Kanade, Shamir 2011", "Σ(y − ŷ)² ≤ |w* − w₁|²/(η(2/λ − ηX²))", "glm-tron"
)
NONE = Theorem("no theorem", "", "only the regret is measured")


# ---------------------------------------------------------------- bounds


def widrow_hoff(eta: float, x2: float, loss: Sums, distance: float) -> Sums:
    """L_u/(1 - eta X^2) + |u - w_1|^2/eta, x2 = max c|x|^2; EG's with x2 = max c (U|x|_inf)^2 and distance 2 RE."""
    return loss / (1.0 - eta * x2) + distance / eta if eta * x2 < 1.0 else loss * math.nan


def widrow_hoff_rates(stretched: Sums, distance: float) -> Sums:
    """|u - w_1|^2 + Sigma eta c g^2/(1 - eta c |x|^2), the sum given."""
    return stretched + distance


def implicit(eta: float, x2: float, loss: Sums, distance: float) -> Sums:
    """(1 + eta X^2)(L_u + |u - w_1|^2/eta)."""
    return implicit_factor(eta, x2) * (loss + distance / eta)


def implicit_factor(eta: float, x2: float) -> float:
    """1 + eta X^2: what the plain loss may cost more than the damped one."""
    return 1.0 + eta * x2


def convex(eta: float, loss: Sums, divergence: float, gradients: Sums) -> Sums:
    """Sigma loss(u) + D(u, w_1)/eta + (eta/2) Sigma |g|*^2."""
    return loss + divergence / eta + 0.5 * eta * gradients


def convex_rates(loss: Sums, divergence: float, gradients: Sums) -> Sums:
    """Sigma eta loss(u) + D(u, w_1) + 1/2 Sigma eta^2 |g|*^2, the sums given with their rates."""
    return loss + divergence + 0.5 * gradients


def perceptron(hinge: Sums, norm: float, mistake_norm: Sums, start: float = 0.0, along: float = 0.0) -> Sums:
    """H + |u| sqrt(|w_1|^2 + Sigma over mistakes of c^2|x|^2) - u.w_1, with start = |w_1|^2 and along = u.w_1."""
    return hinge + norm * np.sqrt(start + mistake_norm) - along


def winnow(eta: float, top: float, heaviest: float, entropy: float, delta: float, hinge: Sums) -> Sums:
    """(RE(u||w_1) + eta H_delta)/(eta delta - ln cosh(eta c U Xinf)/c) with c the largest weight."""
    gain = winnow_gain(eta, top, heaviest, delta)
    return (entropy + eta * hinge) / gain if gain > 0.0 else hinge * math.nan


def winnow_gain(eta: float, top: float, heaviest: float, delta: float) -> float:
    """What a mistake gains at least: eta delta - ln cosh(eta c U Xinf)/c."""
    return eta * delta - ln_cosh(eta * heaviest * top) / heaviest


def met(right: np.ndarray, change: np.ndarray, rounding: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """Sigma right + Sigma (P_t - P_{t+1})/eta_t: what each round promises at u, and what its step took off P.

    Each round has measured <= right - change/eta, where change is what the step added to the potential P = D(u, w), or
    2 D(u, w); the sum is P_1/eta_1 + Sigma P_t (1/eta_t - 1/eta_{t-1}) - P_{T+1}/eta_T. `rounding` is what the changes
    may be off by.
    """
    bound: np.ndarray = np.cumsum(right + (rounding - change) / eta)
    return bound


def stretched(eta: np.ndarray, c: np.ndarray, q: np.ndarray, miss: np.ndarray) -> np.ndarray:
    """c g^2/(1 - eta c q): what a round promises of c l^2, q = |x|^2 or what takes its place in the round."""
    out: np.ndarray = c * miss**2 / (1.0 - eta * c * q)
    return out


def effective_square(step: np.ndarray, cumulant: np.ndarray, most: np.ndarray) -> np.ndarray:
    """V = 2 cumulant/step^2, what takes the place of (U|x|_inf)^2 for the normaliser met; 0 where no step was taken."""
    square = step * step
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(square > 0.0, np.minimum(most, 2.0 * cumulant / square), 0.0)


def winnow_met(
    eta: float, delta: float, entropy: float, hinge: np.ndarray, grown: np.ndarray, made: np.ndarray
) -> np.ndarray:
    """(RE(u||w_1) + eta H_delta)/(eta delta - N) after each round, N = Sigma ln Sigma p e^(eta c y x)/M.

    `grown` is the sum of the logarithms over the mistakes, `made` the mistakes M. A bound after a later round is one on
    the mistakes before, too.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = eta * delta - grown / made
        bound = np.where(gain > 0.0, (entropy + eta * hinge) / gain, math.inf)
    return np.minimum.accumulate(bound[::-1])[::-1]


def glm_tron(eta: float, x2: float, lipschitz: float, distance: Sums) -> Sums:
    """|w* - w_1|^2/(eta (2/lambda - eta X^2)); where y is off u(w*.x), what that adds counts in the distance."""
    room = 2.0 / lipschitz - eta * x2
    return distance / (eta * room) if room > 0.0 else distance * math.nan


def ln_cosh(x: float) -> float:
    """ln cosh x, to the last digits also near 0 and where cosh x overflows."""
    return float(each_ln_cosh(np.array(x)))


def each_ln_cosh(x: np.ndarray) -> np.ndarray:
    """The same of every number of an array."""
    x = np.abs(x)
    near = np.log1p(2.0 * np.sinh(0.5 * np.minimum(x, 1.0)) ** 2)
    return np.where(x < 1.0, near, x + np.log1p(np.exp(-2.0 * x)) - math.log(2.0))


def verdict(measured: float, bound: float, scale: float, rounding: float = 0.0) -> tuple[Verdict, bool]:
    """HOLDS within rounding, and whether only just: equality really happens.

    The band is 1e-9 (bound + scale) + rounding, scale being what the start of the run would have lost: see `band`.
    """
    if not all(map(math.isfinite, (measured, bound, scale, rounding))):
        return Verdict.VOID, False
    band = 1e-9 * (abs(bound) + scale) + rounding
    if measured > bound + band:
        return Verdict.BROKEN, False
    return Verdict.HOLDS, measured >= bound - band


def best_rate(x2: float, loss: float, distance: float) -> float:
    """The eta that makes `widrow_hoff` smallest for a u: sqrt(B)/(sqrt(A x2) + x2 sqrt(B))."""
    root = math.sqrt(distance)
    below = math.sqrt(loss * x2) + x2 * root
    return root / below if below > 0.0 else math.nan


# ---------------------------------------------------------------- what a round may add to the potential


Array = np.ndarray  # one number per round


def lemma_widrow_hoff(eta: Array, c: Array, q: Array, error: Array, rival: Array) -> Array:
    """At most this much is added to |w - u|^2 by an explicit step."""
    return -eta * c * error**2 + eta * c * rival**2 / (1.0 - eta * c * q)


def lemma_implicit(eta: Array, c: Array, q: Array, error: Array, rival: Array) -> Array:
    """The same for the implicit step."""
    return -eta * c * error**2 / (1.0 + eta * c * q) + eta * c * rival**2


def lemma_glm_tron(eta: Array, c: Array, q: Array, lipschitz: float, error: Array) -> Array:
    """The same for GLM-tron where y = u(w*.x)."""
    return -eta * c * error**2 * (2.0 / lipschitz - eta * c * q)


def not_planted(eta: Array, c: Array, lipschitz: float, error: Array, apart: Array, off: Array) -> Array:
    """What is added to that where |y - u(w*.x)| <= off and w.x is w*.x + apart.

    With y = u(w*.x) + e and s = u(w.x) - y the step adds -2 eta c s (w - w*).x + (eta c s)^2 |x|^2 to |w - w*|^2, and
    s (w - w*).x >= (s + e)^2/lambda - e (w - w*).x, as u is nondecreasing and lambda-Lipschitz.
    """
    return 2.0 * eta * c * off * (np.abs(apart) + (2.0 * np.abs(error) + off) / lipschitz)
