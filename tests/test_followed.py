"""A certificate that comes with the run is that of a stranger who plays the run again, and only for the rows learnt."""

import json

import numpy as np
import pytest

import hindsight
from conftest import many
from hindsight.certificates.audit import play_noted
from hindsight.certificates.certify import certify_run
from hindsight.certificates.families.adaptive import add_terms
from hindsight.certificates.ledger import Ledger
from hindsight.errors import MismatchError
from hindsight.online import learners as L
from hindsight.online.panel import PanelRun, auto
from hindsight.online.run import Run, play
from hindsight.rows.data import Data
from hindsight.training import certify as certifying
from hindsight.training import prepare
from hindsight.training.certify import certify_model


def close(a, b, where=""):
    """Compare plain values: texts and verdicts alike, numbers to twelve digits."""
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for key in a:
            close(a[key], b[key], f"{where}.{key}")
    elif isinstance(a, list):
        assert len(a) == len(b), where
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            close(x, y, f"{where}[{k}]")
    elif isinstance(a, float) and isinstance(b, float):
        assert a == pytest.approx(b, rel=1e-12, abs=1e-300), where
    else:
        assert a == b, where


def rows(tmp_path, labels, seed=0, count=700):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 3)) * [1.0, 50.0, 0.01]
    y = X @ [1.0, 0.1, 20.0] + rng.normal(size=count) + 30.0 * (not labels)
    c = rng.choice([0.0, 0.5, 1.0, 3.0], count)
    path = tmp_path / "rows.csv"
    lines = [
        f"{a!r},{b!r},{d!r},{w},{'ab'[int(t > 0)] if labels else repr(t)}"
        for (a, b, d), w, t in zip(X.tolist(), c.tolist(), y.tolist(), strict=True)
    ]
    path.write_text("p,q,r,c,y\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("options", [{}, {"drift": 0.01}])
@pytest.mark.parametrize("labels", [False, True])
def test_what_comes_with_the_run_is_what_a_stranger_finds(tmp_path, monkeypatch, labels, options, kept):
    if not kept:
        monkeypatch.setattr(prepare, "SMALL", 0)
        monkeypatch.setattr(certifying, "SMALL", 0)
    path = rows(tmp_path, labels)
    played = []
    monkeypatch.setattr("hindsight.certificates.outcome.play_again", lambda *args: played.append(args))
    model = hindsight.learn(str(path), "y", weight="c", certify=True, **options)
    assert not played and model.certificate.verdict.value == "HOLDS"
    monkeypatch.undo()
    close(json.loads(json.dumps(model.certificate.to_dict())), certify_model(model, str(path)).to_dict())


def test_rows_that_changed_meanwhile_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(prepare, "SMALL", 0)
    monkeypatch.setattr(certifying, "SMALL", 0)
    path = rows(tmp_path, False)
    text = path.read_text()
    row = next(k for k, line in enumerate(text.splitlines()) if k > 300 and ",1.0," in line)
    cells = text.splitlines()[row].split(",")
    for column, value in ((0, str(float(cells[0]) + 1e-6)), (3, "3.0"), (4, "5.0")):
        path.write_text(text)
        certify = hindsight.training.certify.certify_runs

        def meddled(*args, column=column, value=value, certify=certify):
            lines = text.splitlines()
            lines[row] = ",".join([*cells[:column], value, *cells[column + 1 :]])
            path.write_text("\n".join(lines) + "\n")
            return certify(*args)

        monkeypatch.setattr("hindsight.training.certify.certify_runs", meddled)
        with pytest.raises(MismatchError, match="not trained on these rows in this order"):
            hindsight.learn(str(path), "y", weight="c", certify=True)
        monkeypatch.setattr("hindsight.training.certify.certify_runs", certify)


@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_the_sums_do_not_depend_on_chunks(loss):
    for seed in range(many(4, 40)):
        rng = np.random.default_rng(seed)
        count = int(rng.integers(1, 400))
        X, c = rng.normal(size=(count, 2)), rng.choice([0.0, 1.0, 2.5], count, p=[0.2, 0.6, 0.2])
        c[0] = 1.0
        y = X @ [1.0, -1.0] + rng.normal(size=count)
        y = y if loss == "square" else (y > 0.0).astype(float)
        found = []
        for chunk in (count, int(rng.integers(1, 50))):
            run = PanelRun(auto(loss), 2)
            run.watcher = ledger = Ledger(run, add_terms)
            for a in range(0, count, chunk):
                play([run], X[a : a + chunk], [y[a : a + chunk]], c[a : a + chunk], idle=True)
            assert ledger.rounds == run.rounds
            found.append((*ledger.sums_at(), ledger.sketch))
        for whole, parts in zip(*found, strict=True):
            np.testing.assert_array_equal(whole, parts)


def test_a_ledger_that_missed_a_row_is_not_used():
    run = PanelRun(auto("square"), 2)
    run.watcher = Ledger(run, add_terms)
    X, y = np.eye(2), np.ones(2)
    play([run], X, [y])
    assert certifying.ledger_of(run) is not None
    with pytest.raises(ValueError, match="not finite"):
        play([run], np.array([[1.0, 2.0], [np.nan, 1.0]]), [y])
    assert run.rounds == 2 and certifying.ledger_of(run) is None


@pytest.mark.parametrize("name", ["running", "ridge", "windowed-ridge", "vaw", "newton"])
def test_one_learner_may_bring_its_ledger(name, monkeypatch):
    known = {"running": L.running(), "ridge": L.ridge(), "vaw": L.vaw(), "newton": L.newton()}
    learner = known.get(name) or L.ridge(window=50)
    rng = np.random.default_rng(5)
    X, c = rng.normal(size=(90, 3)), rng.choice([0.0, 1.0, 2.0], 90)
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=90)
    y = (y > 0.0).astype(float) if name == "newton" else y
    data, run = Data(X, y, c, 1.0), Run(learner, 3)
    ledger = Ledger(run, add_terms)
    for first, part, count in data.blocks():
        at = slice(first, first + count)
        assert play_noted(run, ledger, part, 0, count, y[at], c[at]) == count
        ledger.see(part, 0, y[at], c[at])
    again = certify_run(run, data).to_dict()
    monkeypatch.setattr("hindsight.certificates.outcome.play_again", None)
    close(json.loads(json.dumps(certify_run(run, data, ledger=ledger).to_dict())), json.loads(json.dumps(again)))
    monkeypatch.undo()
    other = Data(X[::-1].copy(), y[::-1].copy(), c[::-1].copy(), 1.0)
    with pytest.raises(MismatchError, match="not trained on these rows in this order"):
        certify_run(run, other, ledger=ledger)
