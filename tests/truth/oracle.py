"""What `naive` says of a stream: measured and bound of every form of its theorem, and what each lemma allows."""

import math

import numpy as np

import naive
from hindsight.certificates import theorems
from hindsight.certificates.certificate import Certificate
from hindsight.online.run import Run
from truth.outcome import EPS
from truth.seen import Seen, size_of_losses
from truth.streams import LIPSCHITZ, Stream


def bounds(seen: Seen, u: np.ndarray) -> list[tuple[str, float, float]]:
    """(name, measured, bound) by `naive` for every form of the family's theorem."""
    s, v = seen.stream, [float(a) for a in u]
    given = (seen.X, seen.y, seen.played, v)
    scaled = (seen.X, seen.y, seen.at_scale(), v)
    match s.family.split()[0]:
        case "1":
            met = naive.widrow_hoff_met(*scaled, **seen.data)
            return [("1 met", *met), ("1", *naive.widrow_hoff(*scaled, **seen.data))]
        case "2":
            total = naive.implicit_widrow_hoff_total(*scaled, **seen.data)
            met = naive.implicit_widrow_hoff_met(*scaled, **seen.data)
            return [("2 met", *met), ("2", *naive.implicit_widrow_hoff(*scaled, **seen.data)), ("2 total", *total)]
        case "3":
            met = naive.eg_met(*scaled, **s.space, **seen.data)
            return [("3 met", *met), ("3", *naive.eg(*scaled, **s.space, **seen.data))]
        case "4":
            met = naive.convex_met(*given, rule=s.rule, **s.space, **seen.data)
            return [("4 met", *met), ("4", *naive.convex(*given, rule=s.rule, **s.space, **seen.data))]
        case "5":
            sharp = naive.perceptron_sharp(*given, **seen.data)
            return [("5", *naive.perceptron(*given, **seen.data)), ("5 sharp", *sharp)]
        case "6":
            top = math.sqrt(float(s.dual_squares()[s.c > 0.0].max()))
            tries = (0.1 * top, 0.5 * top, top)
            # The distance to u is a sum of terms that cancel, and is divided by as little as the rate.
            far = max(abs(a) for a in seen.duals[0] if math.isfinite(a))
            off = 4.0 * EPS * (s.width + 8.0) * (1.0 + math.log(2.0 * s.width) + 2.0 * far)
            met = [("6 met", *naive.winnow_met(*given, delta, off=off, **s.space, **seen.data)) for delta in tries]
            return met + [("6", *naive.winnow(*given, delta, **s.space, **seen.data)) for delta in tries]
        case "11":
            if s.planted is not None:
                return [("11", *naive.glm_tron(*given, rule=s.rule, **seen.data))]
            met = naive.convex_met(*given, rule=s.rule, **seen.data)
            return [("11 met", *met), ("11", *naive.convex(*given, rule=s.rule, **seen.data))]
        case "1'":
            met = naive.widrow_hoff_met(*scaled, **seen.data)
            return [("1' met", *met), ("1'", *naive.widrow_hoff_rates(*scaled, **seen.data))]
        case "4'":
            met = naive.convex_met(*given, rule=s.rule, **s.space, **seen.data)
            return [("4' met", *met), ("4'", *naive.convex_rates(*given, rule=s.rule, **s.space, **seen.data))]
        case "implicit":
            return [("implicit, as met", *naive.proximal(*given, rule=s.rule, **s.space, **seen.data))]
    raise ValueError(f"unknown family {s.family!r}")


def roughly(seen: Seen, theorem: theorems.Theorem, u: np.ndarray, delta: float | None = None) -> float:
    """At most what a bound may be said to be where normalisers are known to a rounding."""
    s = seen.stream
    return expected(seen, theorem, u, delta, noise=8.0 * (EPS * (16.0 * s.width + 128.0) + seen.moved))[1]


def kinks(seen: Seen, u: np.ndarray) -> float:
    """What prices of implicit steps may be off by: each lands within a rounding of where it should, or of a kink."""
    s, total = seen.stream, 0.0
    for r in naive.rounds(seen.X, seen.y, seen.played, **seen.data):
        top = math.sqrt(naive.dual_square(r.x, s.geometry, s.radius))
        size = s.radius if s.geometry != "euclidean" else max(math.sqrt(naive.square(w)) for w in seen.duals)
        width = 64.0 * (EPS * (s.width + 8.0) + seen.moved) * (top * size + abs(r.y) + abs(r.z))
        steep = abs(r.slope) + width * 2.0 + abs(naive.slope(s.rule, r.z, r.y))
        total += r.c * width * (steep + abs(naive.dot(u, r.x)) + abs(r.z) + 1.0)
    return total


def allowed(seen: Seen, c: Certificate, theorem: theorems.Theorem) -> list[float]:
    """What the lemma of a theorem lets each round add to its potential at the rival, straight from the proofs."""
    s, u = seen.stream, c.comparator.u.tolist()
    out = []
    thetas = seen.duals if theorem in PROXIMAL else []
    played = seen.at_scale() if theorem in SQUARES else seen.played
    for t, r in enumerate(naive.rounds(seen.X, seen.y, played, **seen.data)):
        z, step, norm = naive.dot(u, r.x), r.eta * r.c, naive.dual_square(r.x, s.geometry, s.radius)
        error, miss, wrong = r.z - r.y, z - r.y, r.y * r.z <= 0.0
        match theorem:
            case theorems.PROXIMAL | theorems.PROXIMAL_MET:
                p, q = naive.read(thetas[t], s.geometry), naive.read(thetas[t + 1], s.geometry)
                landed = naive.dot(q, naive.spread(r.x, s.geometry, s.radius))
                if s.geometry == "euclidean":
                    promised = step * (naive.loss(s.rule, z, r.y) - naive.loss(s.rule, landed, r.y))
                    out.append(promised - naive.divergence(q, p))
                else:
                    out.append(-step * r.slope * (landed - z))
            case theorems.WIDROW_HOFF | theorems.WIDROW_HOFF_RATES:
                out.append(-step * error**2 + step * miss**2 / (1.0 - step * norm))
            case theorems.IMPLICIT:
                out.append(-step * error**2 / (1.0 + step * norm) + step * miss**2)
            case theorems.EG:
                out.append(-step * error * (error - miss) + 0.5 * (step * error) ** 2 * norm)
            case theorems.CONVEX | theorems.CONVEX_RATES:
                paid = naive.loss(s.rule, r.z, r.y) - naive.loss(s.rule, z, r.y)
                out.append(-step * paid + 0.5 * (step * r.slope) ** 2 * norm)
            case theorems.PERCEPTRON_NOISY:
                out.append(r.c**2 * norm - 2.0 * r.c * min(1.0, r.y * z) if wrong else 0.0)
            case theorems.WINNOW:
                far = step * math.sqrt(norm)
                log_cosh = far + math.log1p(math.exp(-2.0 * far)) - math.log(2.0)
                log_cosh = math.log1p(2.0 * math.sinh(0.5 * far) ** 2) if far < 1.0 else log_cosh
                out.append(log_cosh - step * r.y * z if wrong else 0.0)
            case theorems.GLM_TRON:
                lip, e = LIPSCHITZ.get(s.rule, 1.0), abs(r.y - naive.mean(s.rule, z))
                error = naive.mean(s.rule, r.z) - r.y
                carried = 2.0 * step * e * (abs(r.z - z) + (2.0 * abs(error) + e) / lip)
                out.append(-step * error**2 * (2.0 / lip - step * norm) + carried)
    return out


def loss_noise(s: Stream, r: naive.Round, u: list[float]) -> float:
    """What two programs may differ by in what a lemma allows: the rounding of losses, and of y - u(w*.x)."""
    z = naive.dot(u, r.x)
    if s.planted is not None:
        lip, error = LIPSCHITZ.get(s.rule, 1.0), abs(naive.mean(s.rule, r.z) - r.y)
        off = 1e-14 * (abs(naive.mean(s.rule, z)) + lip * math.sqrt(naive.square(u) * naive.square(r.x)))
        return 4.0 * r.eta * r.c * off * (abs(r.z - z) + (2.0 * error + off + 1e-12) / lip)
    return 64.0 * EPS * size_of_losses(s, r, z)


SQUARES = (theorems.WIDROW_HOFF, theorems.WIDROW_HOFF_RATES, theorems.IMPLICIT, theorems.EG)


PROXIMAL = (theorems.PROXIMAL, theorems.PROXIMAL_MET)


MET = (
    theorems.WIDROW_HOFF_MET, theorems.WIDROW_HOFF_PLAIN, theorems.IMPLICIT_MET, theorems.EG_MET, theorems.CONVEX_MET,
    theorems.CONVEX_PLAIN, theorems.PROXIMAL_MET,
)  # fmt: skip


ROUGH = (theorems.EG_MET, theorems.WINNOW_MET)


ONCE = (  # their potential is D(u, w), not twice that
    theorems.CONVEX, theorems.CONVEX_RATES, theorems.CONVEX_MET, theorems.CONVEX_PLAIN, *PROXIMAL,
)  # fmt: skip


def open_form(seen: Seen, theorem: theorems.Theorem, u: np.ndarray, least: bool = False) -> float:
    """A bound with distances met without its last one, which is what is minimised over u; of EG at most, or `least`."""
    s, v = seen.stream, u.tolist()
    played = seen.played if theorem in ONCE else seen.at_scale()
    last = naive.divergence_to(v, seen.duals[-1], **s.space) / played.rates[-1]
    if theorem is theorems.EG_MET and not least:
        return roughly(seen, theorem, u) + 2.0 * last
    bound = expected(seen, theorem, u, None)[1]
    if theorem is theorems.IMPLICIT_MET:
        grow = 1.0 + played.rates[0] * max(float(a) for a in s.c * s.dual_squares())
        return bound + grow * 2.0 * last
    if theorem in PROXIMAL:
        return bound + squares(s) * last
    return bound + (1.0 if theorem in ONCE else 2.0) * last


def squares(s: Stream) -> float:
    """What a loss is multiplied by to be told as a squared error."""
    return 2.0 if s.rule == "widrow-hoff" else 1.0


def expected(
    seen: Seen, theorem: theorems.Theorem, rival: np.ndarray, delta: float | None, noise: float = 0.0
) -> tuple[float, float]:
    """What `naive` says of a theorem and a rival, and of normalisers that are larger by some noise."""
    s, u = seen.stream, rival.tolist()
    given = (seen.X, seen.y, seen.played, u)
    scaled = (seen.X, seen.y, seen.at_scale(), u)
    if not naive.inside(u, s.geometry, s.radius):
        raise ValueError(f"not in the {s.geometry} set of radius {s.radius}")
    match theorem:
        case theorems.WIDROW_HOFF_MET | theorems.WIDROW_HOFF_PLAIN:
            return naive.widrow_hoff_met(*scaled, **seen.data)
        case theorems.IMPLICIT_MET:
            return naive.implicit_widrow_hoff_met(*scaled, **seen.data)
        case theorems.EG_MET:
            return naive.eg_met(*scaled, noise=noise, **s.space, **seen.data)
        case theorems.CONVEX_MET | theorems.CONVEX_PLAIN:
            return naive.convex_met(*given, rule=s.rule, **s.space, **seen.data)
        case theorems.PROXIMAL_MET:
            measured, bound = naive.proximal(*given, rule=s.rule, **s.space, **seen.data)
            return squares(s) * measured, squares(s) * bound
        case theorems.PROXIMAL:
            measured, bound = naive.proximal(*given, rule=s.rule, **s.space, **seen.data)
            last = naive.divergence_to(u, seen.duals[-1], **s.space) / seen.played.rates[-1]
            return squares(s) * measured, squares(s) * (bound + last)
        case theorems.WINNOW_MET:
            if delta is None:
                delta = best_winnow(seen, u, None)[2]
            measured, bound = naive.winnow_met(*given, delta, noise=noise, **s.space, **seen.data)
            return measured, min(bound, rounds_played(seen)) if math.isfinite(bound) else bound
        case theorems.WIDROW_HOFF:
            return naive.widrow_hoff(*scaled, **seen.data)
        case theorems.WIDROW_HOFF_RATES:
            return naive.widrow_hoff_rates(*scaled, **seen.data)
        case theorems.IMPLICIT:
            return naive.implicit_widrow_hoff_total(*scaled, **seen.data)
        case theorems.EG:
            return naive.eg(*scaled, **s.space, **seen.data)
        case theorems.CONVEX:
            return naive.convex(*given, rule=s.rule, **s.space, **seen.data)
        case theorems.CONVEX_RATES:
            return naive.convex_rates(*given, rule=s.rule, **s.space, **seen.data)
        case theorems.PERCEPTRON_NOISY:
            measured, bound = naive.perceptron_sharp(*given, **seen.data)
            return measured, min(bound, rounds_played(seen))
        case theorems.WINNOW:
            if delta is not None and math.isinf(delta):
                return best_winnow(seen, u, 1.0)[0], rounds_played(seen)
            measured, bound, _ = best_winnow(seen, u, delta)
            return measured, min(bound, rounds_played(seen)) if math.isfinite(bound) else bound
        case theorems.GLM_TRON:
            return naive.glm_tron(*given, rule=s.rule, **seen.data)
    raise ValueError(f"no oracle for {theorem.name}")


def rounds_played(seen: Seen) -> float:
    """The weight of all rounds: no more mistakes than that are made."""
    return math.fsum(r.c for r in naive.rounds(seen.X, seen.y, seen.played, **seen.data))


def best_winnow(seen: Seen, u: list[float], delta: float | None) -> tuple[float, float, float]:
    """Winnow's bound at the rival's own margin, or at the best one: monotone between the margins of the mistakes."""
    s = seen.stream
    given = (seen.X, seen.y, seen.played, u)
    top = math.sqrt(float(s.dual_squares()[s.c > 0.0].max()))
    if delta is not None:
        return *naive.winnow(*given, delta, **s.space, **seen.data), delta
    rounds = naive.rounds(seen.X, seen.y, seen.played, seen.weight, s.bias)
    kinks = {r.y * naive.dot(u, r.x) for r in rounds if r.y * r.z <= 0.0}
    tries = [d for d in {*kinks, top} if 0.0 < d <= top * (1 + 1e-12)] or [top]
    return min(((*naive.winnow(*given, d, **s.space, **seen.data), d) for d in tries), key=lambda found: found[1])


def entropy_to(u: np.ndarray, run: Run, s: Stream) -> float:
    """RE(u || w_{T+1}), the logarithms of the weights taken from theta, where they do not underflow."""
    theta = run.state.theta
    q = u / s.radius
    if s.geometry == "balanced":
        theta, q = np.concatenate([theta, -theta]), np.array(naive.double(u.tolist(), s.radius))
    on = q > 0.0
    if np.isneginf(theta[on]).any():
        return math.inf
    top = theta.max()
    log_p = theta - top - math.log(np.exp(theta - top).sum())
    return float((q[on] * (np.log(q[on]) - log_p[on])).sum() + (1.0 - q.sum()))
