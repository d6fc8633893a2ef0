"""Intervals that cover, the slow and obvious way: the section of docs/theory.md read aloud in plain Python.

Nothing here knows the package. A round is (score, weight); `Tracker` is told one after the other.
"""

import math

GAMMA, FLOOR, PATIENCE = 0.02, 2.0**-30, 0.8
RATES, FADES = (1.0, 0.25, 0.0625, 1.0), (False, False, False, True)
K = len(RATES)


def rho(alpha: float, s: float, q: float) -> float:
    """The pinball loss of the half-width q where the score is s."""
    return (1.0 - alpha) * (s - q) if s > q else alpha * (q - s)


def divergence(u: float, w: float) -> float:
    """D(u, w) of the function w ln w - w."""
    return u * math.log(u / w) - u + w


class Tracker:
    """Everything that was met, in lists; each number is worked out anew where it is wanted."""

    def __init__(self, alpha: float) -> None:
        self.alpha, self.level, self.widths = alpha, 0.5, [0.0] * K
        self.lost, self.rate, self.positive, self.gaps = [0.0] * K, math.inf, 0.0, 0.0
        self.top = self.opening = self.raised = self.spared = self.carried = self.heaviest = 0.0
        self.steps = 0
        self.rounds: list[tuple[float, float, float]] = []  # score, weight, half-width
        self.played: list[list[tuple[float, float, float]]] = [[] for _ in RATES]  # eta_t, w_t, price

    def base(self) -> float:
        """The mean of the widths by what each member has lost."""
        least = min(self.lost)
        v = [(math.exp(-self.rate * (x - least)) if self.rate < math.inf else float(x == least)) for x in self.lost]
        return sum(p * w for p, w in zip(v, self.widths, strict=True)) / sum(v)

    @property
    def half(self) -> float:
        """The half-width of the next round."""
        return self.base() * self.level / (1.0 - self.level) if self.level < 1.0 else math.inf

    def eta(self, k: int) -> float:
        """The rate of a member in the next round after the opening."""
        falls = 0 if not FADES[k] or self.steps < 4 else int(math.log2(self.steps) / 2.0 + 1e-12)
        return RATES[k] / 2.0**falls / self.heaviest

    def mix(self, losses: list[float]) -> float:
        """What the weights lose together, at the rate of this round."""
        after = [x + loss for x, loss in zip(self.lost, losses, strict=True)]
        if self.rate == math.inf:
            return min(after) - min(self.lost)
        sums = [sum(math.exp(-self.rate * (x - min(each))) for x in each) for each in (self.lost, after)]
        return min(after) - min(self.lost) - math.log(sums[1] / sums[0]) / self.rate

    def add(self, s: float, c: float, q: float, ties: list[float] | None = None) -> None:
        """A round, with the half-width that was told for it.

        `ties` are the members' widths as another has them: a score that differs from a width by rounding alone lies on
        that side of it where they say.
        """
        alpha, a, miss = self.alpha, self.base(), s > q
        self.carried += self.level * max(0.0, c - self.heaviest)
        self.heaviest = max(self.heaviest, c)
        self.rounds.append((s, c, q))
        if miss:
            self.level += GAMMA * c / self.heaviest * (1.0 - alpha)
        else:
            wanted = GAMMA * c / self.heaviest * alpha
            taken = min(wanted, self.level) if q > 0.0 else 0.0
            self.level -= taken
            self.spared += self.heaviest * (wanted - taken) / GAMMA
        if self.top == 0.0:
            if s > 0.0:
                self.top, self.widths, self.opening = s, [s] * K, c * rho(alpha, s, q)
            return
        if q < math.inf:
            self.raised += c * (rho(alpha, s, q) - rho(alpha, s, a))
        self.top = max(self.top, s)
        losses = [c * rho(alpha, s, w) for w in self.widths]
        gap = c * rho(alpha, s, a) - self.mix(losses)
        self.lost = [x + loss for x, loss in zip(self.lost, losses, strict=True)]
        self.gaps, self.positive = self.gaps + gap, self.positive + max(0.0, gap)
        if self.positive > 0.0 and math.log(K) / self.positive < PATIENCE * self.rate:
            self.rate = math.log(K) / self.positive
        for k, w in enumerate(self.widths):
            level = ties[k] if ties is not None and abs(s - w) <= 1e-12 * s else w
            eta, g = self.eta(k), c * ((0.0 if s > level else 1.0) - (1.0 - alpha))
            self.played[k].append((eta, w, w * (math.exp(-eta * g) - 1.0 + eta * g) / eta))
            self.widths[k] = max(w * math.exp(-eta * g), FLOOR * self.top)
        self.steps += 1

    # --- what is known afterwards

    def loss(self, u: float) -> float:
        """What a fixed half-width loses."""
        return sum(c * rho(self.alpha, s, u) for s, c, _ in self.rounds)

    def bound(self, u: float) -> float:
        """What the run loses at most, for a fixed half-width u that is no smaller than any member may be."""
        if not self.top:
            return 0.0
        each = []
        for k in range(K):
            rates, apart = [eta for eta, _, _ in self.played[k]], 0.0
            first = (RATES[k] / self.first_heaviest, self.start)  # the distance to where the members start
            apart += divergence(u, first[1]) / first[0]
            before = first[0]
            for eta, w, price in self.played[k]:
                apart += divergence(u, w) * (1.0 / eta - 1.0 / before) + price
                before = eta
            last = self.eta(k)
            apart += divergence(u, self.widths[k]) * (1.0 / last - 1.0 / before) if rates else 0.0
            each.append(apart)
        return self.loss(u) + min(each) + math.log(K) / self.rate + self.gaps + self.raised + self.opening

    @property
    def start(self) -> float:
        """The first score above 0, of a round that counts."""
        return next(s for s, c, _ in self.rounds if s > 0.0)

    @property
    def first_heaviest(self) -> float:
        """The largest weight up to then."""
        at = next(t for t, (s, _, _) in enumerate(self.rounds) if s > 0.0)
        return max(c for _, c, _ in self.rounds[: at + 1])

    @property
    def misses(self) -> list[float]:
        """After each round the weight of the misses beyond those asked for."""
        out, total = [], 0.0
        for s, c, q in self.rounds:
            total += c * ((s > q) - self.alpha)
            out.append(total)
        return out
