"""Facts: each as its docstring says, and a commutative monoid."""

import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import BY_NAME, CASES, NAMED, close, feed, nightly, oracle, played, run_of, start_of, store, stream
from hindsight.kernels.facts import NAMES, empty_facts
from hindsight.online import learners
from hindsight.online.facts import Facts
from hindsight.online.run import Run

EXTREME = tuple(f.name for f in fields(Facts) if f.metadata)


def read_aloud(case, X, y, weight, margins, rates):
    """Every fact, straight from the docstring of `Facts`; the rows have their intercept."""
    rows = np.c_[X, np.ones(len(X))]
    columns = (a.tolist() for a in (y, weight, margins))
    rounds = [(x, t, c, z) for x, t, c, z in zip(rows, *columns, strict=True) if c > 0]
    q = [math.fsum(x * x) for x, *_ in rounds]
    top = [float(np.abs(x).max()) for x, *_ in rounds]
    rule, radius = case.learner().loss, case.radius
    dual = q if case.geometry == "euclidean" else [(radius * a) ** 2 for a in top]
    loss = [c * rule.value(z, t) for _, t, c, z in rounds]
    gradient = [(c * rule.slope(z, t)) ** 2 * d for (_, t, c, z), d in zip(rounds, dual, strict=True)]
    # A mistake is a zero or wrong sign; where targets are in [0, 1], the wrong side of the mean 1/2.
    half = 0.5 if case.targets == "unit" else 0.0
    middle = 0.5 if case.rule == "clipped" else 0.0
    wrong = [(t - half) * (z - middle) <= 0 for _, t, c, z in rounds]
    c, t = [r[2] for r in rounds], [r[1] for r in rounds]
    return Facts(
        rounds=len(rounds),
        weight=math.fsum(c),
        loss=math.fsum(loss),
        square=math.fsum(r[2] * (rule.mean(r[3]) - r[1]) ** 2 for r in rounds),
        mistakes=sum(wrong),
        mistake_weight=math.fsum(a for a, b in zip(c, wrong, strict=True) if b),
        mistake_norm=math.fsum(a * a * n for a, n, b in zip(c, q, wrong, strict=True) if b),
        target=math.fsum(a * b * b for a, b in zip(c, t, strict=True)),
        gradient=math.fsum(gradient),
        rate=math.fsum(rates),
        rate_loss=math.fsum(a * b for a, b in zip(rates, loss, strict=True)),
        rate_gradient=math.fsum(a * a * b for a, b in zip(rates, gradient, strict=True)),
        x2=math.sqrt(max(q)),
        xinf=max(top),
        weight_x2=max(a * n for a, n in zip(c, q, strict=True)),
        weight_xinf=max(a * b * b for a, b in zip(c, top, strict=True)),
        weight_max=max(c),
        rate_x2=max(r * a * n for r, a, n in zip(rates, c, q, strict=True)),
        rate_xinf=max(r * a * b * b for r, a, b in zip(rates, c, top, strict=True)),
        target_max=max(abs(a) for a in t),
        rate_max=max(rates),
        rate_min=min(rates),
    )


def agree(a, b):
    for field in fields(Facts):
        p, q = getattr(a, field.name), getattr(b, field.name)
        if field.name in ("rounds", "mistakes"):
            assert isinstance(p, int)
            assert p == q, field.name
        else:
            close(p, q)


@nightly(only=["descent-quantile-*", "descent-poisson-*", "descent-huber-*", "glm-tron-probit"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_fact_is_what_its_name_says(case):
    X, y, weight = stream(case, seed=40)
    start = start_of(case, X.shape[1] + 1)
    run, z = played(case, X, y, weight, power=0.5, start=start)
    want = oracle(case, X, y, weight, power=0.5, start=start)
    agree(run.facts, read_aloud(case, X, y, weight, z, want.rates))


@pytest.mark.parametrize("storage", ["dense64", "dense32", "strided", "csr64", "csr32"])
def test_every_storage_has_the_same_facts(storage):
    case = BY_NAME["widrow-hoff-implicit"]
    X, y, weight = stream(case, seed=41)
    agree(played(case, store(X, storage), y, weight)[0].facts, played(case, X, y, weight)[0].facts)


def pieces(case, X, y, weight, cuts, **step):
    """The facts of each piece of one stream."""
    run, found = run_of(case, X.shape[1], **step), []
    for a, b in zip((0, *cuts), (*cuts, len(X)), strict=True):
        run.tally[:] = Run(case.learner(), 1).tally
        feed(run, X[a:b], y[a:b], weight[a:b])
        found.append(run.facts)
    return found


@pytest.mark.parametrize("case", NAMED, ids=str)
def test_facts_add_up_over_chunks(case):
    X, y, weight = stream(case, m=80, seed=42)
    whole = played(case, X, y, weight, power=0.5)[0].facts
    a, b, c = pieces(case, X, y, weight, (25, 50), power=0.5)
    for total in (a + b + c, a + (b + c), c + a + b):
        agree(total, whole)
        for name in EXTREME:
            assert getattr(total, name) == getattr(whole, name)
    assert a + b == b + a
    assert a + Facts() == a == Facts() + a


numbers = st.floats(0, 1e12)


@st.composite
def any_facts(draw):
    values = {f.name: draw(numbers) for f in fields(Facts)}
    return Facts(**{**values, "rounds": draw(st.integers(0, 10**9)), "mistakes": draw(st.integers(0, 10**9))})


@given(any_facts(), any_facts(), any_facts())
def test_facts_are_a_commutative_monoid(a, b, c):
    assert a + b == b + a
    assert a + Facts() == a
    left, right = (a + b) + c, a + (b + c)
    agree(left, right)
    for name in (*EXTREME, "rounds", "mistakes"):
        assert getattr(left, name) == getattr(right, name)


def test_no_rounds_have_no_facts():
    empty = Run(learners.perceptron(), 3).facts
    assert empty == Facts()
    assert empty.rate_min == math.inf
    assert math.isnan(empty.mean_loss)


def test_the_record_of_the_loop_has_the_fields_of_facts():
    assert tuple(f.name for f in fields(Facts)) == NAMES
    record = empty_facts()
    for k, name in enumerate(NAMES):
        record[name] = k + 1.0
    read = Facts.of(record)
    for k, name in enumerate(NAMES):
        assert getattr(read, name) == (math.sqrt(k + 1.0) if name == "x2" else k + 1.0)


def test_mean_loss_is_a_unit_of_weight():
    case = BY_NAME["widrow-hoff-explicit"]
    X, y, weight = stream(case, seed=43)
    facts = played(case, X, y, weight)[0].facts
    assert facts.mean_loss == facts.loss / facts.weight
