"""Mutants: the package with one thing broken at a time; the truth suite must notice.

    python tests/mutants.py

A mutant is a function of the package, a pattern in its source and what stands there instead. With numba switched off
every kernel is a plain function, whose code is exchanged in place, so that all who imported it get the mutant. It is
caught if a stream of the families it touches draws a complaint from `truth.check` (or a crash); the package itself must
draw none from the same streams. Exit status 1 if fewer than 95 % are caught.
"""
# ruff: noqa: E501 (a mutant a line)

import os

os.environ["NUMBA_DISABLE_JIT"] = "1"

import inspect
import re
import sys
import textwrap
import time
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import truth

SHARE = 0.95  # of the mutants must be caught
STREAMS = 30  # a family, at most; the search ends with the first few that complain
ENOUGH = 3


class Mutant(NamedTuple):
    """What is broken: its name, the function, the pattern (a regular expression) and its replacement, the families."""

    name: str
    where: str
    old: str
    new: str
    families: tuple[str, ...]


EUCLIDEAN = ("1", "2", "1'")
SQUARE = ("1", "3 balanced")
ENTROPIC = ("3 simplex", "3 balanced", "4 balanced")
MISTAKES = ("5 noisy", "6 balanced")
DESCENTS = ("4 euclidean", "4 balanced", "4'")
LINKS = ("11 planted", "11 matching")

MUTANTS = (
    # --- learners: rules
    Mutant("square: sign of the slope", "kernels.Square.slope", r"z - y", "y - z", SQUARE),
    Mutant("square: slope times 2", "kernels.Square.slope", r"self\.scale", "2.0 * self.scale", SQUARE),
    Mutant("square: slope times 1/2", "kernels.Square.slope", r"self\.scale", "0.5 * self.scale", SQUARE),
    Mutant("square: the loss' factor 2 missing", "kernels.Square.slope", r"self\.scale \* ", "", SQUARE),
    Mutant("square: slope of the absolute loss", "kernels.Square.slope", r"\(z - y\)", "np.sign(z - y)", SQUARE),
    Mutant("implicit: no denominator", "kernels.Square.implicit", r" / \(1\.0 \+ self\.scale \* a\)", "", ("2",)),
    Mutant("implicit: minus in the denominator", "kernels.Square.implicit", r"1\.0 \+", "1.0 -", ("2",)),
    Mutant("implicit: factor 2 missing in the denominator", "kernels.Square.implicit", r"\+ self\.scale \* a", "+ a", ("2",)),
    Mutant("implicit: no norm in the denominator", "kernels.Euclidean.solve", r"a \* q", "a", ("2",)),
    Mutant("implicit: no eta in the denominator", "kernels.Euclidean.solve", r"a \* q", "q", ("2",)),
    Mutant("implicit: no weight in the denominator", "kernels.play", r"y\[i\], a\)", "y[i], a / c[i])", ("2",)),
    Mutant("implicit: explicit after all", "kernels.Implicit.pull", r"return .*", "return rule.slope(z, y)", ("2",)),
    Mutant("hinge: a tie is no mistake", "kernels.Hinge.slope", r"<= self\.margin", "< self.margin", (*MISTAKES, "4 euclidean")),
    Mutant("hinge: a tie is not counted", "kernels.Hinge.wrong", r"<= 0", "< 0", MISTAKES),
    Mutant("hinge: sign of the slope", "kernels.Hinge.slope", r"-y if", "y if", MISTAKES),
    Mutant("hinge: steps on every round", "kernels.Hinge.slope", r"return .*", "return -y", MISTAKES),
    Mutant("hinge: steps on mistakes only", "kernels.Hinge.slope", r"self\.margin", "0.0", ("4 euclidean", "4'")),
    Mutant("hinge: loss without its margin", "kernels.Hinge.loss", r"self\.margin - y \* z", "-y * z", ("4 euclidean", "4'")),
    Mutant("absolute: sign of the slope", "kernels.Absolute.slope", r"-self\.scale", "self.scale", DESCENTS),
    Mutant("absolute: never 0", "kernels.Absolute.slope", r"else 0\.0", "else self.scale", (*DESCENTS, "4 simplex")),
    Mutant("logistic: slope times 2", "kernels.Logistic.slope", r"self\.scale", "2.0 * self.scale", (*DESCENTS, *LINKS)),
    Mutant("logistic: labels read as -1 and 1", "kernels.Logistic.slope", r"(?m)\by\)$", "0.5 * (y + 1.0))", (*DESCENTS, *LINKS)),
    Mutant("logistic: loss without ln(1 + e^-|z|)", "kernels.Logistic.loss", r" \+ math\.log1p.*\)\)\)", ")", DESCENTS),
    Mutant("clipped: slope not clipped", "kernels.Clipped.slope", r"min\(1\.0, max\(0\.0, z\)\)", "z", LINKS),
    # --- learners: loop, rates, weights, intercept, start
    Mutant("eta times 2", "kernels.play", r"eta = step\.rate", "eta = 2.0 * step.rate", EUCLIDEAN),
    Mutant("eta times 1/2", "kernels.play", r"eta = step\.rate", "eta = 0.5 * step.rate", (*EUCLIDEAN, "3 simplex")),
    Mutant("weight ignored in the step", "kernels.play", r"a = eta \* c\[i\]", "a = eta", EUCLIDEAN),
    Mutant("weight squared in the step", "kernels.play", r"a = eta \* c\[i\]", "a = eta * c[i] ** 2", EUCLIDEAN),
    Mutant("rate of the round before", "kernels.RateSchedule.rate", r"t\*\*-self\.power", "max(1.0, t - 1.0) ** -self.power", ("1'", "4'")),
    Mutant("rates never change", "kernels.RateSchedule.rate", r"self\.eta \* t\*\*-self\.power", "self.eta", ("1'", "4'")),
    Mutant("learns before it predicts", "kernels.play", r"( +)geometry\.step\((.*)\)\n", r"\1geometry.step(\2)\n\1z[i] = geometry.dot(v, s, rows, t)[0]\n", ("1", "5 noisy", "3 balanced")),
    Mutant("a row of weight 0 is a round", "kernels.play", r"            continue\n", "            s[ROUNDS] += 1.0\n            continue\n", ("1'", "4'")),
    Mutant("intercept missing from |x|_2", "kernels.inner", r"q \+= rows\.bias \* rows\.bias", "pass", ("1", "2", "5 noisy")),
    Mutant("intercept missing from |x|_inf", "kernels.inner", r"top = max\(top, rows\.bias\)", "pass", ("3 balanced", "6 simplex")),
    Mutant("intercept never learnt", "kernels.stride", r"d, rows\.bias\)", "0.0, rows.bias)", ("1", "5 noisy")),
    Mutant("w_1 ignored (additive)", "kernels.Euclidean.begin", r"v\[0\] = start", "pass", ("1", "5 noisy")),
    Mutant("w_1 ignored (multiplicative)", "kernels.entropic_begin", r"v\[0\] = self\.dual\(start\)", "pass", ENTROPIC),
    # --- learners: geometries
    Mutant("no normalisation", "kernels.entropic_dot", r" / s\[MASS\]", "", ENTROPIC),
    Mutant("radius missing from the margin", "kernels.entropic_dot", r"self\.radius \* ", "", ENTROPIC),
    Mutant("radius missing from the step", "kernels.entropic_step", r"d \*= self\.radius", "pass", ENTROPIC),
    Mutant("multiplicative step: sign", "kernels.entropic_step", r"d \*= self\.radius", "d *= -self.radius", ENTROPIC),
    Mutant("multiplicative step: only touched mass counts", "kernels.CSR.move", r"mass - old, new", "0.0, new", ENTROPIC),
    Mutant("balanced: mass of one half only", "kernels.Balanced.share", r"plus\(up, down\)", "plus(up, up)", ("3 balanced", "6 balanced")),
    Mutant("balanced: minus half forgotten", "kernels.Balanced.share", r"minus\(up, down\)", "up", ("3 balanced", "6 balanced")),
    Mutant("simplex: start read as its square root", "kernels.Simplex.dual", r"np\.log\(", "0.5 * np.log(", ("3 simplex", "6 simplex")),
    # --- facts
    Mutant("facts: gradient in the wrong dual norm", "kernels.entropic_norm", r"self\.radius \* top", "top", ("4 balanced", "4 simplex")),
    Mutant("facts: gradient without the weight", "kernels.tally", r"slope \* slope, geometry", "slope * slope / ci, geometry", ("4 euclidean",)),
    Mutant("facts: loss without the weight", "kernels.tally", r"fuse\(ci, rule\.loss", "fuse(1.0, rule.loss", ("4 euclidean", "4'")),
    Mutant("facts: X^2 without the weight", "kernels.tally", r"\bci \* qi\b", "qi", ("1", "2")),
    Mutant("facts: mistakes' norms without the weight", "kernels.tally", r"miss \* ci, ci \* qi", "miss, qi", ("5 noisy",)),
    # --- theorems
    Mutant("1: 1 - eta X^2 is 1", "theorems.widrow_hoff", r"\(1\.0 - eta \* x2\)", "1.0", ("1", "3 simplex")),
    Mutant("1: 1 - eta X^2 is 1 - eta X", "theorems.widrow_hoff", r"1\.0 - eta \* x2", "1.0 - eta * math.sqrt(x2)", ("1",)),
    Mutant("1: distance halved", "theorems.widrow_hoff", r"distance / eta", "0.5 * distance / eta", ("1", "3 balanced")),
    Mutant("1: eta X^2 < 2 will do", "theorems.widrow_hoff", r"< 1\.0", "< 2.0", ("1",)),
    Mutant("2: 1 + eta X^2 is 1", "theorems.implicit", r"1\.0 \+ eta \* x2", "1.0", ("2",)),
    Mutant("4: gradients' sum halved", "theorems.convex", r"0\.5 \* eta", "0.25 * eta", ("4 euclidean", "4 simplex")),
    Mutant("4: divergence halved", "theorems.convex", r"divergence / eta", "0.5 * divergence / eta", ("4 euclidean",)),
    Mutant("5: H missing", "theorems.perceptron", r"return hinge \+ norm", "return norm", ("5 noisy",)),
    Mutant("5: the start missing", "theorems.perceptron", r"start \+ ", "", ("5 noisy",)),
    Mutant("6: ln cosh x is x^2/4", "theorems.ln_cosh", r"return .*", "return 0.25 * x * x", ("6 simplex", "6 balanced")),
    Mutant("6: H missing", "theorems.winnow", r" \+ eta \* hinge", "", ("6 simplex",)),
    Mutant("6: heaviest weight ignored", "theorems.winnow", r"\* heaviest \* top\) / heaviest", "* top)", ("6 simplex", "6 balanced")),
    Mutant("11: 2/lambda is 2", "theorems.glm_tron", r"2\.0 / lipschitz", "2.0", ("11 planted",)),
    Mutant("11: eta X^2 missing", "theorems.glm_tron", r" - eta \* x2", "", ("11 planted",)),
    Mutant("verdict: always HOLDS", "theorems.verdict", r"measured > bound \+ band", "False", ("1", "5 noisy")),
    Mutant("best eta: X missing", "theorems.best_rate", r"x2 \* root", "root", ("1",)),
    Mutant("lemma: cross term halved", "theorems.lemma_widrow_hoff", r"2\.0 \* step", "step", ("1", "1'")),
    Mutant("lemma: allowed too little", "theorems.lemma_widrow_hoff", r"-eta \* c", "-2.0 * eta * c", ("1", "1'")),
    Mutant("lemma: implicit not damped", "theorems.lemma_implicit", r"error / damp", "error", ("2",)),
    # --- certificates
    Mutant("square: 1 - eta X^2 is 1", "certification._square", r"np\.full\(t\.z\.size, 1\.0 - [^)]*\)", "np.ones(t.z.size)", ("1", "3 balanced")),
    Mutant("square: 1 - eta_t |x_t|^2 is 1", "certification._square", r"\(1\.0 - eta \* t\.c \* q\)", "1.0", ("1'",)),
    Mutant("square: condition never looked at", "certification._square", r"largest < 1\.0\),\)", "True),)", ("1", "3 simplex")),
    Mutant("square: c ignored in X^2", "certification._square", r"\(t\.c \* q\)\.max\(\)", "q.max()", ("1", "2")),
    Mutant("square: X_inf instead of U X_inf", "certification._square", r"\(learner\.geometry\.radius \* t\.top\)", "t.top", ("3 balanced",)),
    Mutant("square: RE without its factor 2", "certification._square", r"2\.0 \* divergence", "divergence", ("3 simplex", "1")),
    Mutant("square: the rule's factor 2 ignored", "certification._square", r"t\.eta \* learner\.loss\.scale", "t.eta", ("1", "3 balanced")),
    Mutant("square: loss without the weight", "certification._square", r"measured = t\.c \* ", "measured = ", ("1", "2")),
    Mutant("square: 1 + eta X^2 missing", "certification._square", r"1\.0 \+ rate \* x2 if", "1.0 if", ("2",)),
    Mutant("convex: gradients' sum halved", "certification._convex", r"0\.5 \* t\.eta\*\*2", "0.25 * t.eta**2", ("4 euclidean", "4'")),
    Mutant("convex: divergence missing", "certification._convex", r" \+ divergence / rate", "", ("4 euclidean", "4'")),
    Mutant("convex: c ignored in the gradient", "certification._convex", r"\(t\.c \* slope\)", "slope", ("4 euclidean", "4'")),
    Mutant("convex: radius missing from the dual norm", "certification._convex", r"geometry\.radius \* t\.top", "t.top", ("4 balanced",)),
    Mutant("perceptron: H missing", "certification._perceptron_case", r"over \+ norm", "norm", ("5 noisy",)),
    Mutant("perceptron: |w_1| missing", "certification._perceptron_case", r"np\.sqrt\(start \+ ", "np.sqrt(", ("5 noisy",)),
    Mutant("perceptron: margin 1/2 counts as separable", "certification._perceptron_case", r">= 1\.0\)\.all", ">= 0.5).all", ("5 noisy", "5 separable")),
    Mutant("perceptron: a zero margin is no mistake", "certification._perceptron", r"t\.z <= 0\.0", "t.z < 0.0", ("5 noisy",)),
    Mutant("winnow: X_inf instead of U X_inf", "certification._winnow", r"geometry\.radius \* float", "float", ("6 balanced",)),
    Mutant("winnow: c_max ignored", "certification._winnow", r"float\(t\.c\.max\(\)\)", "1.0", ("6 balanced", "6 simplex")),
    Mutant("winnow: H missing", "certification._winnow", r"eta \* np\.cumsum\(hinge\)", "0.0 * np.cumsum(hinge)", ("6 simplex",)),
    Mutant("GLM-tron: lambda is 1", "certification._planted", r"next\(link\.lipschitz [^\n]*\)\n", "1.0\n", ("11 planted",)),
    Mutant("GLM-tron: anything counts as planted", "certification._planted", r"far <= PLANTED", "True", ("11 planted",)),
    Mutant("GLM-tron: distance halved", "certification._planted", r"distance = ", "distance = 0.5 * ", ("11 planted",)),
    Mutant("replay: one pass only", "certification.replay", r"range\(passes\)", "range(1)", ("1", "3 simplex")),
    Mutant("replay: other rows taken", "certification.replay", r"(?s)if not np\.allclose\(.*?:\n", "if False:\n", ("1", "5 noisy")),
    Mutant("path: potential rises", "certification._path", r"case\.potential \+", "case.potential -", ("1", "4 euclidean")),
    Mutant("rival: simplex not checked", "rivals.spaces.Mixtures.check", r"if ", "if False and ", ("3 simplex", "6 simplex")),
    Mutant("rival: L1 ball not checked", "rivals.spaces.SignedMixtures.check", r"if ", "if False and ", ("3 balanced", "6 balanced")),
    Mutant("rival: 1/2 missing from D", "rivals.spaces.Flat.divergence", r"0\.5 \* ", "", ("1", "4 euclidean")),
    Mutant("rival: RE to the uniform start", "rivals.spaces.Mixtures.divergence", r"self\.p", "np.full(u.size, 1.0 / u.size)", ("3 simplex", "4 simplex")),
)  # fmt: skip


def function(where: str) -> types.FunctionType:
    """The function of a dotted path inside the package."""
    parts = where.split(".")
    for k in range(len(parts) - 1, 0, -1):
        try:
            found: Any = import_module("hindsight." + ".".join(parts[:k]))
        except ImportError:
            continue
        for name in parts[k:]:
            found = getattr(found, name)
        assert isinstance(found, types.FunctionType), where
        return found
    raise ImportError(where)


def rewrite(mutant: Mutant) -> tuple[types.FunctionType, types.CodeType]:
    """The function, and its mutated code."""
    target = function(mutant.where)
    source = re.sub(r"\A(@.*\n)+", "", textwrap.dedent(inspect.getsource(target)))
    source, times = re.subn(mutant.old, mutant.new, source)
    if not times:
        raise LookupError(
            f"{mutant.name}: no {mutant.old!r} in {mutant.where}: the source has changed, mend the mutant"
        )
    names: dict[str, Any] = {}
    exec(
        compile("from __future__ import annotations\n" + source, f"<{mutant.name}>", "exec"), target.__globals__, names
    )
    return target, names[target.__name__].__code__


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """The package with the mutant in it."""
    target, code = rewrite(mutant)
    before, target.__code__ = target.__code__, code
    try:
        yield
    finally:
        target.__code__ = before


def complaints(families: tuple[str, ...], enough: float = ENOUGH, streams: int = STREAMS) -> dict[str, int]:
    """How often each check complains over the hand-made and the random streams of the families."""
    found: dict[str, int] = {}
    for family in families:
        hand_made = [s for s in truth.tight() if s.family == family]
        for k in range(-len(hand_made), streams):
            if sum(found.values()) >= enough:
                return found
            try:
                s, rng = (hand_made[k], np.random.default_rng(0)) if k < 0 else truth.draw(family, k)
                kinds = {complaint.kind for complaint in truth.check(s, rng).complaints}
            except Exception as error:
                kinds = {f"crashed: {type(error).__name__}"}
            for kind in kinds:
                found[kind] = found.get(kind, 0) + 1
    return found


def main() -> int:
    """Print the table; 1 if too few are caught, or if the package itself draws a complaint."""
    warnings.simplefilter("ignore")
    begun = time.perf_counter()
    clean = complaints(tuple(truth.FAMILIES), enough=float("inf"), streams=5)
    print(f"{'no mutant':52s} | {', '.join(clean) or '-'}", flush=True)
    caught = 0
    for mutant in MUTANTS:
        with applied(mutant):
            found = complaints(mutant.families)
        caught += bool(found)
        print(f"{mutant.name:52s} | {', '.join(found) or 'NOT CAUGHT'}", flush=True)
    print(f"{caught} of {len(MUTANTS)} caught in {time.perf_counter() - begun:.0f} s")
    return int(bool(clean) or caught < SHARE * len(MUTANTS))


if __name__ == "__main__":
    sys.exit(main())
