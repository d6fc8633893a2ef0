"""Learning chunk by chunk: any chunk size, any format, any interruption, the same bits."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import hindsight
from commands import stopped_after
from conftest import nightly, same_state
from hindsight.errors import NewLabelError
from hindsight.rows.scaling import Measure, norms, scaled
from hindsight.training.options import ResultOptions
from hindsight.training.plan import Plan
from hindsight.training.session import Session, learn_chunks
from hindsight.training.state import TrainingState, start

LEARNERS = (("widrow-hoff", {"eta": 0.05}), ("eg", {"eta": 0.05, "radius": 3.0}))
LABELLED = (("perceptron", {}), ("winnow", {"eta": 0.2}))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 4)).round(3)
    y = (X @ [0.5, -1.0, 0.25, 0.0] + 0.1 * rng.normal(size=400)).round(4)
    return X, y


def csv(path, X, y, extra=None):
    names, y = [f"f{j}" for j in range(X.shape[1])], y.tolist()
    lines = [",".join([*names, "y"] + (["w"] if extra is not None else []))]
    for t, x in enumerate(X.tolist()):
        lines.append(",".join(map(repr, [*x, y[t]] if extra is None else [*x, y[t], float(extra[t])])).replace("'", ""))
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def finish(state, next_stop=lambda _: None):
    chunks = list(learn_chunks(state, next_stop))
    margins = np.concatenate([p.margins for p in chunks] or [np.zeros((0, sum(map(len, state.runs))))])
    return state, margins


def same(a, b):
    for one, other in zip(itertools.chain(*a.runs), itertools.chain(*b.runs), strict=True):
        same_state(one, other)
    np.testing.assert_array_equal(a.constant, b.constant)
    assert (a.mistakes, a.rows_done, a.labels) == (b.mistakes, b.rows_done, b.labels)


@pytest.mark.parametrize("scale", ["none", "row-unit", "global-unit", "max-abs", "standard"])
def test_neither_chunks_nor_marks_change_a_bit(tmp_path, table, scale):
    path = csv(tmp_path / "a.csv", *table)
    made = []
    for chunk in (1 << 20, 300, 4000):
        plan = Plan(path, "y", LEARNERS, {"chunk": chunk}, scale=scale)
        made.append(finish(start(plan), (lambda done: done + 7) if chunk == 300 else (lambda _: None)))
    for state, margins in made[1:]:
        np.testing.assert_array_equal(margins, made[0][1])
        same(state, made[0][0])


def test_the_estimator_gives_the_same_bits(tmp_path, table):
    X, y = table
    state, margins = finish(start(Plan(csv(tmp_path / "a.csv", X, y), "y", LEARNERS[:1], {"chunk": 1000})))
    model = hindsight.WidrowHoffRegressor(0.05, keep_margins=True).fit(X, y)
    np.testing.assert_array_equal(state.runs[0][0].weights, model.runs_[0].weights)
    np.testing.assert_array_equal(margins[:, 0], model.margins_)
    facts = state.runs[0][0].facts
    assert replace(facts, loss=facts.square) == model.facts_
    np.testing.assert_allclose(state.best_constant(), ((y - y.mean()) ** 2).sum(), rtol=1e-12)


def test_weights_and_passes_and_limit(tmp_path, table):
    X, y = table
    c = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    path = csv(tmp_path / "a.csv", X, y, c)
    plan = Plan(path, "y", LEARNERS[:1], {"chunk": 700, "weight": "w"}, passes=3, limit=150)
    state, _ = finish(start(plan))
    model = hindsight.WidrowHoffRegressor(0.05, passes=3).fit(X[:150], y[:150], c[:150])
    np.testing.assert_array_equal(state.runs[0][0].weights, model.runs_[0].weights)
    assert state.rows_done == 450 and state.runs[0][0].rounds == 3 * np.count_nonzero(c[:150])


@pytest.mark.parametrize("names", [("no", "yes"), ("b", "a", "c"), ("1", "2")])
@pytest.mark.parametrize("chunk", [200, 1 << 20])
def test_labels(tmp_path, table, names, chunk):
    X, y = table
    edges = np.quantile(y, np.linspace(0, 1, len(names) + 1)[1:-1])
    labels = np.array(names)[np.searchsorted(edges, y)]
    order = np.argsort(labels == "c", kind="stable")  # "c" comes last, so that two are thought to be all at first
    X, labels = X[order], labels[order]
    plan = Plan(csv(tmp_path / "a.csv", X, labels), "y", LABELLED, {"chunk": chunk})
    if len(names) == 3 and chunk == 200:
        with pytest.raises(NewLabelError, match="label 'c' is not one of a, b"):
            finish(start(plan))
    state, _ = finish(start(plan, all_labels=len(names) == 3))
    model = hindsight.PerceptronClassifier(keep_margins=True).fit(X, labels)
    for run, other in zip(state.runs[0], model.runs_, strict=True):
        np.testing.assert_array_equal(run.weights, other.weights)
    z = model.margins_
    if len(names) == 2:
        wrong = (np.where(labels == model.classes_[1], z, -z) <= 0).sum()
    else:
        wrong = (model.classes_[z.argmax(axis=1)] != labels).sum()
    assert state.mistakes[0] == wrong
    assert state.best_constant() == len(labels) - max(np.unique(labels, return_counts=True)[1])


def test_rows_that_all_have_weight_zero_are_nothing_to_learn(tmp_path, table):
    X, y = table
    path = csv(tmp_path / "a.csv", X, y, np.zeros(len(y)))
    for chunk in (1 << 20, 300):
        with pytest.raises(ValueError, match="all weights are zero: there is nothing to learn"):
            finish(start(Plan(path, "y", LEARNERS, {"chunk": chunk, "weight": "w"})))


def drawn(count, part, seed):
    return np.random.Generator(np.random.Philox(key=seed)).random(count) < part


@pytest.mark.parametrize("chunk", [1 << 20, 300, 1111])
def test_a_sample_is_the_run_over_its_rows(tmp_path, table, chunk):
    X, y = table
    c = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    path = csv(tmp_path / "a.csv", X, y, c)
    reading = {"chunk": chunk, "weight": "w"}
    for part, seed, limit in ((0.4, 0, None), (0.4, 9, None), (0.7, 0, 100), (1.0, 5, None)):
        rows = np.flatnonzero(drawn(len(y), part, seed))[:limit]
        assert len(rows) == limit or abs(len(rows) - part * len(y)) < 50
        plan = Plan(path, "y", LEARNERS, reading, passes=2, limit=limit, sample=part, seed=seed)
        some = csv(tmp_path / "some.csv", X[rows], y[rows], c[rows])
        state, margins = finish(start(plan))
        want, theirs = finish(start(Plan(some, "y", LEARNERS, reading, passes=2)))
        np.testing.assert_array_equal(margins, theirs)
        same(state, want)


def test_a_sample_names_the_lines_of_the_file(tmp_path, table):
    X, y = table
    labels = np.where(y > 0, "yes", "no").astype(object)
    taken = drawn(len(y), 0.3, 2)
    late = int(np.flatnonzero(taken)[-3])
    labels[late] = "perhaps"
    left_out = int(np.flatnonzero(~taken)[-3])
    labels[left_out] = "never"
    path = csv(tmp_path / "a.csv", X, labels)
    plan = Plan(path, "y", LABELLED[:1], {"chunk": 700}, labels=("no", "yes"), sample=0.3, seed=2)
    with pytest.raises(ValueError, match=rf"a\.csv, line {late + 2}: label 'perhaps' is not one of no, yes"):
        finish(start(plan))


@pytest.mark.parametrize("part", [0.0, -0.5, 1.5, float("nan")])
def test_a_sample_is_a_part_of_the_rows(part):
    with pytest.raises(ValueError, match="must be above 0 and at most 1"):
        Plan("a.csv", "y", LEARNERS, sample=part)


@pytest.mark.parametrize("seed", [-1, 1 << 64])
def test_seeds_have_64_bits(seed):
    with pytest.raises(ValueError, match=f"seed must be .* got {seed}"):
        Plan("a.csv", "y", LEARNERS, sample=0.5, seed=seed)


@nightly(but=["False-max-abs-0.5", "True-none-None"])
@pytest.mark.parametrize("part", [None, 0.5])
@pytest.mark.parametrize("scale", ["none", "max-abs"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_run_resumed_anywhere_gives_the_same_bits(tmp_path, table, sparse, scale, part):
    from hindsight.storage import checkpoint

    X, y = table
    if sparse:
        lines = []
        for t, (row, v) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
            lines.append(f"{v!r} " + " ".join(f"{40 * j + t % 40}:{x!r}" for j, x in enumerate(row, 1)))
        path = tmp_path / "a.svm"
        path.write_text("\n".join(lines) + "\n")
        learners = LEARNERS[:1]
    else:
        path, learners = tmp_path / "a.csv", LEARNERS
        csv(path, X, y)
    options = {"passes": 2, "scale": scale, "sample": part, "seed": 3, "digest": True}
    plan = Plan(str(path), None if sparse else "y", learners, {"chunk": 900}, **options)
    whole, margins = finish(start(plan))
    stops = 0
    for stop in itertools.count():
        state, seen, ended = start(plan), [], True
        for k, chunk in enumerate(learn_chunks(state)):
            seen.append(chunk.margins)
            if k == stop and chunk.complete:
                checkpoint.write(tmp_path / f"{stop}", state.to_checkpoint())
                ended = False
                break
        if ended:
            break
        again = TrainingState.resumed(plan, checkpoint.latest(tmp_path / f"{stop}"))
        again, rest = finish(again)
        same(again, whole)
        np.testing.assert_array_equal(np.concatenate([*seen, rest]), margins)
        stops += 1
    assert stops > 4


def test_other_settings_and_a_changed_prefix_are_refused(tmp_path, table):
    path = csv(tmp_path / "a.csv", *table)
    plan = Plan(path, "y", LEARNERS, {"chunk": 900}, digest=True)
    state = start(plan)
    for _, _ in zip(range(3), learn_chunks(state), strict=False):
        pass
    checkpoint = state.to_checkpoint()
    with pytest.raises(ValueError, match="limit was None when the checkpoint was written and is 5 now"):
        TrainingState.resumed(Plan(path, "y", LEARNERS, {"chunk": 900}, limit=5, digest=True), checkpoint)
    text = (tmp_path / "a.csv").read_text()
    (tmp_path / "a.csv").write_text(text[:40] + ("1" if text[40] != "1" else "2") + text[41:])
    with pytest.raises(ValueError, match="changed"):
        finish(TrainingState.resumed(plan, checkpoint))


def test_a_session_stops_resumes_and_continues_its_files(tmp_path, table):
    path = csv(tmp_path / "a.csv", *table)
    plan = Plan(path, "y", LEARNERS, {"chunk": 900}, digest=True)
    whole = Session(plan, ResultOptions(predictions=str(tmp_path / "whole.csv")))
    state = whole.run()
    assert not whole.stopped and state.rows_done == 400
    parts = {"predictions": str(tmp_path / "parts.csv"), "checkpoint": str(tmp_path / "checkpoints")}
    first = Session(plan, ResultOptions(**parts))
    stopped = stopped_after(100, first)
    assert first.stopped and 100 <= stopped.rows_done < 400
    with pytest.raises(ValueError, match="holds checkpoints already"):
        Session(plan, ResultOptions(**parts))
    second = Session(plan, ResultOptions(**parts, resume=True))
    same(second.run(), state)
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    with pytest.raises(ValueError, match="there is no checkpoint to resume from"):
        Session(plan, ResultOptions(checkpoint=str(tmp_path / "none"), resume=True))


def test_a_session_starts_again_when_a_third_label_turns_up(tmp_path, table):
    X, y = table
    labels = np.where(y > 0, "yes", "no").astype(object)
    labels[-1] = "perhaps"
    plan = Plan(csv(tmp_path / "a.csv", X, labels), "y", LABELLED, {"chunk": 900})
    said = []
    session = Session(plan, notify=said.append)
    state = session.run()
    same(state, finish(start(plan, all_labels=True))[0])
    assert state.labels == ["no", "perhaps", "yes"]
    assert len(said) == 1 and said[0].endswith("label 'perhaps' is not one of no, yes: starting again with all labels")


def test_learners_of_labels_and_of_numbers_do_not_go_together():
    with pytest.raises(ValueError, match="run them separately"):
        Plan("x.csv", "y", (*LEARNERS, *LABELLED)).classify()


@pytest.mark.parametrize("kind", ["row-unit", "global-unit", "max-abs", "standard"])
def test_scales(kind):
    rng = np.random.default_rng(5)
    X = rng.normal(3.0, 2.0, (50, 4))
    X[:, 2] = 0.0
    X[7] = 0.0
    measure = Measure()
    for part in np.array_split(X, 7):
        if kind != "row-unit":
            measure.add(part, kind)
    scale = {"kind": kind} if kind == "row-unit" else measure.scale(kind)
    Z = scaled(X, scale)
    if kind == "row-unit":
        np.testing.assert_allclose(np.linalg.norm(Z, axis=1), np.where(np.arange(50) == 7, 0.0, 1.0), rtol=1e-15)
    elif kind == "global-unit":
        np.testing.assert_allclose(np.linalg.norm(Z, axis=1).max(), 1.0, rtol=1e-15)
        np.testing.assert_allclose(Z * scale["by"], X, rtol=1e-15)
    elif kind == "max-abs":
        np.testing.assert_allclose(np.abs(Z).max(axis=0), [1, 1, 0, 1], rtol=1e-15)
    else:
        np.testing.assert_allclose(Z, (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1), atol=1e-13)
        with pytest.raises(ValueError, match="sparse"):
            measure.add(csr_matrix(X), kind)
        return
    sparse = Measure()
    for part in np.array_split(X, 7):
        if kind != "row-unit":
            sparse.add(csr_matrix(part), kind)
    again = {"kind": kind} if kind == "row-unit" else sparse.scale(kind)
    np.testing.assert_allclose(scaled(csr_matrix(X), again).toarray(), Z, rtol=1e-14)
    np.testing.assert_allclose(norms(csr_matrix(X)), np.linalg.norm(X, axis=1), rtol=1e-14)
