"""The compiled parsers against Python's float, scikit-learn, Vowpal Wabbit, and slow readers of the same grammar."""

import csv
import io
import math
import random
import struct
import sys
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import fuzz_parsers
from conftest import many, nightly
from hindsight.sources import SourceError, open_source
from hindsight.sources.names import NameDictionary
from hindsight.sources.parsers.bits import PAD
from hindsight.sources.parsers.numbers import parse_any_number
from hindsight.sources.parsers.sorting import sort_and_sum
from hindsight.sources.sparse import max_columns

QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def rows_of(path, body, target="y", **options):
    """Rows as (target, weight, {name: value}), and the rejected lines."""
    path.write_bytes(body)
    source = open_source(path, target, rejects=True, **options)
    rows, bad = [], []
    try:
        for chunk in source.chunks():
            X = chunk.X if source.kind == "sparse" else None
            for t in range(len(chunk)):
                weight = None if chunk.weight is None else chunk.weight[t]
                if X is None:
                    found = dict(zip(source.names, chunk.X[t].tolist(), strict=True))
                else:
                    a, b = X.indptr[t], X.indptr[t + 1]
                    names = source.names
                    found = {names[j]: v for j, v in zip(X.indices[a:b], X.data[a:b].tolist(), strict=True)}
                rows.append((chunk.y[t] if chunk.y is not None else None, weight, found, chunk.place(t), chunk.raw(t)))
            bad += [reject.line for reject in chunk.rejects]
    except SourceError as error:
        if not str(error).endswith(("there is no row", "the file is empty")):
            raise
    return rows, bad


def numbers(texts):
    """What the compiled reader makes of each text: value, length, and whether it decided."""
    body = b"\n".join(t.encode() for t in texts) + b"\n"
    buf = np.zeros(len(body) + PAD, np.uint8)
    buf[: len(body)] = np.frombuffer(body, np.uint8)
    starts = np.cumsum([0, *(len(t.encode()) + 1 for t in texts)])[:-1]
    return [parse_any_number(buf, int(a)) for a in starts]


def bits(v):
    return struct.pack("d", v)


def agrees(texts, most_slow):
    slow = 0
    for text, (value, _, decided) in zip(texts, numbers(texts), strict=True):
        if decided:
            assert bits(value) == bits(float(text)), text
        else:
            slow += 1
    assert slow <= most_slow * len(texts)


def test_numbers_equal_pythons_bit_for_bit():
    r = random.Random(0)
    agrees([repr(struct.unpack("d", struct.pack("Q", r.getrandbits(64)))[0]) for _ in range(20000)], 0.01)
    agrees([repr(r.gauss(0, 1) * 10 ** r.randint(-5, 5)) for _ in range(20000)], 0.0)
    agrees([f"{r.gauss(0, 9):.{r.randint(0, 17)}f}" for _ in range(20000)], 0.0)
    agrees([f"{r.choice('+-')}{r.getrandbits(r.randint(1, 64))}e{r.randint(-330, 309)}" for _ in range(20000)], 0.2)
    halves = []
    for _ in range(20000):  # halfway between two floats: ties to even
        odd, e = 2 * (r.getrandbits(53) | 1 << 52) + 1, r.randint(-8, 10)
        halves.append(str(odd << e) if e >= 0 else f"{odd * 5**-e}e{e}")
    agrees(halves, 0.5)


def test_short_numbers_take_the_short_way():
    texts = [f"{s}{d}.{f}" for s in ("", "-") for d in range(10) for f in ("0", "5", "123", "1234567", "12345678")]
    for text in texts:
        buf = np.zeros(len(text) + PAD, np.uint8)
        buf[: len(text)] = np.frombuffer(text.encode(), np.uint8)
        value, end, decided = parse_any_number(buf, 0)
        assert decided and end == len(text) and bits(value) == bits(float(text))


PIECES = [
    "",
    "0",
    "1",
    "-2.5",
    "+3e2",
    ".5",
    "5.",
    "1e400",
    "nan",
    "inf",
    "x",
    "1_0",
    " 7 ",
    "--1",
    "1e",
    "é",
    "12345678901234567890123",
]


def finite(text):
    return is_float(text) and math.isfinite(float(text))


# --- CSV --------------------------------------------------------------------------------------------------------------

FIELD = st.one_of(st.sampled_from([*PIECES, 'a"b', "a,b", "two\nlines", 'q""q']), st.floats(allow_nan=False).map(repr))


@QUICK
@given(
    st.lists(st.lists(FIELD, min_size=3, max_size=3), max_size=8),
    st.integers(1, 60),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
)
@example([["0", " 7 ", "0.0"]], 1, True, "\n")
def test_csv_is_read_as_pythons_csv_reads_it(tmp_path, rows, chunk, quote, end):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=end, quoting=csv.QUOTE_ALL if quote else csv.QUOTE_MINIMAL)
    writer.writerow(["a", "b", "y"])
    writer.writerows(rows)
    got, bad = rows_of(tmp_path / "t.csv", out.getvalue().encode(), chunk=chunk, categorical=["b"], labels=True)
    want, lines, line = [], [], 2
    reader = csv.reader(io.StringIO(out.getvalue(), newline=""))
    next(reader)
    for record in reader:
        a, b, y = (field.strip() for field in record)
        if finite(a) and b and y and (finite(y) or not is_float(y)):
            want.append((a, b, y))
        else:
            lines.append(line)
        line = reader.line_num + 1
    assert bad == lines and len(got) == len(want)
    for (y, _, found, _, _), (a, b, label) in zip(got, want, strict=True):
        assert bits(found.pop("a")) == bits(float(a)) and found == {f"b={b}": 1.0}
        assert y == (label if not is_float(label) else y) and (not is_float(label) or float(y) == float(label))


def is_float(text):
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # which only Python takes


# --- svmlight ---------------------------------------------------------------------------------------------------------


def slow_svmlight(body):
    """The grammar, row by row: (label, {index: value}) or None for a bad row."""
    for line, raw in enumerate(body.split(b"\n"), 1):
        raw = raw.split(b"#")[0]
        fields = raw.replace(b"\r", b" ").replace(b"\t", b" ").split(b" ")
        fields = [field.decode("utf-8", "backslashreplace") for field in fields if field]
        if not fields:
            continue
        try:
            if ":" in fields[0] or not finite(fields[0]):
                raise ValueError
            found, before = {}, 0
            for k, field in enumerate(fields[1:]):
                if k == 0 and field.startswith("qid:"):
                    continue
                index, value = field.split(":", 1)
                if not index.isascii() or not index.isdigit() or not finite(value):
                    raise ValueError
                if not before < int(index) <= max_columns():
                    raise ValueError
                before = int(index)
                found[index.lstrip("0")] = float(value)
        except ValueError:
            yield line, None
        else:
            yield line, (float(fields[0]), found)


SVM_FIELD = st.one_of(
    st.tuples(st.integers(0, 30), st.sampled_from(PIECES)).map(lambda p: f"{p[0]}:{p[1]}"),
    st.tuples(st.integers(1, 2**32), st.floats(allow_nan=False)).map(lambda p: f"{p[0]}:{p[1]!r}"),
    st.sampled_from(["qid:3", "#", "# x", ":", "3", "3:", ":3", "007:1", "99999999999999999999:1", "1:2:3", "\t"]),
)
SVM_ROW = st.tuples(st.sampled_from(["1", "-1", "+1", "0.5", "x", "", "nan", "1:1"]), st.lists(SVM_FIELD, max_size=5))


@QUICK
@given(st.lists(SVM_ROW, max_size=6), st.integers(1, 80), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_svmlight_is_read_by_its_grammar(tmp_path, rows, chunk, end, last):
    body = end.join(" ".join([label, *fields]) for label, fields in rows) + (end if last else "")
    got, bad = rows_of(tmp_path / "t.svm", body.encode(), chunk=chunk, labels=False)
    want = list(slow_svmlight(body.encode()))
    assert bad == [line for line, row in want if row is None]
    good = [row for _, row in want if row is not None]
    assert [(y, found) for y, _, found, _, _ in got] == good


@pytest.mark.parametrize("zero_based", [False, True])
def test_scikit_learn_agrees(tmp_path, zero_based):
    rng = np.random.default_rng(0)
    for k in range(20):
        X = rng.standard_normal((rng.integers(1, 40), rng.integers(1, 30))) * (rng.random() < 0.5 or 1e-9)
        X[rng.random(X.shape) < rng.random()] = 0.0
        y = rng.choice([-1.0, 1.0, 3.25], len(X))
        path = tmp_path / f"{k}.svm"
        comment = "made\nup" if k % 2 else None
        dump_svmlight_file(
            X, y, str(path), zero_based=zero_based, comment=comment, query_id=np.arange(len(X)) if k % 3 else None
        )
        want, labels = load_svmlight_file(str(path), zero_based=zero_based)
        chunks = list(open_source(path, "y", zero_based=zero_based, chunk=int(rng.integers(1, 3000))).chunks())
        assert np.concatenate([c.y for c in chunks]).tobytes() == labels.tobytes()
        assert np.concatenate([c.X.data for c in chunks]).tobytes() == want.data.tobytes()
        assert np.concatenate([c.X.indices for c in chunks]).tolist() == want.indices.tolist()
        assert np.concatenate([np.diff(c.X.indptr) for c in chunks]).tolist() == np.diff(want.indptr).tolist()
        assert chunks[-1].X.shape[1] == want.shape[1]


@QUICK
@given(st.lists(SVM_ROW, min_size=1, max_size=4), st.integers(1, 50))
def test_what_scikit_learn_accepts_is_read_alike(tmp_path, rows, chunk):
    body = "\n".join(" ".join([label, *fields]) for label, fields in rows).encode()
    try:
        X, y = load_svmlight_file(io.BytesIO(body), zero_based=False)
    except (ValueError, OverflowError, IndexError):
        return
    if not len(y) or not np.isfinite(X.data).all() or not np.isfinite(y).all() or X.shape[1] > max_columns():
        return  # we want finite values
    got, bad = rows_of(tmp_path / "t.svm", body, chunk=chunk, labels=False)
    assert not bad and [row[0] for row in got] == y.tolist()
    assert [v for row in got for v in row[2].values()] == X.data.tolist()


# --- Vowpal Wabbit ----------------------------------------------------------------------------------------------------


def slow_wabbit(body):
    """The grammar, row by row: (label, importance, {name: value}) or None for a bad row."""
    for line, raw in enumerate(body.split("\n"), 1):
        raw = raw.replace("\r", " ").replace("\t", " ")
        if not raw.strip(" "):
            continue
        try:
            head, *spaces = raw.split("|")
            if not spaces:
                raise ValueError
            fields = [field for field in head.split(" ") if field]
            if fields and (not head.endswith(" ") or fields[-1].startswith("'")):
                fields.pop()
            if not 1 <= len(fields) <= 2 or any(field.startswith("'") for field in fields):
                raise ValueError
            if not all(map(finite, fields)):
                raise ValueError
            label, weight = float(fields[0]), float(fields[1]) if len(fields) > 1 else 1.0
            if weight < 0:
                raise ValueError
            found = {}
            for space in spaces:
                first, *features = space.split(" ")
                name, *scale = first.split(":", 1)
                if scale and not name:
                    raise ValueError
                if scale and not plain(scale[0]):
                    raise ValueError
                times = float(scale[0]) if scale else 1.0
                for feature in features:
                    if feature:
                        key, *value = feature.split(":", 1)
                        if not key or (value and not finite(value[0])):
                            raise ValueError
                        full = f"{name}^{key}" if name else f"^{key}" if "^" in key else key
                        found[full] = found.get(full, 0.0) + (float(value[0]) if value else 1.0) * times
        except ValueError:
            yield line, None
        else:
            yield line, (label, weight, found)


def plain(text):
    return finite(text) and "_" not in text and text == text.strip()


VW_NAME = st.sampled_from(["a", "b", "long_name_of_a_feature", "é", "12", "x^y", "'q"])
VW_FIELD = st.one_of(
    VW_NAME,
    st.tuples(VW_NAME, st.sampled_from([p for p in PIECES if p != " 7 "])).map(":".join),
    st.tuples(VW_NAME, st.floats(-1e100, 1e100).map(repr)).map(":".join),
    st.sampled_from([":3", "", "a:1:2", "\t"]),
)
VW_SPACE = st.tuples(
    st.sampled_from(["", "n", "space", "n:2", "m:-0.5e1", "n:x", ":2", "ü"]), st.lists(VW_FIELD, max_size=4)
).map(lambda p: " ".join([p[0], *p[1]]))
VW_ROW = st.tuples(
    st.sampled_from(
        ["1 ", "-1 2 ", "0.5 'tag ", "1 2 tag", "1", "", " 3  0.25  ", "1 2 3 ", "x ", "1 -1 ", "'t ", "1 't x "]
    ),
    st.lists(VW_SPACE, max_size=3),
).map(lambda p: "|".join([p[0], *p[1]]))


@QUICK
@given(st.lists(VW_ROW, max_size=6), st.integers(1, 100), st.sampled_from(["\n", "\r\n"]))
def test_wabbit_is_read_by_its_grammar(tmp_path, rows, chunk, end):
    body = end.join(rows)
    got, bad = rows_of(tmp_path / "t.vw", body.encode(), chunk=chunk, labels=False)
    want = list(slow_wabbit(body))
    assert bad == [line for line, row in want if row is None]
    good = [row for _, row in want if row is not None]
    assert [(y, weight, found) for y, weight, found, _, _ in got] == good


def test_vowpal_wabbit_agrees(tmp_path):
    vw = pytest.importorskip("vowpalwabbit")
    space = vw.Workspace("--quiet -b 28 --noconstant")
    r = random.Random(0)
    number = lambda: r.choice(["1", "-2", "0.5", "3e2", ".25", "7.", "-1e-3", "+4", repr(r.gauss(0, 1))])  # noqa: E731
    lines = []
    for _ in range(300):
        head = number() + r.choice(
            [" ", f" {abs(float(number()))} ", " 'tag ", f" {abs(float(number()))} 'tag", " tag"]
        )
        spaces = []
        for _ in range(r.randint(1, 3)):
            name = r.choice(["", "n", "other", f"n:{number()}"])
            names = r.sample(["a", "b", "c", "feature", "x12", "42"], r.randint(0, 5))
            spaces.append(" ".join([name, *(n + r.choice(["", f":{number()}"]) for n in names)]))
        lines.append(head + "|" + "|".join(spaces))
    path = tmp_path / "t.vw"
    path.write_text("\n".join(lines) + "\n")
    source = open_source(path, "y", chunk=500)
    seen, hashes = 0, {}
    for chunk in source.chunks():
        for t in range(len(chunk)):
            example = space.parse(lines[seen])
            assert math.isclose(chunk.y[t], example.get_simplelabel_label(), rel_tol=1e-5)
            assert math.isclose(chunk.weight[t], example.get_simplelabel_weight(), rel_tol=1e-5)
            theirs = {}
            for h, v in example.iter_features():
                theirs[h] = theirs.get(h, 0.0) + v
            a, b = chunk.X.indptr[t], chunk.X.indptr[t + 1]
            ours = {source.names[j]: v for j, v in zip(chunk.X.indices[a:b], chunk.X.data[a:b], strict=True)}
            assert len(ours) == len(theirs), lines[seen]
            assert np.allclose(sorted(ours.values()), sorted(theirs.values()), rtol=1e-5), lines[seen]
            for name, v in ours.items():
                near = [h for h, u in theirs.items() if math.isclose(u, v, rel_tol=1e-5)]
                if len(near) == 1:  # the same name has the same hash, another name another
                    assert hashes.setdefault(name, near[0]) == near[0]
            space.finish_example(example)
            seen += 1
    assert seen == len(lines) and len(set(hashes.values())) == len(hashes) > 10


# --- names and order --------------------------------------------------------------------------------------------------


def test_a_dictionary_grows_beyond_its_first_room(tmp_path):
    path = tmp_path / "t.vw"
    path.write_text("".join(f"1 |space name-{k}:{k} name-{k // 2} {'x' * (k % 40)}\n" for k in range(6000)))
    source = open_source(path, "y", chunk=4096)
    last = 0
    names = {}
    for chunk in source.chunks():
        X = chunk.X
        for t in range(len(chunk)):
            k = chunk.first + t
            row = dict(
                zip(X.indices[X.indptr[t] : X.indptr[t + 1]], X.data[X.indptr[t] : X.indptr[t + 1]], strict=True)
            )
            texts = {f"space^name-{k}": float(k), f"space^name-{k // 2}": 1.0}
            if k == 0:
                texts = {"space^name-0": 1.0}
            if k % 40:
                texts["space^" + "x" * (k % 40)] = 1.0
            for name in texts:
                names.setdefault(name, None)
            last = max(last, *row)
            assert {source.names[j]: v for j, v in row.items()} == texts
    assert sorted(source.names) == sorted(names) and last + 1 == len(names)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 12), st.floats(-1e9, 1e9)), max_size=40), max_size=5),
    st.booleans(),
    st.sampled_from([1, 63, 64, 777, 4096]),
)
def test_rows_are_put_in_order_and_repeats_added_up(rows, marks, apart):
    rows = [[(j * apart, v) for j, v in row] for row in rows]
    width = 12 * apart + 1 if marks else 0
    words = -(-width // 64)
    data = np.array([v for row in rows for _, v in row], float)
    indices = np.array([j for row in rows for j, _ in row], np.int32)
    indptr = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    bits = np.zeros(words - (-words // 64), np.uint64)
    work = np.empty_like(data), np.empty((2, data.size), np.int64), bits, np.empty(width)
    n = sort_and_sum(data, indices, indptr, len(rows), *work)
    assert not bits.any()
    assert n == indptr[-1]
    for t, row in enumerate(rows):
        want = {}
        for j, v in row:
            want[j] = want[j] + v if j in want else v
        a, b = indptr[t], indptr[t + 1]
        assert indices[a:b].tolist() == sorted(want)
        assert data[a:b].tobytes() == np.array([want[j] for j in sorted(want)], float).tobytes()


# --- random text ------------------------------------------------------------------------------------------------------


def test_random_text_gives_the_same_rows_in_blocks_of_any_size_and_as_plain_python(monkeypatch):
    monkeypatch.setattr(sys, "stdin", sys.stdin)  # the fuzzer replaces it
    assert fuzz_parsers.again(8, 0, NUMBA_DISABLE_JIT="1") == fuzz_parsers.run(8, 0)
    fuzz_parsers.run(120, 1)


@nightly
def test_random_text_touches_nothing_outside_an_array():
    """Parsers and learners in a process that checks every index, those of bytes of text included."""
    forms = list(fuzz_parsers.SEEDS)
    forms, learners = forms[: many(1, len(forms))], fuzz_parsers.LEARNT[: many(1, None)]
    fuzz_parsers.again(many(40, 100), 2, forms=forms, learners=learners, NUMBA_BOUNDSCHECK="1")


def test_names_can_be_read_while_a_thread_meets_more():
    """The reader runs a chunk ahead: what it has given out must not move under whoever keeps it."""
    for _ in range(8):
        names = NameDictionary()
        wanted = [f"name {k}" for k in range(1500)]
        done = threading.Event()

        def meet(names=names, wanted=wanted, done=done):
            space = 0
            for k, name in enumerate(wanted):
                if k == 100:
                    names.add_space("space")
                    space = 1
                names.add(name, space)
            done.set()

        thread = threading.Thread(target=meet)
        thread.start()
        while not done.is_set():
            count = len(names)
            state = names.state(count)
            assert state["names"] == [("space^" if k >= 100 else "") + name for k, name in enumerate(wanted[:count])]
            assert state["space"] == [int(k >= 100) for k in range(count)]
        thread.join()
