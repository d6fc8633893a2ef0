"""The service as a state machine: any requests, kills, restarts and rewinds, against a model in plain Python.

The requests go through the whole application but for the sockets. A kill is a copy of the folder as it stands while the
service runs; `serve_torture.py` kills real processes.
"""

from __future__ import annotations

import asyncio
import copy
import json
import math
import shutil
import tempfile
from pathlib import Path
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

pytest.importorskip("httpx")
pytest.importorskip("starlette")

import httpx

from conftest import many
from hindsight.serve.app import Api
from hindsight.serve.client import ARROW, arrow_stream
from hindsight.serve.planning import service_plan
from hindsight.serve.requests import Part
from hindsight.serve.rewind import rewind
from hindsight.serve.service import Service

ETA = 0.1
PLAN = service_plan("y", "widrow-hoff", eta=ETA)
KINDS = {"json": "application/json", "lines": "application/x-ndjson", "arrow": ARROW}
PROBE = {"a": 0.5, "b": -0.25, "c": "u", "d": None}


class Oracle:
    """What a service must be: its rows, weights, streams, keys and kept rows."""

    def __init__(self):
        self.rows, self.weights, self.places, self.keys, self.waiting, self.given = [], {}, {}, {}, {}, 0

    def features(self, row):
        """The values by name; None where one is neither text nor a number, or its square is infinite."""
        out = {"": 1.0}
        for name, value in row.items():
            if isinstance(value, (list, dict)) or (isinstance(value, float) and abs(value) > 1e150):
                return None
            if name != "y":
                missing = value is None or value != value
                key = f"{name} is missing" if missing else (name, value) if isinstance(value, str) else name
                out[key] = 1.0 if missing or isinstance(value, str) else float(value)
        return out

    def predict(self, row):
        return sum(self.weights.get(name, 0.0) * value for name, value in self.features(row).items())

    def learn(self, rows):
        """Whether the rows could be learnt; if so, they were."""
        targets = [row.get("y") for row in rows]
        plain = all(isinstance(y, (int, float)) and abs(y) < 1e150 for y in targets)
        if not rows or not plain or any(self.features(row) is None for row in rows):
            return False
        for row in rows:
            features = self.features(row)
            norm = sum(value * value for value in features.values())
            step = ETA * (row["y"] - self.predict(row)) / (1.0 + ETA * norm)  # the implicit step
            for name, value in features.items():
                self.weights[name] = self.weights.get(name, 0.0) + step * value
            self.rows.append(row)
        return True

    def expect(self, rows, key=None, source=None, start=0):
        """The status of a request to learn, with what it leaves here."""
        if key in self.keys:
            return 200 if self.keys[key] == (rows, source, start) else 422
        done = self.places.get(source, 0)
        if source is not None and rows and start + len(rows) <= done:
            return 200
        if source is not None and rows and start != done:
            return 409
        if not self.learn(rows):
            return 422
        if source is not None:
            self.places[source] = done + len(rows)
        if key is not None:
            self.keys[key] = (rows, source, start)
        return 200


def body_of(rows, form):
    """Rows as the body of a request; as JSON where an Arrow table has no such values."""
    if form == "lines":
        return "\n".join(map(json.dumps, rows)).encode(), form
    if form == "arrow" and rows:
        import pyarrow as pa

        try:
            table = pa.table({name: [row.get(name) for row in rows] for name in rows[0]})
        except (pa.ArrowException, OverflowError):
            return json.dumps(rows).encode(), "json"
        if all(set(row) == set(rows[0]) for row in rows) and not any(pa.types.is_nested(t) for t in table.schema.types):
            return arrow_stream(table), form
    return json.dumps(rows).encode(), "json"


number = st.floats(-1.0, 1.0).map(lambda v: round(v, 3))
value = st.one_of(number, number, number, st.none(), st.sampled_from(["u", "v"]))
target = st.one_of(*[number] * 8, st.sampled_from([1e160, -1e300, None, "word", [1.0]]))
row = st.fixed_dictionaries({"a": number, "y": target}, optional={"b": number, "c": value, "d": value})
LARGE = {"a": 1e200, "other": 1.0, "y": 0.5}  # which is found out when it is played
bad = st.sampled_from([{"a": [1], "y": 1.0}, {"fresh": 1.0, "a": {"b": 1}, "y": 0.5}, {"a": 1}, LARGE])
wild = st.one_of(*[row] * 4, bad)
requests = st.lists(wild, min_size=0, max_size=4)
forms = st.sampled_from(["json", "lines", "arrow"])
keys = st.one_of(st.none(), st.none(), st.sampled_from(["k1", "k2", "k3"]))


class Machine(RuleBasedStateMachine):
    """Requests, kills, restarts and rewinds."""

    def __init__(self):
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.count, self.api, self.oracle, self.past = 0, None, Oracle(), []
        self.open(PLAN)
        self.loop = asyncio.new_event_loop()

    def teardown(self):
        self.loop.close()
        self.close()
        shutil.rmtree(self.root)

    @property
    def folder(self):
        return str(self.root / str(self.count))

    def open(self, plan=None):
        self.service = Service(self.folder, plan, keep_log=True)
        self.api = Api(self.service)
        self.api.start()

    def close(self):
        if self.api is not None:
            self.api.stop()
        self.api = None

    def ask(self, method, path, body=b"", **headers):
        async def send():
            transport = httpx.ASGITransport(app=self.api)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return await client.request(method, path, content=body, headers=headers)

        found = self.loop.run_until_complete(send())
        assert found.status_code < 500, found.text
        return found

    def post(self, path, rows, form, key=None, **query):
        body, form = body_of(rows, form)
        headers = {"content-type": KINDS[form]} | ({} if key is None else {"idempotency-key": key})
        found = self.ask("POST", f"{path}?{urlencode(query)}", body, **headers)
        return found.status_code, found.json()

    def check_learnt(self, told, rows, first):
        assert told["sequence"] == first and told["rows"] == len(rows)

    # ------------------------------------------------------------ requests

    @rule(rows=requests, form=forms, key=keys)
    def learn(self, rows, form, key):
        known, first = key in self.oracle.keys, len(self.oracle.rows) + 1
        wanted = self.oracle.expect(rows, key)
        status, told = self.post("/learn", rows, "json" if key else form, key)
        assert status == wanted, (told, rows)
        if status == 200:
            assert ("repeated" in told) == known
            if not known:
                self.check_learnt(told, rows, first)

    @rule(rows=st.lists(wild, min_size=1, max_size=3), back=st.integers(-2, 2), name=st.sampled_from("st"))
    def stream(self, rows, back, name):
        start = max(0, self.oracle.places.get(name, 0) + back)
        wanted = self.oracle.expect(rows, None, name, start)
        status, told = self.post("/learn", rows, "json", source=name, start=start)
        assert status == wanted, (told, rows)

    @rule(requests=st.lists(st.tuples(st.lists(wild, min_size=1, max_size=3), st.booleans()), min_size=2, max_size=4))
    def together(self, requests):
        """Several requests in one commit, some of them the next rows of a stream."""
        parts, wanted, start = [], [], self.oracle.places.get("g", 0)
        for rows, streamed in requests:
            source, at = ("g", start) if streamed else (None, 0)
            parts.append(Part("learn", "json", json.dumps(rows).encode(), source=source, start=at))
            wanted.append(self.oracle.expect(rows, None, source, at))
            start += len(rows) if streamed else 0

        async def commit():
            return await self.api.learning.do(lambda: self.service.commit(parts))

        for answer, status in zip(self.loop.run_until_complete(commit()), wanted, strict=True):
            found = getattr(answer, "status", 422) if isinstance(answer, ValueError) else 200
            assert found == status, (answer, requests)

    @rule(rows=st.lists(row, min_size=1, max_size=2), form=forms, nan=st.booleans())
    def keep(self, rows, form, nan):
        rows = [{name: v for name, v in each.items() if name != "y"} for each in rows]
        if nan:  # which only Arrow has
            rows, form = [rows[0] | {"a": math.nan}], "arrow"
        status, told = self.post("/predict", rows, form, keep=1)
        if not self.oracle.rows:
            assert status == 409
            return
        assert status == 200, told
        assert told["ids"] == list(range(self.oracle.given + 1, self.oracle.given + len(rows) + 1))
        self.oracle.waiting |= dict(zip(told["ids"], rows, strict=True))
        self.oracle.given += len(rows)
        assert told["predictions"] == pytest.approx([self.oracle.predict(each) for each in rows], abs=1e-9)

    @rule(data=st.data(), y=target)
    def outcome(self, data, y):
        ids = sorted(self.oracle.waiting) or [1]
        self.bring(data.draw(st.sampled_from([*ids, self.oracle.given + 1])), y)

    def bring(self, number, y):
        """The outcome of a kept row."""
        known = self.oracle.waiting.get(number)
        status, told = self.post("/outcome", [{"id": number, "target": y}], "json")
        if not isinstance(y, (int, float, str)):
            assert status == 422
        elif known is None:
            assert status == (410 if number <= self.oracle.given else 404)
        elif self.oracle.learn([known | {"y": y}]):
            assert status == 200, told
            self.check_learnt(told, [known], len(self.oracle.rows))
            del self.oracle.waiting[number]
        else:
            assert status == 422

    @rule(path=st.sampled_from(["/", "/model", "/facts", "/certificate", "/metrics", "/health", "/docs"]))
    def look(self, path):
        found = self.ask("GET", path)
        assert found.status_code == (409 if not self.oracle.rows and path in ("/facts", "/certificate") else 200)
        if path == "/model":
            assert found.json()["sources"] == self.oracle.places and found.json()["pending"] == len(self.oracle.waiting)
        if path == "/certificate" and self.oracle.rows:
            assert found.json()["verdict"] in ("HOLDS", "VOID") and found.json()["sequence"] == len(self.oracle.rows)

    # ------------------------------------------------------------ disasters

    @rule()
    def restart(self):
        self.close()
        self.open()

    @rule()
    def kill(self):
        before = self.folder
        self.count += 1
        shutil.copytree(before, self.folder)
        self.close()
        shutil.rmtree(before)
        self.open()

    @rule()
    def snapshot(self):
        async def write():
            return await self.api.learning.do(self.service.snapshot)

        self.loop.run_until_complete(write())

    @rule(data=st.data())
    def go_back(self, data):
        past = {len(old.rows): old for old in self.past if len(old.rows) <= len(self.oracle.rows)}
        to = data.draw(st.sampled_from(sorted(past)))
        given = self.oracle.given
        self.oracle = copy.deepcopy(past[to])
        self.oracle.given = given
        self.past = [old for old in self.past if len(old.rows) <= to]
        self.close()
        rewind(self.folder, to)
        self.open()

    # ------------------------------------------------------------ what must hold

    @invariant()
    def agrees(self):
        self.past.append(copy.deepcopy(self.oracle))
        service, oracle = self.service, self.oracle
        assert service.sequence == len(oracle.rows) and service.waiting == len(oracle.waiting)
        if oracle.rows:
            told = service.reader.answers(service.reader.margins([PROBE]))["predictions"]
            assert told == pytest.approx([oracle.predict(PROBE)], abs=1e-9)


def test_any_requests_kills_and_restarts():
    Machine.TestCase.settings = settings(
        max_examples=many(6, 150), stateful_step_count=many(20, 40), deadline=None,
        suppress_health_check=list(HealthCheck), print_blob=True,
    )  # fmt: skip
    run_state_machine_as_test(Machine, settings=Machine.TestCase.settings)


GOOD = [{"a": 0.5, "y": 0.25}, {"a": -0.5, "c": "u", "y": 0.75}]


def large_target(machine):
    machine.learn(GOOD, "json", None)
    machine.learn([{"a": 1.0, "y": 1e160}], "json", None)


def kept_nan(machine):
    machine.learn(GOOD, "json", None)
    machine.keep([{"a": 0.5, "y": 1.0}], "arrow", True)
    machine.bring(machine.oracle.given, 1e160)
    machine.bring(machine.oracle.given, 0.5)


def refused_rows_of_a_stream(machine):
    machine.stream([*GOOD, {"a": [1], "y": 1.0}], 0, "s")
    machine.stream([*GOOD, LARGE], 0, "s")
    machine.stream([*GOOD, LARGE], 0, "s")
    machine.stream([*GOOD, {"a": 1.0, "y": 1.0}], 0, "s")


def refused_first_request(machine):
    machine.learn([{"a": 0.5, "y": "word"}, {"a": 0.5, "y": "other"}], "json", None)
    machine.learn([LARGE], "json", None)
    machine.learn(GOOD, "lines", None)


def two_of_a_stream_the_first_bad(machine):
    machine.together([([{"a": {"b": 1}, "fresh": 1.0, "y": 1.0}], True), (GOOD, True), (GOOD, False)])
    machine.together([(GOOD, True), (GOOD, True)])


def refused_with_a_key(machine):
    machine.learn([{"a": 1.0, "y": None}], "json", "k1")
    machine.learn([LARGE], "json", "k1")
    machine.learn(GOOD, "json", "k1")
    machine.learn(GOOD, "json", "k1")


@pytest.mark.parametrize(
    "attack",
    [
        large_target, kept_nan, refused_rows_of_a_stream, refused_first_request, two_of_a_stream_the_first_bad,
        refused_with_a_key,
    ],
)  # fmt: skip
def test_what_once_stopped_a_service(attack):
    machine = Machine()
    try:
        attack(machine)
        machine.agrees()
        for disaster in (machine.restart, machine.kill, machine.snapshot, machine.kill):
            disaster()
            machine.agrees()
            attack(machine)
            machine.look("/certificate")
    finally:
        machine.teardown()
