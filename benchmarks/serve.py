"""How fast the service is, against a daemon and a server written as the documentation of its library would.

    python benchmarks/serve.py [--seconds 5] [--clients 16] [--markdown]

Single rows of 20 features over keep-alive connections on the loopback interface, each acknowledged when it is on disk;
predictions beside them; JSON lines and Arrow in bulk; a restart. What a sync costs on this machine is measured as well,
since no durable answer can be faster.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import multiprocessing
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from serving import Process

FEATURES = 20
ARROW = "application/vnd.apache.arrow.stream"


def one_sync(folder):
    """The median and mean seconds of writing 4 kB and syncing."""
    path, times = os.path.join(folder, "sync"), []
    file = os.open(path, os.O_CREAT | os.O_RDWR)
    for k in range(200):
        began = time.perf_counter()
        os.pwrite(file, b"x" * 4096, 4096 * k)
        os.fdatasync(file)
        times.append(time.perf_counter() - began)
    os.close(file)
    return float(np.median(times)), float(np.mean(times))


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, FEATURES)), 4)
    y = np.round(X @ np.round(np.linspace(-1, 1, FEATURES), 3) + 0.1 * rng.normal(size=n), 4)
    return X, y


def mappings(n, seed=0, target=True):
    X, y = rows(n, seed)
    out = []
    for x, t in zip(X.tolist(), y.tolist(), strict=True):
        out.append({f"x{j}": v for j, v in enumerate(x)} | ({"y": t} if target else {}))
    return out


class Connection:
    """One keep-alive connection that sends requests one after another, with the seconds that each took."""

    def __init__(self, port, path, bodies):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
        self.requests = [f"{head}{len(body)}\r\n\r\n".encode() + body for body in bodies]
        self.times = []

    def send(self):
        self.held, self.began = b"", time.perf_counter()
        self.socket.sendall(self.requests[len(self.times) % len(self.requests)])

    def receive(self):
        """Take what came; whether the answer is complete."""
        self.held += self.socket.recv(1 << 16)
        head, found, body = self.held.partition(b"\r\n\r\n")
        if not found:
            return False
        if len(body) < int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]):
            return False
        self.times.append(time.perf_counter() - self.began)
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(self.held)
        return True


def drive(port, learners, predictors, seconds, out):
    """Clients in a process of their own, which waits for their sockets and does nothing else."""
    learning = [Connection(port, "/learn", bodies(k, True)) for k in range(learners)]
    predicting = [Connection(port, "/predict", bodies(k, False)) for k in range(predictors)]
    waiting = select.epoll()
    held = {each.socket.fileno(): each for each in (*learning, *predicting)}
    until = time.perf_counter() + seconds
    for number, each in held.items():
        waiting.register(number, select.EPOLLIN)
        each.send()
    while time.perf_counter() < until:
        for number, _ in waiting.poll(1.0):
            if held[number].receive():
                held[number].send()
    out.send([[t for each in some for t in each.times] for some in (learning, predicting)])


def bodies(seed, target):
    return [json.dumps(row).encode() for row in mappings(50, seed, target)]


def in_process(do, *given):
    """What a function puts out in a process of its own: clients must not wait for each other, nor for what measures."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(False)
    process = context.Process(target=do, args=(*given, there))
    process.start()
    there.close()
    found = here.recv()
    process.join()
    return found


def load(port, learners, predictors, seconds):
    """Run clients in another process; the seconds of learns and of predictions."""
    return in_process(drive, port, learners, predictors, seconds)


def processor_seconds(process):
    """The processor time that a process has used."""
    fields = Path(f"/proc/{process.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(name, process, learners, predictors, seconds):
    """Lines on a load: how many answers, how soon, and the processor time of the service per answer."""
    before = processor_seconds(process)
    learnt, predicted = load(process.port, learners, predictors, seconds)
    each = 1e3 * (processor_seconds(process) - before) / (len(learnt) + len(predicted))
    for what, times in ((f"learn{name}", learnt), (f"predict{name}", predicted)):
        if times:
            line = told(what, times, seconds)
            yield (*line[:2], f"{line[2]}, {each:.2f} ms of a processor")


def told(name, times, seconds):
    times = sorted(times)
    return (
        name,
        f"{len(times) / seconds:,.0f} /s",
        f"p50 {1e3 * times[len(times) // 2]:.2f} ms, p99 {1e3 * times[int(0.99 * len(times))]:.2f} ms",
    )


def drive_bulk(port, body, kind, clients, times, out):
    """Clients that send a large body again and again; the seconds until all are answered."""
    head = f"POST /learn?predictions=0 HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode()

    def client():
        with socket.create_connection(("127.0.0.1", port)) as connection:
            for _ in range(times):
                connection.sendall(request)
                connection.sendall(body)
                answer = b""
                while not answer.endswith(b"}"):
                    answer += connection.recv(1 << 16)
                if not answer.startswith(b"HTTP/1.1 200"):
                    raise RuntimeError(answer)

    began = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        for each in [pool.submit(client) for _ in range(clients)]:
            each.result()
    out.send(time.perf_counter() - began)


def bulk(process, body, kind, clients, times):
    """The seconds that requests with many rows took, from clients in another process."""
    return in_process(drive_bulk, process.port, body, kind, clients, times)


def in_bulk(name, process, body, kind, n, clients=2, times=5):
    """A line on requests with many rows."""
    bulk(process, body, kind, 1, 1)
    before = processor_seconds(process)
    rate = n * clients * times / bulk(process, body, kind, clients, times)
    spent = 1e6 * (processor_seconds(process) - before) / (n * clients * times)
    return name, f"{rate:,.0f} rows/s", f"{n:,} rows each, {spent:.2f} µs of a processor per row"


def arrow(n):
    import pyarrow as pa

    X, y = rows(n)
    table = pa.table({f"x{j}": X[:, j] for j in range(FEATURES)} | {"y": y})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()


def bulk_lines(process, learner):
    """Lines on bulk, as JSON lines and as Arrow."""
    n = 50_000
    body = "\n".join(map(json.dumps, mappings(n))).encode()
    yield in_bulk(f"JSON lines in bulk, {learner}", process, body, "application/x-ndjson", n)
    yield in_bulk(f"Arrow in bulk, {learner}", process, arrow(200_000), ARROW, 200_000)


def restart(folder, options, rows):
    """A line on a start after so many rows and a kill."""
    with Process(folder, *options, "--keep-log") as process:
        bulk(process, arrow(200_000), ARROW, 2, -(-rows // 400_000))
        process.kill()
    began = time.perf_counter()
    with Process(folder):
        return f"restart after {rows:,} rows and a kill", f"{time.perf_counter() - began:.1f} s", ""


RIVER = """
import sys, uvicorn
from fastapi import FastAPI, Body
from river import linear_model, preprocessing
app, model = FastAPI(), preprocessing.StandardScaler() | linear_model.LinearRegression()
@app.post("/learn")
async def learn(row: dict = Body()):
    y = row.pop("y"); p = model.predict_one(row); model.learn_one(row, y); return {"prediction": p}
@app.post("/predict")
async def predict(row: dict = Body()):
    return {"prediction": model.predict_one(row)}
uvicorn.run(app, port=int(sys.argv[1]), log_level="critical")
"""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def river(clients, seconds):
    """A line on a server that keeps nothing on disk, written as the documentation of its library would."""
    if not all(importlib.util.find_spec(name) for name in ("river", "fastapi")):
        return "river + fastapi", "not installed", ""
    with peer([sys.executable, "-c", RIVER]) as port:
        learnt, _ = load(port, clients, 0, seconds)
    return told(f"river + fastapi, {clients} clients, nothing on disk", learnt, seconds)


def daemon(clients, seconds):
    """A line on the daemon of Vowpal Wabbit, which keeps nothing on disk; its Python package has none."""
    if shutil.which("vw") is None:
        return "vw --daemon", "not installed", "the program vw, which the Python package does not bring"
    command = ["vw", "--daemon", "--foreground", "--quiet", "--num_children", "1", "--port"]
    with peer(command) as port:
        learnt = in_process(drive_daemon, port, clients, seconds)
    return told(f"vw --daemon, {clients} clients, nothing on disk", learnt, seconds)


def drive_daemon(port, clients, seconds, out):
    """Connections that send examples as lines, one after another."""
    times, until = [], time.perf_counter() + seconds

    def client(seed):
        X, y = rows(50, seed)
        lines = [f"{t} | " + " ".join(f"x{j}:{v}" for j, v in enumerate(x)) + "\n" for x, t in zip(X, y, strict=True)]
        with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as answers:
            while time.perf_counter() < until:
                began = time.perf_counter()
                connection.sendall(lines[len(times) % 50].encode())
                if not answers.readline():
                    raise RuntimeError("the daemon closed the connection")
                times.append(time.perf_counter() - began)

    with ThreadPoolExecutor(clients) as pool:
        for each in [pool.submit(client, k) for k in range(clients)]:
            each.result()
    out.send(times)


@contextlib.contextmanager
def peer(command):
    """Another server, at a free port that is added to its command."""
    port = free_port()
    process = subprocess.Popen([*command, str(port)])
    try:
        wait(port)
        yield port
    finally:
        process.terminate()
        process.wait()


def wait(port):
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("the server did not start")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--learner", default="auto")
    parser.add_argument("--restart", type=int, default=0, help="rows of the restart that is timed; 0 leaves it out")
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("HINDSIGHT_BENCH_DIR")) as folder:
        median, mean = one_sync(folder)
        lines.append(("load average, processors", f"{os.getloadavg()[0]:.1f}, {os.cpu_count()}", ""))
        lines.append(("a sync of 4 kB", "", f"median {1e3 * median:.2f} ms, mean {1e3 * mean:.2f} ms"))
        options = ("--target", "y", "--learner", given.learner, "--loss", "square")
        with Process(Path(folder) / "a", *options) as process:
            for predictors in (0, 4):  # the first answers wait for what is compiled
                while not load(process.port, given.clients, predictors, 1.0)[predictors // 4]:
                    pass
            lines += measured(f", {given.clients} clients", process, given.clients, 0, given.seconds)
            beside = f", {given.clients} clients that learn and 4 that predict"
            lines += measured(beside, process, given.clients, 4, given.seconds)
            lines += measured(f" alone, {given.clients} clients", process, 0, given.clients, given.seconds)
            lines += bulk_lines(process, given.learner)
        with Process(Path(folder) / "fast", "--target", "y", "--learner", "widrow-hoff", "--eta", "0.01") as process:
            lines += bulk_lines(process, "widrow-hoff")
        if given.restart:
            lines.append(restart(Path(folder) / "b", options, given.restart))
        lines += [daemon(given.clients, given.seconds), river(given.clients, given.seconds)]
    for line in [*([("work", "answers", "time"), ("---",) * 3] if given.markdown else []), *lines]:
        print("| " + " | ".join(line) + " |" if given.markdown else f"{line[0]:55s} {line[1]:>16s}  {line[2]}")


if __name__ == "__main__":
    main()
