"""Rows in a random order: uniform, the same whatever the chunks and the memory, on disk too, and resumable."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import hindsight
from commands import run
from conftest import nightly
from hindsight.rows import order
from hindsight.training.shuffle import shuffled


def read(data, chunk, **options):
    """A function that gives the chunks of a source from their beginning."""
    return lambda: hindsight.open_source(data, "y", chunk=chunk, **options).chunks()


def rows_of(chunks):
    """All rows with their targets and weights, as tuples."""
    out = []
    for chunk in chunks:
        X = chunk.X if isinstance(chunk.X, np.ndarray) else chunk.X.toarray()
        weight = np.ones(len(chunk)) if chunk.weight is None else chunk.weight
        out += [(*x, str(y), w) for x, y, w in zip(X.tolist(), chunk.y.tolist(), weight.tolist(), strict=True)]
    return out


def tables(n):
    """Dense and sparse rows, with numbers and with text as targets, with weights and without."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3)).round(3)
    sparse = csr_matrix(np.where(rng.random((n, 5)) < 0.4, rng.normal(size=(n, 5)).round(2), 0.0))
    numbers, text = rng.normal(size=n).round(3), rng.choice(["yes", "no", "may be"], n)
    weight = rng.random(n).round(2)
    return [(X, numbers), (X, text), (sparse, numbers), (sparse, text, weight), (X, numbers, weight)]


@nightly(but=["2", "7"])
@pytest.mark.parametrize("n", [1, 2, 7, 500])
def test_the_order_does_not_depend_on_chunks_or_memory(n):
    for data in tables(n):
        whole = rows_of(shuffled(read(data, 1 << 20), 3))
        assert sorted(whole) == sorted(rows_of(read(data, 1 << 20)()))
        for chunk, memory in ((64, 1 << 27), (1000, 1), (1 << 20, 500), (100, 5000)):
            assert rows_of(shuffled(read(data, chunk), 3, memory=memory)) == whole, (chunk, memory)
        if n == 500:
            assert rows_of(shuffled(read(data, 1 << 20), 4)) != whole


@nightly
def test_all_orders_are_equally_likely():
    X, seen, draws = np.arange(4.0)[:, None], Counter(), 4800
    for seed in range(draws):
        rows = rows_of(shuffled(read((X, X[:, 0]), 1 << 20), seed))
        seen[tuple(row[0] for row in rows)] += 1
    expected = draws / 24
    assert set(seen) == set(itertools.permutations([0.0, 1.0, 2.0, 3.0]))
    statistic = sum((count - expected) ** 2 / expected for count in seen.values())
    assert statistic < 49.7  # the 0.999 quantile of chi-squared with 23 degrees of freedom


def test_resuming_after_any_chunk_gives_the_rest(monkeypatch):
    monkeypatch.setattr("hindsight.training.shuffle.CHUNK", 2000)
    for data in tables(500)[1:4]:
        chunks = list(shuffled(read(data, 1 << 20), 1))
        assert len(chunks) > 3
        for k in (1, 2, len(chunks) // 2, len(chunks) - 1):
            rest = rows_of(shuffled(read(data, 300), 1, chunks[k].position, memory=1000))
            assert rest == rows_of(chunks[k + 1 :])


def test_changed_rows_are_refused_on_resuming(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n" + "".join(f"{k},{k % 7}\n" for k in range(100)))
    chunk = next(shuffled(read(str(path), 1 << 20, digest=True), 1))
    path.write_text("x,y\n" + "".join(f"{k},{k % 5}\n" for k in range(100)))
    with pytest.raises(ValueError, match="have changed"):
        list(shuffled(read(str(path), 1 << 20, digest=True), 1, chunk.position))


def test_a_row_is_told_by_its_line_in_the_file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n" + "".join(f"{k},{k % 2}\n" for k in range(50)) + "1e200,1\n")
    code, out, err = run(
        "learn", path, "--target", "y", "--shuffle", "--learner", "widrow-hoff", "--update", "explicit", "--eta", 1e150
    )
    assert code == 2 and "rows.csv, line" in err.splitlines()[-1], (code, out, err)


def test_bad_rows_are_rejected_once(tmp_path):
    rows, rejects = tmp_path / "rows.csv", tmp_path / "rejects.csv"
    rows.write_text("x,y\n" + "".join(f"{k},{k % 2}\n" for k in range(60)) + "1,2,3\n2,1,3\n")
    code, out, err = run("learn", rows, "--target", "y", "--shuffle", "--rejects", rejects)
    assert code == 0 and "60 rows" in out and "2 rejected" in out, (out, err)
    assert len(rejects.read_text().splitlines()) == 3


def sorted_file(path, n=2000):
    """Rows sorted by a label that the first feature gives away."""
    rng = np.random.default_rng(0)
    y = np.sort(rng.random(n) < 0.4).astype(int)
    x = rng.normal(size=n) + 2 * y
    path.write_text("x,y\n" + "".join(f"{a:.4f},{b}\n" for a, b in zip(x, y, strict=True)))
    return path


def test_sorted_labels_are_warned_of_and_shuffling_learns_them(tmp_path):
    path = sorted_file(tmp_path / "rows.csv")
    code, out, _ = run("learn", path, "--target", "y", "--progress", "none")
    assert code == 0 and "warning: the labels come sorted or in blocks (1 change" in out
    code, out, _ = run("learn", path, "--target", "y", "--progress", "none", "--shuffle", "--save", tmp_path / "m")
    assert code == 0 and "warning" not in out
    assert hindsight.load(tmp_path / "m").evaluate(str(path)).figures["accuracy"].value > 0.8
    with pytest.warns(hindsight.AssumptionWarning, match="shuffle=True"):
        hindsight.learn(str(path), "y")


def test_the_loss_is_that_of_the_whole_target_however_it_is_sorted(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("x,y\n" + "1.5,0\n" * 300_000 + "2.5,1\n" * 10)
    code, out, err = run("learn", path, "--target", "y", "--limit", 300_010)
    assert code == 0 and "loss logistic: the targets are two values" in err
    path.write_text("x,y\n" + "1.5,0\n2.5,1\n" * 500_000 + "".join(f"1,{k}\n" for k in range(300)))
    code, out, err = run("learn", path, "--target", "y")
    assert code == 0 and "starting again with targets that are numbers" in err and out.startswith("off by ")


def test_a_shuffled_run_is_resumed_to_the_same_bits(tmp_path):
    path = sorted_file(tmp_path / "rows.csv", 4000)
    command = ["learn", path, "--target", "y", "--shuffle", "--seed", 5, "--learner", "descent", "--loss", "logistic"]
    assert run(*command, "--save", tmp_path / "whole")[0] == 0
    folder = tmp_path / "checkpoints"
    assert run(*command, "--checkpoint", folder, "--every", 1, "--save", tmp_path / "first")[0] == 0
    for kept in sorted(folder.iterdir())[1:]:
        kept.unlink()
    assert run(*command, "--checkpoint", folder, "--resume", "--save", tmp_path / "resumed")[0] == 0
    whole, resumed = hindsight.load(tmp_path / "whole"), hindsight.load(tmp_path / "resumed")
    assert np.array_equal(whole.weights, resumed.weights) and whole.facts == resumed.facts
    code, out, _ = run("certify", tmp_path / "resumed", path)
    assert code == 0 and "BROKEN" not in out


# ---------------------------------------------------------------- the order of targets


def label_changes(codes):
    """The naive count."""
    return sum(a != b for a, b in itertools.pairwise(codes.tolist()))


def test_the_sums_of_the_order_are_those_of_the_definition():
    rng = np.random.default_rng(1)
    for _ in range(200):
        n = int(rng.integers(1, 60))
        codes, y = rng.integers(0, 3, n), rng.normal(size=n).cumsum()
        cuts = np.sort(rng.integers(0, n + 1, 3))
        labels, numbers, whole = np.zeros(order.FIELDS), np.zeros(order.FIELDS), np.zeros(order.FIELDS)
        order.add_numbers(whole, y)
        for part in np.split(np.arange(n), cuts):
            order.add_labels(labels, codes[part])
            order.add_numbers(numbers, y[part])
        assert labels[3] == label_changes(codes) and np.array_equal(numbers, whole)
        t, d = np.arange(1, n + 1), y - y[0]
        assert math.isclose(numbers[6], math.fsum(t * d), rel_tol=1e-9, abs_tol=1e-9)
        assert math.isclose(numbers[7], math.fsum(np.diff(y) ** 2), rel_tol=1e-9, abs_tol=1e-12)


def test_random_orders_are_not_warned_of_and_sorted_ones_are():
    rng = np.random.default_rng(2)
    warned = Counter()
    for _ in range(2000):
        n = int(rng.integers(20, 400))
        codes = rng.choice(3, n, p=[0.6, 0.3, 0.1])
        y = rng.standard_t(3, n)
        counts = np.bincount(codes, minlength=3)
        for name, c, v in (("random", codes, y), ("sorted", np.sort(codes), np.sort(y))):
            labels, numbers = np.zeros(order.FIELDS), np.zeros(order.FIELDS)
            order.add_labels(labels, c)
            order.add_numbers(numbers, v)
            warned[name, "labels"] += order.label_order(labels, counts) is not None
            warned[name, "numbers"] += order.number_order(numbers) is not None
    assert warned["random", "labels"] == warned["random", "numbers"] == 0
    assert warned["sorted", "labels"] > 1500 and warned["sorted", "numbers"] > 1800
