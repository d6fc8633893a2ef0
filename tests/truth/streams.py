"""Streams of the learners with a rate: drawn at random, by an adversary, and made by hand to meet a bound."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

import naive
from hindsight.online import learners as L
from hindsight.online.run import Run, play
from hindsight.rows.data import Data

LIPSCHITZ = {"identity": 1.0, "logistic": 0.25, "clipped": 1.0, "probit": 1.0 / math.sqrt(2.0 * math.pi), "tanh": 0.5}


LINK_RULES = {link: "widrow-hoff" if link == "identity" else link for link in LIPSCHITZ}


@dataclass(frozen=True)
class Stream:
    """What is played, and by whom; `rule`, `geometry`, `update` and `radius` are the words of `naive` for it."""

    family: str
    learner: L.Learner
    rule: str
    X: np.ndarray
    y: np.ndarray
    geometry: str = "euclidean"
    update: str = "explicit"
    radius: float = 1.0
    weight: np.ndarray | None = None
    bias: float = 0.0
    start: np.ndarray | None = None
    passes: int = 1
    sparse: bool = False
    planted: np.ndarray | None = None
    hints: tuple[np.ndarray, ...] = ()  # comparators worth trying

    @property
    def width(self) -> int:
        return self.X.shape[1] + (self.bias != 0.0)

    @property
    def space(self) -> dict[str, Any]:
        return {"geometry": self.geometry, "radius": self.radius}

    @property
    def c(self) -> np.ndarray:
        return np.ones(len(self.X)) if self.weight is None else self.weight

    @property
    def full(self) -> np.ndarray:
        """The rows as played, the intercept last."""
        return np.hstack([self.X, np.full((len(self.X), 1), self.bias)]) if self.bias else self.X

    @property
    def stored(self) -> Any:
        return sp.csr_matrix(self.X) if self.sparse else self.X

    def data(self) -> Data:
        return Data(self.stored, self.y, self.weight, bias=self.bias)

    def run(self) -> Run:
        return Run(self.learner, self.X.shape[1], intercept=bool(self.bias), start=self.start)

    def dual_squares(self) -> np.ndarray:
        """The squared dual norm of every row."""
        if self.geometry == "euclidean":
            return (self.full**2).sum(axis=1)
        return (self.radius * np.abs(self.full).max(axis=1)) ** 2


def draw_set(rng: np.random.Generator, n: int, geometry: str, radius: float, scale: float = 1.0) -> np.ndarray:
    """A random point of the geometry's set; of the multiplicative ones often a corner or near one."""
    if geometry == "euclidean":
        return rng.normal(size=n) * scale
    p = rng.dirichlet(np.full(2 * n if geometry == "balanced" else n, rng.choice([0.1, 1.0, 10.0])))
    return radius * (p if geometry == "simplex" else p[:n] - p[n:])


def draw_rows(rng: np.random.Generator) -> np.ndarray:
    """Rows of one of the kinds that trouble online learners."""
    m, n = int(rng.integers(1, 31)), int(rng.integers(1, 7))
    scale = rng.choice([1.0, 1.0, 10.0 ** rng.uniform(-3, 3), 10.0 ** rng.uniform(-8, 8)])
    X = rng.normal(size=(m, n))
    match rng.integers(10):
        case 1:  # one-hot
            X = np.eye(n)[rng.integers(n, size=m)] * rng.choice([-1.0, 1.0], (m, 1))
        case 2:  # few examples, repeated
            X = X[rng.integers(min(m, 3), size=m)]
        case 3:  # exact numbers, many ties
            X = np.round(2.0 * X) / 4.0
        case 4:  # holes and zero rows
            X *= (rng.random((m, n)) < 0.4) * (rng.random((m, 1)) < 0.9)
        case 5:  # rows of very different length
            X *= 10.0 ** rng.uniform(-2, 2, (m, 1))
        case 6:  # unit rows
            X /= np.linalg.norm(X, axis=1, keepdims=True)
        case 7:  # one example again and again, now and then turned
            X = X[:1] * rng.choice([-1.0, 1.0], (m, 1))
        case 8:  # outliers: whole rows, or single numbers
            X[rng.integers(m, size=2)] *= 1e6
            X[rng.integers(m), rng.integers(n)] *= 1e6
        case 9:  # nearly one direction, so that what tells the rows apart is tiny
            X[:, 1:] *= 10.0 ** rng.uniform(-8, -3)
            X[:, 0] = 1.0
    return X * scale


SPARSE = True  # whether narrow rows may be sparse: each is a loop of its own to compile
WIDE = 1e-3  # of the streams of multiplicative weights have very many of them


def draw_wide_rows(rng: np.random.Generator) -> np.ndarray:
    """A few sparse rows of up to 200,000 coordinates, long enough for the mass to be recomputed now and then."""
    n = int(10.0 ** rng.uniform(3.0, math.log10(200_000)))
    m = int(rng.integers(3, 9))
    return rng.normal(size=(m, n)) * (rng.random((m, n)) < rng.choice([0.01, 0.3]))


def draw_frame(rng: np.random.Generator, geometry: str, radius: float, X: np.ndarray | None = None) -> dict[str, Any]:
    """Rows, weights, intercept, start, passes and storage."""
    wide = geometry != "euclidean" and rng.random() < WIDE
    if X is None:
        X = draw_wide_rows(rng) if wide else draw_rows(rng)
    m = len(X)
    weight = None
    if rng.random() < 0.5:
        weight = rng.choice([0.0, 0.5, 1.0, 2.0, 10.0 ** rng.uniform(-2, 2), 10.0 ** rng.uniform(-8, 8)], m)
        weight[rng.integers(m)] = 1.0
    bias = float(rng.random() < 0.5)
    width = X.shape[1] + int(bias)
    start = None
    if rng.random() < 0.25:
        start = draw_set(rng, width, geometry, radius, rng.choice([0.1, 1.0, 10.0]))
        start = 0.9 * start if geometry == "balanced" else start
    return {
        "X": X, "weight": weight, "bias": bias, "start": start, "geometry": geometry, "radius": radius,
        "passes": int(rng.choice([1, 1, 2])), "sparse": wide or (rng.random() < 0.4 and SPARSE),
    }  # fmt: skip


def reach2(frame: dict[str, Any]) -> float:
    """Max c |x|*^2 of a frame, 1 where every row is 0."""
    probe = Stream("", L.perceptron(), "", y=np.zeros(len(frame["X"])), **frame)
    return float((probe.c * probe.dual_squares()).max()) or 1.0


def choose(rng: np.random.Generator, kind: str, frame: dict[str, Any]) -> np.ndarray:
    """Targets of a kind ("real", "unit" or "sign") near a hidden comparator, or at random."""
    probe = Stream("", L.perceptron(), "", y=np.zeros(len(frame["X"])), **frame)
    scale = 10.0 ** rng.uniform(-1, 1)
    u = draw_set(rng, probe.width, probe.geometry, probe.radius, scale)
    z = probe.full @ u
    noise = rng.choice([0.0, 0.1, 1.0, 10.0]) * (np.abs(z).mean() or 1.0)
    z = z + noise * rng.normal(size=len(z))
    if kind == "sign":
        return np.where(z > 0.0, 1.0, -1.0)
    if kind == "unit":
        return rng.choice([0.0, 1.0], len(z)) if noise > 1.0 else 1.0 / (1.0 + np.exp(-np.clip(z, -30.0, 30.0)))
    return z


def provoke(rng: np.random.Generator, kind: str, s: Stream) -> Stream:
    """The adversary: it looks at the learner's margin and answers with the worst target, row by row."""
    run, y = s.run(), np.empty(len(s.X))
    far = (float(np.abs(s.y).max()) or 1.0) if kind == "real" else 1.0
    full, stored, c = s.full, s.stored, s.c
    for t, x in enumerate(full):
        z = float(run.weights @ x)
        against = -1.0 if z > 0.0 else 1.0 if z < 0.0 else float(rng.choice([-1.0, 1.0]))
        y[t] = {"sign": against, "unit": 0.5 + 0.5 * against, "real": far * against}[kind]
        if c[t] > 0.0:
            play([run], stored[t : t + 1], [y[t : t + 1]], None if s.weight is None else s.weight[t : t + 1])
    return replace(s, y=y)


def settle(
    rng: np.random.Generator, family: str, learner: L.Learner, rule: str, kind: str, frame: dict[str, Any],
    update: str = "explicit",
) -> Stream:  # fmt: skip
    """A stream whose targets are drawn, or given by the adversary."""
    s = Stream(family, learner, rule, y=choose(rng, kind, frame), update=update, **frame)
    return provoke(rng, kind, s) if rng.random() < 0.4 else s


def spot(rng: np.random.Generator, limit: float = 1.0) -> float:
    """A share of a theorem's limit: mostly inside, now and then at it or beyond."""
    shares = [0.01, 0.1, 0.1, 0.3, 0.3, 0.5, 0.5, 0.9, 0.9, 0.99, 0.999999]
    return limit * float(rng.choice(shares) if rng.random() < 0.93 else rng.choice([1.0, 1.0 + 1e-9, 1.5]))


def steps(rng: np.random.Generator, learner: L.Learner, frame: dict[str, Any]) -> L.Learner:
    """The learner with rates that change: eta t^-power, or given."""
    if rng.random() < 0.5:
        return replace(learner, rate=L.constant(learner.rate.eta, float(rng.choice([0.3, 0.5, 1.0]))))
    rounds = len(frame["X"]) * frame["passes"]
    return learner.with_rates(learner.rate.eta * rng.uniform(0.01, 1.0, rounds))


def family_1(rng: np.random.Generator) -> Stream:
    frame = draw_frame(rng, "euclidean", 1.0)
    eta = spot(rng) / reach2(frame)
    if rng.random() < 0.3:
        return settle(rng, "1", L.descent("square", "euclidean", 0.5 * eta), "square", "real", frame)
    return settle(rng, "1", L.widrow_hoff(eta, "explicit"), "widrow-hoff", "real", frame)


def family_2(rng: np.random.Generator) -> Stream:
    frame = draw_frame(rng, "euclidean", 1.0)
    eta = 10.0 ** rng.uniform(-2, 2) / reach2(frame)
    if rng.random() < 0.3:
        return settle(rng, "2", L.descent("square", "euclidean", eta, "implicit"), "square", "real", frame, "implicit")
    return settle(rng, "2", L.widrow_hoff(eta, "implicit"), "widrow-hoff", "real", frame, "implicit")


def family_3(rng: np.random.Generator, geometry: str) -> Stream:
    radius = float(rng.choice([1.0, 0.5, 4.0, 30.0]))
    loss = rng.random() < 0.5
    if geometry == "simplex" and not loss:
        radius = 1.0
    frame = draw_frame(rng, geometry, radius)
    eta, family = spot(rng) / reach2(frame), f"3 {geometry}"
    if rng.random() < 0.1:  # normalisers forgive more than norms do, yet not everything
        eta *= 10.0 ** rng.uniform(0.0, 2.0)
    if loss:
        return settle(rng, family, L.descent("square", geometry, 0.5 * eta, radius=radius), "square", "real", frame)
    return settle(rng, family, L.eg(eta, None if geometry == "simplex" else radius), "widrow-hoff", "real", frame)


KINDS = {"absolute": "real", "logistic": "unit", "hinge": "sign", "perceptron": "sign", "square": "real"}


def draw_descent(rng: np.random.Generator, geometry: str, family: str, changing: bool = False) -> Stream:
    loss = str(rng.choice(list(KINDS)))
    radius = 1.0 if geometry == "euclidean" else float(rng.choice([1.0, 0.5, 4.0, 30.0]))
    frame = draw_frame(rng, geometry, radius)
    top = reach2(frame)
    eta = 0.5 * spot(rng) / top if loss == "square" else 10.0 ** rng.uniform(-2, 1) / top ** rng.choice([0.5, 1.0])
    learner = L.descent(loss, geometry, float(eta), radius=radius)
    if changing:
        learner = steps(rng, learner, frame)
    return settle(rng, family, learner, loss, KINDS[loss], frame)


def family_4(rng: np.random.Generator, geometry: str) -> Stream:
    return draw_descent(rng, geometry, f"4 {geometry}")


def family_5(rng: np.random.Generator) -> Stream:
    frame = draw_frame(rng, "euclidean", 1.0)
    s = settle(rng, "5 noisy", L.perceptron(), "perceptron", "sign", frame)
    scale = 1.0 / max(1e-9, float(np.abs(s.full).mean()))
    return replace(s, hints=(scale * rng.normal(size=s.width), np.zeros(s.width)))


def family_5_separable(rng: np.random.Generator) -> Stream:
    """Rows that some u separates with margin 1, in an order in which each is the worst for the learner."""
    frame = draw_frame(rng, "euclidean", 1.0)
    bias = frame["bias"]
    u = rng.normal(size=frame["X"].shape[1] + int(bias))
    full = np.hstack([frame["X"], np.full((len(frame["X"]), 1), bias)]) if bias else frame["X"]
    z = full @ u
    keep = np.abs(z) > rng.choice([0.05, 0.05, 1e-6]) * np.abs(z).max(initial=0.0)  # now and then separable by a hair
    if not keep.any():
        return family_5_separable(rng)
    frame["X"], z = frame["X"][keep], z[keep]
    if frame["weight"] is not None:
        frame["weight"] = np.maximum(0.5, frame["weight"][keep])
    hints = (u * (1 + 1e-12) / np.abs(z).min(),)
    s = Stream("5 separable", L.perceptron(), "perceptron", y=np.sign(z), hints=hints, **frame)
    return worst_order(s) if rng.random() < 0.5 else s


def worst_order(s: Stream) -> Stream:
    """The same rows, each time the one whose margin (or error) is worst for the learner first."""
    run, left, order = s.run(), list(range(len(s.y))), []
    full, stored, c = s.full, s.stored, s.c
    while left:
        z = full[left] @ run.weights
        score = s.y[left] * z if s.rule == "perceptron" else -np.abs(z - s.y[left])
        t = left.pop(int(score.argmin()))
        order.append(t)
        if c[t] > 0.0:
            play([run], stored[t : t + 1], [s.y[t : t + 1]], None if s.weight is None else s.weight[t : t + 1])
    return replace(s, X=s.X[order], y=s.y[order], weight=None if s.weight is None else s.weight[order])


def family_6(rng: np.random.Generator, geometry: str) -> Stream:
    radius = float(rng.choice([1.0, 1.0, 0.5, 4.0]))
    frame = draw_frame(rng, geometry, radius)
    probe = Stream("", L.perceptron(), "", y=np.zeros(len(frame["X"])), **frame)
    top = math.sqrt(float(probe.dual_squares().max())) or 1.0
    heaviest = float(probe.c.max())
    eta = rng.choice([0.01, 0.1, 0.3, 1.0, 3.0]) / (top * heaviest)
    learner = replace(L.winnow(float(eta), balanced=geometry == "balanced"), geometry=L.space(geometry, radius))
    s = settle(rng, f"6 {geometry}", learner, "perceptron", "sign", frame)
    return worst_order(s) if rng.random() < 0.3 else s


def family_11_planted(rng: np.random.Generator) -> Stream:
    frame = draw_frame(rng, "euclidean", 1.0)
    link = str(rng.choice(list(LINK_RULES)))
    probe = Stream("", L.perceptron(), "", y=np.zeros(len(frame["X"])), **frame)
    w = rng.normal(size=probe.width) * rng.choice([0.01, 1.0]) / (float(np.abs(probe.full).mean()) or 1.0)
    rule = LINK_RULES[link]
    y = np.array([naive.mean(rule, float(z)) for z in probe.full @ w])
    eta = spot(rng, 2.0) / (LIPSCHITZ[link] * reach2(frame))
    if rng.random() < 0.05:  # not planted after all
        y[rng.integers(len(y))] += 1e-6
    s = Stream("11 planted", L.glm_tron(link, eta), rule, y=y, planted=w, **frame)
    return worst_order(s) if rng.random() < 0.3 else s


def family_11_matching(rng: np.random.Generator) -> Stream:
    frame = draw_frame(rng, "euclidean", 1.0)
    link = str(rng.choice(list(LINK_RULES)))
    eta = rng.choice([0.01, 0.3, 1.0, 1.5]) / (LIPSCHITZ[link] * reach2(frame))
    kind = "real" if rng.random() < 0.3 else "unit"
    return settle(rng, "11 matching", L.glm_tron(link, float(eta)), LINK_RULES[link], kind, frame)


def family_1_rates(rng: np.random.Generator) -> Stream:
    frame = draw_frame(rng, "euclidean", 1.0)
    eta = spot(rng) / reach2(frame)
    learner, rule = L.widrow_hoff(eta, "explicit"), "widrow-hoff"
    if rng.random() < 0.3:
        learner, rule = L.descent("square", "euclidean", 0.5 * eta), "square"
    return settle(rng, "1'", steps(rng, learner, frame), rule, "real", frame)


def family_4_rates(rng: np.random.Generator) -> Stream:
    return draw_descent(rng, str(rng.choice(["euclidean", "simplex", "balanced"])), "4'", changing=True)


def family_implicit(rng: np.random.Generator, geometry: str) -> Stream:
    """Implicit steps of every loss, at constant and at changing rates."""
    radius = 1.0 if geometry == "euclidean" else float(rng.choice([1.0, 0.5, 4.0, 30.0]))
    frame = draw_frame(rng, geometry, radius)
    rule = str(rng.choice([*KINDS, "widrow-hoff"]))
    eta = 10.0 ** rng.uniform(-2, 2) / reach2(frame) ** (1.0 if KINDS.get(rule) in ("real", None) else 0.5)
    changing = rng.random() < 0.5
    if rule == "square" and geometry == "euclidean":
        changing = True  # at a constant rate it is implicit Widrow-Hoff
    if rule == "widrow-hoff":
        if geometry == "euclidean" or (geometry == "simplex" and radius != 1.0):
            return family_implicit(rng, geometry)
        learner = L.eg(float(eta), None if geometry == "simplex" else radius, "implicit")
    else:
        learner = L.descent(rule, geometry, float(eta), "implicit", radius)
    learner = steps(rng, learner, frame) if changing else learner
    return settle(rng, f"implicit {geometry}", learner, rule, KINDS.get(rule, "real"), frame, "implicit")


FAMILIES: dict[str, Callable[[np.random.Generator], Stream]] = {
    "1": family_1,
    "2": family_2,
    "3 simplex": lambda rng: family_3(rng, "simplex"),
    "3 balanced": lambda rng: family_3(rng, "balanced"),
    "4 euclidean": lambda rng: family_4(rng, "euclidean"),
    "4 simplex": lambda rng: family_4(rng, "simplex"),
    "4 balanced": lambda rng: family_4(rng, "balanced"),
    "5 noisy": family_5,
    "5 separable": family_5_separable,
    "6 simplex": lambda rng: family_6(rng, "simplex"),
    "6 balanced": lambda rng: family_6(rng, "balanced"),
    "11 planted": family_11_planted,
    "11 matching": family_11_matching,
    "1'": family_1_rates,
    "4'": family_4_rates,
    "implicit euclidean": lambda rng: family_implicit(rng, "euclidean"),
    "implicit simplex": lambda rng: family_implicit(rng, "simplex"),
    "implicit balanced": lambda rng: family_implicit(rng, "balanced"),
}


def draw(family: str, seed: int) -> tuple[Stream, np.random.Generator]:
    """The stream of a seed, and the generator for its comparators."""
    rng = np.random.default_rng([list(FAMILIES).index(family), seed])
    return FAMILIES[family](rng), rng


def tight() -> list[Stream]:
    """For every family a stream that meets its bound (nearly) with equality (the constructions of `naive`).

    With them one that breaks a condition, and streams that broke the package once: a common shift of exponents, a mass
    that rises and falls, and rows that are planted only to their own size.
    """
    one, eye = np.ones((1, 1)), np.eye(4)
    sign, rates = np.array([1.0, -1.0, -1.0, 1.0]), np.array([0.5, 0.4, 0.1, 0.3])
    y, small, pair = np.ones(1), np.array([1e-2]), np.array([[1.0, -1.0]])
    heavy, rising, half = np.full(4, 3.0), np.array([1.0, 2.0, 3.0, 4.0]), np.array([naive.sigmoid(0.01)])
    seven = np.array([0.7])

    def winnow(eta: float, geometry: str, radius: float) -> L.Learner:
        return replace(L.winnow(eta, balanced=geometry == "balanced"), geometry=L.space(geometry, radius))

    shifted = np.vstack([np.full((1, 2), 1e5), np.tile([[0.7, -0.7]], (5, 1))])
    swing = np.zeros((8, 40))
    swing[:, 0] = [1.0, -2.0, 1.0, 1.0, -2.0, 1.0, 1.0, -2.0]
    corner = np.r_[1.0 - 39e-9, np.full(39, 1e-9)]
    tiny = np.array([1e-13, -1e-13, 5e-13])
    streams = [
        Stream("4 simplex", L.descent("absolute", "simplex"), "absolute", shifted, 5.0 * np.ones(6), "simplex"),
        Stream(
            "4 simplex", L.descent("hinge", "simplex", 6.5), "hinge", swing, np.ones(8), "simplex", start=corner,
            sparse=True,
        ),
        Stream("11 planted", L.glm_tron("identity", 0.1), "widrow-hoff", np.ones((3, 1)), tiny, planted=np.zeros(1)),
        Stream("3 simplex", L.eg(1e-3, None), "widrow-hoff", pair, small, "simplex"),
        Stream("4 euclidean", L.descent("absolute"), "absolute", np.ones((3, 1)), np.array([0.0, 1.0, 0.0])),
        Stream("3 balanced", L.eg(1e-3 / 9, 3.0), "widrow-hoff", one, small, "balanced", radius=3.0),
        Stream("5 noisy", L.perceptron(), "perceptron", eye, sign, weight=rising, hints=(sign,)),
        Stream("5 noisy", L.perceptron(), "perceptron", eye, sign, weight=heavy, start=0.1 * sign, hints=(sign,)),
        Stream("5 separable", L.perceptron(), "perceptron", eye, sign, hints=(sign,)),
        Stream("5 separable", L.perceptron(), "perceptron", eye, sign, weight=heavy, hints=(sign,)),
        Stream("11 planted", L.glm_tron("identity", 1.0), "widrow-hoff", one, y, planted=y),
        Stream("11 planted", L.glm_tron("clipped", 1.0), "clipped", one, seven, planted=seven),
        Stream("11 planted", L.glm_tron("identity", 0.5), "widrow-hoff", one, y, planted=y, weight=2.0 * y),
        Stream("11 planted", L.glm_tron("logistic", 4.0), "logistic", one, half, planted=small),
        Stream("11 matching", L.glm_tron("clipped", 0.5), "clipped", one, y, start=-y),
        Stream("1'", L.widrow_hoff(0.5, "explicit").with_rates(rates), "widrow-hoff", eye, sign),
        Stream("1'", L.widrow_hoff(0.5, "explicit").with_rates(3.0 * rates), "widrow-hoff", eye, sign),
        Stream("1'", L.descent("square", eta=0.5).with_rates(0.5 * rates), "square", eye, sign),
        Stream("1'", L.widrow_hoff(0.5, "explicit").with_rates(rates / 3.0), "widrow-hoff", eye, sign, weight=heavy),
    ]  # fmt: skip
    for eta in (0.1, 0.5, 0.9):
        streams += [
            Stream("1", L.widrow_hoff(eta, "explicit"), "widrow-hoff", one, y),
            Stream("1", L.descent("square", eta=0.5 * eta), "square", one, y),
            Stream("1", L.widrow_hoff(eta / 4.0, "explicit"), "widrow-hoff", 2.0 * one, y),
            Stream("1", L.widrow_hoff(eta / 3.0, "explicit"), "widrow-hoff", eye, sign, weight=heavy),
            Stream("1", L.widrow_hoff(eta / 2.0, "explicit"), "widrow-hoff", one, y, bias=1.0),
            Stream("2", L.widrow_hoff(eta, "implicit"), "widrow-hoff", one, y, update="implicit"),
            Stream("2", L.widrow_hoff(eta, "implicit"), "widrow-hoff", eye, sign, update="implicit", weight=heavy),
            Stream("6 simplex", winnow(eta, "simplex", 1.0), "perceptron", pair, y, "simplex"),
            Stream("6 balanced", winnow(eta, "balanced", 2.0), "perceptron", 0.5 * one, y, "balanced", radius=2.0),
        ]  # fmt: skip
    for geometry in ("euclidean", "simplex", "balanced"):
        for loss, goal in (("absolute", 1.0), ("hinge", 1.0), ("perceptron", 1.0), ("logistic", 1.0), ("square", 1.0)):
            X = pair if geometry == "simplex" else one
            target = np.array([goal])
            learner = L.descent(loss, geometry, 0.05)
            streams.append(Stream(f"4 {geometry}", learner, loss, X, target, geometry))
            wide = eye if geometry != "simplex" else np.hstack([eye, -eye])
            labels = 0.5 + 0.5 * sign if loss == "logistic" else sign
            streams.append(Stream("4'", learner.with_rates(0.1 * rates), loss, wide, labels, geometry))
            learner = L.descent(loss, geometry, 0.05, "implicit")
            if (loss, geometry) != ("square", "euclidean"):
                streams.append(Stream(f"implicit {geometry}", learner, loss, X, target, geometry, "implicit"))
            learner = learner.with_rates(0.1 * rates)
            streams.append(Stream(f"implicit {geometry}", learner, loss, wide, labels, geometry, "implicit"))
    return streams
