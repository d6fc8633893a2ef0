"""Data that is out to harm: nothing is merged, lost or misread in silence, and no byte outside an array is touched."""

import itertools
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from scipy import sparse

from hindsight.sources import SourceError, open_source, read_columns
from hindsight.training.plan import Plan, choose_learners
from hindsight.training.session import learn
from hindsight.training.state import start


def write(path, body):
    path.write_bytes(body if isinstance(body, bytes) else body.encode())
    return str(path)


def rows_of(data, target="y", **options):
    """Rows as (target, {name: value}), the rejected rows, and the source."""
    source = open_source(data, target, **options)
    rows, rejects = [], []
    for chunk in source.chunks():
        names = source.names
        for t in range(len(chunk)):
            row = sparse.csr_matrix(chunk.X[t])
            found = {names[j]: v for j, v in zip(row.indices.tolist(), row.data.tolist(), strict=True)}
            rows.append((None if chunk.y is None else chunk.y[t], found))
        rejects += chunk.rejects
    return rows, rejects, source


# --- room for what is parsed ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1, 64, 1 << 20])
def test_values_without_digits_have_room(tmp_path, chunk):
    """Such a value takes three bytes, and room was made for one per four."""
    row = "1 " + " ".join(f"{k}:" for k in range(1, 10)) + "\n"
    for more in range(20):
        path = write(tmp_path / "t.svm", "1 1:2\n" * more + row.replace(":", ":2") * 100 + row * 100)
        rows, rejects, _ = rows_of(path, rejects=True, chunk=chunk)
        assert len(rows) == 100 + more and len(rejects) == 100
        assert {r.reason for r in rejects} == {"'' is not a finite number"}
    with pytest.raises(SourceError, match=r"t.svm, line 1, column '1': '' is not a finite number"):
        rows_of(write(tmp_path / "t.svm", row))


# --- ends of lines ----------------------------------------------------------------------------------------------------

TEXTS = {
    "t.csv": ("a,b,y\n", "{0},{1},{0}\n"),
    "t.tsv": ("a\tb\ty\n", "{0}\t{1}\t{0}\n"),
    "t.svm": ("# head\n", "{0} 1:{0} 2:{1} # c\n"),
    "t.vw": ("", "{0} | a:{0} b:{1}\n"),
    "t.jsonl": ("", '{{"a": {0}, "b": {1}, "y": {0}}}\n'),
}


@pytest.mark.parametrize("chunk", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("name", TEXTS)
def test_a_line_ends_with_a_line_feed_a_carriage_return_or_both(tmp_path, name, chunk):
    head, row = TEXTS[name]
    body = head + "".join(row.format(k, k + 1) for k in range(1, 30))
    want, _, _ = rows_of(write(tmp_path / name, body), chunk=chunk)
    assert len(want) == 29
    mixed = "".join(a + b for a, b in itertools.zip_longest(body.split("\n"), ["\r", "\n", "\r\n"] * 10, fillvalue=""))
    for other in (body.replace("\n", "\r"), body.replace("\n", "\r\n"), mixed, body.replace("\n", "\r").rstrip("\r")):
        path = write(tmp_path / name, other)
        got, rejects, source = rows_of(path, chunk=chunk, rejects=True)
        assert got == want and not rejects
        places = [chunk.place(t) for chunk in source.chunks() for t in range(len(chunk))]
        assert places == [f"{path}, line {k + bool(head)}" for k in range(1, 30)]


def test_a_carriage_return_in_quotes_is_part_of_the_field(tmp_path):
    path = write(tmp_path / "t.csv", '"k\rl",y\r"a\rb",1\r"c\r\nd",x\r')
    rows, rejects, _ = rows_of(path, rejects=True, categorical=["k\rl"], labels=False)
    assert rows == [(1.0, {"k\rl=a\rb": 1.0})] and [r.line for r in rejects] == [5]


# --- names of values --------------------------------------------------------------------------------------------------

COLUMNS = {  # the same values 1, 0, 1, 2 in every type that holds them; a bool has no 2
    "int8": pa.array([1, 0, 1, 2], pa.int8()),
    "int64": pa.array([1, 0, 1, 2], pa.int64()),
    "uint64": pa.array([1, 0, 1, 2], pa.uint64()),
    "float": pa.array([1.0, 0.0, 1.0, 2.0], pa.float64()),
    "float32": pa.array([1.0, 0.0, 1.0, 2.0], pa.float32()),
    "zero": pa.array([1.0, -0.0, 1.0, 2.0], pa.float64()),
    "decimal": pa.array([Decimal("1.00"), Decimal("0.00"), Decimal("1.00"), Decimal("2.00")], pa.decimal128(9, 2)),
    "bool": pa.array([True, False, True, True], pa.bool_()),
    "text": pa.array(["1", " 0", "1 ", "2"], pa.string()),
    "large": pa.array(["1", "0", "1", "2"], pa.large_string()),
    "coded": pa.array(["1", "0", "1", "2"]).dictionary_encode(),
}
Y = pa.array([1.0, -1.0, 1.0, -1.0])


def categories(data, **options):
    """For each row its categories of a, and their names."""
    rows, rejects, source = rows_of(data, categorical=["a"], missing="zero", **options)
    assert not rejects
    return [found for _, found in rows], list(source.names)


@pytest.mark.parametrize("chunk", [8, 1 << 20])
@pytest.mark.parametrize("kind", COLUMNS)
def test_names_of_values_do_not_depend_on_nulls(tmp_path, kind, chunk):
    column = COLUMNS[kind]
    last = {"a=1": 1.0} if kind == "bool" else {"a=2": 1.0}
    want = [{"a=1": 1.0}, {"a=0": 1.0}, {"a=1": 1.0}, last]
    nulls = pa.nulls(2, column.type)
    for parts in ([column], [nulls, column], [column, nulls], [pa.concat_arrays([nulls, column])]):
        table = pa.table({"a": pa.chunked_array(parts), "y": pa.concat_arrays([Y, Y])[: sum(map(len, parts))]})
        pq.write_table(table, tmp_path / "t.parquet", row_group_size=2)
        feather.write_feather(table, tmp_path / "t.feather", chunksize=2)
        forms = [tmp_path / "t.parquet", tmp_path / "t.feather", table]
        if kind != "coded":
            forms += [table.to_pandas(), pl.from_arrow(table)]
        for data in forms:
            found, names = categories(data, chunk=chunk)
            assert [row for row in found if row] == want
            assert names == list(dict.fromkeys(name for row in want for name in row))


def test_names_of_values_do_not_depend_on_files(tmp_path):
    for k, column in enumerate([pa.nulls(4), *COLUMNS.values(), pa.nulls(4)]):
        pq.write_table(pa.table({"a": column, "y": Y}), tmp_path / f"{k:02}.parquet")
    for options in ({}, {"chunk": 8}):
        found, names = categories(tmp_path, **options)
        assert names == ["a=1", "a=0", "a=2"] and len(found) == 4 * (len(COLUMNS) + 2)
    rows, _, source = rows_of(tmp_path, categorical="auto", missing="zero")  # the first file that knows has numbers
    assert source.names == ["a"] and rows[4] == (1.0, {"a": 1.0})


def test_names_of_large_and_missing_values():
    big = [2**53, 2**53 + 1, 10**16, 10**16 + 1]
    column = pa.array([*big, None])
    table = pa.table({"a": column, "y": pa.array([1.0] * 5)})
    assert categories(table)[1] == ["a=9007199254740992", "a=9007199254740993", "a=1e+16", "a=10000000000000001"]
    floats = pa.table({"a": pa.array([1e16, float("nan"), 0.1, None]), "y": Y})
    assert categories(floats) == ([{"a=1e+16": 1.0}, {}, {"a=0.1": 1.0}, {}], ["a=1e+16", "a=0.1"])
    texts = pa.table({"a": pa.array(["x", "x\0", "x\0\0", "x"]), "y": Y})
    assert categories(texts)[1] == ["a=x", "a=x\0", "a=x\0\0"]


def test_a_column_of_another_kind_in_a_later_file_is_refused(tmp_path):
    pq.write_table(pa.table({"a": [1.0], "y": [1.0]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"a": [[1.0]], "y": [1.0]}), tmp_path / "1.parquet")
    with pytest.raises(SourceError, match=r"1.parquet: column 'a' holds list<.*>, not numbers or text"):
        rows_of(tmp_path)
    with pytest.raises(SourceError, match=r"^data: "):
        rows_of(pd.DataFrame({"a": [1, "x"], "y": [1, 2]}))


# --- labels -----------------------------------------------------------------------------------------------------------

LABELS = {
    "t.csv": lambda labels: "x,y\n" + "".join(f"1,{y}\n" for y in labels),
    "t.svm": lambda labels: "".join(f"{y} 1:1\n" for y in labels),
    "t.vw": lambda labels: "".join(f"{y} | x\n" for y in labels),
    "t.jsonl": lambda labels: "".join(json.dumps({"x": 1, "y": y}) + "\n" for y in labels),
}


@pytest.mark.parametrize("labels", [None, True])
@pytest.mark.parametrize("chunk", [1, 1 << 20])
@pytest.mark.parametrize("name", LABELS)
def test_labels_that_differ_stay_apart(tmp_path, name, chunk, labels):
    texts = [
        "10",
        "1_0",
        "\uff11\uff10",
        "9007199254740992",
        "9007199254740993",
        "9007199254740994",
        "-9007199254740993",
    ]
    found = rows_of(write(tmp_path / name, LABELS[name](texts)), chunk=chunk, labels=labels)[0]
    assert [y if isinstance(y, str) else str(int(y)) for y, _ in found] == texts
    same = ["1", "+1", "1.0", "1e0", "10000000000000000", "1e16", "+1.0e16"]
    found = rows_of(write(tmp_path / name, LABELS[name](same)), chunk=chunk, labels=labels)[0]
    assert {float(y) for y, _ in found} == {1.0, 1e16} and len({str(y) for y, _ in found}) == 2
    nul = write(tmp_path / name, LABELS[name](["1", "1\0"]))
    with pytest.raises(SourceError, match=r"line \d.*label '1\\x00' holds a NUL character"):
        rows_of(nul, chunk=chunk, labels=labels)


@pytest.mark.parametrize("labels", [None, True])
def test_whole_numbers_beyond_float64_stay_apart_as_labels(tmp_path, labels):
    big = [2**53, 2**53 + 1, 2**62, 2**62 + 1]
    forms = [
        (np.ones((4, 1)), np.array(big)),
        pa.table({"x": [1.0] * 4, "y": big}),
        pd.DataFrame({"x": 1.0, "y": big}),
        [{"x": 1.0, "y": y} for y in big],
    ]
    for data in forms:
        found = {str(y) for y, _ in rows_of(data, labels=labels)[0]}
        assert len(found) == 4 and {"9007199254740992", "9007199254740993", str(2**62 + 1)} < found
        assert [y for y, _ in rows_of(data, labels=False)[0]] == [float(y) for y in big]
    with pytest.raises(SourceError, match=r"row 1.*NUL"):
        rows_of((np.ones((2, 1)), np.array(["a", "a\0"], object)))


def test_labels_that_differ_are_classes_of_their_own(tmp_path):
    path = write(tmp_path / "t.csv", "x,y\n" + "".join(f"{k},{y}\n" for k in range(40) for y in ("10", "1_0", "2")))
    state = start(Plan(path, "y", choose_learners(["perceptron"]), {"chunk": 16}), all_labels=True)
    assert state.labels == ["2", "10", "1_0"]
    for _ in learn(state):
        pass
    assert state.constant.tolist() == [40.0, 40.0, 40.0]
    path = write(tmp_path / "t.csv", "x,y\n" + "1,9007199254740992\n" * 9 + "1,9007199254740993\n" * 8)
    state = start(Plan(path, "y", choose_learners(["perceptron"]), {"chunk": 16}), all_labels=True)
    for _ in learn(state):
        pass
    assert state.labels == ["9007199254740992", "9007199254740993"] and state.constant.tolist() == [9.0, 8.0]


@pytest.mark.parametrize("text", ["1_0", "\uff11", "0x1", "1\0"])
def test_what_is_no_number_is_no_value(tmp_path, text):
    bodies = {
        "t.csv": f"x,y\n{text},1\n",
        "t.svm": f"1 1:{text}\n",
        "t.vw": f"1 | x:{text}\n",
        "t.parquet": pa.table({"x": [text], "y": [1.0]}),
    }
    for name, body in bodies.items():
        if name == "t.parquet":
            pq.write_table(body, tmp_path / name)
        else:
            write(tmp_path / name, body)
        with pytest.raises(SourceError, match=r"is not a (finite )?number"):
            rows_of(str(tmp_path / name))
    write(tmp_path / "f.csv", f"p\n1\n{text}\n")
    if text.endswith("\0"):
        with pytest.raises(SourceError, match=r"f.csv, row 1, column 'p': '1\\x00' ends with a NUL character"):
            read_columns(str(tmp_path / "f.csv"), ["p"])
    else:
        assert read_columns(str(tmp_path / "f.csv"), ["p"])["p"].dtype.kind == "U"
