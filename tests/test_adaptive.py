"""Learners without a rate, and panels: their theorems on random streams, their laws, and what users see of them."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import hindsight
from commands import run
from conftest import many, nightly
from hindsight.certificates.certify import certify_run
from hindsight.certificates.families.adaptive import APPLIED
from hindsight.certificates.theorems import Verdict
from hindsight.kernels.rows import Dense
from hindsight.online import learners as L
from hindsight.online.panel import LIMIT, Panel, PanelRun, auto, member_name
from hindsight.online.run import Run, play
from hindsight.rows.data import Data


def rows(m=400, n=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.8)
    return X, X @ rng.normal(size=n) + 0.3 * rng.normal(size=m) + 3.0


def margins(panel, X, y, sizes=None):
    run, z, a = PanelRun(panel, X.shape[1]), np.empty((len(y), 1)), 0
    for size in sizes or [len(y)]:
        play([run], X[a : a + size], [y[a : a + size]], None, z[a : a + size])
        a += size
    return run, z[:, 0]


@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_the_units_of_columns_do_not_matter(loss):
    X, y = rows()
    y = y if loss == "square" else (y > 3.0).astype(float)
    _, z = margins(auto(loss), X, y)
    rng = np.random.default_rng(1)
    _, other = margins(auto(loss), X * 2.0 ** rng.integers(-20, 20, X.shape[1]), y)
    np.testing.assert_array_equal(other, z)
    _, other = margins(auto(loss), X * 10.0 ** rng.uniform(-6, 6, X.shape[1]), y)
    np.testing.assert_allclose(other, z, rtol=0, atol=1e-9 * np.abs(z).max())


@nightly(but=["square"])
@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_columns_of_a_table_are_played_as_rows_in_one_piece(loss):
    X, y = rows(4000, 20)  # enough for members to play on several processors
    y = y if loss == "square" else (y > 3.0).astype(float)
    panel = many(Panel((L.widrow_hoff(0.01), L.widrow_hoff(0.05))), auto(loss))  # which other tests play
    run, z = margins(panel, X, y)
    other, same = margins(panel, np.asfortranarray(X), y)
    np.testing.assert_array_equal(same, z)
    for a, b in zip(run.members, other.members, strict=True):
        np.testing.assert_array_equal(a.weights, b.weights)


def test_the_units_of_the_target_do_not_matter():
    X, y = rows()
    _, z = margins(auto("square"), X, y)
    np.testing.assert_array_equal(margins(auto("square"), X, 1024.0 * y)[1], 1024.0 * z)


@nightly(but=["square"])
@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_members_play_as_they_would_alone(loss):
    X, y = rows()
    y = y if loss == "square" else (y > 3.0).astype(float)
    run, _ = margins(auto(loss), X, y, [7, 1, 92, 300])
    for member in run.members:
        alone, plain = member.fresh(), Run(member.learner, X.shape[1])
        play([alone, plain], X, [y, y])
        np.testing.assert_allclose(plain.weights, member.weights, rtol=1e-8)  # also where the last feature is first
        for mine, theirs in zip(alone.state, member.state, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        assert alone.facts == member.facts


def test_chunks_and_storage_change_nothing():
    X, y = rows()
    _, z = margins(auto("square"), X, y)
    np.testing.assert_array_equal(margins(auto("square"), X, y, [1, 5, 94, 300])[1], z)
    np.testing.assert_array_equal(margins(auto("square"), sp.csr_matrix(X), y)[1], z)


def test_copies_of_a_panel_go_their_own_ways():
    from copy import deepcopy

    X, y = rows()
    run, _ = margins(auto("square"), X, y)
    twin, want = deepcopy(run), run.weights
    play([twin], X, [y])
    np.testing.assert_array_equal(run.weights, want)
    kept = run.snapshot()
    play([run], X, [y])
    np.testing.assert_array_equal(run.weights, twin.weights)
    run.restore(kept)
    np.testing.assert_array_equal(run.weights, want)


def test_members_of_a_panel_hold_few_bytes_a_coordinate():
    run, n = PanelRun(auto("square", "no"), 5000), 5001
    run.parties()
    owners = {id(v if v.base is None else v.base): v if v.base is None else v.base
              for m in run.members for v in (*m.state, m.first)}  # fmt: skip
    assert sum(v.nbytes for v in owners.values()) <= 250 * n


def test_second_order_survives_collinear_columns_and_a_jump_in_scale():
    rng = np.random.default_rng(0)
    m = 100_000
    X = rng.normal(size=(m, 5))
    X[:, 1] = X[:, 0] * (1.0 + 1e-8 * rng.normal(size=m))
    X[m // 2 :, 2] *= 1e12
    y = X[:, 0] + X[:, 3] + 0.1 * rng.normal(size=m)
    for learner, target in ((L.ridge(), y), (L.vaw(), y), (L.newton(), (y > 0).astype(float))):
        run = Run(learner, 5)
        play([run], X, [target])
        found = certify_run(run, Data(X, target, None, 1.0))
        assert found.verdict is Verdict.HOLDS, found
        assert found.bound < 1.1 * found.measured


def drifting(m=3000, n=6):
    """Rows whose truth walks at random, with a column that leaves early and is late to come back."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(m, n)) * 10.0 ** np.arange(-n // 2, n - n // 2)
    X[10:-5, 1] = 0.0
    truth = np.cumsum(rng.normal(size=(m, n)), axis=0) * 0.1 / np.abs(X).max(axis=0)
    return X, (X * truth).sum(axis=1) + 5.0


def test_a_ridge_that_forgets_obeys_the_laws(tmp_path):
    X, y = drifting()
    c = np.random.default_rng(3).choice([0.0, 0.5, 1.0, 3.0], len(y))
    learner = L.ridge(window=16)
    whole, z = Run(learner, X.shape[1]), np.empty((len(y), 1))
    play([whole], X, [y], c, z, idle=True)
    found = certify_run(whole, Data(X, y, c, 1.0))
    assert found.verdict is Verdict.HOLDS and found.worth == "tight"
    assert found.measured < 0.2 * found.best.loss  # what no fixed predictor follows

    parts, other, a = Run(learner, X.shape[1]), np.empty((len(y), 1)), 0
    for size in (1, 6, 93, 2900):
        rows_ = sp.csr_matrix(X[a : a + size]) if size == many(0, 93) else X[a : a + size]
        play([parts], rows_, [y[a : a + size]], c[a : a + size], other[a : a + size], idle=True)
        a += size
    np.testing.assert_array_equal(other, z)
    without = Run(learner, X.shape[1])
    play([without], X[c > 0.0], [y[c > 0.0]], c[c > 0.0])
    for mine, theirs in zip(whole.state, without.state, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    scaled = Run(learner, X.shape[1])
    play([scaled], X * 2.0 ** np.arange(X.shape[1]), [1024.0 * y], c, other, idle=True)
    np.testing.assert_array_equal(other, 1024.0 * z)


@nightly
def test_a_ridge_that_forgets_learns_from_dicts_and_goes_on_from_a_file(tmp_path):
    X, y = drifting()
    model = hindsight.RidgeRegressor(window=16, keep_margins=True).partial_fit(X[:2000], y[:2000])
    model.save(tmp_path / "model")
    model, alone = hindsight.load(tmp_path / "model"), hindsight.RidgeRegressor(window=16)
    model.partial_fit(X[2000:2100], y[2000:2100])
    for x, v in zip(X[:2100], y[:2100], strict=True):
        alone.learn_one(dict(enumerate(x)), v)
    np.testing.assert_array_equal([alone.predict_one(dict(enumerate(x))) for x in X[:9]], model.predict(X[:9]))
    np.testing.assert_array_equal(alone.coef_, model.coef_)


def test_windows_are_members_of_panels_and_no_window_is_plain_ridge():
    X, y = drifting(400)
    run, _ = margins(Panel((L.ridge(), L.ridge(window=16), L.ridge(window=64))), X, y)
    found = certify_run(run, Data(X, y, None, 1.0))
    assert found.verdict is Verdict.HOLDS and found.best.found.startswith("least squares")
    assert found.bound < 2.0 * found.measured < 0.5 * found.best.loss
    assert repr(L.ridge(window=0)) == repr(L.ridge(window=None)) == repr(L.ridge())
    for window in (1, -3, 1.5, np.inf, True, "many"):
        with pytest.raises(ValueError, match="window must be"):
            L.ridge(window=window)
    with pytest.raises(ValueError, match="window=8 is for forecaster=False"):
        hindsight.RidgeRegressor(window=8, forecaster=True).fit(X, y)


def test_a_column_that_was_forgotten_to_the_last_digit_comes_back():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(9000, 3))
    X[20:-100, 1] = 0.0
    y = X @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=9000)
    run, z = Run(L.ridge(window=2), 3), np.empty((9000, 1))
    play([run], X, [y], None, z)
    assert np.isfinite(z).all() and certify_run(run, Data(X, y, None, 1.0)).verdict is Verdict.HOLDS


def with_names(m=400, extra=LIMIT + 40):
    """Three numbers and two names, of which each row has one of each kind: wider than members of second order."""
    rng = np.random.default_rng(0)
    X = np.zeros((m, 3 + extra))
    X[:, :3] = rng.normal(size=(m, 3)) @ rng.normal(size=(3, 3))
    new = 3 + np.minimum(np.arange(m), extra - 1)  # each name is met for the first time in its turn, then again
    at = 3 + rng.integers(0, np.maximum(1, new - 3))
    X[np.arange(m), new], X[np.arange(m), at] = 1.0, 1.0
    return X, X[:, :3] @ [1.0, -2.0, 0.5] + rng.normal(size=3 + extra)[at] + 0.1 * rng.normal(size=m)


@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_members_with_a_matrix_learn_the_first_features(loss):
    X, y = with_names()
    y = y if loss == "square" else (y > 0.0).astype(float)
    run, z = margins(auto(loss), X, y)
    narrow_runs = [member for member in run.members if member.width < run.width]
    assert [member.width for member in narrow_runs] == [LIMIT] * (1 if loss == "square" else 2)
    found = certify_run(run, Data(X, y, None, 1.0))
    assert found.verdict is Verdict.HOLDS and found.comparator.u.size == run.width and found.account is not None
    narrow = {member_name(member.learner) for member in narrow_runs}
    said = any(f"first {LIMIT - 1} features" in note for note in found.notes)
    assert said == any(f"signed by {name}" in found.notes[0] for name in narrow)

    cut, other = narrow_runs[-1], np.empty((len(X), 1))  # the member alone on those features
    alone = cut.fresh()
    alone.play_block(Dense(X, 1.0), 0, len(X), y, np.ones(len(X)), np.empty((3, len(X))))
    np.testing.assert_array_equal(alone.weights, cut.weights)
    plain = Run(cut.learner, LIMIT - 1)
    play([plain], np.ascontiguousarray(X[:, : LIMIT - 1]), [y], None, other)
    np.testing.assert_allclose(plain.weights, cut.weights, rtol=0, atol=1e-8 * np.abs(plain.weights).max())
    assert plain.facts.loss == pytest.approx(cut.facts.loss, rel=1e-9)

    sparse, zs = margins(auto(loss), sp.csr_matrix(X), y)
    np.testing.assert_allclose(zs, z, rtol=0, atol=1e-9 * np.abs(z).max())
    assert certify_run(sparse, Data(sp.csr_matrix(X), y, None, 1.0)).bound == pytest.approx(found.bound, rel=1e-6)


def test_features_that_join_in_turn_are_learnt_as_if_they_had_been_there():
    X, y = with_names()
    whole, z = margins(auto("square"), sp.csr_matrix(X), y)
    grown, zs, at = PanelRun(auto("square"), 4), np.empty((len(X), 1)), 0
    for end in (1, 100, 230, 300, len(X)):
        width = min(X.shape[1], 3 + end)
        grown.resize(width)
        play([grown], sp.csr_matrix(X[at:end, :width]), [y[at:end]], None, zs[at:end])
        at = end
    np.testing.assert_allclose(zs[:, 0], z, rtol=0, atol=1e-9 * np.abs(z).max())
    np.testing.assert_allclose(grown.weights, whole.weights, rtol=0, atol=1e-7 * np.abs(whole.weights).max())
    found = certify_run(grown, Data(sp.csr_matrix(X), y, None, 1.0))
    assert found.verdict is Verdict.HOLDS
    assert any("were weighed" in need.text for need in found.assumptions)  # the mixture was played again


def test_given_comparators_are_cut_for_members_that_learn_the_first_features():
    X, y = with_names()
    run, _ = margins(auto("square"), X, y)
    u = np.zeros(run.width)
    u[:3], u[-2] = [1.0, -2.0, 0.5], 5.0
    found = certify_run(run, Data(X, y, None, 1.0), u=u)
    assert found.verdict is Verdict.HOLDS
    with pytest.raises(ValueError, match="u must have"):
        certify_run(run, Data(X, y, None, 1.0), u=u[:-1])


def test_one_row_at_a_time_beyond_the_limit():
    X, y = with_names()
    one, many = hindsight.AutoRegressor(), hindsight.AutoRegressor()
    many.fit(sp.csr_matrix(X), y)
    for x, target in zip(X, y, strict=True):
        one.learn_one({str(k): float(v) for k, v in enumerate(x) if v != 0.0 or k < 3}, float(target))
    seen = {str(k): float(v) for k, v in enumerate(X[7]) if v != 0.0}
    assert one.predict_one(seen) == pytest.approx(float(many.predict(sp.csr_matrix(X[7:8]))[0]), rel=1e-7)
    panel = one.runs_[0]
    assert [member.width for member in panel.members if member.width < panel.width] == [LIMIT]


def test_a_panel_by_hand():
    X, y = rows()
    panel = Panel((L.running("square", 2.0), L.ridge(), L.vaw()))
    run, _ = margins(panel, X, y)
    found = certify_run(run, Data(X, y, None, 1.0))
    assert found.verdict is Verdict.HOLDS and len(found.members) == 3
    assert run.facts.loss <= min(member.loss for member in found.members) * 1.1
    with pytest.raises(ValueError, match="all members of a panel must have the same loss: newton has another"):
        Panel((L.ridge(), L.newton()))
    with pytest.raises(ValueError, match="a panel needs at least one member"):
        Panel(())


def test_losses_of_the_same_numbers_are_not_the_same_loss():
    assert tuple(L.widrow_hoff().loss) == tuple(L.running("absolute").loss)
    with pytest.raises(ValueError, match="all members of a panel must have the same loss: running has another"):
        Panel((L.widrow_hoff(), L.running("absolute")))


def test_members_are_told_apart():
    X, y = rows(40)
    model = hindsight.AutoRegressor(panel=Panel((L.widrow_hoff(0.1), L.widrow_hoff(0.5)))).fit(X, y)
    assert list(model.shares_) == [
        "widrow-hoff(euclidean, implicit, eta=0.1)",
        "widrow-hoff(euclidean, implicit, eta=0.5)",
    ]


def test_a_panel_of_learners_that_count_mistakes_counts_them_and_promises_nothing():
    """Aggregation bounds the loss that it weighs; the bounds of such members are on another quantity."""
    panel = Panel((L.perceptron(), L.perceptron("scale-free")))
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, weight = rng.normal(size=(50, 3)), np.ones(50) if seed % 2 else rng.choice([0.5, 1.0, 3.0], 50)
        y = np.where(X[:, 0] + rng.normal(size=50) > 0.0, 1.0, -1.0)
        run, z = PanelRun(panel, 3), np.empty((50, 1))
        play([run], X, [y], weight, z)
        data = Data(X, y, weight, 1.0)
        found = certify_run(run, data)
        assert found.verdict is Verdict.UNCHECKABLE and np.isnan(found.bound)
        assert found.quantity == ("mistakes" if seed % 2 else "weighted mistakes")
        assert found.measured == found.lost == weight[y * z[:, 0] <= 0.0].sum()
        for each, member in zip(run.members, found.members, strict=True):
            alone = Run(each.learner, 3)
            play([alone], X, [y], weight)
            own = certify_run(alone, data)
            assert member.loss == own.measured and member.bound == own.bound


def test_a_member_that_counts_mistakes_does_not_sign_for_a_loss():
    X, y = rows(60)
    y = np.where(y > 3.0, 1.0, -1.0)
    run, z = margins(Panel((L.perceptron(), L.running("perceptron", 2.0))), X, y)
    found = certify_run(run, Data(X, y, None, 1.0))
    assert found.verdict is Verdict.HOLDS and found.quantity == "perceptron loss"
    assert found.measured == pytest.approx(np.maximum(0.0, -y * z).sum())
    assert [np.isfinite(member.bound) for member in found.members] == [False, True]


@pytest.mark.parametrize("drift", [0.0, 0.1])
def test_a_panel_measures_squared_errors_whole(drift):
    X, y = rows(60, 3)
    panel = Panel((L.widrow_hoff(0.05), L.widrow_hoff(0.5)), drift=drift)
    run, z = margins(panel, X, y)
    found = certify_run(run, Data(X, y, None, 1.0))
    whole = ((z - y) ** 2)[1:].sum()  # the first row gives the range to clip to
    rows_ = np.c_[X, np.ones(60)][1:]
    least = np.linalg.lstsq(rows_, y[1:], rcond=None)[1][0]
    assert found.verdict is Verdict.HOLDS and found.quantity == "squared error"
    assert found.measured == found.lost == pytest.approx(whole, rel=1e-12)
    assert found.path[-1].measured == found.measured and found.path[-1].bound == pytest.approx(found.bound)
    assert found.best.loss == pytest.approx(least) and found.constant == pytest.approx(
        ((y - y[1:].mean())[1:] ** 2).sum()
    )
    assert found.curve.lost[-1] == pytest.approx(whole / 59)
    for each, member in zip(run.members, found.members, strict=True):
        alone, own = Run(each.learner, 3), np.empty((60, 1))
        play([alone], X, [y], None, own)
        low, high = np.minimum.accumulate(y)[:-1], np.maximum.accumulate(y)[:-1]
        used = ((np.clip(own[1:, 0], low, high) - y[1:]) ** 2).sum()
        bound = certify_run(alone, Data(X, y, None, 1.0)).bound
        assert member.loss == pytest.approx(used)
        assert member.bound == pytest.approx(bound - ((own[:, 0] - y) ** 2).sum() + used)
    gap, rate = 2.0 * run.state.gap[0], run.state.rate[0] / 2.0
    stay = -np.log1p(drift / 2 - drift) * (run.state.shared[0] - 1.0) if drift else 0.0
    assert found.bound == pytest.approx(min(m.bound for m in found.members) + (np.log(2) + stay) / rate + gap)
    if drift:
        told = next(note for note in found.notes if "best sequence" in note)
        assert float(told.rpartition(" ")[2]) >= whole


def test_squared_errors_in_the_scale_free_geometry_are_whole():
    X, y = rows(60, 3)
    run, z = Run(L.widrow_hoff(0.5, geometry="scale-free"), 3), np.empty((60, 1))
    play([run], X, [y], None, z)
    found = certify_run(run, Data(X, y, None, 1.0))
    assert found.verdict is Verdict.HOLDS
    assert found.measured == found.lost == pytest.approx(((z[:, 0] - y) ** 2).sum())
    least = np.linalg.lstsq(np.c_[X, np.ones(60)], y, rcond=None)[1][0]
    assert found.best.loss == pytest.approx(least) and found.comparator.loss >= least


# What is wrong with one member is wrong with the panel: each test below breaks what must not be passed over.


def changed(monkeypatch, **fields):
    """The theorem of running members, with something else in its place."""
    own = APPLIED["running"]
    monkeypatch.setitem(
        APPLIED, "running", lambda *args: replace(case := own(*args), **{k: f(case) for k, f in fields.items()})
    )


def certified_panel(**options):
    X, y = rows(60, 3)
    run, _ = margins(Panel((L.running("square", 2.0), L.running("square", 8.0)), **options), X, y)
    return certify_run(run, Data(X, y, None, 1.0))


def test_a_member_whose_sharper_form_fails_does_not_sign(monkeypatch):
    assert certified_panel().verdict is Verdict.HOLDS
    changed(monkeypatch, sharper=lambda case: (2.0 * case.sharper[1] + 1e3, *case.sharper[1:]))
    found = certified_panel()
    assert found.verdict is Verdict.UNCHECKABLE and not any(np.isfinite(m.bound) for m in found.members)
    assert any("sharper" in note for note in found.notes)


def test_a_broken_member_breaks_the_panel(monkeypatch):
    changed(monkeypatch, course=lambda case: case.course._replace(bound=0.5 * case.course.measured))
    found = certified_panel()
    assert found.verdict is Verdict.BROKEN
    assert found.notes == ("the bound of running(eta=2) is broken",)


def test_a_broken_sequence_of_members_breaks_the_panel(monkeypatch):
    assert certified_panel(drift=0.1).verdict is Verdict.HOLDS
    monkeypatch.setattr("hindsight.certificates.families.panel.best_sequence", lambda *_: (-1e6, 0.0, 0))
    assert certified_panel(drift=0.1).verdict is Verdict.BROKEN


def test_the_paid_share_is_all_but_the_comparator_and_its_distance():
    found = certified_panel()
    X, y = rows(60, 3)
    signer = min(found.members, key=lambda m: m.bound)
    run = Run(L.running("square", 2.0 if signer.name.endswith("=2)") else 8.0), 3)
    play([run], X, [y])
    alone = certify_run(run, Data(X, y, None, 1.0))
    share = float(next(n for n in alone.notes if "metric's share" in n).split(";")[0].rpartition(" ")[2])
    paid = 100 * (1 - (alone.comparator.loss + share) / found.bound)
    assert 1.0 < paid < 99.0
    said = f"{paid:.3g} % of the promise is price that the run itself met"
    assert any(note.removeprefix("accounting: ").startswith(said) for note in found.notes)


def test_one_row_at_a_time_is_the_same(tmp_path):
    X, y = rows(n=5)
    many, one, named = (hindsight.AutoRegressor() for _ in range(3))
    many.fit(X, y)
    for x, target in zip(X, y, strict=True):
        one.learn_one(x, target)
        named.learn_one({f"c{j}": v for j, v in enumerate(x)}, target)
    np.testing.assert_array_equal(one.predict(X), many.predict(X))
    np.testing.assert_array_equal(named.predict(X), many.predict(X))
    assert one.predict_one(X[0]) == many.predict(X[:1])[0]
    many.save(tmp_path / "model")
    found = hindsight.load(tmp_path / "model")
    np.testing.assert_array_equal(found.partial_fit(X, y).predict(X), many.partial_fit(X, y).predict(X))


def test_a_row_that_fails_leaves_nothing_behind():
    X, y = rows(n=5)
    model = hindsight.AutoRegressor().fit(X, y)
    before = model.predict(X)
    for bad in ([1.0, np.nan, 1.0, 1.0, 1.0], [1.0, np.inf, 1.0, 1.0, 1.0], [1e300, 1.0, 1.0, 1.0, 1e300]):
        with pytest.raises(ValueError, match=r"row 0|margin|not finite"):
            model.learn_one(np.array(bad), 1.0)
        np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("intercept", [True, False])
def test_sparse_rows_that_fail_leave_nothing_behind(intercept):
    X, y = rows(n=300)
    X = sp.random_array((400, 300), density=0.02, format="csr", rng=np.random.default_rng(0))
    run = PanelRun(auto("square"), 300, intercept=intercept)
    play([run], X[:200], [y[:200]])
    want = [values.copy() for member in run.members for values in (*member.state, member.progress, member.tally)]
    bad = X[200:].copy()
    bad.data[-1] = np.inf
    with pytest.raises(ValueError, match="row 199"):
        play([run], bad, [y[200:]])
    scratch = [name == "fresh" for member in run.members for name in (*member.state._fields, "", "")]
    found = [values for member in run.members for values in (*member.state, member.progress, member.tally)]
    for now, then, any_value in zip(found, want, scratch, strict=True):
        assert any_value or now.tobytes() == then.tobytes()
    play([run], X[200:], [y[200:]])
    whole = PanelRun(auto("square"), 300, intercept=intercept)
    play([whole], X, [y])
    np.testing.assert_array_equal(run.weights, whole.weights)


def test_predicting_learns_nothing():
    X, y = rows(n=5)
    model, other = hindsight.AutoRegressor().fit(X, y), hindsight.AutoRegressor().fit(X, y)
    for _ in range(3):
        model.predict(100.0 * X)
        model.predict_one(1000.0 * X[3])
    np.testing.assert_array_equal(model.partial_fit(X, y).predict(X), other.partial_fit(X, y).predict(X))


def test_classes():
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    model = hindsight.AutoClassifier(keep_margins=True).fit(X, y)
    assert model.margins_.shape == (150, 3)
    assert model.score(X, y) > 0.9
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert hindsight.certify(model, X, y).verdict is Verdict.HOLDS
    one = hindsight.AutoClassifier()
    for x, label in zip(X, y, strict=True):
        one.learn_one(x, int(label))
    assert one.score(X, y) > 0.9


@pytest.mark.parametrize(
    "y", [np.full(50, 3.0), np.r_[np.zeros(49), 1e9]], ids=["all targets are equal", "one is a record"]
)
def test_odd_targets(y):
    X = np.random.default_rng(0).normal(size=(50, 3))
    X[0] = 0.0
    model = hindsight.AutoRegressor().fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert hindsight.certify(model, X, y).verdict is Verdict.HOLDS


def test_one_row_and_one_class():
    model = hindsight.AutoRegressor().fit([[2.0]], [5.0])
    assert model.predict([[7.0]])[0] == 5.0
    one = hindsight.AutoClassifier().partial_fit([[1.0], [2.0]], [1, 1], classes=[0, 1])
    assert one.predict([[1.5]]).tolist() == [1]


@pytest.mark.parametrize(("sample", "loss"), [("diabetes", "square"), ("breast-cancer", "logistic")])
def test_the_command_chooses_the_loss(sample, loss):
    code, out, err = run("learn", f"sample:{sample}", "--learner", "auto", "--certify")
    assert code == 0 and f"loss {loss}: the targets are" in err and "HOLDS, tight: aggregation" in out, err


@pytest.mark.parametrize("n", [1, 5, 8, 13, 16, 31, 40])
@pytest.mark.parametrize("weight", [0.0, 0.3, 1e9])
def test_a_row_joins_the_triangle(n, weight):
    from hindsight.kernels import second_order

    rng = np.random.default_rng(n)
    factor, right = np.triu(rng.normal(size=(n, n))) + 4.0 * np.eye(n), rng.normal(size=n)
    unseen = n // 2 if n > 1 else None
    row, image, inverse, turned = rng.normal(size=n), *np.empty((3, n))
    if unseen is not None:
        factor[unseen], factor[:, unseen], right[unseen], row[unseen] = 0.0, 0.0, 0.0, 0.0
    A, b, x = factor.T @ factor, factor.T @ right, row.copy()
    least = right @ right
    old, new, low = factor.copy(), np.zeros_like(factor), n - 8 * (n // 16)  # half of the blocks are new
    old[low:], new[low:] = 0.0, factor[low:]
    second_order.reciprocals(0.0, old, new, low, row, inverse)
    second_order.solve_few(old, new, low, row, image, inverse)
    np.testing.assert_allclose(factor.T @ image, x, rtol=0, atol=1e-13 * n)
    second_order.reciprocals(0.0, factor, new, n, row, inverse)
    second_order.solve_row(factor, row, image, inverse)
    np.testing.assert_allclose(factor.T @ image, x, rtol=0, atol=1e-13 * n)
    fade = 0.75 if n in (5, 16, 40) else 1.0
    left = second_order.join(factor, right, row, image, weight, 1.5, fade, inverse, turned, np.empty(n))
    size, factor, right = 1.0 + weight, factor / fade, right / fade
    np.testing.assert_allclose(factor.T @ factor, A + weight * np.outer(x, x), rtol=0, atol=1e-13 * n * size)
    np.testing.assert_allclose(factor.T @ right, b + weight * 1.5 * x, rtol=0, atol=1e-13 * n * size)
    assert left**2 + right @ right == pytest.approx(least + weight * 1.5**2, rel=1e-12)
    np.testing.assert_allclose(factor.T @ turned, fade * x, rtol=0, atol=1e-11 * n)
    np.testing.assert_array_equal(factor, np.triu(factor))


def test_a_pipeline_is_certified_by_its_last_step():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = rows(n=5)
    pipe = make_pipeline(StandardScaler(), hindsight.AutoClassifier()).fit(X, y > 0)
    assert hindsight.certify(pipe, X, y > 0).verdict is Verdict.HOLDS
    with pytest.raises(hindsight.MismatchError):
        hindsight.certify(pipe, X[::-1], y > 0)


def test_probabilities_of_one_row():
    X, y = rows(n=3)
    for labels in (y > 0, np.digitize(y, np.quantile(y, [0.3, 0.6]))):
        model = hindsight.AutoClassifier().fit(X, labels)
        found = model.predict_proba_one(X[0])
        assert list(found) == model.classes_.tolist()
        np.testing.assert_allclose(list(found.values()), model.predict_proba(X[:1])[0], rtol=1e-12)
    panel = Panel((L.perceptron(), L.perceptron("scale-free")))  # the loop of another test: of the same loss as "hinge"
    without = hindsight.AutoClassifier("hinge", panel=panel).fit(X, y > 0)
    with pytest.raises(AttributeError, match="predict_proba_one"):
        without.predict_proba_one(X[0])


def test_columns_of_text_are_named():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"size": [1.0, 2.0, 3.0], "city": ["Rome", "Oslo", "Rome"]})
    for city in (frame["city"], frame["city"].astype("category"), pandas.to_datetime(["2024-01-01"] * 3)):
        with pytest.raises(ValueError, match=r"column 'city' holds .* values such as .*, not numbers"):
            hindsight.AutoRegressor().fit(frame.assign(city=city), [1.0, 2.0, 3.0])


def test_facts_can_be_read():
    X, y = rows(n=3)
    told = str(hindsight.AutoRegressor().fit(X, y).facts_)
    assert f"{len(y) - 1:,} rounds" in told and "mean" in told


# ---------------------------------------------------------------- constants of docs/theory.md#logistic-second-order


@pytest.mark.parametrize(("kappa", "most"), [(0.5, 4.591), (0.25, 9.562), (0.125, 18.366)])
def test_quadratics_lie_below_the_log_loss_and_the_constant_is_the_root(kappa, most):
    b = np.linspace(0.0, most, 200_001)
    assert 2.0 + (np.tanh(b / 2.0) * (most - b)).max() == pytest.approx(2.0 / kappa, abs=1e-3)
    z, m = np.linspace(-60.0, 60.0, 2001)[:, None], np.linspace(-most, most, 401)
    p = 1.0 / (1.0 + np.exp(-z))
    quadratic = np.logaddexp(0.0, z) + p * (m - z) + kappa / 2.0 * p * (1.0 - p) * (m - z) ** 2
    assert (quadratic <= np.logaddexp(0.0, m) + 1e-9).all()
    m = 3.0 * most  # and the test can fail: far outside they do not
    quadratic = np.logaddexp(0.0, z) + p * (m - z) + kappa / 2.0 * p * (1.0 - p) * (m - z) ** 2
    assert (quadratic > np.logaddexp(0.0, m) + 0.1).any()


def test_the_margin_played_keeps_the_price_of_newton_below_the_logarithm():
    kappa, z, q = 0.5, np.linspace(-20.0, 20.0, 401)[:, None], np.geomspace(1e-6, 1e6, 400)
    p = 1.0 / (1.0 + np.exp(-z))
    C, d = kappa * p * (1.0 - p), q * np.tanh(z / 2.0)
    for y in (0.0, 1.0):
        G = p - y
        price = (q * G**2 - 2.0 * G * d - C * d**2) / (2.0 * (1.0 + C * q))
        assert (price <= np.log1p(C * q) / kappa + 1e-12 * (1.0 + np.abs(price))).all()
        assert ((q * G**2) / (2.0 * (1.0 + C * q)) > np.log1p(C * q) / kappa + 0.1).any()  # played as w . x it is not
