"""The online learners against scikit-learn, Vowpal Wabbit, River and one read of the data.

Run it from anywhere: ``python benchmarks/online.py [--quick] [--markdown]``; minutes, or seconds with --quick.
River and Vowpal Wabbit come with the extra ``hindsight-learn[bench]``; without them their rows are left out.
Where peers allow, the same work is compared: the same step, no penalty, no shuffle, no intercept, and coefficients that
agree. Vowpal Wabbit has no perceptron loss; it takes the hinge loss.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import Row, Seconds, child, installed, interleave, table

# isort: split
import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import Perceptron, SGDRegressor

from hindsight import AssumptionWarning, EGRegressor, PerceptronClassifier, WidrowHoffRegressor

ETA = 0.01
COLUMNS, NONZEROS = 50_000, 75
EXTRA = "pip install hindsight-learn[bench]"
SKLEARN, RIVER, VW = (f"{name} {installed(name)}" for name in ("scikit-learn", "river", "vowpalwabbit"))


# ---------------------------------------------------------------- data


def dense(m: int, n: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian rows of norm about 1; targets of a teacher with |u|_1 = 1, which EG can reach, and noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, n), dtype=np.float32).astype(dtype)
    X /= np.sqrt(n)
    u = rng.standard_normal(n)
    y = X @ (u / np.abs(u).sum()).astype(dtype) + 0.01 * rng.standard_normal(m)
    return X, y.astype(dtype)


def documents(m: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows like RCV1's: Zipf columns, tf-idf values, norm 1; labels of a sparse teacher, one in twenty turned."""
    rng = np.random.default_rng(0)
    p = 1.0 / (np.arange(COLUMNS) + 10.0)
    p /= p.sum()
    counts = rng.poisson(NONZEROS * 1.055, m)  # about one draw in twenty repeats a column of its row
    column = rng.permutation(COLUMNS)[np.searchsorted(np.cumsum(p), rng.random(counts.sum())).clip(0, COLUMNS - 1)]
    keys = np.sort(np.repeat(np.arange(m), counts) * COLUMNS + column)
    keys = keys[np.append(True, keys[1:] != keys[:-1])]
    indices = keys % COLUMNS
    indptr = np.searchsorted(keys, np.arange(m + 1) * COLUMNS)
    idf = np.log(m / (1.0 + np.bincount(indices, minlength=COLUMNS)).clip(1, m)) + 0.5
    data = (1.0 + np.log(rng.geometric(0.6, keys.size))) * idf[indices]
    data /= np.repeat(np.sqrt(np.add.reduceat(data**2, indptr[:-1])), np.diff(indptr))
    X = sp.csr_matrix((data, indices.astype(np.int32), indptr.astype(np.int32)), shape=(m, COLUMNS))
    u = np.where(rng.random(COLUMNS) < 0.1, rng.standard_normal(COLUMNS), 0.0)
    z = X @ u
    y = np.where(z > np.median(z), 1.0, -1.0)
    y[rng.random(m) < 0.05] *= -1.0
    return X, y


def agree(what: str, a: np.ndarray, b: np.ndarray, tolerance: float) -> None:
    """Stop where two peers did not do the same work."""
    apart = float(np.linalg.norm(a - b) / np.linalg.norm(b))
    if not apart <= tolerance:
        raise SystemExit(f"{what}: coefficients differ by {apart:.2g} (relative), more than {tolerance:g}")


# ---------------------------------------------------------------- batches


def widrow_hoff(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return WidrowHoffRegressor(ETA, "explicit", fit_intercept=False).partial_fit(X, y).coef_


def sgd(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    model = SGDRegressor(learning_rate="constant", eta0=ETA, penalty=None, shuffle=False, fit_intercept=False)
    return model.partial_fit(X, y).coef_


def eg(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return EGRegressor(ETA, fit_intercept=False).partial_fit(X, y).coef_


def dense_rows(m: int, repetitions: int) -> list[Row]:
    """Widrow-Hoff and EG on dense rows."""
    X, y = dense(m, 100, "f8")
    agree("Widrow-Hoff", widrow_hoff(X, y), sgd(X, y), 1e-6)
    works = {"ours": widrow_hoff, "peer": sgd, "read": lambda X, y: X.sum(), "eg": eg}
    wide = interleave({name: lambda do=do: do(X, y) for name, do in works.items()}, repetitions)
    work = f"Widrow-Hoff {m:,}×100"
    peer = f"{SKLEARN} SGDRegressor"
    X, y = dense(m, 100, "f4")
    agree("Widrow-Hoff float32", widrow_hoff(X, y), sgd(X, y), 1e-3)  # its weights are float32, ours float64
    half = interleave({"ours": lambda: widrow_hoff(X, y), "peer": lambda: sgd(X, y)}, repetitions)
    Z, t = dense(2 * m, 10, "f8")
    agree("Widrow-Hoff narrow", widrow_hoff(Z, t), sgd(Z, t), 1e-6)
    narrow = interleave({"ours": lambda: widrow_hoff(Z, t), "peer": lambda: sgd(Z, t)}, repetitions)
    return [
        Row(f"{work} float64", wide["ours"], peer, wide["peer"], "faster", 6),
        Row(f"{work} float32", half["ours"], peer, half["peer"], "faster", 9),
        Row(f"{work} float64", wide["ours"], "X.sum()", wide["read"], "slower", 1.45, 1.15),
        Row(f"Widrow-Hoff {2 * m:,}×10 float64", narrow["ours"], peer, narrow["peer"], "faster", 2.3, 3),
        Row(f"EG {m:,}×100 float64", wide["eg"], "our Widrow-Hoff", wide["ours"], "slower", 4),
    ]


def perceptron(X: sp.csr_matrix, y: np.ndarray) -> np.ndarray:
    return PerceptronClassifier(fit_intercept=False).partial_fit(X, y, classes=[-1.0, 1.0]).coef_[0]


def their_perceptron(X: sp.csr_matrix, y: np.ndarray) -> np.ndarray:
    return Perceptron(shuffle=False, fit_intercept=False).partial_fit(X, y, classes=[-1.0, 1.0]).coef_[0]


def sparse_rows(X: sp.csr_matrix, y: np.ndarray, repetitions: int, passes: int) -> list[Row]:
    """The perceptron on sparse rows."""
    rows = []
    work = f"perceptron, CSR {X.shape[0]:,}×{COLUMNS:,}, {X.nnz / X.shape[0]:.0f} a row"
    for dtype, asked, tolerance in (("float64", 1.7, 1e-6), ("float32", 2.0, 0.2)):  # float32 ties fall otherwise
        Z, t = X.astype(dtype), y.astype(dtype)
        agree(f"perceptron {dtype}", perceptron(Z, t), their_perceptron(Z, t), tolerance)
        both = {"ours": lambda Z=Z, t=t: perceptron(Z, t), "peer": lambda Z=Z, t=t: their_perceptron(Z, t)}
        times = interleave(both, repetitions)
        rows.append(Row(f"{work}, {dtype}", times["ours"], f"{SKLEARN} Perceptron", times["peer"], "faster", asked))
    if not installed("vowpalwabbit"):
        return rows
    with tempfile.TemporaryDirectory() as folder:
        vw = vowpal_wabbit(Path(folder), X, y, passes)
        times = interleave({"ours": lambda: perceptron(X, y), "peer": vw}, min(3, repetitions), warm=False)
    rows.append(Row(f"{work}, float64", times["ours"], f"{VW} --sgd, cached", times["peer"], "faster", 10))
    return rows


def vowpal_wabbit(folder: Path, X: sp.csr_matrix, y: np.ndarray, passes: int) -> Callable[[], Seconds]:
    """One pass of Vowpal Wabbit over its cache, on one core: a run of many less a run of one, so start-up cancels."""
    m, cpu = X.shape[0], min(os.sched_getaffinity(0))
    text, options = folder / "rows.vw", ["--noconstant", "--loss_function", "hinge", "--sgd", "-l", 0.5, "--power_t", 0]
    text.write_bytes(vw_text(X, y))

    def run(count: int) -> float:
        began = time.perf_counter()
        told = child(
            "-m", "vowpalwabbit", "-d", text, "--cache_file", folder / "rows.cache", "--holdout_off",
            "--passes", count, *options, cpu=cpu,
        )  # fmt: skip
        wall = time.perf_counter() - began
        # The wheel may read nothing at all, and says so only here.
        seen = re.search(r"weighted example sum = (\d+)", told)
        if not seen or int(seen[1]) != count * m:
            raise SystemExit(f"Vowpal Wabbit did not read {count} × {m} rows: {told[-300:]}")
        return wall

    run(1)  # writes the cache
    return lambda: Seconds((run(1 + passes) - run(1)) / passes)


def vw_text(X: sp.csr_matrix, y: np.ndarray) -> bytes:
    """Rows as Vowpal Wabbit reads them, in pieces of one width: a label, or ' column:value'."""
    m, width = X.shape[0], 13
    columns = np.array([f" {j:05d}:" for j in range(COLUMNS)], f"S{7}").view(np.uint8).reshape(COLUMNS, 7)
    values = np.array([f"{k / 10_000:.4f}" for k in range(10_001)], f"S{6}").view(np.uint8).reshape(-1, 6)
    labels = np.array([f"\n{k:+d} |".ljust(width) for k in (-1, 1)], f"S{width}").view(np.uint8).reshape(2, width)
    pieces = np.empty((X.nnz + m, width), np.uint8)
    starts = X.indptr[:-1] + np.arange(m)
    features = np.ones(len(pieces), bool)
    features[starts] = False
    pieces[starts] = labels[(y > 0).astype(int)]
    pieces[features] = np.hstack([columns[X.indices], values[np.rint(X.data * 10_000).astype(int)]])
    return pieces.tobytes()[1:] + b"\n"


# ---------------------------------------------------------------- one row at a time


def stream(model: Any, rows: list[dict[str, float]], targets: list[Any]) -> Any:
    """Predict, then learn, row by row."""
    predict, learn = model.predict_one, model.learn_one
    learn(rows[0], targets[0])
    for x, y in zip(rows[1:], targets[1:], strict=True):
        predict(x)
        learn(x, y)
    return model


def river_rows(m: int, X: sp.csr_matrix, y: np.ndarray, repetitions: int) -> list[Row]:
    """A batch of ours, and single rows, against River's single rows."""
    from river import linear_model, optim

    def regression() -> Any:
        return linear_model.LinearRegression(optim.SGD(ETA / 2), intercept_lr=0.0)  # its gradient has the 2

    Z, t = dense(m, 100, "f8")
    rows, targets = [dict(enumerate(x)) for x in Z.tolist()], t.tolist()

    def one_by_one() -> Any:
        model = regression()
        for x, y in zip(rows, targets, strict=True):
            model.learn_one(x, y)
        return model

    theirs = one_by_one().weights
    agree("River", np.array([theirs[j] for j in range(100)]), widrow_hoff(Z, t), 1e-6)
    batch = interleave({"ours": lambda: widrow_hoff(Z, t), "peer": one_by_one}, repetitions)

    D, d = dense(m // 4, 20, "f8")
    dicts, numbers = [{f"feature {j}": v for j, v in enumerate(x)} for x in D.tolist()], d.tolist()
    few = interleave(
        {
            "ours": lambda: stream(WidrowHoffRegressor(ETA, "explicit", fit_intercept=False), dicts, numbers),
            "peer": lambda: stream(regression(), dicts, numbers),
        },
        repetitions,
    )
    pairs = [zip(x.indices.tolist(), x.data.tolist(), strict=True) for x in X[: m // 4]]
    words = [{f"word {j}": v for j, v in pair} for pair in pairs]
    labels = (y[: m // 4] > 0).tolist()
    many = interleave(
        {
            "ours": lambda: stream(PerceptronClassifier(fit_intercept=False), words, labels),
            "peer": lambda: stream(linear_model.Perceptron(), words, labels),
        },
        repetitions,
    )
    one, calls = "predict_one + learn_one, dicts of", len(dicts)
    batch_work, few_work, many_work = "Widrow-Hoff batch, 100 features, a row", f"{one} 20", f"{one} 75 of 50,000"
    return [
        Row(batch_work, batch["ours"], f"{RIVER} learn_one", batch["peer"], "faster", 350, per=m),
        Row(few_work, few["ours"], f"{RIVER} LinearRegression", few["peer"], "faster", 1.1, per=calls),
        Row(many_work, many["ours"], f"{RIVER} Perceptron", many["peer"], "faster", 2.5, per=calls),
    ]


# ---------------------------------------------------------------- start-up


def start_up_rows(repetitions: int) -> list[Row]:
    """Cold processes, warm caches."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "small.csv"
        X, y = dense(200, 5, "f8")
        lines = [",".join(f"{v:.6g}" for v in (*x, t)) for x, t in zip(X, y, strict=True)]
        file.write_text("\n".join(["a,b,c,d,e,y", *lines]) + "\n")
        commands: dict[str, tuple[Any, ...]] = {
            "pass": ("-c", "pass"),
            "version": ("-m", "hindsight", "--version"),
            "import": ("-c", "import hindsight"),
            "learn": ("-m", "hindsight", "learn", file, "--target", "y"),
        }
        times = interleave({name: lambda c=c: child(*c) for name, c in commands.items()}, repetitions)
    return [
        Row("hindsight --version", times["version"], "python -c pass", times["pass"], "more", 0.15),
        Row("import hindsight", times["import"], "python -c pass", times["pass"], "more", 0.2),
        Row("hindsight learn small.csv", times["learn"], "python -c pass", times["pass"], "total", 1.5),
    ]


def main() -> None:
    """Measure everything and print the table."""
    parser = argparse.ArgumentParser(description="Time the online learners against their peers.")
    parser.add_argument("--quick", action="store_true", help="ten times fewer rows, once: a smoke test")
    parser.add_argument("--markdown", action="store_true", help="print the table for the README")
    options = parser.parse_args()
    scale, repetitions, passes = (10, 1, 2) if options.quick else (1, 9, 10)
    warnings.simplefilter("ignore", AssumptionWarning)
    for peer in ("river", "vowpalwabbit"):
        if not installed(peer):
            print(f"{peer} is not installed, so its rows are left out: {EXTRA}", file=sys.stderr)
    rows = dense_rows(1_000_000 // scale, repetitions)
    X, y = documents(400_000 // scale)
    rows += sparse_rows(X, y, repetitions, passes)
    if installed("river"):
        rows += river_rows(20_000 // scale, X, y, repetitions)
    rows += start_up_rows(repetitions)
    print(table(rows, options.markdown))


if __name__ == "__main__":
    main()
