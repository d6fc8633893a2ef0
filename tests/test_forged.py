"""Forged files: whatever a sealed file says, it is refused in one line or gives an object that cannot do harm."""

import base64
import json
import os
import resource
import signal
import sqlite3
import zlib
from pathlib import Path

import numpy as np
import pytest

import forging
import hindsight
from commands import fork
from conftest import many
from hindsight import density
from hindsight.errors import ModelError
from hindsight.storage import checkpoint, container, registry
from hindsight.storage.codec import decode, encode
from hindsight.storage.fields import annotations_of
from hindsight.storage.model import load
from hindsight.training.options import ResultOptions
from hindsight.training.session import Session
from test_model import names_of_all_classes

X, Y, LABELS = forging.X, forging.Y, forging.LABELS


def forge(path, edit):
    """The file with its document edited, and sealed anew."""
    kind, document, tensors = container.read(path, ("model", "estimator", "density", "checkpoint"))
    found = json.loads(document)
    edit(found, tensors)
    container.write(path, kind, json.dumps(found), tensors)


def fields_of(found):
    """The fields of the estimator."""
    (fields,) = found["estimator"].values()
    return fields


def tensor_of(value, tensors, make):
    """Change the array that a value of the document stands for."""
    name = value["$record"][0] if "$record" in value else value["$array"]
    tensors[name] = make(tensors[name].copy())


# ---------------------------------------------------------------- many


def test_forged_files_are_refused_or_harmless():
    files = many(40, 200)
    found = forging.forge(range(files), some=files < 200)
    assert not found.crashes
    assert not found.odd  # nothing but results and errors of ours
    assert found.refused + found.used == files and found.used > files // 40


def test_the_tool_sees_crashes_hangs_and_odd_exceptions(monkeypatch):
    """The test above must be able to fail."""

    def misbehave(how):
        if how == "odd":
            raise KeyError("odd")
        if how == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        while how == "hang":
            pass

    def use(path, forgery, folder, plans):
        forging.attempt(misbehave, forgery.document)
        return "used"

    hows = ["fine", "odd", "crash", "hang"]
    monkeypatch.setattr(forging, "SECONDS", 1)
    monkeypatch.setattr(forging, "use", use)
    monkeypatch.setattr(forging, "true_models", lambda folder, plans: {"one": forging.Saved("model", "fine", {})})
    monkeypatch.setattr(forging, "true_estimators", lambda folder, some: {})
    monkeypatch.setattr(forging, "true_densities", lambda folder: {})
    monkeypatch.setattr(forging, "forged", lambda true, tags, rng: true._replace(document=hows[rng.integers(4)]))
    found = forging.forge(range(12))
    drawn = [hows[np.random.default_rng(k).integers(4)] for k in range(12)]
    assert set(drawn) == set(hows)
    assert len(found.crashes) == drawn.count("crash") + drawn.count("hang")
    assert any(f"status -{int(signal.SIGKILL)}" in crash for crash in found.crashes)
    assert any(f"status -{int(signal.SIGALRM)}" in crash for crash in found.crashes)
    assert found.odd and all("KeyError: 'odd'" in text for text in found.odd)


# ---------------------------------------------------------------- one by one


def edits():
    """For each kind of object a lie that would lead a compiled loop out of its memory, or a reader out of ours."""
    regressor = hindsight.WidrowHoffRegressor(rates=np.full(60, 0.1)).fit(X, Y)
    one = hindsight.WidrowHoffRegressor()
    for k in range(4):
        one.learn_one({"a": 1.0, f"n{k}": 0.5}, 1.0)
    classifier = hindsight.PerceptronClassifier().fit(X, LABELS)
    batch = hindsight.BatchPerceptronClassifier(max_passes=3).fit(X, LABELS)
    isotonic = hindsight.IsotonicRegressor().fit(X[:, 0], Y)
    growing = hindsight.GenerativeClassifier(density.Categorical()).fit(forging.WHOLE[:, :1], LABELS)
    poisson = hindsight.GenerativeClassifier("poisson").fit(forging.WHOLE, LABELS)
    descent = hindsight.GradientDescentRegressor(batch=3, rounds=5).fit(X, Y)

    def run(fields, k=0):
        (found,) = fields["runs_"][k].values()
        return found

    def state(fields, k=0):
        (found,) = run(fields, k)["state"].values()
        return found

    def part(fields):
        (found,) = fields["_each"][0].values()
        return found

    def bank(fields):
        (found,) = fields["_bank"].values()
        return found

    def half(fields):
        (found,) = fields["halfspaces_"][1].values()
        return found

    def shorter(a):
        return a[:-1]

    def narrow(fields, tensors):
        for value in (run(fields, 1)["first"], *state(fields, 1).values()):
            tensor_of(value, tensors, lambda a: a[:-2] if a.size > 2 else a)

    def negative(bits):
        bits[..., 0] = -(1 << 40)
        return bits

    def rounds(bits):
        bits[..., 0] = np.float64(80.0).view(np.int64)
        return bits

    return {
        "a narrower run": (classifier, narrow, "a run has 2 features"),
        "columns of names": (one, lambda f, t: f["_column"].update(n2=1 << 40), "`_column` must number 5 names"),
        "a row laid out": (one, lambda f, t: f.update(_row=1), "cannot have a field '_row'"),
        "more rounds than rates": (
            regressor, lambda f, t: tensor_of(run(f)["progress"], t, rounds), "60 rates were given, but .* rounds is 80"
        ),
        "a scan before the first row": (
            batch, lambda f, t: tensor_of(half(f)["progress"], t, negative), "number of position is -1099511627776"
        ),
        "a narrower halfspace": (
            batch, lambda f, t: tensor_of(half(f)["weights"], t, shorter), "`pocket` must be a vector of 4"
        ),
        "knots without values": (
            isotonic, lambda f, t: tensor_of(f["knots_"]["$tuple"][1], t, shorter), "two vectors of one length"
        ),
        "places of symbols": (
            growing, lambda f, t: part(f).update(_place={"$map": [[0], [1 << 40]]}), "`_place` must number . names"
        ),
        "statistics of fewer classes": (
            poisson, lambda f, t: tensor_of(bank(f)["n"], t, shorter), r"`state` must be an array of shape \(2, 2, 4\)"
        ),
        "rounds of a descent": (
            descent, lambda f, t: tensor_of(state(f)["rounds"], t, lambda a: a - 99.0), "number of rounds is -94.0"
        ),
        "an array for a number": (
            regressor, lambda f, t: t.update(z=np.zeros((9, 9))) or f.update(n_features_in_={"$array": "z"}),
            "`n_features_in_` is array",
        ),
        "nan": (
            regressor, lambda f, t: tensor_of(state(f)["theta"], t, lambda a: a * np.nan), "`theta` must be numbers"
        ),
    }  # fmt: skip


@pytest.fixture(scope="module")
def all_edits():
    return edits()


@pytest.mark.parametrize("name", [
    "a narrower run", "columns of names", "a row laid out", "more rounds than rates", "a scan before the first row",
    "a narrower halfspace", "knots without values", "places of symbols", "statistics of fewer classes",
    "rounds of a descent", "an array for a number", "nan",
])  # fmt: skip
def test_a_lie_that_leads_out_of_memory_is_refused(tmp_path, all_edits, name):
    estimator, edit, message = all_edits[name]
    estimator.save(tmp_path / "m")
    load(tmp_path / "m")
    forge(tmp_path / "m", lambda found, tensors: edit(fields_of(found), tensors))
    with pytest.raises(ModelError, match=message) as error:
        load(tmp_path / "m")
    assert len(str(error.value).splitlines()) == 1


def lies_of_densities():
    """For each density whose file is not its attributes, lies that its loops or its sums would not see."""
    keyed = density.Keyed(density.Product({"a": density.Poisson()}), "b").update({"a": [1, 2, 3], "b": list("xyx")})
    words = density.NGram(3).update(["a b", "b a c"])
    counted = density.Categorical(3).update([0, 1, 1])
    waits = density.Gamma().update([1.0, 2.0])

    def table(change):
        def edit(fields, tensors):
            tensors[fields["_counts"]["$array"]] = change(tensors[fields["_counts"]["$array"]].copy())

        return edit

    def set_to(row, column, value):
        def change(counts):
            counts[row, column] = value
            return counts

        return change

    def statistic(fields, tensors):
        (part,) = fields["_parts"][0].values()
        return part

    def first_row(a):
        a[0] = 1.0
        return a

    return {
        "a key more": (keyed, lambda f, t: f["_keys"].append("z"), "statistics of 3 keys"),
        "a key twice": (keyed, lambda f, t: f.update(_keys=["x", "x"]), "keys that differ"),
        "a list for a key": (keyed, lambda f, t: f.update(_keys=["x", []]), "unhashable"),
        "fewer statistics": (
            keyed, lambda f, t: tensor_of(statistic(f, t)["state"], t, lambda a: a[:-1]), r"array of shape \(3, 2, 1\)"
        ),
        "rows of nobody": (keyed, lambda f, t: tensor_of(statistic(f, t)["n"], t, first_row), "rows of unknown keys"),
        "no room": (keyed, lambda f, t: f.update(capacity=1), "`capacity` is too small"),
        "another prior": (
            keyed, lambda f, t: statistic(f, t)["part"].update(
                {"$density.base:Rate": {"prior": t.update(z=np.ones((2, 1))) or {"$array": "z"}}}
            ), "densities like those of `inner`",
        ),
        "a word that is not there": (words, table(set_to(0, -2, 99)), "words of the vocabulary"),
        "a history that is not there": (words, table(set_to(0, 0, -2)), "words before them"),
        "a hole in a history": (words, table(set_to(0, 1, -1)), "words before them"),
        "a count below 1": (words, table(set_to(0, -1, 0)), "must count"),
        "a count twice": (words, table(lambda a: np.concatenate((a, a[:1]))), "each history and word once"),
        "a longer order": (words, lambda f, t: f.update(order=4), "table of 5 columns"),
        "a long order": (words, lambda f, t: f.update(order=1 << 30), "from 1 to 100"),
        "counts that do not sum": (counted, lambda f, t: tensor_of(f["n"], t, lambda a: a + 1), "must sum to `n`"),
        "a sum below 0": (waits, lambda f, t: tensor_of(f["state"], t, lambda a: -a), "sums at least 0"),
    }  # fmt: skip


def test_lies_of_densities_are_refused(tmp_path):
    for name, (made, edit, message) in lies_of_densities().items():
        made.save(tmp_path / "m")
        load(tmp_path / "m")

        def lie(found, tensors, edit=edit):
            (fields,) = found["density"].values()
            edit(fields, tensors)

        forge(tmp_path / "m", lie)
        with pytest.raises(ModelError, match=message) as error:
            load(tmp_path / "m")
        assert len(str(error.value).splitlines()) == 1, name


def test_a_narrower_second_run_of_a_checkpoint_is_refused(tmp_path):
    plan = forging.write_data(tmp_path)["two"]
    session = Session(plan, ResultOptions(checkpoint=str(tmp_path / "kept"), every=10))
    session.run()
    path = checkpoint.path_of(tmp_path / "kept", max(checkpoint.generations(tmp_path / "kept")))

    def narrow(found, tensors):
        run = found["state"]["runs"][1][0]["$online.run:Run"]
        (state,) = run["state"].values()
        for value in (run["first"], state["theta"]):
            tensor_of(value, tensors, lambda a: a[:2])

    forge(path, narrow)
    again = Session(plan, ResultOptions(checkpoint=str(tmp_path / "kept"), every=10, resume=True))
    with pytest.raises(ModelError, match="all runs must have the same features"):
        again.run()


def test_no_file_that_a_model_names_is_opened(tmp_path):
    """Where keys spilled to is neither saved nor loaded, so no table is made there."""
    store = sqlite3.connect(tmp_path / "mine.db")
    store.execute("CREATE TABLE states (key TEXT)")
    store.execute("INSERT INTO states VALUES ('precious')")
    store.commit()
    density.Keyed(density.Poisson(), "who", spill=str(tmp_path / "mine.db")).save(tmp_path / "m")
    assert b"mine.db" not in (tmp_path / "m").read_bytes() and load(tmp_path / "m").spill is None

    def spill(found, tensors):
        found["density"]["$density.keyed:Keyed"]["spill"] = str(tmp_path / "mine.db")

    forge(tmp_path / "m", spill)
    with pytest.raises(ModelError, match="Keyed cannot have a field 'spill'"):
        load(tmp_path / "m")
    assert store.execute("SELECT key FROM states").fetchall() == [("precious",)]
    store.close()


def test_generators_that_stand_outside_of_their_buffers_are_refused():
    for rng, where in ((np.random.RandomState(1), "state"), (np.random.Generator(np.random.Philox(1)), None)):
        for place in (-1, 1 << 30, 625, "x"):
            document, tensors = encode(rng)
            found = json.loads(document)
            state = found["$random"][1]
            (state if where is None else state[where])["pos" if where else "buffer_pos"] = place
            with pytest.raises(ModelError, match="must be a whole number from 0 to"):
                decode(json.dumps(found), tensors)


def test_booleans_are_0_or_1():
    document, tensors = encode(np.array([True, False, True]))
    (name,) = tensors
    tensors[name] = np.array([1, 0, 255], np.uint8)
    with pytest.raises(ModelError, match="a boolean must be 0 or 1"):
        decode(document, tensors)


def test_the_type_of_every_field_is_known():
    """Where an annotation names what only type checkers know, the class has a check of its own."""
    names_of_all_classes()
    unknown = {}
    for name, entry in registry._registered.items():
        if entry.typed and not name.startswith(":"):
            loose = [field for field, hint in annotations_of(entry.cls).items() if hint is forging.Any]
            unknown |= {name: loose} if loose else {}
    assert unknown == {"batch.isotron:History": ["link"], "training.model:Model": ["certificate"]}  # with own checks


# ---------------------------------------------------------------- memory


def in_bounded_memory(do, room=1 << 30) -> str:
    """What an action says that may take so much memory beside what there is, in a process of its own."""
    out, into = os.pipe()
    child = fork()
    if child == 0:
        message = "nothing was raised"
        try:
            now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (now + room, now + room))
            do()
        except BaseException as error:
            message = f"{type(error).__name__}: {error}"
        finally:
            os.write(into, message.encode()[:4000])
            os._exit(0)
    os.close(into)
    with open(out) as told:
        text = told.read()
    os.waitpid(child, 0)
    return text


@pytest.mark.parametrize("what", ["$list", "$string", "$texts", "$text"])
def test_a_small_file_does_not_fill_the_memory(tmp_path, what):
    """The same tensor named a hundred thousand times, or as many wide arrays of strings."""
    tensors = {"t": np.zeros(1 << 20, np.uint8 if what != "$list" else np.int64), "e": np.array([1 << 20])}
    body = {"$list": "t", "$string": "t", "$texts": ["t", "e"], "$text": [["a"], 1 << 23, [1]]}[what]
    container.write(tmp_path / "m", "checkpoint", json.dumps({"a": [{what: body}] * 100_000}), tensors)
    said = in_bounded_memory(lambda: checkpoint.read(tmp_path / "m"))
    assert said.startswith("ModelError") and ("is used twice" in said or "at most 67,108,864 bytes" in said), said


def test_what_is_packed_in_a_model_does_not_fill_the_memory(tmp_path):
    plans = forging.write_data(tmp_path)
    source = plans["hashed"].open()
    state = source.state() | {"prints": packed_zeros(many(2, 4) << 30)}
    said = in_bounded_memory(lambda: source.restore(state))
    assert said == "nothing was raised", said


def packed_zeros(size: int) -> str:
    """So many zeros, packed, without making them all."""
    packer, out, block = zlib.compressobj(1), [], bytes(1 << 24)
    for _ in range(size >> 24):
        out.append(packer.compress(block))
    return base64.b64encode(b"".join([*out, packer.flush()])).decode()
