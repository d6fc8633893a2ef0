"""The vector operations: compiled and in plain Python they give the same, and the kernels made of them are right."""

from __future__ import annotations

import math
import mmap

import numpy as np
import pytest
from numba import njit
from scipy.sparse import csr_array

from conftest import nightly
from hindsight import kernels
from hindsight.kernels import simd as lanes
from hindsight.kernels.losses import Logistic, Square
from hindsight.kernels.rows import axpy, inner
from hindsight.rows.matrices import rows_of


@njit
def half_sums(x, at):
    a = lanes.load(lanes.spread(0.0), x, at)
    return lanes.only(lanes.lower(lanes.lower(lanes.plus(lanes.lower(a), lanes.upper(a)))))


@njit
def through(x, w, at, out):
    a, b = lanes.load(lanes.spread(0.0), x, at), lanes.load(lanes.spread(0.0), w, at)
    top = lanes.peak(lanes.spread(0.25), a)
    lanes.store(out, 0, lanes.plus(lanes.times(lanes.spread(2.0), a), top))
    lanes.store(out, 8, lanes.fuse(a, b, top))
    lanes.store(out, 16, lanes.upper(a))
    return lanes.only(lanes.upper(lanes.upper(lanes.upper(b))))


@njit
def divided(x, w, out):
    a, b = lanes.load(lanes.spread(0.0), x, 0), lanes.load(lanes.spread(0.0), w, 0)
    lanes.store(out, 0, lanes.over(a, b))
    lanes.store(out, 8, lanes.root(lanes.times(b, b)))
    out[16], out[17] = lanes.lane(a, 0), lanes.lane(b, 7)


def test_quotients_and_roots():
    rng = np.random.default_rng(0)
    x, w, out, plain = rng.normal(size=8), rng.normal(size=8), np.zeros(18), np.zeros(18)
    divided(x, w, out)
    divided.py_func(x, w, plain)
    np.testing.assert_array_equal(out, plain)
    np.testing.assert_array_equal(out, np.r_[x / w, np.sqrt(w * w), x[0], w[7]])


@njit
def chosen(x, w, out):
    a, b = lanes.load(lanes.spread(0.0), x, 0), lanes.load(lanes.spread(0.0), w, 0)
    lanes.store(out, 0, lanes.where_less(a, b, a, lanes.spread(7.0)))
    lanes.store(out, 8, lanes.rough_log(lanes.times(b, b)))
    for i in range(8):
        out[16 + i] = lanes.where_less(x[i], w[i], x[i], 7.0) + lanes.rough_log(w[i] * w[i])
    return lanes.any_less(a, b), lanes.any_less(x[0], w[0])


def test_choices_and_rough_logarithms():
    rng = np.random.default_rng(0)
    for k in range(100):
        x, w, out, plain = rng.normal(size=8), 10.0 ** rng.uniform(-100, 100, 8), np.zeros(24), np.zeros(24)
        x[0] = w[0] if k % 2 else x[0]
        w = np.where(np.arange(8) == 3, w, -w) if k % 3 else w
        assert chosen(x, w, out) == chosen.py_func(x, w, plain) == (bool((x < w).any()), bool(x[0] < w[0]))
        np.testing.assert_array_equal(out, plain)
        np.testing.assert_array_equal(out[:8], np.where(x < w, x, 7.0))
        np.testing.assert_allclose(out[8:16], np.log(w * w), rtol=0, atol=0.0601)
        np.testing.assert_array_equal(out[16:], out[:8] + out[8:16])


@njit
def raised(m, k, shift, out):
    a, b = lanes.load(lanes.spread(0.0), m, 0), lanes.load(lanes.spread(0.0), k, 0)
    lanes.store(out, 0, lanes.doubled(a, b, shift))
    lanes.store(out, 8, lanes.halved(a, b, shift))
    for i in range(8):
        out[16 + i], out[24 + i] = lanes.doubled(m[i], k[i], shift), lanes.halved(m[i], k[i], shift)


@njit
def some(x, at, count, out):
    lanes.store(out, 0, lanes.load_some(lanes.spread(0.0), x, at, count))


@njit
def looked_up(w, base, places, at, count, out):
    lanes.store(out, 0, lanes.gather_some(lanes.spread(0.0), w, base, places, at, count))
    if count == 8:
        lanes.store(out, 8, lanes.gather(lanes.spread(0.0), w, base, places, at))


@njit
def ascends(x, at, count):
    return lanes.ascending(x, at, count)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiled_operations_are_those_of_plain_python(dtype):
    rng = np.random.default_rng(0)
    for _ in range(50):
        x, w = rng.standard_normal(40).astype(dtype), rng.standard_normal(40)
        at = int(rng.integers(0, 32))
        assert half_sums(x, at) == half_sums.py_func(x, at)
        out, want = np.zeros(20), np.zeros(20)
        assert through(x, w, at, out) == through.py_func(x, w, at, want)
        np.testing.assert_array_equal(out[:8], want[:8])
        np.testing.assert_allclose(out[8:16], want[8:16], rtol=0, atol=1e-15)  # rounded once, not twice
        np.testing.assert_array_equal(out[16:], want[16:])


def test_powers_of_two_are_exact_and_end_in_zero_and_infinity():
    rng = np.random.default_rng(0)
    edges = [-math.inf, -(2.0**48), -1024, -1023, -1022, -1021, 0, 1021, 1022, 1023, 1024, 2.0**48]

    def exact(a, power):
        return 0.0 if power <= -1022 else math.inf if power >= 1024 else float(np.ldexp(a, int(power)))

    for _ in range(300):
        shift = float(rng.choice([-3, 0, 7, 900]))
        m, k = rng.uniform(0.5, 1.99, 8), rng.choice([*edges, *range(-1100, 1100, 7)], 8) + shift
        m[k == -math.inf] = np.nan  # as e^-inf is reckoned
        out, want = np.zeros(32), np.zeros(32)
        with np.errstate(over="ignore"):
            raised(m, k, shift, out)
            raised.py_func(m, k, shift, want)
            up = [exact(a, b - shift) for a, b in zip(m, k, strict=True)]
            down = [exact(a, -b - shift) for a, b in zip(m, k, strict=True)]
        there = k != -math.inf
        for found in (out, want):
            for part in (found[:8], found[16:24]):
                np.testing.assert_array_equal(part, up)
            for part in (found[8:16], found[24:]):
                np.testing.assert_array_equal(part[there], np.array(down)[there])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", range(9))
def test_lanes_beyond_the_count_are_zero_and_their_memory_is_not_read(dtype, count):
    size = np.dtype(dtype).itemsize
    page = np.frombuffer(mmap.mmap(-1, mmap.PAGESIZE), dtype)  # what lies after it belongs to nobody
    page[-8:] = np.arange(1.0, 9.0)
    for room in range(count, 9):
        out, want = np.full(8, np.nan), np.zeros(8)
        at = mmap.PAGESIZE // size - room
        want[:count] = page[at : at + count]
        some(page, at, count, out)
        np.testing.assert_array_equal(out, want)
        some.py_func(page, at, count, out)
        np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
@pytest.mark.parametrize("count", range(9))
def test_numbers_are_looked_up_one_by_one_and_no_place_beyond_the_count_is(dtype, count):
    w = np.arange(40.0).reshape(2, 20)
    places = np.frombuffer(mmap.mmap(-1, mmap.PAGESIZE), dtype)  # what lies after it belongs to nobody
    places[-8:] = [3, 19, 0, 7, 6, 11, 5, 2]
    for room in range(count, 9):
        at = places.size - room
        want = np.full(36, 20.0)
        want[8:] = np.nan
        want[:count] = w[1, places[at : at + count].astype(int)]
        if count == 8:
            want[8:16] = want[:8]
        for look_up in (looked_up, looked_up.py_func):
            out = np.full(36, np.nan)
            look_up(w, 20, places, at, count, out)
            np.testing.assert_array_equal(out, want)


@nightly(but=["int32-float32", "int64-float64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("places", ["int32", "int64"])
def test_sparse_rows_of_every_length(dtype, places):
    rng = np.random.default_rng(0)
    width = 60
    w = rng.standard_normal((2, width + 1))
    for length in [*range(35), width]:
        columns = np.sort(rng.choice(width, length, replace=False))
        X = csr_array((rng.standard_normal(length).astype(dtype), columns, [0, length]), (1, width))
        X.indices, X.indptr = X.indices.astype(places), X.indptr.astype(places)
        x = np.append(X.toarray()[0].astype(float), 1.0)
        rows = rows_of(X, 1.0)
        dot, q, top = dense(rows, w, 1, 0)
        np.testing.assert_allclose([dot, q], [w[1] @ x, x @ x], rtol=1e-13, atol=1e-13)
        assert top == np.abs(x).max()
        for rule in (kernels.Square(1.0), kernels.Hinge(0.0)):
            moved = w.copy()
            move(rule, rows, moved, 1, 0, -0.3)
            np.testing.assert_allclose(moved[1], w[1] + -0.3 * x, rtol=1e-15, atol=1e-15)
            np.testing.assert_array_equal(moved[0], w[0])
            if rule == kernels.Hinge(0.0):
                np.testing.assert_array_equal(moved[1], w[1] + -0.3 * x)
        assert dense(rows, w[:, : columns.max(initial=0) + 2].copy(), 1, 0)[1] < np.inf  # just wide enough
        if length:
            assert dense(rows, w[:, : columns.max() + 1].copy(), 1, 0)[1] == np.inf
        for k in range(1, length):
            X.indices[k - 1], kept = X.indices[k], X.indices[k - 1]  # twice the same
            assert dense(rows, w, 1, 0)[1] == np.inf, (length, k)
            X.indices[k - 1] = 1 << 30  # far out, and then a fall
            assert dense(rows, w, 1, 0)[1] == np.inf, (length, k)
            X.indices[k - 1] = kept


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_ascending_is_seen_wherever_it_fails(dtype):
    top = np.iinfo(dtype).max
    for count in range(9):
        good = (np.arange(10, dtype=dtype) + 1) * (top // 11)
        assert ascends(good, 1, count) is ascends.py_func(good, 1, count) is True
        for place in range(10):
            for bad in (0, 1):
                x = good.copy()
                x[place] = good[place - 1] if bad and place else 0  # a repetition, or a fall
                assert ascends(x, 1, count) is ascends.py_func(x, 1, count), (count, place)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [*range(41), 100, 1000])
def test_rows_of_every_width(width, dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3, width)).astype(dtype)
    w = rng.standard_normal((2, width + 1))
    for bias in (0.0, 1.0):
        v = w.copy()[:, : width + int(bias)].copy()
        rows = rows_of(X, bias)
        for t in range(3):
            x = np.append(X[t].astype(float), [1.0] * int(bias))
            dot, q, top = dense(rows, v, 1, t)
            np.testing.assert_allclose([dot, q], [v[1] @ x, x @ x], rtol=1e-13, atol=1e-13)
            assert top == np.abs(x).max(initial=0.0)
            for rule in (kernels.Square(1.0), kernels.Hinge(0.0)):
                want = v[1] + -0.3 * x
                move(rule, rows, v, 1, t, -0.3)
                if rule == kernels.Hinge(0.0):  # rounded twice; the other once, where the processor can
                    np.testing.assert_array_equal(v[1], want)
                np.testing.assert_allclose(v[1], want, rtol=1e-15, atol=1e-15)
        np.testing.assert_array_equal(v[0], w[0, : width + int(bias)])  # its neighbour is left alone


@njit
def dense(rows, v, i, t):
    return inner(v[i], rows, t)


@njit
def move(rule, rows, v, i, t, d):
    axpy(rule, v[i], rows, t, d)


@njit
def side_by_side(loss, likes, z, y, c, q, out):
    loss.implicit_each(lanes.beside(likes), z, y, c, q, out)


@njit
def alone(loss, z, y, a):
    return loss.implicit(z, y, a)


@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize("loss", [Logistic(1.0), Logistic(2.0), Square(2.0)])
def test_implicit_slopes_side_by_side_are_those_one_by_one(loss, size):
    """To the last bit, from tiny steps to steps that lead far past 0."""
    rng = np.random.default_rng(5)
    for _ in range(2000):
        z, q = rng.normal(size=size) * 10.0 ** rng.uniform(-2, 2.5), 10.0 ** rng.uniform(-8, 6, size)
        y, c, out = float(rng.choice([0.0, 1.0, 0.3])), 10.0 ** rng.uniform(-1, 1), np.zeros(size)
        side_by_side(loss, (0.0,) * size, z, y, c, q, out)
        assert out.tolist() == [alone(loss, float(z[k]), y, float(c * q[k])) for k in range(size)]
