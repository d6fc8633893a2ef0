"""Matrices of any format and layout: read as the dense rows they stand for, or refused; never misread, never a crash.

A matrix can be odd (strided, unsorted, big-endian, of another format) or broken (arrays that do not fit together).
Odd ones must give the answers of the dense rows, broken ones a ValueError. Broken ones are tried in another process:
reading beyond an array may end it.
"""

import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags

import hindsight as h
from conftest import close, many, nightly, same
from discovery import PUBLIC
from hindsight.online import learners
from hindsight.online.run import Run, play
from hindsight.rows.data import Data

M, N = 40, 6
MODELS = [kind() for kind in PUBLIC if get_tags(kind()).input_tags.sparse]
MODELS += [h.GradientDescentClassifier(batch=3, random_state=0), h.WidrowHoffRegressor(fit_intercept=False, passes=2)]
FEW = ("AutoRegressor", "IsotronClassifier", "PerceptronClassifier", "WidrowHoffRegressor")  # for `make test`
METHODS = ("predict", "decision_function", "predict_proba")


def dense(seed=3):
    """Rows with zeros, all in [-0.5, 0.5], the first and the last one empty, and values whose halves are exact."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-64, 65, (M, N)) / 128.0 * (rng.random((M, N)) < 0.5)
    X[[0, -1]] = 0.0
    return X


def target(model, X):
    y = 0.5 + 0.4 * X[:, 0] - 0.3 * X[:, 1]
    return np.where(y > 0.5, "yes", "no") if is_classifier(model) else y


# ---------------------------------------------------------------- odd matrices


def with_arrays(X, data=None, indices=None, indptr=None):
    """A copy of a CSR matrix with other arrays put in, as scipy would not have made them."""
    X = X.copy()
    X.data, X.indices, X.indptr = (
        old if new is None else new for old, new in ((X.data, data), (X.indices, indices), (X.indptr, indptr))
    )
    return X


def changed(a, k, value):
    a = a.copy()
    a[k] = value
    return a


def strided(a):
    out = np.full((a.size, 2), 7, a.dtype)
    out[:, 1] = a
    return out[:, 1]


def unaligned(a):
    return np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(a.dtype)


def swapped(a):
    return a.astype(a.dtype.newbyteorder("S"))


def every(change):
    return lambda X: with_arrays(X, change(X.data), change(X.indices), change(X.indptr))


def two_columns(X):
    """Values and indices as the columns of one table."""
    T = np.column_stack([X.indices, X.data])
    return sp.csr_matrix((T[:, 1], T[:, 0].astype("i4"), X.indptr), shape=X.shape)


def unsorted(X):
    """Each row backwards."""
    order = np.concatenate([np.arange(b - 1, a - 1, -1) for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)])
    return with_arrays(X, X.data[order], X.indices[order])


def last_unsorted(X):
    """Only the last rows backwards, so that a loop meets them late."""
    return sp.vstack([X[: M // 2], unsorted(X[M // 2 :])], format="csr")


def doubled(X):
    """Every entry twice, each of half its value."""
    return with_arrays(X, np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr)


def taken_for_sorted(change):
    """Changed after scipy was told, or found out, that the indices are in order."""

    def make(X):
        X = change(X)
        X.has_sorted_indices = X.has_canonical_format = True
        return X

    return make


def followed(X):
    """With entries behind the last row."""
    return with_arrays(X, np.append(X.data, np.nan), np.append(X.indices, 10**6).astype(np.int32))


def explicit_zero(X):
    """With a zero in the last row."""
    return with_arrays(
        X, np.append(X.data, 0.0), np.append(X.indices, 0).astype(np.int32), changed(X.indptr, -1, X.nnz + 1)
    )


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


ODD = {
    "two columns": two_columns,
    "strided": every(strided),
    "reversed": every(lambda a: a[::-1].copy()[::-1]),
    "unaligned": every(unaligned),
    "big-endian": every(swapped),
    "read-only": every(read_only),
    "unsorted": unsorted,
    "unsorted late": last_unsorted,
    "unsorted, taken for sorted": taken_for_sorted(unsorted),
    "doubled": doubled,
    "doubled, taken for canonical": taken_for_sorted(doubled),
    "doubled and unsorted": lambda X: unsorted(doubled(X)),
    "entries behind": followed,
    "int64": lambda X: with_arrays(X, None, X.indices.astype(np.int64), X.indptr.astype(np.int64)),
    "uint32": lambda X: with_arrays(X, None, X.indices.astype(np.uint32)),
    "int16": lambda X: with_arrays(X, None, X.indices.astype(np.int16), X.indptr.astype(np.int16)),
    "explicit zeros": explicit_zero,
    **{name: lambda X, name=name: X.asformat(name) for name in ("csc", "coo", "bsr", "lil", "dok", "dia")},
    **{f"{name} array": lambda X, name=name: sp.csr_array(X).asformat(name) for name in ("csr", "csc", "coo", "bsr")},
    "bsr of 2 x 3": lambda X: X.tobsr((2, 3)),
    "unsorted csc": lambda X: sp.csc_matrix(unsorted(X.T.tocsr()).T),
}  # fmt: skip


def copies(X):
    """The arrays of a sparse matrix, to see that it does not change."""
    return [np.array(getattr(X, name)) for name in ("data", "indices", "indptr", "row", "col") if hasattr(X, name)]


@pytest.mark.parametrize("odd", ODD)
def test_odd_matrices_are_the_rows_they_stand_for(odd):
    X = dense()
    made = ODD[odd](sp.csr_matrix(X))
    if odd != "entries behind":
        np.testing.assert_array_equal(made.toarray(), X)


# Wide indices alone have loops of their own, which take long to compile: every third model is fed them.
PAIRS = [(model, odd) for k, model in enumerate(MODELS) for odd in ODD if odd != "int64" or k % 3 == 0]


@nightly(but=["WidrowHoffRegressor()-*", "LeastSquares()-*", *(f"{name}()-'unsorted'" for name in FEW)])
@pytest.mark.parametrize(("model", "odd"), PAIRS, ids=lambda part: repr(part).replace("\n", "")[:60])
@pytest.mark.filterwarnings("ignore::hindsight.AssumptionWarning")
def test_odd_matrices_give_the_dense_answers(model, odd):
    X = dense()
    y, made = target(model, X), ODD[odd](sp.csr_matrix(X))
    before = copies(made)
    want, got = clone(model).fit(X, y), clone(model).fit(made, y)
    for method in METHODS:
        if hasattr(model, method):
            expected = getattr(want, method)(X)
            for answer in (getattr(want, method)(made), getattr(got, method)(X), getattr(got, method)(made)):
                same = np.array_equal if expected.dtype.kind == "U" else np.allclose
                assert same(answer, expected)
    if hasattr(model, "partial_fit"):
        want, got = clone(model).partial_fit(X, y), clone(model).partial_fit(made, y)
        close(got.coef_, want.coef_)
    if hasattr(model, "certify"):
        assert str(got.certify(made, y)).split("(")[0] == str(got.certify(sp.csr_matrix(X), y)).split("(")[0]
    for array, kept in zip(copies(made), before, strict=True):
        np.testing.assert_array_equal(array, kept)  # the user's own matrix stays as it was


@nightly(but=["strided", "big-endian", "unsorted, taken*", "doubled", "entries behind", "int64", "csc", "coo array"])
@pytest.mark.parametrize("odd", ODD)
def test_odd_matrices_separate_and_certify_as_dense_rows(odd):
    X = dense()
    made, y = ODD[odd](sp.csr_matrix(X)), np.where(X[:, 0] > 0.0, 1, 0)
    assert h.separate(X, y).separable and h.separate(made, y).separable
    mixed = np.where(np.arange(M) % 2, y, 1 - y)
    assert h.separate(made, mixed).rows.tolist() == h.separate(X, mixed).rows.tolist() != []
    assert h.fewest_mistakes(made, y, time_limit=1.0).errors == 0
    model = h.WidrowHoffRegressor().fit(X, X[:, 0])
    assert model.certify(made, X[:, 0]).lines() == model.certify(sp.csr_matrix(X), X[:, 0]).lines()
    chunks = model.certify(lambda: iter([(made, X[:, 0], None)]))
    assert chunks.lines() == model.certify(sp.csr_matrix(X), X[:, 0]).lines()


@pytest.mark.parametrize("odd", ODD)
def test_odd_matrices_as_data_and_as_a_source(odd):
    X = dense()
    made = ODD[odd](sp.csr_matrix(X))
    data, w = Data(made, np.zeros(M), bias=1.0), np.arange(1.0, N + 2.0)
    close(data.margins(w), X @ w[:-1] + w[-1])
    close(data.combine(np.arange(M) * 1.0)[:-1], np.arange(M) @ X)
    close(data.matrix()[:, :-1], X)
    chunks = h.open_source(made).chunks()
    close(np.vstack([chunk.X.toarray() for chunk in chunks]), X)


@pytest.mark.parametrize("odd", ODD)
def test_odd_matrices_are_predicted_by_a_saved_model(odd):
    X = dense()
    run = Run(learners.widrow_hoff(), N)
    play([run], X, [X[:, 0].copy()])
    close(h.Model([run]).predict(ODD[odd](sp.csr_matrix(X))), h.Model([run]).predict(X))


@nightly(only=["eg-*", "winnow-int64"])
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ["perceptron", "winnow", "widrow-hoff", "eg"])
def test_odd_matrices_are_played_bit_by_bit_as_plain_ones(name, odd):
    """Rows are sorted where a loop stops at them; runs that share the rows go on from there, each from its own."""
    X, learner = dense(), learners.LEARNERS[name].make()
    targets = [np.where(X[:, 0] > 0.0, 1.0, -1.0), np.where(X[:, 1] > 0.0, 1.0, -1.0)]
    want, got = ([Run(learner, N), Run(learner, N)] for _ in range(2))
    margins = np.zeros((2, M, 2))
    play(want, sp.csr_matrix(X), targets, None, margins[0])
    play(got, ODD[odd](sp.csr_matrix(X)), targets, None, margins[1])
    equal = close if odd in ("explicit zeros", "bsr of 2 x 3") else same  # a zero that is stored rounds once more
    equal(*margins)
    for one, other in zip(want, got, strict=True):
        equal(one.weights, other.weights)
        assert one.rounds == other.rounds


def test_indices_beyond_the_columns_are_refused_where_dicts_left_room():
    X = dense()
    model = h.WidrowHoffRegressor()
    for x in X:
        model.learn_one({f"x{j}": value for j, value in enumerate(x.tolist())}, 1.0)
    model.learn_one({"late": 1.0}, 1.0)
    X = sp.csr_matrix(np.hstack([X, X[:, :1]]))
    assert model.runs_[0].features > model.n_features_in_ == X.shape[1]
    with pytest.raises(h.RowError, match=r"row 1: column index 7 lies outside 0\.\.6"):
        model.partial_fit(with_arrays(X, None, changed(X.indices, int(X.indptr[2]) - 1, 7)), np.zeros(M))


def test_odd_dense_arrays_are_their_plain_copies():
    X = dense()
    y = X[:, 0]
    want = h.WidrowHoffRegressor().fit(X, y).coef_
    raw = np.frombuffer(b"x" + X.tobytes(), np.uint8)[1:].view(np.float64).reshape(X.shape)
    for odd in (np.asfortranarray(X), X[::-1].copy()[::-1], swapped(X), raw, np.broadcast_to(X, (1, M, N))[0]):
        close(h.WidrowHoffRegressor().fit(odd, y).coef_, want)
        close(Data(odd, y).combine(np.ones(M)), X.sum(axis=0))


def test_a_run_refuses_rows_and_targets_that_do_not_fit():
    run = Run(learners.widrow_hoff(), N)
    with pytest.raises(ValueError, match="the rows have 7 columns, but the learner has 6 features"):
        play([run], np.ones((M, N + 1)), [np.ones(M)])
    with pytest.raises(ValueError, match=r"there are 40 rows, but the targets have shape \(39,\)"):
        play([run], np.ones((M, N)), [np.ones(M - 1)])
    assert run.rounds == 0


# ---------------------------------------------------------------- broken matrices


def broken_coo(X):
    X = X.tocoo()
    X.coords = (changed(X.row, 3, M + 10_000), X.col)
    return X


BROKEN = {
    "data short": lambda X: with_arrays(X, X.data[:-20]),
    "indices short": lambda X: with_arrays(X, None, X.indices[:-20]),
    "no data": lambda X: with_arrays(X, X.data[:0], X.indices[:0]),
    "indptr past the end": lambda X: with_arrays(X, None, None, changed(X.indptr, -1, 10**8)),
    "indptr past the end twice": lambda X: with_arrays(X, None, None, changed(X.indptr, slice(-2, None), 10**8)),
    "indptr far in the middle": lambda X: with_arrays(X, None, None, changed(X.indptr, M // 2, 10**8)),
    "indptr decreases": lambda X: with_arrays(X, None, None, changed(X.indptr, M // 2, 1)),
    "indptr negative": lambda X: with_arrays(X, None, None, changed(X.indptr, 1, -(10**6))),
    "indptr not from 0": lambda X: with_arrays(X, None, None, changed(X.indptr, 0, 1)),
    "indptr ends negative": lambda X: with_arrays(X, None, None, changed(X.indptr, slice(None), -5)),
    "indptr short": lambda X: with_arrays(X, None, None, X.indptr[:-3]),
    "indptr long": lambda X: with_arrays(X, None, None, np.append(X.indptr, X.indptr[-1])),
    "indptr of floats": lambda X: with_arrays(X, None, None, X.indptr + 0.5),
    "index negative": lambda X: with_arrays(X, None, changed(X.indices, 5, -1)),
    "index very negative": lambda X: with_arrays(X, None, changed(X.indices, 5, -(2**31))),
    "index too large": lambda X: with_arrays(X, None, changed(X.indices, 5, N)),
    "index far too large": lambda X: with_arrays(X, None, changed(X.indices, slice(5, None), 2**31 - 1)),
    "index too large, of 64 bits": lambda X: with_arrays(X, None, changed(X.indices.astype(np.int64), 5, 2**40)),
    "last index too large": lambda X: with_arrays(X, None, changed(X.indices, -1, 10**6)),
    "indices of floats": lambda X: with_arrays(X, None, X.indices + 0.5),
    "complex": lambda X: X.astype(complex),
    "csc index too large": lambda X: with_arrays(X.tocsc(), None, changed(X.tocsc().indices, 5, 10**6)),
    "csc indptr past the end": lambda X: with_arrays(X.tocsc(), None, None, changed(X.tocsc().indptr, -1, 10**8)),
    "bsr index too large": lambda X: with_arrays(X.tobsr((2, 2)), None, changed(X.tobsr((2, 2)).indices, 3, 10**6)),
    "coo row too large": broken_coo,
    "one dimension": lambda X: sp.coo_array(X.toarray()[3]),
}  # fmt: skip


def calls(model, X, y, broken):
    """Everything a fitted model does with rows."""
    yield "fit", lambda: clone(model).fit(broken, y)
    for method in METHODS:
        if hasattr(model, method):
            yield method, lambda method=method: getattr(model, method)(broken)
    if hasattr(model, "partial_fit"):
        yield "partial_fit", lambda: clone(model).partial_fit(broken, y)
        yield "partial_fit again", lambda: clone(model).partial_fit(X, y).partial_fit(broken, y)
    if hasattr(model, "certify"):
        yield "certify", lambda: model.certify(broken, y)


def other_calls(X, broken):
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    yield "Data", lambda: Data(broken, y).combine(y)
    yield "Data from chunks", lambda: Data.from_chunks(lambda: iter([(broken, y, None)])).combine(y)
    yield "separate", lambda: h.separate(broken, y)
    yield "fewest_mistakes", lambda: h.fewest_mistakes(broken, y, time_limit=1.0)
    yield "source", lambda: list(h.open_source(broken).chunks())


def refuse_broken(names):
    """Try every broken matrix on these models, or on all; print what was tried, and what was not refused."""
    warnings.simplefilter("ignore")
    X = dense()
    for model in MODELS:
        if names and type(model).__name__ not in names:
            continue
        y = target(model, X)
        fitted = clone(model).fit(sp.csr_matrix(X), y)
        for name, make in BROKEN.items():
            attempt(f"{type(model).__name__}, {name}", calls(fitted, X, y, make(sp.csr_matrix(X))))
    for name, make in BROKEN.items():
        attempt(f"functions, {name}", other_calls(X, make(sp.csr_matrix(X))))
    print("done")


def attempt(where, each):
    for what, call in each:
        print("trying", where, what, flush=True)
        try:
            call()
        except ValueError as error:
            if "\n" in str(error) or not str(error):
                print("WRONG", where, what, "more than one line:", repr(error), flush=True)
        except BaseException as error:
            print("WRONG", where, what, repr(error), flush=True)
        else:
            print("WRONG", where, what, "was taken", flush=True)


def test_broken_matrices_are_refused_and_end_no_process():
    names = many(FEW, ())
    done = subprocess.run([sys.executable, __file__, *names], capture_output=True, text=True, timeout=600)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"exit status {done.returncode}: {lines[-1:]} {done.stderr[-2000:]}"
    assert lines[-1] == "done"
    assert sum(line.startswith("trying") for line in lines) > 20 * len(names or MODELS)
    assert [line for line in lines if line.startswith("WRONG")] == []


if __name__ == "__main__":
    refuse_broken(sys.argv[1:])
