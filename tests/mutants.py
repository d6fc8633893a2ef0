"""Mutants: the package with one thing broken at a time; the truth suite must notice each.

    python tests/mutants.py [--only WORD ...] [--jobs 2]

runs all mutants, or those whose names hold one of the words. A mutant is a function of the package, a pattern in its
source and what stands there instead. With numba switched off every kernel is a plain function, whose code is exchanged
in place, so that all who imported it get the mutant. It is caught if a stream of the families it touches draws a
complaint (or a crash); the package itself must draw none from the same streams. Exit status 1 if one is not caught.
"""
# ruff: noqa: E501 (a mutant a line)

import argparse
import inspect
import os
import re
import sys
import textwrap
import time
import types
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import get_context
from typing import Any, NamedTuple

STREAMS = 80  # a family, at most; the search ends with the first that complains


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
RUNNING = ("running-square", "running-logistic")
RIDGE, WINDOWED = ("ridge", "vaw"), ("windowed-ridge",)
LOG, MEAN = ("aggregation-log",), ("aggregation-square", "aggregation-absolute")
SCALED = ("scale-free-square", "scale-free-logistic")
DRIFT = ("drift-log", "drift-square")
COVERAGE = ("coverage",)
STACK = ("stack-log", "stack-square")
CELLS = ("cells-log", "cells-square")
BEST = ("best-constant", "best-outside", "best-fixed", "fewest-mistakes")

MUTANTS = (
    # --- learners: rules
    Mutant("square: sign of the slope", "kernels.losses.Square.slope", r"z - y", "y - z", SQUARE),
    Mutant("square: slope times 2", "kernels.losses.Square.slope", r"self\.scale", "2.0 * self.scale", SQUARE),
    Mutant("square: slope times 1/2", "kernels.losses.Square.slope", r"self\.scale", "0.5 * self.scale", SQUARE),
    Mutant("square: the loss' factor 2 missing", "kernels.losses.Square.slope", r"self\.scale \* ", "", SQUARE),
    Mutant("square: slope of the absolute loss", "kernels.losses.Square.slope", r"\(z - y\)", "math.copysign(1.0, z - y)", SQUARE),
    Mutant("implicit: no denominator", "kernels.losses.Square.implicit", r" / \(1\.0 \+ self\.scale \* a\)", "", ("2",)),
    Mutant("implicit: minus in the denominator", "kernels.losses.Square.implicit", r"1\.0 \+", "1.0 -", ("2",)),
    Mutant("implicit: factor 2 missing in the denominator", "kernels.losses.Square.implicit", r"\+ self\.scale \* a", "+ a", ("2",)),
    Mutant("implicit: no norm in the denominator", "kernels.euclidean.Euclidean.solve", r"a \* q", "a", ("2",)),
    Mutant("implicit: no eta in the denominator", "kernels.euclidean.Euclidean.solve", r"a \* q", "q", ("2",)),
    Mutant("implicit: no weight in the denominator", "kernels.online.play_row", r"y, a\)", "y, a / c)", ("2",)),
    Mutant("implicit: explicit after all", "kernels.updates.Implicit.effective_slope", r"return .*", "return loss.slope(z, y)", ("2",)),
    Mutant("hinge: a tie is no mistake", "kernels.losses.Hinge.slope", r"<= self\.margin", "< self.margin", (*MISTAKES, "4 euclidean")),
    Mutant("hinge: a tie is not counted", "kernels.losses.wrong_side_of_zero", r"<= 0", "< 0", MISTAKES),
    Mutant("hinge: sign of the slope", "kernels.losses.Hinge.slope", r"-y if", "y if", MISTAKES),
    Mutant("hinge: steps on every round", "kernels.losses.Hinge.slope", r"return .*", "return -y", MISTAKES),
    Mutant("hinge: steps on mistakes only", "kernels.losses.Hinge.slope", r"self\.margin", "0.0", ("4 euclidean", "4'")),
    Mutant("hinge: loss without its margin", "kernels.losses.Hinge.value", r"self\.margin - y \* z", "-y * z", ("4 euclidean", "4'")),
    Mutant("absolute: sign of the slope", "kernels.losses.Absolute.slope", r"-self\.scale", "self.scale", DESCENTS),
    Mutant("absolute: never 0", "kernels.losses.Absolute.slope", r"else 0\.0", "else self.scale", (*DESCENTS, "4 simplex")),
    Mutant("logistic: slope times 2", "kernels.losses.Logistic.slope", r"self\.scale", "2.0 * self.scale", (*DESCENTS, *LINKS)),
    Mutant("logistic: labels read as -1 and 1", "kernels.losses.Logistic.slope", r"(?m)\by\)$", "0.5 * (y + 1.0))", (*DESCENTS, *LINKS)),
    Mutant("logistic: loss without ln(1 + e^-|z|)", "kernels.losses.Logistic.value", r" \+ math\.log1p.*\)\)\)", ")", DESCENTS),
    Mutant("clipped: slope not clipped", "kernels.losses.Clipped.slope", r"min\(1\.0, max\(0\.0, z\)\)", "z", LINKS),
    # --- learners: loop, rates, weights, intercept, start
    Mutant("eta times 2", "kernels.online.play_row", r"eta = rate\.at", "eta = 2.0 * rate.at", EUCLIDEAN),
    Mutant("eta times 1/2", "kernels.online.play_row", r"eta = rate\.at", "eta = 0.5 * rate.at", (*EUCLIDEAN, "3 simplex")),
    Mutant("weight ignored in the step", "kernels.online.play_row", r"a = eta \* c", "a = eta", EUCLIDEAN),
    Mutant("weight squared in the step", "kernels.online.play_row", r"a = eta \* c", "a = eta * c ** 2", EUCLIDEAN),
    Mutant("rate of the round before", "kernels.rates.RateSchedule.at", r"t\*\*-self\.power", "max(1.0, t - 1.0) ** -self.power", ("1'", "4'")),
    Mutant("rates never change", "kernels.rates.RateSchedule.at", r"self\.eta \* t\*\*-self\.power", "self.eta", ("1'", "4'")),
    Mutant("learns before it predicts", "kernels.online.play_row", r"( +)geometry\.step\((.*)\)\n", r"\1geometry.step(\2)\n\1z = geometry.dot(state, rows, t)[0]\n", ("1", "5 noisy", "3 balanced")),
    Mutant("a row of weight 0 is a round", "kernels.online.play", r"            continue\n", "            run.rounds += 1.0\n            continue\n", ("1'", "4'")),
    Mutant("intercept missing from |x|_2", "kernels.rows.inner", r"q \+= rows\.bias \* rows\.bias", "pass", ("1", "2", "5 noisy")),
    Mutant("intercept missing from |x|_inf", "kernels.rows.inner", r"top = larger\(top, rows\.bias\)", "pass", ("3 balanced", "6 simplex")),
    Mutant("intercept never learnt", "kernels.rows.axpy", r"d, rows\.bias\)", "0.0, rows.bias)", ("1", "5 noisy")),
    Mutant("w_1 ignored (additive)", "kernels.euclidean.Euclidean.place", r"state\.theta\[:\] = start", "pass", ("1", "5 noisy")),
    Mutant("w_1 ignored (multiplicative)", "kernels.entropic.Entropic.place", r"state\.theta\[:\] = self\.dual\(start\)", "pass", ENTROPIC),
    # --- learners: geometries
    Mutant("no normalisation", "kernels.entropic.Entropic.dot", r" / state\.mass\[0\]", "", ENTROPIC),
    Mutant("radius missing from the margin", "kernels.entropic.Entropic.dot", r"self\.radius \* ", "", ENTROPIC),
    Mutant("radius missing from the step", "kernels.entropic.Entropic.step", r"d \*= self\.radius", "pass", ENTROPIC),
    Mutant("multiplicative step: sign", "kernels.entropic.Entropic.step", r"d \*= self\.radius", "d *= -self.radius", ENTROPIC),
    Mutant("multiplicative step: only touched mass counts", "kernels.rows.CSR.step_exponents", r"mass - old, new", "0.0, new", ENTROPIC),
    Mutant("balanced: mass of one half only", "kernels.entropic.Balanced.numerator_and_mass", r"plus\(up, down\)", "plus(up, up)", ("3 balanced", "6 balanced")),
    Mutant("balanced: minus half forgotten", "kernels.entropic.Balanced.numerator_and_mass", r"minus\(up, down\)", "up", ("3 balanced", "6 balanced")),
    Mutant("simplex: start read as its square root", "kernels.entropic.Simplex.dual", r"np\.log\(", "0.5 * np.log(", ("3 simplex", "6 simplex")),
    Mutant("multiplicative step: the mass is never recomputed", "kernels.entropic.Entropic.step", r"state\.touched\[0\] > theta\.size or ", "", ENTROPIC),
    Mutant("multiplicative step: a fall of the mass costs no digits", "kernels.entropic.Entropic.step", r"fell = .*", "fell = 0.0", ("4 simplex",)),
    Mutant("simplex: the shift is taken out of half", "kernels.entropic.centre", r"range\(state\.theta\.size\)", "range(state.theta.size // 2)", ("4 simplex",)),
    # --- facts
    Mutant("facts: gradient in the wrong dual norm", "kernels.entropic.Entropic.dual_norm", r"self\.radius \* top", "top", ("4 balanced", "4 simplex")),
    Mutant("facts: gradient without the weight", "kernels.online.tally", r"slope \* slope \* geometry", "slope * slope / c * geometry", ("4 euclidean",)),
    Mutant("facts: loss without the weight", "kernels.online.tally", r"fuse\(c, loss\.value", "fuse(1.0, loss.value", ("4 euclidean", "4'")),
    Mutant("facts: X^2 without the weight", "kernels.online.tally", r"larger\(cx2, c \* q\)", "larger(cx2, q)", ("1", "2")),
    Mutant("facts: mistakes' norms without the weight", "kernels.online.tally", r"miss \* c, c \* q", "miss, q", ("5 noisy",)),
    # --- theorems
    Mutant("1: 1 - eta X^2 is 1", "certificates.theorems.widrow_hoff", r"\(1\.0 - eta \* x2\)", "1.0", ("1", "3 simplex")),
    Mutant("1: 1 - eta X^2 is 1 - eta X", "certificates.theorems.widrow_hoff", r"1\.0 - eta \* x2", "1.0 - eta * math.sqrt(x2)", ("1",)),
    Mutant("1: distance halved", "certificates.theorems.widrow_hoff", r"distance / eta", "0.5 * distance / eta", ("1", "3 balanced")),
    Mutant("1: eta X^2 < 2 will do", "certificates.theorems.widrow_hoff", r"< 1\.0", "< 2.0", ("1",)),
    Mutant("2: 1 + eta X^2 is 1", "certificates.theorems.implicit_factor", r"1\.0 \+ eta \* x2", "1.0", ("2",)),
    Mutant("4: gradients' sum halved", "certificates.theorems.convex", r"0\.5 \* eta", "0.25 * eta", ("4 euclidean", "4 simplex")),
    Mutant("4: divergence halved", "certificates.theorems.convex", r"divergence / eta", "0.5 * divergence / eta", ("4 euclidean",)),
    Mutant("5: H missing", "certificates.theorems.perceptron", r"return hinge \+ norm", "return norm", ("5 noisy",)),
    Mutant("5: the start missing", "certificates.theorems.perceptron", r"start \+ ", "", ("5 noisy",)),
    Mutant("6: ln cosh x is x^2/4", "certificates.theorems.ln_cosh", r"return .*", "return 0.25 * x * x", ("6 simplex", "6 balanced")),
    Mutant("6: H missing", "certificates.theorems.winnow", r" \+ eta \* hinge", "", ("6 simplex",)),
    Mutant("6: heaviest weight ignored", "certificates.theorems.winnow_gain", r"\* heaviest \* top\) / heaviest", "* top)", ("6 simplex", "6 balanced")),
    Mutant("11: 2/lambda is 2", "certificates.theorems.glm_tron", r"2\.0 / lipschitz", "2.0", ("11 planted",)),
    Mutant("11: eta X^2 missing", "certificates.theorems.glm_tron", r" - eta \* x2", "", ("11 planted",)),
    Mutant("verdict: always HOLDS", "certificates.theorems.verdict", r"measured > bound \+ band", "False", ("1", "5 noisy")),
    Mutant("verdict: a band of 1e-6", "certificates.theorems.verdict", r"1e-9", "1e-6", ("1", "5 noisy")),
    Mutant("stretches at changing rates", "serve.certificate.begins_anywhere", r"return bool\(.*", "return True", ("1'",)),
    Mutant("perceptron: separable, the weights left out", "certificates.families.mistakes._separability", r"run\.facts\.weight_x2", "run.facts.x2**2", ("5 separable",)),
    Mutant("best eta: X missing", "certificates.theorems.best_rate", r"x2 \* root", "root", ("1",)),
    Mutant("lemma: the step's own term missing", "certificates.applied.divergence_change", r"t\.change - ", "-", ("1", "1'")),
    Mutant("lemma: allowed too little", "certificates.theorems.lemma_widrow_hoff", r"-eta \* c", "-2.0 * eta * c", ("1", "1'")),
    Mutant("lemma: implicit not damped", "certificates.theorems.lemma_implicit", r" / \(1\.0 \+ eta \* c \* q\)", "", ("2",)),
    Mutant("lemma: constant of Widrow-Hoff times 1.5", "certificates.theorems.lemma_widrow_hoff", r"\* rival\*\*2", "* 1.5 * rival**2", ("1", "1'")),
    Mutant("lemma: constant of EG times 1.5", "certificates.families.square._explicit", r"0\.5 \* step\*\*2", "0.75 * step**2", ("3 simplex", "3 balanced")),
    Mutant("lemma: constant of descent times 1.5", "certificates.families.convex.convex", r"0\.5 \* t\.eta\*\*2", "0.75 * t.eta**2", ("4 euclidean", "4'")),
    Mutant("lemma: at 2 eta", "certificates.theorems.lemma_widrow_hoff", r"return -eta", "eta = 2.0 * eta\n    return -eta", ("1", "1'")),
    Mutant("lemma: never looked at", "certificates.judge._lemma", r"if lemma is None or not \(lemma\.change > lemma\.allowed\)\.any\(\)", "if True", ("1", "5 noisy")),
    Mutant("lemma: rounding explains everything", "certificates.applied.rounding", r"return 2\.0 \*", "return 1e9 +", ("1", "4 simplex")),
    # --- certificates
    Mutant("square: u sought as if 1 - eta V were 1", "certificates.families.square._explicit", r"t\.c / \(1\.0 - share\)", "t.c", ("1", "3 balanced")),
    Mutant("square: 1 - eta_t |x_t|^2 is 1", "certificates.families.square._changing_rates", r"1\.0 - eta \* t\.c \* t\.q if", "np.ones(t.z.size) if", ("1'",)),
    Mutant("square: condition never looked at", "certificates.families.square._below_one", r"largest < 1\.0\)", "True)", ("1'",)),
    Mutant("square: c ignored in X^2", "certificates.families.square._explicit", r"\(t\.c \* q\)\.max\(\)", "q.max()", ("1",)),
    Mutant("square: X_inf instead of U X_inf", "certificates.families.square.exponentiated_gradient", r"run\.learner\.geometry\.dual_norm\(t\.q, t\.top\)", "t.top**2", ("3 balanced",)),
    Mutant("square: RE without its factor 2", "certificates.families.square._explicit", r"distance = t\.c \* miss\*\*2, 2\.0 \* game", "distance = t.c * miss**2, game", ("3 simplex", "1")),
    Mutant("square: the rule's factor 2 ignored", "certificates.families.square._explicit", r"t\.eta \* scale", "t.eta", ("1", "3 balanced")),
    Mutant("square: loss without the weight", "certificates.families.square._explicit", r"t\.c \* error\*\*2,", "error**2,", ("1",)),
    Mutant("square: the implicit comparator without its distance", "certificates.families.square.implicit_widrow_hoff", r"np\.cumsum\(own\), distance", "np.cumsum(own), 0.0", ("2",)),
    Mutant("convex: gradients' sum halved", "certificates.theorems.convex_rates", r"0\.5 \* gradients", "0.25 * gradients", ("4'",)),
    Mutant("convex: divergence missing", "certificates.theorems.convex_rates", r" \+ divergence", "", ("4'",)),
    Mutant("convex: c ignored in the gradient", "certificates.families.convex.convex", r"\(t\.c \* slope\)", "slope", ("4 euclidean", "4'")),
    Mutant("convex: radius missing from the dual norm", "certificates.families.convex.convex", r"geometry\.dual_norm\(t\.q, t\.top\)", "t.top**2", ("4 balanced",)),
    Mutant("perceptron: H missing", "certificates.families.mistakes._perceptron_case", r"np\.cumsum\(short\), norm", "0.0 * np.cumsum(short), norm", ("5 noisy",)),
    Mutant("perceptron: |w_1| missing", "certificates.families.mistakes._perceptron_case", r"start, along\)", "0.0, along)", ("5 noisy",)),
    Mutant("perceptron: hinge losses from a margin of 1/2", "certificates.families.mistakes._perceptron_case", r"1\.0 - right", "0.5 - right", ("5 noisy", "5 separable")),
    Mutant("perceptron: a zero margin is no mistake", "certificates.families.mistakes.perceptron", r"t\.z <= 0\.0", "t.z < 0.0", ("5 noisy",)),
    Mutant("winnow: X_inf instead of U X_inf", "certificates.families.mistakes.winnow", r"geometry\.radius \* float", "float", ("6 balanced",)),
    Mutant("winnow: c_max ignored", "certificates.families.mistakes.winnow", r"float\(t\.c\.max\(\)\)", "1.0", ("6 balanced", "6 simplex")),
    Mutant("winnow: H missing", "certificates.families.mistakes.winnow", r"np\.cumsum\(short\)", "0.0 * np.cumsum(short)", ("6 simplex",)),
    Mutant("GLM-tron: lambda is 1", "certificates.families.convex._lipschitz", r"loss\.link_lipschitz\)", "1.0)", ("11 planted",)),
    Mutant("GLM-tron: anything counts as planted", "certificates.families.convex.planted", r"bool\(far\.max\(\) <= PLANTED\)", "True", ("11 planted",)),
    Mutant("GLM-tron: distance halved", "certificates.families.convex.planted", r"distance = ", "distance = 0.5 * ", ("11 planted",)),
    # --- as met
    Mutant("met: the distances times 2", "certificates.theorems.met", r"\(rounding - change\)", "2.0 * (rounding - change)", ("1", "4 euclidean", "1'")),
    Mutant("met: the distances halved", "certificates.theorems.met", r"\(rounding - change\)", "0.5 * (rounding - change)", ("1", "4 euclidean", "1'")),
    Mutant("met: the distances' sign", "certificates.theorems.met", r"rounding - change", "rounding + change", ("1", "4 euclidean")),
    Mutant("met: the last rate for all distances", "certificates.theorems.met", r"/ eta", "/ eta[-1]", ("1'", "4'")),
    Mutant("met: the first rate for all distances", "certificates.theorems.met", r"/ eta", "/ eta[0]", ("1'", "4'")),
    Mutant("met: 1 - eta q is 1", "certificates.theorems.stretched", r" / \(1\.0 - eta \* c \* q\)", "", ("1", "1'", "3 balanced")),
    Mutant("met: 1 - eta q without the weight", "certificates.theorems.stretched", r"eta \* c \* q", "eta * q", ("1", "1'")),
    Mutant("met: 1 - eta q is 1 + eta q", "certificates.theorems.stretched", r"1\.0 -", "1.0 +", ("1", "1'")),
    Mutant("met: g^2 without the weight", "certificates.theorems.stretched", r"c \* miss", "miss", ("1", "1'")),
    Mutant("met: V without its factor 2", "certificates.theorems.effective_square", r"2\.0 \* cumulant", "cumulant", ("3 simplex", "3 balanced")),
    Mutant("met: V from the step, not its square", "certificates.theorems.effective_square", r"cumulant / square", "cumulant / np.abs(step)", ("3 simplex", "3 balanced")),
    Mutant("met: V is 0", "certificates.theorems.effective_square", r"return np\.where.*", "return 0.0 * most", ("3 simplex", "3 balanced")),
    Mutant("met: the cumulant with its linear part", "certificates.families.square._squares_met", r"t\.change - t\.step \* t\.z", "t.change", ("3 simplex", "3 balanced")),
    Mutant("met: EG's potential once", "certificates.families.square._explicit", r"eta, 2\.0 / factor\)", "eta)", ("3 simplex", "3 balanced")),
    Mutant("met: EG's condition never looked at", "certificates.families.square._explicit", r"most < 1\.0", "True", ("3 simplex", "3 balanced")),
    Mutant("met: implicit without 1 + eta X^2", "certificates.families.square.implicit_widrow_hoff", r"grow \* game\.met", "game.met", ("2",)),
    Mutant("met: the gradients' 1/2 is 1/4", "certificates.families.convex.convex", r"own \+ 0\.5 \* unit", "own + 0.25 * unit", ("4 euclidean", "4'")),
    Mutant("met: the gradients without their rate", "certificates.families.convex.convex", r"0\.5 \* unit \* t\.eta \* gradient", "0.5 * unit * gradient", ("4 euclidean", "4'")),
    Mutant("met: plain loss times its rate", "certificates.families.convex.convex", r"own = unit \* t\.c \* other", "own = weight * other", ("4'",)),
    Mutant("met: Winnow's RE missing", "certificates.theorems.winnow_met", r"entropy \+ ", "", ("6 simplex", "6 balanced")),
    Mutant("met: Winnow's RE halved", "certificates.theorems.winnow_met", r"\(entropy", "(0.5 * entropy", ("6 simplex", "6 balanced")),
    Mutant("met: Winnow's H missing", "certificates.theorems.winnow_met", r" \+ eta \* hinge", "", ("6 simplex", "6 balanced")),
    Mutant("met: Winnow's N missing", "certificates.theorems.winnow_met", r" - grown / made", "", ("6 simplex", "6 balanced")),
    Mutant("met: Winnow's N per round", "certificates.theorems.winnow_met", r"grown / made", "grown / made.size", ("6 simplex", "6 balanced")),
    Mutant("met: Winnow's N over all rounds", "certificates.families.mistakes._normalisers_met", r"np\.where\(wrong, normaliser, 0\.0\)", "np.where(wrong, normaliser, most)", ("6 simplex", "6 balanced")),
    Mutant("met: Winnow's bound of another round", "certificates.theorems.winnow_met", r"\[::-1\]\)\[::-1\]", ")", ("6 simplex", "6 balanced")),
    Mutant("met: the larger form is reported", "certificates.judge.smallest", r"if not met\.bound < case\.bound", "if not met.bound > case.bound", ("1", "4 euclidean")),
    Mutant("met: u sought around w_1", "certificates.applied.seek", r"if not fixed:", "if False:", ("1'", "4'")),
    Mutant("met: u sought around the last weights", "certificates.applied.seek", r"1\.0 - t\.eta\[-1\] / t\.eta", "1.0 + 0.0 * t.eta", ("1'", "4'")),
    Mutant("met: u sought at the first rate", "certificates.applied.seek", r"float\(t\.eta\[-1\]\)", "float(t.eta[0])", ("1'", "4'")),
    Mutant("met: simplex centred without its radius", "certificates.best.spaces.Mixtures.around", r"self\._logs\(v, 1\.0\)", "self._logs(v, self.radius)", ("4'", "implicit simplex")),
    Mutant("met: balanced centred on one side", "certificates.best.spaces.Mixtures.around", r"self\._logs\(v, 1\.0\)", "self._logs(-v, 1.0)", ("4'", "implicit balanced")),
    Mutant("implicit: D(w', w) missing from the price", "certificates.theorems.proximal_price", r" - moved / eta", "", ("implicit euclidean", "implicit simplex")),
    Mutant("implicit: D(w', w) counted twice", "certificates.theorems.proximal_price", r"- moved", "- 2.0 * moved", ("implicit euclidean", "implicit simplex")),
    Mutant("implicit: the loss after the step missing", "certificates.theorems.proximal_price", r" - paid_after", "", ("implicit euclidean", "implicit balanced")),
    Mutant("implicit: D(w', w) doubled", "certificates.families.convex.landing", r"0\.5 \* t\.step\*\*2", "t.step**2", ("implicit euclidean",)),
    Mutant("implicit: D(w', w) along the margin before", "certificates.families.convex.landing", r"t\.step \* t\.after", "t.step * t.z", ("implicit simplex", "implicit balanced")),
    Mutant("implicit: where the step landed is where it began", "certificates.families.convex.landing", r"after = t\.z \+ .*", "after = t.z", ("implicit euclidean",)),
    Mutant("implicit: the lemma without D(w', w)", "certificates.families.convex.lemma", r" - 0\.5 \* t\.step\*\*2 \* t\.q", "", ("implicit euclidean",)),
    Mutant("implicit: squared errors halved", "certificates.applied.measured_unit", r"2\.0 / float\(loss\.scale\)", "1.0", ("implicit simplex", "implicit balanced")),
    Mutant("implicit: the margin after is that before", "kernels.online.note_round", r"after = .*", "after = z", ("implicit simplex", "implicit balanced")),
    # --- rows as played
    Mutant("replay: facts not compared", "online.facts.same_sums", r"return .*", "return True", ("5 noisy", "1")),
    Mutant("replay: nothing of the order compared", "online.facts.same_sums", r"names = .*", "names = NAMES", ("5 noisy",)),
    Mutant("replay: margins by round not compared", "online.facts.same_sums", r"names = .*", "names = (*NAMES, 'order_norm')", ("5 noisy",)),
    Mutant("replay: norms by round not compared", "online.facts.same_sums", r"names = .*", "names = (*NAMES, 'order_margin')", ("5 noisy",)),
    Mutant("facts: margins not weighed by the round", "kernels.online.tally", r"fuse\(t \* z, z", "fuse(z, z", ("5 noisy",)),
    Mutant("facts: norms not weighed by the round", "kernels.online.tally", r"fuse\(t, q", "fuse(1.0, q", ("5 noisy",)),
    Mutant("replay: one pass only", "certificates.audit.play_over", r"range\(passes\)", "range(1)", ("1", "3 simplex")),
    Mutant("replay: other rows taken", "certificates.audit.check_same", r"if not same_sums.*:\n", "if False:\n", ("1", "5 noisy")),
    Mutant("replay: a tolerance of 1e-3 in the facts", "online.facts.same_sums", r"rel_tol=1e-9", "rel_tol=1e-3", ("1", "3 balanced")),
    Mutant("replay: a tolerance of 1e-3 in the weights", "certificates.audit._weights_may_differ", r"1e-9", "1e-3", ("1", "3 balanced")),
    Mutant("gap: implicit without 1 + eta X^2", "certificates.families.square.implicit_widrow_hoff", r"unit=grow", "unit=1.0", ("2",)),
    Mutant("gap: moments of other weights are believed", "certificates.best.comparator.gap_above", r"0\.505 \* doubt", "0.505", ("1", "2")),
    Mutant("gap: ridge's divided by 10", "certificates.best.comparator.gap_above", r"0\.505", "0.0505", ("1", "2")),
    Mutant("winnow: the gap of delta to infinity with another bound", "certificates.families.mistakes.winnow", r"math\.isfinite\(delta\)", "True", ("6 simplex", "6 balanced")),
    Mutant("mistakes: not capped", "certificates.families.mistakes._at_most_all", r"np\.minimum\(bound, rounds\), \(", "bound, (", ("5 noisy", "6 balanced")),
    Mutant("GLM-tron: what y is off by is not carried", "certificates.theorems.not_planted", r"return .*", "return 0.0 * off", ("11 planted",)),
    Mutant("path: potential rises", "certificates.applied.Judged.certificate", r"potential \+ summed", "potential - summed", ("1", "4 euclidean")),
    Mutant("comparator: simplex not checked", "certificates.best.spaces.Mixtures.check", r"if (u|abs)", r"if False and \1", ("3 simplex", "6 simplex")),
    Mutant("comparator: L1 ball not checked", "certificates.best.spaces.Mixtures.check", r"if np", "if False and np", ("3 balanced", "6 balanced")),
    Mutant("comparator: 1/2 missing from D", "certificates.best.spaces.Flat.divergence", r"0\.5 \* ", "", ("1", "4 euclidean")),
    Mutant("comparator: RE to the uniform start", "certificates.best.spaces.Mixtures.divergence", r"self\.p\b", "np.full(self.p.shape, 1.0 / self.p.size)", ("3 simplex", "4 simplex")),
    # --- the running geometry
    Mutant("running: a coordinate forgets its largest size", "kernels.running.keep", r"larger\(state\.largest_x\[j\], abs\(x\)\)", "abs(x)", RUNNING),
    Mutant("running: steps are not squared", "kernels.running.keep", r"g \* g", "g", RUNNING),
    Mutant("running: the sum of steps has another sign", "kernels.running.keep", r"theta\[j\] \+= g", "theta[j] -= g", RUNNING),
    Mutant("running: the metric is not kept", "kernels.running.keep", r"state\.metric\[j\] = state\.fresh\[j\]", "pass", RUNNING),
    Mutant("running: weights of rows do not count", "kernels.running.scales", r"steep \* state\.heaviest\[0\] if", "steep if", RUNNING),
    Mutant("running: the range never widens", "kernels.running.meet_target", r"larger\(state\.high\[0\], y\)", "state.high[0]", ("running-square",)),
    Mutant("running: the first row is a round", "kernels.running.meet_target", r"return False", "return True", ("running-square",)),
    Mutant("running: steps twice too far", "kernels.running.Running.solve", r"loss\.implicit\(z, y, a \* q\)", "2.0 * loss.implicit(z, y, a * q)", RUNNING),
    Mutant("running: explicit steps", "kernels.running.Running.solve", r"loss\.implicit\(z, y, a \* q\)", "loss.slope(z, y)", RUNNING),
    Mutant("running: half the price of a step", "kernels.ledger.running_price", r"0\.5 \* q", "0.25 * q", RUNNING),
    Mutant("running: no price of a step", "kernels.ledger.running_price", r" \+ 0\.5 \* q \* s \* s", "", RUNNING),
    Mutant("running: the loss after a step is not subtracted", "kernels.ledger.running_price", r"paid - paid_after", "paid", RUNNING),
    Mutant("running: idle rounds are free", "kernels.ledger.add_lazy", r"price, off = paid, 0\.0", "price, off = 0.0, 0.0", ("running-square", "running-absolute")),
    Mutant("ledger: sums begin anew in each block", "certificates.ledger.Ledger.add", r"self\.totals\[k\], sums", "0.0 * self.totals[k], sums", MEAN),
    Mutant("ledger: losses without their weights", "kernels.ledger.add_paid", r"paid = c \* loss", "paid = loss", ("running-square",)),
    Mutant("ledger: comparators without their weights", "kernels.ledger.meet", r"sums\[LOST\] \+= c\[i\] \*", "sums[LOST] +=", ("running-square",)),
    Mutant("running: the opening row counts", "certificates.ledger.starts_with_target", r"return .*", "return False", ("running-square",)),
    Mutant("band: of the targets, wherever the run started", "certificates.families.adaptive.margins_of_start", r"start = start_of\(run\)", "start = 0.0 * start_of(run)", ("running-absolute", "running-square")),
    # --- second order
    Mutant("ridge: the opening row counts in the headline", "certificates.outcome.in_hindsight", r"weights\[ledger\.opens\], measured", "factors_of_rows(data, passes, False), measured", ("ridge",)),
    Mutant("verdict: a band of 1e-6", "certificates.theorems.verdict", r"1e-9", "1e-6", RIDGE),
    Mutant("ridge: an objective that is off by 1e-3 will do", "certificates.families.adaptive.apply_ridge", r"BAND \*", "1e-3 *", RIDGE),
    Mutant("ridge: the opening row counts", "certificates.ledger.opens", r"FROM_FIRST_TARGET", "('running', 'vaw')", ("ridge",)),
    Mutant("ridge: the prior does not grow", "kernels.second_order.grow_prior", r"low = i\n", "low = low\n", RIDGE),
    Mutant("ridge: half of the first prior", "kernels.second_order.take_prior", r"math\.sqrt\(state", "math.sqrt(0.5 * state", RIDGE),
    Mutant("ridge: a row of few entries joins without its weight", "kernels.second_order.turn_few", r"weight \* turned\[k\]\)\n        a = done", "turned[k])\n        a = done", RIDGE),
    Mutant("ridge: a row of few entries forgets a place", "kernels.second_order.solve_few", r"inverse, 0, old, image", "inverse, 1, old, image", RIDGE),
    Mutant("ridge: rows are not weighted", "kernels.second_order.learn_square", r"state\.image, c, target", "state.image, 1.0, target", RIDGE),
    Mutant("ridge: weights twice", "kernels.second_order.learn_square", r"state\.image, c, target", "state.image, c * c, target", RIDGE),
    Mutant("ridge: the start does not count", "kernels.second_order.learn_square", r" - state\.base\[0\]", "", RIDGE),
    Mutant("ridge: a rotation with another sign", "kernels.second_order.rotate", r"cosine \* rest - sine", "cosine * rest + sine", RIDGE),
    Mutant("ridge: a row joins with another sign", "kernels.second_order.join", r"target -= image", "target += image", RIDGE),
    Mutant("ridge: a row joins without its weight", "kernels.second_order.join", r"weight \* turned\[k\] \* target", "turned[k] * target", RIDGE),
    Mutant("together: members share one rate", "kernels.together.margins_running", r"over\(alike\(etas, 1\.0\), times\(etas, alike\(etas, span\)\)\)", "over(alike(etas, 1.0), alike(etas, span))", ("aggregation-square", "aggregation-log")),
    Mutant("together: diagonal members without their prior", "kernels.together.divisor_of", r"plus\(times\(times\(priors, size\), size\), (.*)\)$", r"\1", ("aggregation-square", "aggregation-log")),
    Mutant("ridge: what is left is not squared", "kernels.second_order.learn_square", r"left \* left", "left", RIDGE),
    Mutant("ridge: drops are lost", "kernels.second_order.take_prior", r"state\.objective\[0\] \+= state\.new_drop\[0\]", "pass", RIDGE),
    Mutant("vaw: without the row at hand", "kernels.second_order.Forecaster.dot", r"\(1\.0 \+ q\)", "1.0", ("vaw",)),
    Mutant("vaw: towards the lowest target", "kernels.second_order.Forecaster.dot", r"0\.5 \* \(state\.low\[0\] \+ state\.high\[0\]\)", "state.low[0]", ("vaw",)),
    Mutant("ridge: a price without its denominator", "kernels.ledger.ridge_price", r" / \(1\.0 \+ c \* q\)", "", RIDGE),
    Mutant("ridge: half the prior at u", "certificates.families.adaptive.distance_of", r"2\.0 \* state\.prior", "state.prior", RIDGE),
    Mutant("window: the triangle fades by gamma, not its root", "kernels.second_order.WindowedRidge.step", r"math\.sqrt\(self\.gamma\)", "self.gamma", WINDOWED),
    Mutant("window: the triangle does not fade", "kernels.second_order.WindowedRidge.step", r"math\.sqrt\(self\.gamma\)", "1.0", WINDOWED),
    Mutant("window: the triangle does not fade where rows are light", "kernels.second_order.coefficients", r"each = fade /", "each = 1.0 /", WINDOWED),
    Mutant("window: the triangle does not fade where a row is heavy", "kernels.second_order.join", r"if fade != 1\.0", "if False", WINDOWED),
    Mutant("window: the right side does not fade where a row is heavy", "kernels.second_order.join", r"right\[k\] \*= fade", "pass", WINDOWED),
    Mutant("window: the objective does not fade", "kernels.second_order.WindowedRidge.step", r"state\.objective\[0\] \*= self\.gamma", "pass", WINDOWED),
    Mutant("window: the prior does not fade", "kernels.second_order.WindowedRidge.step", r"state\.prior\[k\] -= faded", "pass", WINDOWED),
    Mutant("window: the prior fades twice", "kernels.second_order.WindowedRidge.step", r"state\.prior\[k\] -= faded", "state.prior[k] -= 2.0 * faded", WINDOWED),
    Mutant("window: what is put back costs a fixed predictor nothing", "certificates.families.adaptive.distance_of", r"state\.prior \+ state\.faded", "state.prior", WINDOWED),
    Mutant("window: half of what is put back", "certificates.families.adaptive.distance_of", r"2\.0 \* \(state", "(state", WINDOWED),
    Mutant("window: the prior is put back at once", "kernels.second_order.WindowedRidge.dot", r"WORN", "1.0", WINDOWED),
    Mutant("window: the prior is put back too late", "kernels.second_order.WindowedRidge.dot", r"WORN", "4.0", WINDOWED),
    Mutant("window: drops do not count", "certificates.theorems.windows", r" \+ drops", "", WINDOWED),
    Mutant("window: the price is not taken off", "certificates.theorems.windows", r"paid - price", "paid", WINDOWED),
    Mutant("window: a last window that is off by 1e-3 will do", "certificates.families.adaptive.apply_windowed_ridge", r"BAND \* max", "1e-3 * max", WINDOWED),
    Mutant("window: one u for all rounds is not looked at", "certificates.families.adaptive.apply_windowed_ridge", r"above = .*", "above = True", WINDOWED),
    Mutant("window: rows are a round older", "certificates.families.adaptive.last_window", r"\(age \+", "(1.0 + age +", WINDOWED),
    Mutant("window: the prior of the next round", "certificates.families.adaptive.last_window", r" / gamma", "", WINDOWED),
    Mutant("window: the opening row counts", "certificates.ledger.opens", r"FROM_FIRST_TARGET", "('running', 'ridge', 'vaw')", WINDOWED),
    Mutant("window: the opening row counts in the last window", "certificates.families.adaptive.last_window", r"if opens\(run\)", "if False", WINDOWED),
    Mutant("newton: all of the curvature", "kernels.second_order.LogisticNewton.step", r"c \* self\.kappa \* p", "c * p", ("newton",)),
    Mutant("newton: only one label of the row at hand", "kernels.second_order.LogisticNewton.dot", r"shrunk\(along, q\)", "along", ("newton",)),
    Mutant("newton: no step along the image", "kernels.second_order.LogisticNewton.step", r"d \* state\.new_right\[k\]", "0.0", ("newton",)),
    Mutant("newton: half the price", "kernels.ledger.newton_price", r"0\.5 \* \(q", "0.25 * (q", ("newton",)),
    Mutant("newton: the price without its denominator", "kernels.ledger.newton_price", r" / \(1\.0 \+ C \* q\)", "", ("newton",)),
    Mutant("newton: quadratics never exceed", "certificates.families.adaptive.apply_newton", r"np\.maximum\(0\.0, b\.u\.more\)", "0.0 * b.u.more", ("newton",)),
    Mutant("newton: the quadratics' curvature at u", "certificates.theorems.quadratic_gap", r"0\.5 \* C", "C", ("newton",)),
    # --- aggregation
    Mutant("log: rate 1 whatever the weights", "kernels.aggregation.LogMixture.set_rate", r"1\.0 / c", "1.0", LOG),
    Mutant("log: weights of rows do not count", "kernels.aggregation.LogMixture.weigh_members", r"state\.rate\[0\] \* c", "state.rate[0]", LOG),
    Mutant("log: the largest member alone", "kernels.aggregation.LogMixture.mixed_margin", r"one \+= v \* p", "one = max(one, v * p)", LOG),
    Mutant("log: rates change weights", "kernels.aggregation.change_rate", r"\*= rate / state\.rate\[0\]", "*= 1.0", LOG),
    Mutant("mean: members are not clipped", "kernels.aggregation.within_range", r"return .*", "return z", ("aggregation-square",)),
    Mutant("mean: twice the rate", "kernels.aggregation.MeanMixture.set_rate", r"1\.0 / \(self\.floor", "2.0 / (self.floor", ("mixture-square",)),
    Mutant("mean: negative gaps count as positive", "kernels.aggregation.MeanMixture.weigh_members", r"larger\(gap, 0\.0\)", "abs(gap)", MEAN),
    Mutant("panel: below every u, the gap ignored", "certificates.families.panel.below_all", r"best\.lower", "best.loss", ("below-all-square",)),
    Mutant("panel: below every u, a hundredth too early", "certificates.families.panel.below_all", r"\(1\.0 - NEAR\)", "1.01", ("below-all-square",)),
    Mutant("panel: below every u within reach", "certificates.families.panel.below_all", r"best\.reach == math\.inf and ", "", ("below-all-square",)),
    Mutant("panel: no price of aggregation", "certificates.families.panel.at_rate", r"math\.log\(run\.mixture\.members\)", "0.0", (*LOG, "drift-log")),
    Mutant("panel: no gaps", "certificates.families.panel.aggregation_price", r" \+ float\(run\.state\.gap\[0\]\)", "", (*MEAN, "drift-square")),
    Mutant("panel: the sharper form is never checked", "certificates.judge._steps", r"fault = fault or not holds", "pass", ("panel-verdicts",)),
    Mutant("panel: a broken member is passed over", "certificates.families.panel.signed", r"if broken:", "if False:", ("panel-verdicts",)),
    Mutant("panel: tracking is never broken", "certificates.families.panel.signed", r"found = Verdict\.BROKEN if .* else found", "pass", ("panel-verdicts",)),
    Mutant("panel: paid share without the distance", "certificates.families.panel.paid_share", r" \+ case\.share", "", ("panel-square",)),
    Mutant("panel: paid share without its price", "certificates.families.panel.signed", r"paid_share\(case, unit, bound\)", "paid_share(case, unit, bound - price)", ("panel-square",)),
    Mutant("panel: half the squared error", "certificates.families.panel.loss_measure", r"measured_unit\(.*\)", "1.0", ("panel-widrow-hoff",)),
    Mutant("panel: losses are mistakes", "certificates.families.panel.in_mistakes", r"run\.facts\.mistake_weight", "run.facts.loss", ("panel-mistakes",)),
    Mutant("panel: bounds of any quantity", "certificates.families.panel.factors_of", r"\(one\.case\.quantity in COUNTED\) is measure\.counted|math\.isclose\(.*\)(?=\])", "True", ("panel-mistakes", "panel-mixed-mistakes")),
    # --- stacks
    Mutant("stack: the target is the offset", "online.stack.Stages.__init__", r"stack\.run\.bias, self\.mixed", "stack.run.bias, y", STACK),
    Mutant("stack: a correction that knows the next row", "online.stack.Stages.run", r"= self\.mixed, self\.norms\[0\]", "= self.mixed, np.roll(self.norms[0], -1)", STACK),
    Mutant("stack: a mixture that knows the target", "online.stack.Stages.run", r"= self\.mixed,", "= 0.5 * (self.mixed + self.y),", STACK),
    Mutant("stack: members are not clipped", "kernels.aggregation.MeanMixture.as_used", r"return .*", "return z", ("stack-square",)),
    Mutant("stack: members of any distance", "kernels.aggregation.distance", r"return .*", "return p - m", STACK),
    Mutant("stack: rows of weight 0 are learnt", "kernels.aggregation.mix", r"counted\[i\] = 0\.0", "counted[i] = 1.0", STACK),
    Mutant("stack: no offset in the margin", "kernels.second_order.leverage", r" \+ rows\.begins_at\(t\)", "", STACK),
    Mutant("stack: no offset in the target of ridge", "kernels.second_order.learn_square", r" - rows\.begins_at\(t\)", "", ("stack-square",)),
    Mutant("stack: no offset in the quadratics", "kernels.second_order.LogisticNewton.step", r"z - offset, 1", "z, 1", ("stack-log",)),
    Mutant("stack: the objective without prices", "kernels.second_order.LogisticNewton.step", r" - newton_price\(.*\)\n", "\n", ("stack-log",)),
    Mutant("stack: whole drops", "kernels.second_order.LogisticNewton.step", r"-= 0\.5 \*", "-= 0.0 *", ("stack-log",)),
    Mutant("stack: the account without drops", "certificates.theorems.with_drops", r" \+ drops", "", STACK),
    Mutant("stack: the promise without its price", "certificates.families.panel.aggregation_price", r" \+ price_of_two\(run\)", "", STACK),
    Mutant("stack: another prior", "online.stack.Stack.__init__", r"newton\(KAPPA, PRIOR\) if panel\.in_logs else ridge\(PRIOR\)", "newton(KAPPA, 2.0 * PRIOR) if panel.in_logs else ridge(2.0 * PRIOR)", STACK),
    Mutant("stack: another curvature", "online.stack.Stack.__init__", r"newton\(KAPPA", "newton(2.0 * KAPPA", ("stack-log",)),
    Mutant("stack: half the price of two", "certificates.ledger.price_of_two", r"math\.log\(2\.0\)", "0.5 * math.log(2.0)", STACK),
    # --- cells
    Mutant("cells: cuts that know later rows", "online.cells.Pieces.__getitem__", r"( +)self\.cells\.expand\((.*)\)\n", r"\1self.cells.expand(\2)\n\1self.cells.expand(\2)\n", CELLS),
    Mutant("cells: a tie lies above its cut", "kernels.cells.expand", r"< values\[p\]", "<= values[p]", CELLS),
    Mutant("cells: rows of weight 0 are noted", "kernels.cells.expand", r"c\[i\] > 0\.0", "c[i] >= 0.0", CELLS),
    Mutant("cells: pairs of one column", "kernels.cells.expand", r"bins\[pairs\[p, 1\]\]", "bins[pairs[p, 0]]", CELLS),
    Mutant("cells: cuts at the quantiles below", "online.cells.Cells.cut", r"np\.arange\(1, BINS\)", "np.arange(BINS - 1)", CELLS),
    Mutant("cells: cuts of one epoch for good", "online.cells.Cells.cut", r"if before\[p\] or ", "if before[p]:\n            pass\n        elif ", CELLS),
    Mutant("cells: signed by a member on cells", "online.panel.on_cells", r"theorem=None", "theorem=learner.theorem", CELLS),
    # --- drift
    Mutant("drift: nothing is shared", "kernels.drift.share", r" \+ drift / paid\.size", "", DRIFT),
    Mutant("drift: more is shared", "kernels.drift.share", r"drift / paid\.size", "2.0 * drift / paid.size", DRIFT),
    Mutant("drift: weights at a smaller rate", "kernels.drift.lower_rate", r"\*\* power", "** 1.0", DRIFT),
    Mutant("drift: staying is free", "certificates.families.panel.staying", r"return .*", "return 0.0", DRIFT),
    Mutant("drift: switching is cheap", "certificates.families.panel.tracking", r"math\.log\(members / run\.learner\.drift\)", "math.log(members)", DRIFT),
    Mutant("drift: a switch costs nothing", "kernels.drift.best_sequence", r"cost\[best\] \+ switch", "cost[best]", DRIFT),
    # --- the scale-free geometry
    Mutant("scale-free: sizes are forgotten", "kernels.scale_free.ScaleFree.step", r"larger\(state\.largest_x\[j\], abs\(x\)\)", "abs(x)", SCALED),
    Mutant("scale-free: divided once", "kernels.scale_free.measured", r"state\.theta\[j\] / top \* unit", "state.theta[j] * unit", SCALED),
    Mutant("scale-free: the metric without its rate", "certificates.families.adaptive.distance_of", r"state\.largest_x\*\*2 / run\.learner\.rate\.eta", "state.largest_x**2", SCALED),
    Mutant("scale-free: half the metric", "certificates.families.adaptive.distance_of", r"state\.largest_x\*\*2 / run", "0.5 * state.largest_x**2 / run", SCALED),
    Mutant("scale-free: the perceptron's u in other units", "certificates.families.mistakes.scale_free_perceptron", r"case\.comparator\.u / sizes", "case.comparator.u", ("scale-free-perceptron",)),
    Mutant("scale-free: the perceptron's rows as they are", "rows.data.divided", r" / sizes\[:?\w+\]", "", ("scale-free-perceptron",)),
    # --- the best fixed predictor
    Mutant("least squares: a tenth of the loss is left out", "certificates.best.least_squares._value", r"return 0\.5 \* loss\.scale", "return 0.45 * loss.scale", BEST),
    Mutant("least squares: a tenth of the gap", "certificates.best.least_squares.first_solution", r"1\.01", "0.101", BEST),
    Mutant("least squares: a tenth of the gap, in singular vectors", "certificates.best.least_squares.least_squares", r"0\.5 \* doubt", "0.05 * doubt", BEST),
    Mutant("least squares: the loss of zero columns", "certificates.best.least_squares.least_squares", r"value = 0\.5 \* loss\.scale", "value = 0.4 * loss.scale", BEST),
    Mutant("smooth: the dual without its sign", "certificates.best.fixed.smooth", r"lower = max\(lower, -", "lower = max(lower, ", BEST),
    Mutant("smooth: the conjugate halved", "certificates.best.fixed.smooth", r"a\[on\] \* conjugate", "0.5 * a[on] * conjugate", BEST),
    Mutant("smooth: half of the entropy twice", "certificates.best.objective.conjugate_of", r"far \* np\.log1p\(-near\)", "2.0 * far * np.log1p(-near)", BEST),
    Mutant("smooth: no better a bound than 0", "certificates.best.predictor.above_floor", r"if most <= best\.gap", "if True", BEST),
    Mutant("smooth: rows on the plane are right", "certificates.best.fixed.separates", r"data\.margins\(u\) > 0\.0", "data.margins(u) >= 0.0", BEST),
    Mutant("over the reach: no reach", "certificates.best.fixed.over_reach", r"size\(point\.slope\) \* \(reach \+ length\)", "0.0 * size(point.slope)", BEST),
    Mutant("kinked: the dual's sign", "certificates.best.objective.Envelope.dual", r"return -r", "return r", BEST),
    Mutant("kinked: no reach", "certificates.best.spaces.Reach.least", r"return -self\.radius", "return -0.0", BEST),
    Mutant("in a set: the least over the corners", "certificates.best.fixed.Search.below", r"self\.where\.least\(v\)", "0.0", BEST),
    Mutant("in a set: corners of half the radius", "certificates.best.spaces.Mixtures.least", r"return self\.radius", "return 0.5 * self.radius", BEST),
    Mutant("in a set: the largest over the corners", "certificates.best.spaces.Mixtures.least", r"\.min\(\)", ".max()", BEST),
    Mutant("in a set: the sign of the slope at u", "certificates.best.objective.Smooth.dual", r"each - r \* z", "each + r * z", BEST),
    Mutant("in a set: both halves added", "certificates.best.spaces.Mixtures.mixed", r"self\.sides @", "np.abs(self.sides) @", BEST),
    Mutant("by ascent: half the support of the set", "certificates.best.ascent.by_ascent", r"within\.least\(v\)", "0.5 * within.least(v)", BEST),
    Mutant("by ascent: a tenth of the reach", "certificates.best.spaces.Reach.least", r"return -self\.radius", "return -0.1 * self.radius", BEST),
    Mutant("by ascent: no reach", "certificates.best.ascent.by_ascent", r"LONGER \*", "0.0 *", BEST),
    Mutant("by ascent: a tenth of the gap", "certificates.best.ascent.by_ascent", r"max\(0\.0, least - max\(lows\)\)", "0.1 * max(0.0, least - max(lows))", BEST),
    Mutant("conjugate gradients: a tenth of the loss is left out", "certificates.best.least_squares.by_conjugate_gradients", r"value = 0\.5 \* loss\.scale", "value = 0.45 * loss.scale", BEST),
    Mutant("conjugate gradients: no gap", "certificates.best.least_squares.by_conjugate_gradients", r"gap = size \* reach", "gap = 0.0 * size", BEST),
    Mutant("margins of labels have no unit", "certificates.best.objective.target_size", r"return 1\.0", "return 1e-9", BEST),
    Mutant("margins of targets have no unit", "certificates.best.objective.target_size", r"return math\.sqrt", "return 1e-9 * math.sqrt", BEST),
    Mutant("the intercept has no size", "rows.data.Data.column_squares", r"self\.bias\*\*2 \* a\.sum\(\)", "0.0", BEST),
    Mutant("targets outside [0, 1] have a least loss", "certificates.best.fixed.best_fixed", r"if outside or not loss\.convex", "if not loss.convex", BEST),
    Mutant("constant: the plain mean", "certificates.best.constant.constant_margin", r"float\(c @ y\) / float\(c\.sum\(\)\)", "float(y.mean())", BEST),
    Mutant("constant: a tenth of the loss is left out", "certificates.best.constant.best_constant", r"return sum", "return 0.9 * sum", BEST),
    Mutant("constant: the kink after", "certificates.best.constant._best_kink", r"np\.searchsorted\(slope, 0\.0\)", "1 + np.searchsorted(slope, 0.0)", BEST),
    Mutant("constant: the wrong half", "certificates.best.constant._root", r">= 0\.0", "<= 0.0", BEST),
    Mutant("constant: not far enough", "certificates.best.constant._root", r"1e3 \*", "0.1 *", BEST),
    Mutant("constant: the worse label", "certificates.best.constant.fewest_of_constant", r"return min", "return max", BEST),
    Mutant("fewest: a margin of 0 is right", "certificates.best.fewest._weight_wrong", r"<= 0\.0", "< 0.0", BEST),
    Mutant("fewest: what separates is not believed", "certificates.best.fewest._separates", r"> slack", "< slack", BEST),
    Mutant("fewest: one mistake of the heaviest row", "certificates.best.fewest._least_weight", r"\.min\(initial=math\.inf\)", ".max()", BEST),
    Mutant("fewest: rows that are not 0", "certificates.best.fewest.fewest", r"data\.row_norms_inf\(\) == 0\.0", "data.row_norms_inf() > 0.0", BEST),
    Mutant("fewest: found is proved", "certificates.best.fewest.fewest", r"PROVED if least <= lower else FOUND", "PROVED", BEST),
    Mutant("fewest: shifted to the other side", "certificates.best.fewest._shifted", r"out\[-1\] -=", "out[-1] +=", BEST),
    Mutant("fewest: shifted for the other label", "certificates.best.fewest._shifted", r"np\.cumsum\(side\)", "np.cumsum(-side)", BEST),
    Mutant("fewest: shifted between equal margins", "certificates.best.fewest._shifted", r"np\.where\(ends, wrong, np\.inf\)", "wrong", BEST),
    Mutant("fewest: half of what is proved", "certificates.best.fewest._exact", r"each \* found\.lower", "0.5 * each * found.lower", BEST),
    Mutant("fewest: weights that differ are counted", "certificates.best.fewest._exact", r" and a\[on\]\.min\(\) == a\[on\]\.max\(\)", "", BEST),
    Mutant("fewest: another radius", "certificates.best.fewest._inside", r"geometry\.radius / size", "1.0 / size", BEST),
    # --- intervals that cover
    Mutant("coverage: a tie is a miss", "kernels.coverage.track", r"pinball\(alpha, s, q\), s > q", "pinball(alpha, s, q), s >= q", COVERAGE),
    Mutant("coverage: a miss moves the level twice", "kernels.coverage.track", r"level \+ gamma \* part", "level + 2.0 * gamma * part", COVERAGE),
    Mutant("coverage: the level ignores weights", "kernels.coverage.track", r"down = gamma \* part \* alpha", "down = gamma * alpha", COVERAGE),
    Mutant("coverage: the level may fall below 0", "kernels.coverage.track", r"min\(down, level\) if q > 0\.0 else 0\.0", "down", COVERAGE),
    Mutant("coverage: nothing was spared", "kernels.coverage.track", r"at\.spared \+= .*", "pass", COVERAGE),
    Mutant("coverage: weights that grow are not carried", "kernels.coverage.track", r"at\.carried \+= .*", "at.carried = 0.5", COVERAGE),
    Mutant("coverage: infinite at a level of 2", "kernels.coverage.track", r"if level < 1\.0 else np\.inf", "if level < 2.0 else np.inf", COVERAGE),
    Mutant("coverage: stretches fall, but do not rise", "kernels.coverage.track", r"at\.rise, at\.fall = max\(at\.rise, net - at\.lowest\)", "at.rise, at.fall = 0.0", COVERAGE),
    Mutant("coverage: the pinball loss upside down", "kernels.coverage.pinball", r"\(1\.0 - alpha\) \* \(s - q\)", "alpha * (s - q)", COVERAGE),
    Mutant("coverage: members step the other way", "kernels.coverage.prepare_steps", r"-m\.pace \* alpha", "m.pace * alpha", COVERAGE),
    Mutant("coverage: a step costs nothing", "kernels.coverage.track", r"m\.price \+= w \* cost", "pass", COVERAGE),
    Mutant("coverage: steps that fall rise nothing", "kernels.coverage.raise_inverse", r"rise = .*", "rise = by / m.pace", COVERAGE),
    Mutant("coverage: the mixture costs nothing", "kernels.coverage.track", r"at\.excess \+= gap", "pass", COVERAGE),
    Mutant("coverage: the rate of the mixture falls late", "kernels.coverage.track", r"at\.grown \* PATIENCE", "at.grown * 0.1", COVERAGE),
    Mutant("coverage: what the level adds is left out", "kernels.coverage.track", r"at\.raised \+= .*", "pass", COVERAGE),
    Mutant("coverage: scores in the next bin", "kernels.coverage.track", r"OCTAVES // 2\) \* PARTS \+", "OCTAVES // 2) * PARTS + 1 +", COVERAGE),
    Mutant("coverage: the level reaches 1 at most", "certificates.theorems.coverage", r"1\.0 \+ gamma \* \(1\.0 - alpha\)", "1.0 - gamma", COVERAGE),
    Mutant("coverage: the level begins at half of it", "certificates.theorems.coverage", r"return -carried / gamma", "return -0.5 * carried / gamma", COVERAGE),
    Mutant("coverage: half a stretch", "certificates.theorems.coverage_of_stretch", r"return most", "return 0.5 * most", COVERAGE),
    Mutant("coverage: half a distance", "certificates.theorems.tracked_width", r"return inverse", "return 0.5 * inverse", COVERAGE),
    Mutant("coverage: ln K missing", "certificates.theorems.mixed_widths", r"math\.log\(members\) / rate \+ ", "", COVERAGE),
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
        raise LookupError(f"{mutant.name}: no {mutant.old!r} in {mutant.where}: the source has changed, fix the mutant")
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


def complaint(families: tuple[str, ...], streams: int = STREAMS) -> str:
    """The first complaint over the hand-made and the random streams of the families; empty where there is none."""
    import truth  # once the compiler is on or off

    for family in families:
        for k in range(-len(truth.HAND_MADE.get(family, ())), streams):
            try:
                found = [f"{kind}: {text}" for kind, text in truth.judge(family, k).complaints]
            except Exception as error:
                found = [f"crashed: {type(error).__name__}"]
            if found:
                return f"{family}, stream {k}: {found[0]}"
    return ""


def caught(mutant: Mutant) -> str:
    """The first complaint that the mutant draws."""
    with applied(mutant):
        return complaint(mutant.families)


def begin(compiled: bool) -> None:
    """Switch the compiler off; searches for the best predictor have no kernels of their own, and are slow without."""
    warnings.simplefilter("ignore")
    if not compiled:
        os.environ["NUMBA_DISABLE_JIT"] = "1"


def main() -> int:
    """Print the table; 1 if one is not caught, or if the package itself draws a complaint."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="mutants whose names hold one of these")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    begun, alive, tried, false = time.perf_counter(), 0, 0, ""
    chosen = [mutant for mutant in MUTANTS if any(word in mutant.name for word in options.only)]
    for compiled in (False, True):
        mutants = [mutant for mutant in chosen if (mutant.families is BEST) is compiled]
        families = sorted({family for mutant in mutants for family in mutant.families})
        with ProcessPoolExecutor(options.jobs, get_context("spawn"), begin, (compiled,)) as pool:
            clean = [
                found for found in pool.map(complaint, [(family,) for family in families], [5] * len(families)) if found
            ]
            false = false or "; ".join(clean)
            for mutant, found in zip(mutants, pool.map(caught, mutants), strict=True):
                tried, alive = tried + 1, alive + (not found)
                print(f"{mutant.name:52s} | {found[:80] or 'NOT CAUGHT'}", flush=True)
    print(f"{tried - alive} of {tried} caught in {time.perf_counter() - begun:.0f} s; no mutant: {false or '-'}")
    return int(bool(false) or alive > 0)


if __name__ == "__main__":
    sys.exit(main())
