"""The theorems of learners without a rate, and of panels: the only place where their bounds are written.

Each holds for every comparator u. The price is what the run met, round by round (`hindsight.kernels.ledger` adds most
of them up); ``docs/theory.md`` has the proofs.
"""

from __future__ import annotations

import numpy as np

from .theorems import Theorem

Array = np.ndarray

RUNNING = Theorem(
    "running geometry", "Duchi, Hazan, Singer 2011; McMahan 2017",
    "L ≤ L_u + ½ Σ aᵢ(u − w₁)ᵢ² + Σ πₜ", "running-geometry",
)  # fmt: skip
RIDGE = Theorem(
    "online ridge regression", "Vovk 2001; Azoury, Warmuth 2001",
    "L ≤ L_u + Σ λᵢ(u − w₁)ᵢ² + Σ cₜ[(yₜ − zₜ)² − (yₜ − zₜ)²/(1 + cₜqₜ)]", "online-ridge",
)  # fmt: skip
FORECASTER = Theorem(
    "Vovk-Azoury-Warmuth", "Vovk 2001; Azoury, Warmuth 2001",
    "L ≤ L_u + Σ λᵢ(u − w₁)ᵢ² + Σ cₜ[(yₜ − pₜ)² − (yₜ − zₜ)²/(1 + cₜqₜ)]", "online-ridge",
)  # fmt: skip
NEWTON = Theorem(
    "logistic second order", "after Jézéquel, Gaillard, Rudi 2020",
    "L ≤ L_u + ½ Σ λᵢ(u − w₁)ᵢ² + Σ ½(qG² − 2Gd − Cd²)/(1 + Cq) + Γ(u)", "logistic-second-order",
)  # fmt: skip
AGGREGATION = Theorem(
    "aggregation", "Vovk 1990; Cesa-Bianchi, Lugosi 2006",
    "L ≤ min_k [bound_k − (L_k − L_k as used)] + ln(K)/η + Σ δₜ", "aggregation",
)  # fmt: skip
DRIFT = Theorem(
    "aggregation with drift", "Herbster, Warmuth 1998",
    "L ≤ min_k [bound_k − (L_k − L_k as used)] + (ln(K) − (T − 1) ln(1 − α + α/K))/η + Σ δₜ", "aggregation",
)  # fmt: skip
PROXIMAL = Theorem(
    "implicit descent", "Kulis, Bartlett 2010; McMahan 2017",
    "L ≤ L_u + D(u, w₁)/η + Σ πₜ", "implicit-descent",
)  # fmt: skip
PROXIMAL_MET = Theorem(
    "implicit descent, as met", "Kulis, Bartlett 2010; McMahan 2017",
    "L ≤ L_u + Σ (D(u, wₜ) − D(u, wₜ₊₁))/ηₜ + Σ πₜ", "implicit-descent",
)  # fmt: skip


def with_price(loss: Array, distance: float, price: Array) -> Array:
    """L_u + what the distance of u to the start costs + the price met, at some rounds."""
    return loss + distance + price


def proximal_price(paid: Array, paid_after: Array, moved: Array, eta: Array) -> Array:
    """What an implicit step costs beyond the comparator: cℓ(wₜ) − cℓ(wₜ₊₁) − D(wₜ₊₁, wₜ)/ηₜ."""
    return paid - paid_after - moved / eta


def quadratic_gap(paid: Array, G: Array, C: Array, apart: Array, paid_u: Array) -> Array:
    """By how much the quadratic of a round exceeds its loss at u: ℓ(z) + G(u.x − z) + ½C(u.x − z)² − ℓ(u.x)."""
    return paid + G * apart + 0.5 * C * apart * apart - paid_u
