"""Kill a service at random moments under load, again and again: every acknowledged row is there, exactly once.

    python tests/serve_torture.py --kills 500

Clients send single rows, each with a number of its own and a key, and repeat what was not answered. After each kill the
service starts again. At the end its rows are read from its folder: each acknowledged one is there once, none twice, and
learning them in peace, commit by commit, gives the same bits.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import threading
import time
from pathlib import Path

from serving import Process, bits_of

OPTIONS = ("--target", "y", "--keep-log")


class Sender(threading.Thread):
    """A client that sends rows until it is told to stop, and remembers which were acknowledged."""

    def __init__(self, number, torture):
        super().__init__(daemon=True)
        self.number, self.torture, self.acknowledged = number, torture, {}

    def run(self):
        import http.client

        count = 0
        while not self.torture.over:
            name = f"{self.number}-{count}"
            rng = random.Random(name)
            row = {"a": rng.gauss(0, 1), "b": rng.gauss(0, 1), f"n{count % 50}": 1.0, "c": rng.choice("xyz")}
            body = json.dumps(row | {"id": name, "y": row["a"] - row["b"] + rng.gauss(0, 0.1)})
            while not self.torture.over:
                try:
                    connection = http.client.HTTPConnection("127.0.0.1", self.torture.port, timeout=5.0)
                    headers = {"content-type": "application/json", "idempotency-key": name}
                    connection.request("POST", "/learn", body, headers)
                    answer = connection.getresponse()
                    told = json.loads(answer.read())
                    connection.close()
                    if answer.status == 200:
                        self.acknowledged[name] = told["sequence"]
                        break
                    assert answer.status in (429, 503), (answer.status, told)
                except (OSError, http.client.HTTPException, ValueError):
                    pass
                time.sleep(0.05)
            count += 1


class Torture:
    """So many kills of one service."""

    def __init__(self, folder, kills, clients, seed):
        self.folder, self.kills, self.over, self.port = str(folder), kills, False, 0
        self.rng, self.slowest = random.Random(seed), 0.0
        self.clients = [Sender(k, self) for k in range(clients)]

    def run(self):
        options = (*OPTIONS, "--ignore", "id", "--loss", "square")
        process = Process(self.folder, *options)
        self.port = process.port
        for client in self.clients:
            client.start()
        while not any(client.acknowledged for client in self.clients):  # code is compiled once, not at every start
            time.sleep(0.05)
        began = time.monotonic()
        for k in range(self.kills):
            time.sleep(self.rng.uniform(0.0, 0.6))
            process.kill()
            started = time.monotonic()
            process = Process(self.folder)
            self.port = process.port
            self.slowest = max(self.slowest, time.monotonic() - started)
            if (k + 1) % 10 == 0:
                done = sum(len(client.acknowledged) for client in self.clients)
                told = f"{time.monotonic() - began:.0f} s, the slowest start took {self.slowest:.1f} s"
                print(f"{k + 1} kills, {done:,} rows, {told}", flush=True)
        time.sleep(0.3)
        self.over = True
        for client in self.clients:
            client.join(10.0)
        process.stop()

    def check(self):
        """Compare what was acknowledged with what is there."""
        from hindsight.serve.planning import service_plan
        from hindsight.serve.service import Service
        from hindsight.serve.store import Store

        there = {}
        sequence = 0
        peace = Service(f"{self.folder}-peace", service_plan("y", ignore=["id"], loss="square"), keep_log=True)
        for commit in Store(self.folder).commits():
            for part in commit.parts:
                for row in part.mappings():
                    sequence += 1
                    assert row["id"] not in there, f"{row['id']} was learnt twice"
                    there[row["id"]] = sequence
            peace.commit(commit.parts)
        acknowledged = {name: n for client in self.clients for name, n in client.acknowledged.items()}
        for name, number in acknowledged.items():
            assert there.get(name) == number, f"{name} was acknowledged as row {number}, and is {there.get(name)}"
        again = Service(self.folder)
        assert again.sequence == sequence == peace.sequence
        assert bits_of(again.live) == bits_of(peace.live), "other bits than in peace"
        again.close()
        peace.close()
        return len(acknowledged), sequence


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        torture = Torture(Path(folder) / "d", given.kills, given.clients, given.seed)
        torture.run()
        acknowledged, rows = torture.check()
    print(
        f"{given.kills} kills: {acknowledged:,} acknowledged rows are there, once each, of {rows:,} in the folder; "
        f"the model has the bits of a replay in peace"
    )


if __name__ == "__main__":
    main()
