"""Laws that every learner keeps, in every storage."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st

import hindsight
import naive
from conftest import (
    BY_NAME,
    CASES,
    CHOSEN,
    FLAT,
    NAMED,
    PLAYED,
    STORAGES,
    TIGHT,
    close,
    feed,
    natural,
    nightly,
    oracle,
    played,
    run_of,
    same,
    same_state,
    start_of,
    store,
    stream,
)
from hindsight.online import learners
from hindsight.online import run as running

every = pytest.mark.parametrize("case", CASES, ids=str)
everywhere = pytest.mark.parametrize(("case", "storage"), PLAYED, ids=str)
named = pytest.mark.parametrize("case", NAMED, ids=str)
# Each line of the table, each geometry, both updates: the ones played in every storage and dtype.
SOME = [
    BY_NAME[name]
    for name in (
        "perceptron",
        "winnow-balanced",
        "widrow-hoff-explicit",
        "widrow-hoff-implicit",
        "eg-simplex",
        "eg-simplex-implicit",
        "glm-tron-logistic",
    )
]
some = pytest.mark.parametrize("case", SOME, ids=str)
SIGNED = ("hinge", "perceptron")


def equals_naive(case, X, y, weight, storage="dense64", **options):
    """Margins, weights, both averages and facts, against the oracle."""
    if case.rule == "perceptron" and case.update == "implicit" and "start" not in options:
        options["start"] = start_of(case, X.shape[1] + options.get("intercept", True))  # from 0 it never moves
    run, margins = played(case, store(X, storage), y, weight, **options)
    want = oracle(case, X, y, weight, **options)
    size, reach = natural(case, X, want)
    close(margins, want.margins, scale=reach)
    close(run.weights, want.final, scale=size)
    close(run.mean("before"), want.mean_before, scale=size)
    close(run.mean("after"), want.mean_after, scale=size)
    facts = naive.facts(
        X,
        y,
        want,
        rule=case.rule,
        geometry=case.geometry,
        weight=weight,
        bias=1.0 if options.get("intercept", True) else 0.0,
        radius=case.radius,
    )
    got = run.facts
    assert got.rounds == facts["rounds"]
    close(got.weight, facts["weight"])
    close(got.loss, facts["loss"])
    close(got.x2, facts["x2"])
    close(got.xinf, facts["xinf"])
    close(got.weight_x2, facts["x2_weighted"])
    close(got.weight_xinf, facts["xinf_weighted"])
    if case.rule in SIGNED:
        assert got.mistakes == facts["mistakes"]
    else:  # the oracle's prediction of a label is its margin, ours is -1 or 1
        close(got.square, facts["square"])
    if case.update == "explicit":  # the oracle's gradient is the one stepped on, ours the one met before the step
        close(got.gradient, facts["grad"])
        close(got.rate_gradient, facts["move"])
    return run, want


# --- the oracle -----------------------------------------------------------------------------------------------------


ADAPTIVE = {
    "auto",
    "running",
    "ridge",
    "vaw",
    "newton",
    "diagonal-newton",
}  # and the scale-free geometry: test_adaptive


def test_every_line_of_the_table_is_under_test():
    made = {case.learner().name for case in CASES}
    assert made | ADAPTIVE == set(learners.LEARNERS)
    descents = [case.learner() for case in CASES if case.learner().name == "descent"]
    parts = {(type(d.loss), d.loss, type(d.geometry), type(d.update)) for d in descents}
    spread = (len(learners.LOSSES) - len(FLAT)) * (len(learners.GEOMETRIES) - 1) + len(FLAT)
    assert len(parts) == spread * len(learners.UPDATES)
    links = {type(case.learner().loss) for case in CASES if case.learner().name == "glm-tron"}
    assert links == {type(link) for link in learners.LINKS.values()}


@everywhere
def test_equals_naive(case, storage):
    X, y, weight = stream(case)
    equals_naive(case, X, y, None, storage)
    equals_naive(case, X, y, weight, storage, start=start_of(case, X.shape[1] + 1), power=0.5)


@some
@pytest.mark.parametrize("storage", ["dense32", "strided", "csr32"])
def test_equals_naive_in_every_storage(case, storage):
    X, y, weight = stream(case, seed=1)
    equals_naive(case, X, y, weight, storage, start=start_of(case, X.shape[1] + 1))


@everywhere
def test_equals_naive_without_intercept(case, storage):
    X, y, weight = stream(case, seed=2)
    equals_naive(case, X, y, weight, storage, intercept=False, start=start_of(case, X.shape[1]))


@every
def test_equals_naive_with_given_rates(case):
    X, y, weight = stream(case, seed=3)
    rates = case.eta * np.random.default_rng(3).uniform(0.2, 1.0, len(X))
    equals_naive(case, X, y, weight, rates=rates)


@some
def test_equals_naive_on_one_feature_and_on_many(case):
    for n in (1, 40):
        X, y, weight = stream(case, m=80, n=n, seed=4)
        for storage in ("dense64", "csr64"):
            equals_naive(case, X, y, weight, storage)


@pytest.mark.parametrize("name", ["eg-balanced", "winnow-balanced", "descent-logistic-balanced-implicit"])
def test_balanced_is_the_doubled_simplex(name):
    """One theta of length N carries what the simplex rule of radius U does on (x, -x)."""
    case = BY_NAME[name]
    X, y, weight = stream(case, seed=5)
    run, margins = played(case, X, y, weight, intercept=False)
    rule, update, radius = case.learner().loss, case.learner().update, case.radius
    doubled = learners.Learner(
        "doubled", rule, update, learners.space("simplex", radius), case.learner().rate, case.targets
    )
    twice = running.Run(doubled, 2 * X.shape[1], intercept=False, average=True)
    close(feed(twice, np.hstack([X, -X]), y, weight), margins)
    n = X.shape[1]
    for a, b in ((run.weights, twice.weights), (run.mean("before"), twice.mean("before"))):
        close(a, b[:n] - b[n:], scale=radius / n)


# --- storages -------------------------------------------------------------------------------------------------------


@nightly(but=CHOSEN["csr64"])
@named
def test_dense_is_csr(case):
    X, y, weight = stream(case, m=300, n=30, density=0.3, seed=6)
    a, za = played(case, X, y, weight)
    b, zb = played(case, sp.csr_matrix(X), y, weight)
    close(za, zb)
    close(a.weights, b.weights)
    close(a.mean("before"), b.mean("before"))
    close(a.tally[0].tolist()[:-1], b.tally[0].tolist()[:-1])


@nightly(but=CHOSEN["strided"])
@some
def test_strided_is_dense_bit_for_bit(case):
    X, y, weight = stream(case, m=100, n=33, seed=7)
    a, za = played(case, X, y, weight)
    b, zb = played(case, store(X, "strided"), y, weight)
    same(za, zb)
    same_state(a, b)


@nightly(but=["*-widrow-hoff-implicit"])
@pytest.mark.parametrize("name", ["widrow-hoff-implicit", "eg-balanced"])
@pytest.mark.parametrize(
    "view",
    [np.asfortranarray, lambda X: X[::-1, ::-1].copy()[::-1, ::-1], lambda X: np.repeat(X, 2, axis=1)[:, ::2]],
    ids=["fortran", "reversed", "sliced"],
)
def test_any_view_is_dense_bit_for_bit(name, view):
    case = BY_NAME[name]
    X, y, weight = stream(case, m=50, n=20, seed=8)
    a, za = played(case, X, y, weight)
    b, zb = played(case, view(X), y, weight)
    same(za, zb)
    same_state(a, b)


@pytest.mark.parametrize("name", ["perceptron", "eg-simplex"])
def test_index_types_change_nothing(name):
    case = BY_NAME[name]
    X, y, weight = stream(case, seed=8)
    narrow, wide = sp.csr_matrix(X), sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    same_state(played(case, narrow, y, weight)[0], played(case, wide, y, weight)[0])


def test_stored_zeros_change_nothing():
    case = BY_NAME["widrow-hoff-implicit"]
    X, y, weight = stream(case, seed=8)
    full = sp.csr_matrix((X.ravel(), np.tile(np.arange(7), 60), np.arange(0, 421, 7)), shape=X.shape)
    a, b = played(case, sp.csr_matrix(X), y, weight)[0], played(case, full, y, weight)[0]
    close(a.weights, b.weights)


# --- chunks, and one row at a time ----------------------------------------------------------------------------------


@everywhere
def test_chunked_is_whole(case, storage):
    X, y, weight = stream(case, m=90, seed=9)
    X = store(X, storage)
    whole, z = played(case, X, y, weight, power=0.5)
    chunks = [(1,), (7, 2, 31), (89,)] if case in NAMED else [(13, 1)]
    for sizes in chunks:
        chunked, got = played(case, X, y, weight, sizes=sizes, power=0.5)
        same(got, z)
        same_state(chunked, whole)


@some
@pytest.mark.parametrize("storage", ["dense32", "strided", "csr32"])
def test_chunked_is_whole_in_every_storage(case, storage):
    X, y, _ = stream(case, m=90, seed=9)
    X = store(X, storage)
    whole, z = played(case, X, y)
    for sizes in ((1,), (8, 3)):
        chunked, got = played(case, X, y, sizes=sizes)
        same(got, z)
        same_state(chunked, whole)


@some
@pytest.mark.parametrize("block", [1, 7, 64])
def test_blocks_change_nothing(case, block, monkeypatch):
    X, y, weight = stream(case, m=130, seed=10)
    whole, z = played(case, X, y, weight)
    monkeypatch.setattr(running, "BLOCK", block)
    for storage in ("dense64", "csr64"):
        got, zg = played(case, store(X, storage), y, weight)
        if storage == "dense64":
            same(zg, z)
            same_state(got, whole)
        else:
            monkeypatch.undo()
            same_state(got, played(case, store(X, storage), y, weight)[0])


def test_more_rows_than_a_block():
    case = BY_NAME["eg-balanced"]
    X, y, _ = stream(case, m=2 * running.BLOCK + 5, n=3, seed=10)
    whole, z = played(case, X, y)
    chunked, got = played(case, X, y, sizes=(5000, 1, 20000))
    same(got, z)
    same_state(chunked, whole)


@some
def test_runs_played_together_are_runs_played_alone(case, monkeypatch):
    X, y, weight = stream(case, m=100, seed=11)
    etas = (0.5 * case.eta, case.eta)
    alone = [played(case, X, y, weight, eta=eta) for eta in etas]
    monkeypatch.setattr(running, "SHARED", 16 * X.shape[1] * 8)  # blocks of 16 rows
    runs = [run_of(case, X.shape[1], eta=eta) for eta in etas]
    margins = np.empty((len(X), 2))
    running.play(runs, X, [y, y], weight, margins)
    for k, (run, z) in enumerate(alone):
        same(margins[:, k], z)
        same_state(runs[k], run)


# --- weights, rates, starts -----------------------------------------------------------------------------------------


@everywhere
def test_weight_zero_is_absent(case, storage):
    X, y, weight = stream(case, seed=12)
    assert (weight == 0.0).sum() >= 5
    kept = weight > 0
    a, za = played(case, store(X, storage), y, weight, power=0.5)
    b, zb = played(case, store(X[kept], storage), y[kept], weight[kept], power=0.5)
    same(za[kept], zb)
    same_state(a, b)
    assert a.rounds == kept.sum()


@every
def test_weight_two_is_twice_the_rate(case):
    """The weight multiplies the loss: eta c slope, and eta c in the implicit step, are the only places it enters."""
    X, y, _ = stream(case, seed=13)
    weight = np.random.default_rng(13).choice([0.5, 1.0, 2.0], len(X))
    a, za = played(case, X, y, weight, rates=np.full(len(X), case.eta))
    b, zb = played(case, X, y, rates=case.eta * weight)
    same(za, zb)
    for one, other in zip(a.state, b.state, strict=True):
        same(one, other)


def test_weight_in_the_implicit_step_is_as_stated():
    X, y, weight = stream(BY_NAME["widrow-hoff-implicit"], seed=14)
    run, z = played(BY_NAME["widrow-hoff-implicit"], X, y, weight, intercept=False)
    w, eta = np.zeros(X.shape[1]), 0.7
    for x, target, c, margin in zip(X, y, weight, z, strict=True):
        close(w @ x, margin, scale=1.0)
        w -= eta * c * (w @ x - target) / (1.0 + eta * c * (x @ x)) * x
    close(run.weights, w)


@every
def test_weight_one_is_no_weight(case):
    X, y, _ = stream(case, seed=15)
    same_state(played(case, X, y)[0], played(case, X, y, np.ones(len(X)))[0])


@some
def test_equal_rates_are_a_constant_rate(case):
    X, y, weight = stream(case, seed=16)
    one, other = (
        played(case, X, y, weight, **more)[0] for more in ({}, {"rates": np.full(len(X), case.learner().rate.eta)})
    )
    for name in ("rate", "rate_loss", "rate_gradient"):  # eta times a sum, against the sum of eta times each
        close(one.tally[name], other.tally[name])
        other.tally[name] = one.tally[name]
    same_state(one, other)


@named
def test_the_start_given_as_the_tables_is_the_tables(case):
    X, y, weight = stream(case, seed=17)
    width = X.shape[1] + 1
    table = np.full(width, 1.0 / width) if case.geometry == "simplex" else np.zeros(width)
    a, za = played(case, X, y, weight, start=table)
    b, zb = played(case, X, y, weight)
    close(za, zb)
    close(a.weights, b.weights)


@named
def test_averages_without_a_round_are_the_start(case):
    start = start_of(case, 8)
    run = run_of(case, 7, start=start)
    close(run.weights, start)
    close(run.mean("before"), start)
    close(run.mean("after"), start)


# --- learners that are one another ----------------------------------------------------------------------------------


@nightly(but=["dense64", "csr64"])
@pytest.mark.parametrize("storage", STORAGES)
def test_descent_on_the_perceptron_loss_is_the_perceptron(storage):
    case = BY_NAME["perceptron"]
    X, y, weight = stream(case, seed=18)
    X = store(X, storage)
    a, za = played(case, X, y, weight)
    b, zb = played(BY_NAME["descent-perceptron-euclidean-explicit"], X, y, weight, eta=1.0)
    same(za, zb)
    same_state(a, b)
    assert 0 < a.facts.mistakes < a.facts.rounds


@nightly(only=["balanced-*"])
@pytest.mark.parametrize("update", ["explicit", "implicit"])
@pytest.mark.parametrize("geometry", ["euclidean", "simplex", "balanced"])
def test_the_square_loss_at_half_the_rate_is_widrow_hoff_and_eg(geometry, update):
    if geometry == "euclidean":
        ours = learners.widrow_hoff(0.3, update)
    else:
        ours = learners.eg(0.3, None if geometry == "simplex" else 2.5, update)
    theirs = learners.descent("square", geometry, 0.15, update, radius=2.5 if geometry == "balanced" else 1.0)
    X, y, weight = stream(BY_NAME["widrow-hoff-explicit"], seed=19)
    for storage in ("dense64", "csr64"):
        runs = [running.Run(learner, X.shape[1], average=True) for learner in (ours, theirs)]
        z = [feed(run, store(X, storage), y, weight) for run in runs]
        if update == "explicit" or geometry == "euclidean":
            same(z[0], z[1])
            for one, other in zip(runs[0].state, runs[1].state, strict=True):
                same(one, other)
        else:
            close(z[0], z[1])
            close(runs[0].weights, runs[1].weights)


def test_glm_tron_of_the_identity_is_widrow_hoff():
    X, y, weight = stream(BY_NAME["glm-tron-identity"], seed=20)
    a, b = played(BY_NAME["glm-tron-identity"], X, y, weight), played(BY_NAME["widrow-hoff-explicit"], X, y, weight)
    same_state(a[0], b[0])


# --- symmetries -----------------------------------------------------------------------------------------------------


@named
@pytest.mark.parametrize("storage", ["dense64", "csr64"])
def test_the_order_of_features_does_not_matter(case, storage):
    X, y, weight = stream(case, n=20, seed=21)
    order = np.random.default_rng(21).permutation(20)
    a, za = played(case, store(X, storage), y, weight)
    b, zb = played(case, store(X[:, order], storage), y, weight)
    close(za, zb)
    close(a.weights[:-1][order], b.weights[:-1])
    close(a.weights[-1], b.weights[-1], scale=np.abs(a.weights).max())
    close(a.mean("after")[:-1][order], b.mean("after")[:-1])


@nightly(but=["*-dense64", "*-csr64"])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("k", [-30, -3, 1, 40])
def test_scaling_the_rows_of_a_perceptron(storage, k):
    case = BY_NAME["perceptron"]
    X, y, weight = stream(case, m=200, n=15, seed=22)
    a, za = played(case, store(X, storage), y, weight, intercept=False)
    b, zb = played(case, store(X * 2.0**k, storage), y, weight, intercept=False)
    same(zb, za * 4.0**k)
    same(b.weights, a.weights * 2.0**k)
    same(b.mean("before"), a.mean("before") * 2.0**k)
    assert a.facts.mistakes == b.facts.mistakes > 10


@nightly(but=["*-dense64-*", "*-csr64-*", "*-dense32-implicit", "*-strided-implicit"])
@pytest.mark.parametrize("update", ["explicit", "implicit"])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("k", [-20, 3])
def test_scaling_the_rows_of_widrow_hoff(update, storage, k):
    case = BY_NAME[f"widrow-hoff-{update}"]
    X, y, weight = stream(case, m=100, n=15, seed=23)
    a, za = played(case, store(X, storage), y, weight, intercept=False)
    b, zb = played(case, store(X * 2.0**k, storage), y, weight, intercept=False, eta=case.eta * 4.0**-k)
    same(zb, za)
    same(b.weights, a.weights * 2.0**-k)
    same(b.mean("after"), a.mean("after") * 2.0**-k)
    assert a.facts.loss == b.facts.loss


def test_scaling_the_targets_of_widrow_hoff():
    case = BY_NAME["widrow-hoff-explicit"]
    X, y, weight = stream(case, seed=24)
    a, b = played(case, X, y, weight)[0], played(case, X, y * 2.0**10, weight)[0]
    same(b.weights, a.weights * 2.0**10)


# --- interrupted runs -----------------------------------------------------------------------------------------------

ESTIMATORS = [
    hindsight.PerceptronClassifier(average="before"),
    hindsight.WinnowClassifier(),
    hindsight.WinnowClassifier(balanced=False, margin=0.2),
    hindsight.WidrowHoffRegressor(),
    hindsight.WidrowHoffRegressor(update="explicit", power=0.5, average="after"),
    hindsight.EGRegressor(0.03, radius=4.0, average="before"),
    hindsight.EGRegressor(radius=None, power=0.5),
    hindsight.DescentRegressor("absolute", "balanced", radius=4.0, update="implicit"),
    hindsight.DescentClassifier("hinge", "simplex"),
    hindsight.DescentClassifier(average="after"),
    hindsight.GLMtronRegressor("clipped"),
]
estimators = pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: repr(model).replace("\n", ""))


def rows_for(model, m=80, n=6, seed=25):
    """A stream within the assumptions of every estimator."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (m, n)) * (rng.random((m, n)) < 0.7)
    X[:, 0] = 1.0
    X /= 3.0
    y = rng.uniform(0, 0.3, m)
    if hasattr(model, "decision_function"):
        y = np.where(X @ rng.normal(size=n) + 0.1 * rng.normal(size=m) > 0, "yes", "no")
        y[:2] = "yes", "no"
    return X, y, rng.choice([0.5, 1.0, 2.0], m)


@nightly(but=["*-dense-*", "*-csr-Perceptron*", "*-csr-WidrowHoff*", "*-csr-WinnowClassifier()"])
@estimators
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize(
    "through", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))], ids=["copy", "pickle"]
)
def test_resumed_is_uninterrupted(model, sparse, through):
    X, y, weight = rows_for(model)
    if sparse:
        X = sp.csr_matrix(X)
    whole = copy.deepcopy(model).fit(X, y, sample_weight=weight)
    part = copy.deepcopy(model).partial_fit(X[:33], y[:33], sample_weight=weight[:33])
    frozen = [run.snapshot() for run in part.runs_]
    again = through(part)
    again.partial_fit(X[33:], y[33:], sample_weight=weight[33:])
    same_state(again.runs_[0], whole.runs_[0])
    same(again.coef_, whole.coef_)
    same(again.predict(X), whole.predict(X))
    same(again.runs_[0].tally, whole.runs_[0].tally)
    assert again.facts_ == whole.facts_
    for run, (state, progress, tally, _) in zip(part.runs_, frozen, strict=True):  # the original did not move
        for now, then in zip(run.state, state, strict=True):
            same(now, then)
        same(run.progress, progress)
        same(run.tally, tally)


@some
def test_snapshot_and_restore(case):
    X, y, weight = stream(case, seed=26)
    run, _ = played(case, X, y, weight)
    before, want = run.snapshot(), copy.deepcopy(run)
    feed(run, X, y, weight)
    run.restore(before)
    same_state(run, want)
    feed(run, X, y)
    feed(want, X, y)
    same_state(run, want)


# --- far from the ordinary ------------------------------------------------------------------------------------------


@st.composite
def streams(draw):
    """Small streams with rows of zeros, repeated rows, and scales from 2^-20 to 2^20."""
    n, m = draw(st.integers(1, 4)), draw(st.integers(1, 10))
    entries = st.integers(-8, 8)
    pool = draw(st.lists(st.lists(entries, min_size=n, max_size=n), min_size=1, max_size=m))
    chosen = draw(st.lists(st.integers(0, len(pool) - 1), min_size=m, max_size=m))
    scale = 2.0 ** draw(st.integers(-20, 20))
    X = np.array([pool[k] for k in chosen], np.float64) / 8.0
    y = np.array(draw(st.lists(st.integers(-64, 64), min_size=m, max_size=m)), np.float64) / 64.0
    weight = np.array(draw(st.lists(st.sampled_from([0.0, 1.0, 1.0, 2.0, 0.25]), min_size=m, max_size=m)))
    assume(weight.any())
    return X, y, weight, scale


def fitting(case, y):
    """These targets, as the case takes them."""
    if case.targets == "sign":
        return np.where(y > 0, 1.0, -1.0)
    return np.abs(y) if case.targets == "unit" else y


def on_a_kink(case, margins, y, weight, scale):
    """Whether a slope's jump is so near that rounding may choose the side."""
    if case.update == "implicit" or case.rule not in ("hinge", "perceptron", "absolute"):
        return False
    at = y if case.rule == "absolute" else y * (case.rule == "hinge")
    gap = np.abs(np.asarray(margins) - at)
    return bool(((gap > 0) & (gap < 1e-9 * scale) & (weight > 0)).any())


@nightly(but=["perceptron", "widrow-hoff-implicit", "glm-tron-logistic"])
@pytest.mark.parametrize(
    "name",
    [
        "perceptron",
        "widrow-hoff-explicit",
        "widrow-hoff-implicit",
        "glm-tron-logistic",
        "descent-absolute-euclidean-implicit",
        "descent-logistic-euclidean-implicit",
        "descent-hinge-euclidean-implicit",
    ],
)
@given(data=streams())
def test_small_streams_euclidean(name, data):
    """At any scale of the rows, the rate chosen with it."""
    case = BY_NAME[name]
    X, y, weight, scale = data
    X, y = X * scale, fitting(case, y)
    options = {"intercept": False} if name == "perceptron" else {"intercept": False, "eta": 0.3 / (4.0 * scale * scale)}
    want = oracle(case, X, y, weight, **options)
    for storage in ("dense64", "csr64"):
        run, z = played(case, store(X, storage), y, weight, **options)
        size = np.abs(X).max() * max(np.abs(want.final).max(), np.abs(run.weights).max())
        close(z, want.margins, scale=max(size, np.abs(want.margins).max()))
        close(run.weights, want.final)
        close(run.mean("before"), want.mean_before, scale=max(np.abs(want.mean_before).max(), np.abs(want.final).max()))
        assert run.rounds == (weight > 0).sum()


@nightly(but=["winnow-balanced", "eg-simplex", "eg-simplex-implicit"])
@pytest.mark.parametrize(
    "name",
    [
        "winnow-balanced",
        "winnow-simplex",
        "eg-simplex",
        "eg-balanced",
        "eg-simplex-implicit",
        "descent-hinge-balanced-implicit",
        "descent-absolute-simplex-implicit",
    ],
)
@given(data=streams())
def test_small_streams_multiplicative(name, data):
    case = BY_NAME[name]
    X, y, weight, scale = data
    X, y = X * scale, fitting(case, y) * (1.0 if case.targets == "sign" else scale)
    # Slopes of the square loss grow with the rows, the others do not.
    eta = case.eta / (scale * scale if case.rule == "widrow-hoff" else scale)
    want = oracle(case, X, y, weight, eta=eta, intercept=False)
    reach = case.radius * np.abs(X).max()
    for storage in ("dense64", "csr64"):
        run, z = played(case, store(X, storage), y, weight, eta=eta, intercept=False)
        assume(not on_a_kink(case, want.margins, y, weight, reach))
        assume(not on_a_kink(case, z, y, weight, reach))
        close(z, want.margins, scale=reach)
        close(run.weights, want.final, scale=case.radius)
        close(run.mean("before"), want.mean_before, scale=case.radius)
        close(run.mean("after"), want.mean_after, scale=case.radius)


@given(
    data=streams(),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    name=st.sampled_from([c.name for c in SOME]),
)
def test_any_chunks_of_any_stream(data, sizes, name):
    case = BY_NAME[name]
    X, y, _, _ = data
    y = fitting(case, y)
    for storage in ("dense64", "csr64"):
        rows = store(X, storage)
        whole, z = played(case, rows, y)
        chunked, got = played(case, rows, y, sizes=sizes)
        same(got, z)
        same_state(chunked, whole)


assert TIGHT == 1e-12  # no test here may loosen it
