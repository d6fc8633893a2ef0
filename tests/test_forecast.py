"""Losses of forecasts, streams of scores, the identity, and learners as forecasters."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hindsight
from hindsight.forecast import (
    Finding,
    Scores,
    compare_learners,
    comparison,
    identity,
    log_loss,
    mean_loss,
    progressive,
    quadratic_loss,
    square_loss,
    stream,
)


def table(m=300, k=3, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    p = rng.random(m)
    h = {name: np.clip(p + 0.1 * (j + 1) * rng.normal(size=m), 0, 1) for j, name in enumerate("ABCDE"[:k])}
    if ties:
        h = {name: v.round(1) for name, v in h.items()}
    return (rng.random(m) < p).astype(float), h, rng.choice([0.0, 0.5, 1.0, 3.0], m)


def state(scores):
    return (
        *(scores.rows, scores.rounds, scores.weighted, scores.broken),
        *(scores.sums.tobytes(), scores.infinite.tobytes(), scores.identical.tobytes(), scores.unbounded.tobytes()),
        *(scores.reach.tobytes(), scores.first.tobytes()),
        *((point.rounds, point.pairs.tobytes(), point.reach.tobytes()) for point in scores.points),
    )


# ---------------------------------------------------------------- losses


def test_losses_are_those_of_the_textbook():
    y, h, _ = table()
    np.testing.assert_array_equal(square_loss(y, h["A"]), (h["A"] - y) ** 2)
    want = [-math.log(a) if b else -math.log1p(-a) if a < 1 else math.inf for a, b in zip(h["B"], y, strict=True) if a]
    np.testing.assert_allclose(log_loss(y[h["B"] > 0], h["B"][h["B"] > 0]), want, rtol=1e-12)
    np.testing.assert_array_equal(quadratic_loss([3.0, -1.0], [1.0, 2.0]), [4.0, 9.0])
    assert log_loss([1, 0, 1, 0], [1.0, 0.0, 0.0, 1.0]).tolist() == [0.0, 0.0, math.inf, math.inf]
    assert mean_loss([1, 0], [0.0, 0.5], loss="log") == math.inf
    assert mean_loss([1, 0], [0.0, 0.5], weight=[0, 1], loss="log") == math.log(2)


def test_weighted_means_are_those_of_repeated_rows():
    y, h, _ = table()
    c = np.random.default_rng(1).integers(0, 4, y.size)
    for loss in ("square", "quadratic"):
        np.testing.assert_allclose(
            mean_loss(y, h["A"], c, loss), mean_loss(np.repeat(y, c), np.repeat(h["A"], c), None, loss), rtol=1e-13
        )


# ---------------------------------------------------------------- streams


@given(st.lists(st.integers(1, 80), min_size=1, max_size=30), st.booleans(), st.sampled_from(["square", "log"]))
def test_chunks_give_the_bits_of_the_whole(sizes, weighted, loss):
    y, h, c = table(600, 3, seed=len(sizes))
    c = c if weighted else np.ones(600)
    whole = Scores("ABC", loss).update(y, h, c)
    parts, a = Scores("ABC", loss), 0
    while a < 600:
        b = a + sizes[a % len(sizes)]
        parts.update(y[a:b], {k: v[a:b] for k, v in h.items()}, c[a:b])
        a = b
    assert state(parts) == state(whole)


def test_shards_add_up():
    y, h, c = table(500, 4)
    whole = Scores("ABCD").update(y, h, c)
    parts = [Scores("ABCD").update(y[a:b], {k: v[a:b] for k, v in h.items()}, c[a:b]) for a, b in ((0, 90), (90, 500))]
    both = parts[0] + parts[1]
    assert (both.rows, both.rounds) == (whole.rows, whole.rounds)
    last, ours = whole.path()[-1], both.path()[-1]
    exact = [stream.SUM, stream.LOW, stream.HIGH, stream.PROXY]  # the guesses behind the others begin anew
    np.testing.assert_allclose(ours.losses, last.losses, rtol=1e-14)
    np.testing.assert_allclose(ours.pairs[:, exact], last.pairs[:, exact], rtol=1e-12)
    one, two = (part.totals() for part in parts)
    for power, at in [(2, stream.MOMENT), *((3 + j, stream.UPPER + j) for j in range(4))]:
        want = one.pairs[:, at] * one.first**power + two.pairs[:, at] * two.first**power
        np.testing.assert_allclose(ours.pairs[:, at] * ours.first**power, want, rtol=1e-12)
    np.testing.assert_array_equal(ours.first, last.first)
    assert [p.rounds for p in both.path()] == sorted({p.rounds for p in both.path()})
    middle = next(p for p in both.path() if p.rounds > parts[0].rounds)
    keep = np.flatnonzero(c)[: middle.rounds]
    direct = Scores("ABCD").update(y[keep], {k: v[keep] for k, v in h.items()}, c[keep]).totals()
    np.testing.assert_allclose(middle.differences, direct.differences, rtol=1e-12, atol=1e-13)
    with pytest.raises(ValueError, match="same forecasters"):
        Scores("AB") + Scores("AC")


def test_sums_are_the_naive_ones_and_weight_0_is_no_row():
    y, h, c = table(200, 3)
    now = Scores("ABC").update(y, h, c).totals()
    assert now.rounds == np.count_nonzero(c)
    names, at = list(h), 0
    for i in range(3):
        np.testing.assert_allclose(now.losses[i], math.fsum(c * (h[names[i]] - y) ** 2), rtol=1e-15)
        for j in range(i + 1, 3):
            d = c * ((h[names[i]] - y) ** 2 - (h[names[j]] - y) ** 2)
            np.testing.assert_allclose(now.differences[at], math.fsum(d), rtol=1e-13)
            a, b = h[names[i]], h[names[j]]
            proxy = math.fsum(np.square(c * (a - b))) / now.first[at] ** 2
            np.testing.assert_allclose(now.pairs[at, stream.PROXY], proxy, rtol=1e-12)
            at += 1
    keep = c > 0
    without = Scores("ABC").update(y[keep], {k: v[keep] for k, v in h.items()}, c[keep])
    assert without.sums.tobytes() == Scores("ABC").update(y, h, c).sums.tobytes()


@pytest.mark.parametrize("kind", ["dict", "array", "pandas", "polars", "pyarrow", "list"])
def test_forecasts_come_in_any_form(kind):
    y, h, _ = table(50, 2)
    want = Scores("AB").update(y, h).sums
    if kind == "array":
        given = np.column_stack(list(h.values()))
    elif kind == "list":
        given = list(h.values())
    elif kind == "dict":
        given = {k: v.tolist() for k, v in reversed(h.items())}
    else:
        make = {"pyarrow": "table"}.get(kind, "DataFrame")
        given = getattr(pytest.importorskip(kind), make)({"other": y, **h})
    assert Scores("AB").update(y.astype(bool), given).sums.tobytes() == want.tobytes()


def test_text_is_read_as_numbers():
    y, h, _ = table(20, 2)
    text = {k: np.array([repr(float(x)) for x in v]) for k, v in h.items()}
    assert Scores("AB").update([f"{v:g}" for v in y], text).sums.tobytes() == Scores("AB").update(y, h).sums.tobytes()


BAD = [
    (
        {"A": [0.1, 1.5, 0.3]},
        [0, 1, 0],
        None,
        r"row 1, column 'A': 1\.5 is not a probability: it must lie in \[0, 1\]",
    ),
    ({"A": [0.1, math.nan, 0.3]}, [0, 1, 0], None, "row 1, column 'A': nan is not a probability"),
    ({"A": [0.1, 0.2, -1e-9]}, [0, 1, 0], None, "row 2, column 'A': -1e-09 is not"),
    ({"A": [0.1, 0.2, 0.3]}, [0, 1, 2], None, "row 2, column 'outcome': 2.0 must be 0 or 1"),
    ({"A": [0.1, 0.2]}, [0, 1, 1], None, "column 'A' has 2 rows, but there are 3 outcomes"),
    ({"A": ["0.1", "wet", "0.3"]}, [0, 1, 1], None, "row 1, column 'A': 'wet' is not a number"),
    ({"A": [0.1, 0.2, 0.3]}, [0, 1, 1], [1, -1, 1], "row 1: weight -1.0"),
    ({"A": [0.1, 0.2, 0.3]}, [0, 1, 1], [1, math.inf, 1], "row 1: weight inf"),
    ({"A": [0.1, 0.2, 0.3]}, [0, 1, 1], [1, 1], "column 'weight' has 2 rows"),
    ({"A": [[0.1], [0.2], [0.3]]}, [0, 1, 1], None, "column 'A' must have one dimension"),
    ({"B": [0.1, 0.2, 0.3]}, [0, 1, 1], None, "there is no forecast 'A'"),
]


@pytest.mark.parametrize(("forecasts", "y", "c", "message"), BAD)
def test_bad_input_is_named_and_changes_nothing(forecasts, y, c, message):
    scores = Scores(["A"]).update([1, 0], {"A": [0.5, 0.25]})
    before = state(scores)
    with pytest.raises(ValueError, match=message):
        scores.update(y, forecasts, c)
    assert state(scores) == before


def test_bad_parameters_are_named():
    for options, message in (
        ({"loss": "brier"}, "loss must be one of"),
        ({"loss": "quadratic", "bounds": (1, 1)}, "low < high"),
        ({"loss": "quadratic", "bounds": 3}, r"bounds must be \(low, high\)"),
        ({"loss": "square", "bounds": (0, 1)}, "bounds belong to loss='quadratic'"),
    ):
        with pytest.raises(ValueError, match=message):
            Scores(["A", "B"], **options)
    with pytest.raises(ValueError, match="all different"):
        Scores(["A", "A"])
    with pytest.raises(ValueError, match="no row"):
        _ = Scores(["A"]).update([], {"A": []}).means


# ---------------------------------------------------------------- the identity


@given(st.integers(1, 400), st.integers(0, 10**6))
def test_the_identity_is_exact_in_expectation(m, seed):
    rng = np.random.default_rng(seed)
    p, h, c = rng.random(m), rng.random(m), rng.random(m) + 0.01
    y = (rng.random(m) < p).astype(float)
    found = identity(y, h, p, c)
    assert found.expected_loss - found.expected_intrinsic == pytest.approx(found.distance, abs=1e-14)
    assert found.loss - found.intrinsic - found.gap == pytest.approx(found.distance, abs=1e-14)
    assert found.expected_intrinsic == pytest.approx(float(c @ (p * (1 - p)) / c.sum()), abs=1e-14)


def test_the_identity_holds_for_the_truth_and_refutes_what_is_not():
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(2000):
        p, h = rng.random(60), rng.random(60)
        missed += not identity(rng.random(60) < p, h, p).holds
    assert missed <= 150  # 2,000 x 0.05 = 100; a rightful bound goes above 150 with probability below 1e-6
    p = rng.random(5000)
    y = rng.random(5000) < p
    assert not identity(y, np.full(5000, 0.9), np.full(5000, 0.3)).holds
    assert identity(y, p, p).gap == 0.0
    assert "intrinsic randomness" in str(identity(y, np.full(5000, 0.5), p))


# ---------------------------------------------------------------- learners


def test_learners_are_compared_by_what_they_predict_before_they_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.where(rng.random(400) < 1 / (1 + np.exp(-2 * X[:, 0])), "wet", "dry")
    slow, quick = hindsight.DescentClassifier(eta=0.001), hindsight.DescentClassifier(eta=0.5)
    found = compare_learners({"slow": slow, "quick": quick}, X, y)
    mean = []
    for model in (slow, quick):
        one, loss = hindsight.DescentClassifier(eta=model.eta), 0.0
        for x, label in zip(X, y, strict=True):
            h = 0.5
            if hasattr(one, "runs_"):
                h = one.predict_proba(x[None])[0, 1]
            loss += (h - (label == "wet")) ** 2
            one.partial_fit(x[None], [label], classes=["dry", "wet"])
        mean.append(loss / 400)
    np.testing.assert_allclose(list(found.means.values()), mean, rtol=1e-10)
    assert not hasattr(slow, "runs_")  # copies learn
    assert found.choice.best == "quick"


def test_mistakes_are_the_square_loss_of_hard_predictions():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 4))
    y = (X[:, 0] + 0.3 * rng.normal(size=200) > 0).astype(int)
    made, seen = progressive(hindsight.PerceptronClassifier(), X, y)
    margins = hindsight.PerceptronClassifier(keep_margins=True).fit(X, y).margins_
    assert set(made) <= {0.0, 1.0}
    assert ((made - seen) ** 2).sum() == ((margins > 0) != y).sum()


def test_regressors_take_the_quadratic_loss():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 2)) / 3
    y = X @ [0.5, -0.2]
    models = {"a": hindsight.WidrowHoffRegressor(0.1), "b": hindsight.WidrowHoffRegressor(0.5)}
    assert compare_learners(models, X, y).pairs[0].finding is Finding.VOID
    found = compare_learners(models, X, y, bounds=(-3, 3))
    assert found.pairs[0].finding is not Finding.VOID
    margins = [m.set_params(keep_margins=True).fit(X, y).margins_ for m in models.values()]
    np.testing.assert_allclose(list(found.means.values()), [((z - y) ** 2).mean() for z in margins], rtol=1e-12)


def test_learners_that_cannot_be_compared_are_refused():
    X, y = np.eye(3), [0, 1, 2]
    one, two = hindsight.PerceptronClassifier(), hindsight.PerceptronClassifier(passes=2)
    with pytest.raises(ValueError, match="two classes, got 3"):
        compare_learners({"a": one, "b": one}, X, y)
    with pytest.raises(ValueError, match="passes must be 1"):
        compare_learners({"a": one, "b": two}, X, [0, 1, 1])
    with pytest.raises(ValueError, match="all classifiers or all regressors"):
        compare_learners({"a": one, "b": hindsight.WidrowHoffRegressor()}, X, [0, 1, 1])
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(ValueError, match="LogisticRegression keeps no margins"):
        compare_learners({"a": one, "b": LogisticRegression()}, X, [0, 1, 1])


def test_a_stream_can_be_compared_at_any_time():
    y, h, _ = table(400, 2)
    scores = Scores("AB")
    for a in range(0, 400, 50):
        scores.update(y[a : a + 50], {k: v[a : a + 50] for k, v in h.items()})
        found = comparison(scores, anytime=True)
        path = found.path()
        assert path.rounds[-1] == a + 50
        assert path.low[-1] == pytest.approx(found.pairs[0].anytime.mixture.low, rel=1e-12)
        assert path.high[-1] == pytest.approx(found.pairs[0].anytime.mixture.high, rel=1e-12)
