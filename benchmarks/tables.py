"""How well the default learner predicts held-out rows of tables with categories, against RidgeCV on one-hot columns.

Run it from anywhere: ``HINDSIGHT_TABLES=FOLDER python benchmarks/tables.py``. The folder holds CSV files whose last
column is the number to predict. A fifth of the rows, chosen at random, is held out; `hindsight.learn` goes through the
others once with no option but the target, scikit-learn's RidgeCV tries 22 penalties on standardised columns, one-hot
categories and means for missing values, with all rows at hand.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from pathlib import Path

from common import about  # before numpy: it sets the number of threads

# isort: split
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import hindsight

HELD_OUT, CLOSE = 0.2, 0.01


def ridge(train: pd.DataFrame, test: pd.DataFrame, target: str) -> np.ndarray:
    """The predictions of RidgeCV."""
    features = train.drop(columns=target).dropna(axis="columns", how="all")
    numbers = list(features.select_dtypes("number"))
    words = [name for name in features if name not in numbers]
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers), (OneHotEncoder(handle_unknown="ignore"), words)
    )
    model = make_pipeline(columns, RidgeCV(np.logspace(-3, 4, 22)))
    model.fit(features.astype(dict.fromkeys(words, str)), train[target])
    return np.asarray(model.predict(test[list(features)].astype(dict.fromkeys(words, str))))


def compare(file: Path) -> tuple[int, float, float]:
    """Rows, and R² of RidgeCV and of ours on those held out."""
    table = pd.read_csv(file, low_memory=False)
    target = str(table.columns[-1])
    table = table[table[target].notna()]
    order = np.random.default_rng(0).permutation(len(table))
    out = int(HELD_OUT * len(table))
    test, train = table.iloc[order[:out]], table.iloc[order[out:]]
    with tempfile.TemporaryDirectory() as folder:
        rows, held = Path(folder) / "train.csv", Path(folder) / "test.csv"
        train.to_csv(rows, index=False)
        test.to_csv(held, index=False)
        ours = np.asarray(hindsight.learn(rows, target=target).predict(held), float)
    return len(table), r2_score(test[target], ridge(train, test, target)), r2_score(test[target], ours)


def main() -> None:
    """Print a line per table, and how many are as good."""
    folder = os.environ.get("HINDSIGHT_TABLES")
    files = sorted(Path(folder).glob("*.csv")) if folder else []
    if not files:
        raise SystemExit("HINDSIGHT_TABLES must name a folder of CSV files whose last column is the target")
    warnings.simplefilter("ignore")
    print(f"{about()}\n\n| table | rows | RidgeCV, R² | ours, R² | difference |\n| --- | --- | --- | --- | --- |")
    apart = []
    for file in files:
        rows, peer, ours = compare(file)
        apart.append(ours - peer)
        print(f"| {file.stem} | {rows:,} | {peer:.4f} | {ours:.4f} | {ours - peer:+.4f} |", flush=True)
    good = sum(each >= -CLOSE for each in apart)
    print(f"\n{good} of {len(apart)} are no more than {CLOSE} below; median {np.median(apart):+.4f}", file=sys.stderr)


if __name__ == "__main__":
    main()
