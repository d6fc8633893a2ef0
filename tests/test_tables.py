"""Ordinary tables: what is found out about them, how their columns become features, and the command over eighty."""

import io
import json
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import hindsight
from conftest import nightly
from hindsight import open_source
from hindsight.cli import app
from hindsight.errors import DisprovedError, SourceError
from hindsight.sources.tables.cells import DATE_FORMATS, Cells, fitting_forms, parse_dates, parse_numbers
from hindsight.sources.tables.decisions import ColumnDecision, decide, identity
from hindsight.sources.tables.encoders import ENCODERS
from hindsight.sources.tables.evidence import ColumnEvidence
from hindsight.sources.tables.sniff import sniff_dialect, sniff_encoding, sniff_format
from ugly_tables import TABLES, write_all


def run(*args, status=0, **more):
    done = CliRunner().invoke(app, [str(arg) for arg in args], env={"COLUMNS": "200", "NO_COLOR": "1"}, **more)
    assert done.exit_code == status, done.output
    return done


def read(path, target="y", chunk=1 << 20, **options):
    """All rows of a source, dense, with its names."""
    source = open_source(str(path), target, chunk=chunk, **{"strict": False, "missing": "indicator"} | options)
    chunks = list(source.chunks())
    width = len(source.names)
    X = np.vstack([full(c.X, width) for c in chunks])
    y = None if chunks[0].y is None else np.concatenate([c.y for c in chunks])
    return X, y, list(source.names), source, chunks


def full(X, width):
    X = X.toarray() if hasattr(X, "toarray") else X
    return np.hstack([X, np.zeros((len(X), width - X.shape[1]))])


# ---------------------------------------------------------------- sniffing


@pytest.mark.parametrize(
    ("text", "separator", "header"),
    [
        ("a,b\n1,2\n3,4\n", ",", True),
        ("a;b\n1,5;2\n3;4,5\n", ";", True),
        ("1,5;2\n3,5;4\n", ";", False),
        ("a\tb c\n1\tx y\n2\tz w\n", "\t", True),
        ("a|b\n1|2\n", "|", True),
        ("1.0   2.5\n 3.0 4.5\n", " ", False),
        ('name,"a, b"\nx,"1, 2"\ny,"3, 4"\n', ",", True),
    ],
)
def test_separator_and_header(text, separator, header):
    found = sniff_dialect(text.encode())
    assert (found.separator, found.header) == (separator, header)


def test_columns_that_are_asked_for_show_the_header():
    assert sniff_dialect(b"2010,2011\n1,2\n", ["2011"]).header
    assert not sniff_dialect(b"u,v,w\na,b,c\n", ["3"]).header
    assert not sniff_dialect(b"5,3,2\n1,2,4\n", ["3"]).header  # 3 is the number of a column, and happens to be a cell
    assert sniff_dialect(b"0,1,2\n5,2,4\n", ["2"]).header  # as pandas writes columns without names
    assert sniff_dialect(b"id,3,label\n5,2,4\n", ["3"]).header


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
def test_encodings(encoding, tmp_path):
    rows = "".join(f"{k},{'Zürich' if k % 2 else 'Köln'},{k}\n" for k in range(30))
    (tmp_path / "t.csv").write_bytes(("a,größe,y\n" + rows).encode(encoding))
    assert read(tmp_path / "t.csv")[2] == ["a", "größe=Köln", "größe=Zürich"]


def test_latin_1_is_found_where_cp1252_has_no_such_byte():
    assert sniff_encoding(b"a\x81b\xe9") == "latin-1"


def test_formats_from_content():
    assert sniff_format(b"+1 1:0.5 7:1\n-1 2:3\n") == "svmlight"
    assert sniff_format(b"1 |a x:2 y\n-1 | z\n") == "vw"
    assert sniff_format(b"a|b\n1|2\n") == "csv"
    assert sniff_format(b"2:30,1\n3:40,2\n") == "csv"


# ---------------------------------------------------------------- cells


def test_numbers_as_people_write_them():
    texts = [
        "$84,835.00",
        "€ 5",
        "-$3",
        "(1,200)",
        "12%",
        "1'000'000",
        "1 000.5",
        ".5",
        "+2",
        "1e3",
        "1,23",
        "1,2345",
        "x",
        "$",
        "1-2",
    ]
    found = parse_numbers(pa.array(texts)).tolist()
    assert found[:10] == [84835.0, 5.0, -3.0, -1200.0, 12.0, 1e6, 1000.5, 0.5, 2.0, 1000.0]
    assert np.isnan(found[10:]).all()


def test_a_number_has_a_mantissa(tmp_path):
    codes = ["E17", "E85", "E-6", "e5", "+E2", ".", ",", "-.e3"]
    for decimal in (".", ","):
        assert np.isnan(parse_numbers(pa.array(codes), decimal)).all()
    (tmp_path / "t.csv").write_text("deck,y\n" + "".join(f"{codes[k % 5]},{k}\n" for k in range(40)))
    X, _, names, _, _ = read(tmp_path / "t.csv")
    assert names == [f"deck={code}" for code in codes[:5]] and (X.sum(axis=1) == 1).all()
    frame = open_source(pd.read_csv(tmp_path / "t.csv"), "y", strict=False, missing="indicator")
    assert (np.vstack([chunk.X.toarray() for chunk in frame.chunks()]) == X).all()


@pytest.mark.parametrize(
    "form", ["%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%b %d, %Y", "%d %B %Y", "%Y/%m/%d %H:%M", "%m/%d/%y %I:%M %p"]
)
def test_dates_are_found_in_every_form(form):
    stamps = pd.date_range("2019-01-13 15:30", periods=40, freq="53h")
    texts = pa.array([stamp.strftime(form) for stamp in stamps])
    found = parse_dates(texts, fitting_forms(texts, DATE_FORMATS)[0]).to_pylist()
    assert [stamp.date() for stamp in found] == [stamp.date() for stamp in stamps]


def cells(*values):
    return Cells(np.zeros(len(values)), np.arange(len(values)), pa.array(map(str, values), pa.string()))


def decided(*values, name="x", decimal=".", complete=True, first=False, unnamed=False):
    evidence = ColumnEvidence(name)
    evidence.add(cells(*values))
    evidence.decimal = decimal
    return decide(evidence, None, complete, identity=identity(evidence, first, unnamed))


def test_types_are_decided():
    assert decided(1, 2.5, "", "-3").type == "number"
    assert decided("yes", "no", "yes").type == "boolean"
    assert decided("2020-01-02", "2020-01-03").type == "date"
    assert decided("u", "v", "u").type == "category"
    assert decided("u", "u", "u").type == "constant"
    assert decided("", "NA", "?").type == "constant"
    assert decided(*(f"{k:x}f" for k in range(100))).type == "identifier"
    assert decided(*range(100), name="id").type == "identifier"
    assert decided(*range(100), name="age").type == "number"
    assert decided("01234", "99999", "00501").type == "category"
    assert decided(*(f"it was {k} very good things {k}" for k in range(50))).type == "text"


def test_a_column_that_only_tells_rows_apart():
    def is_left_out(*values, **place):
        return decided(*values, **place).type == "identifier"

    shuffled = np.random.default_rng(1).permutation(100) + 5
    for name in ("CustomerID", "RespondentID", "rownames", "row.names", "userId", "passengerid", "order_id"):
        assert is_left_out(*shuffled, name=name), name
    for name in ("paid", "grid", "Covid", "IDs_seen", "year", "hour", "Humid", "uv_index"):  # names of other things
        assert not is_left_out(*shuffled, name=name), name
    assert is_left_out(*shuffled, name="__index_level_0__") and is_left_out(*shuffled, name="Unnamed: 0")
    assert is_left_out(*[3, 3, 3, 4], name="__index_level_0__")  # rows that were drawn again
    assert not is_left_out(*(k % 7 for k in range(100)), name="store_id")  # a code of few values
    assert not is_left_out(*(k / 7 for k in range(100)), name="index")  # as of prices
    assert is_left_out(*shuffled, name="1", first=True, unnamed=True)
    assert is_left_out("Mazda RX4", "Datsun 710", "Hornet 4 Drive", name="1", first=True, unnamed=True)
    assert not is_left_out(*shuffled, name="4", unnamed=True)  # not the first
    assert not is_left_out(*(k / 7 for k in range(100)), name="1", first=True, unnamed=True)
    days = [f"2024-01-{k:02}" for k in range(1, 31)]
    assert not is_left_out(*days, name="1", first=True, unnamed=True)
    for values in (range(100), range(1, 101)):  # a first column that counts the rows
        assert is_left_out(*values, name="X", first=True) and is_left_out(*values, name="1", first=True)
        assert not is_left_out(*values, name="X") and not is_left_out(*values, name="hour", first=True)
    assert not is_left_out(*shuffled, name="X", first=True) and not is_left_out(*range(2, 102), name="X", first=True)


def test_a_word_among_numbers_is_one_for_missing_and_a_slip_is_not():
    found = decided(*range(50), *["not measured"] * 10)
    assert (found.type, found.words, found.indicator) == ("number", ("not measured",), True)
    assert decided(*range(50), "12O").words == ()


def test_soft_words_stay_categories_where_they_are_all_there_is():
    found = decided("+", "-", "+", "-")
    assert (found.type, found.soft) == ("category", False)


# ---------------------------------------------------------------- encoders


def test_category_boolean_text_and_date_encoders():
    out = ENCODERS["category"](ColumnDecision("c", "category")).encode(cells("u", "v", "", "u"))
    assert out.missing.tolist() == [2] and out.named[0].rows.tolist() == [0, 1, 3]
    out = ENCODERS["boolean"](ColumnDecision("b", "boolean")).encode(cells("Yes", "NO", "maybe"))
    assert out.values[:2].tolist() == [1.0, 0.0] and list(out.faults) == [2]
    out = ENCODERS["text"](ColumnDecision("t", "text", "2")).encode(cells("Good, good dog", "bad"))
    words = {(int(r), m.texts[c]) for m in out.named for r, c in zip(m.rows, m.codes, strict=True)}
    assert words == {(0, "good"), (0, "dog"), (1, "bad"), (0, "good good"), (0, "good dog")}
    out = ENCODERS["date"](ColumnDecision("d", "date", "iso time")).encode(cells("2000-01-01 05:00", "later"))
    assert abs(out.values[0]) < 0.01 and list(out.faults) == [1]
    assert [m.texts[m.codes[0]] for m in out.named] == ["January", "Saturday", "5"]


# ---------------------------------------------------------------- sources

MIXED = "a,when,city,note,y\n" + "".join(
    ",".join(
        (
            "NA" if k % 7 == 3 else str(k / 8),
            f"2020-0{1 + k % 9}-1{k % 10}",
            f"{'uvw'[k % 3]}{k // 100}",
            f'"word{k % 11} and more words, {k % 5}"',
            f"{k % 4}.5\n",
        )
    )
    for k in range(300)
)


@pytest.mark.parametrize("missing", ["indicator", "zero", "mean", "skip"])
def test_results_do_not_depend_on_chunks_nor_on_resuming(tmp_path, missing):
    path = tmp_path / "t.csv"
    path.write_text(MIXED)
    X, y, names, _, _ = read(path, missing=missing)
    small, y2, names2, _source, chunks = read(path, missing=missing, chunk=700)
    assert len(chunks) > 5 and names == names2 and (small == X).all() and (y == y2).all()
    again = open_source(str(path), "y", strict=False, missing=missing, chunk=700)
    first = open_source(str(path), "y", strict=False, missing=missing, chunk=700)
    given = first.chunks()
    begun = [next(given) for _ in range(3)]
    state, position = json.loads(json.dumps(first.state())), json.loads(json.dumps(begun[-1].position))
    again.restore(state)
    rest = list(again.chunks(position))
    assert (np.vstack([full(c.X, len(names)) for c in begun + rest]) == X).all()


def test_missing_rules(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n2,1,1\n,2,2\n4,3,3\n,4,4\n")
    X, _, names, _, _ = read(path)
    assert names == ["a", "b", "a is missing"] and X[:, [0, 2]].tolist() == [[2, 0], [0, 1], [4, 0], [0, 1]]
    assert read(path, missing="zero")[0][:, 0].tolist() == [2, 0, 4, 0]
    assert read(path, missing="mean")[0][:, 0].tolist() == [2, 2, 4, 3]
    X, _, _, _source, chunks = read(path, missing="skip")
    assert X[:, 0].tolist() == [2, 4] and chunks[-1].position["skipped"] == 2
    with pytest.raises(SourceError, match="line 3, column 'a': the value is missing"):
        read(path, missing="error")


def test_rows_without_a_target_have_no_weight(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,u\n2,\n3,v\n")
    _, y, _, _, chunks = read(path)
    assert y.tolist() == ["u", "", "v"] and chunks[0].weight.tolist() == [1, 0, 1]


def test_a_plain_table_is_read_as_before(tmp_path):
    path = tmp_path / "t.csv"
    rng = np.random.default_rng(1)
    np.savetxt(path, rng.normal(size=(500, 4)), delimiter=",", header="a,b,c,y", comments="")
    X, y, names, source, _ = read(path)
    strict = next(open_source(str(path), "y").chunks())
    assert not source.decided and names == ["a", "b", "c"]
    assert (X == strict.X).all() and (y == strict.y).all()


def test_decisions_that_later_rows_disprove(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{k},{k}\n" for k in range(100)) + "u,1\nv,1\n" * 50)
    with pytest.raises(DisprovedError, match=r"line 102, column 'a': 'u' is not a number.*--types a:category"):
        read(path, scan=50)
    assert read(path, scan=0)[3].decisions.columns["a"].type == "category"
    done = run("learn", path, "--target", "y")
    assert "200 rows" in done.output


def test_a_record_of_another_size_disproves_no_type_of_a_column(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("c,x,y\na,1,2\nb,2,3\na,3,4,5\na,oops,6\n")
    options = {"strict": False, "scan": 2, "missing": "indicator"}
    with pytest.raises(SourceError, match="line 4: 4 fields, but there are 3 columns") as caught:
        list(open_source(str(path), "y", **options).chunks())
    assert not isinstance(caught.value, DisprovedError)
    with pytest.raises(DisprovedError, match="line 5, column 'x': 'oops' is not a number, unlike all rows before"):
        list(open_source(str(path), "y", rejects=True, **options).chunks())
    source = open_source(str(path), "y", rejects=True, **options | {"scan": 4, "types": {"x": "number"}})
    rejects = [reject for chunk in source.chunks() for reject in chunk.rejects]
    assert [(reject.line, reject.column, reject.raw) for reject in rejects] == [
        (4, "", "a,3,4,5"),
        (5, "x", "a,oops,6"),
    ]


@pytest.mark.parametrize("typed", [False, True])
def test_whole_labels_that_floats_lack_stay_apart_beside_text(tmp_path, typed):
    labels = [2**53 + k for k in (0, 1, 2, 0, 1, 3)] + [7, 8]
    table = pd.DataFrame({"x": np.arange(8.0), "c": list("uvuvuvuv"), "y": labels, "id": labels})
    table.to_csv(tmp_path / "t.csv", index=False)
    data = pa.table(table) if typed else str(tmp_path / "t.csv")
    source = open_source(data, "y", strict=False, types={"id": "category"})
    (chunk,) = source.chunks()
    assert chunk.y.tolist() == list(map(str, labels))
    assert [name for name in source.names if name.startswith("id=")] == [f"id={k}" for k in dict.fromkeys(labels)]
    (chunk,) = open_source(data, "y", strict=False, labels=False).chunks()
    assert chunk.y.tolist() == list(map(float, labels))


@pytest.mark.parametrize("form", ["csv", "parquet", "feather", "frame"])
def test_typed_tables_give_what_text_gives(tmp_path, form):
    frame = pd.DataFrame(
        {
            "n": [1.5, None, 3.0, 4.0] * 10,
            "c": pd.Categorical(["u", "v", None, "u"] * 10),
            "d": pd.date_range("2021-01-01", periods=40, freq="31h"),
            "b": [True, False, True, True] * 10,
            "y": np.arange(40.0),
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    expected = read(tmp_path / "t.csv")
    if form == "frame":
        source = open_source(frame, "y", strict=False, missing="indicator")
        X = np.vstack([chunk.X.toarray() for chunk in source.chunks()])
        names = list(source.names)
    else:
        path = tmp_path / f"t.{form}"
        if form != "csv":
            getattr(frame, f"to_{form}")(path)
        X, _, names, _, _ = read(path)
    assert names == expected[2]
    assert (expected[0] == X).all()


@pytest.mark.parametrize("missing", ["indicator", "mean", "zero", "skip", "error"])
@pytest.mark.parametrize("column", ["a", "y", "w"])
def test_infinite_numbers_of_typed_tables_are_refused(missing, column):
    held = {"a": [1.0, 2.0, 3.0, 4.0], "c": ["x", "y", "x", "y"], "y": [0.5, 1.5, 2.5, 3.5], "w": [1.0] * 4}
    held[column][2] = -np.inf
    options = {"weight": "w", "strict": False, "missing": missing}
    with pytest.raises(SourceError, match=rf"row 2, column '{column}': '-inf' is not finite"):
        list(open_source(pa.table(held), "y", **options).chunks())
    source = open_source(pa.table(held), "y", rejects=True, **options)
    (chunk,) = source.chunks()
    assert (len(chunk), source.rejected) == (3, 1)
    assert not np.isinf(chunk.X.data).any()


def test_types_can_be_asked_for(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("zip,when,y\n" + "".join(f"{8000 + k % 3},0{1 + k % 9}/02/2020,{k}\n" for k in range(40)))
    types = {"zip": "category", "when": "date(%d/%m/%Y)"}
    names = read(path, types=types)[2]
    assert "zip=8000" in names and "when month=February" in names and "when month=March" not in names
    with pytest.raises(ValueError, match="types of 'zip' must be one of"):
        read(path, types={"zip": "code"})
    with pytest.raises(ValueError, match="no column 'zap'; did you mean 'zip'"):
        read(path, types={"zap": "category"})


def test_features_beyond_the_limit_share_columns(tmp_path, monkeypatch):
    monkeypatch.setattr("hindsight.sources.tables.layout.LIMIT", 20)
    path = tmp_path / "t.csv"
    path.write_text("c,y\n" + "".join(f"c{k % 60},{k}\n" for k in range(300)))
    X, _, names, _, _ = read(path)
    assert (read(path, chunk=100)[0] == X).all() and (X.sum(axis=1) == 1).all()
    assert sum("#" in name for name in names) > 10 and sum("#" not in name for name in names) == 20


# ---------------------------------------------------------------- the command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("ugly")
    write_all(made)
    return made


def test_of_eighty_tables_five_do_not_learn():
    assert len(TABLES) >= 79 and sum(not table.learns for table in TABLES) == 5


@pytest.mark.parametrize("table", [each for each in TABLES if each.columns is not None], ids=lambda table: table.file)
def test_which_columns_of_ugly_tables_are_learnt_from(folder, table):
    X, _, names, _, _ = read(folder / table.file, table.target, header=None)
    assert {name.partition("=")[0] for name in names if "missing" not in name} == set(table.columns.split())
    assert len(X) in (120, 121) and (X != 0).any(axis=0).all()


@nightly(
    but=[
        "plain.csv",
        "decimal_comma_thousands.csv",
        "late_*.csv",
        "utf16.csv",
        "cr.csv",
        "quoted_newlines.csv",
        "date_iso.csv",
        "booleans.csv",
        "string_labels.csv",
        "unknown.csv",
        "blank_headers.csv",
        "a9a",
        "cabins.csv",
        "credit.data",
        "customers.csv",
        "superstore.tsv",
        "write_table.txt",
        "table.zip",
        "array.json",
        "book.xlsx",
    ]
)
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.file)
def test_ugly_tables_learn_with_no_option_but_the_target(folder, tmp_path, table):
    path, target = folder / table.file, [] if table.target is None else ["--target", table.target]
    if not table.learns:
        done = run("learn", path, *target, status=2)
        assert table.says in done.output.splitlines()[-1] and done.output.splitlines()[-1].startswith("error: ")
        return
    run("learn", path, *target, "--save", tmp_path / "model")
    predicted = run("predict", tmp_path / "model", path).stdout
    rows = len(predicted.splitlines()) - 1
    assert rows >= 120
    assert "best constant" in run("evaluate", tmp_path / "model", path).output
    assert "HOLDS" in run("certify", tmp_path / "model", path).output
    model = hindsight.load(tmp_path / "model")
    assert model.facts[0].rounds <= rows


@pytest.mark.parametrize("form", ["frame", "parquet", "csv"])
def test_the_index_of_a_frame_after_a_split_is_no_feature(tmp_path, form):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": rng.normal(size=200), "y": np.arange(200.0)}).sample(frac=1, random_state=1)
    train, rest = frame[:150], frame[150:].reset_index(drop=True)
    data = [train, rest]
    if form != "frame":
        data = [tmp_path / f"{name}.{form}" for name in ("train", "rest")]
        getattr(train, f"to_{form}")(data[0])
        rest.to_parquet(data[1]) if form == "parquet" else rest.to_csv(data[1], index=False)
    else:
        assert open_source(train, "y").names == ["a"]
    model = hindsight.learn(data[0], "y", learner="widrow-hoff")
    assert model.names == ["a"] and len(model.predict(data[1])) == 50
    kept = "1" if form == "csv" else "__index_level_0__"
    assert hindsight.learn(data[0], "y", learner="widrow-hoff", reading={"features": ["a", kept]}).names == ["a", kept]
    if form != "frame":
        said = run("learn", data[0], "--target", "y", "--learner", "widrow-hoff").stderr
        assert f"left out, since they only tell rows apart: {kept} (--features" in said
        assert f"learn would leave out: {kept} (--features" in run("look", data[0], "--target", "y").output


def test_the_decimal_sign_is_that_of_each_column(tmp_path):
    rows = [f"{k % 5}\t0.{k % 9 + 1}\t{k}.00{k % 10},5\t{k % 7},25\t{k % 4},{k % 7}9" for k in range(10, 90)]
    (tmp_path / "t.tsv").write_text("quantity\tdiscount\tthousands\tsales\ty\n" + "\n".join(rows))
    X, y, names, source, _ = read(tmp_path / "t.tsv")
    assert {name: d.decimal for name, d in source.decisions.columns.items() if name != "quantity"} == {
        "discount": ".", "thousands": ",", "sales": ",", "y": ",",
    }  # fmt: skip
    assert names == ["quantity", "discount", "thousands", "sales"]
    assert X[0].tolist() == [0, 0.2, 10_000.5, 3.25] and y[0] == 2.39
    state = json.loads(json.dumps(source.state()))
    again = open_source(tmp_path / "t.tsv", "y", strict=False, missing="indicator", state=state)
    assert (next(again.chunks()).X == X).all()
    shown = run("look", tmp_path / "t.tsv", "--target", "y").output
    assert "10000.5 to 89009.5" in shown and "0.1 to 0.9" in shown and "0.25 to 6.25" in shown


def test_evidence_of_parts_is_that_of_the_whole():
    values = [str(k) for k in range(30)] + [f"{k}.500" for k in range(1, 20)] + ["1,5", "NA", "word"]
    whole = ColumnEvidence("x")
    whole.add(cells(*values))
    for cut in (10, 30, 40, len(values) - 2):
        parts = [ColumnEvidence("x"), ColumnEvidence("x")]
        for part, some in zip(parts, (values[:cut], values[cut:]), strict=True):
            part.add(cells(*some))
        parts[0].join(parts[1])
        for sign in ".,":
            assert vars(parts[0].read[sign]) == vars(whole.read[sign])
            parts[0].decimal = whole.decimal = sign
            assert (parts[0].distinct, parts[0].counts_rows) == (whole.distinct, whole.counts_rows)
    assert (whole.read["."].high, whole.read[","].high) == (29, 19_500)


def test_look_reads_numbers_with_the_sign_that_is_asked_for(tmp_path):
    (tmp_path / "t.csv").write_text("a;y\n" + "".join(f"{k}.234;{k}\n" for k in range(1, 40)))
    assert "1.234 to 39.234" in run("look", tmp_path / "t.csv", "--target", "y").output
    assert "1234 to 39234" in run("look", tmp_path / "t.csv", "--target", "y", "--decimal", ",").output


@pytest.mark.parametrize("first", ["A11,6,2,3", "4,1,3,2"])  # the second has cells that are also names of columns
def test_a_model_of_a_table_without_a_header_reads_others_without_one(tmp_path, first):
    rng, code = np.random.default_rng(1), first.startswith("A")
    rows = [first] + [f"{'A1' if code else ''}{k % 3 + 1},{k % 9},{k % 4},{rng.normal():.3f}" for k in range(80)]
    (tmp_path / "a.data").write_text("\n".join(rows) + "\n")
    (tmp_path / "b.data").write_text("\n".join(rows[:1] + rows[41:]) + "\n")
    (tmp_path / "c.data").write_text("\n".join(row.rpartition(",")[0] for row in rows[:30]) + "\n")  # without targets
    saved = tmp_path / "model"
    done = run("learn", tmp_path / "a.data", "--target", "4", "--learner", "widrow-hoff", "--save", saved)
    assert "no header" in done.stderr and hindsight.load(saved).facts[0].rounds == 81
    assert "41 rows" in run("evaluate", saved, tmp_path / "b.data").output
    assert len(run("predict", saved, tmp_path / "c.data").stdout.splitlines()) == 31
    assert len(hindsight.load(saved).predict(tmp_path / "b.data")) == 41


def test_unseen_categories_are_predicted(tmp_path):
    (tmp_path / "a.csv").write_text("c,x,y\n" + "".join(f"{'uv'[k % 2]},{k % 7},{k % 2}.5\n" for k in range(60)))
    (tmp_path / "b.csv").write_text("x;c\n3;new\n4;u\n;v\n")
    run("learn", tmp_path / "a.csv", "--target", "y", "--save", tmp_path / "m")
    assert len(run("predict", tmp_path / "m", tmp_path / "b.csv").stdout.splitlines()) == 4


def test_a_run_is_resumed_with_the_decisions_of_its_checkpoint(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(MIXED)
    whole = run("learn", path, "--target", "y", "--json", "--missing", "mean").stdout
    assert json.loads(whole)["rows"] == 300


def test_what_was_done_is_said(folder):
    done = run("learn", folder / "missing_targets.csv", "--target", "y")
    assert "rows have no target: they were predicted, not learnt" in done.output
    done = run("learn", folder / "ids_and_constants.csv", "--target", "y")
    assert "left out, since they only tell rows apart: uuid (" in done.output
    done = run("learn", folder / "late_text.csv", "--target", "y")
    assert "starting again, having looked at all rows" in done.output


def test_look(folder):
    shown = run("look", folder / "sorted_target.csv", "--target", "y").output
    assert "is sorted" in shown and "120 rows, 3 columns" in shown
    shown = run("look", folder / "unknown.csv", "--target", "y").output
    assert "number" in shown and "2 columns to learn from: 2 number" in shown
    assert "no columns to decide on" in run("look", folder / "a9a").output


def test_strict_is_what_it_was(folder):
    done = run("learn", folder / "unknown.csv", "--target", "y", "--strict", status=2)
    assert "error: " in done.output.splitlines()[-1]
    assert "line 2, column 'b': the value is missing" in done.output


def test_a_stream_that_disproves_is_one_clear_error(monkeypatch):
    text = "a,y\n" + "".join(f"{k},{k}.5\n" for k in range(200_000)) + "word,1\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(text.encode()))))
    source = open_source("-", "y", format="csv", strict=False, missing="indicator")
    with pytest.raises(DisprovedError, match="line 200002, column 'a': 'word' is not a number"):
        list(source.chunks())


def test_a_day_that_is_not_there_is_no_date():
    for form, good, bad in (
        ("iso", "2024-02-29", "2023-02-29"), ("%d.%m.%Y", "30.4.2024", "31.4.2024"), ("%m/%d/%y", "6/30/24", "6/31/24"),
        ("%b %d, %Y", "Feb 28, 2023", "Feb 30, 2023"), ("%d/%m/%Y %H:%M", "29/02/2024 10:30", "31/02/2024 10:30"),
        ("iso time", "2024-01-31T13:45:00Z", "2024-02-31T13:45:00Z"), ("%d-%b-%y", "01-Mar-24", "31-Feb-24"),
    ):  # fmt: skip
        found = parse_dates(pa.array([good, bad]), form).to_pylist()
        assert found[0] is not None and found[1] is None, (form, found)


def test_products_of_columns(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,c,d,y\n" + "2,3,red,on,1\n,5,blue,off,2\n4,1,red,off,3\n1,1,,on,4\n")
    pairs = [["a", "b"], ["a", "c"], ["c", "d"]]
    source = open_source(path, "y", strict=False, missing="zero", cross=pairs, types={"d": "category"})
    chunk = next(source.chunks())
    rows = [dict(zip(source.names, row, strict=True)) for row in chunk.X.toarray().tolist()]
    shown = [{k: v for k, v in row.items() if "×" in k and v} for row in rows]
    assert shown == [
        {"a × b": 6.0, "a × c=red": 2.0, "c × d=red × on": 1.0},
        {"c × d=blue × off": 1.0},
        {"a × b": 4.0, "a × c=red": 4.0, "c × d=red × off": 1.0},
        {"a × b": 1.0},
    ]
    model = hindsight.learn(path, "y", learner="widrow-hoff", reading={"cross": pairs})
    model.save(tmp_path / "model")
    assert np.array_equal(hindsight.load(tmp_path / "model").predict(path), model.predict(path))
    with pytest.raises(ValueError, match="not a column that is learnt from"):
        open_source(path, "y", strict=False, missing="zero", cross=[["a", "y"]])
    with pytest.raises(ValueError, match="cross is for tables"):
        open_source([{"a": 1, "y": 2}], "y", strict=False, cross=[["a", "a"]])


def test_json_lines_without_a_target_are_predicted_and_counted(tmp_path):
    path = tmp_path / "rows.jsonl"
    lines = ['{"x": 1, "y": "a"}', '{"x": 2}', '{"x": null, "y": "b"}', '{"x": 3, "y": null}', '{"x": 4, "y": "b"}']
    path.write_text("\n".join(lines))
    source = open_source(path, "y", strict=False, missing="indicator")
    chunk = next(source.chunks())
    assert chunk.y.tolist() == ["a", "", "b", "", "b"] and chunk.weight.tolist() == [1, 0, 1, 0, 1]
    assert "2 rows have no target: they were predicted, not learnt" in run("learn", path, "--target", "y").stderr
    with pytest.raises(ValueError, match="the target is missing"):
        list(open_source(path, "y").chunks())


def test_rows_that_end_early_and_comments_above_the_table(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("# where it is from, when\n# and by whom\nx,y,late\n1,2,3\n2,4\n3,6,9\n4,8\n")
    X, y, names, _, chunks = read(path)
    assert names == ["x", "late", "late is missing"] and y.tolist() == [2, 4, 6, 8]
    assert X.tolist() == [[1, 3, 0], [2, 0, 1], [3, 9, 0], [4, 0, 1]]
    assert chunks[-1].position["short"] == 2 and chunks[0].place(1).endswith("line 5")
    assert "2 rows have fewer fields than there are columns" in run("learn", path, "--target", "y").stderr
    path.write_text("# x,y\n1,2\n2,4\n3,6\n")  # which names the columns
    assert read(path)[2] == ["# x"]
    path.write_text("x,y\n" + "1,2\n" * 20_000 + "3\n5,6\n")
    done = run("learn", path, "--target", "y")
    assert "starting again" in done.stderr and "1 rows have no target" in done.stderr
    run("learn", path, "--target", "y", "--strict", status=2)
    path.write_text("x,y\n1,2\n1,2,3\n")
    assert "3 fields, but there are 2 columns" in run("learn", path, "--target", "y", status=2).stderr


def test_row_names_as_r_writes_them(tmp_path):
    rows = [(f"Car {k} of {k % 3}", k % 5, k % 7 / 2, k % 4) for k in range(40)]
    (tmp_path / "a.csv").write_text("mpg,cyl,y\n" + "".join(f"{n},{a},{b},{y}\n" for n, a, b, y in rows))
    text = '"mpg" "cyl" "y"\n' + "".join(f'"{n}" {a} {b} {y}\n' for n, a, b, y in rows)
    (tmp_path / "b.txt").write_text(text)
    (tmp_path / "c.csv").write_text(
        "mpg,cyl,y\n" + "".join(f"{a},{b},{y},\n" for _, a, b, y in rows)
    )  # ends with commas
    for name in ("a.csv", "b.txt", "c.csv"):
        X, _, names, _, _ = read(tmp_path / name)
        assert names == ["mpg", "cyl"] and X.tolist() == [[a, b] for _, a, b, _ in rows]
        assert "40 rows, 4 columns" in run("look", tmp_path / name, "--target", "y").output
    (tmp_path / "d.csv").write_text("x,y\n" + "1,2,3,4\n" * 40)
    said = run("look", tmp_path / "d.csv", "--target", "y", status=2).output
    assert "line 2: 4 fields, but there are 2 columns" in said
    (tmp_path / "e.csv").write_text("x,y\n" + "1.5,2\n2.5,3\n" * 20)
    assert "40 rows, 2 columns" in run("look", tmp_path / "e.csv", "--target", "y", "--rows", "10000").output


def test_a_zip_file_of_one_table_is_read_and_others_are_told(tmp_path):
    def zipped(name, **members):
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, text in members.items():
                archive.writestr(member, text)
        return tmp_path / name

    text = "a,y\n" + "".join(f"{k % 7},{k % 5}\n" for k in range(3000))
    (tmp_path / "plain.csv").write_text(text)
    X, y, names, _, _ = read(tmp_path / "plain.csv")
    whole = zipped("t.zip", **{"data/t.csv": text, "__MACOSX/._t.csv": "x"})
    for strict in (False, True):
        found = read(whole, chunk=700, strict=strict, format="csv", missing="error")
        assert (found[0] == X).all() and (found[1] == y).all() and found[2] == names
    first = open_source(whole, "y", strict=False, chunk=700, digest=True, missing="indicator")
    chunk = next(first.chunks())
    again = open_source(whole, "y", strict=False, chunk=700, digest=True, missing="indicator")
    assert sum(map(len, again.chunks(chunk.position))) == 3000 - len(chunk)
    (tmp_path / "cut.zip").write_bytes(whole.read_bytes()[:-30])
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0" + bytes(600))
    for path, words in (
        (
            zipped("two.zip", **{"a.csv": text, "b.csv": text}),
            "two.zip: a zip file of 2 files (a.csv, b.csv): unpack it",
        ),
        (zipped("b.xlsx", **{"[Content_Types].xml": "", "xl/w.xml": ""}), "a workbook of Excel (.xlsx): save its"),
        (zipped("c.ods", mimetype="x"), "an OpenDocument file (.ods): save its sheet as CSV"),
        (tmp_path / "old.xls", "a workbook of Excel (.xls): save its sheet as CSV"),
        (tmp_path / "cut.zip", "cut.zip: the zip file is damaged"),
    ):
        said = run("learn", path, "--target", "y", status=2).output.splitlines()
        assert words in said[-1] and said[-1].startswith("error: "), said
    np.savez(tmp_path / "n.npz", X=np.eye(3), y=np.arange(3.0))
    (tmp_path / "n.npz").rename(tmp_path / "n.data")
    assert read(tmp_path / "n.data", missing="error")[0].tolist() == np.eye(3).tolist()


@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_array_of_objects_is_read_as_json_lines(tmp_path, indent):
    rows = [{"a": k / 8, "c": "uv\n]"[k % 4], "big": 2**53 + k, "y": k % 3} for k in range(500)]
    (tmp_path / "lines.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = json.dumps(rows, indent=indent)
    for name, data in (("t.json", text), ("t.txt", "\ufeff  " + text)):
        (tmp_path / name).write_text(data)
        for chunk in (1 << 20, 800):
            X, y, names, _, chunks = read(tmp_path / name, chunk=chunk)
            expected = read(tmp_path / "lines.jsonl", chunk=chunk)
            assert (expected[0] == X).all() and (y == expected[1]).all() and names == expected[2]
            assert chunks[0].place(1) == f"{tmp_path / name}, object 2"
    run("learn", tmp_path / "t.json", "--target", "y", "--learner", "widrow-hoff", "--save", tmp_path / "m")
    assert len(run("predict", tmp_path / "m", tmp_path / "t.json").stdout.splitlines()) == 501
    for data, words in (
        ('[{"a": 1, "y": 2}, 3]', "object 2: this is not a JSON object"),
        ('[{"a": 1, "y": 2}, {"a": }]', "object 2: this is not JSON"),
        ('[{"a": 1, "y": 2}] and', "'and' follows the end of the JSON array"),
        ('[{"a": 1, "y": 2}', "object 2: this is not JSON"),
    ):
        (tmp_path / "bad.json").write_text(data)
        assert words in run("learn", tmp_path / "bad.json", "--target", "y", status=2).output.splitlines()[-1]


def test_the_next_block_of_a_json_array_may_hold_the_rest_of_an_object(tmp_path, monkeypatch):
    monkeypatch.setattr("hindsight.sources.json_rows.BLOCK", 7)
    (tmp_path / "t.json").write_text('[\n{"a": 1.25, "é": "long text"},\n{"a": 3, "é": "ü"}\n]\n\n')
    source = open_source(tmp_path / "t.json", categorical="auto")
    assert [row for chunk in source.chunks() for row in chunk.X.toarray().tolist()] == [[1.25, 1, 0], [3, 0, 1]]


def test_predictions_are_not_written_under_the_name_of_a_workbook(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n" + "1,2\n3,4\n" * 5)
    run("learn", tmp_path / "t.csv", "--target", "y", "--learner", "widrow-hoff", "--save", tmp_path / "m")
    for name in ("p.xlsx", "p.XLS", "p.ods", "p.csv.zip"):
        said = run("predict", tmp_path / "m", tmp_path / "t.csv", "--output", tmp_path / name, status=2).output
        assert f"{name}: predictions are written as .csv, .jsonl or .parquet" in said
        assert not (tmp_path / name).exists()


@pytest.mark.parametrize("learner", ["auto", "widrow-hoff"])
def test_a_target_that_overflows_is_named_with_its_line(tmp_path, learner):
    text = "a,y\n" + "".join(f"{k % 7},{'1e160' if k == 30 else k % 5}\n" for k in range(60))
    (tmp_path / "t.csv").write_text(text)
    done = run("learn", tmp_path / "t.csv", "--target", "y", "--learner", learner, status=2)
    assert "t.csv, line 32: the square of target 1e+160 overflows; scale the targets" in done.output.splitlines()[-1]
