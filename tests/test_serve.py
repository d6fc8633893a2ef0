"""The service from outside: real processes on the loopback interface, well-behaved clients and others."""

from __future__ import annotations

import base64
import concurrent.futures
import http.client
import json
import resource
import socket
import time
from contextlib import suppress
from urllib.parse import urlencode

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hindsight
from browser import Browser, faults, needs_browser
from conftest import nightly

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")

from hindsight.serve.app import ROUTES
from hindsight.serve.client import Client, RefusedError, arrow_stream
from hindsight.serve.openapi import document
from hindsight.serve.page import short_number
from hindsight.serve.requests import Limits
from hindsight.serve.rewind import rows_of
from hindsight.serve.tail import tail
from serving import Process

FAST = ("--target", "y", "--learner", "widrow-hoff", "--eta", "0.1")
JSON = {"content-type": "application/json"}


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    return [
        {"a": float(r[0]), "b": float(r[1]), "c": f"k{k % 3}", "y": float(r.sum() + k % 3)} for k, r in enumerate(x)
    ]


def ask(process, method, path, body=b"", headers=None, timeout=20.0):
    """One request by hand: status, headers and body."""
    connection = http.client.HTTPConnection("127.0.0.1", process.port, timeout=timeout)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with Process(tmp_path_factory.mktemp("service") / "d", *FAST) as process:
        with Client(process.url) as client:
            client.learn(rows(50))
        yield process
        assert "Traceback" not in process.text()


def test_a_row_is_predicted_learnt_and_there_after_a_restart(tmp_path):
    with Process(tmp_path, *FAST) as process, Client(process.url) as client:
        with pytest.raises(RefusedError, match="nothing was learnt yet"):
            client.predict({"a": 1.0})
        first = client.learn(rows(20))
        assert first["sequence"] == 1 and len(first["predictions"]) == 20 and first["of"] == "squared error"
        before = client.predict({"a": 1.0, "c": "k1"})
        kept = client.predict({"a": 2.0}, keep=True)
        process.kill()
    with Process(tmp_path) as process, Client(process.url) as client:
        assert client.predict({"a": 1.0, "c": "k1"}) == before
        told = client.outcome({kept["ids"][0]: 3.5})
        assert told["sequence"] == 21 and told["predictions"] == kept["predictions"]
        assert client.model()["sequence"] == 21 and client.facts()["runs"][0]["rounds"] == 21
        client.save(str(tmp_path / "model"))
        assert np.allclose(
            hindsight.load(tmp_path / "model").predict([{"a": 1.0}]), client.predict({"a": 1.0})["predictions"]
        )
        after = client.predict({"a": 1.0})
        assert process.stop().count("\n") == 1
    with Process(tmp_path) as process, Client(process.url) as client:
        assert client.predict({"a": 1.0}) == after


def test_the_same_key_counts_once(running):
    with Client(running.url) as client:
        one, two = client.learn(rows(3), key="once"), client.learn(rows(3), key="once")
        assert two == one | {"repeated": True}
        with pytest.raises(RefusedError, match="used for another request"):
            client.learn(rows(4), key="once")


def test_json_lines_and_arrow_are_the_same(tmp_path):
    import pyarrow as pa

    data = rows(400)
    answers = []
    for k, body in enumerate(
        (data, "\n".join(map(json.dumps, data)).encode(), pa.table({n: [r[n] for r in data] for n in data[0]}))
    ):
        with Process(tmp_path / str(k), *FAST) as process, Client(process.url) as client:
            answers.append((client.learn(body), client.predict(body if k == 2 else data[:9])["predictions"][:9]))
    assert answers[0] == answers[1] == answers[2]


def test_an_arrow_answer(running):
    import pyarrow as pa

    with Client(running.url) as client:
        wanted = client.predict(rows(5))["predictions"]
    status, headers, body = ask(
        running,
        "POST",
        "/predict",
        json.dumps(rows(5)).encode(),
        JSON | {"accept": "application/vnd.apache.arrow.stream"},
    )
    assert status == 200 and int(headers["x-hindsight-sequence"]) >= 50
    assert pa.ipc.open_stream(body).read_all()["prediction"].to_pylist() == wanted


def test_pages(running):
    for path in (
        "/",
        "/docs",
        "/openapi.json",
        "/model",
        "/facts",
        "/certificate",
        "/certificate?text=1",
        "/metrics",
        "/health",
    ):
        status, headers, body = ask(running, "GET", path)
        assert status == 200 and body, path
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff" and "set-cookie" not in headers
        assert "access-control-allow-origin" not in headers
    page = ask(running, "GET", "/")[2].decode()
    assert (
        "rows learnt" in page
        and "best constant so far" in page
        and "http://" not in page.replace("http://www.w3.org", "")
    )
    metrics = ask(running, "GET", "/metrics")[2].decode()
    assert "hindsight_rows_total" in metrics and 'path="/learn"' in metrics
    told = json.loads(ask(running, "GET", "/certificate")[2])
    assert told["verdict"] == "HOLDS" and "in hindsight" in told["claims"][-1]


@nightly
@needs_browser
def test_the_live_page_in_a_browser(tmp_path):
    """No error, no request but to the service; numbers move; phones and the dark; and without a script."""
    names = ["<script>document.title='RUN'</script>", '"><img src=x onerror=document.title=1>']
    hostile = [row | {"c": names[k % 2]} for k, row in enumerate(rows(200))]
    options = ("--target", "y", "--loss", "square", "--interval", "90")
    with Process(tmp_path / "d", *options) as process, Client(process.url) as client:
        for k in range(0, 200, 20):
            client.learn(hostile[k : k + 20])
        browser = Browser(tmp_path / "profile")
        try:
            browser.events.clear()
            browser.ask("Page.navigate", url=process.url)
            browser.wait("document.getElementById('state')?.textContent === 'live'")
            client.learn(hostile[:50])
            browser.wait("document.getElementById('rows').textContent === '250'")
            browser.wait("document.querySelectorAll('#chart polyline').length >= 4", 30.0)  # the bound is there
            browser.wait("document.getElementById('verdict').textContent.startsWith('HOLDS')")
            assert browser.value("document.querySelectorAll('#chart-coverage polyline').length") == 4
            assert browser.value("document.querySelectorAll('#chart-ranges circle').length") == 60
            assert "Traceback" not in process.text() and browser.value("document.title") == "hindsight"
            assert browser.value("document.querySelectorAll('img, iframe, object').length") == 0
            assert names[0] in browser.value("document.getElementById('top').textContent")
            for width, dark in ((390, "dark"), (1000, "light")):
                size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
                browser.ask("Emulation.setDeviceMetricsOverride", **size)
                browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": dark}])
                browser.wait(f"window.innerWidth === {width}", 10.0)
                assert browser.value("document.documentElement.scrollWidth") <= width
                ground = browser.value("getComputedStyle(document.body).backgroundColor")
                assert (ground == "rgb(13, 17, 23)") == (dark == "dark")
            found = faults(browser.events)
            assert [each for each in found if each != f"{process.url}/events"] == []
            browser.ask("Emulation.setScriptExecutionDisabled", value=True)
            browser.ask("Page.reload")
            browser.wait("document.readyState === 'complete'")
            assert browser.value("document.getElementById('rows').textContent") == "250"
            assert browser.value("document.getElementById('verdict').textContent").startswith("HOLDS")
            assert "as of now" in browser.value("document.getElementById('state').textContent")
        finally:
            browser.close()


CLIPPED = """(() => {
  const out = [], chart = document.getElementById("chart"), room = chart.getBoundingClientRect();
  for (const text of chart.querySelectorAll("text")) {
    const box = text.getBoundingClientRect();
    if (box.left < room.left - 1 || box.right > room.right + 1) out.push(text.textContent);
  }
  for (const tile of document.querySelectorAll("dl div"))
    if (tile.scrollWidth > tile.clientWidth + 1) out.push(tile.textContent);
  const lines = chart.querySelectorAll("polyline").length, keys = document.querySelectorAll("#key span").length;
  if (lines !== keys) out.push(lines + " lines, " + keys + " in the legend");
  return out.join(" | ");
})()"""


@nightly
@needs_browser
@pytest.mark.parametrize("scale", [1e-6, 1e12])
def test_the_live_page_has_room_for_numbers_of_any_size(tmp_path, scale):
    data = [row | {"y": scale * (3.0 + row["y"])} for row in rows(120)]
    with Process(tmp_path / "d", "--target", "y", "--learner", "widrow-hoff", "--eta", "0.1") as process:
        with Client(process.url) as client:
            for k in range(0, 120, 20):
                client.learn(data[k : k + 20])
            wanted = client.facts()["summary"]
        browser = Browser(tmp_path / "profile")
        try:
            browser.ask("Page.navigate", url=process.url)
            browser.wait("document.getElementById('state')?.textContent === 'live'")
            browser.wait("document.getElementById('verdict').textContent !== '–'", 30.0)
            for width in (390, 1000):
                size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
                browser.ask("Emulation.setDeviceMetricsOverride", **size)
                browser.wait(f"window.innerWidth === {width}", 10.0)
                time.sleep(1.2)  # it is drawn once a second
                assert browser.value(CLIPPED) == ""
            root = float(browser.value("document.getElementById('loss').textContent").replace(",", ""))
            assert root == pytest.approx(wanted["mean_loss"] ** 0.5, rel=1e-3)  # in the unit of the target
            picture = browser.ask("Page.captureScreenshot")["data"]
            (tmp_path / "page.png").write_bytes(base64.b64decode(picture))
        finally:
            browser.close()


def test_numbers_to_be_read():
    cases = {
        0.0: "0", 1.5: "1.50", 168510.25: "168,510", -0.001: "-0.00100", 1.25e-6: "1.25e-6", 1.23456e12: "1.23e12",
        9999.9: "10,000", 1e7: "1e7", 12.345678: "12.3",
    }  # fmt: skip
    assert {value: short_number(value) for value in cases} == cases
    assert short_number(1234567) == "1,234,567" and short_number(None) == "–" and short_number("a") == "a"


def test_events(running):
    with Client(running.url) as client:
        events = client.events()
        first, second = next(events), next(events)
        assert first["settled"] and second["sequence"] >= first["sequence"] >= 50
        events.close()


def test_what_is_refused(running):
    cases = [
        ("POST", "/learn", b"{", JSON, 422),
        ("POST", "/learn", b'{"a": NaN, "y": 1}', JSON, 422),
        ("POST", "/learn", b'{"a": 1}', JSON, 422),
        ("POST", "/learn", b'{"a": 1, "y": "word"}', JSON, 422),
        ("POST", "/learn", b'{"a": {"b": 1}, "y": 1}', JSON, 422),
        ("POST", "/learn", b"[]", JSON, 422),
        ("POST", "/learn", b"", JSON, 422),
        ("POST", "/learn", b"a=1", {"content-type": "text/plain"}, 415),
        ("POST", "/learn", b"junk", {"content-type": "application/vnd.apache.arrow.stream"}, 422),
        ("POST", "/learn", b'{"a":1,"y":1}', JSON | {"idempotency-key": "x" * 300}, 422),
        ("POST", "/learn?source=s&start=x", b'{"a":1,"y":1}', JSON, 422),
        ("POST", "/learn?source=s&start=9", b'{"a":1,"y":1}', JSON, 409),
        ("POST", "/predict?keep=7", b'{"a":1}', JSON, 422),
        ("POST", "/predict", b'{"a":[1]}', JSON, 422),
        ("POST", "/outcome", b'{"id": 999, "target": 1}', JSON, 404),
        ("POST", "/outcome", b'{"id": "x", "target": 1}', JSON, 422),
        ("POST", "/outcome", b'{"id": 1}', JSON, 422),
        ("GET", "/learn", b"", {}, 405),
        ("GET", "/../../etc/passwd", b"", {}, 404),
        ("GET", "/health", b"", {"host": "evil.example"}, 421),
        ("GET", "/health", b"", {"host": "127.0.0.1.evil.example"}, 421),
        ("GET", "/health", b"", {"host": "[::1].evil"}, 421),
        ("GET", "/health", b"", {"host": "[::1]"}, 200),
        ("POST", "/learn", b'{"a":1,"y":1}', JSON | {"origin": "http://evil.example"}, 403),
        ("POST", "/learn", b'{"a":1,"y":1}', JSON | {"sec-fetch-site": "cross-site"}, 403),
    ]
    before = json.loads(ask(running, "GET", "/model")[2])
    for method, path, body, headers, status in cases:
        found, _, text = ask(running, method, path, body, headers)
        assert found == status, (path, body, headers, found, text)
        if status == 200:
            continue
        assert list(json.loads(text)) == ["error"] and b"\n" not in text
    after = json.loads(ask(running, "GET", "/model")[2])
    assert after["sequence"] == before["sequence"] and after["features"] == before["features"]


def test_a_token(tmp_path):
    secret = tmp_path / "token"
    secret.write_text("0123456789abcdef-secret\n")
    secret.chmod(0o644)
    with pytest.raises(RuntimeError, match="can be read or written by everybody"):
        Process(tmp_path / "d", *FAST, "--token", str(secret))
    secret.chmod(0o640)
    with Process(tmp_path / "d", *FAST, "--token", str(secret)) as process:
        for headers, status in (
            ({}, 401),
            ({"authorization": "Bearer wrong"}, 401),
            ({"authorization": "Basic !!"}, 401),
            ({"authorization": "Bearer 0123456789abcdef-secret"}, 200),
            ({"authorization": "Basic OjAxMjM0NTY3ODlhYmNkZWYtc2VjcmV0"}, 200),
        ):
            assert ask(process, "GET", "/model", headers=headers)[0] == status
        assert ask(process, "GET", "/health")[0] == 200
        with Client(process.url, token="0123456789abcdef-secret") as client:
            assert client.learn(rows(2))["rows"] == 2


def test_another_host_needs_a_token(tmp_path):
    with pytest.raises(RuntimeError, match=r"name a file with a token"):
        Process(tmp_path, *FAST, "--host", "0.0.0.0")


def test_one_process_per_folder(tmp_path):
    with Process(tmp_path, *FAST), pytest.raises(RuntimeError, match="another process serves"):
        Process(tmp_path)


def test_a_full_disk(tmp_path):
    """A limit on the size of files stands for the disk: the database cannot grow beyond it."""
    with Process(tmp_path, *FAST) as process, Client(process.url, tries=1) as client:
        client.learn(rows(20))
        resource.prlimit(process.process.pid, resource.RLIMIT_FSIZE, (200_000, 200_000))
        refused = 0
        for k in range(40):
            try:
                client.learn(rows(5, k))
            except RefusedError as error:
                refused += error.status == 507 and "disk is full" in str(error)
        assert 0 < refused < 40
        sequence = client.model()["sequence"]
        assert client.predict({"a": 1.0})["predictions"]
        process.kill()
    with Process(tmp_path) as process, Client(process.url) as client:
        assert client.model()["sequence"] == sequence == 20 + 5 * (40 - refused)
        assert client.learn(rows(1))["sequence"] == sequence + 1


def test_many_clients_at_once(tmp_path):
    with Process(tmp_path, *FAST) as process:
        with Client(process.url) as client:
            client.learn(rows(5))

        def work(k):
            with Client(process.url) as client:
                found = [client.learn(rows(2, 100 * k + i))["sequence"] for i in range(5)]
                client.predict(rows(1))
                return found

        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            found = [n for each in pool.map(work, range(64)) for n in each]
        assert sorted(found) == list(range(6, 6 + 2 * 320, 2))


def test_hostile_clients_do_not_stop_others(running):
    idle = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(50)]
    learn = b"POST /learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for each in idle[:25]:
        each.sendall(learn[:-10])
    for each in idle[25:40]:
        each.sendall(learn + b"Content-Length: 500\r\n\r\n{")
    huge = socket.create_connection(("127.0.0.1", running.port))
    huge.sendall(learn + b"Content-Length: 1073741824\r\n\r\n")
    assert b"413" in huge.recv(4096)[:20]
    chunked = socket.create_connection(("127.0.0.1", running.port))
    chunked.sendall(learn + b"Transfer-Encoding: chunked\r\n\r\n")
    headers = socket.create_connection(("127.0.0.1", running.port))
    with suppress(OSError):  # it is closed while we write
        headers.sendall(b"GET / HTTP/1.1\r\n" + (b"X-A: " + b"a" * 4000 + b"\r\n") * 40)
    headers.settimeout(5.0)
    with suppress(ConnectionError):
        assert headers.recv(100)[:12] in (b"HTTP/1.1 400", b"")
    for body in (b"\x00" * 1000, b"[" * 60000, json.dumps({f"f{j}": 1 for j in range(20000)} | {"y": 1}).encode()):
        assert ask(running, "POST", "/learn", body, JSON)[0] == 422
    many = json.dumps([{f"g{i}_{j}": 1 for j in range(9000)} | {"y": 1} for i in range(112)]).encode()
    status, _, text = ask(running, "POST", "/learn", many, JSON, timeout=60.0)
    assert status == 422 and b"features" in text
    began = time.perf_counter()
    with Client(running.url, tries=1) as client:
        client.learn(rows(1))
        client.predict(rows(1))
    assert time.perf_counter() - began < 2.0
    for each in (*idle, huge, chunked, headers):
        each.close()


IMPATIENT = (
    "import hindsight.serve.server as server; from hindsight.__main__ import main; "
    "server.HEADER_SECONDS = server.BODY_SECONDS = 0.5; main()"
)


def test_slow_and_endless_requests_are_cut_off(tmp_path):
    head = b"POST /learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with Process(tmp_path / "d", *FAST, "--body", "100000", program=("-c", IMPATIENT)) as process:

        def sent(*pieces):
            """What comes back for bytes that are sent slowly, until the connection is closed."""
            with socket.create_connection(("127.0.0.1", process.port), timeout=10.0) as connection, suppress(OSError):
                for piece in pieces:
                    connection.sendall(piece)
                    time.sleep(0.05)
                answer = b""
                while block := connection.recv(4096):
                    answer += block
                return answer
            return b"reset"

        assert sent() == b""  # nothing came
        assert sent(head[:40], head[40:60]) == b""  # the headers stopped
        late = sent(head + b"Content-Length: 50\r\n\r\n", b'{"a": 1')
        assert late.startswith(b"HTTP/1.1 408 ") and b"within" in late
        chunk = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
        endless = sent(head + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 8)
        assert endless.startswith(b"HTTP/1.1 413 ") or endless == b"reset"
        body = b'{"a": 1, "y": 2.5}'
        drops = sent(head + b"Connection: close\r\nContent-Length: 18\r\n\r\n", body[:6], body[6:12], body[12:])
        assert drops.startswith(b"HTTP/1.1 200 ")  # slow, and in time
        with Client(process.url) as client:
            assert client.model()["sequence"] == 1
        assert "Traceback" not in process.text()


plain = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4))
values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
)
row = st.dictionaries(
    st.sampled_from(["a", "b", "c", "y", "id", "target", ""]) | st.text(max_size=3), values, max_size=5
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(
        ["/learn", "/predict", "/predict?keep=1", "/outcome", "/learn?predictions=0", "/learn?source=s&start=0"]
    ),
    st.one_of(row, st.lists(row, max_size=3), values),
    st.sampled_from(["application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"]),
)
def test_no_request_is_a_bug(running, path, body, kind):
    status, _, text = ask(running, "POST", path, json.dumps(body).encode(), {"content-type": kind})
    assert status < 500 and status != 499, (status, text)
    told = json.loads(text)
    assert "error" in told or status == 200


def values_of(schema):
    """Values that a schema of the document allows."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "oneOf" in schema:
        return st.one_of(*map(values_of, schema["oneOf"]))
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    least = schema.get("minimum")
    plain_values = {
        "number": st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
        "integer": st.integers(min_value=least) | st.integers(least or 0, 60),
        "string": st.text(max_size=min(8, schema.get("maxLength", 8))),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    found = [plain_values[kind] for kind in kinds if kind in plain_values]
    if "array" in kinds:
        found.append(st.lists(values_of(schema["items"]), min_size=schema.get("minItems", 0), max_size=3))
    if "object" in kinds:
        fixed = {name: values_of(each) for name, each in schema.get("properties", {}).items()}
        more = schema.get("additionalProperties") or None
        names = st.sampled_from(["a", "b", "c", "y"]) | st.text(max_size=3)
        free = st.dictionaries(names, values_of(more), max_size=4) if more else st.just({})
        found.append(st.builds(lambda one, two: two | one, st.fixed_dictionaries(fixed), free))
    return st.one_of(*found)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_requests_that_the_openapi_document_allows_get_an_answer_that_it_names(running, data):
    told = document(ROUTES, "y", Limits())["paths"]
    path = data.draw(st.sampled_from([path for path, methods in told.items() if "post" in methods]))
    each = told[path]["post"]
    kind = data.draw(st.sampled_from(list(each["requestBody"]["content"])))
    schema = each["requestBody"]["content"]["application/json"]["schema"]
    value = data.draw(values_of(schema if kind == "application/json" else schema["oneOf"][0]))
    query, headers = {}, {"content-type": kind}
    for given_one in each["parameters"]:
        if data.draw(st.booleans()):
            drawn = str(data.draw(values_of(given_one["schema"])))
            if given_one["in"] == "query":
                query[given_one["name"]] = drawn
            else:
                headers[given_one["name"]] = drawn.encode("ascii", "replace").decode().translate(CONTROLS)
    body = stream_of(value) if kind.endswith("arrow.stream") else json.dumps(value).encode()
    status, _, text = ask(running, "POST", f"{path}?{urlencode(query)}", body, headers)
    assert str(status) in each["responses"] and status < 500, (status, text)
    assert "error" in json.loads(text) or status == 200


CONTROLS = dict.fromkeys([*range(32), 127], "?")


def stream_of(row):
    """A row as an Arrow stream; where its values are of no kind that a column has, other bytes."""
    import pyarrow as pa

    try:
        table = pa.table({name: [value] for name, value in row.items()})
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return b"none"
    return arrow_stream(table)


def test_the_openapi_document_says_what_there_is(running):
    told = json.loads(ask(running, "GET", "/openapi.json")[2])
    assert told["openapi"].startswith("3.1")
    for path, methods in told["paths"].items():
        for method, each in methods.items():
            if path == "/events":
                continue
            status = ask(running, method.upper(), path, b"{}", JSON if method == "post" else {})[0]
            assert str(status) in each["responses"], (path, status)


def test_tail_goes_on_where_it_stopped(tmp_path):
    data = rows(30)
    path = tmp_path / "rows.csv"
    lines = [",".join(data[0]), *(",".join(str(v) for v in each.values()) for each in data)]
    path.write_text("\n".join(lines[:21]) + "\n")
    with Process(tmp_path / "d", *FAST) as process, Client(process.url) as client:
        assert tail(str(path), client, batch=7) == 20
        assert tail(str(path), client, batch=7) == 0
        path.write_text("\n".join(lines) + "\n")
        process.kill()
    with Process(tmp_path / "d") as process, Client(process.url) as client:
        assert tail(str(path), client, batch=4) == 10
        assert client.model()["sequence"] == 30
        said = client.predict(data[0])
    with Process(tmp_path / "e", *FAST) as process, Client(process.url) as client:
        client.learn(data)
        assert client.predict(data[0])["predictions"] == said["predictions"]


def test_tail_learns_a_bad_row_once_it_was_corrected(tmp_path):
    path = tmp_path / "rows.csv"
    lines = [f"{k / 30:.3f},{k / 10:.3f}" for k in range(30)]
    with Process(tmp_path / "d", *FAST) as process, Client(process.url) as client:
        for cell, learnt in (("word", None), ("0.5", 20)):
            path.write_text("\n".join(["a,y", *lines[:17], f"0.1,{cell}", *lines[18:]]) + "\n")
            if learnt is None:
                with pytest.raises(RefusedError, match="row 7, column 'y': 'word' is not a number"):
                    tail(str(path), client, batch=10)
            else:
                assert tail(str(path), client, batch=10) == learnt
        assert client.model()["sequence"] == 30 and client.certificate()["verdict"] == "HOLDS"


def test_the_rows_of_a_log_make_the_same_model(tmp_path):
    data = rows(30)
    with Process(tmp_path / "d", *FAST, "--keep-log") as process, Client(process.url) as client:
        client.learn(data[:10])
        kept = client.predict(data[10] | {"y": 0.0}, keep=True)["ids"][0]
        client.learn("\n".join(map(json.dumps, data[11:])).encode())
        client.outcome({kept: data[10]["y"]})
        assert list(map(json.loads, rows_of(str(tmp_path / "d")))) == [*data[:10], *data[11:], data[10]]
        assert [json.loads(line) for line in rows_of(str(tmp_path / "d"), 30)] == [data[10]]
        model = hindsight.learn(
            [json.loads(line) for line in rows_of(str(tmp_path / "d"))], "y", learner="widrow-hoff", eta=0.1
        )
        assert model.predict(data).tolist() == client.predict(data)["predictions"]
