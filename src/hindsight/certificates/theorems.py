"""The theorems of the notes as small objects: what each says, where it stands, and its bound as a pure function.

Every bound holds for every comparator u, so the functions take what is known of u. The forms are the general ones of
the notes' proofs: X2 and Xinf explicit, weights c_t, a start w_1, rates that change. A weight multiplies the loss.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

import numpy as np

from ..storage.registry import storable


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
    """A theorem: its name, where it stands, and what it says for every u."""

    name: str
    source: str
    statement: str


WIDROW_HOFF = Theorem("Widrow-Hoff", "N1 Theorem 1.3; N0", "L ≤ L_u/(1 − ηX²) + |u − w₁|²/η")
WIDROW_HOFF_RATES = Theorem("Widrow-Hoff, changing rates", "N0's lemma", "Σ ηₜℓₜ² ≤ |u − w₁|² + Σ ηₜgₜ²/(1 − ηₜ|xₜ|²)")
IMPLICIT = Theorem("implicit Widrow-Hoff", "N1, motivation 2", "L ≤ (1 + ηX²)(L_u + |u − w₁|²/η)")
EG = Theorem("exponentiated gradient", "N0", "L ≤ L_u/(1 − η(U·X∞)²) + 2 RE(u‖w₁)/η")
CONVEX = Theorem("descent on a convex loss", "N0, N2", "Σ loss(wₜ) ≤ Σ loss(u) + D(u, w₁)/η + (η/2) Σ|gₜ|∗²")
CONVEX_RATES = Theorem("descent, changing rates", "N0, N2", "Σ ηₜ loss(wₜ) ≤ Σ ηₜ loss(u) + D(u, w₁) + ½ Σ ηₜ²|gₜ|∗²")
PERCEPTRON = Theorem("perceptron", "N2", "M ≤ (X₂|u|)² if y(u·x) ≥ 1 throughout")
PERCEPTRON_NOISY = Theorem(
    "perceptron, any data", "N2's proof with hinge losses", "M ≤ H + |u|√(Σ over mistakes of |x|²)"
)
WINNOW = Theorem("Winnow", "N3 Theorem 1.1", "M ≤ (RE(u‖w₁) + η H_δ)/(ηδ − ln cosh(ηX∞))")
GLM_TRON = Theorem("GLM-tron", "N4 Theorem 1.1", "Σ(y − ŷ)² ≤ |w* − w₁|²/(η(2/λ − ηX²))")
NONE = Theorem("no theorem", "", "only the regret is measured")


def widrow_hoff(eta: float, x2: float, loss: float, distance: float) -> float:
    """L_u/(1 - eta X^2) + |u - w_1|^2/eta, x2 = max c|x|^2; EG's with x2 = max c (U|x|_inf)^2 and distance 2 RE."""
    return loss / (1.0 - eta * x2) + distance / eta if eta * x2 < 1.0 else math.nan


def implicit(eta: float, x2: float, loss: float, distance: float) -> float:
    """(1 + eta X^2)(L_u + |u - w_1|^2/eta)."""
    return (1.0 + eta * x2) * (loss + distance / eta)


def convex(eta: float, loss: float, divergence: float, gradients: float) -> float:
    """Sigma loss(u) + D(u, w_1)/eta + (eta/2) Sigma |g|*^2."""
    return loss + divergence / eta + 0.5 * eta * gradients


def perceptron(hinge: float, norm: float, mistake_norm: float, start: float = 0.0, along: float = 0.0) -> float:
    """H + |u| sqrt(|w_1|^2 + Sigma over mistakes of c^2|x|^2) - u.w_1, with start = |w_1|^2 and along = u.w_1."""
    return hinge + norm * math.sqrt(start + mistake_norm) - along


def winnow(eta: float, top: float, heaviest: float, entropy: float, delta: float, hinge: float) -> float:
    """(RE(u||w_1) + eta H_delta)/(eta delta - ln cosh(eta c U Xinf)/c) with c the largest weight."""
    gain = eta * delta - ln_cosh(eta * heaviest * top) / heaviest
    return (entropy + eta * hinge) / gain if gain > 0.0 else math.nan


def glm_tron(eta: float, x2: float, lipschitz: float, distance: float) -> float:
    """|w* - w_1|^2/(eta (2/lambda - eta X^2))."""
    room = 2.0 / lipschitz - eta * x2
    return distance / (eta * room) if room > 0.0 else math.nan


def ln_cosh(x: float) -> float:
    """Without cancellation at 0 or overflow."""
    x = abs(x)
    return math.log1p(2.0 * math.sinh(0.5 * x) ** 2) if x < 1.0 else x + math.log1p(math.exp(-2.0 * x)) - math.log(2.0)


def verdict(measured: float, bound: float, scale: float) -> tuple[Verdict, bool]:
    """HOLDS within rounding, and whether only just: equality really happens.

    The band is 1e-9 (bound + scale), scale = Sigma c y^2: what sums of that size may be off by.
    """
    if not math.isfinite(measured) or not math.isfinite(bound):
        return Verdict.VOID, False
    band = 1e-9 * (abs(bound) + scale)
    if measured > bound + band:
        return Verdict.BROKEN, False
    return Verdict.HOLDS, measured >= bound - band


def best_rate(x2: float, loss: float, distance: float) -> float:
    """The eta that makes `widrow_hoff` smallest for a u: sqrt(B)/(sqrt(A x2) + x2 sqrt(B))."""
    root = math.sqrt(distance)
    below = math.sqrt(loss * x2) + x2 * root
    return root / below if below > 0.0 else math.nan


def lemma_widrow_hoff(
    eta: np.ndarray, c: np.ndarray, q: np.ndarray, error: np.ndarray, rival: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The change of |w - u|^2 by a step in closed form, and what the lemma allows."""
    step = eta * c * error
    change = step * step * q - 2.0 * step * (error - rival)
    allowed = -eta * c * error**2 + eta * c * rival**2 / (1.0 - eta * c * q)
    return change, allowed


def lemma_implicit(
    eta: np.ndarray, c: np.ndarray, q: np.ndarray, error: np.ndarray, rival: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same for the implicit step."""
    damp = 1.0 + eta * c * q
    step = eta * c * error / damp
    change = step * step * q - 2.0 * step * (error - rival)
    return change, -eta * c * error**2 / damp + eta * c * rival**2
