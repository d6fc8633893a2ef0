"""Print the table of the truth suite; 1 if anything is false or a family's bounds were never nearly met."""

import argparse
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])

import truth  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=truth.__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=10000, help="streams of each family")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--family", choices=list(truth.FAMILIES), help="only this one")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    families, bad = [options.family] if options.family else list(truth.FAMILIES), False
    print(f"{'family':22s} {'streams':>8s} {'void':>6s} {'violations':>10s} {'largest measured/bound':>23s} seconds")
    work = partial(truth.survey, streams=options.streams, seed=options.seed)
    with ProcessPoolExecutor(options.jobs, get_context("spawn"), warnings.simplefilter, ("error",)) as pool:
        for line in pool.map(work, families):
            found = f"{line.streams:8d} {line.void:6d} {len(line.violations):10d} {line.ratio:23.16f}"
            print(f"{line.family:22s} {found} {line.seconds:7.1f}", flush=True)
            for seed, complaint in line.violations[:10]:
                print(f"    seed {seed}: {complaint.kind}: {complaint.text}", flush=True)
            bad |= bool(line.violations) or line.ratio <= 0.9
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
