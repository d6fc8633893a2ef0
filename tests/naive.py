"""The slow, obvious versions of every online learner and bound: docs/theory.md read aloud in plain Python.

Nothing here is fast and nothing here knows the package: the tests compare `hindsight` against this file.
A "row" is a row of X with the intercept coordinate `bias` appended last (none when bias is 0.0); a "round" is a row
whose weight is positive; "the set" is R^N (euclidean), {w >= 0, sum w = U} (simplex) or {|w|_1 <= U} (balanced), U the
radius.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Vector = list[float]
Rows = Any  # a list of rows or a 2-D array
Column = Any  # a list of numbers or a 1-D array


# --- the losses: value, slope in z = w.x, and the prediction read from z ----------------------------------------------


def sigmoid(z: float) -> float:
    """1/(1+e^-z) without overflow."""
    return 1.0 / (1.0 + math.exp(-z)) if z >= 0 else math.exp(z) / (1.0 + math.exp(z))


def clip(z: float) -> float:
    """z held inside [0, 1]."""
    return min(max(z, 0.0), 1.0)


LINKED = ("logistic", "clipped", "probit", "tanh")


def Phi(z: float) -> float:
    """The normal distribution function."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def slope(rule: str, z: float, y: float) -> float:
    """The number that multiplies x_t (THEORY.md, second table); a zero margin is a mistake."""
    match rule:
        case "widrow-hoff":
            return z - y
        case "square":
            return 2.0 * (z - y)
        case "absolute":
            return float((z > y) - (z < y))
        case "logistic":
            return sigmoid(z) - y
        case "hinge":
            return -y if y * z <= 1.0 else 0.0
        case "perceptron":
            return -y if y * z <= 0.0 else 0.0
        case "clipped":
            return clip(z) - y
        case "probit":
            return Phi(z) - y
        case "tanh":
            return sigmoid(2.0 * z) - y  # (1 + tanh z)/2, without its cancellation
        case "quantile":  # the median
            return 0.5 * ((z > y) - (z < y))
        case "huber":
            return min(1.0, max(-1.0, z - y))
        case "poisson":
            return math.exp(z) - y
    raise ValueError(f"unknown rule {rule!r}")


def loss(rule: str, z: float, y: float) -> float:
    """The convex function of z whose derivative is `slope` (THEORY.md 4; for a link the matching loss of 11)."""
    match rule:
        case "widrow-hoff":
            return 0.5 * (z - y) ** 2
        case "square":
            return (z - y) ** 2
        case "absolute":
            return abs(z - y)
        case "logistic":
            return max(z, 0.0) + math.log1p(math.exp(-abs(z))) - y * z
        case "hinge":
            return max(0.0, 1.0 - y * z)
        case "perceptron":
            return max(0.0, -y * z)
        case "clipped":
            area = 0.0 if z <= 0.0 else 0.5 * z * z if z <= 1.0 else z - 0.5
            return area - y * z
        case "probit":
            return z * Phi(z) + math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) - y * z
        case "tanh":
            return 0.5 * (z + abs(z) + math.log1p(math.exp(-2.0 * abs(z)))) - y * z
        case "quantile":
            return 0.5 * abs(z - y)
        case "huber":
            return 0.5 * (z - y) ** 2 if abs(z - y) <= 1.0 else abs(z - y) - 0.5
        case "poisson":
            return math.exp(z) - y * z + (y * math.log(y) - y if y > 0.0 else 0.0)
    raise ValueError(f"unknown rule {rule!r}")


def mean(rule: str, z: float) -> float:
    """The prediction link(z): sigmoid, clipped line, the normal distribution, (1 + tanh z)/2, or z itself."""
    links = {"logistic": sigmoid, "clipped": clip, "probit": Phi, "tanh": lambda z: sigmoid(2.0 * z)}
    links["poisson"] = math.exp
    return links[rule](z) if rule in links else z


# --- vectors and geometries (THEORY.md, first table) ------------------------------------------------------------------


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    """a.b, the products summed exactly."""
    return math.fsum(p * q for p, q in zip(a, b, strict=True))


def square(a: Sequence[float]) -> float:
    """|a|_2 squared."""
    return dot(a, a)


def row(x: Any, bias: float) -> Vector:
    """One row as played: the intercept is a constant last coordinate that counts in the norms."""
    return [float(v) for v in x] + ([float(bias)] if bias else [])


def dual_square(x: Vector, geometry: str, radius: float) -> float:
    """The squared dual norm: |x|_2^2 for euclidean, (radius |x|_inf)^2 for simplex and balanced."""
    return square(x) if geometry == "euclidean" else (radius * max(abs(v) for v in x)) ** 2


def spread(x: Vector, geometry: str, radius: float) -> Vector:
    """The row that the additive or the plain simplex rule sees: x, U x, or U (x, -x)."""
    match geometry:
        case "euclidean":
            return x
        case "simplex":
            return [radius * v for v in x]
        case "balanced":
            return [radius * v for v in x] + [-radius * v for v in x]
    raise ValueError(f"unknown geometry {geometry!r}")


def read(theta: Vector, geometry: str) -> Vector:
    """w = theta (euclidean), otherwise the probabilities e^theta_i / sum e^theta_j, of N or of 2N coordinates."""
    if geometry == "euclidean":
        return theta
    top = max(theta)
    grown = [math.exp(v - top) for v in theta]
    total = math.fsum(grown)
    return [v / total for v in grown]


def real(p: Vector, geometry: str, radius: float) -> Vector:
    """The N weights of the user's coordinates: w, U p, or U (p+ - p-)."""
    if geometry == "balanced":
        n = len(p) // 2
        return [radius * (p[i] - p[n + i]) for i in range(n)]
    return list(p) if geometry == "euclidean" else [radius * v for v in p]


def inside(w: Sequence[float], geometry: str, radius: float) -> bool:
    """Whether w lies in the set of the geometry (to 1e-9 of the radius)."""
    if geometry == "simplex":
        return min(w) >= 0.0 and abs(math.fsum(w) - radius) <= 1e-9 * radius
    return geometry == "euclidean" or math.fsum(abs(v) for v in w) <= radius * (1.0 + 1e-9)


def double(w: Sequence[float], radius: float) -> Vector:
    """Probabilities (p+, p-) with U (p+ - p-) = w and p+_i p-_i = k^2 the same for every i; k by bisection.

    Among all doubled forms of w this one has the least RE against a start that has the same property.
    """
    v = [float(a) / radius for a in w]

    def total(k: float) -> float:
        return math.fsum(math.hypot(a, 2.0 * k) for a in v)  # p+_i + p-_i = sqrt(v_i^2 + 4 k^2)

    low, high = 0.0, 0.5 / len(v)
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if total(middle) < 1.0 else (low, middle)
    k = high if low > 0.0 else 0.0  # |w|_1 = U: one half of every pair is empty
    large = [0.5 * (abs(a) + math.hypot(a, 2.0 * k)) for a in v]
    small = [k * k / b if b else 0.0 for b in large]
    plus = [b if a >= 0 else s for a, b, s in zip(v, large, small, strict=True)]
    minus = [s if a >= 0 else b for a, b, s in zip(v, large, small, strict=True)]
    return plus + minus


def relative_entropy(q: Vector, p: Vector) -> float:
    """RE(q|p) = sum q ln(q/p), with 0 ln 0 = 0; summed as q ln(q/p) - q + p, which does not cancel for q near p."""
    terms = []
    for a, b in zip(q, p, strict=True):
        if a > 0.0 and b == 0.0:
            return math.inf
        log = 0.0 if a == 0.0 else math.log1p((a - b) / b) if abs(a - b) < 0.5 * b else math.log(a) - math.log(b)
        terms.append(a * log - (a - b))
    return math.fsum(terms)


def divergence(u: Sequence[float], w: Sequence[float], geometry: str = "euclidean", radius: float = 1.0) -> float:
    """D(u, w) of the first table of THEORY.md; u outside the geometry's set is an error."""
    if len(u) != len(w) or not inside(u, geometry, radius):
        raise ValueError(f"comparator of length {len(u)} is not in the {geometry} set of radius {radius}")
    if geometry == "euclidean":
        return 0.5 * math.fsum((a - b) ** 2 for a, b in zip(u, w, strict=True))
    if geometry == "simplex":
        return relative_entropy([a / radius for a in u], [b / radius for b in w])
    return relative_entropy(double(u, radius), double(w, radius))


# --- the one update ---------------------------------------------------------------------------------------------------


@dataclass
class Played:
    """What a run leaves behind."""

    margins: list[float]  # w_t.x_t before the update, one for every row, rows of weight 0 included
    weights: list[Vector]  # w_1 .. w_{T+1} in real coordinates; only w_{T+1} when played with keep=False
    start: Vector  # w_1
    final: Vector  # w_{T+1}
    mean_before: Vector  # of w_1 .. w_T (N0's convention; w_1 when there was no round)
    mean_after: Vector  # of w_2 .. w_{T+1} (N2's convention; w_1 when there was no round)
    rates: list[float]  # eta_t, one for every round
    slopes: list[float]  # the slope really stepped on, without c_t, one for every round


class Mean:
    """The mean of vectors, each coordinate summed with Neumaier's compensation."""

    def __init__(self, size: int) -> None:
        self.count = 0
        self.sums, self.lost = [0.0] * size, [0.0] * size

    def add(self, w: Vector) -> None:
        self.count += 1
        for i, v in enumerate(w):
            old, new = self.sums[i], self.sums[i] + v
            self.lost[i] += (old - new) + v if abs(old) >= abs(v) else (v - new) + old
            self.sums[i] = new

    def value(self, empty: Vector) -> Vector:
        if not self.count:
            return list(empty)
        return [(a + b) / self.count for a, b in zip(self.sums, self.lost, strict=True)]


def first(size: int, geometry: str, radius: float, start: Column | None) -> Vector:
    """theta_1: zeros (which read as 0, radius/N, 0) or the dual vector of the given w_1."""
    if start is None:
        return [0.0] * (2 * size if geometry == "balanced" else size)
    w = [float(v) for v in start]
    if len(w) != size or not inside(w, geometry, radius):
        raise ValueError(f"start {w} is not in the {geometry} set of radius {radius} with {size} coordinates")
    if geometry == "euclidean":
        return w
    p = [v / radius for v in w] if geometry == "simplex" else double(w, radius)
    return [math.log(v) if v > 0.0 else -math.inf for v in p]


def moved(theta: Vector, step: float, x: Vector) -> Vector:
    """theta - step x."""
    return [a - step * b for a, b in zip(theta, x, strict=True)]


def implicit_slope(rule: str, y: float, explicit: float, after: Callable[[float], float]) -> float:
    """The g between 0 and the explicit slope with g = slope(margin after stepping on g), by bisection.

    slope(after(g)) falls as |g| grows, so there is one crossing; where the slope jumps (a kink of the loss) it is the g
    that lands on the kink.
    """
    low, high = 0.0, explicit
    while True:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            return high if abs(low) > 1e-300 else 0.0  # below: only underflow kept the two apart
        rest = slope(rule, after(middle), y) - middle
        if rest * explicit > 0.0:
            low = middle
        else:
            high = middle


def play(
    X: Rows,
    y: Column,
    *,
    rule: str,
    geometry: str = "euclidean",
    update: str = "explicit",
    eta: float = 0.1,
    power: float = 0.0,
    rates: Column | None = None,
    radius: float = 1.0,
    weight: Column | None = None,
    start: Column | None = None,
    bias: float = 0.0,
    keep: bool = True,
) -> Played:
    """Play the rows in order: theta_{t+1} = theta_t - eta_t c_t slope_t x_t (THEORY.md, "One update").

    eta_t is rates[t-1] if given, otherwise eta t^-power, t counting the rounds (rows of weight > 0) from 1.
    """
    if update not in ("explicit", "implicit"):
        raise ValueError(f"unknown update {update!r}")
    rows = [row(x, bias) for x in X]
    theta = first(len(rows[0]), geometry, radius, start)
    w = real(read(theta, geometry), geometry, radius)
    played = Played([], [w], w, w, w, w, [], [])
    before, after = Mean(len(w)), Mean(len(w))
    for i, x in enumerate(rows):
        target, c = float(y[i]), 1.0 if weight is None else float(weight[i])
        seen = spread(x, geometry, radius)
        z = dot(read(theta, geometry), seen)
        played.margins.append(z)
        if c == 0.0:
            continue
        t = len(played.rates) + 1
        rate = eta * t**-power if rates is None else float(rates[t - 1])
        g = slope(rule, z, target)
        if update == "implicit" and g != 0.0:

            def margin(g: float, theta: Vector = theta, seen: Vector = seen, step: float = rate * c) -> float:
                return dot(read(moved(theta, step * g, seen), geometry), seen)

            g = implicit_slope(rule, target, g, margin)
        before.add(w)
        theta = moved(theta, rate * c * g, seen)
        w = real(read(theta, geometry), geometry, radius)
        after.add(w)
        played.rates.append(rate)
        played.slopes.append(g)
        if keep:
            played.weights.append(w)
        else:
            played.weights = [w]
    played.final = w
    played.mean_before, played.mean_after = before.value(played.start), after.value(played.start)
    return played


class Round(NamedTuple):
    """One round: the row as played, target, weight c, margin z before the update, rate and slope."""

    x: Vector
    y: float
    c: float
    z: float
    eta: float
    slope: float


def rounds(X: Rows, y: Column, played: Played, weight: Column | None = None, bias: float = 0.0) -> Iterator[Round]:
    """The rounds of a run: its rows of weight > 0, in order."""
    t = 0
    for i, x in enumerate(X):
        c = 1.0 if weight is None else float(weight[i])
        if c > 0.0:
            yield Round(row(x, bias), float(y[i]), c, played.margins[i], played.rates[t], played.slopes[t])
            t += 1


def facts(
    X: Rows,
    y: Column,
    played: Played,
    *,
    rule: str,
    geometry: str,
    weight: Column | None = None,
    bias: float = 0.0,
    radius: float = 1.0,
) -> dict[str, float]:
    """The facts of a run over its rounds; `mistakes` (a plain count) is 0 for rules that do not take y = +-1."""
    run = list(rounds(X, y, played, weight, bias))
    norms = [dual_square(r.x, geometry, radius) for r in run]
    gradients = [(r.c * r.slope) ** 2 * n for r, n in zip(run, norms, strict=True)]
    signed = rule in ("hinge", "perceptron")
    return {
        "rounds": len(run),
        "weight": math.fsum(r.c for r in run),
        "loss": math.fsum(r.c * loss(rule, r.z, r.y) for r in run),
        "square": math.fsum(r.c * (mean(rule, r.z) - r.y) ** 2 for r in run),
        "mistakes": sum(r.y * r.z <= 0.0 for r in run) if signed else 0,
        "x2": max((math.sqrt(square(r.x)) for r in run), default=0.0),
        "xinf": max((abs(v) for r in run for v in r.x), default=0.0),
        "x2_weighted": max((r.c * square(r.x) for r in run), default=0.0),
        "xinf_weighted": max((r.c * v * v for r in run for v in r.x), default=0.0),
        "grad": math.fsum(gradients),
        "move": math.fsum(r.eta**2 * g for r, g in zip(run, gradients, strict=True)),
    }


# --- the bounds: (measured, bound(u)) for any comparator u; the bound is inf where the theorem's condition fails ------


def constant(played: Played) -> float:
    """The eta of a run at a constant rate; anything else is not covered by the theorem that asks."""
    if not played.rates or any(rate != played.rates[0] for rate in played.rates):
        raise ValueError("this theorem needs at least one round and one constant rate")
    return played.rates[0]


def two_terms(run: list[Round], u: Sequence[float], eta: float, x2: float, distance: float) -> tuple[float, float]:
    """The shape of theorems 1 and 3: L <= L_u/(1 - eta X^2) + 2 D(u, w_1)/eta, squares weighted by c_t."""
    measured = math.fsum(r.c * (r.z - r.y) ** 2 for r in run)
    rival = math.fsum(r.c * (dot(u, r.x) - r.y) ** 2 for r in run)
    return measured, rival / (1.0 - eta * x2) + 2.0 * distance / eta if eta * x2 < 1.0 else math.inf


def widrow_hoff(
    X: Rows, y: Column, played: Played, u: Sequence[float], *, weight: Column | None = None, bias: float = 0.0
) -> tuple[float, float]:
    """Theorem 1 (explicit, rule "widrow-hoff"): L <= L_u/(1 - eta X2^2) + |u - w_1|^2/eta, X2^2 = max c|x|^2."""
    run = list(rounds(X, y, played, weight, bias))
    x2 = max(r.c * square(r.x) for r in run)
    return two_terms(run, u, constant(played), x2, divergence(u, played.start))


def implicit_widrow_hoff(
    X: Rows, y: Column, played: Played, u: Sequence[float], *, weight: Column | None = None, bias: float = 0.0
) -> tuple[float, float]:
    """Theorem 2 (implicit, any eta): sum c l^2/(1 + eta c |x|^2) <= L_u + |u - w_1|^2/eta."""
    run, eta = list(rounds(X, y, played, weight, bias)), constant(played)
    measured = math.fsum(r.c * (r.z - r.y) ** 2 / (1.0 + eta * r.c * square(r.x)) for r in run)
    rival = math.fsum(r.c * (dot(u, r.x) - r.y) ** 2 for r in run)
    return measured, rival + 2.0 * divergence(u, played.start) / eta


def implicit_widrow_hoff_total(
    X: Rows, y: Column, played: Played, u: Sequence[float], *, weight: Column | None = None, bias: float = 0.0
) -> tuple[float, float]:
    """Theorem 2, "hence": L <= (1 + eta X2^2) (L_u + |u - w_1|^2/eta), X2^2 = max c|x|^2."""
    run = list(rounds(X, y, played, weight, bias))
    x2 = max(r.c * square(r.x) for r in run)
    _, bound = implicit_widrow_hoff(X, y, played, u, weight=weight, bias=bias)
    return math.fsum(r.c * (r.z - r.y) ** 2 for r in run), (1.0 + constant(played) * x2) * bound


def eg(
    X: Rows,
    y: Column,
    played: Played,
    u: Sequence[float],
    *,
    geometry: str = "simplex",
    radius: float = 1.0,
    weight: Column | None = None,
    bias: float = 0.0,
) -> tuple[float, float]:
    """Theorem 3 (explicit, rule "widrow-hoff"): L <= L_u/(1 - eta X^2) + 2 RE(u|w_1)/eta, X^2 = max c (U|x|_inf)^2."""
    run = list(rounds(X, y, played, weight, bias))
    x2 = max(r.c * dual_square(r.x, geometry, radius) for r in run)
    return two_terms(run, u, constant(played), x2, divergence(u, played.start, geometry, radius))


def convex(
    X: Rows,
    y: Column,
    played: Played,
    u: Sequence[float],
    *,
    rule: str,
    geometry: str = "euclidean",
    radius: float = 1.0,
    weight: Column | None = None,
    bias: float = 0.0,
) -> tuple[float, float]:
    """Theorem 4 (explicit): sum c loss(w_t) <= sum c loss(u) + D(u, w_1)/eta + (eta/2) sum |g_t|*^2."""
    eta = constant(played)
    measured, bound = convex_rates(
        X, y, played, u, rule=rule, geometry=geometry, radius=radius, weight=weight, bias=bias
    )
    return measured / eta, bound / eta


def widrow_hoff_rates(
    X: Rows, y: Column, played: Played, u: Sequence[float], *, weight: Column | None = None, bias: float = 0.0
) -> tuple[float, float]:
    """Theorem 1' (explicit): sum eta_t c l^2 <= |u - w_1|^2 + sum eta_t c g^2/(1 - eta_t c |x_t|^2)."""
    run = list(rounds(X, y, played, weight, bias))
    measured = math.fsum(r.eta * r.c * (r.z - r.y) ** 2 for r in run)
    if any(r.eta * r.c * square(r.x) >= 1.0 for r in run):
        return measured, math.inf
    rival = math.fsum(r.eta * r.c * (dot(u, r.x) - r.y) ** 2 / (1.0 - r.eta * r.c * square(r.x)) for r in run)
    return measured, rival + 2.0 * divergence(u, played.start)


def convex_rates(
    X: Rows,
    y: Column,
    played: Played,
    u: Sequence[float],
    *,
    rule: str,
    geometry: str = "euclidean",
    radius: float = 1.0,
    weight: Column | None = None,
    bias: float = 0.0,
) -> tuple[float, float]:
    """Theorem 4' (explicit): sum eta_t c loss(w_t) <= sum eta_t c loss(u) + D(u, w_1) + (1/2) sum eta_t^2 |g_t|*^2."""
    run = list(rounds(X, y, played, weight, bias))
    measured = math.fsum(r.eta * r.c * loss(rule, r.z, r.y) for r in run)
    rival = math.fsum(r.eta * r.c * loss(rule, dot(u, r.x), r.y) for r in run)
    moves = math.fsum((r.eta * r.c * r.slope) ** 2 * dual_square(r.x, geometry, radius) for r in run)
    return measured, rival + divergence(u, played.start, geometry, radius) + 0.5 * moves


def perceptron(
    X: Rows, y: Column, played: Played, u: Sequence[float], *, weight: Column | None = None, bias: float = 0.0
) -> tuple[float, float]:
    """Theorem 5: M <= ((a + sqrt(a^2 + 4H))/2)^2, a = X2 |u| sqrt(c_max); with H = 0 it is a^2.

    From a start w_1 (not in THEORY.md; the same proof): eta (M - H) <= u.(w_{T+1} - w_1) and
    |w_{T+1}|^2 <= |w_1|^2 + eta^2 c_max X2^2 M, so M is at most the larger root of (m - h)^2 = A + a^2 m,
    with h = H - u.w_1/eta and A = |u|^2 |w_1|^2/eta^2. From w_1 = 0 that root is the formula above.
    """
    run, eta = list(rounds(X, y, played, weight, bias)), constant(played)
    wrong = [r for r in run if r.y * r.z <= 0.0]
    hinge = math.fsum(r.c * max(0.0, 1.0 - r.y * dot(u, r.x)) for r in wrong)
    a2 = square(u) * max(square(r.x) for r in run) * max(r.c for r in run)
    h = hinge - dot(u, played.start) / eta
    extra = square(u) * square(played.start) / eta**2
    root = math.sqrt(max(0.0, a2 * a2 + 4.0 * h * a2 + 4.0 * extra))
    return math.fsum(r.c for r in wrong), h + 0.5 * (a2 + root)


def perceptron_sharp(
    X: Rows, y: Column, played: Played, u: Sequence[float], *, weight: Column | None = None, bias: float = 0.0
) -> tuple[float, float]:
    """Theorem 5, sharper: M <= H + |u| sqrt(sum over mistakes of c^2 |x|^2).

    From a start w_1 (not in THEORY.md): M <= H + (|u| sqrt(|w_1|^2 + eta^2 sum c^2|x|^2) - u.w_1)/eta.
    """
    run, eta = list(rounds(X, y, played, weight, bias)), constant(played)
    wrong = [r for r in run if r.y * r.z <= 0.0]
    hinge = math.fsum(r.c * max(0.0, 1.0 - r.y * dot(u, r.x)) for r in wrong)
    length = math.sqrt(square(played.start) / eta**2 + math.fsum(r.c**2 * square(r.x) for r in wrong))
    return math.fsum(r.c for r in wrong), hinge + math.sqrt(square(u)) * length - dot(u, played.start) / eta


def winnow(
    X: Rows,
    y: Column,
    played: Played,
    u: Sequence[float],
    delta: float,
    *,
    geometry: str = "simplex",
    radius: float = 1.0,
    weight: Column | None = None,
    bias: float = 0.0,
) -> tuple[float, float]:
    """Theorem 6 (rule "perceptron"), any delta; H_delta = sum over mistakes of c max(0, delta - y u.x), X = U X_inf.

    M <= (RE(u|w_1) + eta H_delta)/(eta delta - ln cosh(eta c_max X)/c_max).
    """
    run, eta = list(rounds(X, y, played, weight, bias)), constant(played)
    wrong = [r for r in run if r.y * r.z <= 0.0]
    hinge = math.fsum(r.c * max(0.0, delta - r.y * dot(u, r.x)) for r in wrong)
    top = max(r.c for r in run)
    reach = eta * top * math.sqrt(max(dual_square(r.x, geometry, radius) for r in run))
    log_cosh = reach + math.log1p(math.exp(-2.0 * reach)) - math.log(2.0)
    if reach < 1.0:  # where the difference has no digits left
        log_cosh = math.log1p(2.0 * math.sinh(0.5 * reach) ** 2)
    below = eta * delta - log_cosh / top
    above = divergence(u, played.start, geometry, radius) + eta * hinge
    return math.fsum(r.c for r in wrong), above / below if below > 0.0 else math.inf


def glm_tron(
    X: Rows,
    y: Column,
    played: Played,
    u: Sequence[float],
    *,
    rule: str,
    weight: Column | None = None,
    bias: float = 0.0,
) -> tuple[float, float]:
    """Theorem 11 (explicit; rule "logistic", "clipped" or "widrow-hoff"), realisable: y = link(u.x) to 1e-12.

    sum c (y - link(z))^2 <= |u - w_1|^2/(eta (2/lip - eta X2^2)), X2^2 = max c|x|^2, lip the link's Lipschitz constant.
    Where e = y - link(u.x) is not 0, |w - u|^2 grows by 2 eta c |e| (|z - u.x| + (2 |link(z) - y| + |e|)/lip) at most.
    """
    run, eta = list(rounds(X, y, played, weight, bias)), constant(played)
    steepest = {
        "logistic": 0.25,
        "clipped": 1.0,
        "widrow-hoff": 1.0,
        "tanh": 0.5,
        "probit": 1.0 / math.sqrt(2 * math.pi),
    }
    lip = steepest[rule]
    measured = math.fsum(r.c * (r.y - mean(rule, r.z)) ** 2 for r in run)
    below = eta * (2.0 / lip - eta * max(r.c * square(r.x) for r in run))
    off = [abs(r.y - mean(rule, dot(u, r.x))) for r in run]
    carried = math.fsum(
        2.0 * eta * r.c * e * (abs(r.z - dot(u, r.x)) + (2.0 * abs(mean(rule, r.z) - r.y) + e) / lip)
        for r, e in zip(run, off, strict=True)
    )
    planted = max(off) <= 1e-12 and below > 0.0
    return measured, (2.0 * divergence(u, played.start) + carried) / below if planted else math.inf


# --- what the run met: last distances, norms and normalisers of their own rounds -------------------------------------


def duals(
    X: Rows, y: Column, played: Played, *, geometry: str = "euclidean", radius: float = 1.0,
    weight: Column | None = None, bias: float = 0.0,
) -> list[Vector]:  # fmt: skip
    """theta_1 .. theta_{T+1} by the slopes of the run; of the doubled coordinates in the balanced geometry."""
    theta = first(len(played.start), geometry, radius, played.start)
    out = [theta]
    for r in rounds(X, y, played, weight, bias):
        theta = moved(theta, r.eta * r.c * r.slope, spread(r.x, geometry, radius))
        out.append(theta)
    return out


def log_sum(theta: Vector) -> float:
    """ln sum e^theta."""
    top = max(theta)
    return top + math.log(math.fsum(math.exp(v - top) for v in theta))


def divergence_to(u: Sequence[float], theta: Vector, geometry: str = "euclidean", radius: float = 1.0) -> float:
    """D(u, w) where w is known by its dual vector, whose logarithms do not underflow."""
    if geometry == "euclidean":
        return divergence(u, theta)
    q = double(u, radius) if geometry == "balanced" else [v / radius for v in u]
    if any(a > 0.0 and math.isinf(b) for a, b in zip(q, theta, strict=True)):
        return math.inf
    mass = log_sum(theta)
    return math.fsum(a * (math.log(a) - b + mass) for a, b in zip(q, theta, strict=True) if a > 0.0)


def telescoped(far: Sequence[float], rates: Sequence[float]) -> float:
    """D_1/eta_1 + sum over t >= 2 of D_t (1/eta_t - 1/eta_{t-1}) - D_{T+1}/eta_T."""
    if math.isinf(far[0]):
        return math.inf
    between = [d * (1.0 / b - 1.0 / a) for d, a, b in zip(far[1:-1], rates[:-1], rates[1:], strict=True)]
    return math.fsum([far[0] / rates[0], *between, -far[-1] / rates[-1]])


def distances(
    X: Rows, y: Column, played: Played, u: Sequence[float], *, geometry: str = "euclidean", radius: float = 1.0,
    weight: Column | None = None, bias: float = 0.0,
) -> list[float]:  # fmt: skip
    """D(u, w_1) .. D(u, w_{T+1})."""
    space: dict[str, Any] = {"geometry": geometry, "radius": radius}
    return [divergence_to(u, theta, **space) for theta in duals(X, y, played, weight=weight, bias=bias, **space)]


def widrow_hoff_met(
    X: Rows, y: Column, played: Played, u: Sequence[float], *, weight: Column | None = None, bias: float = 0.0
) -> tuple[float, float]:
    """L <= sum c g^2/(1 - eta_t c |x_t|^2) + sum (|u - w_t|^2 - |u - w_{t+1}|^2)/eta_t, any rates."""
    run = list(rounds(X, y, played, weight, bias))
    measured = math.fsum(r.c * (r.z - r.y) ** 2 for r in run)
    if any(r.eta * r.c * square(r.x) >= 1.0 for r in run):
        return measured, math.inf
    rival = math.fsum(r.c * (dot(u, r.x) - r.y) ** 2 / (1.0 - r.eta * r.c * square(r.x)) for r in run)
    return measured, rival + 2.0 * telescoped(distances(X, y, played, u, weight=weight, bias=bias), played.rates)


def implicit_widrow_hoff_met(
    X: Rows, y: Column, played: Played, u: Sequence[float], *, weight: Column | None = None, bias: float = 0.0
) -> tuple[float, float]:
    """Theorem 2 with the last distance: L <= (1 + eta X2^2) (L_u + (|u - w_1|^2 - |u - w_{T+1}|^2)/eta)."""
    run, eta = list(rounds(X, y, played, weight, bias)), constant(played)
    rival = math.fsum(r.c * (dot(u, r.x) - r.y) ** 2 for r in run)
    far = divergence(u, played.start) - divergence(u, played.final)
    x2 = max(r.c * square(r.x) for r in run)
    return math.fsum(r.c * (r.z - r.y) ** 2 for r in run), (1.0 + eta * x2) * (rival + 2.0 * far / eta)


def beyond_line(a: float) -> float:
    """e^a - 1 - a."""
    if abs(a) > 0.1:
        return math.expm1(a) - a
    term, total, k = 0.5 * a * a, 0.0, 3
    while total + term != total:
        total, term, k = total + term, term * a / k, k + 1
    return total


def cumulant(theta: Vector, step: float, seen: Vector) -> float:
    """ln E e^(-step (V - E V)), V the doubled or plain row under the weights of theta: at most step^2 max|V|^2/2."""
    p = read(theta, "simplex")
    z = dot(p, seen)
    far = [-step * (v - z) for v in seen]
    if max(map(abs, far)) > 500.0:
        return log_sum([b + a for a, b in zip(far, theta, strict=True)]) - log_sum(theta)
    return math.log1p(math.fsum(b * beyond_line(a) for a, b in zip(far, p, strict=True)))


def eg_met(
    X: Rows, y: Column, played: Played, u: Sequence[float], *, geometry: str = "simplex", radius: float = 1.0,
    weight: Column | None = None, bias: float = 0.0, noise: float = 0.0,
) -> tuple[float, float]:  # fmt: skip
    """L <= sum c g^2/(1 - eta c V_t) + 2 (D(u, w_1) - D(u, w_{T+1}))/eta, V_t = 2 cumulant/(eta c l)^2 <= (U|x|_inf)^2.

    With `noise` the cumulants are larger by so much, as they are where that is what is known of them.
    """
    run, eta = list(rounds(X, y, played, weight, bias)), constant(played)
    space: dict[str, Any] = {"geometry": geometry, "radius": radius}
    thetas = duals(X, y, played, weight=weight, bias=bias, **space)
    far = telescoped([divergence_to(u, theta, **space) for theta in (thetas[0], thetas[-1])], [eta])
    rival = []
    for r, theta in zip(run, thetas, strict=False):
        step, top = eta * r.c * (r.z - r.y), dual_square(r.x, geometry, radius)
        met = 0.0
        if step * step > 0.0:
            met = min(top, 2.0 * (cumulant(theta, step, spread(r.x, geometry, radius)) + noise) / step**2)
        shrink = 1.0 - eta * r.c * met
        rival.append(r.c * (dot(u, r.x) - r.y) ** 2 / shrink if shrink > 0.0 else math.inf)
    return math.fsum(r.c * (r.z - r.y) ** 2 for r in run), math.fsum(rival) + 2.0 * far


def convex_met(
    X: Rows, y: Column, played: Played, u: Sequence[float], *, rule: str, geometry: str = "euclidean",
    radius: float = 1.0, weight: Column | None = None, bias: float = 0.0,
) -> tuple[float, float]:  # fmt: skip
    """sum c loss(w_t) <= sum c loss(u) + sum (D(u, w_t) - D(u, w_{t+1}))/eta_t + sum eta_t |g_t|*^2/2, any rates."""
    run = list(rounds(X, y, played, weight, bias))
    space: dict[str, Any] = {"geometry": geometry, "radius": radius}
    measured = math.fsum(r.c * loss(rule, r.z, r.y) for r in run)
    rival = math.fsum(r.c * loss(rule, dot(u, r.x), r.y) for r in run)
    price = math.fsum(0.5 * r.eta * (r.c * r.slope) ** 2 * dual_square(r.x, geometry, radius) for r in run)
    far = distances(X, y, played, u, weight=weight, bias=bias, **space)
    return measured, rival + price + telescoped(far, played.rates)


def step_length(after: Vector, before: Vector) -> float:
    """RE(w_{t+1}|w_t) by the dual vectors, where weights may underflow."""
    q, p = read(after, "simplex"), read(before, "simplex")
    found = relative_entropy(q, p)
    if math.isfinite(found):
        return found
    shift = log_sum(after) - log_sum(before)
    return math.fsum(c * (a - b - shift) for a, b, c in zip(after, before, q, strict=True) if c > 0.0)


def proximal(
    X: Rows, y: Column, played: Played, u: Sequence[float], *, rule: str, geometry: str = "euclidean",
    radius: float = 1.0, weight: Column | None = None, bias: float = 0.0,
) -> tuple[float, float]:  # fmt: skip
    """Implicit steps, any rates: sum c loss(w_t) <= sum c loss(u) + sum (D(u, w_t) - D(u, w_{t+1}))/eta_t + sum pi_t.

    pi_t = c loss(w_t) - c loss(w_{t+1}) - D(w_{t+1}, w_t)/eta_t.
    """
    run = list(rounds(X, y, played, weight, bias))
    space: dict[str, Any] = {"geometry": geometry, "radius": radius}
    thetas = duals(X, y, played, weight=weight, bias=bias, **space)
    measured = math.fsum(r.c * loss(rule, r.z, r.y) for r in run)
    rival = math.fsum(r.c * loss(rule, dot(u, r.x), r.y) for r in run)
    prices = []
    for r, before, after in zip(run, thetas[:-1], thetas[1:], strict=True):
        p, q = read(before, geometry), read(after, geometry)
        moved_by = divergence(q, p) if geometry == "euclidean" else step_length(after, before)
        landed = dot(q, spread(r.x, geometry, radius))
        prices.append(r.c * (loss(rule, r.z, r.y) - loss(rule, landed, r.y)) - moved_by / r.eta)
    far = [divergence_to(u, theta, **space) for theta in thetas]
    return measured, rival + math.fsum(prices) + telescoped(far, played.rates)


def winnow_met(
    X: Rows, y: Column, played: Played, u: Sequence[float], delta: float, *, geometry: str = "simplex",
    radius: float = 1.0, weight: Column | None = None, bias: float = 0.0, noise: float = 0.0, off: float = 0.0,
) -> tuple[float, float]:  # fmt: skip
    """M <= (D(u, w_1) + eta H_delta)/(eta delta - N), N the mean of ln sum p e^(eta c y x) over the mistakes.

    With `noise` each logarithm is larger by so much, as it is where that is what is known of it; D with `off`.
    """
    run, eta = list(rounds(X, y, played, weight, bias)), constant(played)
    space: dict[str, Any] = {"geometry": geometry, "radius": radius}
    thetas = duals(X, y, played, weight=weight, bias=bias, **space)
    wrong = [(r, theta) for r, theta in zip(run, thetas, strict=False) if r.y * r.z <= 0.0]
    made = math.fsum(r.c for r, _ in wrong)
    if made == 0.0:
        return 0.0, math.inf
    hinge = math.fsum(r.c * max(0.0, delta - r.y * dot(u, r.x)) for r, _ in wrong)
    grown = []
    for r, theta in wrong:
        seen = spread(r.x, geometry, radius)
        step = -eta * r.c * r.y
        grown.append(noise + cumulant(theta, step, seen) - step * dot(read(theta, geometry), seen))
    below = eta * delta - math.fsum(grown) / made
    above = divergence_to(u, thetas[0], **space) + off + eta * hinge
    return made, above / below if below > 0.0 else math.inf
