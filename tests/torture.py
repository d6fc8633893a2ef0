"""Kill a run with checkpoints again and again, and go on; the end must be that of a run left in peace, bit for bit.

    python tests/torture.py --kills 1000        `hindsight learn` over all kinds of text, with late labels and limits
    python tests/torture.py --bare --kills 200  runs and checkpoints alone, without the command
    python tests/torture.py --strace            a kill at every system call of a save, by strace

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

from hindsight.online import learners
from hindsight.online.run import Run, play
from hindsight.storage import checkpoint
from hindsight.storage import container as files
from hindsight.storage.model import load
from hindsight.training.model import Model

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


def born(life, *args) -> int:
    """A process that lives this life."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = life(*args) or 0
        except SystemExit as end:
            code = end.code or 0
        finally:
            os._exit(code)
    return child


def at_home(life, *args) -> None:
    """Live in this process."""
    kept = [os.dup(number) for number in (1, 2)]
    try:
        life(*args)
    except SystemExit as end:
        if end.code:
            sys.exit("the run left in peace failed")
    finally:
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def torture(kills: int, seed: int, life, results, check) -> str:
    """Strike `kills` times.

    `life(folder)` starts afresh, or goes on from the checkpoints in the folder, and leaves its results there:
    `results(folder)` reads them. `check(folder)` looks at what a kill has left.
    """
    rng = np.random.default_rng(seed)
    base = Path(tempfile.mkdtemp())
    for name in ("warm", "peace"):
        (base / name).mkdir()
    at_home(life, base / "warm")  # what is imported and compiled here need not be in every life
    began = time.perf_counter()
    if ended(born(life, base / "peace")):
        sys.exit("the run left in peace failed")
    pace = time.perf_counter() - began
    peace = results(base / "peace")
    struck, lives, runs = 0, 0, 0
    while struck < kills:
        runs += 1
        folder = base / f"{runs}"
        folder.mkdir()
        while True:
            child = born(life, folder)
            lives += 1
            if struck < kills:
                time.sleep(rng.exponential(pace / 3))
                os.kill(child, signal.SIGKILL)
            code = ended(child)
            if code == 0:
                break
            if code != -signal.SIGKILL:
                sys.exit(f"life {lives} (seed {seed}) in {folder} ended by itself with status {code}")
            struck += 1
            check(folder)
        if results(folder) != peace:
            sys.exit(f"run {runs} (seed {seed}) in {folder} ended, after {lives} lives in all, with other results")
        shutil.rmtree(folder)
    shutil.rmtree(base)
    return f"{struck} kills in {runs} runs ({pace:.2f} s each in peace): each ended as the run in peace, bit for bit"


# ---------------------------------------------------------------- runs and checkpoints alone

CHUNKS = 120


def bare(folder: Path) -> None:
    live(str(folder / "kept"), str(folder / "model-"), CHUNKS)


def models(folder: Path) -> list[bytes]:
    return [(folder / f"model-{k}").read_bytes() for k in range(2)]


def sound(folder: Path) -> None:
    """Checkpoints are whole, or there is none yet; and so are the models."""
    checkpoint.latest(folder / "kept")
    for path in folder.glob("model-*"):
        load(path)


# ---------------------------------------------------------------- the command


def streams(folder: Path) -> dict[str, list[str]]:
    """Files, and how to learn from them."""
    rng = np.random.default_rng(7)
    m = 12_000
    X, colour = np.round(rng.normal(size=(m, 8)), 4), rng.choice(["red", "green", "blue"], m)
    y = np.round(X @ np.linspace(-1, 1, 8) + rng.normal(size=m), 3)
    label = np.where(y > 1, "high", np.where(y < -1, "low", "mid"))
    head = ",".join(f"x{j}" for j in range(8))
    rows = [",".join(map(str, row)) for row in X.tolist()]
    (folder / "numbers.csv").write_text(
        f"{head},y\n" + "".join(f"{row},{v}\n" for row, v in zip(rows, y.tolist(), strict=True))
    )
    (folder / "labels.csv").write_text(
        f"{head},colour,label\n" + "".join(f"{a},{b},{c}\n" for a, b, c in zip(rows, colour, label, strict=True))
    )
    (folder / "limited.csv").write_text((folder / "numbers.csv").read_text())
    picks = rng.integers(1, 5000, (m, 12))
    words = [
        " ".join(f"{j}:{v}" for j, v in zip(sorted(set(p)), X[k].tolist(), strict=False)) for k, p in enumerate(picks)
    ]
    (folder / "rows.svm").write_text("".join(f"{v} {w}\n" for v, w in zip(y.tolist(), words, strict=True)))
    named = [" ".join(f"n{j}:{v}" for j, v in zip(p, X[k].tolist(), strict=False)) for k, p in enumerate(picks)]
    (folder / "rows.vw").write_text(
        "".join(f"{1 if v > 0 else -1} | {w}\n" for v, w in zip(y.tolist(), named, strict=True))
    )
    late = np.where(np.arange(m) == m - 500, "never", np.where(y > 0, "high", "low"))
    (folder / "late.csv").write_text(f"{head},label\n" + "".join(f"{a},{b}\n" for a, b in zip(rows, late, strict=True)))
    return {
        "late.csv": ["--target", "label", "--learner", "perceptron"],  # starts again where a third label turns up
        "limited.csv": ["--target", "y", "--learner", "eg", "--limit", "7001", "--passes", "2"],
        "numbers.csv": ["--target", "y", "--learner", "eg", "--eta", "0.01", "--passes", "2"],
        "labels.csv": ["--target", "label", "--learner", "perceptron", "--categorical", "colour", "--scale", "max-abs"],
        "rows.svm": ["--target", "y", "--learner", "widrow-hoff", "--eta", "0.1"],
        "rows.vw": ["--target", "y", "--learner", "perceptron"],
    }


def command(data: Path, options: list[str]):
    """A life of `hindsight learn`."""

    def life(folder: Path) -> None:
        from hindsight.__main__ import main
        from hindsight.sources import open_source

        open_source.__kwdefaults__["chunk"] = 1 << 16  # many chunks, and a checkpoint after each
        kept = folder / "kept"
        args = ["learn", str(data), *options, "--save", str(folder / "model-0"), "--predictions", str(folder / "told")]
        args += ["--checkpoint", str(kept), "--every", "1", "--json", "--progress", "none"]
        sys.argv = ["hindsight", *args, *(["--resume"] if checkpoint.generations(kept) else [])]
        for number, path in ((1, folder / "out"), (2, folder / "err")):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        main()

    return life


def told(folder: Path) -> list[bytes]:
    """The model, the predictions, and what was printed but for the time it took."""
    out = re.sub(rb'"(seconds|rows_per_second)": [^,}]*', b"", (folder / "out").read_bytes())
    return [(folder / "model-0").read_bytes(), (folder / "told").read_bytes(), out]


SAVE = """
import sys
from hindsight.storage import container
container.write(sys.argv[1], "model", sys.argv[2] * 3000000, {})
"""
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
    parser.add_argument("--bare", action="store_true", help="runs and checkpoints alone, without the command")
    parser.add_argument("--strace", action="store_true", help="a kill at every system call of a save")
    options = parser.parse_args()
    seed = time.time_ns() % 1_000_000 if options.seed is None else options.seed
    if options.strace:
        strace()
    elif options.bare:
        print(f"seed {seed}: {torture(options.kills, seed, bare, models, sound)}")
    else:
        place = Path(tempfile.mkdtemp())
        every = streams(place)
        for name, given in every.items():
            done = torture(-(-options.kills // len(every)), seed, command(place / name, given), told, sound)
            print(f"{name}, seed {seed}: {done}", flush=True)
        shutil.rmtree(place)
