"""Random text through every text parser: no crash, no hang, the same rows whatever the size of the blocks.

    python tests/fuzz_parsers.py 1000000 --bounds

takes a million inputs for each format. The first thousandth is run again as plain Python, where every index is checked,
and must give the same rows. With --bounds compiled code checks every index too, that of the learners included.
"""

import argparse
import contextlib
import hashlib
import io
import itertools
import os
import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hindsight.errors import RowError
from hindsight.kernels.compiler import inlined, kernel, part
from hindsight.online.learners import LEARNERS
from hindsight.online.run import Run, play
from hindsight.sources import SourceError, open_source
from hindsight.sources.parsers.bits import byte, word

SEEDS = {
    "csv": [b"a,b,y\n1,2,3\n", b'"a","b","y"\r\n"1","x ""y""\nz",3\r\n4,,5\n', b"a,b,y\n1e5,-.5,nan\n\n,,\n1,2\n"],
    "tsv": [b"a\tb\ty\n1\t 2 \t3\n", b'a\tb\ty\n"1"\t"2\t"\t3\n'],
    "svmlight": [
        b"1 1:2 3:4.5e-3 # c\n-1 2:1\n",
        b"1 1: 2: 3: 4: 5: 6: 7: 8: 9:\r" * 9,
        b"+1 qid:2 1:0.123456789012345678 9:1\r\n\n# x\n0 7:.5",
    ],
    "vw": [b"1 2 'tag|a:2 x:3 y |b z:-1.5e2\n| q\n", b"-1 | a b:1 \xc3\xa9\n1 |n:0.5 12:3 a a\r\n"],
    "jsonl": [b'{"a": 1, "b": "x", "y": 2}\n{"y": -1.5e3}\n', b'{"a": null, "y": true}\n{"a": [1], "y": 1}\n'],
}
LEARNT = ("perceptron", "widrow-hoff")  # the learners that play rows where every index is checked
SPICE = [
    *(
        b"\n",
        b"\r",
        b"\r\n",
        b" ",
        b"\t",
        b",",
        b'"',
        b'""',
        b":",
        b"|",
        b"#",
        b"'",
        b"-",
        b"+",
        b".",
        b"e",
        b"0",
        b"\0",
    ),
    *(
        b"1e308",
        b"1e-320",
        b"9" * 25,
        b"0" * 30 + b"1",
        b"9223372036854775808",
        b"\xff",
        b"\xef\xbb\xbf",
        b"nan",
        b"inf",
    ),
    *(b"1:1", b"|n:2", b"qid:1", b"{", b"}", b"[", b"x" * 40, b"2147483647:1", b"4.35", b"0.1234567", b"0.12345678"),
]


def make(r: random.Random, form: str) -> bytes:
    """Text that may be of a format."""
    data = bytearray(b"".join(r.choices(SEEDS[form], k=r.randint(1, 3))))
    for _ in range(r.choice((0, 1, 1, 2, 3, 8))):
        at = r.randint(0, len(data))
        what = r.random()
        if what < 0.5:
            data[at:at] = r.choice(SPICE)
        elif what < 0.7:
            del data[at : at + r.randint(1, 6)]
        elif what < 0.9 and at < len(data):
            data[at] = r.randrange(256)
        else:
            data[at:at] = data[r.randint(0, len(data)) :][: r.randint(1, 30)]
    return bytes(data)


def rows(form: str, data: bytes, learn: Sequence[str] = (), **options: object) -> list[object]:
    """Everything that a source says of the data; the learners of `learn` play the rows as well."""
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)))
    found: list[object] = []
    try:
        source = open_source("-", "y", format=form, rejects=True, ahead=False, **options)
        for chunk in source.chunks():
            X = chunk.X
            values = X.data if source.kind == "sparse" else X
            assert np.isfinite(values).all(), (form, data)
            for t in range(len(chunk)):
                if source.kind == "sparse":
                    a, b = X.indptr[t : t + 2].tolist()
                    entries = X.indices[a:b].tolist(), X.data[a:b].tolist()
                else:
                    entries = X[t].tolist()
                weight = None if chunk.weight is None else float(chunk.weight[t])
                found.append((entries, str(chunk.y[t]), weight, chunk.place(t), chunk.raw(t)))
            found += chunk.rejects
            if learn and len(chunk) and 0 < X.shape[1] < 10_000:
                play_rows(X, chunk.weight, learn)
        found.append((len(source.names), source.names[:50]))
    except SourceError as error:
        if "\n" in str(error):
            raise AssertionError(f"more than one line: {form} {data!r}") from None
        found.append(str(error))
    return sorted(found, key=repr)


def play_rows(X: Any, weight: Any, learners: Sequence[str]) -> None:
    """Let these learners play the rows."""
    weight = np.ones(X.shape[0]) if weight is None else weight  # one form of the loop to compile, not two
    for name in learners:
        run = Run(LEARNERS[name].make(), X.shape[1])
        with contextlib.suppress(RowError):  # a norm may overflow
            play([run], X, [np.where(np.arange(X.shape[0]) % 2, 1.0, -1.0)], weight, None, None, idle=True)


def run(count: int, seed: int, forms: Sequence[str] = tuple(SEEDS), learn: Sequence[str] = (), most: int = 1) -> str:
    """The hash of all that was found in so many inputs for each format; fails where the size of the blocks matters.

    Up to `most` inputs follow one another in one text.
    """
    digest = hashlib.sha256()
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError("a parser hangs")))
    with np.errstate(over="ignore"):  # plain Python warns where machine integers wrap
        left = dict.fromkeys(forms, count)
        for k in itertools.count():
            if not any(left.values()):
                break
            form = forms[k % len(forms)]
            if not left[form]:
                continue
            r = random.Random(seed * 1_000_003 + k)
            together = min(left[form], 1 if r.random() < 0.3 else most)
            left[form] -= together
            data = b"\n".join(make(r, form) for _ in range(together))
            options: dict[str, Any] = {"labels": True}
            if form in ("csv", "tsv", "jsonl") and r.random() < 0.5:
                options["categorical"] = "auto" if form == "jsonl" else r.choice(["auto", ["b"]])
            if form in ("svmlight", "vw", "jsonl") and r.random() < 0.2:
                options["hash_bits"] = 6
            options["missing"] = r.choice(["error", "zero", "skip"])
            signal.alarm(60)
            whole = rows(form, data, () if k % 4 else learn, **options)
            pieces = rows(form, data, chunk=r.randint(1, len(data) + 1), **options)
            signal.alarm(0)
            assert whole == pieces, (form, data, options)
            digest.update(repr(whole).encode("utf-8", "backslashreplace"))
            if sys.__stderr__ is not None and sys.__stderr__.isatty() and k % 1000 == 0:
                print(f"\r{k:,}", end="", file=sys.__stderr__)
    return digest.hexdigest()


@part
class Probe(NamedTuple):
    """Something that reads and writes where it is told."""

    values: np.ndarray

    def put(self, i):
        """Write as a method of a part."""
        self.values[i] = 1.0
        return 0.0


@inlined
def _get(values, i):
    return values[i]


def check_that_bounds_are_checked() -> None:
    """Every way in which code is compiled must notice an index outside an array."""
    probes = (
        kernel(lambda probe, text, i: probe.values[i]),
        kernel(lambda probe, text, i: _get(probe.values, i)),
        kernel(lambda probe, text, i: probe.put(i)),
        kernel(lambda probe, text, i: byte(text, i)),
        kernel(lambda probe, text, i: word(text, i)),
    )
    for look in probes:
        look(Probe(np.zeros(8)), np.zeros(8, np.uint8), 0)
        try:
            look(Probe(np.zeros(8)), np.zeros(8, np.uint8), 8)
        except IndexError:
            continue
        raise AssertionError("an index outside an array goes unnoticed")


def again(
    count: int,
    seed: int,
    most: int = 1,
    forms: Sequence[str] = tuple(SEEDS),
    learners: Sequence[str] = LEARNT,
    **environment: str,
) -> str:
    """What this program prints in a process with another environment."""
    command = [sys.executable, __file__, str(count), "--seed", str(seed), "--alone", "--together", str(most)]
    command += ["--forms", *forms, "--learners", *learners]
    done = subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int, nargs="?", default=2_000, help="inputs for each format")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", type=int, help="inputs to run as plain Python too (a thousandth)")
    parser.add_argument("--bounds", action="store_true", help="check every index of compiled code")
    parser.add_argument("--together", type=int, default=50, help="inputs that follow one another in a text, at most")
    parser.add_argument("--forms", nargs="+", default=list(SEEDS), choices=list(SEEDS), help="formats of the inputs")
    parser.add_argument("--learners", nargs="+", default=LEARNT, help="which play the rows, with --bounds")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.alone:
        checked = os.environ.get("NUMBA_BOUNDSCHECK") == "1"
        if checked:
            check_that_bounds_are_checked()
        print(run(args.count, args.seed, args.forms, learn=args.learners if checked else (), most=args.together))
        return
    few = max(10, args.count // 1000) if args.plain is None else args.plain
    if few:
        plain = again(few, args.seed, forms=args.forms, NUMBA_DISABLE_JIT="1")
        assert plain == run(few, args.seed, args.forms), "plain Python and compiled disagree"
        print(f"{few:,} inputs for each format as plain Python: the same rows")
    if args.bounds:
        again(args.count, args.seed, args.together, args.forms, NUMBA_BOUNDSCHECK="1")
    else:
        run(args.count, args.seed, args.forms, most=args.together)
    checked = ", no index outside an array" if args.bounds else ""
    print(f"{args.count:,} inputs for each format: no crash, no hang{checked}, the same rows in blocks of any size")


if __name__ == "__main__":
    main()
