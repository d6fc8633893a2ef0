"""The kernel where arithmetic is hard: long streams, huge steps, many features; its parts; its plain Python form."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

import naive
from conftest import BY_NAME, TIGHT, close, feed, many, nightly, run_of, same, same_state, store, stream
from hindsight import kernels
from hindsight.kernels import entropic
from hindsight.kernels.online import NO_NOTES, margin, play
from hindsight.online import learners
from hindsight.online.run import Run
from hindsight.rows.matrices import rows_of

# --- parts ----------------------------------------------------------------------------------------------------------

RULES = {
    "widrow-hoff": kernels.Square(1.0),
    "square": kernels.Square(2.0),
    "absolute": kernels.Absolute(1.0),
    "logistic": kernels.Logistic(1.0),
    "hinge": kernels.Hinge(1.0),
    "perceptron": kernels.Hinge(0.0),
    "clipped": kernels.Clipped(1.0),
    "probit": kernels.Probit(1.0),
    "tanh": kernels.Tanh(1.0),
}
rules = pytest.mark.parametrize("name", RULES)
# The oracle's bisection stops at 1e-300, so margins are 0 or well above that.
margins = st.floats(-50, 50).filter(lambda z: z == 0 or abs(z) > 1e-100) | st.sampled_from(
    [0.0, 1.0, -1.0, 700.0, -700.0]
)
shares = st.integers(0, 1000).map(lambda k: k / 1000.0)


def label(name, share):
    """A target that the rule takes, from a number in [0, 1]."""
    if name in ("hinge", "perceptron"):
        return 1.0 if share > 0.5 else -1.0
    return share if name in naive.LINKED else 20.0 * share - 10.0


@rules
@given(z=margins, share=shares)
def test_slope_loss_and_mean_are_the_oracles(name, z, share):
    rule, y = RULES[name], label(name, share)
    close(rule.slope(z, y), naive.slope(name, z, y))
    close(rule.value(z, y), naive.loss(name, z, y), scale=1.0 + abs(z * y) + z * z * (name == "square"))
    if name not in ("hinge", "perceptron"):
        close(rule.mean(z), naive.mean(name, z))


@rules
@given(z=margins, share=shares, a=st.floats(-6, 6).map(lambda e: 10.0**e))
def test_the_implicit_slope_is_the_slope_after_the_step(name, z, share, a):
    """g = slope(z - a g), or the g that lands on the kink: the oracle finds it by bisection."""
    rule, y = RULES[name], label(name, share)
    g = rule.implicit(z, y, a)
    explicit = naive.slope(name, z, y)
    want = naive.implicit_slope(name, y, explicit, lambda g: z - a * g) if explicit else 0.0
    # z - a g cancels: one rounding of z is worth eps |z| / a in g.
    close(g, want, scale=max(abs(want), abs(z) / a, abs(y) / a))


@rules
def test_an_implicit_step_of_length_zero_is_explicit(name):
    rule, y = RULES[name], label(name, 0.3)
    for z in (-2.0, 0.25, 2.0):
        assert rule.implicit(z, y, 0.0) == rule.slope(z, y)


@njit
def exponentials(theta, shift, out):
    for i in range(theta.size):
        out[0, i], out[1, i] = entropic.exponentials(theta[i], shift)


@pytest.mark.parametrize("shift", [0, 7, -3, 900])
def test_exponentials(shift):
    theta = np.concatenate([np.linspace(-740, 740, 5001), [0.0, -0.0, 1e-300, 1e-17, 1e5, -1e5]])
    out = np.empty((2, theta.size))
    exponentials(theta, float(shift), out)
    for row, sign in zip(out, (1, -1), strict=True):
        for got, t in zip(row, sign * theta, strict=True):
            power = t / math.log(2) - shift
            if power < -1023:
                assert got == 0.0
            elif power > 1024:
                assert got == np.inf
            elif -1020 < power < 1022:
                half = 0.5 * t - 0.5 * shift * math.log(2)
                want = math.exp(half) * math.exp(half)
                assert abs(got - want) <= 4e-16 * max(1.0, abs(t), abs(shift)) * want
    at_zero = np.empty((2, 1))
    exponentials(np.zeros(1), 0.0, at_zero)
    same(at_zero, np.ones((2, 1)))


# --- plain Python ---------------------------------------------------------------------------------------------------


@nightly(but=["dense64-widrow-hoff-implicit"])
@pytest.mark.parametrize(
    "name", ["perceptron", "widrow-hoff-implicit", "winnow-simplex", "eg-balanced", "eg-balanced-implicit"]
)
@pytest.mark.parametrize("storage", ["dense64", "csr64"])
def test_the_loop_runs_as_plain_python(name, storage):
    case = BY_NAME[name]
    X, y, weight = stream(case, m=12, n=4, seed=30)
    X = store(X, storage)
    compiled, plain = run_of(case, 4), run_of(case, 4)
    z, q, top = np.empty(12), np.empty(12), np.empty(12)
    out = z, q, top, plain.tally, NO_NOTES
    done = play.py_func(rows_of(X, 1.0), 0, 12, y, weight, *plain.parts(), *out)
    assert done == 12
    close(z, feed(compiled, X, y, weight))
    close(plain.weights, compiled.weights)
    close(plain.mean("before"), compiled.mean("before"))
    close(plain.tally[0].tolist()[:-1], compiled.tally[0].tolist()[:-1])


# --- long streams ---------------------------------------------------------------------------------------------------


@njit
def add_weights(X, y, eta, geometry, radius, theta, w, total, lost):
    """EG or Widrow-Hoff written plainly; the sum of w_1..w_T by Neumaier. geometry: 0 R^n, 1 simplex, 2 signed."""
    m, n = X.shape
    for t in range(m):
        top, mass, z = -np.inf, 0.0, 0.0
        for j in range(n):
            top = max(top, abs(theta[j]) if geometry == 2 else theta[j])
        for j in range(n):
            up = np.exp(theta[j] - top)
            down = np.exp(-theta[j] - top) if geometry == 2 else 0.0
            w[j] = up - down if geometry else theta[j]
            mass += up + down
        for j in range(n):
            w[j] *= radius / mass if geometry else 1.0
            z += w[j] * X[t, j]
            new = total[j] + w[j]
            lost[j] += (total[j] - new) + w[j] if abs(total[j]) >= abs(w[j]) else (w[j] - new) + total[j]
            total[j] = new
        for j in range(n):
            theta[j] -= eta * (z - y[t]) * (radius if geometry else 1.0) * X[t, j]


def plain_mean(X, y, eta, geometry, radius):
    """The mean of w_1..w_T."""
    theta, w, total, lost = np.zeros((4, X.shape[1]))
    add_weights(X, y, eta, geometry, radius, theta, w, total, lost)
    return (total + lost) / len(X)


@pytest.mark.parametrize("storage", ["dense64", "csr64"])
@pytest.mark.parametrize("geometry", [0, 1, 2], ids=["euclidean", "simplex", "balanced"])
def test_averages_over_a_million_rounds(geometry, storage):
    rng = np.random.default_rng(31)
    m, n, radius, eta = many(100_000, 1_000_000), 8, (1.0, 1.0, 2.5)[geometry], 0.05
    X = rng.uniform(-1, 1, (m, n)) * (rng.random((m, n)) < 0.4)
    hidden = rng.uniform(0, 1, n)
    hidden *= radius / hidden.sum()
    if geometry != 1:
        hidden[::2] *= -0.8
    y = X @ hidden + 0.1 * rng.normal(size=m)
    learner = learners.widrow_hoff(eta, "explicit") if geometry == 0 else learners.eg(eta, (None, radius)[geometry - 1])
    run = Run(learner, n, intercept=False, average=True)
    feed(run, store(X, storage), y)
    close(run.mean("before"), plain_mean(X, y, eta, geometry, radius))
    if geometry == 1:
        assert abs(run.mean("before").sum() - 1.0) <= TIGHT


@pytest.mark.parametrize("storage", ["dense64", "csr64"])
def test_averages_of_weights_that_run_away(storage):
    """The sum must survive weights that grow along the stream: here w_t is about t."""
    m = 200_000
    X, y = np.ones((m, 1)), np.arange(1.0, m + 1)
    run = Run(learners.widrow_hoff(0.5, "explicit"), 1, intercept=False, average=True)
    feed(run, store(X, storage), y)
    close(run.mean("before"), plain_mean(X, y, 0.5, 0, 1.0))


# --- many features --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("balanced", [False, True], ids=["simplex", "balanced"])
def test_winnow_on_a_million_features(balanced):
    """10^5 mistakes; the mass the kernel keeps by differences is still the sum of the weights it stands for."""
    rng = np.random.default_rng(32)
    m, n, k = 240_000, 1_000_000, 12
    columns = np.where(rng.random((m, k)) < 0.3, rng.integers(0, 300, (m, k)), rng.integers(0, n, (m, k)))
    columns = np.sort(columns, axis=1)
    keep = np.ones((m, k), bool)
    keep[:, 1:] = np.diff(columns, axis=1) > 0
    indptr = np.concatenate([[0], np.cumsum(keep.sum(axis=1))])
    X = sp.csr_matrix((rng.choice([-1.0, 1.0], keep.sum()), columns[keep], indptr), shape=(m, n))
    y = rng.choice([-1.0, 1.0], m)
    run = Run(learners.winnow(0.4, balanced=balanced), n, intercept=False, average=True)
    z = feed(run, X, y)
    assert run.facts.mistakes >= 100_000
    assert np.isfinite(z).all()
    assert all(np.isfinite(values).all() for values in run.state)
    w, mean = run.weights, run.mean("before")
    if balanced:
        assert np.abs(w).sum() <= 1.0 + TIGHT
        top, mass = np.sinh(run.state.theta), np.cosh(run.state.theta).sum()
        close(w, top / mass)
        kept = run.state.mass[0] * 2.0 ** run.state.shift[0] / 2.0
        assert abs(kept / mass - 1.0) <= TIGHT
    else:
        assert w.min() > 0.0
        assert abs(math.fsum(w) - 1.0) <= TIGHT
        assert abs(math.fsum(mean) - 1.0) <= TIGHT
        ones = sp.csr_matrix((np.ones(n), np.arange(n), [0, n]), shape=(1, n))
        seen = margin(rows_of(ones, 0.0), run.learner.geometry, run.state)
        assert abs(seen - 1.0) <= TIGHT  # the margin of a row of ones is the sum of the weights


# --- huge steps -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["dense64", "csr64"])
@pytest.mark.parametrize("radius", [None, 1.0, 3.0])
@pytest.mark.parametrize("rows", ["positive", "signed", "one-hot"])
@pytest.mark.parametrize("average", [False, True], ids=["last", "average"])
def test_eg_with_a_huge_step_stays_on_its_set(radius, storage, rows, average):
    """eta times the gradient is about 1e4: e^1e4 is far from any float."""
    rng = np.random.default_rng(33)
    m, n = 200, 6
    positive, signed, hot = rng.uniform(0.5, 1, (m, n)), rng.uniform(-1, 1, (m, n)), np.eye(n)[rng.integers(0, n, m)]
    X = {"positive": positive, "signed": signed, "one-hot": hot}[rows]
    y = rng.choice([-1.0, 1.0], m)
    run = Run(learners.eg(1e4, radius), n, average=average)
    z = feed(run, store(X, storage), y)
    assert np.isfinite(z).all()
    assert all(np.isfinite(values).all() for values in run.state), run.state
    assert np.abs(run.state.theta).max() > 1e3
    bound = 1.0 if radius is None else radius
    assert np.abs(z).max() <= bound * max(1.0, np.abs(X).max()) * (1 + TIGHT)
    for w in (run.weights, run.mean("before"), run.mean("after")) if average else (run.weights,):
        assert np.isfinite(w).all()
        assert np.abs(w).sum() <= bound * (1 + TIGHT)
        if radius is None:
            assert w.min() >= 0.0
            assert abs(w.sum() - 1.0) <= TIGHT


@pytest.mark.parametrize("storage", ["dense64", "csr64"])
@pytest.mark.parametrize("name", ["eg-simplex", "eg-balanced"])
def test_a_huge_step_equals_naive(name, storage):
    """Steps of powers of two on rows of powers of two: theta is exact, however large."""
    case = BY_NAME[name]
    X = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    y = np.array([1.0, -1.0, 0.5, -1.0, 0.0])
    run = run_of(case, 3, intercept=False, eta=2.0**13)
    z = feed(run, store(X, storage), y)
    want = naive.play(X, y, rule=case.rule, geometry=case.geometry, eta=2.0**13, radius=case.radius)
    close(z[:2], want.margins[:2], scale=case.radius)
    assert np.isfinite(run.weights).all()
    close(run.mean("before"), want.mean_before, scale=case.radius)


@pytest.mark.parametrize("name", ["eg-simplex", "winnow-balanced"])
def test_the_mass_is_right_after_every_round(name):
    """It is kept by differences, and recomputed now and then: a row of ones reads it."""
    case = BY_NAME[name]
    rng = np.random.default_rng(34)
    n = 50
    X = sp.csr_matrix(20.0 * rng.normal(size=(400, n)) * (rng.random((400, n)) < 0.06))
    y = rng.choice([-1.0, 1.0], 400)
    run = run_of(case, n, intercept=False, average=False)
    for t in range(400):
        feed(run, X[t], y[t : t + 1])
        mass, shift = 0.0, run.state.shift[0] * math.log(2)
        for theta in run.state.theta:
            mass += math.exp(theta - shift) + (math.exp(-theta - shift) if case.geometry == "balanced" else 0.0)
        assert abs(run.state.mass[0] / mass - 1.0) <= TIGHT
    assert np.abs(run.state.theta).max() > 10.0


# --- a start on the edge --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["dense64", "csr64"])
def test_a_weight_that_starts_at_zero_on_the_simplex_stays_there(storage):
    case = BY_NAME["eg-simplex"]
    X, y, weight = stream(case, seed=35)
    start = np.array([0.5, 0.0, 0.25, 0.0, 0.25, 0.0, 0.0, 0.0])
    run = run_of(case, 7, start=start)
    z = feed(run, store(X, storage), y, weight)
    want = naive.play(
        X, y, rule=case.rule, geometry="simplex", eta=case.eta, weight=weight, start=start, bias=1.0, keep=False
    )
    close(z, want.margins)
    close(run.weights, want.final)
    close(run.mean("before"), want.mean_before)
    assert (run.weights[[1, 3, 5, 6, 7]] == 0.0).all()


def test_a_run_without_averages_learns_the_same():
    for name in ("widrow-hoff-explicit", "eg-balanced"):
        case = BY_NAME[name]
        X, y, weight = stream(case, seed=36)
        a, b = run_of(case, 7, average=True), run_of(case, 7, average=False)
        same(feed(a, X, y, weight), feed(b, X, y, weight))
        same(a.weights, b.weights)
        again = run_of(case, 7, average=False)
        feed(again, X, y, weight)
        same_state(again, b)
