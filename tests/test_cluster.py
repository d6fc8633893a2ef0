"""Rows in partitions: the same answers as one machine, the same bits for any number of workers, and faults."""

import copy
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import hindsight
from conftest import many, nightly
from hindsight import cluster
from hindsight.batch.gradient_descent import loss_gradient
from hindsight.batch.isotonic import fit_pools, interpolate
from hindsight.certificates import theorems
from hindsight.certificates.theorems import Verdict
from hindsight.cluster.blocks import View
from hindsight.cluster.engine import FAN, collapse, root
from hindsight.cluster.isotron import choose_cuts, merge_pools, pool_range, split_by_range
from hindsight.cluster.rows import RunTable
from hindsight.cluster.shards import certify_epochs, play_epochs
from hindsight.kernels import compiler
from hindsight.kernels.losses import Square
from hindsight.online.learners import descent, widrow_hoff
from hindsight.online.run import Run, play
from hindsight.rows.data import Data
from in_process import InProcess

TIGHT = 1e-12


def data(m=600, n=4, seed=0):
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(m, n)), rng.normal(size=n) / 2
    y = 1.0 / (1.0 + np.exp(-X @ w)) + 0.1 * rng.normal(size=m)
    return X, y, rng.integers(0, 3, m).astype(float)


def parted(X, y, c=None, parts=7):
    ends = np.linspace(0, len(y), parts + 1).astype(int)
    columns = (X, y) if c is None else (X, y, c)
    return [tuple(values[a:b] for values in columns) for a, b in pairwise(ends)]


def read(X, y, c=None, parts=7, slots=2):
    weight = None if c is None else "c"
    return cluster.read(parted(X, y, c, parts), "y", weight=weight, client=InProcess(slots))


def fresh(model):
    return type(model)(**model.get_params())


# ---------------------------------------------------------------- isotonic regression over ranges


def pooled(z, y, w, cuts, parts=3):
    """The fit at every z, from ranges of points that several partitions hold."""
    each = [split_by_range((z[k::parts], y[k::parts], None if w is None else w[k::parts]), cuts) for k in range(parts)]
    pools = merge_pools([pool_range([points[r] for points in each]) for r in range(cuts.size + 1)])
    return interpolate(*pools.knots(), z), pools


def test_pools_of_ranges_make_the_fit_of_all_points_in_ten_thousand_cases_with_ties():
    rng = np.random.default_rng(1)
    shared = 0
    cases = many(1_000, 10_000)
    for case in range(cases):
        m = int(rng.integers(1, 40))
        z = rng.integers(0, int(rng.integers(1, 30)), m).astype(float)  # many ties
        y = rng.integers(-3, 4, m).astype(float) if case % 2 else rng.normal(size=m)
        w = None if case % 3 else rng.integers(1, 4, m).astype(float)
        cuts = choose_cuts(rng.permutation(z)[: int(rng.integers(1, m + 1))], int(rng.integers(1, 6)))
        shared += int(np.isin(cuts, z).any() and np.unique(z).size < m)  # a border at a value that is tied
        fit, pools = pooled(z, y, w, cuts)
        alone, whole = fit_pools(z, y, w, 1.0, np.inf)
        assert np.abs(fit - alone).max() <= TIGHT * max(1.0, np.abs(y).max())
        assert pools.count.sum() == m and (np.diff(pools.value) > 0.0).all()
        assert pools.left[0] == whole.left[0] and pools.right[-1] == whole.right[-1]
    assert shared > cases // 2


def test_a_cut_by_rank_would_part_ties_and_be_wrong():
    z, y = np.array([0.0, 1.0, 1.0, 2.0]), np.array([0.0, 5.0, 1.0, 6.0])
    right, _ = pooled(z, y, None, np.array([1.0]))
    assert right.tolist() == [0.0, 3.0, 3.0, 6.0]
    low, high = (pool_range([(z[half], y[half], None)]) for half in (slice(0, 2), slice(2, 4)))
    by_rank = merge_pools([low, high])
    assert len(set(by_rank.knots()[0].tolist())) == 3
    order = np.argsort(y[1:3])  # the same two points in the other order
    low, high = pool_range([(z[:2], np.array([0.0, 1.0]), None)]), pool_range([(z[2:], np.array([5.0, 6.0]), None)])
    assert order.tolist() == [1, 0] and merge_pools([low, high]).value.tolist() != by_rank.value.tolist()


# ---------------------------------------------------------------- sums in one order


@pytest.mark.parametrize("leaves", [1, 2, FAN, FAN + 1, 3 * FAN + 5, FAN * FAN + 3])
def test_sums_have_the_same_bits_however_leaves_are_grouped(leaves):
    rng = np.random.default_rng(leaves)
    values = rng.normal(size=leaves) * 10.0 ** rng.integers(-12, 12, leaves)
    whole = root({(0, k): v for k, v in enumerate(values)}, leaves, np.add)
    for groups in (1, 2, 3, 7, 64):
        ends = [k * leaves // groups for k in range(groups + 1)]
        nodes = {}
        for a, b in pairwise(ends):
            nodes |= collapse({(0, k): values[k] for k in range(a, b)}, leaves, np.add)
        assert root(nodes, leaves, np.add) == whole


def test_a_worker_sends_one_sum_for_every_full_node():
    sent = collapse({(0, k): 1 for k in range(3 * FAN)}, 100 * FAN, np.add)
    assert sent == {(1, 0): FAN, (1, 1): FAN, (1, 2): FAN}


# ---------------------------------------------------------------- as one machine

EXACT = [
    (hindsight.LeastSquares(l2=0.5), "numbers"),
    (hindsight.LeastSquares(fit_intercept=False), "numbers"),
    (hindsight.GradientDescentClassifier("hinge", eta="theory", B=2.0, rounds=20), "two"),
    (hindsight.GradientDescentClassifier(rounds=10), "three"),
    (hindsight.GradientDescentRegressor(rounds=30, l2=0.01, output="best"), "numbers"),
    (hindsight.GradientDescentRegressor("absolute", rounds=20, eta=0.05, fit_intercept=False), "numbers"),
    (hindsight.GLMtronBatchRegressor(rounds=30), "numbers"),
    (hindsight.GLMtronBatchRegressor("identity", rounds=10, fit_intercept=False), "numbers"),
    (hindsight.IsotronRegressor(rounds=20), "numbers"),
    (hindsight.IsotronRegressor(rounds=10, scale_x=True, scale_y=True), "numbers"),
    (hindsight.IsotronClassifier(rounds=15), "two"),
    (hindsight.IsotronClassifier(rounds=5), "three"),
]


FEW = 50_000  # margins up to which Isotron pools them together; from there on by ranges
BOTH = [(model, kind, few) for model, kind in EXACT for few in (FEW, 0) if few or "Isotron" in type(model).__name__]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("model", "kind", "few"), BOTH, ids=lambda value: str(value)[:60])
def test_a_fit_over_partitions_is_that_of_one_machine(monkeypatch, model, kind, few, weighted):
    monkeypatch.setattr("hindsight.cluster.isotron.FEW", few)
    X, y, c = data()
    y = {"numbers": y, "two": np.where(y > 0.5, "yes", "no"), "three": np.digitize(y, [0.3, 0.7]).astype(float)}[kind]
    c = c if weighted else None
    alone, bits = fresh(model).fit(X, y, c), set()
    for slots in (1, 2, 6):
        found = cluster.fit(fresh(model), read(X, y, c, slots=slots))
        bits.add((found.coef_.tobytes(), np.asarray(found.intercept_).tobytes()))
        assert np.abs(found.coef_ - alone.coef_).max() <= TIGHT
        assert np.abs(found.predict(X) == alone.predict(X) if kind != "numbers" else 1.0).min() == 1.0
        if kind == "numbers":
            assert np.abs(found.predict(X) - alone.predict(X)).max() <= TIGHT
    assert len(bits) == 1
    if hasattr(found, "certify"):  # sums over the rows say that these are its rows, in this order
        assert found.certify(X, y, c).verdict == alone.certify(X, y, c).verdict
        for mine, theirs in zip(np.ravel(found.facts_), np.ravel(alone.facts_), strict=True):
            assert vars(mine) == pytest.approx(vars(theirs), rel=1e-11)


class Cramped(InProcess):
    """Slots that have room for few blocks at a time."""

    def room(self, size):
        return 3000.0


@pytest.mark.parametrize(("model", "kind"), EXACT[::4], ids=lambda value: str(value)[:60])
def test_little_memory_makes_more_groups_and_the_same_bits(model, kind):
    X, y, c = data()
    engine = Cramped(2)
    rows = cluster.read(parted(X, y, c, 40), "y", weight="c", client=engine)
    assert len(engine.groups) > 10 and [k for group in engine.groups for k in group] == list(range(40))
    assert engine.used == 2
    found, alone = cluster.fit(fresh(model), rows), cluster.fit(fresh(model), read(X, y, c, 40, 1))
    assert found.coef_.tobytes() == alone.coef_.tobytes()


def test_sparse_partitions_whose_features_differ_are_numbered_as_in_one_pass():
    rng = np.random.default_rng(3)
    rows = [{f"f{j}": float(rng.normal()) for j in rng.choice(30, 4, replace=False)} for _ in range(200)]
    y = rng.normal(size=200)
    source = hindsight.open_source((rows, y), "y")
    (chunk,) = source.chunks()
    ends = range(0, 201, 40)
    parts = [(rows[a:b], y[a:b]) for a, b in pairwise(ends)]
    read = cluster.read(parts, "y", client=InProcess(2))
    assert read.names == list(source.names)
    model = cluster.fit(hindsight.GLMtronBatchRegressor("identity", rounds=10), read)
    alone = hindsight.GLMtronBatchRegressor("identity", rounds=10).fit(chunk.X, y)
    assert np.abs(model.coef_ - alone.coef_).max() <= TIGHT


def test_csr_partitions_are_fitted_as_dense_ones():
    X, y, c = data()
    X[np.abs(X) < 0.7] = 0.0
    dense = cluster.fit(hindsight.IsotronRegressor(rounds=10), read(X, y, c))
    sparse = [(sp.csr_matrix(part[0]), *part[1:]) for part in parted(X, y, c)]
    rows = cluster.read(sparse, "y", weight="c", client=InProcess(2))
    assert np.abs(cluster.fit(hindsight.IsotronRegressor(rounds=10), rows).coef_ - dense.coef_).max() <= TIGHT


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (hindsight.IsotronRegressor(lipschitz=1.0), "Lipschitz isotonic regression needs all points at once"),
        (hindsight.IsotronRegressor(held_out=0.1), "held_out is not for a cluster"),
        (hindsight.GradientDescentRegressor(batch=1), "take batch='full' on a cluster"),
        (hindsight.GradientDescentRegressor("hinge"), "use GradientDescentClassifier"),
        (hindsight.WidrowHoffRegressor(), "cluster.mix averages such learners"),
        (hindsight.GLMtronBatchRegressor("identity", eta=1e308, rounds=5), "take a smaller eta"),
        (hindsight.GradientDescentRegressor(eta=1e308, rounds=5), "take a smaller eta"),
    ],
)
def test_what_a_cluster_does_not_do_is_said_in_one_line_and_changes_nothing(model, message):
    X, y, _ = data(60)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        cluster.fit(model, read(X, y))
    assert vars(model) == before


def test_a_row_that_cannot_be_learnt_is_named_with_its_partition():
    X, y, _ = data(60)
    X[45, 2] = 1e200
    with pytest.raises(hindsight.SourceError, match=r"^partition 5: data, row 3, column 2 \('3'\): .*1e\+200"):
        cluster.fit(hindsight.GLMtronBatchRegressor(rounds=2), read(X, y))


# ---------------------------------------------------------------- certificates over partitions


@pytest.mark.parametrize(
    "model",
    [
        hindsight.GradientDescentRegressor(rounds=20),
        hindsight.GradientDescentRegressor(rounds=20, output="mean-after"),
        hindsight.GradientDescentRegressor("absolute", rounds=20, output="best", l2=0.1),
        hindsight.GLMtronBatchRegressor(rounds=20),
        hindsight.IsotronRegressor(rounds=5),
    ],
)
def test_a_certificate_over_partitions_is_that_of_one_machine(model):
    X, y, c = data()
    rows = read(X, y, c)
    model = cluster.fit(fresh(model), rows)
    here, there = cluster.certify(model, rows), model.certify(X, y, c)
    assert here.verdict is there.verdict and here.theorem == there.theorem
    assert here.measured == pytest.approx(there.measured, rel=1e-12)
    if np.isfinite(there.bound):  # for this comparator; the other side's may be farther from the best
        again = model.certify(X, y, c, u=here.comparator.u)
        assert here.bound == pytest.approx(again.bound, rel=1e-9) and here.bound <= there.bound + 1e-9
    X[0, 0] += 1.0
    with pytest.raises(hindsight.MismatchError):
        cluster.certify(model, read(X, y, c))


# ---------------------------------------------------------------- shards


def test_one_shard_and_one_epoch_are_the_sequential_run():
    X, y, c = data()
    alone = hindsight.WidrowHoffRegressor(eta=0.05).fit(X, y, c)
    model, (run,) = cluster.mix(hindsight.WidrowHoffRegressor(eta=0.05), read(X, y, c, parts=1))
    assert model.coef_.tobytes() == alone.coef_.tobytes() and run.facts[0] == alone.runs_[0].facts


def test_epochs_start_at_the_mean_of_all_shards_and_facts_add_up():
    X, y, _ = data()
    parts, learner = parted(X, y), widrow_hoff(0.05)
    runs, w, total = [], None, 0.0
    for _ in range(3):
        runs = [Run(learner, 4, start=w) for _ in parts]
        for run, (rows, targets) in zip(runs, parts, strict=True):
            play([run], rows, [targets])
        w, total = np.mean([run.weights for run in runs], axis=0), total + sum(run.facts.loss for run in runs)
    for slots in (1, 3):
        found = play_epochs(learner, read(X, y, slots=slots), View("real", bias=1.0), 3)
        assert np.abs(found.mixed - w).max() <= 1e-15
        assert sum(f.loss for f in found.facts) == pytest.approx(total, rel=1e-13)


@nightly(but=["1-square", "4-logistic"])
@pytest.mark.parametrize("loss", ["absolute", "square", "logistic"])
@pytest.mark.parametrize("epochs", [1, 4])
def test_the_bound_of_all_shards_holds_for_every_comparator(loss, epochs):
    X, y, c = data()
    y = np.clip(y, 0.0, 1.0)
    rows, rng = read(X, y, c), np.random.default_rng(5)
    model = hindsight.DescentRegressor(loss, eta=0.01, update="explicit")
    model, runs = cluster.mix(model, rows, epochs=epochs)
    for u in (None, np.zeros(5), rng.normal(size=5), 10.0 * rng.normal(size=5)):
        certificate = cluster.certify_shards(model, rows, runs, u=u)
        assert certificate.verdict is Verdict.HOLDS
        assert all(member.loss <= member.bound for member in certificate.members)
    if loss != "square":  # which declares the theorem of Widrow-Hoff
        u, (run,) = certificate.comparator.u, runs
        gradients = sum(f.gradient for f in run.facts)
        first = theorems.convex(0.01, certificate.comparator.loss, 7 * float(u @ u) / 2.0, gradients)
        assert certificate.bound == pytest.approx(first) and certificate.theorem.anchor == "shards"
    with pytest.raises(hindsight.MismatchError, match="no round yet"):  # the mixed weights are no run
        model.certify(X, y, c)


@pytest.mark.parametrize(
    "model",
    [hindsight.PerceptronClassifier(), hindsight.WidrowHoffRegressor(eta=0.05), hindsight.EGRegressor(eta=0.02)],
)
def test_other_learners_have_the_bounds_of_their_shards_added_up(model):
    X, y, _ = data()
    y = np.where(y > 0.5, 1.0, -1.0) if hasattr(model, "decision_function") else y
    rows = read(X, y)
    model, runs = cluster.mix(model, rows, epochs=2)
    certificate = cluster.certify_shards(model, rows, runs)
    assert certificate.verdict is Verdict.HOLDS and len(certificate.members) == 7
    assert certificate.bound == pytest.approx(sum(member.bound for member in certificate.members))
    assert any("no theorem speaks" in note for note in certificate.notes)


FORGED = {
    "targets times 100": lambda parts: [(X, 100.0 * y) for X, y in parts],
    "half the rows": lambda parts: [(X[: len(y) // 2], y[: len(y) // 2]) for X, y in parts],
    "rows in another order": lambda parts: [(X[::-1], y[::-1]) for X, y in parts],
    "shards in another order": lambda parts: parts[::-1],
    "one number": lambda parts: [(X + 1e-3 * (np.arange(X.size) == 0).reshape(X.shape), y) for X, y in parts],
    "other partitions": lambda parts: parted(*map(np.concatenate, zip(*parts, strict=True)), parts=5),
    "a column more": lambda parts: [(np.c_[X, X[:, :1]], y) for X, y in parts],
}


@pytest.mark.parametrize("forged", FORGED)
@pytest.mark.parametrize(
    "model",
    [hindsight.DescentRegressor("absolute", eta=0.01, update="explicit"), hindsight.WidrowHoffRegressor(eta=0.05)],
)
def test_shards_are_certified_on_their_own_rows_alone(model, forged):
    parts = parted(*data(140)[:2])
    mixed, runs = cluster.mix(fresh(model), cluster.read(parts, "y", client=InProcess(2)), epochs=2)
    with pytest.raises(hindsight.MismatchError, match="the model was"):
        cluster.certify_shards(mixed, cluster.read(FORGED[forged](parts), "y", client=InProcess(2)), runs)


def test_shards_with_other_classes_are_refused_and_leave_the_model_as_it_was():
    X, y, _ = data(140)
    mixed, runs = cluster.mix(hindsight.PerceptronClassifier(), read(X, np.where(y > 0.5, "yes", "no")))
    with pytest.raises(hindsight.MismatchError, match="other classes"):
        cluster.certify_shards(mixed, read(X, np.where(y > 0.5, "ja", "nein")), runs)
    assert mixed.classes_.tolist() == ["no", "yes"]


def test_what_a_theorem_needs_is_shown_for_all_shards():
    X, y, _ = data(140)
    X[:20] /= 10.0
    norms = (np.c_[X, np.ones(140)] ** 2).sum(axis=1)
    mixed, runs = cluster.mix(hindsight.WidrowHoffRegressor(eta=0.04, update="explicit"), rows := read(X, y))
    found = cluster.certify_shards(mixed, rows, runs)
    assert found.verdict is Verdict.HOLDS
    shown = [need.text for need in found.assumptions]
    largest = [0.04 * norms[k * 20 : k * 20 + 20].max() for k in range(7)]
    worst = int(np.argmax(largest))
    assert any(t.startswith(f"shard {worst}, epoch 1: max η·|x|₂² = {max(largest):.6g}") for t in shown)
    assert any(t.startswith(f"shard 0, epoch 1: max η·|x|₂² = {largest[0]:.6g}") for t in shown)
    mixed, runs = cluster.mix(hindsight.WidrowHoffRegressor(eta=0.15, update="explicit"), rows)
    found = cluster.certify_shards(mixed, rows, runs)
    assert found.verdict is Verdict.VOID
    assert any(need.met is False and need.text.startswith("shard ") for need in found.assumptions)


def test_shards_of_a_learner_with_the_theorem_of_another_do_not_hold():
    from dataclasses import replace

    X, y, _ = data(140)
    halved = replace(descent("absolute", eta=0.05), update=Halved(0.5))
    rows = read(X, y)
    run = play_epochs(halved, rows, View("real", bias=1.0), 2)
    found = certify_epochs(run, rows)
    assert found.verdict is not Verdict.HOLDS


@compiler.part
class Halved(NamedTuple):
    """Explicit steps of so many times the size they should have."""

    scale: float
    name = "halved"

    def effective_slope(self, loss, geometry, state, rows, t, z, q, y, a):
        return self.scale * loss.slope(z, y)


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (hindsight.DescentRegressor("square", eta=0.01), "numbers"),
        (hindsight.DescentClassifier("logistic", eta=0.05, update="explicit"), "labels"),
        (hindsight.DescentRegressor("absolute", eta=0.01, update="explicit"), "numbers"),
        (hindsight.EGRegressor(eta=0.02), "numbers"),
        (hindsight.PerceptronClassifier(), "labels"),
    ],
)
def test_the_best_in_hindsight_over_shards_is_that_of_one_machine(model, kind):
    X, y, c = data()
    y = np.where(y > 0.5, "yes", "no") if kind == "labels" else y
    rows = read(X, y, c)
    mixed, runs = cluster.mix(fresh(model), rows, epochs=3)
    here, there = cluster.certify_shards(mixed, rows, runs), fresh(model).fit(X, y, c).certify(X, y, c)
    assert here.constant == pytest.approx(3 * there.constant, rel=1e-12) and here.weight == 3 * c.sum()
    assert here.lost == pytest.approx(sum(f.loss if "loss" in here.quantity else f.square for f in runs[0].facts)) or (
        here.lost == here.measured
    )
    assert here.best.gap >= 0.0 and here.regret == here.lost - here.best.loss
    if "mistakes" in here.quantity:
        assert 3 * there.best.loss <= here.best.loss <= here.constant
        return
    exact = 1e-4 if isinstance(model, hindsight.DescentRegressor) and model.loss == "absolute" else 1e-9
    assert here.best.loss == pytest.approx(3 * there.best.loss, rel=exact)
    assert here.best.lower <= 3 * there.best.loss * (1 + 1e-9) and 3 * there.best.lower <= here.best.loss * (1 + 1e-9)
    if exact == 1e-9:
        assert there.best_is_shown and "best fixed predictor" in str(there)
        assert here.best.reach == np.inf and here.best_is_shown and "best fixed predictor" in str(here)


def test_what_cannot_be_mixed_is_refused():
    X, y, _ = data(60)
    with pytest.raises(ValueError, match="constant rate"):
        cluster.mix(hindsight.DescentRegressor(power=0.5), read(X, y))
    with pytest.raises(ValueError, match="a panel has no weights"):
        cluster.mix(hindsight.AutoRegressor(), read(X, y))
    with pytest.raises(ValueError, match=r"use cluster\.fit"):
        cluster.mix(hindsight.LeastSquares(), read(X, y))


# ---------------------------------------------------------------- forecasts and densities


def test_the_decomposition_of_a_score_is_that_of_all_rows():
    from hindsight.forecast import reliability

    X, y, c = data()
    labels = np.where(y > 0.5, "yes", "no")
    rows = read(X, labels, c)
    model = cluster.fit(hindsight.GradientDescentClassifier(rounds=20), rows)
    here, there = cluster.corp(model, rows), reliability((labels == "yes") * 1.0, model.predict_proba(X)[:, 1], c)
    for name in ("rounds", "score", "miscalibration", "discrimination", "uncertainty", "mean"):
        assert getattr(here, name) == pytest.approx(getattr(there, name), abs=1e-13), name


def test_densities_add_up():
    from hindsight.density import Gaussian

    X, y, _ = data()
    found, alone = cluster.density(Gaussian(columns=4), read(X, y)), Gaussian(columns=4).update(X)
    assert np.abs(found.logp(X) - alone.logp(X)).max() <= 1e-11


# ---------------------------------------------------------------- messages, checkpoints


def sent_per_round(model, m, slots, parts=16):
    """Bytes and messages of the last round, and the bytes that the driver received in it."""
    X, y, _ = data(m)
    engine, counts = InProcess(slots), []
    rows = cluster.read(parted(X, y, parts=parts), "y", client=engine)
    note = lambda t, loss: counts.append(np.array([engine.sent, engine.messages, engine.to_driver]))  # noqa: E731
    cluster.fit(type(model)(rounds=4), rows, notify=note)
    return (counts[-1] - counts[-2]).tolist()


def test_a_round_of_descent_sends_weights_and_sums_whatever_the_rows():
    few, many = (sent_per_round(hindsight.GradientDescentRegressor(), m, 4) for m in (400, 4000))
    assert few == many and few[1:] == [8, 16 * 6 * 8]  # sixteen partitions of four: no worker has a full node
    assert sent_per_round(hindsight.GradientDescentRegressor(), 400, 1)[2] == 6 * 8  # but one that has them all
    assert sent_per_round(hindsight.GLMtronBatchRegressor(), 400, 4)[1:] == [8, 16 * 7 * 8]  # one reduction too


def test_a_sum_over_a_table_is_one_reduction_and_that_of_one_machine():
    X, y, _ = data(400)
    whole, loss, w = Data(X, y, None, 1.0), Square(2.0), np.linspace(-1.0, 1.0, X.shape[1] + 1)
    engine = InProcess(4)
    table = RunTable(cluster.read(parted(X, y, parts=16), "y", client=engine), View("real", bias=1.0))
    before = engine.messages
    found = table.sum(loss_gradient, loss, w, table.weight)
    assert engine.messages - before == 8  # one task for each slot, and one answer
    np.testing.assert_allclose(found, whole.sum(loss_gradient, loss, w, whole.weight), rtol=1e-12, atol=1e-14)
    here, there = table.measured("real"), whole.measured("real")
    assert here.maxima.tolist() == there.maxima.tolist() and here.counted == there.counted
    np.testing.assert_allclose(here.sums, there.sums, rtol=1e-12)


def test_a_round_of_isotron_sends_each_point_once_and_the_driver_none(monkeypatch):
    monkeypatch.setattr("hindsight.cluster.isotron.FEW", 0)
    few, many = (sent_per_round(hindsight.IsotronRegressor(), m, 4) for m in (1600, 16000))
    assert few[2] == many[2] == 16 * 6 * 8
    points = 16000 * 16
    assert 0.5 * points < many[0] < 1.3 * points  # three in four leave their worker, and then there are pools
    monkeypatch.setattr("hindsight.cluster.isotron.FEW", FEW)
    for slots in (2, 8):  # all send theirs to one, which sends pools
        few = sent_per_round(hindsight.IsotronRegressor(), 16000, slots)
        assert (1 - 1 / slots) * points < few[0] < 1.1 * points and few[2] == many[2]


@pytest.mark.parametrize("model", [hindsight.GradientDescentRegressor(), hindsight.IsotronRegressor()])
def test_a_fit_resumes_from_its_checkpoint_with_the_same_bits(tmp_path, model):
    X, y, c = data()
    whole = cluster.fit(type(model)(rounds=20), read(X, y, c))

    class Lost(Exception):
        pass

    def lose(t, loss):
        if t == 13:
            raise Lost

    folder, rounds = tmp_path / "kept", []
    with pytest.raises(Lost):
        cluster.fit(type(model)(rounds=20), read(X, y, c), notify=lose, checkpoint=folder, every=4)
    again = cluster.fit(
        type(model)(rounds=20), read(X, y, c), notify=lambda t, loss: rounds.append(t), checkpoint=folder, every=4
    )
    assert rounds == list(range(13, 21))
    assert again.coef_.tobytes() == whole.coef_.tobytes() and again.facts_ == whole.facts_
    X[0, 0] += 1.0
    with pytest.raises(hindsight.ModelError, match="of another fit"):
        cluster.fit(type(model)(rounds=20), read(X, y, c), checkpoint=folder)
    with pytest.raises(hindsight.ModelError, match="of another fit"):
        cluster.fit(type(model)(rounds=20, eta=0.01), read(*data()), checkpoint=folder)


def test_a_cluster_without_dask_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(cluster.ClusterError, match=r"^a cluster needs dask\.distributed: pip install hindsight-learn"):
        cluster.read("folder", "y")


# ---------------------------------------------------------------- files


def write(folder, X, y, c=None, files=4, **more):
    folder.mkdir()
    for k, part in enumerate(parted(X, y, c, files)):
        columns = {f"x{j}": part[0][:, j] for j in range(X.shape[1])} | {"y": part[1]}
        columns |= {"c": part[2]} if c is not None else {}
        pq.write_table(pa.table(columns), folder / f"part{k}.parquet", row_group_size=50)
    return str(folder)


def test_parquet_files_are_cut_at_row_groups_and_read_in_order(tmp_path):
    X, y, c = data(613)
    folder = write(tmp_path / "rows", X, y, c)
    rows = cluster.read(folder, "y", weight="c", partition_rows=60, client=InProcess(3))
    assert len(rows.shapes) > 4 and rows.rows == 613 and rows.names == ["x0", "x1", "x2", "x3"]
    blocks = rows.engine.gather(rows.engine.blocks)
    assert np.array_equal(np.concatenate([block.X for block in blocks]), X)
    assert np.array_equal(np.concatenate([block.weight for block in blocks]), c)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_bad_row_is_the_same_line_as_on_one_machine(tmp_path, kind):
    X, y, _ = data(400)
    X[333, 1] = np.nan
    folder = write(tmp_path / "rows", X, y)
    if kind == "csv":
        from pyarrow import csv

        for file in (tmp_path / "rows").iterdir():
            csv.write_csv(pq.read_table(file), file.with_suffix(".csv"))
            file.unlink()
    with pytest.raises(hindsight.SourceError) as alone:
        for _ in hindsight.open_source(folder, "y").chunks():
            pass
    with pytest.raises(hindsight.SourceError) as here:
        cluster.read(folder, "y", partition_rows=60, client=InProcess(3))
    assert str(here.value) == str(alone.value) and f"part3.{kind}" in str(here.value)


def test_columns_of_categories_are_numbered_as_in_one_pass(tmp_path):
    rng = np.random.default_rng(2)
    (tmp_path / "rows").mkdir()
    for k in range(3):
        words = rng.choice(list("abcdefgh")[k : k + 5], 50)
        table = pa.table({"word": words, "x": rng.normal(size=50), "y": rng.normal(size=50)})
        pq.write_table(table, tmp_path / "rows" / f"{k}.parquet")
    folder = str(tmp_path / "rows")
    source = hindsight.open_source(folder, "y", categorical="auto")
    X = sp.vstack([sp.csr_matrix((c.X.data, c.X.indices, c.X.indptr), (len(c), 20)) for c in source.chunks()])
    rows = cluster.read(folder, "y", categorical="auto", client=InProcess(2))
    assert rows.names == list(source.names)
    blocks = rows.engine.gather(rows.engine.blocks)
    assert (sp.vstack([block.X for block in blocks]) != X[:, : rows.features]).nnz == 0


# ---------------------------------------------------------------- ordinary tables


def ordinary(m=400, seed=4):
    """A table of numbers, words, dates, text, codes and gaps, as lists of text."""
    rng = np.random.default_rng(seed)
    words = [f"w{k}" for k in range(60)]
    table = {
        "id": [f"k{k:05d}" for k in range(m)],
        "size": [f"{v:.3f}" for v in rng.normal(size=m)],
        "price": [f"${v:,.2f}" for v in rng.uniform(0, 9000, m)],
        "town": rng.choice(["Bern", "Zug", "Chur"], m).tolist(),
        "when": [f"2024-{rng.integers(1, 13):02d}-{rng.integers(1, 28):02d}" for _ in range(m)],
        "note": [" ".join(rng.choice(words[: 10 + k // 8], 4)) for k in range(m)],
        "new": rng.choice(["yes", "no"], m).tolist(),
        "y": [f"{v:.4f}" for v in rng.normal(size=m)],
    }
    for name, part in (("size", 0.1), ("town", 0.05), ("y", 0.03)):
        for k in np.flatnonzero(rng.uniform(size=m) < part):
            table[name][k] = ""
    table["town"][m - 5] = "Basel"  # met late
    return table


def write_table(folder, table, cuts, kind="csv"):
    folder.mkdir()
    names, m = list(table), len(next(iter(table.values())))
    for k, (a, b) in enumerate(pairwise([0, *cuts, m])):
        part = {name: values[a:b] for name, values in table.items()}
        if kind == "csv":
            lines = [";".join(names), *(";".join(row) for row in zip(*part.values(), strict=True))]
            (folder / f"{k}.csv").write_text("\n".join(lines) + "\n")
        else:
            typed = {name: pa.array([v or None for v in values], pa.string()) for name, values in part.items()}
            for name in ("size", "y"):
                typed[name] = typed[name].cast(pa.float64())
            pq.write_table(pa.table(typed), folder / f"{k}.parquet", row_group_size=60)
    return str(folder)


def alone(data, target="y", **options):
    """All rows as one machine reads them."""
    from hindsight.training.plan import Plan
    from hindsight.training.prepare import read_all

    own = {name: options.pop(name) for name in ("limit", "sample", "shuffle", "seed") if name in options}
    return read_all(Plan(data, target, (), {"strict": False} | options, **own))


def together(rows):
    """The rows of all partitions, and their targets."""
    blocks = rows.engine.gather(rows.engine.blocks)
    parts = [part for block in blocks for part in block.parts()]
    X = np.concatenate([part[0].toarray() if rows.sparse else part[0] for part in parts])
    return X, np.concatenate([part[1] for part in parts])


@nightly(but=["csv-indicator", "parquet-skip"])
@pytest.mark.parametrize("missing", ["indicator", "mean", "skip", "zero"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_ordinary_table_in_parts_is_read_as_on_one_machine(tmp_path, kind, missing):
    table = ordinary()
    whole = write_table(tmp_path / "whole", table, [], kind)
    folder = write_table(tmp_path / "parts", table, [90, 90, 200, 390], kind)  # one of them has no row
    there = alone(whole, missing=missing)
    for held in (True, False):
        rows = cluster.read(
            folder, "y", client=InProcess(2), held=held, strict=False, missing=missing, partition_rows=50
        )
        X, y = together(rows)
        assert rows.names == there.names and rows.held is held
        assert np.abs(X - there.X.toarray()).max() <= TIGHT and np.array_equal(y, there.y)
    assert {"size", "town=Basel", "when month=March", "note=w3", "new"} <= set(rows.names)
    assert not any(name.startswith("id") for name in rows.names)
    for model in (hindsight.LeastSquares(l2=0.1), hindsight.IsotronRegressor(rounds=3)):
        here = cluster.fit(fresh(model), rows)
        assert np.abs(here.coef_ - model.fit(there.X, there.y, there.weight).coef_).max() <= 10 * TIGHT


def test_types_that_were_asked_for_hold_for_all_partitions(tmp_path):
    folder = write_table(tmp_path / "parts", ordinary(), [100, 250])
    options = {"strict": False, "missing": "zero", "types": {"town": "ignore", "id": "category", "note": "text(2)"}}
    rows, there = cluster.read(folder, "y", client=InProcess(2), **options), alone(folder, **options)
    assert rows.names == there.names and "id=k00007" in rows.names


def test_rows_that_disprove_the_first_ones_have_the_workers_look_at_all(tmp_path):
    rng, notes = np.random.default_rng(0), []
    table = {name: [f"{v:.3f}" for v in rng.normal(size=300)] for name in ("a", "b", "y")}
    table["a"][250] = ""
    folder = write_table(tmp_path / "parts", table, [100, 200])
    options = {"strict": False, "missing": "indicator", "scan": 50}
    with pytest.raises(hindsight.SourceError, match="unlike all rows before"):
        alone(folder, **options)
    rows = cluster.read(folder, "y", client=InProcess(2), notify=notes.append, **options)
    there = alone(folder, **options | {"scan": 0})
    assert rows.names == there.names == ["a", "b", "a is missing"] and np.array_equal(together(rows)[0], there.X)
    assert len(notes) == 1 and "2.csv, line 52" in notes[0] and "looked at all rows" in notes[0]
    table["b"][200:] = ["few"] * 100  # it is a category then
    folder = write_table(tmp_path / "more", table, [100, 200])
    rows = cluster.read(folder, "y", client=InProcess(2), **options)
    assert rows.names == alone(folder, **options | {"scan": 0}).names


def test_what_was_seen_of_parts_is_joined_to_what_was_seen_of_all(tmp_path):
    from hindsight.cluster.partitions import split_table, with_types_of_all

    table = ordinary()
    whole = write_table(tmp_path / "whole", table, [])
    read = split_table(write_table(tmp_path / "parts", table, [90, 200, 390]), "y", {"strict": False, "scan": 50})
    with_types_of_all(read, InProcess(2))
    source = hindsight.open_source(whole, "y", strict=False, scan=0)

    def fields(seen):
        numbers = {f"{what} with {sign}": v for sign, each in seen.read.items() for what, v in vars(each).items()}
        return {what: value for what, value in vars(seen).items() if what != "read"} | numbers

    for name, seen in read.source.decisions.evidence.items():
        there = fields(source.decisions.evidence[name])
        for what, value in fields(seen).items():
            assert value == there[what] or (value != value and there[what] != there[what]), (name, what)


@pytest.mark.parametrize("choice", [{"limit": 170}, {"sample": 0.3, "seed": 5}, {"sample": 0.5, "limit": 60}])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_rows_taken_are_those_of_one_machine(tmp_path, kind, choice):
    folder = write_table(tmp_path / "parts", ordinary(), [90, 200, 390], kind)
    options = {"strict": False, "missing": "skip", **choice}
    rows, there = cluster.read(folder, "y", client=InProcess(2), **options), alone(folder, **options)
    X, y = together(rows)
    assert rows.names == there.names and np.array_equal(X, there.X.toarray()) and np.array_equal(y, there.y)
    assert len(rows.shapes) == (3 if choice == {"limit": 170} else 2 if "limit" in choice else 4)  # no more is read


def test_shuffled_partitions_have_their_rows_in_the_order_of_one_machine(tmp_path):
    table = ordinary()
    table["y"] = [value and f"{k}.5" for k, value in enumerate(table["y"])]
    folder = write_table(tmp_path / "parts", table, [90, 200, 390])
    options = {"strict": False, "missing": "zero", "shuffle": True, "seed": 3}
    rows = cluster.read(folder, "y", client=InProcess(2), held=False, **options)
    y, plain = together(rows)[1], alone(folder, **options | {"shuffle": False}).y
    place = {value: k for k, value in enumerate(alone(folder, **options).y)}
    for part in np.split(y, np.cumsum([shape.rows for shape in rows.shapes])[:-1]):
        assert (np.diff([place[value] for value in part]) > 0).all()
    assert not np.array_equal(y, plain) and sorted(y) == sorted(plain)
    with pytest.raises(ValueError, match="limit and shuffle"):
        cluster.read(folder, "y", client=InProcess(2), limit=5, **options)


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("scale", ["row-unit", "global-unit", "max-abs", "standard"])
def test_rows_are_scaled_as_on_one_machine(scale, held):
    from hindsight.rows.scaling import SCALES, Measure, scaled

    X, y, _ = data()
    rows = cluster.read(parted(X, y), "y", client=InProcess(2), scale=scale, held=held)
    measure = Measure()
    if SCALES[scale]:
        measure.add(X, scale)
    there = scaled(X, measure.scale(scale) if SCALES[scale] else {"kind": scale})
    assert np.abs(together(rows)[0] - there).max() <= TIGHT


# ---------------------------------------------------------------- real workers


@pytest.fixture(scope="module")
def client():
    pytest.importorskip("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Dask's own
        with cluster.start(2) as client:
            yield client


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "rows", *data(2000))


ROUNDS = [
    hindsight.LeastSquares(),
    hindsight.GradientDescentRegressor(rounds=5),
    hindsight.GLMtronBatchRegressor(rounds=5),
    hindsight.IsotronRegressor(rounds=5),
]


@nightly(but=["0"])
@pytest.mark.parametrize("few", [FEW, 0])
def test_workers_give_the_bits_of_one_process(monkeypatch, client, folder, few):
    monkeypatch.setattr("hindsight.cluster.isotron.FEW", few)
    options = {"weight": "c", "partition_rows": 100}
    rows = cluster.read(folder, "y", client=client, **options)
    here = cluster.read(folder, "y", client=InProcess(), **options)
    for model in ROUNDS:
        there, alone = cluster.fit(fresh(model), rows), cluster.fit(fresh(model), here)
        assert there.coef_.tobytes() == alone.coef_.tobytes(), model
    assert cluster.certify(there, rows).measured == cluster.certify(alone, here).measured
    mixed = [cluster.mix(hindsight.WidrowHoffRegressor(eta=0.05), some, epochs=2)[0] for some in (rows, here)]
    assert mixed[0].coef_.tobytes() == mixed[1].coef_.tobytes()


def test_a_worker_that_is_killed_changes_nothing(client, folder):
    rows = cluster.read(folder, "y", weight="c", partition_rows=100, client=client)
    whole = cluster.fit(hindsight.IsotronRegressor(rounds=8), rows)

    def kill(t, loss):
        if t == 3:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

    again = cluster.fit(hindsight.IsotronRegressor(rounds=8), rows, notify=kill)
    assert again.coef_.tobytes() == whole.coef_.tobytes() and again.losses_.tolist() == whole.losses_.tolist()
    client.wait_for_workers(2, timeout=30)


@nightly
def test_rows_beyond_the_memory_of_a_worker_pass_and_held_ones_are_one_clear_line(tmp_path):
    dask = pytest.importorskip("dask")
    rng, n, m = np.random.default_rng(0), 60, 250_000
    values = rng.normal(size=250)
    columns = {f"x{j}": values[rng.integers(0, 250, m)] for j in range(n)}
    columns["y"] = sum(columns[f"x{j}"] for j in range(3))
    pq.write_table(pa.table(columns), tmp_path / "0.parquet", row_group_size=50_000)
    for k in range(1, 4):
        os.link(tmp_path / "0.parquet", tmp_path / f"{k}.parquet")
    limit = 450_000_000
    assert 4 * m * n * 8 > limit
    few = {"distributed.scheduler.allowed-failures": 0}
    with warnings.catch_warnings(), dask.config.set(few):
        warnings.simplefilter("ignore")
        with cluster.start(1, memory_limit=limit) as client:
            rows = cluster.read(str(tmp_path), "y", client=client)
            model = cluster.fit(hindsight.LeastSquares(), rows)
            assert rows.rows == 4 * m and not rows.held
            assert model.coef_ == pytest.approx([1.0] * 3 + [0.0] * (n - 3), abs=1e-12)
            message = "workers died once at the same work, probably out of memory: give them more memory"
            with pytest.raises(cluster.ClusterError, match=message):
                cluster.read(str(tmp_path), "y", client=client, partition_rows=2**24, held=True)


@contextmanager
def own_scheduler(folder):
    """A scheduler and a worker in processes of their own: its address and its process."""
    told = folder / "scheduler.json"
    told.unlink(missing_ok=True)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [sys.executable, "-m", "dask"]
    options = ["--port", "0", "--no-dashboard", "--scheduler-file", told]
    processes = [subprocess.Popen([*command, "scheduler", *options], **quiet)]
    try:
        while not (told.exists() and told.read_text().strip().endswith("}")):
            assert processes[0].poll() is None
            time.sleep(0.05)
        address = json.loads(told.read_text())["address"]
        alone = ["--nthreads", "1", "--no-nanny", "--no-dashboard"]
        processes.append(subprocess.Popen([*command, "worker", address, *alone], **quiet))
        yield address, processes[0]
    finally:
        for process in processes:
            process.kill()
            process.wait()


@nightly
def test_a_fit_resumes_under_another_scheduler_when_the_first_was_killed(tmp_path, capfd):
    pytest.importorskip("distributed")
    from hindsight.cluster.engine import connect

    X, y, c = data()
    parts, model, rounds = parted(X, y, c), hindsight.GradientDescentRegressor(rounds=20), []
    whole = cluster.fit(fresh(model), read(X, y, c))
    kept = {"checkpoint": tmp_path / "kept", "every": 5}
    with own_scheduler(tmp_path) as (address, process), connect(address) as client:
        rows = cluster.read(parts, "y", weight="c", client=client)
        kill = lambda t, loss: process.kill() if t == 12 else None  # noqa: E731
        with pytest.raises(cluster.ClusterError, match=r"the scheduler was lost .*: start it again, and resume from"):
            cluster.fit(fresh(model), rows, notify=kill, **kept)
    with own_scheduler(tmp_path) as (address, _), connect(address) as client:
        rows = cluster.read(parts, "y", weight="c", client=client)
        again = cluster.fit(fresh(model), rows, notify=lambda t, loss: rounds.append(t), **kept)
    assert rounds == list(range(11, 21)) and again.coef_.tobytes() == whole.coef_.tobytes()
    assert "Traceback" not in capfd.readouterr().err


def test_a_bad_row_on_a_worker_is_one_line(client, tmp_path):
    X, y, _ = data(400)
    X[150, 1], X[333, 1] = np.inf, np.nan
    folder = write(tmp_path / "bad", X, y)
    with pytest.raises(hindsight.SourceError, match=r"part1\.parquet, row 50, column 'x1': 'inf' is not finite"):
        cluster.read(folder, "y", client=client, partition_rows=60)


def test_dask_arrays_and_data_frames_are_partitions(client):
    array = pytest.importorskip("dask.array")
    frame = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    X, y, c = data(600)
    alone = hindsight.IsotronRegressor(rounds=5).fit(X, y, c)
    pieces = [array.from_array(values, chunks=(100, *values.shape[1:])) for values in (X, y, c)]
    rows = cluster.read(pieces[0], pieces[1], weight=pieces[2], client=client)
    model = cluster.fit(hindsight.IsotronRegressor(rounds=5), rows)
    assert len(rows.shapes) == 6 and np.abs(model.coef_ - alone.coef_).max() <= TIGHT
    table = pandas.DataFrame(X, columns=list("abcd")).assign(y=y, w=c)
    rows = cluster.read(frame.from_pandas(table, npartitions=4), "y", weight="w", client=client)
    model = cluster.fit(hindsight.IsotronRegressor(rounds=5), rows)
    assert model.feature_names_in_.tolist() == list("abcd") and np.abs(model.coef_ - alone.coef_).max() <= TIGHT


def run(*words):
    from typer.testing import CliRunner

    from hindsight.cli import app

    done = CliRunner().invoke(app, ["learn", *map(str, words)])
    return done.exit_code, done.stdout, done.stderr


def evaluate(*words):
    from typer.testing import CliRunner

    from hindsight.cli import app

    done = CliRunner().invoke(app, ["evaluate", *map(str, words)])
    assert done.exit_code == 0, done.stderr
    return done.stdout


def flat(value, path=""):
    """The numbers of nested values, by where they stand."""
    if isinstance(value, dict):
        return {k: v for name, each in value.items() for k, v in flat(each, f"{path}/{name}").items()}
    if isinstance(value, list):
        return flat(dict(enumerate(value)), path)
    return {path: value} if isinstance(value, (int, float)) else {}


def test_the_command_learns_on_a_cluster(client, folder, tmp_path):
    address, common = client.scheduler.address, (folder, "--target", "y", "--weight", "c", "--json")
    code, out, err = run(*common, "--learner", "isotron", "--rounds", 4, "--cluster", address, "--save", tmp_path / "m")
    assert code == 0 and "2 workers, dashboard http" in err and "round" in err
    alone = json.loads(run(*common, "--learner", "isotron", "--rounds", 4)[1])
    assert list(json.loads(out)["weights"][0].values()) == pytest.approx(list(alone["weights"][0].values()), rel=1e-12)
    assert hindsight.load(tmp_path / "m").n_iter_ == 4
    kept = ("--learner", "gradient-descent", "--rounds", 12, "--cluster", address, "--checkpoint", tmp_path / "kept")
    first, again = (run(*common, *kept, *more) for more in ((), ("--resume",)))
    assert first[0] == again[0] == 0 and first[1] == again[1]
    assert "8" in first[2].split() and "8" not in again[2].split()  # which rounds are shown: it went on after ten
    code, out, _ = run(*common, "--learner", "widrow-hoff", "--passes", 2, "--certify", "--cluster", address)
    found = json.loads(out)
    assert code == 0 and found["certificate"]["verdict"] == "HOLDS" and found["epochs"] == 2


@nightly
def test_the_command_learns_from_ordinary_tables_as_on_one_machine(client, tmp_path):
    table = ordinary()
    table["y"] = [value and ("high" if float(value) > 0 else "low") for value in table["y"]]
    folder = write_table(tmp_path / "parts", table, [90, 90, 200, 390])  # one of them has no row, and is no shard
    one = write_table(tmp_path / "one", table, [])
    address, common = ("--cluster", client.scheduler.address), ("--target", "y", "--json")
    code, out, err = run(folder, *common, "--learner", "isotron", "--rounds", 3, *address)
    alone = json.loads(run(one, *common, "--learner", "isotron", "--rounds", 3)[1])["weights"][0]
    found = json.loads(out)["weights"][0]
    assert code == 0 and list(found) == list(alone)
    assert list(found.values()) == pytest.approx(list(alone.values()), abs=1e-12)
    assert "types from all 400 rows" in err and "rows have no target" in err and "held by the workers" in err
    learner = ("--learner", "descent", "--loss", "logistic", "--scale", "max-abs", "--eta", 0.2)
    saved, page = tmp_path / "model", tmp_path / "page.html"
    more = ("--certify", "--shuffle", "--seed", 4, "--passes", 2, "--report", page, "--save", saved)
    code, out, err = run(folder, *common, *learner, *more, *address)
    found = json.loads(out)
    assert code == 0 and found["labels"] == ["high", "low"] and "drawn by seed 4" in err, err
    assert found["certificate"]["best"]["loss"] <= found["certificate"]["constant"]
    assert "Confusions" in page.read_text() and "4 partitions were learnt at the same time" in page.read_text()
    scores = [json.loads(evaluate(saved, folder, "--json", *where)) for where in (("--light",), address)]
    assert flat(scores[0]) == pytest.approx(flat(scores[1]), rel=1e-12, nan_ok=True)


def test_one_shard_is_learnt_as_by_the_command_on_one_machine(client, tmp_path):
    folder = write_table(tmp_path / "one", ordinary(), [])
    words = (folder, "--target", "y", "--json", "--learner", "widrow-hoff", "--eta", 0.01, "--shuffle", "--seed", 2)
    words += ("--missing", "mean", "--scale", "max-abs", "--sample", 0.7)
    here, there = (
        json.loads(run(*words, "--cluster", client.scheduler.address)[1]),
        run(*words, "--save", tmp_path / "m"),
    )
    model = hindsight.load(tmp_path / "m")
    assert there[0] == 0 and list(here["weights"][0]) == model.names
    assert list(here["weights"][0].values()) == pytest.approx(model.weights[0, :-1].tolist(), abs=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--learner", "isotron", "--rejects", "bad"), "--rejects is not an option of isotron on a cluster"),
        (("--learner", "isotron", "--scale", "standard"), "--scale is not an option of isotron on a cluster"),
        (("--learner", "perceptron", "--limit", "5", "--shuffle"), "--limit and --shuffle: on a cluster take --sample"),
        (("--learner", "least-squares", "--certify"), "--certify is not an option of least-squares: it is"),
        (("--learner", "auto"), "--learner must be one of isotron"),
        (("--learner", "isotron", "--cluster", "tcp://x:1"), "give it or --cluster, not both"),
    ],
)
def test_options_that_do_not_fit_a_cluster_are_one_line(folder, options, message):
    code, _, err = run(folder, "--target", "y", "--workers", 2, *options)
    assert code == 2 and message in err and err.count("\n") == 1


def test_models_are_copied_with_their_fit():
    X, y, _ = data(60)
    model = cluster.fit(hindsight.IsotronRegressor(rounds=3), read(X, y))
    assert np.array_equal(copy.deepcopy(model).predict(X), model.predict(X))
    assert descent("square").loss.name == "square"
