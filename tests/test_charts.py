"""Charts: what is drawn, and the files they are saved to."""

import sys
from importlib.metadata import version

import numpy as np
import pytest
import vl_convert

from hindsight import charts
from hindsight.charts import drawing
from hindsight.forecast import compare, reliability


@pytest.fixture(scope="module")
def charted():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(float)
    h = {"A": p, "B": np.full(300, 0.5), "C": p}
    each = {k: reliability(y, v) for k, v in h.items()}
    return compare(y, h), each, [one.band(resamples=20) for one in each.values()]


@pytest.mark.parametrize("suffix", ["png", "svg", "html"])
def test_charts_are_written_by_suffix(tmp_path, charted, suffix):
    path = tmp_path / f"out.{suffix}"
    drawn = charts.together(*charted) if suffix == "svg" else charts.diagram("A", charted[1]["A"])
    charts.save(drawn, str(path))
    data = path.read_bytes()
    if suffix == "png":
        assert data.startswith(b"\x89PNG") and len(data) > 10_000
    elif suffix == "svg":
        text = data.decode()
        assert text.startswith("<svg") and "A is closer to the truth than B" in text and "consistency band" in text
    else:
        text = data.decode()
        assert "<script src=" not in text and "vegaEmbed" in text


def test_charts_hold_the_numbers(charted):
    comparison, each, bands = charted
    spec = charts.difference(comparison, 0).to_dict()
    drawn = spec["layer"][0]["data"]["values"]
    path = comparison.path(0)
    assert [v["low"] for v in drawn] == path.low.tolist() and [v["rounds"] for v in drawn] == path.rounds.tolist()
    assert len(charts.differences(comparison).to_dict()["concat"]) == 2  # A and C are the same: nothing to draw
    spec = charts.diagram("A", each["A"], bands[0]).to_dict()["vconcat"][0]
    curve = [(v["forecast"], v["should"]) for v in spec["layer"][2]["data"]["values"]]
    assert curve == list(zip(*(k.tolist() for k in each["A"].pools.knots()), strict=True))


def test_charts_of_void_and_of_numbers(tmp_path):
    found = compare([1.0, 2.0, 3.0], {"a": [1, 2, 2], "b": [0, 0, 0]}, loss="quadratic")
    charts.save(charts.differences(found), str(tmp_path / "void.svg"))
    one = reliability([1.0, 2.0, 3.0], [1, 2, 2], loss="quadratic")
    charts.save(charts.diagrams({"a": one}), str(tmp_path / "real.svg"))
    assert "VOID" in (tmp_path / "void.svg").read_text()


def test_a_missing_extra_and_a_wrong_suffix_raise_an_error(tmp_path, monkeypatch, charted):
    with pytest.raises(ValueError, match=r"a chart must end in \.png, \.svg, \.html; got \.pdf"):
        charts.save(None, "out.pdf")
    with pytest.raises(ValueError, match="No such file"):
        charts.save(charts.diagrams({"A": charted[1]["A"]}), str(tmp_path / "none" / "out.svg"))
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(ValueError, match=r"pip install hindsight-learn\[charts\]"):
        charts.diagrams(charted[1])


def test_learning_curves_end_with_their_names(tmp_path):
    curves = {"one": [(10, 1.0), (1000, 0.30)], "two": [(10, 0.9), (1000, 0.31)]}
    drawn = charts.learning_curves(curves, "title", "subtitle", "loss")
    names = drawn.to_dict()["layer"][1]["data"]["values"]
    assert [name["learner"] for name in names] == ["one", "two"]
    assert names[1]["place"] - names[0]["place"] == pytest.approx(0.06 * 0.7)  # apart, though the lines end together
    path = tmp_path / "curves.html"
    charts.save(charts.styled(drawn), str(path), "1 < 2")
    assert path.read_text().count("1 &lt; 2</pre>") == 1


def test_the_script_is_kept_until_its_file_is_damaged(tmp_path, monkeypatch):
    asked = []

    def bundle(snippet, vega_lite):
        asked.append(vega_lite)
        return f"{snippet} // </script> é"

    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    monkeypatch.setattr(drawing, "cache_folder", lambda: tmp_path / "cache")
    library = drawing.library.__wrapped__
    code = library()
    assert code == "window.vegaEmbed = vegaEmbed; // <\\/script> é"
    (file,) = (tmp_path / "cache").iterdir()
    assert version("vl-convert-python") in file.name and asked[0] in file.name
    assert library() == code and len(asked) == 1
    for damaged in (b"", file.read_bytes()[:-1], file.read_bytes().replace(b"vega", b"evil")):
        file.write_bytes(damaged)
        before = len(asked)
        assert library() == code and len(asked) == before + 1
        assert library() == code and len(asked) == before + 1


@pytest.mark.parametrize("folder", ["none", "file"])
def test_the_script_is_made_where_it_cannot_be_kept(tmp_path, monkeypatch, folder):
    (tmp_path / "file").write_text("")
    places = {"none": None, "file": tmp_path / "file" / "cache"}  # no folder can be made in a file
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda snippet, vega_lite: snippet)
    monkeypatch.setattr(drawing, "cache_folder", lambda: places[folder])
    assert drawing.library.__wrapped__() == "window.vegaEmbed = vegaEmbed;"
