"""Sources: the same rows bit for bit from every form, any chunk size, going on, and one line for every bad input."""

import gzip
import hashlib
import io
import json
import os
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from commands import python
from conftest import nightly
from hindsight.sources import SampleSource, SourceError, open_source, read_columns, streams, text
from hindsight.sources import parquet_arrow as tables
from hindsight.sources.sparse import max_columns

NAMES = ["a", "b c", "d"]


def read(data, target="y", **options):
    """All rows of a source: X (dense), y, weight, names, and the source itself."""
    source = open_source(data, target, **options)
    chunks = list(source.chunks())
    width = max(c.X.shape[1] for c in chunks)

    def dense(X):
        X = X.toarray() if sparse.issparse(X) else X
        return np.hstack([X, np.zeros((len(X), width - X.shape[1]))])

    X = np.vstack([dense(c.X) for c in chunks])
    for c in chunks:
        if source.kind == "sparse":
            assert sparse.issparse(c.X)
            for t in range(len(c)):
                assert (np.diff(c.X.indices[c.X.indptr[t] : c.X.indptr[t + 1]]) > 0).all()
        else:
            assert c.X.flags.c_contiguous
    y = None if chunks[0].y is None else np.concatenate([c.y for c in chunks])
    weight = None if chunks[0].weight is None else np.concatenate([c.weight for c in chunks])
    firsts = np.cumsum([0, *map(len, chunks)])[:-1]
    assert [c.first for c in chunks] == firsts.tolist()
    return X, y, weight, list(source.names), source


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


@pytest.fixture
def dense(tmp_path):
    """The same table in every dense form."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((70, 3)) * 10.0 ** rng.integers(-20, 20, (70, 3))
    X[:3] = [[0.0, -0.0, 1.0], [0.1, 1 / 3, 5e-324], [1e22, 123456789.125, -1e308]]
    y = rng.integers(-5, 5, 70).astype(float)
    w = rng.random(70)
    frame = {**dict(zip(NAMES, X.T, strict=True)), "y": y, "w": w}
    rows = [",".join([*NAMES, "y", "w"])]
    rows += [",".join(map(repr, [*x, t, c])) for x, t, c in zip(X.tolist(), y.tolist(), w.tolist(), strict=True)]
    body = "\n".join(rows) + "\n"
    table = pa.table(frame)
    write(tmp_path / "t.csv", body)
    write(tmp_path / "t.tsv", body.replace(",", "\t"))
    write(tmp_path / "crlf.csv", body.replace("\n", "\r\n"))
    write(tmp_path / "bom.csv", b"\xef\xbb\xbf" + body.encode())
    write(tmp_path / "quoted.csv", re.sub(r"[^,\n]+", r'"\g<0>"', body))
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(body.encode()))
    (tmp_path / "t.csv.zst").write_bytes(pa.compress(body.encode(), "zstd", asbytes=True))
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=16)
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=9)
    with pa.OSFile(str(tmp_path / "t.arrows"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=9)
    np.savez(tmp_path / "t.npz", X=X, y=y, w=w)
    (tmp_path / "parts").mkdir()
    for k, (a, b) in enumerate(((0, 20), (20, 21), (21, 70))):
        pq.write_table(table.slice(a, b - a), tmp_path / "parts" / f"part-{k}.parquet")
    (tmp_path / "csvs").mkdir()
    for k, (a, b) in enumerate(((0, 20), (20, 21), (21, 70))):
        write(tmp_path / "csvs" / f"{k}.csv", "\n".join([rows[0], *rows[a + 1 : b + 1]]))
    memory = {
        "pandas": pd.DataFrame(frame), "polars": pl.DataFrame(frame), "arrow": table, "beside": (X, y, w),
        "fortran": (np.asfortranarray(X), y, w),
    }  # fmt: skip
    return X, y, w, tmp_path, memory


DENSE_FILES = [
    *(
        "t.csv",
        "t.tsv",
        "crlf.csv",
        "bom.csv",
        "quoted.csv",
        "t.csv.gz",
        "t.csv.zst",
        "t.parquet",
        "t.arrow",
        "t.arrows",
    ),
    *("t.npz", "parts", "csvs"),
]


@pytest.mark.parametrize("chunk", [1, 100, 1000, 1 << 20])
@pytest.mark.parametrize("form", [*DENSE_FILES, "pandas", "polars", "arrow", "beside", "fortran"])
def test_dense_forms_give_the_same_bits(dense, form, chunk):
    X, y, w, folder, memory = dense
    got = read(memory.get(form, folder / form), weight="w", chunk=chunk)
    for value, want in zip(got, (X, y, w), strict=False):
        assert value.tobytes() == want.tobytes()
    assert got[3] == (["1", "2", "3"] if form in ("t.npz", "beside", "fortran") else NAMES)


def test_npy_columns_are_numbered_and_float32_stays(dense, tmp_path):
    X, y, w, *_ = dense
    np.save(tmp_path / "t.npy", np.column_stack([y, X, w]))
    got = read(tmp_path / "t.npy", "1", weight="5")
    assert got[0].tobytes() == X.tobytes() and got[1].tobytes() == y.tobytes() and got[2].tobytes() == w.tobytes()
    assert got[3] == ["2", "3", "4"]
    chunk = next(open_source((np.ones((70, 2), np.float32), y), "y").chunks())
    assert chunk.X.dtype == np.float32
    fields = np.zeros(3, [("x", "f8"), ("y", "i4")])
    fields["x"] = [1, 2, 3]
    np.save(tmp_path / "s.npy", fields)
    assert read(tmp_path / "s.npy")[0].tolist() == [[1.0], [2.0], [3.0]]


SPARSE = [
    {"1": 0.5, "2": 1e-300, "7": -3.0},
    {"2": 1 / 3},
    {},
    {"1": 2.0, "7": 0.1, "9": 12345678901234567890.0},
]
LABELS = [1.0, -1.0, 1.0, 2.5]


@pytest.fixture
def sparse_forms(tmp_path):
    order = ["1", "2", "7", "9"]
    matrix = np.array([[row.get(name, 0.0) for name in order] for row in SPARSE])
    lines = zip(LABELS, SPARSE, strict=True)
    write(tmp_path / "t.svm", "".join(f"{y} {' '.join(f'{k}:{v!r}' for k, v in r.items())}\n" for y, r in lines))
    lines = zip(LABELS, SPARSE, strict=True)
    write(tmp_path / "t.vw", "".join(f"{y} | {' '.join(f'{k}:{v!r}' for k, v in r.items())}\n" for y, r in lines))
    lines = zip(LABELS, SPARSE, strict=True)
    write(tmp_path / "t.jsonl", "".join(json.dumps({**r, "y": y}) + "\n" for y, r in lines))
    np.savez(tmp_path / "t.npz", y=LABELS, **_saved(tmp_path, sparse.csr_matrix(matrix)))
    memory = {
        "csr": (sparse.csr_matrix(matrix), LABELS),
        "csc": (sparse.csc_matrix(matrix), LABELS),
        "dicts": (SPARSE, LABELS),
    }
    return matrix, order, tmp_path, memory


def _saved(folder, X):
    sparse.save_npz(folder / "m.npz", X)
    with np.load(folder / "m.npz") as saved:
        return dict(saved)


@pytest.mark.parametrize("chunk", [1, 30, 1 << 20])
@pytest.mark.parametrize("form", ["t.svm", "t.vw", "t.jsonl", "dicts", "csr", "csc", "t.npz"])
def test_sparse_forms_give_the_same_bits(sparse_forms, form, chunk):
    matrix, order, folder, memory = sparse_forms
    unnamed = form in ("csr", "csc", "t.npz")
    X, y, _, names, _ = read(memory.get(form, folder / form), chunk=chunk, features=None if unnamed else order)
    assert X.tobytes() == matrix.tobytes() and y.tolist() == LABELS
    assert names == (["1", "2", "3", "4"] if unnamed else order)


@pytest.mark.parametrize("form", ["t.vw", "t.jsonl", "dicts"])
def test_names_are_numbered_by_first_sight(sparse_forms, form):
    matrix, order, folder, memory = sparse_forms
    X, _, _, names, _ = read(memory.get(form, folder / form), chunk=7)
    assert names == order and X.tobytes() == matrix.tobytes()


def test_svmlight_columns_are_indices(sparse_forms):
    matrix, _, folder, _ = sparse_forms
    X, _, _, names, _ = read(folder / "t.svm")
    assert names == [str(j) for j in range(1, 10)] and X[:, [0, 1, 6, 8]].tobytes() == matrix.tobytes()
    X, _, _, names, _ = read(folder / "t.svm", zero_based=True)
    assert names == [str(j) for j in range(10)] and X[:, [1, 2, 7, 9]].tobytes() == matrix.tobytes()
    X, _, _, names, _ = read(folder / "t.svm", ignore=["2", "3"])
    assert (
        "2" not in names and X[:, [names.index(k) for k in ("1", "7", "9")]].tobytes() == matrix[:, [0, 2, 3]].tobytes()
    )


# --- categories, labels, missing values -------------------------------------------------------------------------------

CITIES = "x,city,y,size\n1,Oslo,yes,10\n2,Rome,no,20\n3,Oslo,yes,20\n4, Bonn ,no,10\n"


@pytest.mark.parametrize("chunk", [1, 20, 1 << 20])
def test_categories_become_indicators_in_order_of_first_sight(tmp_path, chunk):
    write(tmp_path / "t.csv", CITIES)
    pd.read_csv(tmp_path / "t.csv").to_parquet(tmp_path / "t.parquet")
    for path in ("t.csv", "t.parquet"):
        X, y, _, names, source = read(tmp_path / path, categorical=["city", "size"], chunk=chunk)
        assert names == ["x", "city=Oslo", "size=10", "city=Rome", "size=20", "city=Bonn"]
        assert source.kind == "sparse" and y.tolist() == ["yes", "no", "yes", "no"]
        assert X.tolist() == [[1, 1, 1, 0, 0, 0], [2, 0, 0, 1, 1, 0], [3, 1, 0, 0, 1, 0], [4, 0, 1, 0, 0, 1]]
        assert read(tmp_path / path, categorical="auto", chunk=chunk)[3] == [
            "x",
            "size",
            "city=Oslo",
            "city=Rome",
            "city=Bonn",
        ]


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_names_in_a_skipped_row_do_not_depend_on_chunks(tmp_path, chunk):
    path = write(tmp_path / "t.csv", "c,n,y\nu,1,1\nv,,2\n")
    assert read(path, categorical=["c"], missing="skip", chunk=chunk)[3] == ["n", "c=u", "c=v"]


def test_a_column_without_a_name_may_have_categories(tmp_path):
    X, _, _, names, _ = read(write(tmp_path / "t.csv", ",x,y\nu,1,2\nv,3,4\n"), categorical=[""])
    assert names == ["x", "=u", "=v"] and X.tolist() == [[1, 1, 0], [3, 0, 1]]


def test_quoted_fields(tmp_path):
    path = write(tmp_path / "t.csv", 'k,y\r\n"a ""b""\nc",1\r\n\r\nd,"2"\r\n')
    source = open_source(path, "y", categorical=["k"])
    (chunk,) = source.chunks()
    assert source.names == ['k=a "b"\nc', "k=d"] and chunk.y.tolist() == [1.0, 2.0]
    assert [chunk.place(0), chunk.place(1)] == [f"{path}, line 2", f"{path}, line 5"]
    assert chunk.raw(0) == '"a ""b""\nc",1' and chunk.raw(1) == 'd,"2"'


def test_labels(tmp_path):
    path = write(tmp_path / "t.csv", "x,y\n1,1\n2,1.0\n3,+1\n4,no\n")
    assert read(path)[1].tolist() == ["1", "1", "1", "no"]
    assert read(path, chunk=4, labels=True)[1].tolist() == ["1", "1", "1", "no"]
    with pytest.raises(SourceError, match=r"t.csv, line 5, column 'y': 'no' is not a number \(row: '4,no'\)$"):
        read(path, labels=False)
    path = write(tmp_path / "t.csv", "x,y\n1,nan\n2,NA\n")  # a label is any text but "nan", which is no number
    assert read(path, labels=True, missing="skip")[1].tolist() == ["NA"]
    path = write(tmp_path / "t.svm", "+1 1:1\n-1 1:1\n")
    assert read(path)[1].tolist() == [1.0, -1.0] and read(path, labels=True)[1].tolist() == ["1", "-1"]
    assert read(path, None)[1] is None


def test_missing_values_by_the_stated_rule(tmp_path):
    path = write(tmp_path / "t.csv", "a,b,y\n1,,0\nNA,2,1\n3,4,1\n")
    pl.DataFrame({"a": [1.0, None, 3.0], "b": [np.nan, 2.0, 4.0], "y": [0, 1, 1]}).write_parquet(tmp_path / "t.parquet")
    for form, place in ((path, "line 2"), (str(tmp_path / "t.parquet"), "row 0")):
        with pytest.raises(SourceError, match=rf"{place}, column 'b': the value is missing"):
            read(form)
        assert read(form, missing="zero")[0].tolist() == [[1, 0], [0, 2], [3, 4]]
        assert read(form, missing="skip")[0].tolist() == [[3, 4]]
        _, _, _, _, source = read(form, rejects=True)
        assert source.rejected == 2
    path = write(tmp_path / "u.csv", "a,y\n1,\n")
    for rule in ("error", "zero"):
        with pytest.raises(SourceError, match="line 2, column 'y': the target is missing"):
            read(path, missing=rule)


def test_selection_and_order_of_features(dense):
    X, _, _, folder, memory = dense
    for form in ("t.csv", "t.parquet", "pandas"):
        data = memory.get(form, folder / form)
        assert read(data, features=["d", "a"])[0].tobytes() == np.ascontiguousarray(X[:, [2, 0]]).tobytes()
        assert read(data, ignore=["b c", "w"])[3] == ["a", "d"]


def test_carriage_returns_alone_end_records(tmp_path):
    path = write(tmp_path / "t.csv", "x,y\n" + "".join(f"{k},{k}\r" for k in range(300)))
    source = open_source(path, "y", chunk=64)
    assert [len(chunk) for chunk in source.chunks()] and max(len(chunk) for chunk in source.chunks()) < 40
    assert read(path, chunk=64)[1].tolist() == list(range(300))


def test_without_a_header(tmp_path):
    path = write(tmp_path / "t.csv", "1,2,3\n4,5,6\n")
    X, y, _, names, _ = read(path, "3", header=False)
    assert X.tolist() == [[1, 2], [4, 5]] and y.tolist() == [3, 6] and names == ["1", "2"]
    assert read(write(tmp_path / "s.csv", "a;y\n1;2\n"), separator=";")[0].tolist() == [[1.0]]


# --- hashing ----------------------------------------------------------------------------------------------------------


def fnv(name):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return h ^ h >> 32


def test_hash_is_the_stated_one_and_counts_collisions(tmp_path):
    names = [f"f{k}" for k in range(40)]
    vw = write(tmp_path / "t.vw", "".join(f"1 |n {name}:{k + 1}\n" for k, name in enumerate(names)))
    X, *_, source = read(vw, hash_bits=5)
    want = np.zeros((40, 32))
    for k, name in enumerate(names):
        want[k, fnv(f"n^{name}") % 32] = k + 1
    assert X.tolist() == want.tolist() and len(source.names) == 32
    shared = sum(len({n for n in names if fnv(f"n^{n}") % 32 == c}) > 1 for c in range(32))
    assert source.collisions == shared > 0
    svm = write(tmp_path / "t.svm", "1 3:1 500:2 99999999999:3\n")
    X, *_, source = read(svm, hash_bits=20)
    assert {fnv(k) % 2**20: v for k, v in (("3", 1.0), ("500", 2.0), ("99999999999", 3.0))} == dict(
        zip(np.nonzero(X[0])[0].tolist(), X[0][np.nonzero(X[0])].tolist(), strict=True)
    )
    assert source.collisions == 0
    js = write(tmp_path / "t.jsonl", '{"f": 2, "y": 1}\n')
    assert read(js, hash_bits=8)[0][0, fnv("f") % 256] == 2.0


# --- going on, digests, positions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form", ["t.csv", "t.csv.gz", "t.csv.zst", "csvs", "parts", "t.parquet", "t.arrow", "t.npz", "pandas", "beside"]
)
@pytest.mark.parametrize("digest", [False, True])
def test_going_on_from_every_position(dense, form, digest):
    X, _, _, folder, memory = dense
    data = memory.get(form, folder / form)
    make = lambda: open_source(data, "y", weight="w", chunk=200, digest=digest)  # noqa: E731
    for chunk in make().chunks():
        kept = json.loads(json.dumps(chunk.position))
        end = chunk.first + len(chunk)
        rest = list(make().chunks(start=kept))
        got = np.vstack([c.X for c in rest]) if rest else X[:0]
        assert got.tobytes() == X[end:].tobytes() and (not rest or rest[0].first == end)


@pytest.mark.parametrize("form", ["t.svm", "t.vw", "t.jsonl", "dicts"])
def test_going_on_keeps_the_names(sparse_forms, form):
    matrix, order, folder, memory = sparse_forms
    data = memory.get(form, folder / form)
    for chunk in (source := open_source(data, "y", chunk=10, digest=form != "dicts")).chunks():
        state, position = json.loads(json.dumps([source.state(), chunk.position]))
        other = open_source(data, "y", chunk=1 << 20)
        other.restore(state)
        assert list(other.names) == list(source.names)
        for rest in other.chunks(start=position):
            want = matrix[rest.first :]
            columns = [int(name) - 1 for name in order] if form == "t.svm" else slice(None)
            assert rest.X.toarray()[:, columns].tobytes() == np.ascontiguousarray(want).tobytes()


def test_state_stops_at_the_chunk_given(tmp_path):
    path = write(tmp_path / "t.vw", "1 | a\n1 | b\n1 | c\n")
    source = open_source(path, "y", chunk=4)
    chunks = 0
    for chunk in source.chunks():
        names = ["a", "b", "c"][: chunk.first + len(chunk)]
        assert source.names == source.state()["names"] == names and chunk.X.shape[1] == len(names)
        chunks += 1
    assert chunks > 1


@pytest.mark.parametrize("form", ["t.csv", "t.csv.gz", "csvs", "t.parquet", "t.arrow"])
def test_a_changed_prefix_is_refused(dense, form):
    *_, folder, _ = dense
    source = open_source(folder / form, "y", chunk=2000, digest=True)
    chunks = list(source.chunks())
    path = folder / form if form != "csvs" else folder / "csvs" / "0.csv"
    body = path.read_bytes()
    if form == "t.csv.gz":
        path.write_bytes(gzip.compress(gzip.decompress(body).replace(b"-", b"+", 1)))
    else:
        path.write_bytes(body[:60] + bytes([body[60] ^ 1]) + body[61:])
    with pytest.raises(SourceError, match=r"has changed since"):
        list(open_source(folder / form, "y", chunk=2000, digest=True).chunks(start=chunks[-1].position))


def test_digest_is_the_sha_256_of_the_file(dense):
    *_, folder, _ = dense
    source = open_source(folder / "t.csv", "y", chunk=100, digest=True)
    for _ in source.chunks():
        pass
    assert source.digest == hashlib.sha256((folder / "t.csv").read_bytes()).hexdigest()


@nightly(but=["100", "1048576"])
@pytest.mark.parametrize("chunk", [20, 100, 1 << 20])
def test_digest_of_a_folder_goes_through_its_files_in_order(tmp_path, chunk):
    whole = hashlib.sha256()
    for name, rows in (("a.csv", 300), ("b.csv", 5), ("c.csv", 300)):
        text = "x,y\r\n" + "".join(f"{name.encode()[0] + t},{t}\r\n" for t in range(rows))
        (tmp_path / name).write_bytes(text.encode())
        whole.update(text.encode())
    source = open_source(tmp_path, "y", chunk=chunk, digest=True)
    positions = [chunk.position for chunk in source.chunks()]
    assert source.digest == positions[-1]["digest"] == whole.hexdigest()
    for position in positions[:-1]:
        assert len(list(open_source(tmp_path, "y", chunk=chunk, digest=True).chunks(start=position)))


def test_appended_rows_are_read_on(tmp_path):
    path = tmp_path / "t.csv"
    write(path, "x,y\n1,2\n")
    (chunk,) = open_source(path, "y", digest=True).chunks()
    with path.open("a") as file:
        file.write("3,4\n")
    (more,) = open_source(path, "y", digest=True).chunks(start=chunk.position)
    assert more.X.tolist() == [[3.0]] and more.first == 1 and more.place(0) == f"{path}, line 3"


def test_progress_reaches_the_size(dense):
    *_, folder, _ = dense
    for form in ("t.csv", "t.csv.gz", "csvs", "t.parquet", "parts"):
        source = open_source(folder / form, "y", chunk=500)
        read = [chunk.read for chunk in source.chunks()]
        assert read == sorted(read) and read[-1] == source.size


# --- standard input ---------------------------------------------------------------------------------------------------


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x,y\n1,2\n3,4\n")))
    X, y, *_, source = read("-", format="csv", chunk=5)
    assert X.tolist() == [[1], [3]] and y.tolist() == [2, 4] and not source.reread and source.size is None
    with pytest.raises(SourceError, match=r"standard input has no name to show its format"):
        open_source("-", "y")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x,y\n1,2\n")))
    source = open_source("-", "y", format="csv")
    with pytest.raises(SourceError, match=r"standard input cannot be read again"):
        list(source.chunks(start={"file": 0, "offset": 4}))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"x,y\n1,2\n"))))
    assert read("-", format="csv")[0].tolist() == [[1.0]]


def test_a_long_pipe_does_not_grow_the_process():
    code = """
        import resource, sys, threading, os
        from hindsight.sources import open_source
        def feed(out):
            block = b"".join(b"%d,0.25,-1e-3,%d\\n" % (k, k % 7) for k in range(20000))
            with os.fdopen(out, "wb") as file:
                for _ in range(480):
                    file.write(block)
        r, w = os.pipe()
        os.dup2(r, 0)
        threading.Thread(target=feed, args=(w,), daemon=True).start()
        source = open_source("-", "4", format="csv", header=False)
        now = lambda: int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
        rows, top = 0, 0
        for chunk in source.chunks():
            if rows == 0:
                first = now()
            rows += len(chunk)
            top = max(top, now())
        print(rows, (top - first) / 1e6)
    """
    rows, grown = python(code).split()
    assert int(rows) == 9_600_000 and float(grown) < 100.0  # a few chunks; all values are 300 MB


# --- bad input --------------------------------------------------------------------------------------------------------

BAD = {
    "empty.csv": (b"", "empty.csv: the file is empty"),
    "head.csv": (b"x,y\n", "head.csv: there is no row"),
    "twice.csv": (b"x,x,y\n1,2,3\n", "column 'x' appears twice in the header"),
    "target.csv": (b"x,Y\n1,2\n", "there is no column 'y' (columns: x, Y)"),
    "alone.csv": (b"y\n1\n", "there is no column besides the target 'y'"),
    "text.csv": (b"x,y\n1,2\nab,3\n", "text.csv, line 3, column 'x': 'ab' is not a number (row: 'ab,3')"),
    "few.csv": (b"x,z,y\n1,2,3\n1,2\n", "few.csv, line 3: 2 fields, but there are 3 columns (row: '1,2')"),
    "many.csv": (b"x,y\n1,2,3\n", "many.csv, line 2: 3 fields, but there are 2 columns (row: '1,2,3')"),
    "open.csv": (b'x,y\n1,"2\n3,4\n', "open.csv, line 2: a quote is opened but not closed"),
    "after.csv": (b'x,y\n"1"2,3\n', "after.csv, line 2: text follows a closing quote"),
    "inf.csv": (b"x,y\ninf,2\n", "inf.csv, line 2, column 'x': 'inf' is not finite"),
    "huge.csv": (b"x,y\n1e999,2\n", "huge.csv, line 2, column 'x': '1e999' is not finite"),
    "latin.csv": (b"x\xe9,y\n1,2\n", "latin.csv, line 1: byte 0xe9 is not UTF-8"),
    "bytes.csv": (b"x,y\n\xff1,2\n", "bytes.csv, line 2, column 'x': '\\\\xff1' is not a number"),
    "wide.csv": ("x,y\n1,2\n".encode("utf-16"), "wide.csv: this is UTF-16; save it as UTF-8"),
    "zero.svm": (b"1 0:1\n", "zero.svm, line 1: the index of '0:1' is too low"),
    "big.svm": (
        b"1 9223372036854775808:1\n",
        f"big.svm, line 1: the index of '9223372036854775808:1' is above {max_columns():,}, the most that memory has",
    ),
    "over.svm": (b"1 2147483648:1\n", f"over.svm, line 1: the index of '2147483648:1' is above {max_columns():,}"),
    "order.svm": (b"1 3:1 2:1\n", "order.svm, line 1: the index of '2:1' is not above the one before it"),
    "repeat.svm": (
        b"# head\n1 3:1 3:1\n",
        "repeat.svm, line 2: the index of '3:1' appears twice in the row (row: '1 3:1 3:1')",
    ),
    "pair.svm": (b"1 3:1 x\n", "pair.svm, line 1: 'x' is not index:value"),
    "value.svm": (b"1 3:1e\n", "value.svm, line 1, column '3': '1e' is not a finite number"),
    "nan.svm": (b"1 3:nan\n", "nan.svm, line 1, column '3': 'nan' is not a finite number"),
    "label.svm": (b"3:1\n", "label.svm, line 1: there is no label"),
    "empty.svm": (b"\n# nothing\n", "empty.svm: there is no row"),
    "label.vw": (b"| a b\n", "label.vw, line 1: there is no label"),
    "tag.vw": (b"1 | a\n1|f b\n", "tag.vw, line 2: there is no label (row: '1|f b')"),
    "bar.vw": (b"1 a b\n", "bar.vw, line 1: there is no '|' before the features"),
    "value.vw": (b"1 | a:b\n", "value.vw, line 1, column 'a': 'b' is not a finite number"),
    "name.vw": (b"1 | :3\n", "name.vw, line 1: ':3' has no name before the colon"),
    "weight.vw": (b"1 -2 | a\n", "weight.vw, line 1: importance -2.0 must be at least 0"),
    "base.vw": (b"1 1 0.5 | a\n", "base.vw, line 1: '0.5' is a third number before the '|'"),
    "over.vw": (b"1 |n:2 a:1 b:1e308\n", "over.vw, line 1, column 'n^b': the value overflows"),
    "space.vw": (b"1 |n:x a\n", "space.vw, line 1: 'n:x': the value of a namespace is not a number"),
    "broken.jsonl": (b'{"x": 1, "y": 2}\n{"x": \n', "broken.jsonl, line 2: this is not JSON"),
    "list.jsonl": (b"[1]\n", "list.jsonl, line 1: this is not a JSON object (row: '[1]')"),
    "twice.jsonl": (b'{"x": 1, "x": 2, "y": 3}\n', "twice.jsonl, line 1, column 'x': 'x' appears twice in the row"),
    "nested.jsonl": (
        b'{"x": {"z": 1}, "y": 3}\n',
        "nested.jsonl, line 1, column 'x': dict \"{'z': 1}\" is not a number",
    ),
    "text.jsonl": (b'{"x": "a", "y": 3}\n', "text.jsonl, line 1, column 'x': 'a' is not a number"),
    "null.jsonl": (b'{"x": null, "y": 3}\n', "null.jsonl, line 1, column 'x': the value is missing"),
    "target.jsonl": (b'{"x": 1}\n', "target.jsonl, line 1, column 'y': the target is missing"),
    "nan.jsonl": (b'{"x": NaN, "y": 3}\n', "nan.jsonl, line 1, column 'x': the value is missing"),
    "cut.csv.gz": (
        gzip.compress(b"x,y\n" + b"1,2\n" * 999)[:-20],
        "cut.csv.gz: the compressed data is damaged or cut short",
    ),
    "false.parquet": (b"PAR1 not at all PAR1", "false.parquet: this is not a valid Parquet file"),
    "false.arrow": (b"ARROW1\0\0nonsense", "false.arrow: this is not a valid Arrow file"),
    "false.npy": (b"nonsense", "false.npy: "),
    "false.npz": (b"nonsense", "false.npz: "),
    "data.xyz": (b"1", "data.xyz: the name does not show the format; choose one of csv, tsv"),
}


@pytest.mark.parametrize("chunk", [1, 1 << 20])
@pytest.mark.parametrize("name", BAD)
def test_bad_input_has_an_answer_of_one_line(tmp_path, name, chunk):
    body, answer = BAD[name]
    with pytest.raises(SourceError) as caught:
        read(write(tmp_path / name, body), chunk=chunk)
    message = str(caught.value)
    assert answer in message and "\n" not in message and message.startswith(str(tmp_path))


def test_paths_that_cannot_be_read(tmp_path, monkeypatch):
    with pytest.raises(SourceError, match=r"none.csv: No such file or directory$"):
        open_source(tmp_path / "none.csv", "y")
    with pytest.raises(SourceError, match=r": a folder without data files$"):
        open_source(tmp_path, "y")
    path = write(tmp_path / "secret.csv", "x,y\n1,2\n")

    def refuse(*_args, **_options):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("builtins.open", refuse)  # root may read anything
    with pytest.raises(SourceError, match=r"secret.csv: Permission denied$"):
        open_source(path, "y")
    monkeypatch.undo()
    write(tmp_path / "other.vw", "1 | a\n")
    with pytest.raises(SourceError, match=r"a folder of several formats \(csv, vw\)"):
        open_source(tmp_path, "y")
    with pytest.raises(SourceError, match=r"there is no format 'cvs'; did you mean 'csv'\?"):
        open_source(path, "y", format="cvs")
    with pytest.raises(SourceError, match=r"there is no column 'yy'; did you mean 'y'\?"):
        open_source(path, "yy")


def test_bombs_are_capped(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "FREE", 1 << 20)
    monkeypatch.setattr(tables, "FREE", 1 << 20)
    bomb = write(tmp_path / "bomb.csv.gz", gzip.compress(b"x,y\n" + b"1,2\n" * 4_000_000))
    monkeypatch.setattr(streams, "RATIO", 100)
    with pytest.raises(SourceError, match=r"bomb.csv.gz: expands to more than 100 times its size \(beyond 1 MiB\)"):
        read(bomb)
    zst = write(tmp_path / "bomb.csv.zst", pa.compress(b"x,y\n" + b"1,2\n" * 4_000_000, "zstd", asbytes=True))
    with pytest.raises(SourceError, match=r"bomb.csv.zst: expands to more than 100 times its size"):
        read(zst)
    monkeypatch.setattr(tables, "MAX_EXPANSION", 1000)
    column = pa.array(np.zeros(5_000_000, np.int8))
    pq.write_table(pa.table({"x": column, "y": column}), tmp_path / "bomb.parquet")
    assert (tmp_path / "bomb.parquet").stat().st_size < 42_000
    with pytest.raises(SourceError, match=r"bomb.parquet: .* bytes that expand to 80,000,000, more than 1,000 times"):
        open_source(tmp_path / "bomb.parquet", "y")
    line = write(tmp_path / "line.csv", b"x,y\n" + b"1" * 5_000_000)
    monkeypatch.setattr(text, "MAX_RECORD", 1 << 20)
    with pytest.raises(SourceError, match=r"line.csv, line 2: longer than 1 MiB"):
        read(line)


@pytest.mark.parametrize("chunk", [1, 30, 1 << 20])
def test_rejects_are_listed_and_the_rest_is_read(tmp_path, chunk):
    path = write(tmp_path / "t.csv", "x,y\n1,2\nab,3\n4\n5,6\n7,\n")
    source = open_source(path, "y", rejects=True, chunk=chunk)
    chunks = list(source.chunks())
    rejects = [reject for c in chunks for reject in c.rejects]
    assert [(r.line, r.column, r.reason, r.raw) for r in rejects] == [
        (3, "x", "'ab' is not a number", "ab,3"),
        (4, "", "1 field, but there are 2 columns", "4"),
        (6, "y", "the target is missing", "7,"),
    ]
    assert np.vstack([c.X for c in chunks]).tolist() == [[1], [5]] and source.rejected == 3
    assert [c.place(i) for c in chunks for i in range(len(c))] == [f"{path}, line 2", f"{path}, line 5"]
    path = write(tmp_path / "t.svm", "1 1:1\n2 1:x\n3 2:1 1:1\n4 1:4\n")
    source = open_source(path, "y", rejects=True, chunk=chunk)
    chunks = list(source.chunks())
    assert [r.line for c in chunks for r in c.rejects] == [2, 3]
    assert np.concatenate([c.y for c in chunks]).tolist() == [1, 4]


def test_errors_come_after_the_rows_before_them(tmp_path):
    path = write(tmp_path / "t.csv", "x,y\n1,2\n3,4\nz,5\n")
    seen = []
    with pytest.raises(SourceError, match="line 4"):
        seen.extend(len(chunk) for chunk in open_source(path, "y", chunk=4).chunks())
    assert sum(seen) == 2


def test_closing_early_stops_the_reader(tmp_path):
    import threading

    path = write(tmp_path / "t.csv", "x,y\n" + "1,2\n" * 10000)
    before = threading.active_count()
    chunks = open_source(path, "y", chunk=100).chunks()
    next(chunks)
    chunks.close()
    for thread in threading.enumerate():
        if thread.name == "source":
            thread.join(5)
    assert threading.active_count() == before


def test_columns_of_every_table(dense):
    X, y, _, folder, _ = dense
    for form in ("t.csv", "t.tsv", "t.csv.gz", "t.parquet", "t.arrow", "parts"):
        found = read_columns(str(folder / form), ["d", "y"])
        assert (
            found["d"].astype(float).tobytes() == X[:, 2].tobytes() and found["y"].astype(float).tolist() == y.tolist()
        )


def test_a_column_may_be_asked_for_twice_and_must_hold_numbers_or_text(tmp_path):
    path = write(tmp_path / "t.csv", "x,y\n1,2\n3,4\n")
    assert {name: values.tolist() for name, values in read_columns(str(path), ["x", "x"]).items()} == {"x": [1.0, 3.0]}
    pq.write_table(pa.table({"day": pa.array([1, 2], pa.date32())}), tmp_path / "t.parquet")
    with pytest.raises(SourceError, match="column 'day' holds date32"):
        read_columns(str(tmp_path / "t.parquet"), ["day"])


def test_options_as_a_table_resolved_them(tmp_path):
    path = write(tmp_path / "t.csv", "id,colour,x,y\n7,red,1,2\n")
    source = open_source(path, "y", ignore=["id"], categorical="auto")
    assert source.resolved_options() == {"features": ["x", "colour"], "ignore": [], "categorical": ["colour"]}
    assert open_source(np.eye(2), "2").resolved_options() == {}


def test_samples_are_one_chunk_and_resume_within_it():
    (chunk,) = SampleSource("sample:diabetes", None, False).chunks()
    assert len(chunk) == 442 and chunk.y.dtype == np.float64 and chunk.place(3) == "sample:diabetes, row 3"
    (rest,) = SampleSource("sample:diabetes", "progression", False).chunks(start={"row": 440, "rejected": 0})
    assert rest.X.tobytes() == chunk.X[440:].tobytes() and rest.place(1) == "sample:diabetes, row 441"
    assert not list(SampleSource("sample:diabetes", None, False).chunks(start=chunk.position))
    with pytest.raises(SourceError, match="target 'malignant' is not a number: choose a classifier"):
        list(SampleSource("sample:breast-cancer", None, False).chunks())
    with pytest.raises(SourceError, match="sample:digits: the target is 'digit', not 'y'"):
        SampleSource("sample:digits", "y", None)


def test_chunks_that_are_kept_do_not_change(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.random((4000, 3)).tolist()
    bodies = {
        "t.csv": "a,b,y\n" + "".join(f"{a},{b},{c}\n" for a, b, c in values),
        "t.svm": "".join(f"{c} 1:{a} 2:{b}\n" for a, b, c in values),
        "t.vw": "".join(f"{c} | b:{b} a:{a}\n" for a, b, c in values),
    }
    for name, body in bodies.items():
        path = write(tmp_path / name, body)
        kept, copies = [], []
        for chunk in open_source(path, "y", chunk=5000).chunks():
            parts = (chunk.X.data, chunk.X.indices, chunk.X.indptr) if name != "t.csv" else (chunk.X,)
            kept.append((*parts, chunk.y, chunk.raw))
            copies.append(([np.array(part) for part in (*parts, chunk.y)], chunk.raw(0)))
            del chunk, parts
        assert len(kept) > 10
        for (*arrays, raw), (wanted, line) in zip(kept, copies, strict=True):
            assert raw(0) == line and all((a == b).all() for a, b in zip(arrays, wanted, strict=True))


def test_rows_without_targets(tmp_path):
    for name, body in (
        ("t.vw", "| a:2 b\n1 | a:2 b\n"),
        ("t.svm", "1:2 2:1\n1 1:2 2:1\n"),
        ("t.jsonl", '{"a": 2, "b": 1}\n' * 2),
    ):
        X, y, *_ = read(write(tmp_path / name, body), None)
        assert y is None and X.tolist() == [[2, 1], [2, 1]]


def test_options_that_a_format_does_not_have(tmp_path):
    table, rows = write(tmp_path / "t.csv", "x,y\n1,2\n"), write(tmp_path / "t.svm", "1 1:1\n")
    for path, options, answer in (
        (table, {"hash_bits": 3}, "hash_bits is for sparse text and JSON lines"),
        (rows, {"weight": "w"}, "svmlight has no column of weights"),
        (rows, {"categorical": ["x"]}, "categorical columns are those of a table"),
        (rows, {"hash_bits": 3, "ignore": ["1"]}, "features and ignore need names"),
        (table, {"missing": "mean"}, "missing 'mean' is for tables that are not read strictly (strict=False)"),
        (table, {"hash_bits": 40}, "hash_bits must be between 1 and 31; got 40"),
        (table, {"weight": "y"}, "column 'y' cannot be both target and weight"),
    ):
        with pytest.raises(SourceError, match=re.escape(answer)):
            read(path, **options)


def test_opening_the_package_is_quick():
    code = "import hindsight.sources, sys; print(*sorted({'numba', 'pyarrow', 'scipy', 'sklearn'} & set(sys.modules)))"
    assert python(code) == "\n"


def test_a_full_folder_listing_is_sorted(tmp_path):
    for k in (2, 0, 1):
        write(tmp_path / f"{k}.svm", f"{k} 1:{k}\n")
    assert read(tmp_path)[1].tolist() == [0, 1, 2]
    assert read([tmp_path / "2.svm", tmp_path / "0.svm"])[1].tolist() == [2, 0]
    os.remove(tmp_path / "1.svm")
    write(tmp_path / ".hidden", "x")
    assert read(tmp_path)[1].tolist() == [0, 2]
