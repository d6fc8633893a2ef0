"""Rows given as dicts: the compiled reader lays them out as plain Python does, and leaves the rest to it."""

from __future__ import annotations

import random
from collections import Counter, OrderedDict, defaultdict

import numpy as np
import pytest

from hindsight import PerceptronClassifier, WidrowHoffRegressor
from hindsight.kernels import dicts, private
from hindsight.kernels.dicts import DONE, FEW
from hindsight.online.single_row import Dicts


@pytest.fixture(params=["compiled", "dispatcher", "python"], autouse=True)
def reader(request, monkeypatch):
    """Every test reads dicts by compiled code, by that through numba's dispatcher, and by plain Python alone."""
    if private.PLAIN and request.param != "python":
        pytest.skip("HINDSIGHT_PLAIN leaves plain Python alone")
    if request.param == "dispatcher":
        monkeypatch.setattr(private, "numba_known", lambda: False)
    if request.param == "python":
        monkeypatch.setattr(dicts, "READABLE", False)
    return request.param


def laid(row: Dicts) -> tuple[list[int], list[float]]:
    k = int(row.indptr[1])
    return row.indices[:k].tolist(), row.data[:k].tolist()


def in_python(column, x, grow):
    """The same by the words of the docstring."""
    if grow:
        for name in x:
            column.setdefault(name, len(column))
    found = sorted((column[name], float(value)) for name, value in x.items() if name in column)
    return [j for j, _ in found], [value for _, value in found]


PLAIN_NAMES = [*(f"word {k}" for k in range(400)), *range(-50, 400), 2**61 - 1, 2**61, "", "ä", "𝕏", -1, -2]
ODD_NAMES = [("a", 1), 1.5, True, None, np.str_("n"), frozenset({1}), np.int64(7)]


def values(draw):
    return draw.choice(
        [
            lambda: draw.gauss(0, 1),
            lambda: draw.randint(-3, 3),
            lambda: -1,
            lambda: -1.0,
            lambda: draw.random() < 0.5,
            lambda: np.float64(draw.gauss(0, 1)),
            lambda: np.float32(draw.gauss(0, 1)),
            lambda: np.int64(draw.randint(-9, 9)),
            lambda: 10**300,
        ]
    )()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("odd", [False, True])
def test_rows_are_laid_out_as_python_does(seed, odd):
    draw = random.Random(seed)
    names = PLAIN_NAMES + (ODD_NAMES if odd else [])
    ours, theirs = {}, {}
    row = Dicts(ours, 0.0)
    kinds = [dict, dict, dict, Counter, OrderedDict, lambda items: defaultdict(float, items)]
    for t in range(200):
        pool = names[: 5 + t * 4]
        x = draw.choice(kinds)({name: values(draw) for name in draw.sample(pool, draw.randint(0, min(40, len(pool))))})
        if draw.random() < 0.1:
            x[draw.choice(pool)] = np.float16(1.5)  # read by plain Python
        grow = draw.random() < 0.5
        want = in_python(theirs, x, grow)
        row.put(x, grow)
        assert laid(row) == want
        assert ours == theirs
        assert list(map(type, ours)) == list(map(type, theirs))
        if draw.random() < 0.05 and ours:
            for name in list(ours)[len(ours) // 2 :]:
                del ours[name], theirs[name]
            row.forget()


def test_equal_names_are_one_name():
    column = {}
    row = Dicts(column, 0.0)
    row.put({1: 2.0}, grow=True)
    row.put({True: 3.0}, grow=True)
    row.put({1.0: 4.0}, grow=True)
    assert column == {1: 0}
    assert laid(row) == ([0], [4.0])
    row.put({"".join(["wo", "rd"]): 1.0}, grow=True)
    row.put({"".join(["w", "ord"]): 2.0}, grow=True)
    assert column == {1: 0, "word": 1}


def test_names_with_equal_hashes_are_kept_apart():
    column = {}
    row = Dicts(column, 0.0)
    same = [-1, -2]
    assert hash(-1) == hash(-2)
    row.put(dict.fromkeys(same, 1.0), grow=True)
    row.put({-2: 5.0})
    assert laid(row) == ([1], [5.0])
    far = [k * (2**61 - 1) for k in range(1, 20)]
    assert len({hash(k) for k in far}) == 1
    row.put({k: float(i) for i, k in enumerate(far)}, grow=True)
    assert laid(row) == (list(range(2, 21)), [float(i) for i in range(19)])


def test_a_dict_changed_between_rows_is_read_anew():
    column = {}
    row = Dicts(column, 0.0)
    x = {"a": 1.0, "b": 2.0}
    row.put(x, grow=True)
    for k in range(500):
        x.popitem()
        x[f"name {k}"] = float(k)  # may well lie where the last name lay
        row.put(x, grow=True)
        assert column[f"name {k}"] == k + 2
        assert laid(row) == ([0, k + 2], [1.0, float(k)])


def test_no_reference_is_kept_or_lost():
    import sys

    name, number = "".join(["a ", "name"]), 1234.5
    x = {name: number}
    column = {}
    row = Dicts(column, 0.0)
    row.put(x, grow=True)
    before = sys.getrefcount(name), sys.getrefcount(number), sys.getrefcount(x), sys.getrefcount(column)
    for _ in range(1000):
        row.put(x, grow=True)
        row.put(x)
    assert before == (sys.getrefcount(name), sys.getrefcount(number), sys.getrefcount(x), sys.getrefcount(column))


@pytest.mark.parametrize("bad", ["3", None, [1.0], 1j, 10**400])
def test_a_value_that_is_no_number_is_named_and_nothing_is_learnt(bad):
    model = WidrowHoffRegressor(0.1).learn_one({"a": 1.0, "b": 2.0}, 1.0)
    before = model.coef_.copy(), model.facts_
    with pytest.raises(ValueError, match=r"feature 'new': value .* is not a number, or too large"):
        model.learn_one({"a": 1.0, "new": bad}, 1.0)
    np.testing.assert_array_equal(model.coef_, before[0])
    assert model.facts_ == before[1]
    model.learn_one({"other": 1.0}, 1.0)
    assert model.n_features_in_ == 3
    assert list(model._column) == ["a", "b", "other"]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_value_that_is_not_finite_is_named_and_its_names_are_forgotten(bad):
    model = WidrowHoffRegressor(0.1).learn_one({"a": 1.0}, 1.0)
    before = model.coef_.copy()
    for _ in range(3):
        with pytest.raises(ValueError, match=r"'new'.*not finite"):
            model.learn_one({"a": 1.0, "new": bad}, 1.0)
        np.testing.assert_array_equal(model.coef_, before)
        assert list(model._column) == ["a"]
    model.learn_one({"new": 1.0}, 1.0)
    assert list(model._column) == ["a", "new"]


def test_rows_of_any_types_learn_the_same():
    draw = random.Random(1)
    rows = [{f"w{draw.randint(0, 99)}": draw.randint(-4, 4) for _ in range(12)} for _ in range(300)]
    labels = [draw.random() < 0.5 for _ in rows]
    models = [PerceptronClassifier() for _ in range(3)]
    for x, y in zip(rows, labels, strict=True):
        models[0].learn_one(x, y)
        models[1].learn_one(OrderedDict((k, np.float16(v)) for k, v in x.items()), y)
        models[2].learn_one({k: float(v) for k, v in x.items()}, y)
        assert len({m.predict_one(x) for m in models}) == 1
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    np.testing.assert_array_equal(models[0].coef_, models[2].coef_)


def test_names_met_in_rows_of_odd_numbers_are_known_to_plain_rows(reader):
    column = {}
    row = Dicts(column, 0.0)
    for k in range(300):  # many times the room there was
        row.put({f"odd {k}": np.float16(k), f"even {k // 2}": 1.0}, grow=True)
        row.put({f"odd {k}": 2.0, "nobody": 1.0})
        assert laid(row) == ([column[f"odd {k}"]], [2.0])
    assert len(column) == 450
    assert row.plain == (reader != "python")
    assert reader == "python" or row.cursor[3] == 450
    row.put({("a", "tuple"): 1.0}, grow=True)
    assert not row.plain
    row.put({"odd 7": 1.0, ("a", "tuple"): 2.0})
    assert laid(row) == ([column["odd 7"], 450], [1.0, 2.0])


@pytest.mark.parametrize("count", [FEW - 1, FEW, FEW + 1, 5 * FEW])
def test_rows_of_few_and_of_many_names(reader, count):
    draw = random.Random(count)
    ours, theirs = {}, {}
    row = Dicts(ours, 0.0)
    for _ in range(20):
        x = {f"word {k}": draw.gauss(0, 1) for k in draw.sample(range(6 * FEW), count)}
        row.put(x, grow=True)
        assert laid(row) == in_python(theirs, x, True)
        row.put(x)  # with all names known and room for them, by compiled code alone
        assert reader == "python" or row.lay(id(x), id(ours), False, *row.work) == DONE
        assert laid(row) == in_python(theirs, x, False)
    assert ours == theirs


@pytest.mark.parametrize("average", [None, "before"])
def test_dicts_and_arrays_may_take_turns(average):
    draw = random.Random(3)
    mixed, plain = (WidrowHoffRegressor(0.1, average=average) for _ in range(2))
    for t in range(60):
        x = {f"name {k}": draw.gauss(0, 1) for k in (t // 2, draw.randint(0, t))}
        mixed.learn_one(x, 1.0)
        plain.learn_one(x, 1.0)
        if t % 3 == 0:
            mixed.predict_one(np.ones(mixed.n_features_in_))
        if t % 7 == 1:
            with pytest.raises(ValueError, match="not finite"):
                mixed.learn_one(np.full(mixed.n_features_in_, np.nan), 1.0)
        assert mixed.predict_one(x) == plain.predict_one(x)
        np.testing.assert_array_equal(mixed.coef_, plain.coef_)


def test_a_name_that_joins_where_there_is_room_is_learnt_in_one_call(reader, monkeypatch):
    model, slow = WidrowHoffRegressor(0.1), []
    other = WidrowHoffRegressor(0.1)
    monkeypatch.setattr(model, "_learn_one", lambda *args: slow.append(args) or type(model)._learn_one(model, *args))
    rows = [{f"w{j}": 1.0 + j for j in range(k % 40 + 1)} for k in range(120)]
    for k, x in enumerate(rows):
        model.learn_one(x, float(k))
        other.learn_one(OrderedDict(x), float(k))
        assert model.n_features_in_ == len(model._column) == other.n_features_in_
    np.testing.assert_array_equal(model.coef_, other.coef_)
    if reader != "python":  # the first row, and those for which room was made, of 2, 6, 14 and 30 names
        assert len(slow) <= 8
    with pytest.raises(ValueError, match=r"'new'.*not finite"):
        model.learn_one({"w0": 1.0, "new": float("nan")}, 1.0)
    assert list(model._column) == [f"w{j}" for j in range(40)]
    assert model.n_features_in_ == 40
