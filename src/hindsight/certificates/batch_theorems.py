"""The theorems of the learners that read all rows in each round, and of the risk of an average: statements and bounds.

No bound of these learners is written anywhere else; Isotron and GLM-tron share `theorems.glm_tron`. Each bound holds
for every comparator u, so the functions take what is known of u; sums may be arrays with one entry per round.
"""

from __future__ import annotations

import math

import numpy as np

from ..kernels.floats import Floats
from .theorems import Theorem

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

    Of w_s it takes along = u.w_s, and across, the norm of the part that is orthogonal to u.
    """
    D, side = (R * norm) ** 2 - 2.0 * along, norm * across
    root = math.hypot(D, 2.0 * side)
    if D >= 0.0:
        return 0.5 * (D + root)
    return 2.0 * side * (side / (root - D))  # the same, without cancellation


def lemma_single_index(eta: float, x2: float, lipschitz: float, loss: Floats) -> Floats:
    """Return what |w - w*|^2 may change by in each round: -eta (2/lambda - eta X^2) times the mean squared error."""
    return -single_index_gain(eta, x2, lipschitz) * loss


def single_index_gain(eta: float, x2: float, lipschitz: float) -> float:
    """Return eta (2/lambda - eta X^2), the decrease of |w - w*|^2 per unit of mean squared error."""
    return eta * (2.0 / lipschitz - eta * x2)


def single_index_best_rate(x2: float, lipschitz: float) -> float:
    """Return the eta that makes `theorems.glm_tron` smallest, 1/(lambda X^2)."""
    return 1.0 / (lipschitz * x2) if x2 > 0.0 else math.nan


def matching_loss(eta: float, value: float, distance: float, gradients: Floats) -> Floats:
    """Return Sigma F(u) + |u - w_1|^2/(2 eta) + (eta/2) Sigma |grad F|^2 after each round, from |grad F|^2 in each."""
    bound: Floats = np.cumsum(value + 0.5 * eta * gradients) + 0.5 * distance / eta
    return bound


def lemma_matching_loss(eta: float, value: float, losses: Floats, gradients: Floats) -> Floats:
    """Return what |u - w|^2/2 may change by in each round: -eta (F(w) - F(u)) + eta^2 |grad F|^2/2."""
    return -eta * (losses - value) + 0.5 * eta**2 * gradients


def online_to_batch(mean_loss: float, m: int, bound: float, delta: float) -> float:
    """Return L_A/m + c sqrt(ln(1/delta)/(2m)), which the risk exceeds with probability delta at most."""
    return mean_loss + bound * math.sqrt(math.log(1.0 / delta) / (2.0 * m))


def expected_risk(regret_bound: float, m: int, factor: float = 1.0) -> float:
    """Return L_A/m at most: a bound on L_A, up to a factor, per row; it estimates a bound on E[R_v] without bias."""
    return regret_bound / m * factor
