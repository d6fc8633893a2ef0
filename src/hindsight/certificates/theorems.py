"""The theorems: their statements, sources and bounds. Bounds are written here and nowhere else.

Every bound holds for every comparator u, so the functions take what is known of u. The forms are general: explicit
norms, weights c_t, which multiply the loss, a start w_1, and changing rates. Functions take numbers, or arrays with the
sums after each round, and return the bound after each. Prices that depend on what the run met, round by round, are
summed by `hindsight.kernels.ledger`. ``docs/theory.md`` has statements and proofs.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ..storage.registry import storable

Sums = TypeVar("Sums", float, np.ndarray)  # a sum, or the sums after each round
Array = np.ndarray  # one number per round


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
        The anchor of its section in ``docs/theory.md``.
    own : str
        What its bound takes from the run, in words; it would differ at another rate.
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
PENALISED = Theorem(
    "penalised descent", "Duchi, Shalev-Shwartz, Singer, Tewari 2010",
    "Σ loss(wₜ) ≤ Σ (loss(u) + penalty(u)) + |u − w₁|²/(2η) + Σ πₜ", "penalties",
)  # fmt: skip
PENALISED_RATES = Theorem(
    "penalised descent, changing rates", "Duchi, Shalev-Shwartz, Singer, Tewari 2010",
    "Σ ηₜ loss(wₜ) ≤ Σ ηₜ(loss(u) + penalty(u)) + ½|u − w₁|² + Σ ηₜπₜ", "penalties",
)  # fmt: skip
RUNNING = Theorem(
    "running geometry", "Duchi, Hazan, Singer 2011; McMahan 2017",
    "L ≤ L_u + ½ Σ aᵢ(u − w₁)ᵢ² + Σ πₜ", "running-geometry",
)  # fmt: skip
RIDGE = Theorem(
    "online ridge regression", "Vovk 2001; Azoury, Warmuth 2001",
    "L ≤ L_u + Σ λᵢ(u − w₁)ᵢ² + Σ cₜ[(yₜ − zₜ)² − (yₜ − zₜ)²/(1 + cₜqₜ)]", "online-ridge",
)  # fmt: skip
WINDOWED_RIDGE = Theorem(
    "online ridge regression that forgets", "after Vovk 2001; Azoury, Warmuth 2001",
    "L ≤ W + Σ cₜ[(yₜ − zₜ)² − (yₜ − zₜ)²/(1 + cₜqₜ)], W = m_T + (1 − γ)(m₁ + … + m₍T₋₁₎) what the best predictors of "
    "each window lose", "ridge-that-forgets",
)  # fmt: skip
FORECASTER = Theorem(
    "Vovk-Azoury-Warmuth", "Vovk 2001; Azoury, Warmuth 2001",
    "L ≤ L_u + Σ λᵢ(u − w₁)ᵢ² + Σ cₜ[(yₜ − pₜ)² − (yₜ − zₜ)²/(1 + cₜqₜ)]", "online-ridge",
)  # fmt: skip
NEWTON = Theorem(
    "logistic second order", "after Jézéquel, Gaillard, Rudi 2020",
    "L ≤ L_u + ½ Σ λᵢ(u − w₁)ᵢ² + Σ ½(qG² − 2Gd − Cd²)/(1 + Cq) + Γ(u)", "logistic-second-order",
)  # fmt: skip
COVERAGE = Theorem(
    "intervals that cover", "Gibbs, Candès 2021",
    "Σ cₜ(eₜ − α) + what was spared at width 0 = (c̄B₍T₊₁₎ − what B carried)/γ with 0 ≤ B ≤ 1 + γ(1 − α)", "coverage",
)  # fmt: skip
AGGREGATION = Theorem(
    "aggregation", "Vovk 1990; Cesa-Bianchi, Lugosi 2006",
    "L ≤ min_k [bound_k − (L_k − L_k as used)] + ln(K)/η + Σ δₜ", "aggregation",
)  # fmt: skip
DRIFT = Theorem(
    "aggregation with drift", "Herbster, Warmuth 1998",
    "L ≤ min_k [bound_k − (L_k − L_k as used)] + (ln(K) − (T − 1) ln(1 − α + α/K))/η + Σ δₜ", "aggregation",
)  # fmt: skip
STACKED = " + ln(2)/η′ + Σ δ′ₜ"  # what aggregating the mixture with its correction adds to either statement
PROXIMAL = Theorem(
    "implicit descent", "Kulis, Bartlett 2010; McMahan 2017",
    "L ≤ L_u + D(u, w₁)/η + Σ πₜ", "implicit-descent",
)  # fmt: skip
PROXIMAL_MET = Theorem(
    "implicit descent, as met", "Kulis, Bartlett 2010; McMahan 2017",
    "L ≤ L_u + Σ (D(u, wₜ) − D(u, wₜ₊₁))/ηₜ + Σ πₜ", "implicit-descent",
)  # fmt: skip

# of learners that read all rows in each round, of the risk of an average, and of shards
GRADIENT_DESCENT = Theorem(
    "gradient descent",
    "Zinkevich 2003",
    "f(w̄) ≤ f(u) + (|u − wₛ|² + Σ ηₜ²|∇f(wₜ)|²)/(2 Σ ηₜ)",
    "gradient-descent",
    "gradients",
)
STOCHASTIC_GRADIENT_DESCENT = Theorem(
    "stochastic gradient descent",
    "Zinkevich 2003",
    "E f(w̄) ≤ f(u) + (|u − wₛ|² + E Σ ηₜ²|vₜ|²)/(2 Σ ηₜ), over the draws",
    "gradient-descent",
    "gradients",
)
BATCH_PERCEPTRON = Theorem(
    "batch perceptron", "Novikoff 1962", "updates ≤ (R|u|)² if y(u·x) ≥ 1 on every row", "batch-perceptron"
)
BATCH_PERCEPTRON_STARTED = Theorem(
    "batch perceptron from a start",
    "Novikoff 1962",
    "updates ≤ (D + √(D² + 4|u|²|w⊥|²))/2, D = (R|u|)² − 2u·wₛ, w⊥ the part of wₛ across u, if y(u·x) ≥ 1 on every row",
    "batch-perceptron",
)
ISOTRON = Theorem(
    "Isotron",
    "Kalai, Sastry 2009",
    "Σ L̂(uₜ, wₜ) ≤ |w* − w₁|²/(η(2/λ − ηX₂²)); λ²X₂²|w*|² from 0 at η = 1/(λX₂²)",
    "isotron",
)
GLM_TRON_MEAN = Theorem(
    "GLM-tron with the mean update",
    "Kakade, Kalai, Kanade, Shamir 2011",
    "Σ L̂(wₜ) ≤ |w* − w₁|²/(η(2/λ − ηX₂²))",
    "glm-tron",
)
MATCHING_LOSS = Theorem(
    "descent on the matching loss",
    "Auer, Herbster, Warmuth 1996",
    "Σ F(wₜ) ≤ Σ F(u) + |u − w₁|²/(2η) + (η/2) Σ|∇F(wₜ)|²",
    "glm-tron",
    "gradients",
)
ONLINE_TO_BATCH = Theorem(
    "online to batch",
    "Cesa-Bianchi, Conconi, Gentile 2004",
    "with probability 1 − δ: R_v ≤ L_A/m + c·√(ln(1/δ)/(2m)), v = (w₁ + … + w_m)/m",
    "online-to-batch",
)
SHARDS = Theorem(
    "descent on shards with mixed weights",
    "Zinkevich 2003; McDonald, Hall, Mann 2010",
    "Σ over shards and epochs of loss(wₜ) ≤ Σ loss(u) + K·|u − w₁|²/(2η) + (η/2) Σ|gₜ|², for K shards",
    "shards",
    "gradients",
)
NONE = Theorem("no theorem", "", "only the regret is measured")

# of densities
KT = Theorem("add-½ (KT) over k declared symbols", "docs/theory.md#density", "regret ≤ (k−1)/2·ln T + ln k nats")
LAPLACE = Theorem("add-1 (Laplace) over k declared symbols", "docs/theory.md#density", "regret ≤ ln C(T+k−1, k−1) nats")
PREDICTIVE = Theorem("Bayes predictive", "", "no bound is known here: the regret is exact, and only measured")


# ---------------------------------------------------------------- bounds


def widrow_hoff(eta: float, x2: float, loss: Sums, distance: float) -> Sums:
    """L_u/(1 - eta X^2) + |u - w_1|^2/eta, x2 = max c|x|^2; for EG, x2 = max c (U|x|_inf)^2 and distance = 2 RE."""
    return loss / (1.0 - eta * x2) + distance / eta if eta * x2 < 1.0 else loss * math.nan


def widrow_hoff_rates(stretched: Sums, distance: float) -> Sums:
    """|u - w_1|^2 + Sigma eta c g^2/(1 - eta c |x|^2), where `stretched` is the sum."""
    return stretched + distance


def implicit(eta: float, x2: float, loss: Sums, distance: float) -> Sums:
    """(1 + eta X^2)(L_u + |u - w_1|^2/eta)."""
    return implicit_factor(eta, x2) * (loss + distance / eta)


def implicit_factor(eta: float, x2: float) -> float:
    """1 + eta X^2, the largest ratio of the plain to the damped loss."""
    return 1.0 + eta * x2


def convex(eta: float, loss: Sums, divergence: float, gradients: Sums) -> Sums:
    """Sigma loss(u) + D(u, w_1)/eta + (eta/2) Sigma |g|*^2."""
    return loss + divergence / eta + 0.5 * eta * gradients


def convex_rates(loss: Sums, divergence: float, gradients: Sums) -> Sums:
    """Sigma eta loss(u) + D(u, w_1) + 1/2 Sigma eta^2 |g|*^2; both sums are given with the rates included."""
    return loss + divergence + 0.5 * gradients


def perceptron(hinge: Sums, norm: float, mistake_norm: Sums, start: float = 0.0, along: float = 0.0) -> Sums:
    """H + |u| sqrt(|w_1|^2 + Sigma over mistakes of c^2|x|^2) - u.w_1, with start = |w_1|^2 and along = u.w_1."""
    return hinge + norm * np.sqrt(start + mistake_norm) - along


def winnow(eta: float, top: float, heaviest: float, entropy: float, delta: float, hinge: Sums) -> Sums:
    """(RE(u||w_1) + eta H_delta)/(eta delta - ln cosh(eta c U Xinf)/c) with c the largest weight."""
    gain = winnow_gain(eta, top, heaviest, delta)
    return (entropy + eta * hinge) / gain if gain > 0.0 else hinge * math.nan


def winnow_gain(eta: float, top: float, heaviest: float, delta: float) -> float:
    """The least decrease of the potential by a mistake: eta delta - ln cosh(eta c U Xinf)/c."""
    return eta * delta - ln_cosh(eta * heaviest * top) / heaviest


def met(right: np.ndarray, change: np.ndarray, rounding: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """Sigma right + Sigma (P_t - P_{t+1})/eta_t, where P is the potential D(u, w) or 2 D(u, w).

    In each round measured <= right - change/eta, where change is what the step added to P. The second sum is
    P_1/eta_1 + Sigma P_t (1/eta_t - 1/eta_{t-1}) - P_{T+1}/eta_T. `rounding` bounds the error of the changes.
    """
    bound: np.ndarray = np.cumsum(right + (rounding - change) / eta)
    return bound


def stretched(eta: np.ndarray, c: np.ndarray, q: np.ndarray, miss: np.ndarray) -> np.ndarray:
    """c g^2/(1 - eta c q), the part of the bound on c l^2 from each round; q is |x|^2 or what takes its place."""
    out: np.ndarray = c * miss**2 / (1.0 - eta * c * q)
    return out


def effective_square(step: np.ndarray, cumulant: np.ndarray, most: np.ndarray) -> np.ndarray:
    """V = 2 cumulant/step^2, which replaces (U|x|_inf)^2 when the normaliser is known; 0 where no step was taken."""
    square = step * step
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(square > 0.0, np.minimum(most, 2.0 * cumulant / square), 0.0)


def winnow_met(
    eta: float, delta: float, entropy: float, hinge: np.ndarray, grown: np.ndarray, made: np.ndarray
) -> np.ndarray:
    """(RE(u||w_1) + eta H_delta)/(eta delta - N) after each round, N = Sigma ln Sigma p e^(eta c y x)/M.

    `grown` is the sum of the logarithms over the mistakes, `made` the number of mistakes M. A bound after a later round
    also bounds the mistakes before it.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = eta * delta - grown / made
        bound = np.where(gain > 0.0, (entropy + eta * hinge) / gain, math.inf)
    return np.minimum.accumulate(bound[::-1])[::-1]


def glm_tron(eta: float, x2: float, lipschitz: float, distance: Sums) -> Sums:
    """|w* - w_1|^2/(eta (2/lambda - eta X^2)); if y deviates from u(w*.x), `distance` includes the resulting terms."""
    room = 2.0 / lipschitz - eta * x2
    return distance / (eta * room) if room > 0.0 else distance * math.nan


def ln_cosh(x: float) -> float:
    """ln cosh x, accurate near 0 and where cosh x overflows."""
    return float(each_ln_cosh(np.array(x)))


def each_ln_cosh(x: np.ndarray) -> np.ndarray:
    """ln cosh of every element of an array."""
    x = np.abs(x)
    near = np.log1p(2.0 * np.sinh(0.5 * np.minimum(x, 1.0)) ** 2)
    return np.where(x < 1.0, near, x + np.log1p(np.exp(-2.0 * x)) - math.log(2.0))


def verdict(measured: float, bound: float, scale: float, rounding: float = 0.0) -> tuple[Verdict, bool]:
    """The verdict on a bound, and whether it is met with equality up to rounding, which does happen.

    The tolerance is 1e-9 (bound + scale) + rounding, where scale is the loss of the starting weights; see `band`.
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


def lemma_widrow_hoff(eta: Array, c: Array, q: Array, error: Array, rival: Array) -> Array:
    """The most that an explicit step adds to |w - u|^2; NaN where eta c |x|^2 is not below 1."""
    if not (eta * c * q < 1.0).all():
        return np.full_like(error, math.nan)
    return -eta * c * error**2 + eta * c * rival**2 / (1.0 - eta * c * q)


def lemma_implicit(eta: Array, c: Array, q: Array, error: Array, rival: Array) -> Array:
    """The most that an implicit step adds to |w - u|^2."""
    return -eta * c * error**2 / (1.0 + eta * c * q) + eta * c * rival**2


def lemma_glm_tron(eta: Array, c: Array, q: Array, lipschitz: float, error: Array) -> Array:
    """The most that a step of GLM-tron adds to |w - w*|^2 if y = u(w*.x)."""
    return -eta * c * error**2 * (2.0 / lipschitz - eta * c * q)


def not_planted(eta: Array, c: Array, lipschitz: float, error: Array, apart: Array, off: Array) -> Array:
    """The term to add to `lemma_glm_tron` if |y - u(w*.x)| <= off and w.x is w*.x + apart.

    With y = u(w*.x) + e and s = u(w.x) - y the step adds -2 eta c s (w - w*).x + (eta c s)^2 |x|^2 to |w - w*|^2, and
    s (w - w*).x >= (s + e)^2/lambda - e (w - w*).x, as u is nondecreasing and lambda-Lipschitz.
    """
    return 2.0 * eta * c * off * (np.abs(apart) + (2.0 * np.abs(error) + off) / lipschitz)


# ---------------------------------------------------------------- learners without a rate, and penalties


def with_price(loss: Array, distance: float, price: Array | float) -> Array:
    """L_u + the cost of the distance from u to the start + the price met, after each of some rounds."""
    return loss + distance + price


def windows(paid: Array, price: Array, drops: float) -> Array:
    """m_T + (1 − γ) Σ m_t from L, the price met and the drops; exact after the last round, an upper bound before it."""
    return paid - price + drops


def proximal_price(paid: Array, paid_after: Array, moved: Array, eta: Array) -> Array:
    """The price of an implicit step: cℓ(wₜ) − cℓ(wₜ₊₁) − D(wₜ₊₁, wₜ)/ηₜ."""
    return paid - paid_after - moved / eta


QUARTER = 9.56  # the quadratics of curvature p(1 − p)/4 are never above the losses of margins up to this, whatever z


def with_drops(lost: float, drops: float) -> float:
    """min_u [L_u + the cost of the distance] + Σ price for second order, from its loss and the drops of its prior."""
    return lost + drops


def quadratic_gap(paid: Array, G: Array, C: Array, apart: Array, paid_u: Array) -> Array:
    """The amount by which the quadratic of a round exceeds its loss at u: ℓ(z) + G(u.x − z) + ½C(u.x − z)² − ℓ(u.x)."""
    return paid + G * apart + 0.5 * C * apart * apart - paid_u


def penalised_bound(loss: Array, penalty: Array, distance: float, price: Array) -> Array:
    """Σ (loss(u) + penalty(u)) + distance + Σ price after each round; the penalty of the run itself is not included."""
    return np.cumsum(loss + penalty + price) + distance


def penalised_price(paid: Array, reached: Array, step: Array, at: Array, change: Array) -> Array:
    """The price of a step: ηcℓ(z) − ηcℓ(z″) − d z″ + (d z′ − (z − z′)²/(2|x|²)), where −d/(ηc) is the slope at z″ and
    the bracket is `change`."""
    return paid - reached - step * at + change


# ---------------------------------------------------------------- all rows in each round


def gradient_descent(value: float, distance: float, rate: float, rate_gradient: float) -> float:
    """Return f(u) + (|u - w_s|^2 + Sigma eta^2 |grad|^2)/(2 Sigma eta), for the mean of iterates weighted by rates."""
    return value + (distance + rate_gradient) / (2.0 * rate)


def gradient_descent_planned(B: float, rho: float, eta: float, rounds: int) -> float:
    """Return B^2/(2 eta T) + eta rho^2/2, which f of the mean exceeds f(u) by at most, if |u| <= B, from w_s = 0."""
    return B**2 / (2.0 * eta * rounds) + 0.5 * eta * rho**2


def descent_best_rate(distance: float, gradients: float) -> float:
    """Return the constant eta that makes the bound of a descent smallest: sqrt(|u - w_1|^2 / Sigma |grad|^2)."""
    return math.sqrt(distance / gradients) if gradients > 0.0 else math.nan


def batch_perceptron(R: float, norm: float, along: float = 0.0, across: float = 0.0) -> float:
    """Return the larger M with (u.w_s + M)^2 = |u|^2 (|w_s|^2 + M R^2); (R |u|)^2 from w_s = 0.

    It depends on w_s through along = u.w_s and across, the norm of the part of w_s orthogonal to u.
    """
    D, side = (R * norm) ** 2 - 2.0 * along, norm * across
    root = math.hypot(D, 2.0 * side)
    if D >= 0.0:
        return 0.5 * (D + root)
    return 2.0 * side * (side / (root - D))  # the same, without cancellation


def lemma_single_index(eta: float, x2: float, lipschitz: float, loss: Array) -> Array:
    """Return what |w - w*|^2 may change by in each round: -eta (2/lambda - eta X^2) times the mean squared error."""
    return -single_index_gain(eta, x2, lipschitz) * loss


def single_index_gain(eta: float, x2: float, lipschitz: float) -> float:
    """Return eta (2/lambda - eta X^2), the decrease of |w - w*|^2 per unit of mean squared error."""
    return eta * (2.0 / lipschitz - eta * x2)


def single_index_best_rate(x2: float, lipschitz: float) -> float:
    """Return the eta that makes `glm_tron` smallest, 1/(lambda X^2)."""
    return 1.0 / (lipschitz * x2) if x2 > 0.0 else math.nan


def matching_loss(eta: float, value: float, distance: float, gradients: Array) -> Array:
    """Return Sigma F(u) + |u - w_1|^2/(2 eta) + (eta/2) Sigma |grad F|^2 after each round, from |grad F|^2 in each."""
    bound: Array = np.cumsum(value + 0.5 * eta * gradients) + 0.5 * distance / eta
    return bound


def lemma_matching_loss(eta: float, value: float, losses: Array, gradients: Array) -> Array:
    """Return what |u - w|^2/2 may change by in each round: -eta (F(w) - F(u)) + eta^2 |grad F|^2/2."""
    return -eta * (losses - value) + 0.5 * eta**2 * gradients


def online_to_batch(mean_loss: float, m: int, bound: float, delta: float) -> float:
    """Return L_A/m + c sqrt(ln(1/delta)/(2m)), which the risk exceeds with probability delta at most."""
    return mean_loss + bound * math.sqrt(math.log(1.0 / delta) / (2.0 * m))


def expected_risk(regret_bound: float, m: int, factor: float = 1.0) -> float:
    """Return factor times a regret bound per row. It is at least L_A/m and estimates a bound on E[R_v] without bias."""
    return regret_bound / m * factor


# ---------------------------------------------------------------- intervals that cover


def coverage(gamma: float, alpha: float, most: float, carried: float) -> tuple[float, float]:
    """The bounds between which the sum of c (e - alpha), plus misses avoided at width 0, lies on any rows."""
    return -carried / gamma, (most * (1.0 + gamma * (1.0 - alpha)) - carried) / gamma


def coverage_of_stretch(gamma: float, alpha: float, most: float) -> float:
    """The bound on the absolute value of the same sum over any consecutive rounds."""
    return most * (1.0 + gamma * (1.0 - alpha)) / gamma


def tracked_width(u: Array, inverse: float, logs: float, starts: float, price: float) -> Array:
    """The regret of a tracker relative to the fixed width u, in units of its width: the distances
    D(u, w) = u ln(u/w) - u + w, each times the increase of the inverse rate, plus the price met. `inverse` is the sum
    of the increases."""
    return inverse * (u * np.log(u) - u) - u * logs + starts + price


def mixed_widths(rival: Array, apart: Array, members: int, rate: float, gaps: float, met: float) -> Array:
    """L_u + the regret of the best member relative to u + ln K/eta + the gaps of the mixture + further terms met."""
    return rival + apart + math.log(members) / rate + gaps + met


# ---------------------------------------------------------------- densities


def add_half(symbols: int, rows: Array) -> Array:
    """The bound of add-½ on the regret in nats: (k-1)/2 ln T + ln k."""
    return np.asarray(0.5 * (symbols - 1) * np.log(rows) + math.log(symbols))


def add_one(symbols: int, rows: Array) -> Array:
    """The bound of add-1 on the regret in nats: ln C(T+k-1, k-1)."""
    from scipy.special import gammaln

    return np.asarray(gammaln(np.add(rows, symbols)) - gammaln(symbols) - gammaln(np.add(rows, 1.0)))
