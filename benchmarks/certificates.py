"""What a certificate costs: against X.T @ X for dense rows, and against the learning pass for sparse ones.

Run it from anywhere: ``python benchmarks/certificates.py [--quick] [--markdown]``.
"""

from __future__ import annotations

import argparse

import hindsight
from common import Row, interleave, table  # before numpy: it sets the number of threads
from online import dense, documents


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time certificates.")
    parser.add_argument("--quick", action="store_true", help="ten times smaller")
    parser.add_argument("--markdown", action="store_true", help="print the table for the README")
    options = parser.parse_args()
    size, repetitions = (100_000, 1) if options.quick else (1_000_000, 3)
    rows = []

    X, y = dense(size, 100, "f8")
    model = hindsight.WidrowHoffRegressor(0.01, "explicit", fit_intercept=False).fit(X, y)
    times = interleave({"ours": lambda: model.certify(X, y), "gram": lambda: X.T @ X}, repetitions)
    rows.append(Row(f"Widrow-Hoff certificate, {size:,}×100", times["ours"], "X.T @ X", times["gram"], "slower", 2.2))

    S, labels = documents(size * 2 // 5)
    regress = hindsight.WidrowHoffRegressor(0.5, "explicit", fit_intercept=False)
    classify = hindsight.PerceptronClassifier(fit_intercept=False)
    work = {
        "learn": lambda: regress.fit(S, labels),
        "certify": lambda: regress.certify(S, labels),
        "learn labels": lambda: classify.fit(S, labels),
        "certify labels": lambda: classify.certify(S, labels),
    }
    times = interleave(work, repetitions)
    what = f"CSR {S.shape[0]:,}×{S.shape[1]:,}"
    rows.append(
        Row(f"Widrow-Hoff certificate to 1 %, {what}", times["certify"], "learning", times["learn"], "slower", 40.0)
    )
    gap = classify.certify(S, labels).comparator.found
    rows.append(
        Row(
            f"perceptron certificate ({gap}), {what}",
            times["certify labels"],
            "learning",
            times["learn labels"],
            "slower",
            100.0,
        )
    )
    print(table(rows, options.markdown))


if __name__ == "__main__":
    main()
