"""Cells of a panel beside the naive ones, and the laws of estimators on them."""

import itertools
import shutil

import numpy as np
import pytest
import scipy.sparse as sp

import hindsight
import naive_cells
from commands import python
from commands import run as command
from conftest import many
from hindsight.errors import MismatchError, ModelError
from hindsight.kernels.cells import BINS, GRID, PLACES, WIDTH
from hindsight.kernels.state import fields_of
from hindsight.online import learners as L
from hindsight.online.cells import Cells
from hindsight.online.panel import Panel, PanelRun
from hindsight.online.run import play
from hindsight.rows.matrices import rows_of
from hindsight.sources import open_source
from hindsight.storage import checkpoint


def expanded(cells, X, c, parts):
    """Rows as the package expands them, in parts, as dicts of the features of `naive_cells`."""
    found = []
    for a, b in parts:
        room = cells.room(b - a, X[a:b].nnz if sp.issparse(X) else X[a:b].size, 1.0)
        cells.expand(rows_of(X[a:b], 1.0), 0, b - a, c[a:b], room)
        found += [
            dict(zip(room.indices[i:j].tolist(), room.data[i:j].tolist(), strict=True))
            for i, j in zip(room.indptr[:-1].tolist(), room.indptr[1:].tolist(), strict=True)
        ]
        for i, j in zip(room.indptr[:-1].tolist(), room.indptr[1:].tolist(), strict=True):
            assert (np.diff(room.indices[i:j].astype(np.int64)) > 0).all()
    columns, pairs = cells.state.columns.tolist(), cells.state.pairs.tolist()

    def name(k):
        if k >= WIDTH:
            return "column", k - WIDTH
        if k < PLACES * BINS:
            return "bin", columns[k // BINS], k % BINS
        p, cell = divmod(k - PLACES * BINS, GRID * GRID)
        return "cell", tuple(columns[q] for q in pairs[p]), *divmod(cell, GRID)

    return [{name(k): value for k, value in row.items()} for row in found]


def nasty(rng):
    """Rows of all sorts: constants, ties, scales, few, sparse, late, slow, and of many columns."""
    m, n = int(rng.choice([1, 7, 9, 33, 40, 130, 600, 2100])), int(rng.integers(1, 6))
    if rng.random() < 0.15:
        m, n = 140, int(rng.integers(11, 50))
    X = rng.normal(size=(m, n))
    for j in range(n):
        kind = rng.integers(0, 10)
        if kind == 0:
            X[:, j] = rng.choice([0.0, 3.0, -1e300])
        elif kind == 1:
            X[:, j] = rng.integers(0, int(rng.integers(1, 12)), m)
        elif kind == 2:
            X[:, j] *= 1e300 / 10.0
        elif kind == 3:
            X[:, j] *= 5e-324 ** float(rng.random())
        elif kind == 4:
            X[:, j] *= rng.random(m) < rng.choice([0.1, 0.25, 0.5])
        elif kind == 5:
            X[:, j] *= np.arange(m) > rng.integers(0, m)
        elif kind == 6:
            X[:, j] = np.arange(m) // 50
        elif kind == 7:
            X[:, j] = rng.standard_cauchy(m)
        elif kind == 8:
            X[:, j] = np.where(rng.random(m) < 0.5, -0.0, X[:, j])
    c = np.ones(m) if rng.random() < 0.5 else rng.choice([0.0, 1.0, 2.5], m)
    return X, c


def chunks(rng, m):
    """Random parts of so many rows."""
    ends = np.unique(np.r_[0, m, rng.integers(0, m + 1, int(rng.integers(0, 6)))]).tolist()
    return list(itertools.pairwise(ends))


@pytest.mark.parametrize("storage", ["dense", "csr", "float32"])
def test_cells_are_the_naive_ones(storage):
    met = set()
    for seed in range(many(60, 600)):
        rng = np.random.default_rng(seed)
        X, c = nasty(rng)
        if storage == "float32":
            with np.errstate(over="ignore"):
                X = np.clip(X, -1e30, 1e30).astype(np.float32)
        want = naive_cells.expand(X.astype(float).tolist(), c.tolist())
        given = sp.csr_matrix(X) if storage == "csr" else X
        assert expanded(Cells(X.shape[1]), given, c, chunks(rng, len(X))) == want
        met |= {name[0] for row in want for name in row}
        met |= {"full"} if len({n[1] for n in want[-1] if n[0] == "cell"}) == naive_cells.PAIRS else set()
    assert met == {"bin", "cell", "column", "full"}


def test_later_rows_change_nothing_before_them():
    rng = np.random.default_rng(3)
    X, Z = rng.normal(size=(2, 700, 3))
    whole = expanded(Cells(3), X, np.ones(700), [(0, 700)])
    for t in (8, 31, 32, 33, 127, 128, 512, 513, 699):
        other = np.r_[X[: t + 1], Z[t + 1 :]]
        assert expanded(Cells(3), other, np.ones(700), [(0, 700)])[: t + 1] == whole[: t + 1]


def test_columns_in_other_units_have_the_same_cells():
    X = np.random.default_rng(4).normal(size=(600, 3))
    one, other = (expanded(Cells(3), given, np.ones(600), [(0, 600)]) for given in (X, X * [1e9, 0.5, 1e-7]))
    for a, b in zip(one, other, strict=True):
        assert {k for k in a if k[0] != "column"} == {k for k in b if k[0] != "column"}


# ---------------------------------------------------------------- laws


def rows(m=700, n=4, seed=0):
    """Rows whose targets are no linear function of theirs; one column of categories, one sparse."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    X[:, -1] *= rng.random(m) < 0.1
    X[:, -2] = rng.integers(0, 3, m)
    return X, np.sign(X[:, 0] * X[:, 1]) + 0.3 * X[:, -1] + 0.1 * rng.normal(size=m)


MODELS = {
    "regressor": lambda **more: hindsight.AutoRegressor(features="cells", keep_margins=True, **more),
    "classifier": lambda **more: hindsight.AutoClassifier(features="cells", keep_margins=True, **more),
}


@pytest.fixture(params=list(MODELS))
def kind(request):
    return request.param


def targets(kind, y):
    return y if kind == "regressor" else np.where(y > 0.0, "yes", "no")


def states_of(model):
    """All numbers of the runs."""
    found = []
    for run in model.runs_ if hasattr(model, "runs_") else model.runs:
        for state in run.states():
            found += [getattr(state, name) for name, field in fields_of(type(state)).items() if not field.scratch]
        found += run.cells.state[:-2]
    return found


def same(one, other):
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(states_of(one), states_of(other), strict=True))


def test_chunks_parts_and_single_rows_are_one_stream(kind):
    X, y = rows()
    t = targets(kind, y)
    whole, parts, one, named = (MODELS[kind]() for _ in range(4))
    whole.fit(X, t)
    more = {} if kind == "regressor" else {"classes": ["no", "yes"]}
    z = []
    for a, b in ((0, 1), (1, 9), (9, 32), (32, 33), (33, 500), (500, 700)):
        parts.partial_fit(X[a:b], t[a:b], **more)
        z.append(parts.margins_)
    assert same(whole, parts) and np.array_equal(whole.margins_, np.concatenate(z))
    if kind == "classifier":
        one.partial_fit(X[:1], t[:1], **more)
        named.partial_fit(X[:1], t[:1], **more)
    for row, target in zip(X[kind == "classifier" :], t[kind == "classifier" :], strict=True):
        one.learn_one(row, target)
    assert same(whole, one)
    assert np.allclose(one.predict_one(X[5]) == whole.predict(X[5:6])[0], True)


def test_sparse_rows_and_rows_of_names(kind):
    X, y = rows()
    t = targets(kind, y)
    dense, sparse, named = (MODELS[kind]() for _ in range(3))
    dense.fit(X, t)
    sparse.fit(sp.csr_matrix(X), t)
    assert np.allclose(dense.margins_, sparse.margins_, rtol=1e-9, atol=1e-9)
    for row, target in zip(X, t, strict=True):  # columns join as they are met
        named.learn_one({f"x{j}": v for j, v in enumerate(row) if v != 0.0}, target)
    assert named.runs_[0].rounds == 700 and named.cells_[0].columns in (("x0", "x1"), ("x1", "x0"))
    assert dense.cells_[0].columns == (0, 1)
    if kind == "regressor":  # the first label of a classifier begins a run of its own
        assert np.isclose(named.facts_.loss, dense.facts_.loss, rtol=1e-9)


def test_rows_of_weight_0_are_absent(kind):
    X, y = rows()
    t, c = targets(kind, y), np.ones(len(y))
    c[::3] = 0.0
    weighted, without = MODELS[kind]().fit(X, t, sample_weight=c), MODELS[kind]().fit(X[c > 0.0], t[c > 0.0])
    assert same(weighted, without)


def test_several_processors_change_nothing(kind, monkeypatch):
    X, y = rows(5000)
    t = targets(kind, y)
    one = MODELS[kind]().fit(X, t)
    for module in ("panel", "relay"):
        monkeypatch.setattr(f"hindsight.online.{module}.PROCESSORS", 3)
    monkeypatch.setattr("hindsight.online.relay._pool", [])
    monkeypatch.setattr("hindsight.online.panel.BUSY", 2000)
    monkeypatch.setattr("hindsight.online.panel.PIECE", 9000)
    several = MODELS[kind]().fit(X, t)
    assert same(one, several) and np.array_equal(one.margins_, several.margins_)


def test_predicting_changes_nothing(kind):
    X, y = rows()
    model = MODELS[kind]().fit(X, targets(kind, y))
    before = [a.copy() for a in states_of(model)]
    first = model.predict(X)
    assert np.array_equal(first, model.predict(X))
    model.predict_one(X[0])
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(before, states_of(model), strict=True))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_row_that_cannot_be_played_changes_nothing(kind, bad):
    X, y = rows()
    t = targets(kind, y)
    model = MODELS[kind]().fit(X, t)
    before = [a.copy() for a in states_of(model)]
    wrong = X[:40].copy()
    wrong[20, 1] = bad
    with pytest.raises(ValueError, match="row 20"):
        model.partial_fit(wrong, t[:40])
    with pytest.raises(ValueError, match="1"):
        model.learn_one(wrong[20], t[20])
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(before, states_of(model), strict=True))


def test_a_model_saved_and_loaded_learns_on(kind, tmp_path):
    X, y = rows()
    t = targets(kind, y)
    whole, first = MODELS[kind]().fit(X, t), MODELS[kind]()
    first.fit(X[:100], t[:100]).save(tmp_path / "m")
    again = hindsight.load(tmp_path / "m").partial_fit(X[100:], t[100:])
    assert same(whole, again)
    assert [table.columns for table in again.cells_] == [table.columns for table in whole.cells_]


def test_labels_that_join_later_and_several_classes():
    X, y = rows()
    labels = np.digitize(y, [-0.5, 0.5])
    model = MODELS["classifier"]().fit(X, labels)
    assert len(model.cells_) == 3 and (model.predict(X) == labels).mean() > 0.8
    assert all(found.verdict.value == "HOLDS" for found in model.certify(X, labels).each)
    one = MODELS["classifier"]()
    for row, label in zip(X[:200], labels[:200], strict=True):
        one.learn_one(row, label)
    assert one.runs_[0].cells.state.clock[0] == 200


def test_certificates_hold_and_come_with_the_run_or_by_replay(kind, tmp_path):
    X, y = rows()
    t = targets(kind, y)
    came = MODELS[kind]().fit(X, t, certify=True)
    again = came.certify(X, t)
    assert str(again) == str(came.certificate_) and again.verdict.value == "HOLDS"
    assert again.account is not None and again.lost < again.best.loss  # what no fixed predictor of the columns can
    on = [member for member in again.members if " on cells" in member.name]
    assert len(on) == 8 and not any(np.isfinite(member.bound) for member in on)
    with pytest.raises(MismatchError):
        came.certify(X[::-1], t[::-1])


def test_the_tables_of_cells_add_up_to_what_is_predicted():
    """Of one member on cells that has all the weight, weights of the columns and of the cells are the prediction."""
    X, y = rows()
    panel = Panel((L.running(), L.diagonal_newton()), cells=1)
    run = PanelRun(panel, X.shape[1])
    play([run], X, [y])
    run.state.lost[:] = [1e30, 0.0]
    want = np.empty((len(X), 1))
    play([run.reader()], X, [np.zeros(len(X))], np.zeros(len(X)), want, idle=True)
    z = X @ run.weights[:-1] + run.weights[-1]
    for table in run.cell_tables():
        each = [np.searchsorted(cuts, X[:, j]) for j, cuts in zip(table.columns, table.cuts, strict=True)]
        z = z + table.weights[tuple(each)]
    assert np.allclose(np.clip(z, y.min(), y.max()), want[:, 0])
    effects = [table.effect for table in run.cell_tables()]
    assert effects == sorted(effects, reverse=True) and run.cell_tables("abcd")[0].columns == ("a", "b")


def test_what_panels_refuse():
    with pytest.raises(ValueError, match="members on cells come after others"):
        Panel((L.running(),), cells=1)
    with pytest.raises(ValueError, match="keep no matrix"):
        Panel((L.running(), L.ridge()), cells=1)
    with pytest.raises(ValueError, match="square and logistic"):
        Panel((L.running("hinge"), L.running("hinge")), cells=1)
    with pytest.raises(ValueError, match="features"):
        hindsight.AutoRegressor(features="bins").fit([[1.0]], [1.0])
    with pytest.raises(AttributeError, match="no cells"):
        _ = hindsight.AutoRegressor().fit([[1.0]], [1.0]).cells_


def test_members_with_a_matrix_keep_the_first_features_and_those_on_cells_grow():
    X, y = rows(300)
    model = MODELS["regressor"](panel=Panel((L.running(), L.ridge(), L.running()), limit=6, stack=True, cells=1))
    model.fit(sp.csr_matrix(X), y)
    for k in range(4):
        model.runs_[0].resize(5 + k)
    run = model.runs_[0]
    assert [m.learner.name for m in run.members] == ["running", "ridge", "running on cells"] and not run.left
    assert [m.features for m in run.members] == [8, 6 - run.intercept, 8 + WIDTH]
    assert run.cells.state.met.size == 8


LIES = {
    "clock": lambda a: a * 0 + [100, 32, 1],
    "met": lambda a: a[:-1],
    "place": lambda a: a + 1,
    "columns": lambda a: a + 1000,
    "cuts": lambda a: a[:, :-1],
    "held": lambda a: a[:5],
    "pairs": lambda a: a + PLACES,
    "values": lambda a: a[:-1],
    "bins": lambda a: a[:-1],
}


@pytest.mark.parametrize("name", list(LIES))
def test_forged_cells_are_refused(name, tmp_path):
    X, y = rows(200)
    model = MODELS["regressor"]().fit(X, y)
    cells = model.runs_[0].cells
    cells.state = cells.state._replace(**{name: LIES[name](getattr(cells.state, name))})
    model.save(tmp_path / "m")
    with pytest.raises(ModelError):
        hindsight.load(tmp_path / "m")


def test_the_command_learns_on_cells_resumes_and_certifies(tmp_path, monkeypatch):
    X, y = rows(900)
    table = tmp_path / "t.csv"
    np.savetxt(table, np.c_[X, y], delimiter=",", header="a,b,c,d,y", comments="", fmt="%.17g")
    learn = ("learn", table, "--target", "y", "--cells", "--progress", "none")
    status, out, _ = command(*learn, "--certify", "--save", tmp_path / "whole")
    assert status == 0 and "HOLDS" in out and "cells: a × b 0." in out
    status, told, _ = command("certify", tmp_path / "whole", table)
    assert status == 0 and "HOLDS" in told
    monkeypatch.setitem(open_source.__kwdefaults__, "chunk", 200)  # so that there is a checkpoint in the middle
    every = ("--every", "100", "--checkpoint")
    assert command(*learn, *every, tmp_path / "points")[0] == 0
    first, *later = checkpoint.generations(tmp_path / "points")
    oldest = checkpoint.path_of(tmp_path / "points", first)
    (tmp_path / "again").mkdir()
    shutil.copy(oldest, checkpoint.path_of(tmp_path / "again", 1))
    status, _, err = command(*learn, *every, tmp_path / "again", "--resume", "--save", tmp_path / "resumed")
    assert status == 0, err
    one, other = (hindsight.load(tmp_path / name) for name in ("whole", "resumed"))
    assert later and one.runs[0].rounds == other.runs[0].rounds == 900
    assert same(one, other)


def test_without_the_option_nothing_of_it_is_loaded():
    code = "import sys, hindsight; hindsight.AutoRegressor().fit([[1.0]], [1.0]); print(*sys.modules)"
    loaded = python(code)
    assert "hindsight.online.panel" in loaded and "cells" not in loaded
