"""Faults put into the search for the best fixed predictor: `best_truth` must notice them.

Run it with ``python tests/best_mutants.py``; it exits with 1 if one survives.
"""

import sys

import best_truth
from mutants import Mutant, applied

RIVALS = "certificates.rivals"
MUTANTS = (
    Mutant(
        "least squares: a tenth of the loss is left out",
        f"{RIVALS}.least_squares._value",
        r"return 0\.5 \* loss\.scale",
        "return 0.45 * loss.scale",
        (),
    ),
    Mutant(
        "smooth: the dual without its sign",
        f"{RIVALS}.unpenalised.smooth",
        r"lower = max\(lower, -",
        "lower = max(lower, ",
        (),
    ),
    Mutant(
        "smooth: the conjugate doubled",
        f"{RIVALS}.unpenalised.smooth",
        r"factors\[on\] \* conjugate",
        "0.5 * factors[on] * conjugate",
        (),
    ),
    Mutant(
        "over the reach: no reach",
        f"{RIVALS}.unpenalised.over_reach",
        r"size\(slope\) \* \(reach \+ length\)",
        "0.0 * size(slope)",
        (),
    ),
    Mutant(
        "kinked: the dual's sign", f"{RIVALS}.kinked.Path.below", r"-float\(dual\.sum\(\)\)", "float(dual.sum())", ()
    ),
    Mutant(
        "in a set: the least over the corners",
        f"{RIVALS}.constrained.Search.below",
        r"self\.corners\.least\(g\)",
        "0.0",
        (),
    ),
    Mutant(
        "in a set: corners of half the radius",
        f"{RIVALS}.constrained.Corners.least",
        r"return -self\.radius",
        "return -0.5 * self.radius",
        (),
    ),
    Mutant(
        "by ascent: no support of the set",
        f"{RIVALS}.wide._least_product",
        r"return radius \*",
        "return 0.5 * radius *",
        (),
    ),
)


def caught(mutant: Mutant, draws: int = 40) -> bool:
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
    """Try them all."""
    alive = [mutant.name for mutant in MUTANTS if not caught(mutant)]
    print(f"{len(MUTANTS) - len(alive)} of {len(MUTANTS)} caught", *alive, sep="\n  survives: ")
    return int(bool(alive))


if __name__ == "__main__":
    sys.exit(main())
