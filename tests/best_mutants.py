"""Faults put into the search for the best fixed predictor: `best_truth` must notice them.

Run it with ``python tests/best_mutants.py [WORD ...]``; it exits with 1 if one survives.
"""
# ruff: noqa: E501 (a mutant a line)

import os
import sys

import best_truth
from mutants import Mutant, applied

del os.environ["NUMBA_DISABLE_JIT"]  # `mutants` breaks kernels and plays them in Python; nothing here is in a kernel
PACKAGE = "certificates.best"
CONSTANT, BEST = f"{PACKAGE}.constant", f"{PACKAGE}.fixed"
LEAST_SQUARES, OBJECTIVE, ASCENT, SPACES, FEWEST, SHARED = (
    f"{PACKAGE}.{name}" for name in ("least_squares", "objective", "ascent", "spaces", "fewest", "predictor")
)
# fmt: off
BROKEN = (  # what is broken, the function, the pattern in its source, and what stands there instead
    ("least squares: a tenth of the loss is left out", f"{LEAST_SQUARES}._value", r"return 0\.5 \* loss\.scale", "return 0.45 * loss.scale"),
    ("least squares: a tenth of the gap", f"{LEAST_SQUARES}.first_solution", r"1\.01", "0.101"),
    ("least squares: a tenth of the gap, in singular vectors", f"{LEAST_SQUARES}.least_squares", r"0\.5 \* doubt", "0.05 * doubt"),
    ("least squares: the loss of zero columns", f"{LEAST_SQUARES}.least_squares", r"value = 0\.5 \* loss\.scale", "value = 0.4 * loss.scale"),
    ("smooth: the dual without its sign", f"{BEST}.smooth", r"lower = max\(lower, -", "lower = max(lower, "),
    ("smooth: the conjugate halved", f"{BEST}.smooth", r"a\[on\] \* conjugate", "0.5 * a[on] * conjugate"),
    ("smooth: half of the entropy twice", f"{OBJECTIVE}.conjugate_of", r"far \* np\.log1p\(-near\)", "2.0 * far * np.log1p(-near)"),
    ("smooth: no better a bound than 0", f"{SHARED}.FixedPredictor.above_floor", r"if most <= self\.gap", "if True"),
    ("smooth: rows on the plane are right", f"{BEST}.separates", r"data\.margins\(u\) > 0\.0", "data.margins(u) >= 0.0"),
    ("over the reach: no reach", f"{BEST}.over_reach", r"size\(point\.slope\) \* \(reach \+ length\)", "0.0 * size(point.slope)"),
    ("kinked: the dual's sign", f"{OBJECTIVE}.Envelope.dual", r"return -r", "return r"),
    ("kinked: no reach", f"{SPACES}.Reach.least", r"return -self\.radius", "return -0.0"),
    ("in a set: the least over the corners", f"{BEST}.Search.below", r"self\.where\.least\(v\)", "0.0"),
    ("in a set: corners of half the radius", f"{SPACES}.Mixtures.least", r"return self\.radius", "return 0.5 * self.radius"),
    ("in a set: the largest over the corners", f"{SPACES}.Mixtures.least", r"\.min\(\)", ".max()"),
    ("in a set: the sign of the slope at u", f"{OBJECTIVE}.Smooth.dual", r"each - r \* z", "each + r * z"),
    ("in a set: both halves added", f"{SPACES}.Mixtures.mixed", r"self\.sides @", "np.abs(self.sides) @"),
    ("by ascent: half the support of the set", f"{ASCENT}.by_ascent", r"within\.least\(v\)", "0.5 * within.least(v)"),
    ("by ascent: a tenth of the reach", f"{SPACES}.Reach.least", r"return -self\.radius", "return -0.1 * self.radius"),
    ("by ascent: no reach", f"{ASCENT}.by_ascent", r"LONGER \*", "0.0 *"),
    ("by ascent: a tenth of the gap", f"{ASCENT}.by_ascent", r"max\(0\.0, least - max\(lows\)\)", "0.1 * max(0.0, least - max(lows))"),
    ("conjugate gradients: a tenth of the loss is left out", f"{LEAST_SQUARES}.by_conjugate_gradients", r"value = 0\.5 \* loss\.scale", "value = 0.45 * loss.scale"),
    ("conjugate gradients: no gap", f"{LEAST_SQUARES}.by_conjugate_gradients", r"gap = size \* reach", "gap = 0.0 * size"),
    ("margins of labels have no unit", f"{OBJECTIVE}.target_size", r"return 1\.0", "return 1e-9"),
    ("margins of targets have no unit", f"{OBJECTIVE}.target_size", r"return math\.sqrt", "return 1e-9 * math.sqrt"),
    ("the intercept has no size", f"{OBJECTIVE}.column_sizes", r"data\.bias\*\*2 \* a\.sum\(\)", "0.0"),
    ("targets outside [0, 1] have a least loss", f"{BEST}.best_fixed", r"if outside or not loss\.convex", "if not loss.convex"),
    ("constant: the plain mean", f"{CONSTANT}.constant_margin", r"float\(c @ y\) / float\(c\.sum\(\)\)", "float(y.mean())"),
    ("constant: a tenth of the loss is left out", f"{CONSTANT}.best_constant", r"return float", "return 0.9 * float"),
    ("constant: the kink after", f"{CONSTANT}._best_kink", r"np\.searchsorted\(slope, 0\.0\)", "1 + np.searchsorted(slope, 0.0)"),
    ("constant: the wrong half", f"{CONSTANT}._root", r">= 0\.0", "<= 0.0"),
    ("constant: not far enough", f"{CONSTANT}._root", r"1e3 \*", "0.1 *"),
    ("constant: the worse label", f"{CONSTANT}.fewest_of_constant", r"return min", "return max"),
    ("fewest: a margin of 0 is right", f"{FEWEST}._weight_wrong", r"<= 0\.0", "< 0.0"),
    ("fewest: what separates is not believed", f"{FEWEST}._separates", r"> slack", "< slack"),
    ("fewest: one mistake of the heaviest row", f"{FEWEST}._least_weight", r"\.min\(initial=math\.inf\)", ".max()"),
    ("fewest: rows that are not 0", f"{FEWEST}.fewest", r"data\.row_norms_inf\(\) == 0\.0", "data.row_norms_inf() > 0.0"),
    ("fewest: found is proved", f"{FEWEST}.fewest", r"PROVED if least <= lower else FOUND", "PROVED"),
    ("fewest: shifted to the other side", f"{FEWEST}._shifted", r"out\[-1\] -=", "out[-1] +="),
    ("fewest: shifted for the other label", f"{FEWEST}._shifted", r"np\.cumsum\(side\)", "np.cumsum(-side)"),
    ("fewest: shifted between equal margins", f"{FEWEST}._shifted", r"np\.where\(ends, wrong, np\.inf\)", "wrong"),
    ("fewest: half of what is proved", f"{FEWEST}._exact", r"each \* found\.lower", "0.5 * each * found.lower"),
    ("fewest: weights that differ are counted", f"{FEWEST}._exact", r" and a\[on\]\.min\(\) == a\[on\]\.max\(\)", ""),
    ("fewest: another radius", f"{FEWEST}._inside", r"geometry\.radius / size", "1.0 / size"),
)
# fmt: on
MUTANTS = tuple(Mutant(*broken, ()) for broken in BROKEN)


def caught(mutant: Mutant, draws: int = 80) -> bool:
    """Whether some draw finds a fault with the mutant in place, or its code fails."""
    with applied(mutant):
        for first in range(0, draws, 10):
            try:
                if best_truth.faults_of(10, first):
                    return True
            except (ArithmeticError, ValueError, AssertionError):
                return True
    return False


def main() -> int:
    """Try them all, or those whose names hold one of the words."""
    words = sys.argv[1:] or [""]
    tried = [mutant for mutant in MUTANTS if any(word in mutant.name for word in words)]
    alive = [mutant.name for mutant in tried if not caught(mutant)]
    print(f"{len(tried) - len(alive)} of {len(tried)} caught", *alive, sep="\n  survives: ")
    return int(bool(alive))


if __name__ == "__main__":
    sys.exit(main())
