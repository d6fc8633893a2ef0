"""What the law tests share: the learners under test, streams, storages, and comparisons.

A case is a learner of `learners.LEARNERS` beside the words by which `naive.py` knows it.
"""

import gc
import os
import resource
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  # loads its BLAS, which is another one than numpy's
import scipy.sparse as sp
from hypothesis import settings
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parent))

import naive
from hindsight.kernels import side_by_side
from hindsight.kernels.state import fields_of
from hindsight.online import learners
from hindsight.online.run import Run, play

if "PYTEST_XDIST_WORKER" in os.environ:
    side_by_side.PROCESSORS = 1  # the other ones run tests
    threadpool_limits(1)  # threads of BLAS that wait for a processor spin: eight tests took 63 s instead of 3

settings.register_profile("laws", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("laws")

# --- what `make test` runs, and what `make nightly` adds -------------------------------------------------------------

# Alone it keeps a test for the night; with `but` all parametrisations whose ids match none of these patterns, with
# `only` those that match one.
nightly = pytest.mark.nightly
_chosen = {"nightly": True}  # outside pytest all is run: mutants and torture import tests

# The files that take longest come first, so that the workers end together; neighbours compile different loops.
LONGEST = (
    "adaptive", "serve", "bad_input", "cluster", "golden", "laws", "truth", "corpus", "compiled", "estimators",
    "extending", "outputs", "forged", "losses", "best_comparator", "serve_core", "kernels", "penalties", "cells",
    "simd", "truth_repairs", "model", "report", "hostile_sources", "tables", "installs", "hostile_names", "cli",
    "halfspace", "sweep", "shuffle", "files", "docs", "site", "going_on",
)  # fmt: skip


def many(few: Any, all_of_them: Any) -> Any:
    """How many are drawn, or which: a few in `make test`, all of them with `--nightly`."""
    return all_of_them if _chosen["nightly"] else few


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """One worker more than processors: tests also wait for processes, sockets and clocks."""
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else (os.cpu_count() or 1) + 1


def pytest_addoption(parser):
    parser.addoption("--nightly", action="store_true", help="run all that is drawn or listed by the thousand")


def pytest_configure(config):
    _chosen["nightly"] = config.getoption("--nightly", True)


def _is_left_out(item: pytest.Item, met: set) -> bool:
    """Whether a test is for the night; the patterns that matched it are noted."""
    given = item.callspec.params if hasattr(item, "callspec") else {}
    if isinstance(given.get("case"), Case) and not is_chosen(given["case"], given.get("storage", "dense64")):
        return True
    left = False
    for mark in item.iter_markers("nightly"):
        patterns = mark.kwargs.get("but", mark.kwargs.get("only", ()))
        matched = [pattern for pattern in patterns if fnmatchcase(item.callspec.id, pattern)]
        met.update((item.nodeid.partition("[")[0], pattern) for pattern in matched)
        left |= bool(matched) == ("only" in mark.kwargs)
    return left


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    rank = {f"test_{name}.py": k for k, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))
    if _chosen["nightly"] or any("::" in word for word in config.args):  # who names a test gets it
        return
    met: set[tuple[str, str]] = set()
    left_out = [_is_left_out(item, met) for item in items]
    for item in items:
        for mark in item.iter_markers("nightly"):
            function = item.nodeid.partition("[")[0]
            idle = [p for patterns in mark.kwargs.values() for p in patterns if (function, p) not in met]
            if idle:
                raise pytest.UsageError(f"{function}: no parametrisation matches {idle}")
    config.hook.pytest_deselected(items=[item for item, left in zip(items, left_out, strict=True) if left])
    items[:] = [item for item, left in zip(items, left_out, strict=True) if not left]


def pytest_collection_finish():
    """Garbage is not sought among what is imported, which is an eighth of the time that compiling takes."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)


# --- what the workers took --------------------------------------------------------------------------------------------

_peaks: list[int] = []  # the most memory that each worker had, in KiB


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    _peaks.append(getattr(node, "workeroutput", {}).get("peak", 0))


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def pytest_terminal_summary(terminalreporter):
    if _peaks:
        terminalreporter.write_line("memory of workers: " + ", ".join(f"{peak / 2**20:.2f} GiB" for peak in _peaks))


# --- learners under test ----------------------------------------------------------------------------------------------

RADIUS = 2.5
TIGHT = 1e-12  # what "equal" means between two orders of the same float64 sums


@dataclass(frozen=True)
class Case:
    """A learner: how to build it, and what `naive.play` calls it."""

    name: str
    make: Any
    eta: float
    rule: str
    geometry: str = "euclidean"
    update: str = "explicit"
    radius: float = 1.0

    def learner(self, eta=None, power=0.0, rates=None):
        options = {} if self.name == "perceptron" else {"eta": self.eta if eta is None else eta, "power": power}
        made = self.make(**options)
        return made if rates is None else made.with_rates(rates)

    @property
    def targets(self) -> str:
        if self.rule in ("logistic", "clipped", "probit", "tanh"):
            return "unit"
        if self.rule == "poisson":
            return "count"
        return "sign" if self.rule in ("hinge", "perceptron") else "real"

    def __str__(self) -> str:
        return self.name


FLAT = ("quantile", "huber", "poisson")  # losses played in the Euclidean geometry alone


def _descents():
    radius = {"euclidean": 1.0, "simplex": 1.0, "balanced": RADIUS}
    for loss in learners.LOSSES:
        for geometry in radius if loss not in FLAT else ("euclidean",):  # tests/truth plays the scale-free one
            for update in learners.UPDATES:
                r = radius[geometry]
                make = partial(learners.descent, loss, geometry, update=update, radius=r)
                yield Case(f"descent-{loss}-{geometry}-{update}", make, 0.2, loss, geometry, update, r)


eg, winnow, widrow_hoff = learners.eg, learners.winnow, learners.widrow_hoff
NAMED = (
    Case("perceptron", learners.perceptron, 1.0, "perceptron"),
    Case("winnow-balanced", partial(winnow, balanced=True), 0.3, "perceptron", "balanced"),
    Case("winnow-simplex", partial(winnow, balanced=False), 0.3, "perceptron", "simplex"),
    Case("widrow-hoff-explicit", partial(widrow_hoff, update="explicit"), 0.2, "widrow-hoff"),
    Case("widrow-hoff-implicit", partial(widrow_hoff, update="implicit"), 0.7, "widrow-hoff", update="implicit"),
    Case("eg-simplex", partial(eg, radius=None), 0.3, "widrow-hoff", "simplex"),
    Case("eg-balanced", partial(eg, radius=RADIUS), 0.1, "widrow-hoff", "balanced", radius=RADIUS),
    Case("eg-simplex-implicit", partial(eg, radius=None, update="implicit"), 2.0, "widrow-hoff", "simplex", "implicit"),
    Case(
        "eg-balanced-implicit",
        partial(eg, radius=RADIUS, update="implicit"),
        1.5,
        "widrow-hoff",
        "balanced",
        "implicit",
        RADIUS,
    ),
    Case("glm-tron-identity", partial(learners.glm_tron, "identity"), 0.2, "widrow-hoff"),
    Case("glm-tron-logistic", partial(learners.glm_tron, "logistic"), 1.0, "logistic"),
    Case("glm-tron-clipped", partial(learners.glm_tron, "clipped"), 0.3, "clipped"),
    Case("glm-tron-probit", partial(learners.glm_tron, "probit"), 0.8, "probit"),
    Case("glm-tron-tanh", partial(learners.glm_tron, "tanh"), 0.5, "tanh"),
)
CASES = (*NAMED, *_descents())
BY_NAME = {case.name: case for case in CASES}
# Every learner is played dense; these also as CSR: all of NAMED, each loss of descent in one geometry or more, and what
# shares their compiled loop (each further one costs a compilation, and CSR enters only through rows).
SPARSE = (
    *NAMED,
    *(
        case
        for case in CASES[len(NAMED) :]
        if case.rule == "square"
        or (case.update == "explicit" and case.rule in ("hinge", "perceptron"))
        or (case.rule, case.geometry, case.update)
        in {
            ("logistic", "euclidean", "explicit"),
            ("logistic", "euclidean", "implicit"),
            ("logistic", "balanced", "implicit"),
            ("absolute", "euclidean", "implicit"),
            ("absolute", "balanced", "explicit"),
            ("absolute", "simplex", "implicit"),
            ("hinge", "euclidean", "implicit"),
            ("hinge", "balanced", "implicit"),
        }
    ),
)
PLAYED = [(case, "dense64") for case in CASES] + [(case, "csr64") for case in SPARSE]
STORAGES = ("dense64", "dense32", "strided", "csr64", "csr32")


def _pairs():
    """Descents in which each loss meets the Euclidean geometry and another one, and each geometry each update."""
    for k, loss in enumerate(learners.LOSSES):
        if loss in FLAT:
            yield f"descent-{loss}-euclidean-{'explicit' if loss == 'huber' else 'implicit'}"
        else:
            yield f"descent-{loss}-euclidean-{('explicit', 'implicit')[k % 2]}"
            yield f"descent-{loss}-{('simplex', 'balanced')[k % 2]}-{('explicit', 'implicit')[k // 2 % 2]}"


# What `make test` plays; `make nightly` plays all. Each further one costs a compilation.
CHOSEN = {
    "dense64": {*(case.name for case in NAMED), *_pairs()},
    "dense32": {"widrow-hoff-implicit", "eg-simplex"},
    "strided": {"widrow-hoff-implicit", "winnow-balanced"},
    "csr64": {
        "perceptron", "winnow-balanced", "widrow-hoff-explicit", "widrow-hoff-implicit", "eg-simplex",
        "eg-simplex-implicit", "glm-tron-logistic",
    },
    "csr32": {"widrow-hoff-implicit"},
}  # fmt: skip


def is_chosen(case: Case, storage: str) -> bool:
    """Whether `make test` plays the case in this storage."""
    return case.name in CHOSEN[storage]


# --- streams --------------------------------------------------------------------------------------------------------


def targets(case: Case, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Targets that the case takes: near a hidden linear function, never on one."""
    z = X @ rng.normal(size=X.shape[1]) + rng.normal(size=len(X))
    if case.targets == "sign":
        return np.where(z > 0, 1.0, -1.0)
    if case.targets == "count":
        return rng.poisson(np.exp(np.clip(z, -2.0, 2.0))).astype(float)
    return rng.uniform(size=len(X)) if case.targets == "unit" else 0.5 * z


def natural(case: Case, X: np.ndarray, want: naive.Played) -> tuple[float, float]:
    """The scales of weights and margins: multiplicative weights near 0 are differences of numbers near radius/N."""
    size = max(np.abs(want.final).max(), np.abs(want.start).max())
    if case.geometry != "euclidean":
        size = max(size, case.radius / len(want.start))
    return size, max(np.abs(want.margins).max(), size * np.abs(X).max())


def stream(case: Case, m: int = 60, n: int = 7, density: float = 0.6, seed: int = 0):
    """Rows with holes (one of them all zero), repeated rows, targets, and weights with zeros and twos."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n)) * (rng.random((m, n)) < density) / np.sqrt(n)
    X[m // 3] = 0.0
    X[m // 2] = X[m // 2 - 1]
    X = X.astype(np.float32).astype(np.float64)  # so that every storage holds the same numbers
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], m, p=[0.2, 0.2, 0.4, 0.2])
    weight[:2], weight[-1] = (1.0, 0.0), 1.0
    return X, targets(case, X, rng), weight


def store(X: np.ndarray, storage: str) -> Any:
    """The same rows in another storage."""
    kind = np.float32 if storage.endswith("32") else np.float64
    if storage.startswith("csr"):
        return sp.csr_matrix(X.astype(kind))
    if storage == "strided":
        wide = np.full((2 * X.shape[0], 3 * X.shape[1]), np.nan)
        wide[::2, ::3] = X
        return wide[::2, ::3]
    return np.ascontiguousarray(X, kind)


def start_of(case: Case, width: int) -> np.ndarray:
    """A w_1 inside the case's set that is not the table's."""
    w = np.random.default_rng(9).uniform(0.1, 1.0, width)
    if case.geometry == "simplex":
        return case.radius * w / w.sum()
    w[::2] *= -1.0
    return w if case.geometry == "euclidean" else 0.6 * case.radius * w / np.abs(w).sum()


# --- playing ----------------------------------------------------------------------------------------------------------


def run_of(case: Case, n: int, *, intercept=True, average=True, start=None, **step) -> Run:
    """A fresh run of the case."""
    return Run(case.learner(**step), n, intercept=intercept, average=average, start=start)


def feed(run: Run, X: Any, y: np.ndarray, weight: np.ndarray | None = None, sizes=None) -> np.ndarray:
    """Play the rows, in chunks of these sizes (repeated to the end) if given; the margins.

    A chunk without a positive weight is an error, so a chunk grows until it has one.
    """
    margins = np.empty((X.shape[0], 1))
    a, turn = 0, 0
    while a < X.shape[0]:
        b = X.shape[0] if sizes is None else min(X.shape[0], a + sizes[turn % len(sizes)])
        while weight is not None and b < X.shape[0] and not weight[a:b].any():
            b += 1
        play([run], X[a:b], [y[a:b]], None if weight is None else weight[a:b], margins[a:b])
        a, turn = b, turn + 1
    return margins[:, 0]


def played(case: Case, X: Any, y: np.ndarray, weight=None, *, sizes=None, **options) -> tuple[Run, np.ndarray]:
    """A fresh run over the rows, and its margins."""
    run = run_of(case, X.shape[1], **options)
    return run, feed(run, X, y, weight, sizes)


def oracle(case: Case, X: np.ndarray, y, weight=None, *, intercept=True, start=None, eta=None, power=0.0, rates=None):
    """The same by `naive.py`."""
    return naive.play(
        X,
        y,
        rule=case.rule,
        geometry=case.geometry,
        update=case.update,
        eta=case.eta if eta is None else eta,
        power=0.0 if case.name == "perceptron" else power,
        rates=rates,
        radius=case.radius,
        weight=weight,
        start=start,
        bias=1.0 if intercept else 0.0,
        keep=False,
    )


# --- comparing --------------------------------------------------------------------------------------------------------


def close(a: Any, b: Any, tolerance: float = TIGHT, scale: float | None = None) -> None:
    """a and b agree to the tolerance, relative to the largest of them."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    assert a.shape == b.shape
    scale = max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0)) if scale is None else scale
    gap = np.abs(a - b).max(initial=0.0)
    assert gap <= tolerance * scale, f"differ by {gap:.3g}, {gap / scale:.3g} of the scale {scale:.3g}"


def same(a: Any, b: Any) -> None:
    """a and b are equal bit for bit (only the sign of a zero is free: -0.0 and 0.0 are one number)."""
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b), strict=True)


def one_by_one(model: Any, rows: Any, targets: Any, *weights: Any) -> Any:
    """The model after it learnt these rows one at a time."""
    for row in zip(rows, targets, *weights, strict=True):
        model.learn_one(*row)
    return model


UNSAVED = ("_together", "_before", "_compiled")  # attributes of a panel that only save time


def lasting(state):
    """The fields of a state that hold something from one round to the next."""
    geometries = any(hasattr(kind, "__metadata__") for kind in type(state).__annotations__.values())
    fields = fields_of(type(state)) if geometries else {}
    return [name for name in state._fields if name not in fields or not fields[name].scratch]


def same_state(a: Run, b: Run) -> None:
    """Two runs are in the same state, bit for bit."""
    for field in lasting(a.state):
        same(getattr(a.state, field), getattr(b.state, field))
    same(a.progress, b.progress)
    same(a.tally, b.tally)
    same(a.first, b.first)


@contextmanager
def registered_meanwhile():
    """Forget afterwards what is registered in the block."""
    from hindsight.online import learners, parts
    from hindsight.online.saving import PARTS
    from hindsight.storage import registry

    tables = (parts.LOSSES, parts.UPDATES, parts.GEOMETRIES, learners.LEARNERS)
    before = [dict(table) for table in tables]
    try:
        yield
    finally:
        for table, old in zip(tables, before, strict=True):
            table.clear()
            table.update(old)
        for name in [name for name in registry._registered if name.startswith(":")]:  # those of user code
            kind = registry._registered.pop(name).cls
            for kinds in PARTS.values():
                kinds.discard(kind)
