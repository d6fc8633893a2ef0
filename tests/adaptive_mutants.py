"""Mutants of the learners without a rate, of aggregation and of their certificates; `adaptive_truth` must notice each.

python tests/adaptive_mutants.py [WORD ...]
"""
# ruff: noqa: E501 (a mutant a line)

import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from mutants import Mutant, applied  # switches the compiler off  # isort: skip
import adaptive_truth

STREAMS = 60  # a family, at most
RUNNING = ("running-square", "running-logistic")
RIDGE = ("ridge", "vaw")
LOG, MEAN = ("aggregation-log",), ("aggregation-square", "aggregation-absolute")
SCALED = ("scale-free-square", "scale-free-logistic")
DRIFT = ("drift-log", "drift-square")

MUTANTS = (
    # --- the running geometry
    Mutant("running: a coordinate forgets its largest size", "kernels.running.keep", r"max\(state\.largest_x\[j\], abs\(x\)\)", "abs(x)", RUNNING),
    Mutant("running: steps are not squared", "kernels.running.keep", r"g \* g", "g", RUNNING),
    Mutant("running: the sum of steps has another sign", "kernels.running.keep", r"theta\[j\] \+= g", "theta[j] -= g", RUNNING),
    Mutant("running: the metric is not kept", "kernels.running.keep", r"state\.metric\[j\] = state\.fresh\[j\]", "pass", RUNNING),
    Mutant("running: weights of rows do not count", "kernels.running.scales", r"steep \* state\.heaviest\[0\] if", "steep if", RUNNING),
    Mutant("running: the range never widens", "kernels.running.meet_target", r"max\(state\.high\[0\], y\)", "state.high[0]", ("running-square",)),
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
    Mutant("band: of the targets, wherever the run started", "certificates.hindsight.lost_by_start", r"start = start_of\(run\)", "start = 0.0 * start_of(run)", ("running-absolute", "running-square")),
    # --- second order
    Mutant("ridge: the opening row counts in the headline", "certificates.hindsight.in_hindsight", r"weights\[ledger\.opens\], measured", "factors_of_rows(data, passes, False), measured", ("ridge",)),
    Mutant("verdict: a band of 1e-6", "certificates.theorems.verdict", r"1e-9", "1e-6", RIDGE),
    Mutant("ridge: an objective that is off by 1e-3 will do", "certificates.adaptive.least_squares", r"BAND \*", "1e-3 *", RIDGE),
    Mutant("ridge: the opening row counts", "certificates.ledger.opens", r"FROM_FIRST_TARGET", "('running', 'vaw')", ("ridge",)),
    Mutant("ridge: the prior does not grow", "kernels.second_order.grow_prior", r"grown = True", "grown = state.prior[i] == 0.0", RIDGE),
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
    Mutant("ridge: half the prior at u", "certificates.adaptive.distance_of", r"2\.0 \* state\.prior", "state.prior", RIDGE),
    Mutant("newton: all of the curvature", "kernels.second_order.LogisticNewton.step", r"c \* self\.kappa \* p", "c * p", ("newton",)),
    Mutant("newton: only one label of the row at hand", "kernels.second_order.LogisticNewton.dot", r"shrunk\(along, q\)", "along", ("newton",)),
    Mutant("newton: no step along the image", "kernels.second_order.LogisticNewton.step", r"d \* state\.new_right\[k\]", "0.0", ("newton",)),
    Mutant("newton: half the price", "kernels.ledger.newton_price", r"0\.5 \* \(q", "0.25 * (q", ("newton",)),
    Mutant("newton: the price without its denominator", "kernels.ledger.newton_price", r" / \(1\.0 \+ C \* q\)", "", ("newton",)),
    Mutant("newton: quadratics never exceed", "certificates.adaptive.newton", r"np\.maximum\(0\.0, b\.u\.more\)", "0.0 * b.u.more", ("newton",)),
    Mutant("newton: the quadratics' curvature at u", "certificates.theorems.quadratic_gap", r"0\.5 \* C", "C", ("newton",)),
    # --- aggregation
    Mutant("log: rate 1 whatever the weights", "kernels.aggregation.LogMixture.set_rate", r"1\.0 / c", "1.0", LOG),
    Mutant("log: weights of rows do not count", "kernels.aggregation.LogMixture.weigh_members", r"state\.rate\[0\] \* c", "state.rate[0]", LOG),
    Mutant("log: the largest member alone", "kernels.aggregation.LogMixture.mixed_margin", r"one \+= v \* p", "one = max(one, v * p)", LOG),
    Mutant("log: rates change weights", "kernels.aggregation.change_rate", r"\*= rate / state\.rate\[0\]", "*= 1.0", LOG),
    Mutant("mean: members are not clipped", "kernels.aggregation.within_range", r"return .*", "return z", ("aggregation-square",)),
    Mutant("mean: twice the rate", "kernels.aggregation.MeanMixture.set_rate", r"1\.0 / \(self\.floor", "2.0 / (self.floor", ("mixture-square",)),
    Mutant("mean: negative gaps count as positive", "kernels.aggregation.MeanMixture.weigh_members", r"max\(gap, 0\.0\)", "abs(gap)", MEAN),
    Mutant("panel: below every u, the gap ignored", "certificates.panel.below_all", r"best\.lower", "best.loss", ("below-all-square",)),
    Mutant("panel: below every u, a hundredth too early", "certificates.panel.below_all", r"\(1\.0 - NEAR\)", "1.01", ("below-all-square",)),
    Mutant("panel: below every u within reach", "certificates.panel.below_all", r"best\.reach == math\.inf and ", "", ("below-all-square",)),
    Mutant("panel: no price of aggregation", "certificates.panel.at_rate", r"math\.log\(run\.mixture\.members\)", "0.0", (*LOG, "drift-log")),
    Mutant("panel: no gaps", "certificates.panel.aggregation_price", r" \+ float\(run\.state\.gap\[0\]\)", "", (*MEAN, "drift-square")),
    Mutant("panel: the sharper form is never checked", "certificates.judge._steps", r"fault = fault or not holds", "pass", ("panel-verdicts",)),
    Mutant("panel: a broken member is passed over", "certificates.panel.signed", r"if broken:", "if False:", ("panel-verdicts",)),
    Mutant("panel: tracking is never broken", "certificates.panel.signed", r"found = Verdict\.BROKEN if .* else found", "pass", ("panel-verdicts",)),
    Mutant("panel: paid share without the distance", "certificates.panel.paid_share", r" \+ case\.share", "", ("panel-square",)),
    Mutant("panel: paid share without its price", "certificates.panel.signed", r"paid_share\(case, unit, bound\)", "paid_share(case, unit, bound - price)", ("panel-square",)),
    Mutant("panel: half the squared error", "certificates.panel.loss_measure", r"measured_unit\(.*\)", "1.0", ("panel-widrow-hoff",)),
    Mutant("panel: losses are mistakes", "certificates.panel.in_mistakes", r"run\.facts\.mistake_weight", "run.facts.loss", ("panel-mistakes",)),
    Mutant("panel: bounds of any quantity", "certificates.panel.factors_of", r"\(one\.case\.quantity in COUNTED\) is measure\.counted|math\.isclose\(.*\)(?=\])", "True", ("panel-mistakes", "panel-mixed-mistakes")),
    # --- drift
    Mutant("drift: nothing is shared", "kernels.drift.share", r" \+ drift / paid\.size", "", DRIFT),
    Mutant("drift: more is shared", "kernels.drift.share", r"drift / paid\.size", "2.0 * drift / paid.size", DRIFT),
    Mutant("drift: weights at a smaller rate", "kernels.drift.lower_rate", r"\*\* power", "** 1.0", DRIFT),
    Mutant("drift: staying is free", "certificates.panel.staying", r"return .*", "return 0.0", DRIFT),
    Mutant("drift: switching is cheap", "certificates.panel.tracking", r"math\.log\(members / run\.learner\.drift\)", "math.log(members)", DRIFT),
    Mutant("drift: a switch costs nothing", "kernels.drift.best_sequence", r"cost\[best\] \+ switch", "cost[best]", DRIFT),
    # --- the scale-free geometry
    Mutant("scale-free: sizes are forgotten", "kernels.scale_free.ScaleFree.step", r"max\(state\.largest_x\[j\], abs\(x\)\)", "abs(x)", SCALED),
    Mutant("scale-free: divided once", "kernels.scale_free.measured", r"state\.theta\[j\] / top \* unit", "state.theta[j] * unit", SCALED),
    Mutant("scale-free: the metric without its rate", "certificates.adaptive.distance_of", r"state\.largest_x\*\*2 / run\.learner\.rate\.eta", "state.largest_x**2", SCALED),
    Mutant("scale-free: half the metric", "certificates.adaptive.distance_of", r"state\.largest_x\*\*2 / run", "0.5 * state.largest_x**2 / run", SCALED),
    Mutant("scale-free: the perceptron's u in other units", "certificates.scale_free.scale_free_perceptron", r"case\.comparator\.u / sizes", "case.comparator.u", ("scale-free-perceptron",)),
    Mutant("scale-free: the perceptron's rows as they are", "certificates.scale_free.divided_rows", r" / sizes\[.*\]", "", ("scale-free-perceptron",)),
)  # fmt: skip


def caught_by(mutant: Mutant) -> str:
    """The first complaint that the mutant draws; empty where there is none."""
    with applied(mutant):
        for family in mutant.families:
            for seed in range(STREAMS):
                try:
                    found = adaptive_truth.complaints(family, 1, seed)
                except Exception as error:
                    return f"crashed: {type(error).__name__}"
                if found:
                    return f"{family} {seed}: {found[0][1]}"
    return ""


def main() -> int:
    """Print the table; 1 if one is not caught, or if the package itself draws a complaint."""
    warnings.simplefilter("ignore")
    begun, caught, words = time.perf_counter(), 0, sys.argv[1:] or [""]
    tried = [mutant for mutant in MUTANTS if any(word in mutant.name for word in words)]
    clean = [found for family in adaptive_truth.FAMILIES for found in adaptive_truth.complaints(family, 5)]
    print(f"{'no mutant':52s} | {clean or '-'}", flush=True)
    for mutant in tried:
        found = caught_by(mutant)
        caught += bool(found)
        print(f"{mutant.name:52s} | {found[:60] or 'NOT CAUGHT'}", flush=True)
    print(f"{caught} of {len(tried)} caught in {time.perf_counter() - begun:.0f} s")
    return int(bool(clean) or caught < len(tried))


if __name__ == "__main__":
    sys.exit(main())
