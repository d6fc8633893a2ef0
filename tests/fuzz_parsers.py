"""Random text through every text parser: no crash, no hang, the same rows whatever the size of the blocks.

    python tests/fuzz_parsers.py 1000000

The first thousandth is run again as plain Python, where every index is checked, and must give the same rows.
"""

import argparse
import hashlib
import io
import os
import random
import signal
import subprocess
import sys

import numpy as np

from hindsight.sources import SourceError, open_source

SEEDS = {
    "csv": [b"a,b,y\n1,2,3\n", b'"a","b","y"\r\n"1","x ""y""\nz",3\r\n4,,5\n', b"a,b,y\n1e5,-.5,nan\n\n,,\n1,2\n"],
    "tsv": [b"a\tb\ty\n1\t 2 \t3\n", b'a\tb\ty\n"1"\t"2\t"\t3\n'],
    "svmlight": [b"1 1:2 3:4.5e-3 # c\n-1 2:1\n", b"+1 qid:2 1:0.123456789012345678 9:1\r\n\n# x\n0 7:.5"],
    "vw": [b"1 2 'tag|a:2 x:3 y |b z:-1.5e2\n| q\n", b"-1 | a b:1 \xc3\xa9\n1 |n:0.5 12:3 a a\r\n"],
    "jsonl": [b'{"a": 1, "b": "x", "y": 2}\n{"y": -1.5e3}\n', b'{"a": null, "y": true}\n{"a": [1], "y": 1}\n'],
}
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


def make(r: random.Random) -> tuple[str, bytes]:
    """A format, and text that may be of it."""
    form = r.choice(list(SEEDS))
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
    return form, bytes(data)


def rows(form: str, data: bytes, **options: object) -> list[object]:
    """Everything that a source says of the data."""
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)))
    found: list[object] = []
    try:
        source = open_source("-", "y", format=form, rejects=True, ahead=False, **options)
        for chunk in source.chunks():
            for t in range(len(chunk)):
                row = chunk.X[t]
                entries = (row.indices.tolist(), row.data.tolist()) if source.kind == "sparse" else row.tolist()
                weight = None if chunk.weight is None else float(chunk.weight[t])
                found.append((entries, str(chunk.y[t]), weight, chunk.place(t), chunk.raw(t)))
                values = row.data if source.kind == "sparse" else row
                assert np.isfinite(values).all(), (form, data)
            found += chunk.rejects
        found.append((len(source.names), source.names[:50]))
    except SourceError as error:
        if "\n" in str(error):
            raise AssertionError(f"more than one line: {form} {data!r}") from None
        found.append(str(error))
    return sorted(found, key=repr)


def run(count: int, seed: int) -> str:
    """The hash of all that was found; fails where the size of the blocks matters."""
    digest = hashlib.sha256()
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError("a parser hangs")))
    with np.errstate(over="ignore"):  # plain Python warns where machine integers wrap
        for k in range(count):
            r = random.Random(seed * 1_000_003 + k)
            form, data = make(r)
            options: dict[str, object] = {"labels": True}
            if form in ("csv", "tsv", "jsonl") and r.random() < 0.5:
                options["categorical"] = "auto" if form == "jsonl" else r.choice(["auto", ["b"]])
            if form in ("svmlight", "vw", "jsonl") and r.random() < 0.2:
                options["hash_bits"] = 6
            options["missing"] = r.choice(["error", "zero", "skip"])
            signal.alarm(60)
            whole = rows(form, data, **options)
            pieces = rows(form, data, chunk=r.randint(1, len(data) + 1), **options)
            signal.alarm(0)
            assert whole == pieces, (form, data, options)
            digest.update(repr(whole).encode("utf-8", "backslashreplace"))
            if sys.__stderr__ is not None and sys.__stderr__.isatty() and k % 1000 == 0:
                print(f"\r{k:,}", end="", file=sys.__stderr__)
    return digest.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int, nargs="?", default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", type=int, help="inputs to run as plain Python too (a thousandth)")
    args = parser.parse_args()
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        print(run(args.count, args.seed))
        return
    few = max(50, args.count // 1000) if args.plain is None else args.plain
    command = [sys.executable, __file__, str(few), "--seed", str(args.seed)]
    plain = subprocess.run(
        command, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, stdout=subprocess.PIPE, text=True, check=True
    )
    assert plain.stdout.strip() == run(few, args.seed), "plain Python and the compiled parsers disagree"
    print(f"{few:,} inputs as plain Python: the same rows")
    run(args.count, args.seed)
    print(f"{args.count:,} inputs: no crash, no hang, the same rows in blocks of any size")


if __name__ == "__main__":
    main()
