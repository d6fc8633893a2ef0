"""What docs/threads.md promises: predictions from any number of threads, and single rows learnt from several."""

import copy
import sys
import threading
from functools import lru_cache

import numpy as np
import pytest
import threadpoolctl
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags

import hindsight as h
from conftest import many, nightly, same
from discovery import ONLINE, PUBLIC, online
from hindsight.rows import one_thread

THREADS, N = 8, 12
NAMES = [f"x{j}" for j in range(N)]
each_online = pytest.mark.parametrize("model", online({}, NAMES), ids=lambda m: type(m).__name__)


@pytest.fixture(autouse=True)
def hasty():
    """Threads change places as often as Python can let them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work, count=THREADS):
    """Call work(k) in so many threads that start together; the first exception of any is raised here."""
    failed, barrier = [], threading.Barrier(count)

    def run(k):
        try:
            barrier.wait()
            work(k)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def rows(model, m=60, classes=2):
    rng = np.random.default_rng(5)
    X = rng.uniform(-0.5, 0.5, (m, N))
    y = 0.5 + 0.4 * X[:, 0] - 0.3 * X[:, 1]
    return X, (np.array(["no", "yes", "maybe"])[np.arange(m) % classes] if is_classifier(model) else y)


@nightly(
    but=[
        "dict-None-*",
        "array-*-Perceptron*",
        "array-*-Ridge*",
        "both-*-Perceptron*",
        "both-*-WidrowHoff*",
        "both-None-AutoRegressor",
    ]
)
@each_online
@pytest.mark.parametrize("average", [None, "after"])
@pytest.mark.parametrize("kind", ["dict", "array", "both"])
def test_predict_one_gives_each_thread_its_own_answer(model, average, kind):
    X, y = rows(model, classes=3 if kind == "both" else 2)
    averaging = {"average": average} if "average" in model.get_params() else {}
    fitted = clone(model).set_params(**averaging).fit(X, y)
    given = [dict(enumerate(x.tolist())) for x in X]
    if kind != "dict":
        given = [x if kind == "array" or j % 2 else given[j] for j, x in enumerate(X)]
    want = [fitted.predict_one(x) for x in given]
    assert len(set(want)) > 1
    wrong = []

    def work(k):
        for t in range(60 if kind == "both" or average else many(200, 1000)):
            j = (7 * k + t) % len(given)
            got = fitted.predict_one(given[j])
            if got != want[j]:
                wrong.append((k, t, got, want[j]))

    in_threads(work)
    assert wrong == []


@pytest.mark.parametrize("known", [True, False], ids=["names known", "names new"])
def test_learn_one_from_threads_loses_no_row(known):
    """The names of the threads differ, so their rows change different weights and any order of them is the same."""
    rng = np.random.default_rng(6)

    def row(k):
        return {f"{k}-{j}": float(rng.normal()) for j in rng.choice(40, 5, replace=False)}

    each = [[(row(k), t % 3) for t in range(200)] for k in range(THREADS)]
    model = h.WidrowHoffRegressor(0.05, fit_intercept=False)
    if known:
        for k in range(THREADS):
            model.learn_one({f"{k}-{j}": 0.01 for j in range(40)}, 0.0)
    alone, shared = copy.deepcopy(model), copy.deepcopy(model)
    for some in each:
        for x, y in some:
            alone.learn_one(x, y)

    def work(k):
        for x, y in each[k]:
            shared.learn_one(x, y)

    in_threads(work)
    assert shared.facts_.rounds == alone.facts_.rounds
    assert shared.n_features_in_ == alone.n_features_in_
    for some in each:
        for x, _ in some:
            for name in x:
                assert shared.predict_one({name: 1.0}) == alone.predict_one({name: 1.0})


def test_learn_one_from_threads_loses_no_array():
    """Each thread has columns of its own."""
    X = np.random.default_rng(7).normal(size=(THREADS, 300, 3 * THREADS)) / 10.0
    for k in range(THREADS):
        X[k, :, np.arange(3 * THREADS) // 3 != k] = 0.0
    alone, shared = (h.WidrowHoffRegressor(fit_intercept=False) for _ in range(2))
    for x in X.reshape(-1, 3 * THREADS):
        alone.learn_one(x, 1.0)

    def work(k):
        for x in X[k]:
            shared.learn_one(x, 1.0)

    in_threads(work)
    assert shared.facts_.rounds == alone.facts_.rounds
    same(shared.coef_, alone.coef_)


def test_learn_one_from_threads_loses_no_row_of_a_classifier():
    model, labels = h.PerceptronClassifier(fit_intercept=False), "abcdefgh"

    def work(k):
        for t in range(200):
            model.learn_one({f"{k}-{t % 7}": 1.0 + t}, labels[k])  # every thread brings names and a class of its own
            assert model.predict_one({f"{k}-{t % 7}": 1.0}) in labels

    in_threads(work)
    assert model.classes_.tolist() == list(labels)
    assert model.n_features_in_ == 7 * THREADS
    last = {run.rounds for run in model.runs_}
    assert max(last) == 200 * THREADS


def test_predict_one_sees_a_row_learnt_or_not_but_never_half():
    """Weights of even and odd names stay opposite, row by row: only half a row could change their sum."""
    names = [f"{j:03}" for j in range(300)]
    signs = {name: 1.0 if j % 2 else -1.0 for j, name in enumerate(names)}
    model = h.WidrowHoffRegressor(1e-4, fit_intercept=False).learn_one(signs, 1.0)
    probe, stop, seen = dict.fromkeys(names, 1.0), threading.Event(), []

    def work(k):
        if k == 0:
            for t in range(3000):
                model.learn_one(signs, (-1.0) ** t * t)
            stop.set()
        while not stop.is_set():
            seen.append(model.predict_one(probe))

    in_threads(work, 4)
    assert len(seen) > 100 and set(seen) == {0.0}


METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")


@nightly(but=["[!A]*", "AutoRegressor"])
@pytest.mark.parametrize("kind", PUBLIC, ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore::hindsight.AssumptionWarning")
def test_predictions_of_matrices_do_not_disturb_each_other(kind):
    model = kind()
    X, y = rows(model, 400)
    if not get_tags(model).input_tags.two_d_array:
        X = X[:, 0] + 0.5
        y = (y > 0.5).astype(float)
    model.fit(X, y)
    methods = [name for name in METHODS if hasattr(model, name)]
    assert methods
    whole = many(np.ascontiguousarray, np.asarray)  # spaced rows are loops of their own to compile
    parts = [whole(X[k::THREADS]) for k in range(THREADS)]
    want = {name: [getattr(model, name)(part) for part in parts] for name in methods}

    def work(k):
        for t in range(many(4, 40)):
            for name in methods:
                same(getattr(model, name)(parts[(k + t) % THREADS]), want[name][(k + t) % THREADS])

    in_threads(work)


def test_every_online_estimator_is_tried():
    assert {type(model) for model in online({}, NAMES)} == set(ONLINE)


def test_blas_has_one_thread_meanwhile_and_its_libraries_are_looked_for_once(monkeypatch):
    looks, plain = [], threadpoolctl.ThreadpoolController

    class Looking(plain):
        def __init__(self):
            looks.append(1)
            super().__init__()

    monkeypatch.setattr(threadpoolctl, "ThreadpoolController", Looking)
    monkeypatch.setattr(one_thread, "_libraries", lru_cache(1)(one_thread._libraries.__wrapped__))
    blas = plain().select(user_api="blas")
    with blas.limit(limits=2):
        for width, threads in ((3, 1), (one_thread.WIDE, 2), (3, 1)):
            with one_thread.one_thread(width), one_thread.one_thread(width):
                assert {found["num_threads"] for found in blas.info()} == {threads}
    assert len(looks) == 1
