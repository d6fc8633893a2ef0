"""Parts and a learner of a user's own, each in a few lines and registered by one: every law holds for them.

Nothing in the package knows of them: a loss (Knee), an update (passive-aggressive), a geometry with state per
coordinate (AdaGrad), one with a matrix (Vovk, Azoury and Warmuth's forecaster).
"""

import inspect
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import pytest

import hindsight
from commands import run
from conftest import close, feed, nightly, registered_meanwhile, same_state, store
from hindsight.certificates.certify import certify_run
from hindsight.certificates.theorems import Verdict
from hindsight.kernels.rows import inner, product, write_row
from hindsight.kernels.state import matrix, vector
from hindsight.online import learners, parts
from hindsight.online.learners import Learner, constant
from hindsight.online.run import Run
from hindsight.rows.data import Data
from hindsight.storage.registry import name_of

# ---------------------------------------------------------------- a loss


class Knee(NamedTuple):
    """(z - y)^2/2 near y, a line further out."""

    knee: float
    name = "knee"

    def value(self, z, y):
        far = abs(z - y)
        return 0.5 * far * far if far <= self.knee else self.knee * (far - 0.5 * self.knee)

    def slope(self, z, y):
        return min(self.knee, max(-self.knee, z - y))

    def implicit(self, z, y, a):
        return min(self.knee, max(-self.knee, (z - y) / (1.0 + a)))


# ---------------------------------------------------------------- an update


class PassiveAggressive(NamedTuple):
    """The smallest step after which the loss is 0, at most `most` long."""

    most: float
    name = "passive-aggressive"

    def effective_slope(self, loss, geometry, state, rows, t, z, q, y, a):
        paid = loss.value(z, y)
        if paid == 0.0 or q == 0.0:
            return 0.0
        return np.sign(loss.slope(z, y)) * min(self.most, paid / q) / a


# ---------------------------------------------------------------- a geometry with state per coordinate


class AdaGradState(NamedTuple):
    weights: Annotated[np.ndarray, vector(odd=True)]
    squares: Annotated[np.ndarray, vector()]


class AdaGrad(NamedTuple):
    """Each coordinate divides its steps by the root of the sum of their squares."""

    radius: float
    name = "adagrad"
    State = AdaGradState

    def dot(self, state, rows, t):
        return inner(state.weights, rows, t)

    def step(self, loss, state, rows, t, z, y, c, d):
        a, b = rows.span(t)
        last = state.weights.size - 1
        for k in range(a, b):
            j, g = rows.index(k), d * rows.entry(t, k)
            if g != 0.0:
                state.squares[j] += g * g
                state.weights[j] += self.radius * g / np.sqrt(state.squares[j])
        if rows.bias != 0.0 and d != 0.0:
            state.squares[last] += d * d
            state.weights[last] += self.radius * d / np.sqrt(state.squares[last])

    def weights(self, state):
        return state.weights.copy()


# ---------------------------------------------------------------- a geometry with a matrix


class CountingRowState(NamedTuple):
    inverse: Annotated[np.ndarray, matrix(1.0)]
    sums: Annotated[np.ndarray, vector(odd=True)]
    row: Annotated[np.ndarray, vector()]
    image: Annotated[np.ndarray, vector()]


class CountingRow(NamedTuple):
    """Ridge regression that counts the row it predicts: z = b'(A + x x')^-1 x, with A = I + sum x x', b = sum y x."""

    radius: float
    name = "counting-row"
    State = CountingRowState

    def dot(self, state, rows, t):
        _, q, top = inner(state.sums, rows, t)
        if not q < np.inf:
            return np.nan, q, top
        write_row(rows, t, state.row)
        for i in range(state.row.size):
            state.image[i] = product(state.inverse[i], state.row)
        return product(state.sums, state.image) / (1.0 + product(state.row, state.image)), q, top

    def step(self, loss, state, rows, t, z, y, c, d):
        shrink = c / (1.0 + c * product(state.row, state.image))
        for i in range(state.row.size):
            state.sums[i] += c * y * state.row[i]
            for j in range(state.row.size):
                state.inverse[i, j] -= shrink * state.image[i] * state.image[j]

    def weights(self, state):
        return state.inverse @ state.sums


def counting_row() -> Learner:
    """Vovk, Azoury and Warmuth's forecaster."""
    return Learner("counting-row", parts.LOSSES["square"], parts.UPDATES["explicit"], CountingRow(1.0), constant(1.0))


# ---------------------------------------------------------------- registered


@pytest.fixture(scope="module", autouse=True)
def registered():
    """All of them known by name while these tests run."""
    with registered_meanwhile():
        hindsight.register(Knee(0.5))
        hindsight.register(PassiveAggressive(1.0))
        hindsight.register(AdaGrad)
        hindsight.register(CountingRow)
        hindsight.register(counting_row)
        yield


def made(name: str) -> Learner:
    """A learner with one of the new parts."""
    return {
        "knee": lambda: learners.descent("knee", eta=0.1),
        "knee-implicit": lambda: learners.descent("knee", eta=0.5, update="implicit"),
        "knee-balanced": lambda: learners.descent("knee", "balanced", eta=0.1, radius=2.0),
        "passive-aggressive": lambda: learners.descent("hinge", update="passive-aggressive"),
        "adagrad": lambda: learners.descent("logistic", "adagrad", eta=0.1, radius=0.5),
        "counting-row": counting_row,
    }[name]()


NAMES = ("knee", "knee-implicit", "knee-balanced", "passive-aggressive", "adagrad", "counting-row")


def every(function):
    """Run a test with all parts; two of the loops with a knee are enough for `make test`."""
    return nightly(only=["*knee-balanced"])(pytest.mark.parametrize("name", NAMES)(function))


def stream(name: str, m: int = 60, n: int = 5, seed: int = 0):
    """Rows with holes, targets the learner takes, and weights with zeros."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.7)
    z = X @ rng.normal(size=n) + 0.3 * rng.normal(size=m)
    y = {"real": z, "sign": np.where(z > 0, 1.0, -1.0), "unit": (z > 0).astype(float)}[made(name).targets]
    return X, y, rng.choice([0.0, 0.5, 1.0, 2.0], m, p=[0.2, 0.2, 0.4, 0.2])


def played(name: str, X, y, weight=None, sizes=None, **options):
    run = Run(made(name), X.shape[1], **options)
    return run, feed(run, X, y, weight, sizes)


@pytest.mark.parametrize(
    "kinds", [(Knee,), (PassiveAggressive,), (AdaGradState, AdaGrad), (CountingRowState, CountingRow, counting_row)]
)
def test_each_takes_thirty_lines_at_most(kinds):
    code = [line for kind in kinds for line in inspect.getsource(kind).splitlines() if line.strip()]
    assert len(code) <= 30


# ---------------------------------------------------------------- they do what they say


def test_knee_equals_its_rule():
    X, y, weight = stream("knee")
    run, margins = played("knee", X, y, weight)
    w, rows = np.zeros(6), np.c_[X, np.ones(len(X))]
    for t, (x, c) in enumerate(zip(rows, weight, strict=True)):
        close(margins[t], w @ x, scale=10.0)
        w -= 0.1 * c * np.clip(w @ x - y[t], -0.5, 0.5) * x
    close(run.weights, w)


def test_passive_aggressive_equals_its_rule():
    X, y, _ = stream("passive-aggressive")
    run, margins = played("passive-aggressive", X, y)
    w, rows = np.zeros(6), np.c_[X, np.ones(len(X))]
    for t, x in enumerate(rows):
        close(margins[t], w @ x, scale=10.0)
        w += y[t] * min(1.0, max(0.0, 1.0 - y[t] * (w @ x)) / (x @ x)) * x
    close(run.weights, w)


def test_adagrad_equals_its_rule():
    X, y, weight = stream("adagrad")
    run, margins = played("adagrad", X, y, weight)
    w, squares, rows = np.zeros(6), np.zeros(6), np.c_[X, np.ones(len(X))]
    for t, (x, c) in enumerate(zip(rows, weight, strict=True)):
        close(margins[t], w @ x, scale=10.0)
        g = -0.1 * c * (1.0 / (1.0 + np.exp(-(w @ x))) - y[t]) * x
        squares += g * g
        w += np.where(g != 0.0, 0.5 * g / np.sqrt(np.where(squares > 0.0, squares, 1.0)), 0.0)
    close(run.weights, w)


def test_counting_the_row_equals_ridge_regression():
    X, y, weight = stream("counting-row")
    run, margins = played("counting-row", X, y, weight)
    A, b, rows = np.eye(6), np.zeros(6), np.c_[X, np.ones(len(X))]
    for t, (x, c) in enumerate(zip(rows, weight, strict=True)):
        close(margins[t], x @ np.linalg.solve(A + np.outer(x, x), b), 1e-10, scale=10.0)
        A += c * np.outer(x, x)
        b += c * y[t] * x
    close(run.weights, np.linalg.solve(A, b), 1e-10)


# ---------------------------------------------------------------- the laws


@nightly(but=["csr64-counting-row"])
@every
@pytest.mark.parametrize("storage", ["csr64", "strided"])
def test_every_storage_gives_the_same(name, storage):
    X, y, weight = stream(name)
    dense, other = played(name, X, y, weight), played(name, store(X, storage), y, weight)
    close(dense[1], other[1])
    close(dense[0].weights, other[0].weights)


@every
def test_chunks_change_no_bit(name):
    X, y, weight = stream(name)
    whole, pieces = played(name, X, y, weight), played(name, X, y, weight, sizes=(1, 7, 3))
    np.testing.assert_array_equal(whole[1], pieces[1])
    same_state(whole[0], pieces[0])


@every
def test_rows_of_weight_0_are_absent(name):
    X, y, weight = stream(name)
    on = weight > 0
    same_state(played(name, X, y, weight)[0], played(name, X[on], y[on], weight[on])[0])


@every
def test_a_bad_row_changes_nothing(name):
    X, y, _ = stream(name)
    run, _ = played(name, X, y)
    before = run.weights
    bad = X.copy()
    bad[40, 2] = np.nan
    with pytest.raises(hindsight.RowError, match="row 40, column 2: value NaN is not finite"):
        feed(run, bad, y)
    np.testing.assert_array_equal(run.weights, before)


@pytest.mark.parametrize("name", ["knee", "passive-aggressive", "adagrad", "counting-row"])
def test_new_features_join_at_weight_0(name):
    X, y, _ = stream(name)
    run, _ = played(name, X, y)
    wide = run_resized(run, 8)
    close(wide.weights[:5], run.weights[:5])
    assert not wide.weights[5:8].any()
    close(wide.weights[-1], run.weights[-1])
    feed(wide, np.hstack([X, np.zeros((len(X), 3))]), y)
    feed(run, X, y)
    close(wide.weights[:5], run.weights[:5])


def run_resized(run: Run, features: int) -> Run:
    """A copy of the run with room for more features."""
    import copy

    out = copy.deepcopy(run)
    out.resize(features)
    return out


@pytest.mark.parametrize("name", ["passive-aggressive", "adagrad"])
def test_the_opposite_labels_have_the_opposite_weights(name):
    X, y, _ = stream(name)
    flipped = 1.0 - y if made(name).targets == "unit" else -y
    run, other = played(name, X, y)[0], played(name, X, flipped)[0]
    close(run.mirrored().weights, other.weights)


ESTIMATORS = {
    "knee": lambda: hindsight.DescentRegressor(loss="knee", eta=0.1),
    "knee-implicit": lambda: hindsight.DescentRegressor(loss="knee", eta=0.5, update="implicit"),
    "passive-aggressive": lambda: hindsight.DescentClassifier("hinge", update="passive-aggressive"),
    "adagrad": lambda: hindsight.DescentClassifier("logistic", "adagrad", update="explicit", radius=0.5),
    "counting-row": lambda: hindsight.DescentRegressor("square", "counting-row", eta=1.0, update="explicit"),
}


@nightly(but=["counting-row"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_one_row_at_a_time_is_the_same(name):
    X, y, _ = stream(name)
    many, one = ESTIMATORS[name]().fit(X, y), ESTIMATORS[name]()
    for x, target in zip(X, y, strict=True):
        one.learn_one({str(j): value for j, value in enumerate(x)}, target)
    close(one.coef_, many.coef_)
    if name != "counting-row":  # it predicts a row by weights that count the row itself
        close(one.predict_one({str(j): value for j, value in enumerate(X[0])}), many.predict(X[:1])[0])


@pytest.mark.parametrize("name", ESTIMATORS)
def test_saved_and_loaded_it_goes_on_as_before(name, tmp_path):
    X, y, _ = stream(name)
    model = ESTIMATORS[name]().fit(X[:40], y[:40])
    model.save(tmp_path / "model")
    found = hindsight.load(tmp_path / "model")
    for each in (model, found):
        each.partial_fit(X[40:], y[40:])
    np.testing.assert_array_equal(found.coef_, model.coef_)
    same_state(found.runs_[0], model.runs_[0])


# ---------------------------------------------------------------- certificates


@every
def test_without_a_theorem_the_certificate_is_uncheckable(name):
    X, y, weight = stream(name)
    run, _ = played(name, X, y, weight)
    found = certify_run(run, Data(X, y, weight, 1.0))
    assert found.verdict is Verdict.UNCHECKABLE and found.theorem.name == "no theorem"
    assert np.isnan(found.bound) and np.isfinite(found.regret)
    assert any("names no theorem" in need.text or "implicit steps" in need.text for need in found.assumptions)


@nightly(only=["widrow-hoff-*"])
@pytest.mark.parametrize(
    ("theorem", "loss", "update", "geometry"),
    [
        ("widrow-hoff", "square", "passive-aggressive", "euclidean"),
        ("implicit-widrow-hoff", "square", "explicit", "euclidean"),
        ("convex-descent", "logistic", "explicit", "adagrad"),
        ("widrow-hoff", "square", "explicit", "adagrad"),
    ],
)
def test_a_theorem_of_another_learner_never_holds(theorem, loss, update, geometry):
    """The lemma is checked against the steps that were taken."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 4)) / 4
    z = X @ rng.normal(size=4)
    y = (z > 0).astype(float) if loss == "logistic" else z + 0.1 * rng.normal(size=200)
    part = learners.space(geometry, 1.0)
    learner = Learner("liar", parts.LOSSES[loss], parts.UPDATES[update], part, constant(0.1), theorem=theorem)
    run = Run(learner, 4)
    feed(run, X, y)
    found = certify_run(run, Data(X, y, None, 1.0))
    assert found.verdict is not Verdict.HOLDS


def test_a_theorem_nobody_proved_is_refused():
    X, y, _ = stream("knee")
    run = Run(
        Learner(
            "x", Knee(1.0), parts.UPDATES["explicit"], learners.space("euclidean", 1.0), constant(0.1), theorem="mine"
        ),
        5,
    )
    feed(run, X, y)
    with pytest.raises(ValueError, match="declares the theorem 'mine', which is not one of perceptron, winnow"):
        certify_run(run, Data(X, y, None, 1.0))


# ---------------------------------------------------------------- the command


def table(tmp_path: Path, name: str) -> Path:
    X, y, _ = stream(name, m=30)
    lines = ["a,b,c,d,e,y", *(",".join(map(repr, [*x, t])) for x, t in zip(X.tolist(), y.tolist(), strict=True))]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "rows.csv"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("knee", ["--learner", "descent", "--loss", "knee"]),
        ("passive-aggressive", ["--learner", "descent", "--loss", "hinge", "--update", "passive-aggressive"]),
        ("adagrad", ["--learner", "descent", "--loss", "logistic", "--geometry", "adagrad"]),
        ("counting-row", ["--learner", "counting-row"]),
    ],
)
def test_the_command_knows_them_by_name(name, options, tmp_path):
    path, model = table(tmp_path, name), tmp_path / "model"
    code, out, err = run("learn", path, "--target", "y", *options, "--certify", "--save", model)
    assert code == 0 and "UNCHECKABLE: no theorem" in out, err
    code, out, err = run("predict", model, path)
    assert code == 0 and len(out.splitlines()) == 31, err
    assert "counting-row" in run("learners")[1]


EXTENSION = """
    from typing import NamedTuple
    import hindsight

    class Cube(NamedTuple):
        scale: float
        name = "cube"

        def value(self, z, y):
            return abs(z - y) ** 3 / 3.0

        def slope(self, z, y):
            return (z - y) * abs(z - y)

        def implicit(self, z, y, a):
            return (z - y) * abs(z - y) / (1.0 + a * abs(z - y))

    hindsight.register(Cube(1.0))
"""


def test_a_file_of_parts_extends_the_command_and_leaves_no_trace(tmp_path):
    path, file = table(tmp_path, "knee"), tmp_path / "parts_of_mine.py"
    file.write_text(textwrap.dedent(EXTENSION))

    def command(*words):
        return subprocess.run([sys.executable, "-m", "hindsight", *words], capture_output=True, text=True, check=False)

    learn = ["learn", str(path), "--target", "y", "--learner", "descent", "--eta", "0.01", "--json"]
    found = command("--extend", str(file), *learn, "--loss", "cube", "--save", str(tmp_path / "model"))
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["rows"] == 30
    found = command("--extend", str(file), "predict", str(tmp_path / "model"), str(path))
    assert found.returncode == 0 and len(found.stdout.splitlines()) == 31
    code, _, err = run("predict", tmp_path / "model", path)  # here it is not registered
    assert code == 2 and "Cube" in err and "not registered" in err
    code, _, err = run(*learn, "--loss", "cube")
    assert code == 2 and "loss must be one of" in err
    found = command(*learn)  # the compiled loops of the package are still read from their cache
    assert found.returncode == 0, found.stderr


# ---------------------------------------------------------------- what is missing is said


def test_a_part_without_a_method_is_refused_in_one_sentence():
    class Half(NamedTuple):
        scale: float

        def slope(self, z, y):
            return z - y

    with pytest.raises(TypeError, match=r"^Half must implement value\(self, z, y\) to be a loss$"):
        hindsight.register(Half(1.0))
    with pytest.raises(TypeError, match=r"^Half must implement value\(self, z, y\) to be a loss$"):
        Learner("half", Half(1.0), parts.UPDATES["explicit"], learners.space("euclidean", 1.0), constant(0.1))

    class Odd(NamedTuple):
        radius: float
        State = AdaGradState

        def dot(self, state, rows, t):
            return inner(state.weights, rows, t)

        def weights(self, state):
            return state.weights

    with pytest.raises(
        TypeError, match=r"^Odd must implement step\(self, loss, state, rows, t, z, y, c, d\) to be a geo"
    ):
        hindsight.register(Odd)
    with pytest.raises(TypeError, match="AdaGrad must implement solve for the update Implicit"):
        learners.descent("square", "adagrad", update="implicit")

    class Swapped(NamedTuple):
        scale: float

        def value(self, y, z):
            return 0.0

        def slope(self, z, y):
            return 0.0

        def implicit(self, z, y, a):
            return 0.0

    with pytest.raises(TypeError, match=r"Swapped.value\(self, y, z\) must be value\(self, z, y\)"):
        hindsight.register(Swapped(1.0))


def test_our_parts_in_a_learner_of_the_users_own_stay_ours():
    ours = [type(getattr(learners.widrow_hoff(), role)) for role in ("loss", "update", "geometry", "rate")]
    names = [name_of(part) for part in ours]
    hindsight.register(lambda: learners.widrow_hoff(), "widrow-hoff-again")
    assert [name_of(part) for part in ours] == names and all(name.startswith("online.learners:") for name in names)


def test_a_name_that_is_taken_is_refused():
    with pytest.raises(ValueError, match="there is another loss named 'square'"):
        hindsight.register(Knee(2.0), "square")
    with pytest.raises(ValueError, match="there is another learner named 'perceptron'"):
        hindsight.register(counting_row, "perceptron")
    with pytest.raises(TypeError, match="register takes a part, or a function that makes a learner; got 3"):
        hindsight.register(3)


def test_a_geometry_without_averages_or_starts_says_so():
    with pytest.raises(ValueError, match="the adagrad geometry keeps no average of its weights"):
        Run(made("adagrad"), 3, average=True)
    with pytest.raises(ValueError, match="start: the counting-row geometry has no other start than its own"):
        Run(made("counting-row"), 2, start=np.ones(3))
