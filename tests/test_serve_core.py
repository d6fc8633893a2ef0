"""The durable core of the service, without HTTP: what is acknowledged is there after a crash, to the same bits."""

from __future__ import annotations

import errno
import json
import os
import pathlib
import shutil
import struct
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import hindsight
from hindsight.errors import ModelError, OptionError, SourceError
from hindsight.serve import service as core
from hindsight.serve.log import HEADER, LogError, read_log, segments
from hindsight.serve.parts import Limits, Part
from hindsight.serve.planning import service_plan
from hindsight.serve.service import Service, ServiceError

PLAN = service_plan("y", "widrow-hoff", eta=0.1)
AUTO = service_plan("y")


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
    service.log.close()
    service.pool.shutdown()
    service.folder.close()


def bits(service):
    run = service.live.state.runs[0][0]
    arrays = [run.state] if not hasattr(run, "members") else [run.state, *(member.state for member in run.members)]
    flat = [values.tobytes() for state in arrays for values in state]
    return flat, run.tally.tobytes(), list(service.live.rows.names), service.sequence


def test_a_restart_has_the_same_bits(tmp_path):
    data = rows(40)
    peace, cut = Service(str(tmp_path / "a"), AUTO), Service(str(tmp_path / "b"), AUTO)
    for k in range(0, 40, 4):
        group = [learn(data[k : k + 2]), learn([*data[k + 2 : k + 4], {"new": k, "y": 1.0}])]
        answers = peace.commit(group)
        if k in (12, 20):
            cut.snapshot()
        if k % 8 == 4:
            crash(cut)
            cut = Service(str(tmp_path / "b"))
        again = cut.commit([learn(data[k : k + 2]), learn([*data[k + 2 : k + 4], {"new": k, "y": 1.0}])])
        assert again == answers
    assert bits(cut) == bits(peace)
    peace.close()
    cut.close()
    third = Service(str(tmp_path / "a"))
    assert third.replayed == 0
    assert bits(third) == bits(cut)
    third.close()


def test_the_newest_snapshot_that_can_be_read_is_taken(tmp_path):
    service = Service(str(tmp_path), PLAN)
    service.commit([learn(rows(5))])
    service.snapshot()
    service.commit([learn(rows(5, 1))])
    service.snapshot()
    service.commit([learn(rows(5, 2))])
    before = bits(service)
    crash(service)
    newest = sorted(tmp_path.glob("snapshots/*.checkpoint"))[-1]
    newest.write_bytes(newest.read_bytes()[:-7])
    again = Service(str(tmp_path))
    assert bits(again) == before and again.replayed == 2
    again.close()


def test_old_segments_go_when_a_snapshot_covers_them(tmp_path):
    for keep_log in (False, True):
        service = Service(str(tmp_path / str(keep_log)), PLAN, keep_log=keep_log)
        for k in range(5):
            service.commit([learn(rows(3, k))])
            service.snapshot()
        first = segments(service.folder.log)[0][0]
        assert first == (1 if keep_log else 5)
        service.close()


def test_a_torn_last_frame_is_cut_off_and_said(tmp_path):
    service = Service(str(tmp_path), PLAN)
    for k in range(3):
        service.commit([learn(rows(3, k))])
    two = [frame.end for frame in read_log(service.folder.log)][1]
    crash(service)
    path = segments(str(tmp_path / "log"))[-1][1]
    whole = pathlib.Path(path).read_bytes()
    for size in range(two, len(whole)):
        with open(path, "wb") as file:
            file.write(whole[:size])
        said = []
        again = Service(str(tmp_path), notify=said.append)
        assert again.sequence == 6
        assert bool(said) == (size > two)
        assert all("was cut off" in line and f"byte {two}" in line for line in said)
        crash(again)
        for each in tmp_path.glob("snapshots/*"):
            each.unlink()
        with open(path, "wb") as file:
            file.write(whole)
    with open(path, "wb") as file:  # a power cut may leave zeros where the frame was to be
        file.write(whole[:two] + bytes(len(whole) - two))
    said = []
    again = Service(str(tmp_path), notify=said.append)
    assert again.sequence == 6 and len(said) == 1
    again.close()


def test_a_power_cut_drops_what_was_not_synced(tmp_path):
    """Sectors of the last frame reach the disk in any order, or not; those before it were synced."""
    service = Service(str(tmp_path), PLAN)
    for k in range(3):
        service.commit([learn(rows(9, k))])
    two = [frame.end for frame in read_log(service.folder.log)][1]
    crash(service)
    path = pathlib.Path(segments(str(tmp_path / "log"))[-1][1])
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    found = set()
    for _ in range(60):
        disk = bytearray(whole)
        for sector in range(two // 512, len(whole) // 512 + 1):
            a, b = max(two, 512 * sector), min(len(whole), 512 * sector + 512)
            if rng.random() < 0.4:
                disk[a:b] = bytes(b - a)
        path.write_bytes(disk[: rng.integers(two, len(whole) + 1)] if rng.random() < 0.5 else disk)
        again = Service(str(tmp_path))
        found.add(again.sequence)
        crash(again)
        for each in [*tmp_path.glob("snapshots/*"), *tmp_path.glob("log/*.cut-at-*")]:
            each.unlink()
    assert found <= {18, 27} and 18 in found


def test_a_power_cut_at_every_write(tmp_path, monkeypatch):
    """Whatever was not synced is lost in any part, names too: all that was acknowledged is there, to the same bits."""
    import functools

    from power_cut import Disk, put, some_cuts

    acknowledged, begun, cuts, model = [0], [0], [], {}

    def note(disk):
        cuts.extend((acknowledged[0], begun[0], files) for files in some_cuts(disk, len(cuts), 8))

    with monkeypatch.context() as patch:
        disk = Disk(tmp_path / "disk", patch, note)
        patch.setattr(core, "Log", functools.partial(core.Log, segment=4000))
        service = Service(str(tmp_path / "disk"), PLAN)
        for k in range(12):
            begun[0] = 12 * k + 12
            (answer,) = service.commit([learn(rows(12, k))])
            assert answer["rows"] == 12
            acknowledged[0] = service.sequence
            model[service.sequence] = bits(service)
            if k % 4 == 3:
                service.snapshot()
        assert disk.since == [] or all(None in each.values() for _, each in disk.since)  # but for what was removed
        crash(service)
    seen = {(sure, most, tuple(sorted(files.items()))): files for sure, most, files in cuts}
    assert len(seen) > 100
    for k, ((sure, most, _), files) in enumerate(seen.items()):
        folder = str(tmp_path / f"cut{k}")
        put(files, folder)
        again = Service(folder, PLAN)
        assert sure <= again.sequence <= most, (k, sure, again.sequence, most)
        if again.sequence:
            assert bits(again) == model[again.sequence]
        crash(again)
        shutil.rmtree(folder)


def test_a_backup_taken_while_it_runs(tmp_path):
    service, copy = Service(str(tmp_path / "a"), PLAN), tmp_path / "b"
    for k in range(4):
        service.commit([learn(rows(3, k))])
    shutil.copytree(tmp_path / "a" / "log", copy / "log")
    for k in range(4, 8):
        service.commit([learn(rows(3, k))])
        service.snapshot()
    shutil.copytree(tmp_path / "a" / "snapshots", copy / "snapshots")
    shutil.copy(tmp_path / "a" / "settings.json", copy)
    before = bits(service)
    again = Service(str(copy))
    assert bits(again) == before
    for each in (service, again):
        each.commit([learn(rows(3, 9))])
    crash(again)
    again = Service(str(copy))
    assert bits(again) == bits(service)
    again.close()
    service.close()


def test_a_damaged_frame_in_the_middle_stops_with_its_place(tmp_path):
    service = Service(str(tmp_path), PLAN)
    for k in range(3):
        service.commit([learn(rows(3, k))])
    ends = [0, *(frame.end for frame in read_log(service.folder.log))]
    crash(service)
    path = segments(str(tmp_path / "log"))[-1][1]
    whole = pathlib.Path(path).read_bytes()
    for at in [*range(ends[1], ends[1] + HEADER.size), ends[1] + HEADER.size, ends[2] - 1, ends[1] + 40]:
        damaged = bytearray(whole)
        damaged[at] ^= 0x10
        with open(path, "wb") as file:
            file.write(damaged)
        with pytest.raises(LogError, match=rf"byte {ends[1]}: the log is damaged"):
            Service(str(tmp_path))
    with open(path, "wb") as file:
        file.write(whole[: ends[1]] + whole[ends[2] :])
    with pytest.raises(LogError, match="commit 2 is missing"):
        Service(str(tmp_path))


def test_a_missing_segment_is_said(tmp_path):
    service = Service(str(tmp_path), PLAN)
    for k in range(3):
        service.commit([learn(rows(3, k))])
        service.log.close()
    crash(service)
    found = segments(str(tmp_path / "log"))
    os.rename(found[1][1], tmp_path / "aside")
    with pytest.raises(LogError, match="commits 2 to 2 are missing"):
        Service(str(tmp_path))
    os.rename(found[0][1], tmp_path / "aside")
    with pytest.raises(LogError, match="are in no snapshot and not in the log"):
        Service(str(tmp_path))


def test_one_writer_per_folder(tmp_path):
    service = Service(str(tmp_path), PLAN)
    with pytest.raises(SourceError, match="another process serves or rewinds this folder"):
        Service(str(tmp_path))
    service.close()
    Service(str(tmp_path)).close()


def test_keys_make_a_request_count_once(tmp_path):
    service = Service(str(tmp_path), PLAN)
    first, second = service.commit([learn(rows(3), key="a", digest="1"), learn(rows(3), key="a", digest="1")])
    assert first == second and service.sequence == 3
    before = bits(service)
    crash(service)
    for _ in range(2):
        service = Service(str(tmp_path))
        (again,) = service.commit([learn(rows(3), key="a", digest="1")])
        assert again == first | {"repeated": True} and bits(service) == before
        (other,) = service.commit([learn(rows(3), key="a", digest="2")])
        assert isinstance(other, ServiceError) and other.status == 422
        service.close()


def test_keys_are_forgotten_from_the_oldest(tmp_path):
    service = Service(str(tmp_path), PLAN, limits=Limits(keys=2))
    for key in "abc":
        service.commit([learn(rows(2), key=key, digest="1")])
    assert list(service.keys) == ["b", "c"]
    service.close()


def test_outcomes_come_later(tmp_path):
    now = [1000.0]
    service = Service(str(tmp_path), PLAN, limits=Limits(expire=100.0, pending=3), clock=lambda: now[0])
    service.commit([learn(rows(3))])
    waiting = [{name: v for name, v in row.items() if name != "y"} for row in rows(4, 1)]
    assert service.commit([keep(waiting[:2])]) == [{"ids": [1, 2]}]
    (full,) = service.commit([keep(waiting[:2])])
    assert isinstance(full, ServiceError) and full.status == 429
    crash(service)
    service = Service(str(tmp_path), limits=Limits(expire=100.0, pending=3), clock=lambda: now[0])
    assert list(service.pending) == [1, 2]
    direct = Service(str(tmp_path / "direct"), PLAN)
    direct.commit([learn(rows(3))])
    direct.commit([learn([waiting[1] | {"y": 5.0}])])
    (answer,) = service.commit([outcome((2, 5.0))])
    assert answer["sequence"] == 4 and bits(service)[0] == bits(direct)[0]
    direct.close()
    again, never, twice = service.commit([outcome((2, 5.0)), outcome((99, 5.0)), outcome((1, 1.0), (1, 1.0))])
    assert (again.status, never.status, twice.status) == (410, 404, 410)
    now[0] += 101.0
    (late,) = service.commit([outcome((1, 5.0))])
    assert late.status == 410 and not service.pending
    assert service.commit([keep(waiting[:1])]) == [{"ids": [3]}]
    service.close()
    service = Service(str(tmp_path), clock=lambda: now[0])
    assert list(service.pending) == [3] and service.sequence == 4
    service.close()


def test_a_full_disk_refuses_learning_and_predicting_goes_on(tmp_path, monkeypatch):
    service = Service(str(tmp_path), AUTO)
    service.commit([learn(rows(5))])
    before = bits(service)
    real = os.pwrite

    def full(file, data, at):
        real(file, data[:10], at)  # a part of it may have been written
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    (refused,) = service.commit([learn([{"brand": "new", "y": 1.0}])])
    assert isinstance(refused, ServiceError) and refused.status == 507
    assert bits(service) == before
    assert service.reader.margins([rows(1)[0]]).shape == (1, 1)
    monkeypatch.setattr(os, "pwrite", real)
    assert service.commit([learn([{"brand": "new", "y": 1.0}])])[0]["sequence"] == 6
    after = bits(service)
    crash(service)
    said = []
    service = Service(str(tmp_path), notify=said.append)
    assert bits(service) == after and not said
    service.close()


def test_a_disk_that_does_not_sync_ends_learning(tmp_path, monkeypatch):
    service = Service(str(tmp_path), PLAN)
    service.commit([learn(rows(5))])
    acknowledged = bits(service)
    reader = service.reader

    def fails(file):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fails)
    (refused,) = service.commit([learn(rows(2, 1))])
    assert refused.status == 503 and service.reader is reader
    monkeypatch.undo()
    (refused,) = service.commit([learn(rows(2, 1))])
    assert refused.status == 503
    service.close()
    service = Service(str(tmp_path))
    assert service.sequence in (5, 7)  # it was not acknowledged: it may be there or not
    assert service.sequence == 7 or bits(service) == acknowledged
    service.close()


def test_a_bad_row_is_refused_with_one_line_and_changes_nothing(tmp_path):
    service = Service(str(tmp_path), AUTO, limits=Limits(row_features=9, features=20))
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
    assert bits(service) == before and service.log.commit == 1
    (good, bad) = service.commit([learn(rows(1, 9)), learn(cases["the target is missing"])])
    assert good["sequence"] == 6 and isinstance(bad, SourceError)
    service.close()


def test_a_row_that_cannot_be_played_is_refused_and_replays_the_same(tmp_path):
    service = Service(str(tmp_path), service_plan("y", "descent", eta=1e200, loss="square"))
    service.commit([learn([{"x": 1e200, "y": 1e100}])])
    group = [learn([{"x": 1e300, "y": 1e300}]), learn([{"x": 1e-300, "y": 0.0}])]
    answers = service.commit(group)
    assert any(isinstance(answer, ServiceError) for answer in answers)
    before = bits(service)
    crash(service)
    service = Service(str(tmp_path))
    assert bits(service) == before
    service.close()


def test_labels_settle_with_the_first_rows(tmp_path):
    service = Service(str(tmp_path), AUTO)
    (one,) = service.commit([learn([{"x": 1, "y": "yes"}])])
    assert isinstance(one, SourceError) and "--labels" in str(one)
    one, two = service.commit([learn([{"x": 1, "y": "yes"}]), learn([{"x": 1, "y": "yes"}, {"x": 2, "y": "no"}])])
    assert isinstance(one, SourceError) and two["sequence"] == 1 and two["of"] == "log loss"
    (third,) = service.commit([learn([{"x": 1, "y": "maybe"}])])
    assert "label 'maybe' is not one of no, yes" in str(third)
    z = service.reader.margins([{"x": 1.0}])
    assert set(service.reader.answers(z)) == {"predictions", "probabilities"}
    service.close()
    declared = Service(str(tmp_path / "declared"), service_plan("y", labels=["a", "b", "c"]))
    (answer,) = declared.commit([learn([{"x": 1, "y": "a"}])])
    assert len(answer["probabilities"][0]) == 3
    declared.close()


def test_numbers_that_may_be_labels_are_not_guessed(tmp_path):
    cases = [([0, 1], "log loss"), ([-1, 1], "log loss"), ([3, 5], None), ([7], None), ([0.5], "squared error")]
    for first, said in [*cases, ([3, 5, 6], "squared error"), ([1, "x"], "log loss")]:
        service = Service(str(tmp_path / str(first)), AUTO)
        (answer,) = service.commit([learn([{"x": 1.0, "y": y} for y in first])])
        if said is None:
            assert "may be labels or numbers" in str(answer) and service.log.commit == 0
        else:
            assert answer["of"] == said
        service.close()


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
    import pyarrow as pa

    sink, arrow = pa.BufferOutputStream(), table(data)
    with pa.ipc.new_stream(sink, arrow.schema) as out:
        out.write_table(arrow)
    return sink.getvalue().to_pybytes()


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
    from hindsight.serve.mappings import MappingRows, csr_of
    from hindsight.sources.base import ReadOptions

    data = [{name: row[name] for name in "abcy"} for row in data]  # names join in the order of the row
    data = [row | {"a": None if row["a"] is None else float(row["a"])} for row in data]
    pieces = []
    for part in (learn(data), Part("learn", "arrow", stream(data))):
        reader = MappingRows(ReadOptions(target="y", labels=False, missing="indicator", categorical="auto"), Limits())
        found, refused = reader.encode([part])
        assert not refused
        pieces.append((found[0], list(reader.names), reader.state()))
    (one, names, state), (two, others, other_state) = pieces
    assert names == others and state == other_state
    assert (one.y == two.y).all()
    for field in ("data", "indices", "indptr"):
        assert getattr(csr_of(one.X), field).tolist() == getattr(csr_of(two.X), field).tolist(), field


def test_many_lines_are_read_as_columns(tmp_path):
    from hindsight.serve.parts import parse

    data = rows(300)
    body = learn(data).body
    assert not isinstance(parse("lines", body, Limits()), list)
    fast, slow = Service(str(tmp_path / "a"), AUTO), Service(str(tmp_path / "b"), AUTO)
    (one,) = fast.commit([learn(data)])
    (two,) = slow.commit([Part("learn", "json", json.dumps(data).encode())])
    assert one == two and bits(fast) == bits(slow)
    dated = [row | {"when": "2020-01-01", "n": None} for row in data]
    assert isinstance(parse("lines", learn(dated).body, Limits()), list)  # text, not a date
    fast.close()
    slow.close()


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
    from hindsight.serve.parts import columns_of_numbers, parse_json

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
    from hindsight.serve.parts import columns_of_numbers

    lines = [json.dumps({"a": k / 7, "b c": -k, "y": 1e-9 * k}) for k in range(300)]
    for end in ("\n", "\r\n", " \n\n"):
        table = columns_of_numbers(end.join(lines).encode(), Limits())
        assert table.num_rows == 300 and table["b c"].to_pylist() == [-float(k) for k in range(300)]
    assert columns_of_numbers(b'{"a": 1}\n' + b"\n" * 10**6, Limits()).num_rows == 1  # blank lines take no room
    assert columns_of_numbers("\n".join([*lines, '{"a": 1}']).encode(), Limits()) is None


def test_damaged_arrow_is_refused():
    from hindsight.serve.parts import parse

    good = stream(rows(50))
    rng = np.random.default_rng(0)
    for _ in range(300):
        bad = bytearray(good)
        for at in rng.integers(0, len(bad), 3):
            bad[at] = rng.integers(256)
        with suppress(SourceError):  # and nothing else; most are refused, some still say something
            parse("arrow", bytes(bad), Limits())


@pytest.mark.parametrize("kind", ["table", "plain", "dicts"])
def test_a_model_goes_on_in_a_service(tmp_path, kind):
    data = [row | {"when": f"2020-01-{1 + k % 28:02d}"} for k, row in enumerate(rows(60))]
    if kind == "plain":
        data = [{name: v for name, v in row.items() if name not in ("c", "when")} for row in data]
    source = data[:40] if kind == "dicts" else table(data[:40])
    model = hindsight.learn(source, "y")
    whole = hindsight.learn(source, "y").partial_fit(data[40:] if kind == "dicts" else table(data[40:]))
    service = Service(str(tmp_path), model=model)
    for k in range(40, 60, 5):
        (answer,) = service.commit([learn(data[k : k + 5])])
        assert answer["rows"] == 5
    fresh = [{name: v for name, v in row.items() if name != "y"} for row in data[:5]]
    crash(service)
    service = Service(str(tmp_path))
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
    service.close()


def test_models_that_cannot_go_on_here_are_said(tmp_path):
    model = hindsight.learn((np.eye(3), [1.0, 2.0, 3.0]), learner="widrow-hoff")
    with pytest.raises(ModelError):
        Service(str(tmp_path), model=model)


def test_a_header_cannot_announce_more_than_there_is(tmp_path):
    service = Service(str(tmp_path), PLAN)
    service.commit([learn(rows(2))])
    crash(service)
    path = segments(str(tmp_path / "log"))[-1][1]
    import zlib

    start = struct.pack("<4sIQ", b"HSL1", 0xFFFFFFFF, 2)
    with open(path, "ab") as file:
        file.write(start + struct.pack("<I", zlib.crc32(start)) + b"x" * 50)
    said = []
    service = Service(str(tmp_path), notify=said.append)
    assert service.sequence == 2 and len(said) == 1
    service.close()


def test_snapshots_come_by_themselves(tmp_path, monkeypatch):
    monkeypatch.setattr(core, "SNAPSHOT_ROWS", 10)
    service = Service(str(tmp_path), PLAN)
    for k in range(6):
        service.commit([learn(rows(3, k))])
    before = bits(service)
    crash(service)
    service = Service(str(tmp_path))
    assert service.replayed == 2 and bits(service) == before
    service.close()


def test_learn_replays_a_service_to_the_same_bits(tmp_path):
    """`hindsight learn DIR`: features join on the way, which moves the last digits where chunks are others."""
    from typer.testing import CliRunner

    from hindsight.cli import app
    from hindsight.serve.replay import replay

    folder, saved = str(tmp_path / "d"), str(tmp_path / "model")
    service = Service(folder, AUTO, keep_log=True)
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
    assert found.exit_code == 2 and "--eta cannot be said for the folder of a service" in found.output
    gone = Service(str(tmp_path / "gone"), PLAN)
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


def test_a_certificate_from_sums_where_the_log_is_gone(tmp_path):
    """Features join, rows have weights, the process ends in between: the sums are those of all rows."""
    service = Service(str(tmp_path), service_plan("y", "widrow-hoff", eta=0.05, weight="w"))
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
            crash(service)
            service = Service(str(tmp_path))
    found = certificate_of(service)
    X = np.array([[row["a"], row["b"], row.get("late", 0.0), 1.0] for row in all_rows])
    y, c = (np.array([row[name] for row in all_rows]) for name in "yw")
    u = np.linalg.lstsq(X * np.sqrt(c)[:, None], y * np.sqrt(c), rcond=None)[0]
    wanted = float(c @ (X @ u - y) ** 2)
    assert found["verdict"] == "HOLDS" and "for rows 181 to 240 by themselves" in found["claims"][3]
    assert found["best"]["best"] == pytest.approx(wanted, rel=1e-9) and found["best"]["rows"] == 240
    assert service.summary()["best"] == pytest.approx(wanted, rel=1e-9)
    assert f"{wanted:.6g}" in found["claims"][1] and "no bound is claimed for all rows" in found["claims"][-1]
    service.close()


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_sums_say_how_far_off_they_may_be_and_leave_out_the_row_that_set_the_start(tmp_path, offset):
    service = Service(str(tmp_path), service_plan("y", loss="square"))
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
    assert found["claims"][0].startswith("on all 90 rows so far but the first, which only set the start, the")
    assert found["measured"]["constant"] == pytest.approx(float(((y[1:] - y[1:].mean()) ** 2).sum()))
    assert service.summary()["best"] == (pytest.approx(wanted) if offset == 0.0 else None)
    service.close()


def test_a_certificate_over_the_rows_that_are_there(tmp_path):
    from sklearn.linear_model import LogisticRegression

    service = Service(str(tmp_path), service_plan("y", "descent", eta=0.3, loss="logistic"))
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
    service.close()


def bits_of(live):
    run = live.state.runs[0][0]
    states = [run.state, *(member.state for member in getattr(run, "members", ()))]
    return [v.tobytes() for state in states for v in state], run.tally.tobytes(), list(live.rows.names)
