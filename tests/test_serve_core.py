"""The durable core of the service, without HTTP: what is acknowledged is there after a crash, to the same bits."""

from __future__ import annotations

import json
import math
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import hindsight
from conftest import many
from hindsight.errors import ModelError, OptionError, SourceError
from hindsight.online import learners
from hindsight.online.learners import LEARNERS
from hindsight.online.panel import Panel
from hindsight.online.run import predicted
from hindsight.serve import service as core
from hindsight.serve import store
from hindsight.serve.client import arrow_stream
from hindsight.serve.planning import service_plan
from hindsight.serve.replay import replay
from hindsight.serve.requests import Limits, Part, ServiceError
from hindsight.serve.rewind import rewind
from hindsight.serve.service import Service
from hindsight.serve.store import NAME, StoreError
from serving import bits_of

PLAN = service_plan("y", "widrow-hoff", eta=0.1)
AUTO = service_plan("y")
CELLS = service_plan("y", cells=True)


def rows(n, seed=0, width=3):
    rng = np.random.default_rng(seed)
    out = []
    for k, x in enumerate(rng.normal(size=(n, width))):
        row = {f"x{j}": float(v) for j, v in enumerate(x)} | {"c": f"k{k % 3}", "y": float(x.sum() + k % 3)}
        out.append(row)
    return out


def learn(data, **more):
    return Part("learn", "lines", "\n".join(map(json.dumps, data)).encode(), **more)


def keep(data):
    return Part("keep", "json", json.dumps(data).encode())


def outcome(*pairs, **more):
    return Part("outcome", "json", b"", parsed=list(pairs), **more)


def crash(service):
    """Let go of the folder as a killed process does."""
    service.store.close()


@pytest.fixture
def start(tmp_path):
    """Start a service in a folder of the test; one that runs there is killed before, and all are closed at the end."""
    running = {}

    def start_one(plan=None, folder="", **more):
        if folder in running:
            crash(running[folder])
        running[folder] = Service(str(tmp_path / folder), plan, **more)
        return running[folder]

    yield start_one
    for service in running.values():
        service.close()


def bits(service):
    return *bits_of(service.live), service.sequence


@pytest.mark.parametrize("plan", [AUTO, CELLS], ids=["auto", "cells"])
def test_a_restart_has_the_same_bits(start, plan):
    data = rows(40)
    peace, cut = start(plan, "a"), start(plan, "b")
    for k in range(0, 40, 4):
        group = [learn(data[k : k + 2]), learn([*data[k + 2 : k + 4], {"new": k, "y": 1.0}])]
        answers = peace.commit(group)
        if k in (12, 20):
            cut.snapshot()
        if k % 8 == 4:
            cut = start(folder="b")
        again = cut.commit([learn(data[k : k + 2]), learn([*data[k + 2 : k + 4], {"new": k, "y": 1.0}])])
        assert again == answers
    assert bits(cut) == bits(peace)
    peace.close()
    third = start(folder="a")
    assert third.replayed == 0
    assert bits(third) == bits(cut)


@pytest.mark.parametrize(
    "plan",
    [
        AUTO,
        CELLS,
        service_plan("y", interval=0.9),
        service_plan("y", "widrow-hoff", eta=0.1, interval=0.9),
        service_plan("y", loss="logistic", labels=["k0", "k1", "k2"]),
    ],
)
def test_predictions_change_neither_the_model_nor_later_predictions(start, plan):
    data = rows(60)
    if plan.labels is not None:
        data = [row | {"y": row["c"]} for row in data]
    questions = [{name: value for name, value in row.items() if name != "y"} for row in data]
    with_reader, without = start(plan, "a"), start(plan, "b")
    for k in range(0, 60, 20):
        for service in (with_reader, without):
            service.commit([learn(data[k : k + 20])])
        with_reader.publish(now=True)  # on a busy machine readers may wait for a later commit
        reader = with_reader.reader
        each = [reader.margins([row]).tobytes() for row in questions]
        together = reader.margins_of([[row] for row in questions])
        assert [z.tobytes() for z in together] == each
        assert predicted(with_reader.live.state.runs[0], whole(reader, questions)).tobytes() == b"".join(each)
    refused, good = reader.margins_of([[{"x0": [1]}], questions[:1]])
    assert "row 0, column 'x0'" in str(refused) and good.tobytes() == each[0]
    assert bits(with_reader) == bits(without)


def whole(reader, questions):
    """Rows to predict, with all the room there is."""
    X = reader.rows.look_up(questions, reader.width)
    X.resize((len(questions), reader.shells.model.features))
    return X


def test_the_newest_snapshot_that_can_be_read_is_taken(start, tmp_path):
    service = start(PLAN)
    service.commit([learn(rows(5))])
    service.snapshot()
    service.commit([learn(rows(5, 1))])
    service.snapshot()
    service.commit([learn(rows(5, 2))])
    before = bits(service)
    crash(service)
    with sqlite3.connect(tmp_path / NAME) as db:
        db.execute("UPDATE snapshots SET state = substr(state, 1, length(state) - 7) WHERE commit_id = 2")
    db.close()
    said = []
    again = start(notify=said.append)
    assert bits(again) == before and again.replayed == 2 and "the snapshot of commit 2 is damaged" in said[0]


def test_old_requests_go_when_a_snapshot_covers_them(start):
    for keep_log in (False, True):
        service = start(PLAN, str(keep_log), keep_log=keep_log)
        for k in range(5):
            service.commit([learn(rows(3, k), source="s", start=3 * k)])
            service.snapshot()
        assert service.store.first_commit() == (1 if keep_log else 5)
        assert service.store.one("SELECT count(*) FROM sources") == (5 if keep_log else 2)
        assert service.store.places() == {"s": 15}


def test_large_bodies_are_files_beside_that_are_durable_before_they_are_referred_to(tmp_path, monkeypatch):
    """Whatever was not synced is lost in any part, names too: of the bodies that commits refer to nothing is."""
    from power_cut import Disk, put, some_cuts

    monkeypatch.setattr(store, "LARGE", 500)
    made, cuts, model = [], [], {}
    with monkeypatch.context() as patch:
        disk = Disk(tmp_path / "disk", patch, lambda _: None)
        service = Service(str(tmp_path / "disk"), PLAN)
        for k in range(4):
            service.commit([learn(rows(12, k))])
            if k == 2:
                service.snapshot()
            made.append(set(os.listdir(tmp_path / "disk" / "bodies")))
            model[service.sequence] = bits(service)
            with sqlite3.connect(tmp_path / f"{k}.db") as copy:
                service.store.db.backup(copy)
            copy.close()
            cuts += [(k, files) for files in some_cuts(disk, k, 6)]
        crash(service)
    assert made[1] == {"1", "2"} and made[-1] == {"1", "2", "3", "4", "snapshot-3"}
    for n, (k, files) in enumerate(cuts):
        folder = str(tmp_path / f"cut{n}")
        bodies = {name: data for name, data in files.items() if name.startswith("bodies")}
        put(bodies | {"bodies": None}, folder)
        shutil.copy(tmp_path / f"{k}.db", os.path.join(folder, NAME))
        again = Service(folder, PLAN)
        assert bits(again) == model[12 * k + 12]
        crash(again)
    (tmp_path / "disk" / "bodies" / "4").unlink()
    with pytest.raises(StoreError, match=r"bodies/4: request 4 \(from row 37 on\) cannot be read"):
        Service(str(tmp_path / "disk"))
    assert rewind(str(tmp_path / "disk"))["row"] == 36


def test_a_backup_taken_while_it_runs(start, tmp_path):
    service, copy = start(PLAN, "a"), tmp_path / "b"
    for k in range(4):
        service.commit([learn(rows(3, k))])
    before = bits(service)
    copy.mkdir()
    service.store.ask("VACUUM INTO ?", (str(copy / NAME),))
    shutil.copy(tmp_path / "a" / "settings.json", copy)
    service.commit([learn(rows(3, 9))])
    again = start(folder="b")
    assert bits(again) == before
    again.commit([learn(rows(3, 9))])
    assert bits(again) == bits(service)


def damaged(folder, commits=6, keep_log=True):
    """A folder that was killed, with what the model was after each row at which a commit ended."""
    service, model = Service(str(folder), PLAN, keep_log=keep_log), {}
    for k in range(commits):
        service.commit([learn(rows(9, k)), learn(rows(40, 50 + k))])
        model[service.sequence] = bits(service)
        if k == commits // 2:
            service.snapshot()
    crash(service)
    return model


def test_a_database_without_its_end_is_not_taken_for_whole(start, tmp_path):
    """Rows that were acknowledged are missed where the WAL is removed, or a bit of it is lost."""
    for k, lose in enumerate((lambda wal: wal.unlink(), lambda wal: wal.write_bytes(wal.read_bytes()[:9000]))):
        folder = tmp_path / str(k)
        service = start(PLAN, str(k))
        for seed in range(5):
            service.commit([learn(rows(9, seed))])
        shutil.copytree(folder, tmp_path / f"copy{k}")  # as a kill leaves it
        lose(tmp_path / f"copy{k}" / f"{NAME}-wal")
        with pytest.raises(StoreError, match=rf"commits \d to 5 are missing: {NAME}-wal was removed"):
            Service(str(tmp_path / f"copy{k}"))
        row = rewind(str(tmp_path / f"copy{k}"))["row"]
        assert start(PLAN, f"copy{k}").sequence == row < 45


def test_damage_is_said_and_rewind_gets_to_the_last_good_commit(tmp_path):
    """A flipped byte anywhere: a start has the same bits, or names the file; and no row before the damage is lost."""
    whole = damaged(tmp_path / "whole")
    data = (tmp_path / "whole" / NAME).read_bytes()
    rng = np.random.default_rng(0)
    refused = []
    for n, at in enumerate([20, 105, *rng.integers(100, len(data), many(12, 300)).tolist()]):
        folder = tmp_path / f"d{n}"
        shutil.copytree(tmp_path / "whole", folder)
        (folder / NAME).write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        try:
            service = Service(str(folder))
        except (StoreError, ModelError) as error:
            refused.append(str(error))
            found = rewind(str(folder))
            service = Service(str(folder))
            assert service.sequence == found["row"]
        assert service.sequence >= 196, (n, at)  # the snapshot after commit 4 has these, or the requests do
        if service.sequence - 9 in whole:  # the first of two requests of a commit, the second of which is damaged
            assert "request" in refused[-1]
        else:
            assert bits(service) == whole[service.sequence], (n, at)
        assert service.commit([learn(rows(2))])[0]["rows"] == 2
        crash(service)
        shutil.rmtree(folder)
    assert refused and all(str(tmp_path) in line and "\n" not in line for line in refused)


def test_a_missing_request_is_said(tmp_path):
    damaged(tmp_path / "whole", 3)
    cases = {
        "DELETE FROM requests WHERE id = 5": r"commit 3 \(rows 108 to 147\) cannot be learnt again: row 99 should come",
        "DELETE FROM requests WHERE id = 5; DELETE FROM snapshots": "request 5 of 6 is missing",
        "DELETE FROM requests WHERE id < 5; DELETE FROM snapshots": "commits 1 to 2 are in no snapshot",
    }
    for k, (query, told) in enumerate(cases.items()):
        folder = tmp_path / str(k)
        shutil.copytree(tmp_path / "whole", folder)
        db = sqlite3.connect(folder / NAME)
        db.executescript(query)
        db.close()
        with pytest.raises(StoreError, match=told):
            Service(str(folder))
        if k < 2:
            assert rewind(str(folder))["row"] == 98
            Service(str(folder)).close()
        else:
            with pytest.raises(SourceError, match="older rows are gone"):
                rewind(str(folder))


@pytest.mark.parametrize("form", ["json", "lines", "arrow"])
def test_rewind(start, tmp_path, form):
    def learn(data):
        lines = ",\n".join(map(json.dumps, data))
        bodies = {"json": f"[{lines}]".encode(), "lines": lines.replace("},", "}").encode(), "arrow": stream(data)}
        return Part("learn", form, bodies[form])

    folder, data, weights = str(tmp_path / "d"), rows(60), {}
    service = start(PLAN, "d", keep_log=True)
    for k in range(0, 60, 6):
        service.commit([learn(data[k : k + 3]), learn(data[k + 3 : k + 6])])
        weights[service.sequence] = service.live.state.runs[0][0].weights.copy()
        if k == 30:
            service.snapshot()
    service.close()
    with pytest.raises(SourceError, match="it has 60 rows"):
        rewind(folder, 61)
    for to in (60, 48, 37, 36, 30, 2):
        told = rewind(folder, to)
        service = start(folder="d")
        assert service.sequence == to and told["aside"].startswith(folder)
        if to in weights:
            assert (service.live.state.runs[0][0].weights == weights[to]).all()
        service.close()
    assert start(folder="d").commit([learn(data[:1])])[0]["sequence"] == 3
    with pytest.raises(SourceError, match="there is no service"):
        rewind(str(tmp_path), 0)
    short = start(PLAN, "short")
    for k in range(3):
        short.commit([learn(data[k : k + 1])])
        short.snapshot()
    short.close()
    with pytest.raises(SourceError, match="it reaches back to row 2 at the earliest"):
        rewind(str(tmp_path / "short"), 1)
    assert rewind(str(tmp_path / "short"), 2)["dropped"] == 1


def test_one_writer_per_folder(tmp_path):
    service = Service(str(tmp_path), PLAN)
    with pytest.raises(SourceError, match="another process serves or rewinds this folder"):
        Service(str(tmp_path))
    with pytest.raises(SourceError, match="another process serves or rewinds this folder"):
        rewind(str(tmp_path))
    service.close()
    Service(str(tmp_path)).close()


def test_keys_make_a_request_count_once(start):
    service = start(PLAN)
    first, second = service.commit([learn(rows(3), key="a", digest="1"), learn(rows(3), key="a", digest="1")])
    assert second == first | {"repeated": True} and service.sequence == 3
    before = bits(service)
    crash(service)
    for _ in range(2):
        service = start()
        (again,) = service.commit([learn(rows(3), key="a", digest="1")])
        assert again == first | {"repeated": True} and bits(service) == before
        (other,) = service.commit([learn(rows(3), key="a", digest="2")])
        assert isinstance(other, ServiceError) and other.status == 422
        service.close()


def test_keys_are_forgotten_from_the_oldest(start):
    service = start(PLAN, limits=Limits(keys=2))
    for key in "abc":
        service.commit([learn(rows(2), key=key, digest="1")])
    assert [service.store.answer_to(key) is None for key in "abc"] == [True, False, False]


def waiting_in(service):
    return [number for (number,) in service.store.ask("SELECT id FROM kept WHERE outcome IS NULL ORDER BY id")]


def test_outcomes_come_later(start):
    now = [1000.0]
    service = start(PLAN, limits=Limits(expire=100.0, pending=3), clock=lambda: now[0])
    service.commit([learn(rows(3))])
    waiting = [{name: v for name, v in row.items() if name != "y"} for row in rows(4, 1)]
    assert service.commit([keep(waiting[:2])]) == [{"ids": [1, 2]}]
    (full,) = service.commit([keep(waiting[:2])])
    assert isinstance(full, ServiceError) and full.status == 429
    service = start(limits=Limits(expire=100.0, pending=3), clock=lambda: now[0])
    assert waiting_in(service) == [1, 2]
    direct = start(PLAN, "direct")
    direct.commit([learn(rows(3))])
    direct.commit([learn([waiting[1] | {"y": 5.0}])])
    (answer,) = service.commit([outcome((2, 5.0))])
    assert answer["sequence"] == 4 and bits(service)[0] == bits(direct)[0]
    again, never, twice = service.commit([outcome((2, 5.0)), outcome((99, 5.0)), outcome((1, 1.0), (1, 1.0))])
    assert (again.status, never.status, twice.status) == (410, 404, 410)
    now[0] += 101.0
    (late,) = service.commit([outcome((1, 5.0))])
    assert late.status == 410 and not waiting_in(service) and service.waiting == 0
    assert service.commit([keep(waiting[:1])]) == [{"ids": [3]}]
    service.close()
    service = start(clock=lambda: now[0])
    assert waiting_in(service) == [3] and service.sequence == 4


def fails(service, code, text):
    """Let the next transaction of a service fail as the disk would make it."""

    def commit():
        error = sqlite3.OperationalError(text)
        error.sqlite_errorcode = code
        raise error

    service.store.commit = commit


def test_a_full_disk_refuses_learning_and_predicting_goes_on(start):
    service = start(AUTO)
    service.commit([learn(rows(5)), learn(rows(5, 1))])
    before = bits(service)
    fails(service, sqlite3.SQLITE_FULL, "database or disk is full")
    group = [learn([{"brand": "new", "y": 1.0}]), learn([{"x0": 1.0, "brand": "old", "y": 2.0}]), keep([{"x0": 1.0}])]
    answers = service.commit(group)
    assert [answer.status for answer in answers] == [507, 507, 507]
    assert bits(service) == before and service.waiting == 0
    assert service.reader.margins([rows(1)[0]]).shape == (1, 1)
    del service.store.commit
    assert service.commit([learn([{"brand": "new", "y": 1.0}])])[0]["sequence"] == 11
    after = bits(service)
    service = start()
    assert bits(service) == after


def test_a_disk_that_does_not_sync_ends_learning(start):
    service = start(PLAN)
    service.commit([learn(rows(5))])
    acknowledged, reader = bits(service), service.reader
    fails(service, sqlite3.SQLITE_IOERR_FSYNC, "disk I/O error")
    (refused,) = service.commit([learn(rows(2, 1))])
    assert refused.status == 503 and service.reader is reader and bits(service) == acknowledged
    del service.store.commit
    (refused,) = service.commit([learn(rows(2, 1))])
    assert refused.status == 503
    service.close()
    service = start()
    assert service.sequence in (5, 7)  # it was not acknowledged: it may be there or not
    assert service.sequence == 7 or bits(service) == acknowledged


def test_a_bad_row_is_refused_with_one_line_and_changes_nothing(start):
    service = start(AUTO, limits=Limits(row_features=9, features=20))
    service.commit([learn(rows(5))])
    before = bits(service)
    cases = {
        "column 'y': 'a' is not a number": [{"x0": 1, "y": "a"}],
        "the target is missing": [{"x0": 1}],
        "is not a number": [{"fresh": 2.0, "y": 1}, {"x0": [1], "y": 1}],
        "is too large": [{"x0": 10**400, "y": 1}],
        "10 features, at most 9": [{f"z{j}": 1 for j in range(9)} | {"y": 1}],
        "more than 20 features": [{f"z{j}{k}": 1 for j in range(8)} | {"y": 1} for k in range(3)],
        "have the same name": [{"c=k0": 1, "c": "k0", "y": 1}],
    }
    for told, bad in cases.items():
        (refused,) = service.commit([learn(bad)])
        assert isinstance(refused, ValueError) and told in str(refused), (told, refused)
        assert "\n" not in str(refused)
    for body in (b"{", b'{"x0": NaN, "y": 1}', b'{"y": 1, "y": 2}', b"[1]", b"\xff", b"[" * 100_000, b""):
        (refused,) = service.commit([Part("learn", "json", body)])
        assert isinstance(refused, SourceError)
    assert bits(service) == before and service.commit_done == 1
    (good, bad) = service.commit([learn(rows(1, 9)), learn(cases["the target is missing"])])
    assert good["sequence"] == 6 and isinstance(bad, SourceError)


def test_labels_settle_with_the_first_rows(start):
    service = start(AUTO)
    (one,) = service.commit([learn([{"x": 1, "y": "yes"}])])
    assert isinstance(one, SourceError) and "--labels" in str(one)
    one, two = service.commit([learn([{"x": 1, "y": "yes"}]), learn([{"x": 1, "y": "yes"}, {"x": 2, "y": "no"}])])
    assert isinstance(one, SourceError) and two["sequence"] == 1 and two["of"] == "log loss"
    (third,) = service.commit([learn([{"x": 1, "y": "maybe"}])])
    assert "label 'maybe' is not one of no, yes" in str(third)
    z = service.reader.margins([{"x": 1.0}])
    assert set(service.reader.answers(z)) == {"predictions", "probabilities"}
    declared = start(service_plan("y", labels=["a", "b", "c"]), "declared")
    (answer,) = declared.commit([learn([{"x": 1, "y": "a"}])])
    assert len(answer["probabilities"][0]) == 3


def test_numbers_that_may_be_labels_are_not_guessed(start):
    cases = [([0, 1], "log loss"), ([-1, 1], "log loss"), ([3, 5], None), ([7], None), ([0.5], "squared error")]
    for first, said in [*cases, ([3, 5, 6], "squared error"), ([1, "x"], "log loss")]:
        service = start(AUTO, str(first))
        (answer,) = service.commit([learn([{"x": 1.0, "y": y} for y in first])])
        if said is None:
            assert "may be labels or numbers" in str(answer) and service.commit_done == 0
        else:
            assert answer["of"] == said


def test_the_plan_stays(tmp_path):
    with pytest.raises(OptionError, match="names the column to predict"):
        Service(str(tmp_path))
    Service(str(tmp_path), PLAN).close()
    with pytest.raises(OptionError, match="was begun with"):
        Service(str(tmp_path), AUTO)
    Service(str(tmp_path), PLAN).close()


def table(data):
    import pyarrow as pa

    names = list(data[0])
    return pa.table({name: [row.get(name) for row in data] for name in names})


def stream(data):
    return arrow_stream(table(data))


value = st.one_of(st.none(), st.floats(-1e6, 1e6), st.integers(-(2**60), 2**60), st.booleans())
words = st.one_of(st.none(), st.text("ab=c é", max_size=3))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries({"a": value, "b": st.floats(-9, 9), "c": words, "y": st.floats(-9, 9)}),
        min_size=1,
        max_size=6,
    )
)
def test_arrow_and_json_say_the_same(tmp_path_factory, data):
    from hindsight.serve.mapping_rows import MappingRows, csr_of
    from hindsight.sources.base import ReadOptions

    data = [{name: row[name] for name in "abcy"} for row in data]  # names join in the order of the row
    data = [row | {"a": None if row["a"] is None else float(row["a"])} for row in data]
    pieces = []
    for part in (learn(data), Part("learn", "arrow", stream(data))):
        reader = MappingRows(ReadOptions(target="y", labels=False, missing="indicator", categorical="auto"), Limits())
        found = reader.encode([part])
        pieces.append((found[0], list(reader.names), reader.state()))
    (one, names, state), (two, others, other_state) = pieces
    assert names == others and state == other_state
    assert (one.y == two.y).all()
    for field in ("data", "indices", "indptr"):
        assert getattr(csr_of(one.X), field).tolist() == getattr(csr_of(two.X), field).tolist(), field


def test_many_lines_are_read_as_columns(start):
    from hindsight.serve.requests import parse

    data = rows(300)
    body = learn(data).body
    assert not isinstance(parse("lines", body, Limits()), list)
    fast, slow = start(AUTO, "a"), start(AUTO, "b")
    (one,) = fast.commit([learn(data)])
    (two,) = slow.commit([Part("learn", "json", json.dumps(data).encode())])
    assert one == two and bits(fast) == bits(slow)
    dated = [row | {"when": "2020-01-01", "n": None} for row in data]
    assert isinstance(parse("lines", learn(dated).body, Limits()), list)  # text, not a date


TEXTS = (
    "1 -0 -0.0 0.5 -1.25e-3 1E5 12345678901234567890 1e999 0.1234567890123456789012 9007199254740993 01 1. .5 +1 1.e5 "
    '--1 nan NaN true null "x" 0x1 1e 4.9e-324'
)
pieces = st.sampled_from(["", "1 2", *TEXTS.split()])
number = st.one_of(pieces, st.floats(allow_nan=False, allow_infinity=False).map(repr), st.integers().map(str))
blank = st.sampled_from(["", "", " ", "\t", "  "])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(number, number, blank, st.sampled_from(["a", "a", "a", "ab", "é"])), min_size=1, max_size=4))
@example([(text, "1", "", "a") for text in ("1", "-0", "2")])
def test_lines_of_numbers_are_read_as_python_reads_them(given_rows):
    from hindsight.serve.requests import columns_of_numbers, parse_json

    lines = [f'{gap}{{{gap}"{name}"{gap}:{gap}{a},"b": {b}{gap}}}{gap}' for a, b, gap, name in given_rows]
    body = "\r\n".join([*lines, ""]).encode()
    try:
        wanted = [parse_json(line.encode(), "") for line in lines]
    except SourceError:
        wanted = None
    try:
        table = columns_of_numbers(body, Limits())
    except SourceError:
        assert wanted is None
        return
    if table is None:
        return
    assert wanted is not None, body
    found = [[float(v) for v in column.to_pylist()] for column in table.columns]
    assert table.column_names == list(wanted[0])
    assert np.array(found).tobytes() == np.array([[float(row[n]) for row in wanted] for n in wanted[0]]).tobytes()


def test_plain_lines_of_numbers_take_the_compiled_way():
    from hindsight.serve.requests import columns_of_numbers

    lines = [json.dumps({"a": k / 7, "b c": -k, "y": 1e-9 * k}) for k in range(300)]
    for end in ("\n", "\r\n", " \n\n"):
        table = columns_of_numbers(end.join(lines).encode(), Limits())
        assert table.num_rows == 300 and table["b c"].to_pylist() == [-float(k) for k in range(300)]
    assert columns_of_numbers(b'{"a": 1}\n' + b"\n" * 10**6, Limits()).num_rows == 1  # blank lines take no room
    assert columns_of_numbers("\n".join([*lines, '{"a": 1}']).encode(), Limits()) is None


def test_damaged_arrow_is_refused():
    from hindsight.serve.requests import parse

    good = stream(rows(50))
    rng = np.random.default_rng(0)
    for _ in range(300):
        bad = bytearray(good)
        for at in rng.integers(0, len(bad), 3):
            bad[at] = rng.integers(256)
        with suppress(SourceError):  # and nothing else; most are refused, some still say something
            parse("arrow", bytes(bad), Limits())


@pytest.mark.parametrize("kind", ["table", "plain", "dicts"])
def test_a_model_goes_on_in_a_service(start, tmp_path, kind):
    data = [row | {"when": f"2020-01-{1 + k % 28:02d}"} for k, row in enumerate(rows(60))]
    if kind == "plain":
        data = [{name: v for name, v in row.items() if name not in ("c", "when")} for row in data]
    source = data[:40] if kind == "dicts" else table(data[:40])
    model = hindsight.learn(source, "y")
    whole = hindsight.learn(source, "y").partial_fit(data[40:] if kind == "dicts" else table(data[40:]))
    service = start(model=model)
    for k in range(40, 60, 5):
        (answer,) = service.commit([learn(data[k : k + 5])])
        assert answer["rows"] == 5
    fresh = [{name: v for name, v in row.items() if name != "y"} for row in data[:5]]
    service = start()
    said = service.reader.answers(service.reader.margins(fresh))["predictions"]
    assert np.allclose(said, whole.predict(fresh if kind == "dicts" else table(fresh)), rtol=1e-9)
    if kind == "dicts":
        assert said == whole.predict(fresh).tolist()
    else:
        (refused,) = service.commit([learn([data[0] | {"unknown": 3}])])
        assert "'unknown' is not one that the model learnt from" in str(refused)
        (refused,) = service.commit([learn([data[0] | {"x1": "word"}])])
        assert "column 'x1'" in str(refused) and "\n" not in str(refused)
    saved = tmp_path / "model"
    service.live.to_model().save(saved)
    assert hindsight.load(saved).progress["rows"] == 60


def test_models_that_cannot_go_on_here_are_said(tmp_path):
    model = hindsight.learn((np.eye(3), [1.0, 2.0, 3.0]), learner="widrow-hoff")
    with pytest.raises(ModelError):
        Service(str(tmp_path), model=model)


def test_snapshots_come_by_themselves(start, monkeypatch):
    monkeypatch.setattr(core, "SNAPSHOT_ROWS", 10)
    service = start(PLAN)
    for k in range(6):
        service.commit([learn(rows(3, k))])
    before = bits(service)
    service = start()
    assert service.replayed == 2 and bits(service) == before


def test_learn_replays_a_service_to_the_same_bits(start, tmp_path):
    """`hindsight learn DIR`: features join on the way, which moves the last digits where chunks are others."""
    from typer.testing import CliRunner

    from hindsight.cli import app

    folder, saved = str(tmp_path / "d"), str(tmp_path / "model")
    service = start(AUTO, "d", keep_log=True)
    data = rows(60)
    for k in range(0, 40, 4):
        service.commit([learn(data[k : k + 2]), learn([*data[k + 2 : k + 4], {"new": k, f"n{k}": 1.0, "y": 1.0}])])
        if k in (12, 24):
            service.snapshot()
    service.commit([Part("learn", "arrow", stream(data[40:55])), keep([data[55]])])
    service.commit([outcome((1, 3.0))])
    live, state, whole = replay(folder), service.live.state, service.live.to_model()
    assert bits_of(live) == bits_of(service.live)
    assert (live.state.rows_done, live.state.losses()) == (state.rows_done, state.losses())
    service.close()
    found = CliRunner().invoke(app, ["learn", folder, "--certify", "--json", "--save", saved])
    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)
    assert told["rows"] == service.sequence and "HOLDS" in found.stdout
    model = hindsight.load(saved)
    assert model.certificate.verdict.value == "HOLDS"
    assert model.runs[0].weights.tobytes() == whole.runs[0].weights.tobytes()
    found = CliRunner().invoke(app, ["learn", folder, "--eta", "1"])
    assert found.exit_code == 2 and "--eta cannot be given for the folder of a service" in found.output
    gone = start(PLAN, "gone")
    for k in range(4):
        gone.commit([learn(rows(3, k))])
        gone.snapshot()
    gone.close()
    found = CliRunner().invoke(app, ["learn", str(tmp_path / "gone")])
    assert found.exit_code == 2 and "--keep-log keeps all" in " ".join(found.output.split())


def certificate_of(service):
    from hindsight.serve.certificate import Certifier

    certifier = Certifier(service)
    try:
        return certifier.compute(certifier.material())
    finally:
        certifier.close()


def test_a_certificate_from_sums_where_the_log_is_gone(start):
    """Features join, rows have weights, the process ends in between: the sums are those of all rows."""
    service = start(service_plan("y", "widrow-hoff", eta=0.05, weight="w"))
    rng, all_rows, names = np.random.default_rng(1), [], ["a", "b", "late"]
    for k in range(12):
        X = rng.normal(size=(20, 2 + (k > 4)))
        data = [dict(zip(names, map(float, x), strict=False)) | {"w": float(rng.integers(1, 4))} for x in X]
        data = [row | {"y": row["a"] - 2 * row["b"] + row.get("late", 0.0) + float(rng.normal())} for row in data]
        all_rows += data
        service.commit([learn(data) if k % 2 else Part("learn", "arrow", stream(data))])
        if k % 3 == 2:
            service.snapshot()
        if k == 7:
            service = start()
    found = certificate_of(service)
    X = np.array([[row["a"], row["b"], row.get("late", 0.0), 1.0] for row in all_rows])
    y, c = (np.array([row[name] for row in all_rows]) for name in "yw")
    u = np.linalg.lstsq(X * np.sqrt(c)[:, None], y * np.sqrt(c), rcond=None)[0]
    wanted = float(c @ (X @ u - y) ** 2)
    assert found["verdict"] == "HOLDS" and "for rows 181 to 240 by themselves" in found["claims"][3]
    assert found["best"]["best"] == pytest.approx(wanted, rel=1e-9) and found["best"]["rows"] == 240
    assert service.summary()["best"] == pytest.approx(wanted, rel=1e-9)
    assert f"{wanted:.6g}" in found["claims"][1] and "no bound is claimed for all rows" in found["claims"][-1]


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_sums_say_how_far_off_they_may_be_and_leave_out_the_row_that_set_the_start(start, offset):
    service = start(service_plan("y", loss="square"))
    X = np.random.default_rng(3).normal(size=(90, 2))
    y = X @ [1.0, -2.0] + 0.1 * np.random.default_rng(4).normal(size=90)
    X[:, 0] += offset
    for k in range(0, 90, 30):
        rows = zip(X[k : k + 30], y[k : k + 30], strict=True)
        service.commit([learn([{"a": a, "b": b, "y": t} for (a, b), t in rows])])
        service.snapshot()
    found = certificate_of(service)
    A = np.c_[X[1:] - X[1:].mean(axis=0), np.ones(89)]
    wanted = float(((A @ np.linalg.lstsq(A, y[1:], rcond=None)[0] - y[1:]) ** 2).sum())
    best, gap = found["best"]["best"], found["best"]["gap"]
    assert abs(best - wanted) <= gap and (gap < 1e-9 * wanted if offset == 0.0 else gap > wanted)
    assert f"squared error {best:.6g} ± {gap:.2g}, from sums" in found["claims"][1]
    assert found["claims"][1].endswith(f"the regret is {found['measured']['loss'] - best:.6g} ± {gap:.2g}")
    assert found["claims"][0].startswith("over all 90 rows so far but the first, which only set the start: off by ")
    assert found["measured"]["constant"] == pytest.approx(float(((y[1:] - y[1:].mean()) ** 2).sum()))
    assert service.summary()["best"] == (pytest.approx(wanted) if offset == 0.0 else None)


def test_a_certificate_over_the_rows_that_are_there(start):
    from sklearn.linear_model import LogisticRegression

    service = start(service_plan("y", "descent", eta=0.3, loss="logistic"))
    rng, all_rows, told = np.random.default_rng(2), [], []
    for k in range(12):
        data = [{"a": float(a), "b": float(b)} for a, b in rng.normal(size=(20, 2))]
        data = [row | {"y": str(int(row["a"] - row["b"] + rng.normal() > 0))} for row in data]
        all_rows += data
        told.append(service.commit([learn(data)])[0]["loss"])
        if k in (2, 5, 8):
            service.snapshot()
    whole = certificate_of(service)
    found = whole["window"]
    assert whole["verdict"] == "HOLDS" and whole["certificate"]["rounds"] == 120
    assert whole["certificate"]["measured"] == pytest.approx(found["loss"], rel=1e-9)
    assert (found["from"], found["rows"]) == (121, 120)  # after the older of two snapshots
    assert found["loss"] == pytest.approx(sum(told[6:]), rel=1e-9)
    X, y = np.array([[row["a"], row["b"]] for row in all_rows[120:]]), [int(row["y"]) for row in all_rows[120:]]
    model = LogisticRegression(C=np.inf, tol=1e-10).fit(X, y)
    wanted = -np.log(model.predict_proba(X)[np.arange(120), y]).sum()
    assert found["best"] == pytest.approx(wanted, rel=1e-6)


# ---------------------------------------------------------------- nothing that was refused leaves a trace


def trace(service):
    """All that a request could have changed."""
    names = ("requests", "keys", "sources", "kept")
    tables = {name: list(service.store.ask(f"SELECT * FROM {name}")) for name in names}
    state, live = service.live.state, service.live
    told = None if state is None else (bits(service), state.constant.tobytes(), state.order.tobytes(), state.rows_done)
    sums = None if live.sums is None else live.sums.tobytes()
    return tables, told, sums, live.plan, live.features, service.sequence, service.waiting, service.history.to_plain()


@pytest.mark.parametrize("plan", [AUTO, PLAN], ids=["auto", "widrow-hoff"])
@pytest.mark.parametrize("y", [1e160, -1e200, 1.7e308])
def test_a_large_finite_target_is_refused(start, plan, y):
    service = start(plan)
    (first,) = service.commit([learn([{"a": 1.0, "y": 0.5}, {"a": 1.0, "y": 3.5}, {"a": 1.0, "y": y}])])
    assert isinstance(first, ValueError) and re.search("so large cannot be learnt|non-finite|overflows", str(first))
    assert service.live.state is None and trace(service)[0]["requests"] == []
    service.commit([learn(rows(5))])
    before = trace(service)
    for bad in ([{"x0": 1.0, "y": y}], [{"fresh": 1.0, "y": 0.5}, {"x0": 1.0, "y": y}]):
        good, refused, late = service.commit([learn(rows(1, 7)), learn(bad), keep([{"x0": 2.0}])])
        assert isinstance(refused, ValueError) and good["rows"] == 1 and late["ids"]
        assert np.isfinite(service.reader.margins([{"x0": 1.0, "fresh": 1.0}])).all()
    assert trace(service)[4] == before[4]
    before = trace(service)
    service = start()
    assert trace(service) == before


def test_what_is_kept_can_be_learnt(start):
    import datetime

    import pyarrow as pa

    service = start(service_plan("y", "widrow-hoff", eta=0.1, ignore=["when"]))
    service.commit([learn(rows(5))])
    before = trace(service)
    dated = pa.table({"x0": [1.0], "when": [datetime.datetime(2020, 1, 1)]})
    infinite = pa.table({"x0": [1.0], "when": [np.inf]})
    for bad in (dated, infinite, pa.table({"x0": [1.0], "c=k0": [1.0], "c": ["k0"]})):
        (refused,) = service.commit([Part("keep", "arrow", arrow_stream(bad))])
        assert isinstance(refused, ValueError) and "\n" not in str(refused)
        assert trace(service) == before
    (kept,) = service.commit([Part("keep", "arrow", arrow_stream(pa.table({"x0": [np.nan], "x1": [0.5]})))])
    before = trace(service)
    service = start()
    assert trace(service) == before
    direct = start(service_plan("y", "widrow-hoff", eta=0.1, ignore=["when"]), "direct")
    direct.commit([learn(rows(5))])
    direct.commit([learn([{"x0": None, "x1": 0.5, "y": 3.0}])])
    (answer,) = service.commit([outcome((kept["ids"][0], 3.0))])
    assert answer["rows"] == 1 and bits(service)[0] == bits(direct)[0]


def test_refused_rows_of_a_stream_are_not_taken(start):
    service = start(PLAN)
    service.commit([learn(rows(5))])
    before = trace(service)
    data = rows(6, 1)
    bad = [*data[:2], {"x0": "word", "fresh": 1.0, "y": "none"}]
    for _ in range(2):
        (refused,) = service.commit([learn(bad, source="f", start=0, key="k", digest="1")])
        assert isinstance(refused, SourceError) and trace(service) == before
    first, second = service.commit([learn(bad, source="f", start=0), learn(data[3:], source="f", start=3)])
    assert isinstance(first, SourceError) and second.status == 409 and trace(service) == before
    first, second = service.commit([learn(data[:3], source="f", start=0), learn(data[3:], source="f", start=3)])
    assert (first["sequence"], second["sequence"]) == (6, 9) and service.store.places() == {"f": 6}
    (again,) = service.commit([learn(data[:3], source="f", start=0)])
    assert again == {"rows": 0, "position": 6, "repeated": True}
    assert certificate_of(service)["verdict"] == "HOLDS"


def test_rows_whose_outcome_is_refused_wait_on(start):
    service = start(PLAN)
    service.commit([learn(rows(5))])
    service.commit([keep([{"x0": 1.0}])])
    before = trace(service)
    wrong_place = outcome((1, 2.0), source="f", start=7)
    for parts in ([outcome((1, math.inf))], [wrong_place], [outcome((1, 10**400)), wrong_place]):
        assert all(isinstance(refused, ValueError) for refused in service.commit(parts))
        assert trace(service) == before
    assert service.commit([outcome((1, 2.0))])[0]["rows"] == 1 and service.waiting == 0


def test_a_refused_first_request_decides_nothing(start):
    service = start(AUTO)
    for bad in ([{"x": [1], "y": "a"}, {"x": 1, "y": "b"}], [{"x": 1e200, "y": "a"}, {"x": 1e200, "y": "b"}]):
        (refused,) = service.commit([learn(bad)])
        assert isinstance(refused, ValueError) and service.live.state is None and service.live.plan is AUTO
    mixed = [learn([{"x": 1, "y": "a"}, {"x": [2], "y": "b"}]), learn([{"x": 1.0, "y": v} for v in (0.5, 1.5, 2.5)])]
    refused, answer = service.commit(mixed)
    assert isinstance(refused, SourceError) and answer["of"] == "squared error"
    before = bits(service)
    service = start()
    assert bits(service) == before and service.live.state.labels is None


def test_smaller_limits_do_not_refuse_what_was_committed(start, tmp_path):
    service = start(PLAN, keep_log=True)
    service.commit([learn(rows(300))])
    before = bits(service)
    crash(service)
    with sqlite3.connect(tmp_path / NAME) as db:
        db.execute("DELETE FROM snapshots")
    db.close()
    service = start(limits=Limits(body=10, rows=3, row_features=1, features=2, values=3))
    assert bits(service) == before
    (refused,) = service.commit([learn([{"fresh": 1.0, "y": 1.0}])])
    assert isinstance(refused, SourceError)


def test_limits_come_before_memory(monkeypatch):
    from hindsight.serve import requests
    from hindsight.serve.requests import parse

    few = Limits(rows=1000, values=5000, row_features=50)
    read = []
    monkeypatch.setattr(requests, "parse_json", lambda text, what: read.append(text) or json.loads(text))
    for form, body in (("lines", b"{}\n" * 2000), ("lines", b"{}\r" * 2000), ("json", b"[" + b"[]," * 6000 + b"[]]")):
        with pytest.raises(SourceError, match=r"at most 1,000 are taken|more than 5,000 values"):
            parse(form, body, few)
    assert read in ([], [b"{}"])  # nothing was made of it
    wide = json.dumps({f"f{j}": "x" for j in range(60)})
    with pytest.raises(SourceError, match="60 features, at most 50"):
        parse("lines", (wide + "\n" * 300).encode(), few)
    names = "\n".join(json.dumps({f"f{j}": "x"}) for j in range(900))  # a column each would be a table of 900 x 900
    assert isinstance(parse("lines", names.encode(), few), list)


FIRST = """
import json, sys
from numba.core.dispatcher import Dispatcher
from hindsight.serve.requests import Part
from hindsight.serve.planning import service_plan
from hindsight.serve.service import Service
service = Service(sys.argv[1], service_plan("y", "widrow-hoff", eta=0.1))
if sys.argv[2] == "warm":
    service.warm_up()
assert service.live.state is None and service.sequence == 0
asked, compile = [], Dispatcher.compile
Dispatcher.compile = lambda self, sig: asked.append(self.py_func.__name__) or compile(self, sig)
for data in ([{"u": 1.0, "v": 2.0, "y": 0.5}, {"u": 1.0, "v": 0.5, "y": 1.5}], [{"u": 1.0, "y": 0.5}]):
    service.commit([Part("learn", "json", json.dumps(data).encode())])
    service.reader.margins([{"u": 1.0}])
print(len(asked))
"""


def test_nothing_is_compiled_by_the_first_requests(tmp_path):
    found = {}
    for how in ("warm", "cold"):
        command = [sys.executable, "-c", FIRST, str(tmp_path / how), how]
        found[how] = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert found["warm"] == 0 < found["cold"]


def test_the_first_row_costs_what_the_certificate_says(start):
    service = start(service_plan("y", loss="square"), keep_log=True)
    (first,) = service.commit([learn([{"x0": 1.0, "y": 410.5}])])
    assert first["loss"] == 0.0  # it gives the members of the panel their start, and is no round
    (more,) = service.commit([learn(rows(9))])
    assert more["loss"] == pytest.approx(service.live.state.losses()[0], rel=1e-12)


def test_the_newest_mistakes_are_the_newest(start):
    service = start(service_plan("y", "descent", eta=0.3, loss="logistic", labels=["0", "1"]))
    data = [{"x": 1.0, "y": 1} for _ in range(300)]
    for t in (10, 40, 90, 230):
        data[t] = {"x": 1.0, "y": 0}
    service.commit([learn(data)])
    assert [each["sequence"] for each in service.summary()["newest_mistakes"]][:4] == [231, 91, 41, 11]
    numbers = start(service_plan("y", "widrow-hoff", eta=0.1), "n")
    for k in range(40):  # the first rows are far off, those that come later less so
        noise = [(50.0 if (k, t) == (39, 3) else 1.0) * (-1.0) ** t for t in range(10)]
        numbers.commit([learn([{"x": 1.0, "y": 1e4 + each} for each in noise])])
    assert 394 in [each["sequence"] for each in numbers.summary()["newest_mistakes"]]


# ---------------------------------------------------------------- folders of earlier versions

FOLDERS = pathlib.Path(__file__).parent / "folders"


def auto_of_then(loss="auto", second_order="auto", drift=0.0, quantile=None, delta=None):
    """The default panel when the folders were written: rows that no snapshot has are learnt by that of today."""
    rates = [0.125, 0.5, 2.0, 8.0, 32.0]
    diagonal = [(0.25, 0.1), (1.0, 1.0), (4.0, 0.01)]
    members = [learners.running("square", eta) for eta in rates]
    members += [learners.diagonal_newton("square", *each) for each in diagonal]
    return Panel([*members, learners.ridge()], "auto", 128)


@pytest.mark.parametrize("name", ["kept-log", "dropped-log", "stuck"])
def test_folders_of_earlier_versions_are_converted(start, tmp_path, monkeypatch, name):
    if name == "stuck":
        monkeypatch.setitem(LEARNERS, "auto", LEARNERS["auto"]._replace(make=auto_of_then))
    wanted = json.loads((FOLDERS / "expected.json").read_text())[name]
    shutil.copytree(FOLDERS / name, tmp_path / "d")
    with pytest.raises(SourceError, match="is of an earlier version: hindsight serve converts it"):
        replay(str(tmp_path / "d"))
    said = []
    service = start(folder="d", notify=said.append, clock=lambda: 1_700_000_100.0)
    assert len(said) == 1 and "was converted" in said[0] and ("without 1" in said[0]) == (name == "stuck")
    probe = [{"x0": 1.0, "x1": -0.5, "x2": 0.25, "c": "k1"}, {"x0": 0.1, "new": 2.0}]
    found = service.reader.answers(service.reader.margins(probe))  # steps may be rounded in another way by now
    assert found.keys() == wanted["probe"].keys()
    for key, values in wanted["probe"].items():
        if isinstance(values[0], str):
            assert found[key] == values
        else:
            np.testing.assert_allclose(found[key], values, rtol=1e-12)
    assert service.sequence == wanted["sequence"] and list(service.live.rows.names) == wanted["names"]
    assert service.live.state.losses()[0] == pytest.approx(wanted["loss"], rel=1e-12)
    assert service.store.places() == wanted["sources"] and waiting_in(service) == wanted["pending"]
    assert all(service.store.answer_to(key) is not None for key in wanted["keys"])
    for number in wanted["pending"]:
        assert service.commit([outcome((number, 1.0 if service.live.state.labels is None else "hi"))])[0]["rows"] == 1
    before = bits(service)
    service = start(folder="d")
    assert bits(service) == before
    if name != "dropped-log":
        assert certificate_of(service)["verdict"] == "HOLDS"
    service.close()
    assert sorted(os.listdir(tmp_path / "d" / "converted")) == ["log", "snapshots"] or name == "stuck"


def test_a_damaged_folder_of_an_earlier_version(start, tmp_path):
    shutil.copytree(FOLDERS / "kept-log", tmp_path / "d")
    path = tmp_path / "d" / "log" / "0000000000000003.log"
    data = path.read_bytes()
    path.write_bytes(data[:100] + b"#" + data[101:])
    with pytest.raises(StoreError, match="byte 0: the log is damaged"):
        start(folder="d")
    assert rewind(str(tmp_path / "d"))["row"] == 20
    service = start(folder="d")
    assert service.sequence == 20 and waiting_in(service) == [1, 2, 3]
