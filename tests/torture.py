"""Kill a run with checkpoints again and again, and go on; the end must be that of a run left in peace, bit for bit.

    python tests/torture.py --kills 1000
    python tests/torture.py --strace      a kill at every system call of a save, by strace

Each life of the run is a forked process that goes on from the newest checkpoint and is sent SIGKILL at a random moment,
often while it writes. Lives go on until as many kills as asked for have struck; then the run is left to end.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from hindsight import checkpoint, files, learners
from hindsight.model import Model, load
from hindsight.run import Run, play

FEATURES, CHUNK, EVERY = 7, 50, 2
WEIGHTS = np.linspace(-1, 1, FEATURES)


def rows(chunk: int) -> tuple[np.ndarray, np.ndarray]:
    """A chunk of a stream that can be read from anywhere."""
    rng = np.random.default_rng(chunk)
    X = rng.uniform(-1, 1, (CHUNK, FEATURES))
    return X, X @ WEIGHTS + rng.normal(size=CHUNK)


def live(folder: str, target: str, chunks: int) -> None:
    """Go on from the newest checkpoint to the end, and save the model."""
    state = checkpoint.latest(folder)
    if state is None:
        runs = [Run(learners.widrow_hoff(eta=0.01), FEATURES, average=True)]
        runs.append(Run(learners.eg(eta=0.01, radius=8.0), FEATURES, average=True))
        state = {"runs": runs, "chunk": 0, "predictions": [0.0], "rng": np.random.default_rng(5), "names": []}
    for chunk in range(state["chunk"], chunks):
        X, y = rows(chunk)
        margins = np.empty((CHUNK, 2))
        weight = state["rng"].integers(0, 3, CHUNK).astype(float)
        weight[0] = 1.0
        play(state["runs"], X, [y, y], weight, margins)
        state["predictions"] = [*state["predictions"][-100:], *margins[-3:, 0].tolist()]
        state["names"].append(f"chunk {chunk}")
        state["chunk"] = chunk + 1
        if (chunk + 1) % EVERY == 0:
            checkpoint.write(folder, state)
    kept = {k: state[k] for k in ("predictions", "names", "rng")}
    for k, run in enumerate(state["runs"]):
        Model([run], average="before", preparation=kept).save(f"{target}{k}")


def born(folder: str, target: str, chunks: int) -> int:
    child = os.fork()
    if child == 0:
        good = False
        try:
            live(folder, target, chunks)
            good = True
        finally:
            os._exit(0 if good else 1)
    return child


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def torture(kills: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    base = Path(tempfile.mkdtemp())
    chunks, struck, lives, runs, pace = 120, 0, 0, 0, 0.05
    live(str(base / "warm"), str(base / "warm-"), 4)  # compile before the first fork
    began = time.perf_counter()
    if ended(born(str(base / "peace"), str(base / "peace-"), chunks)):
        sys.exit("the run left in peace failed")
    pace = time.perf_counter() - began
    peace = [(base / f"peace-{k}").read_bytes() for k in range(2)]
    while struck < kills:
        runs += 1
        folder, target = str(base / f"{runs}"), str(base / f"{runs}-")
        while True:
            child = born(folder, target, chunks)
            lives += 1
            if struck < kills:
                time.sleep(rng.exponential(pace / 6))
                os.kill(child, signal.SIGKILL)
            code = ended(child)
            if code == 0:
                break
            if code != -signal.SIGKILL:
                sys.exit(f"life {lives} (seed {seed}) ended by itself with status {code}")
            struck += 1
            checkpoint.latest(folder)  # whole, or none yet
            for k in range(2):
                if os.path.exists(f"{target}{k}"):
                    load(f"{target}{k}")
        for k in range(2):
            if Path(f"{target}{k}").read_bytes() != peace[k]:
                sys.exit(f"run {runs} (seed {seed}) after {lives} lives ended with another model")
        shutil.rmtree(folder)
    shutil.rmtree(base)
    print(f"{struck} kills in {runs} runs: each ended with the model of the run left in peace, bit for bit")


SAVE = "import sys; from hindsight import files; files.write(sys.argv[1], 'model', sys.argv[2] * 3000000, {})"
CALLS = "openat,write,fsync,close,rename,chmod,fchmod,newfstatat,fstat,access,faccessat,faccessat2,getdents64,unlink"


def strace() -> None:
    """Kill a real process at the entry of each system call from the temporary file to the end."""
    base = Path(tempfile.mkdtemp())
    path, log = base / "m", base / "log"
    command = [sys.executable, "-c", SAVE, str(path)]
    files.write(path, "model", "0" * 3000000, {})
    subprocess.run(["strace", "-o", str(log), "-e", f"trace={CALLS}", *command, "0"], check=True)
    calls = [found[1] for line in log.read_text().splitlines() if (found := re.match(r"(\w+)\(", line))]
    lines = [line for line in log.read_text().splitlines() if re.match(r"\w+\(", line)]
    first = next(k for k, line in enumerate(lines) if ".tmp" in line)
    last = max(k for k, line in enumerate(lines) if line.startswith("fsync")) + 2
    seen = {"0": 0, "1": 0}
    for k in range(first, last):
        files.write(path, "model", "0" * 3000000, {})
        when = calls[: k + 1].count(calls[k])
        inject = f"inject={calls[k]}:signal=SIGKILL:when={when}"
        done = subprocess.run(["strace", "-o", os.devnull, "-e", f"trace={calls[k]}", "-e", inject, *command, "1"])
        if done.returncode != -signal.SIGKILL:
            sys.exit(f"{calls[k]} number {when} was not struck: status {done.returncode}")
        document = files.read(path, ["model"])[1]
        if document not in ("0" * 3000000, "1" * 3000000):
            sys.exit(f"a kill at {lines[k]} left neither model")
        seen[document[0]] += 1
    shutil.rmtree(base)
    print(f"a kill at each of {last - first} system calls: {seen['0']} times the old model, {seen['1']} times the new")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=None, help="taken from the clock, and printed, where not given")
    parser.add_argument("--strace", action="store_true")
    options = parser.parse_args()
    if options.strace:
        strace()
    else:
        seed = time.time_ns() % 1_000_000 if options.seed is None else options.seed
        print(f"seed {seed}")
        torture(options.kills, seed)
