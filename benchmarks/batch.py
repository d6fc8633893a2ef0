"""Batch methods: least squares against numpy and scikit-learn, gradient descent against matrix products, SGD.

Run it from anywhere: ``python benchmarks/batch.py [--quick] [--markdown]``.
The work is compared where it is the same: least squares at residuals that agree to 1e-12; a round of gradient descent
against X @ w and X.T @ r; SGD against scikit-learn's, which shuffles instead of drawing with replacement and, as here,
takes constant steps on the square loss without penalty or intercept (ours keeps the mean of the iterates as well).
"""

from __future__ import annotations

import argparse

from common import Row, installed, interleave, table  # before numpy: it sets the number of threads
from online import dense

# isort: split
import numpy as np
from sklearn.linear_model import LinearRegression, SGDRegressor

from hindsight.estimators.gradient_descent import GradientDescentRegressor
from hindsight.estimators.least_squares import LeastSquares

ETA = 0.01
SKLEARN, NUMPY = (f"{name} {installed(name)}" for name in ("scikit-learn", "numpy"))
EPOCHS, ROUNDS = 3, 10


def squares(X: np.ndarray, y: np.ndarray, repetitions: int) -> list[Row]:
    """Least squares through the Gram matrix, and the same rows as a stream through blocked QR."""
    m, n = X.shape

    def residual(w: np.ndarray, b: float = 0.0) -> float:
        return float(np.linalg.norm(X @ w + b - y))

    ours, theirs = LeastSquares().fit(X, y), LinearRegression().fit(X, y)
    plain = LeastSquares(fit_intercept=False)
    pairs = [
        (residual(ours.coef_, ours.intercept_), residual(theirs.coef_, theirs.intercept_)),
        (residual(plain.fit(X, y).coef_), residual(np.linalg.lstsq(X, y)[0])),
        (residual(LeastSquares(fit_intercept=False).partial_fit(X, y).coef_), residual(plain.coef_)),
    ]
    for a, b in pairs:
        if not a <= b * (1 + 1e-12):
            raise SystemExit(f"least squares: residual {a!r} against {b!r}")
    times = interleave(
        {
            "ours": lambda: LeastSquares().fit(X, y),
            "plain": lambda: LeastSquares(fit_intercept=False).fit(X, y),
            "stream": lambda: LeastSquares(fit_intercept=False).partial_fit(X, y).coef_,
            "sklearn": lambda: LinearRegression().fit(X, y),
            "numpy": lambda: np.linalg.lstsq(X, y),
        },
        repetitions,
        warm=False,  # the residuals above were
    )
    work = f"least squares {m:,}×{n}"
    return [
        Row(f"{work}, no intercept", times["plain"], f"{NUMPY} linalg.lstsq", times["numpy"], "faster", 3),
        Row(f"{work}, intercept", times["ours"], f"{SKLEARN} LinearRegression", times["sklearn"], "faster", 3),
        Row(f"{work}, by blocked QR", times["stream"], f"{NUMPY} linalg.lstsq", times["numpy"], "faster", 1),
    ]


def rounds(X: np.ndarray, y: np.ndarray, repetitions: int) -> Row:
    """Rounds of gradient descent, the checks of a fit among them, against as many pairs of products."""
    m, n = X.shape
    w, r = np.ones(n), np.ones(m)

    def products() -> None:
        for _ in range(ROUNDS):
            X @ w
            X.T @ r

    model = GradientDescentRegressor(eta=ETA, rounds=ROUNDS, fit_intercept=False)
    times = interleave({"ours": lambda: model.fit(X, y), "peer": products}, repetitions)
    return Row(
        f"gradient descent {m:,}×{n}, a round", times["ours"], "X @ w and X.T @ r", times["peer"], "slower", 1.3,
        per=ROUNDS,
    )  # fmt: skip


def draws(X: np.ndarray, y: np.ndarray, repetitions: int) -> Row:
    """Stochastic gradient descent, an update; the checks of a fit are in both."""
    m, n = X.shape
    ours = GradientDescentRegressor(eta=ETA, rounds=EPOCHS * m, batch=1, fit_intercept=False, random_state=0)
    theirs = SGDRegressor(
        learning_rate="constant", eta0=2 * ETA, penalty=None, fit_intercept=False, max_iter=EPOCHS, tol=None,
        random_state=0,
    )  # fmt: skip
    apart = np.linalg.norm(ours.fit(X, y).coef_ - theirs.fit(X, y).coef_) / np.linalg.norm(theirs.coef_)
    if not apart < 0.2:  # both near the teacher, by other draws
        raise SystemExit(f"SGD: coefficients differ by {apart:.2g} (relative)")
    times = interleave({"ours": lambda: ours.fit(X, y), "peer": lambda: theirs.fit(X, y)}, repetitions, warm=False)
    return Row(
        f"SGD with replacement {m:,}×{n}, an update", times["ours"], f"{SKLEARN} SGDRegressor", times["peer"],
        "faster", 2, per=EPOCHS * m,
    )  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time batch methods.")
    parser.add_argument("--quick", action="store_true", help="ten times smaller")
    parser.add_argument("--markdown", action="store_true", help="print the table for the README")
    options = parser.parse_args()
    size, repetitions = (100_000, 3) if options.quick else (1_000_000, 5)
    X, y = dense(size, 100, "f8")
    lines = [rounds(X, y, repetitions), draws(X, y, repetitions), *squares(X, y, min(3, repetitions))]
    print(table(lines[2:] + lines[:2], options.markdown))


if __name__ == "__main__":
    main()
