"""Data that is out to harm: nothing is merged, lost or misread in silence, and no byte outside an array is touched."""

import itertools
import json
import os
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from scipy import sparse

from conftest import many, nightly
from hindsight.rows.data import Data
from hindsight.serve.requests import Limits, parse_arrow
from hindsight.sources import SourceError, open_source, read_columns
from hindsight.sources.sparse import max_columns
from hindsight.training.plan import Plan, choose_learners
from hindsight.training.session import learn_chunks
from hindsight.training.state import TrainingState, start


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


@pytest.mark.parametrize("chunk", [2000, 1 << 20])
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


def test_columns_have_the_same_values_whatever_the_types_of_their_files(tmp_path):
    for k, column in enumerate(COLUMNS.values()):
        pq.write_table(pa.table({"a": column}), tmp_path / f"{k:02}.parquet")
    want = [1.0, 0.0, 1.0, 2.0] * len(COLUMNS)
    want[4 * list(COLUMNS).index("bool") + 3] = 1.0
    assert read_columns(str(tmp_path), ["a"])["a"].tolist() == want
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "zz.parquet")
    assert set(read_columns(str(tmp_path), ["a"])["a"].tolist()) == {"1", "0", "2", "x"}
    path = write(tmp_path / "t.jsonl", "".join(f'{{"a": {value}}}\n' for value in ("1", "1.0", "true", '" x"', '"1"')))
    assert read_columns(path, ["a"])["a"].tolist() == ["1", "1", "1", "x", "1"]
    for values in ([2**53, 2**53 + 1], [str(2**53), str(2**53 + 1)]):
        pq.write_table(pa.table({"a": values}), tmp_path / "big.parquet")
        found = read_columns(str(tmp_path / "big.parquet"), ["a"])["a"].tolist()
        assert found == ["9007199254740992", "9007199254740993"]


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
    for _ in learn_chunks(state):
        pass
    assert state.constant.tolist() == [40.0, 40.0, 40.0]
    path = write(tmp_path / "t.csv", "x,y\n" + "1,9007199254740992\n" * 9 + "1,9007199254740993\n" * 8)
    state = start(Plan(path, "y", choose_learners(["perceptron"]), {"chunk": 16}), all_labels=True)
    for _ in learn_chunks(state):
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


# --- names of features ------------------------------------------------------------------------------------------------

SPACES = ["", "a", "a^b", "a\\", "\\", "^", "a\\^b"]
FEATURES = ["b", "a^b", "b^c", "^", "^b", "\\", "\\^b", "c", "b^", "a"]


def test_names_of_wabbit_features_are_unique(tmp_path):
    pairs = [(space, name) for space in SPACES for name in FEATURES]
    body = "".join(f"1 |{space} {name}\n" for space, name in pairs)
    rows, _, source = rows_of(write(tmp_path / "t.vw", body))
    names = [next(iter(found)) for _, found in rows]
    assert len(set(names)) == len(pairs) == len(set(source.names))
    known = dict(zip(pairs, names, strict=True))
    assert known["", "b"] == "b" and known["a", "b"] == "a^b" and known["a", "b^c"] == "a^b^c"  # as plain as can be
    assert known["", "a^b"] == "^a^b"
    rows, _, source = rows_of(str(tmp_path / "t.vw"), hash_bits=24)
    assert len({next(iter(found)) for _, found in rows}) == len(pairs) and source.collisions == 0
    state = json.loads(json.dumps(open_and_read(tmp_path / "t.vw").state()))
    other = open_source(tmp_path / "t.vw", "y")
    other.restore(state)
    assert list(other.names) == names
    for chunk in other.chunks():
        assert chunk.X.indices.tolist() == list(range(len(pairs)))


def open_and_read(path, **options):
    source = open_source(path, "y", **options)
    for _ in source.chunks():
        pass
    return source


@pytest.mark.parametrize("hash_bits", [None, 20])
def test_features_of_one_name_in_a_mapping_are_refused(tmp_path, hash_bits):
    options = {"categorical": "auto", "hash_bits": hash_bits}
    for row in ({"a": "x", "a=x": 2}, {"a=x": 2, "a": "x"}, {"a": "b=x", "a=b": "x"}):
        path = write(tmp_path / "t.jsonl", json.dumps(row | {"y": 1}) + "\n")
        with pytest.raises(SourceError, match=r"t.jsonl, line 1, column '.*': .* '.*' and .* '.*' have the same name"):
            rows_of(path, **options)
    with pytest.raises(SourceError, match=r"row 0, column '1': .* have the same name"):
        rows_of([{1: 2.0, "1": 3.0, "y": 1}], hash_bits=hash_bits)


def test_features_of_one_name_in_two_mappings_are_refused(tmp_path):
    for first, second in (({"a": "x"}, {"a=x": 2}), ({"a=x": 2}, {"a": "x"}), ({"a": "b=x"}, {"a=b": "x"})):
        body = "".join(json.dumps(row | {"y": 1}) + "\n" for row in (first, {"b": 1}, second))
        path = write(tmp_path / "t.jsonl", body)
        for chunk in (1, 1 << 20):
            with pytest.raises(SourceError, match=r"line 3, column '.*': .* have the same name"):
                rows_of(path, categorical="auto", chunk=chunk)
            source = open_source(path, "y", categorical="auto", chunk=1)
            position = next(source.chunks()).position
            other = open_source(path, "y", categorical="auto", chunk=chunk)
            other.restore(source.state())
            with pytest.raises(SourceError, match=r"line 3, column '.*': .* have the same name"):
                list(other.chunks(start=position))
    rows, rejects, _ = rows_of(path, categorical="auto", rejects=True)
    assert len(rows) == 2 and [reject.line for reject in rejects] == [3]


def test_columns_that_could_share_a_name_are_refused(tmp_path):
    path = write(tmp_path / "t.csv", "a,a=x,y\nx,2,1\n")
    with pytest.raises(SourceError, match="column 'a=x' could be mistaken for value 'x' of the categorical column 'a'"):
        rows_of(path, categorical=["a"])
    with pytest.raises(SourceError, match="column 'a=b' could be mistaken for value 'b' of the categorical column 'a'"):
        rows_of(write(tmp_path / "u.csv", "a,a=b,y\nb=x,x,1\n"), categorical=["a", "a=b"])
    assert rows_of(path, categorical=["a"], ignore=["a=x"])[0] == [(1.0, {"a=x": 1.0})]
    with pytest.raises(SourceError, match="feature 'a' is asked for twice"):
        rows_of(path, features=["a", "a"], categorical=["a"])


def test_half_a_character_is_refused(tmp_path):
    for row in ('{"\\ud800": 1, "y": 1}', '{"x": "\\udcc3\\udca9", "y": 1}', '{"x": 1, "y": "\\ud800"}'):
        for hash_bits in (None, 9):
            with pytest.raises(SourceError, match=r"line 1.* is not Unicode text"):
                rows_of(write(tmp_path / "t.jsonl", row + "\n"), categorical="auto", hash_bits=hash_bits)


# --- damaged files ----------------------------------------------------------------------------------------------------


def stream(path, batches):
    """An Arrow stream, and where each of its batches ends."""
    ends = []
    with open(path, "wb") as file:
        writer = pa.ipc.new_stream(file, batches[0].schema)
        for batch in batches:
            writer.write_batch(batch)
            ends.append(file.tell())
        writer.close()
    return ends


def test_a_stream_must_end_with_its_mark(tmp_path):
    path = tmp_path / "t.arrows"
    batches = pa.table({"a": pa.array(list("uvuvwx")).dictionary_encode(), "y": range(6)}).to_batches(max_chunksize=2)
    ends = stream(path, batches)
    whole = path.read_bytes()
    assert len(rows_of(path, categorical=["a"])[0]) == 6
    for end in ends:
        path.write_bytes(whole[:end])
        with pytest.raises(SourceError, match=r"t.arrows: the stream is cut short: the mark of its end is missing$"):
            rows_of(path, categorical=["a"])
        with pytest.raises(SourceError, match=r"t.arrows: the stream is cut short"):
            read_columns(str(path), ["y"])
    for more in (whole, b"x"):
        path.write_bytes(whole + more)
        with pytest.raises(SourceError, match=rf"t.arrows: {len(more):,} bytes follow the end of the stream$"):
            rows_of(path, categorical=["a"])


DAMAGE = r"""
import json, random, sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from pyarrow import feather
from hindsight.rows.data import Data
from hindsight.sources import SourceError, open_source, read_columns

folder, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
r = random.Random(seed)
n = 40
table = pa.table({
    "a": pa.array([r.choice(["u", "vv", None, "a longer text \u00e9", ""]) for _ in range(n)]),
    "b": pa.array([r.choice([1, 2, None, -5]) for _ in range(n)], pa.int32()),
    "c": pa.array([r.choice(["p", "q", None]) for _ in range(n)]).dictionary_encode(),
    "d": pa.array([r.random() for _ in range(n)]),
    "e": pa.array([r.choice([True, False, None]) for _ in range(n)]),
    "f": pa.array([r.choice(["p", "q" * 20, None]) for _ in range(n)], pa.string_view()),
    "y": pa.array([1.0, -1.0] * (n // 2)),
})
plain = table.drop_columns(["f"])
pq.write_table(plain, f"{folder}/0.parquet", row_group_size=16)
pq.write_table(plain, f"{folder}/1.parquet", compression="zstd", use_dictionary=False)
feather.write_feather(plain, f"{folder}/0.feather", chunksize=16)
feather.write_feather(plain, f"{folder}/1.feather", compression="uncompressed")
with pa.OSFile(f"{folder}/0.arrow", "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
    writer.write_table(table, max_chunksize=16)
with pa.OSFile(f"{folder}/0.arrows", "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
    writer.write_table(table, max_chunksize=16)
np.save(f"{folder}/0.npy", np.arange(40.0).reshape(10, 4))
np.save(f"{folder}/1.npy", np.zeros(5, [("x", "f8"), ("y", "f8")]))
np.savez(f"{folder}/0.npz", data=np.ones(6), indices=np.array([0, 2, 1, 0, 1, 2], np.int32), shape=[3, 3],
         indptr=np.array([0, 2, 3, 6], np.int32), y=np.ones(3), format="csr")
names = ["0.parquet", "1.parquet", "0.feather", "1.feather", "0.arrow", "0.arrows", "0.npy", "1.npy", "0.npz"]
bodies = {name: open(f"{folder}/{name}", "rb").read() for name in names}
told = dict(whole=0, refused=0)
for k in range(count):
    name = names[k % len(names)]
    body = bytearray(bodies[name])
    what = r.random()
    if what < 0.15:
        del body[r.randrange(len(body)) :]
    elif what < 0.25:
        a = r.randrange(len(body))
        del body[a : a + r.choice([1, 4, 8, 64])]
    else:
        for _ in range(r.choice([1, 1, 2, 8])):
            a = r.randrange(len(body))
            if r.random() < 0.5:
                body[a] = r.choice([0, 1, 0x7F, 0x80, 0xFF, body[a] ^ 1 << r.randrange(8)])
            else:
                body[a : a + 4] = r.choice([b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\0\0\0\0"])
    path = f"{folder}/damaged-{name}"
    with open(path, "wb") as file:
        file.write(body)
    print(k, file=open(f"{folder}/last", "w"))
    target = {"0.npy": "4", "1.npy": "y"}.get(name, "y")
    options = dict(categorical=["a", "c", "e"]) if name[-1] in "twhrs" and "np" not in name else {}
    try:
        if "np" not in name and k % 5 == 0:
            read_columns(path, [r.choice("abcdey")])
        else:
            source = open_source(path, target, rejects=True, missing=r.choice(["zero", "error"]), chunk=64, **options)
            for chunk in source.chunks():
                values = chunk.X.data if source.kind == "sparse" else chunk.X
                assert np.isfinite(values).all()
                [chunk.place(t) + chunk.raw(t) for t in range(len(chunk))]
            list(source.names)
        told["whole"] += 1
    except SourceError as error:
        if "\n" in str(error) or not str(error).startswith(path):
            raise
        told["refused"] += 1
print(json.dumps(told))
"""


def test_damaged_files_are_refused_in_one_line_or_read(tmp_path):
    """In a process of its own, which a wrong offset could end."""
    count = many(300, 3000)
    command = [sys.executable, "-c", DAMAGE, str(tmp_path), str(count), "0"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, (tmp_path / "last").read_text(), done.stderr[-3000:])
    told = json.loads(done.stdout)
    assert told["whole"] + told["refused"] == count and min(told.values()) > count // 10


SHRINK = """
import sys
from hindsight.sources import SourceError, open_source
path, target = sys.argv[1:]
try:
    for k, chunk in enumerate(open_source(path, target, chunk=1 << 16, ahead=False).chunks()):
        if k == 0:
            open(path, "r+b").truncate(200_000)
        chunk.X.sum(), chunk.y.sum()
except SourceError as error:
    assert "\\n" not in str(error) and str(error).startswith(path), error
    print("refused")
"""


@nightly(but=["t.arrow", "t.npy"])
@pytest.mark.parametrize("name", ["t.arrow", "t.arrows", "t.feather", "t.parquet", "t.npy"])
def test_a_file_that_shrinks_is_an_error(tmp_path, name):
    table = pa.table({"a": np.random.default_rng(0).random(300_000), "y": np.arange(300_000.0)})
    path = tmp_path / name
    if name == "t.npy":
        np.save(path, np.column_stack([table["a"], table["y"]]))
    elif name == "t.parquet":
        pq.write_table(table, path, row_group_size=10_000)
    elif name == "t.arrows":
        stream(path, table.to_batches(max_chunksize=10_000))
    else:
        feather.write_feather(table, path, compression="uncompressed", chunksize=10_000)
    command = [sys.executable, "-c", SHRINK, str(path), "2" if name == "t.npy" else "y"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip() == "refused", (done.returncode, done.stderr[-2000:])


def test_matrices_that_lie_are_refused(tmp_path):
    good = {"data": np.ones(3), "indices": np.array([0, 1, 2], np.int32), "indptr": np.array([0, 2, 3], np.int32)}
    for wrong in (
        {"indptr": np.array([0, 900, 3], np.int32)},
        {"indptr": np.array([0, 2, 900], np.int32)},
        {"indices": np.array([0, 1, 900], np.int32)},
        {"indices": np.array([0, 1, -1], np.int32)},
        {"data": np.ones(2)},
        {"shape": [2, 2**31 - 1 if max_columns() < 2**31 - 1 else 2**40]},
    ):
        np.savez(tmp_path / "t.npz", **{**good, "shape": [2, 3], "y": np.ones(2)} | wrong)
        with pytest.raises(SourceError, match=r"t.npz: (this is not a CSR matrix|[\d,]+ columns)") as caught:
            rows_of(tmp_path / "t.npz")
        assert "\n" not in str(caught.value)


def test_rows_in_memory_are_not_written_to():
    X = np.array([[1.0, np.nan], [2.0, 3.0]])
    matrix = sparse.csr_matrix(X)
    for data in (X, matrix):
        assert len(rows_of((data, [1.0, 2.0]), missing="zero")[0]) == 2
    assert np.isnan(X[0, 1]) and np.isnan(matrix.data).sum() == 1


# --- sizes ------------------------------------------------------------------------------------------------------------


def test_many_columns_take_time_in_proportion(tmp_path):
    def seconds(count):
        names = [f"column {k}" for k in range(count)]
        path = write(tmp_path / "t.csv", ",".join(names) + "\n" + ",".join(["1"] * count) + "\n")
        pq.write_table(pa.table({name: [1.0] for name in names}), tmp_path / "t.parquet")
        line = json.dumps(dict.fromkeys(names, 1.0))
        rows = write(tmp_path / "t.jsonl", line + "\n" + line[:-1] + ', "column 7": 2}\n')
        half = {"features": names[: count // 2], "ignore": names[: count // 4], "categorical": names[: count // 8]}
        began = time.process_time()
        for options in ({}, half):
            open_source(path, names[-1], **options)
            next(open_source(tmp_path / "t.parquet", names[-1], ahead=False, **options).chunks())
        for chunk in open_source(rows, names[-1], rejects=True, ignore=names[: count // 2], ahead=False).chunks():
            assert len(chunk) == len(chunk.rejects) == 1
        return time.process_time() - began

    seconds(100)
    few, many = seconds(2_500), seconds(20_000)
    assert many < 8 * 4 * few + 1.0  # twenty-fold and more where the time is quadratic


def test_the_width_of_svmlight_rows_is_bounded(tmp_path):
    path = write(tmp_path / "t.svm", f"1 1:1 7:1\n1 {max_columns() + 1}:1\n1 2147483647:1\n1 9:x\n1 8:1 20:1 11:1\n")
    rows, rejects, source = rows_of(path, rejects=True)
    assert len(rows) == 1 and [r.line for r in rejects] == [2, 3, 4, 5] and len(source.names) == source.width == 7
    assert rejects[1].reason == (
        f"the index of '2147483647:1' is above {max_columns():,}, the most that memory has room for: "
        "hash the indices (hash_bits, --hash)"
    )
    rows, rejects, source = rows_of(path, rejects=True, zero_based=True)
    assert [r.line for r in rejects] == [2, 3, 4, 5] and len(source.names) == 8
    assert len(rows_of(path, rejects=True, hash_bits=8)[0]) == 3
    path = write(tmp_path / "u.svm", f"1 {max_columns()}:1\n")
    assert open_and_read(path).width == max_columns()


# --- rows that change between two passes ------------------------------------------------------------------------------

BODY = "a,b,y\n" + "".join(f"{k % 7},{k},{1 if k % 3 else -1}\n" for k in range(400))
CHANGED = {
    "value": BODY.replace("\n3,150,", "\n3,151,"),
    "target": BODY.replace("0,350,1", "0,350,-1"),
    "two targets": BODY.replace("0,350,1", "0,350,-1").replace("1,351,-1", "1,351,1"),
    "appended": BODY + "1,2,1\n",
    "cut": BODY[: BODY.rindex("\n", 0, -1) + 1],
    "moved": "\n".join([*BODY.split("\n")[:100], *BODY.split("\n")[100:200][::-1], *BODY.split("\n")[200:]]),
}


def put(path, body):
    """Put another file in the place of one."""
    os.replace(write(Path(path + ".new"), body), path)


def train(path, learner, change=None, **options):
    """Learn from a file that is changed once the first pass is over."""
    plan = Plan(path, "y", choose_learners([learner]), {"chunk": 64}, **options)
    state = start(plan, all_labels=options.get("passes", 1) == 1)
    if change is not None and plan.passes == 1:
        put(path, change)
    for _ in learn_chunks(state):
        if change is not None and state.passes_done == 1:  # the file is open: the next pass reads the new one
            put(path, change)
            change = None
    return state


@pytest.mark.parametrize("what", CHANGED)
@pytest.mark.parametrize("learner", ["perceptron", "widrow-hoff"])
def test_rows_that_change_between_passes_are_noticed(tmp_path, what, learner):
    assert CHANGED[what] != BODY
    path = write(tmp_path / "t.csv", BODY)
    state = train(path, learner, passes=3)
    assert state.rows_done == 1200
    with pytest.raises(
        SourceError, match=r"t.csv: has changed since the pass before, of 400 rows: (the values|401|399)"
    ):
        train(path, learner, passes=3, change=CHANGED[what])
    write(tmp_path / "t.csv", BODY)
    if "target" not in what:  # labels, scales and features do not depend on it
        with pytest.raises(SourceError, match=r"t.csv: has changed since the pass before, of 400 rows: "):
            train(path, learner, scale="max-abs", change=CHANGED[what])


def test_rows_that_change_between_passes_are_noticed_after_a_resume(tmp_path):
    path = write(tmp_path / "t.csv", BODY)
    plan = Plan(path, "y", choose_learners(["perceptron"]), {"chunk": 64}, passes=2)
    for stop in (100, 399, 450, 799):
        for change in (None, CHANGED["value"]):
            write(tmp_path / "t.csv", BODY)
            state = start(plan)
            for _ in learn_chunks(state):
                if state.rows_done >= stop:
                    break
            kept = json.loads(json.dumps({k: state.to_checkpoint()[k] for k in ("checksum", "earlier")}))
            again = TrainingState.resumed(plan, state.to_checkpoint() | kept)
            if change is None:
                for _ in learn_chunks(again):
                    pass
                assert again.rows_done == 800
            elif stop == 450:  # the row that changes is still to come
                write(tmp_path / "t.csv", change)
                with pytest.raises(SourceError, match="has changed since the pass before"):
                    list(learn_chunks(again))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_callable_that_gives_other_rows_is_noticed(kind):
    rng = np.random.default_rng(0)
    X, y, weight = rng.random((30, 4)), rng.random(30), rng.random(30)

    def same(rows, y=y, weight=weight, size=7):
        rows = sparse.csr_matrix(rows) if kind == "sparse" else rows
        return lambda: ((rows[a : a + size], y[a : a + size], weight[a : a + size]) for a in range(0, 30, size))

    def changed(what):
        other, order, w = X.copy(), np.arange(30), weight.copy()
        if what == "value":
            other[20, 2] += 1e-9
        elif what == "weight":
            w[3] = 2.0
        else:
            order[[3, 4]] = [4, 3]
        return same(other[order], y, w)

    data = Data.from_chunks(same(X))
    data._source = same(X, size=11)
    data.margins(np.ones(4))
    for what in ("value", "weight", "order"):
        data = Data.from_chunks(same(X))
        data._source = changed(what)
        with pytest.raises(ValueError, match="the source gave other rows on a second reading"):
            data.margins(np.ones(4))


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("coded", [False, True])
def test_views_of_text_under_missing_values_are_not_read(tmp_path, strict, coded):
    """Whatever lies there: validation does not look at it, and a cast that did would end the process."""
    words = pa.array(["p", None, "q" * 20, None, "p", ""], pa.string_view())
    there, views, *texts = words.buffers()
    views = np.frombuffer(views, np.uint64).copy()
    views[2:4] = views[6:8] = 0xFFFFFFFFFFFFFFF0
    words = pa.Array.from_buffers(pa.string_view(), 6, [there, pa.py_buffer(views), *texts])
    words.validate(full=True)
    if coded:
        words = pa.DictionaryArray.from_arrays(pa.array([0, 0, 2, 2, 4, 5], pa.int32()), words)
    path = tmp_path / "rows.arrow"
    table = pa.table({"f": words, "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "y": [1.0, 0.0] * 3})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    options = (
        {"categorical": ["f"], "rejects": True} if strict else {"missing": "indicator", "types": {"f": "category"}}
    )
    source = open_source(path, "y", strict=strict, **options)
    assert sum(len(chunk) + len(chunk.rejects) for chunk in source.chunks()) == 6
    assert {"f=p", f"f={'q' * 20}"} <= set(source.names)
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    parsed = parse_arrow(stream.getvalue().to_pybytes(), Limits())
    assert parsed["f"].to_pylist() == (["p", "p", "q" * 20, "q" * 20, "p", ""] if coded else words.to_pylist())
