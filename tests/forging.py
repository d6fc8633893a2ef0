"""Forge saved models and checkpoints: change what they say, seal them anew, load and use them.

    python tests/forging.py 20000

The seal of a file is a checksum: whoever can write a file can seal it. So whatever a file says, loading it must end in
a ModelError of one line or in an object that can be used; and using it must end in a result or a ValueError of one
line, never in a crash, a hang or full memory. Forged files are used in forked processes, so that a crash is seen, and
told by the number of the forgery.
"""

import contextlib
import copy
import io
import json
import mmap
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import hindsight
from discovery import PUBLIC
from hindsight import density
from hindsight.cli.card import card, card_values
from hindsight.cli.predictions import as_text, names_of, tables
from hindsight.errors import ModelError
from hindsight.storage import checkpoint, container
from hindsight.storage.model import KINDS, load
from hindsight.training.certify import certify_model
from hindsight.training.model import Model, open_model, to_portable
from hindsight.training.options import ResultOptions
from hindsight.training.plan import Plan, choose_learners
from hindsight.training.session import Session

MEMORY, SECONDS = 8 << 30, 60  # of a process, and for one forgery
ROOM = np.random.default_rng(3)
X = ROOM.uniform(0.0, 0.3, (40, 4))
Y = X @ [1.0, -1.0, 2.0, 0.5]
WHOLE = ROOM.integers(0, 3, (40, 4))
LABELS = np.array(["u", "v", "w"])[WHOLE[:, 0]]
OPTIONS = ({}, {"average": "after", "keep_margins": True}, {"batch": 3}, {"warm_start": True}, {"rates": Y})
SOME = (  # that are quick to compile, with states of each kind
    "WidrowHoffRegressor", "PerceptronClassifier", "LeastSquares", "IsotonicRegressor", "IsotronRegressor",
    "GradientDescentRegressor", "densities full", "densities growing",
)  # fmt: skip
NAMED = {"a": X[:, 0], "b": WHOLE[:, 1], "c": X[:, 2]}
SENTENCES = ["a b", "b a c", "a", "c a b"]
ROW = dict(zip("abcd", X[0].tolist(), strict=True))


class Saved(NamedTuple):
    """A true file: its kind, the document, its tensors, and what to read to use it."""

    kind: str
    document: Any
    tensors: dict[str, np.ndarray]
    data: str = ""


# ---------------------------------------------------------------- true files


def write_data(folder: Path) -> dict[str, Plan]:
    """Rows in several forms, and how to learn from them."""
    numbers = [",".join(map(str, row)) for row in X.round(3).tolist()]
    colour = np.array(["red", "green", "blue"])[WHOLE[:, 1]]
    (folder / "numbers.csv").write_text("a,b,c,d,y\n" + "".join(f"{r},{v}\n" for r, v in zip(numbers, Y, strict=True)))
    (folder / "labels.csv").write_text(
        "a,b,c,d,colour,y\n" + "".join(f"{r},{c},{v}\n" for r, c, v in zip(numbers, colour, LABELS, strict=True))
    )
    words = [" ".join(f"{j}:{v}" for j, v in zip((1, 3, 4, 9), row, strict=True)) for row in X.round(3).tolist()]
    (folder / "rows.svm").write_text("".join(f"{v} {w}\n" for v, w in zip(Y, words, strict=True)))
    named = [w.replace(" ", " |s n").replace("1:", "n1:", 1) for w in words]
    (folder / "rows.vw").write_text("".join(f"{1 if v > 0 else -1} | {w}\n" for v, w in zip(Y, named, strict=True)))

    def plan(name, target, learner, reading=None, **options):
        reading = {"categorical": [], "chunk": 256, "format": None, "hash_bits": None, "missing": "error"} | (
            reading or {}
        )
        return Plan(str(folder / name), target, choose_learners(learner), reading, digest=True, **options)

    return {
        "numbers": plan("numbers.csv", "y", ["widrow-hoff"], passes=2, scale="standard"),
        "balanced": plan("numbers.csv", "y", ["eg"], scale="max-abs", limit=30),
        "labels": plan("labels.csv", "y", ["perceptron"], {"categorical": ["colour"]}),
        "simplex": plan("labels.csv", "y", ["winnow"], {"categorical": "auto"}, sample=0.9, seed=3),
        "svmlight": plan("rows.svm", None, ["glm-tron"], passes=2),
        "names": plan("rows.vw", None, ["descent"]),
        "hashed": plan("rows.vw", None, ["perceptron"], {"hash_bits": 6}),
        "two": plan("rows.svm", None, ["widrow-hoff", "glm-tron"], scale="global-unit"),
    }


def true_models(folder: Path, plans: dict[str, Plan]) -> dict[str, Saved]:
    """Models and checkpoints that the command writes."""
    found = {}
    for name, plan in plans.items():
        session = Session(plan, ResultOptions(checkpoint=str(folder / name), every=10))
        state = session.run()
        path = checkpoint.path_of(folder / name, checkpoint.generations(folder / name)[0])
        found[f"checkpoint {name}"] = saved(path, ("checkpoint",), name)
        if len(state.runs) == 1:
            certificate = certify_model(state.to_model(), plan.data) if name in ("numbers", "labels") else None
            state.to_model(certificate).save(folder / "model")
            found[f"model {name}"] = saved(folder / "model", KINDS, str(plan.data))
    return found


def true_estimators(folder: Path, some: bool) -> dict[str, Saved]:
    """Estimators of every class, with every density, and those that learnt rows one at a time; or some of them."""
    made = {}
    for kind in PUBLIC:
        for options in OPTIONS:
            if set(options) <= set(kind().get_params()):
                made[f"{kind.__name__} {options if options else ''}"] = kind(**options)
    families = {
        "full": "full",
        "tied": "tied",
        "poisson": density.Poisson(columns=4),
        "symbols": density.Categorical([0, 1, 2], columns=4),
        "numbered": density.Categorical(3, columns=4, forget=0.9),
        "gamma": density.Gamma(columns=4),
        "bernoulli": "bernoulli",
        "growing": density.Categorical(),
        "histogram": density.Histogram(0.0, 3.0, 5),
        "product": density.Product({"a": density.Gaussian(), "b": density.Categorical(), "c": density.Exponential()}),
        "pair": density.Product({("a", "c"): density.FullGaussian(2), "b": density.Poisson()}),
        "keyed": density.Keyed(density.Product({"a": density.Gaussian(), "c": density.Exponential()}), "b"),
    }
    made |= {f"densities {name}": hindsight.GenerativeClassifier(family) for name, family in families.items()}
    made["calibrated"] = hindsight.Calibrator(hindsight.DescentClassifier(loss="logistic"))
    found = {}
    for name, estimator in made.items():
        if some and not name.strip().endswith(SOME):
            continue
        rows, y = rows_for(name, estimator)
        if "rates" in name:
            estimator.set_params(rates=np.full(200, 0.1))
        estimator.fit(rows, y)
        if hasattr(estimator, "certify") and "rates" not in name:
            with contextlib.suppress(ValueError, AttributeError):
                estimator.certificate_ = estimator.certify(rows, y)
        estimator.save(folder / "model")
        found[name] = saved(folder / "model", KINDS)
        if hasattr(estimator, "learn_one") and estimator.get_params().get("features", "columns") == "columns":
            one = type(estimator)()
            for k in range(6):
                one.learn_one({"a": 0.1, f"n{k}": 0.2}, LABELS[k] if hasattr(estimator, "classes_") else 0.5)
            one.save(folder / "model")
            found[f"{name}, one at a time"] = saved(folder / "model", KINDS)
    return found


def true_densities(folder: Path) -> dict[str, Saved]:
    """Densities in files of their own: those that no estimator above holds as well."""
    made: dict[str, tuple[Any, Any]] = {
        "gaussian": (density.Gaussian(columns=4, forget=0.9), X),
        "words": (density.NGram(3), SENTENCES),
        "declared words": (density.NGram(2, ["a"], "back-off"), SENTENCES),
        "product": (density.Product({"a": density.Bernoulli(), "b": density.Categorical()}), NAMED | {"a": Y > 0}),
        "keyed": (density.Keyed(density.Poisson(columns=3), 0), WHOLE),
    }
    found = {}
    for name, (one, rows) in made.items():
        one.update(rows).save(folder / "model")
        found[f"density {name}"] = saved(folder / "model", KINDS)
    return found


def rows_for(name: str, estimator: Any) -> tuple[Any, Any]:
    """Rows and targets that an estimator takes."""
    kind = type(estimator).__name__
    if kind in ("IsotonicRegressor", "Calibrator") and name != "calibrated":
        return X[:, 0], Y > 0.3 if kind == "Calibrator" else Y
    if kind == "ThresholdClassifier":
        return X, LABELS == "u"
    if name in ("densities product", "densities pair", "densities keyed"):
        return NAMED, LABELS
    if name in ("densities growing", "densities histogram"):
        return WHOLE[:, :1], LABELS
    if kind == "GenerativeClassifier":
        return WHOLE > 0 if "bernoulli" in name else WHOLE + 1.0 if "gamma" in name else WHOLE, LABELS
    return X, LABELS if kind.endswith("Classifier") or name == "calibrated" else Y


def saved(path: Any, kinds: Any, data: str = "") -> Saved:
    kind, document, tensors = container.read(path, kinds)
    return Saved(kind, json.loads(document), tensors, data)


# ---------------------------------------------------------------- what is forged


CONSTANTS = [
    None, True, False, -1, 0, 1, 2, 7, 255, 1 << 31, 1 << 53, 1 << 62, -(1 << 62), 1 << 80, "", "x", "y", "before",
    [], [[]], {}, {"a": 1}, {"$float": "nan"}, {"$float": "inf"}, {"$float": "-inf"}, {"$float": "0x1p1000"},
    {"$float": "-0x1p-3"}, {"$float": "0x1.8p1"}, {"$tuple": []}, {"$map": [[1], [2]]}, {"$objects": [[1, "a"], [2]]},
    {"$text": [["a", "b"], 1, [2]]}, {"$scalar": ["float32", {"$float": "nan"}]}, {"$scalar": ["int8", 3]},
]  # fmt: skip
NUMBERS = [np.nan, np.inf, -np.inf, -1.0, 0.0, 1e308, -1e308, 5e-324, 2.0**53, 2.0**63, 0.5]


def nodes(value: Any, path: tuple = ()) -> list[tuple]:
    """The paths to all values of a document."""
    found = [path]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += nodes(inner, (*path, key))
    return found


def at(document: Any, path: tuple) -> Any:
    for key in path:
        document = document[key]
    return document


def forged(true: Saved, tags: list[str], rng: np.random.Generator) -> Saved:
    """The file with up to three lies."""
    out = Saved(true.kind, copy.deepcopy(true.document), dict(true.tensors), true.data)
    for _ in range(rng.integers(1, 4)):
        if out.tensors and rng.random() < 0.35:
            lie_in_tensor(out, rng)
        else:
            lie_in_document(out, tags, rng)
    return out


def lie_in_document(out: Saved, tags: list[str], rng: np.random.Generator) -> None:
    paths = [path for path in nodes(out.document) if path]
    if not paths:
        return
    path = paths[rng.integers(len(paths))]
    parent, key = at(out.document, path[:-1]), path[-1]
    what = rng.integers(8)
    value = parent[key]
    if what == 0 and isinstance(parent, dict) and str(key).startswith("$") and ":" in key:
        del parent[key]  # another class with the same fields
        parent[tags[rng.integers(len(tags))]] = value
    elif what == 1:
        del parent[key]
    elif what == 2 and isinstance(value, list) and value:
        value.append(copy.deepcopy(value[rng.integers(len(value))]))
    elif what == 3 and type(value) is int:
        parent[key] = value + int(rng.choice([-2, -1, 1, 2, value]))
    elif what == 4:
        parent[key] = copy.deepcopy(at(out.document, paths[rng.integers(len(paths))]))
    elif what == 5 and isinstance(parent, dict):
        parent[str(rng.choice(["_ones", "_row", "_column", "spill", "_store", "a", "columns", "unit"]))] = value
    elif what == 6 and out.tensors:
        parent[key] = {str(rng.choice(["$array", "$list", "$string"])): str(rng.choice(list(out.tensors)))}
    else:
        parent[key] = copy.deepcopy(CONSTANTS[rng.integers(len(CONSTANTS))])


def lie_in_tensor(out: Saved, rng: np.random.Generator) -> None:
    name = str(rng.choice(list(out.tensors)))
    old = out.tensors[name]
    flat = old.reshape(-1)
    what = rng.integers(9)
    if what == 0:
        new = flat[: rng.integers(flat.size + 1)]
    elif what == 1:
        new = np.concatenate([flat, flat[:1], flat])
    elif what == 2:
        new = old.reshape(1, *old.shape)
    elif what == 3:
        new = old.T.copy() if old.ndim > 1 else flat.reshape(-1, 1)
    elif what == 4:
        with np.errstate(invalid="ignore"):
            new = old.astype(rng.choice(["f8", "i8", "u1"]))
    elif what == 5:
        new = out.tensors[str(rng.choice(list(out.tensors)))]
    else:
        new = old.copy()
        if new.size:
            picks = rng.integers(new.size, size=rng.integers(1, 4))
            if what == 6 or new.dtype == np.uint8:
                new.reshape(-1)[picks] = rng.integers(0, 256, picks.size, np.uint8)
            elif new.dtype == np.float64:
                new.reshape(-1)[picks] = rng.choice(NUMBERS, picks.size)
            else:  # whole numbers, or the bits of a record
                bits = [*np.array(NUMBERS).view(np.int64).tolist(), -1, 1 << 62, -(1 << 62), 1 << 20]
                new.reshape(-1)[picks] = rng.choice(bits, picks.size)
    out.tensors[name] = np.ascontiguousarray(new)


# ---------------------------------------------------------------- how they are used

ODD: Counter[str] = Counter()  # exceptions that are no errors of ours, and where they come from


def attempt(do: Any, *args: Any) -> Any:
    """Do it; a ValueError of one line is fine, and any other exception is noted."""
    try:
        return do(*args)
    except Exception as error:
        if not isinstance(error, ValueError):
            ours = [f for f in traceback.extract_tb(error.__traceback__) if "hindsight" in f.filename]
            place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "?"
            ODD[f"{type(error).__name__}: {error!s:.70} at {place}"] += 1


def use(path: Path, forgery: Saved, folder: Path, plans: dict[str, Plan]) -> str:
    """Load a forged file and use what it gives: whether it was "refused" or "used"."""
    if forgery.kind == "checkpoint":
        kept = folder / "resumed"
        kept.mkdir(exist_ok=True)
        for old in kept.iterdir():
            old.unlink()
        os.rename(path, checkpoint.path_of(kept, 1))
        if refused(checkpoint.read, checkpoint.path_of(kept, 1)):
            return "refused"
        attempt(resume, plans[forgery.data], str(kept))
        return "used"
    if refused(load, path):
        return "refused"
    found = load(path)
    kinds = {"model": use_model, "estimator": use_estimator, "density": use_density}
    attempt(kinds[forgery.kind], found, forgery.data, path)
    return "used"


def refused(read: Any, path: Any) -> bool:
    """Whether reading ends in an error of ours; any other exception brings the process down, and is seen."""
    try:
        read(path)
    except ModelError as error:
        if len(str(error).splitlines()) == 1:
            return True
        raise
    return False


def resume(plan: Plan, folder: str) -> None:
    Session(plan, ResultOptions(checkpoint=folder, every=10, resume=True)).run()


def use_model(found: Model, data: str, path: Path) -> None:
    """What the command does with a model."""
    attempt(found.predict, np.full((3, min(found.features, 1 << 20)), 0.1))
    attempt(card, "model", found, 5)
    attempt(card_values, found, 5)
    attempt(to_portable, found)
    attempt(lambda: "".join(as_text("csv", names_of(found, True, False), tables(found, data, None, [], True, False))))
    attempt(lambda: str(hindsight.evaluate(found, data)))
    attempt(certify_model, found, data)


def use_estimator(found: Any, data: str, path: Path) -> None:
    """What can be done with an estimator."""
    if hasattr(found, "runs_") and hasattr(found, "average"):
        attempt(lambda: card("model", open_model(str(path)), 5))
    given = [(X, Y), (X, LABELS), (X[:, 0], Y), (X[:, 0], Y > 0.3), (WHOLE[:, :1], LABELS), (X, Y > 0)]
    named = isinstance(found, hindsight.GenerativeClassifier) and found._named()
    for rows, y in [(NAMED, LABELS)] if named else given:
        for name in ("predict", "predict_proba", "decision_function", "transform"):
            if hasattr(found, name):
                attempt(getattr(found, name), rows)
        for name in ("certify", "partial_fit", "progressive"):
            if hasattr(found, name):
                attempt(getattr(found, name), rows, y)
        if getattr(found, "warm_start", False) is True:
            attempt(found.fit, rows, y)
    if hasattr(found, "learn_one"):
        for row in (ROW, {"a": 1.0, "z": 2.0}, X[0], {0: 1.0, 1: 0.5}):
            for y in ("u", "new") if hasattr(found, "classes_") else (0.5, -1.0):
                attempt(found.predict_one, row)
                attempt(found.learn_one, row, y)


def use_density(found: Any, data: str, path: Path) -> None:
    """What can be done with a density."""
    attempt(lambda: str(found.certificate()))
    attempt(found.describe)
    attempt(lambda: found + found)
    for rows in (X, WHOLE, WHOLE[:, :1], NAMED, NAMED | {"a": Y > 0}, SENTENCES):
        for name in ("logp", "progressive", "update"):
            attempt(getattr(found, name), rows)
    if not isinstance(found, density.Keyed):
        attempt(lambda: found.sample(2, np.random.default_rng(0)))
    attempt(found.save, path)


# ---------------------------------------------------------------- many of them


class Outcome(NamedTuple):
    """What many forgeries came to."""

    refused: int
    used: int
    crashes: list[str]
    odd: Counter[str]


def forge(numbers: range, only: str = "", some: bool = False) -> Outcome:
    """Forge, load and use files in forked processes, or some kinds of them; each file is told by its number."""
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        plans = write_data(folder)
        if some:
            plans = {name: plans[name] for name in ("numbers", "svmlight")}
        true = true_models(folder, plans) | true_estimators(folder, some) | true_densities(folder)
        true = {k: v for k, v in true.items() if only in k}
        tags = sorted({str(path[-1]) for each in true.values() for path in nodes(each.document) if is_tag(path)})
        for each in true.values():  # what is compiled here need not be compiled in every process
            container.write(folder / "true", each.kind, json.dumps(each.document), each.tensors)
            assert use(folder / "true", each, folder, plans) == "used"
        ODD.clear()
        found, k, crashes = Counter[str](), numbers.start, []
        odd: Counter[str] = Counter()
        board = mmap.mmap(-1, 1 << 16)  # where a process notes what it is at
        while k < numbers.stop:
            child = os.fork()
            if child == 0:
                work(range(k, numbers.stop), true, tags, folder, plans, board)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            size = int.from_bytes(board[:8], "little")
            k, done, theirs, what = json.loads(board[8 : 8 + size])
            found.update(done)
            odd.update(theirs)
            if status:
                crashes.append(f"{k} ({what}): status {status}")
            k += 1
        return Outcome(found["refused"], found["used"], crashes, odd)


def is_tag(path: tuple) -> bool:
    return bool(path) and isinstance(path[-1], str) and path[-1].startswith("$") and ":" in path[-1]


def work(numbers: range, true: dict[str, Saved], tags: list[str], folder: Path, plans: Any, board: mmap.mmap) -> None:
    """Use forged files until all are done or one brings the process down; it never returns."""
    status = 1
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        sys.stdout = sys.stderr = io.StringIO()
        done: Counter[str] = Counter()
        names = list(true)
        for k in numbers:
            rng = np.random.default_rng(k)
            name = names[k % len(names)]
            note = json.dumps([k, done, dict(ODD.most_common(200)), name]).encode()
            if len(note) > (1 << 16) - 8:
                note = json.dumps([k, done, {}, name]).encode()
            board[:8], board[8 : 8 + len(note)] = len(note).to_bytes(8, "little"), note
            signal.alarm(SECONDS)
            forgery = forged(true[name], tags, rng)
            try:
                container.write(folder / "forged", forgery.kind, json.dumps(forgery.document), forgery.tensors)
            except (ModelError, ValueError, TypeError):
                done["refused"] += 1
                continue
            done[use(folder / "forged", forgery, folder, plans)] += 1
        note = json.dumps([numbers.stop, done, dict(ODD.most_common(200)), ""]).encode()
        board[:8], board[8 : 8 + len(note)] = len(note).to_bytes(8, "little"), note
        status = 0
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)


if __name__ == "__main__":
    count, only = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
    began = time.perf_counter()
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    refused, used, crashes, odd = forge(range(first, first + count), only)
    for text, times in odd.most_common():
        print(f"{times:>6} × {text}")
    print(f"{refused} refused, {used} used, {len(crashes)} crashes in {time.perf_counter() - began:.0f} s")
    sys.exit("\n".join(crashes) if crashes else 0)
