"""`hindsight learn --learner isotron`: in batches, so all rows are read first and every round is a pass over them."""

from __future__ import annotations

import json
import sys
from typing import Any


def learn_isotron(
    data: str,
    target: str | None,
    reading: dict[str, Any],
    some: dict[str, Any],
    rounds: int,
    lipschitz: float | None,
    eta: str | None,
    certify: bool,
    save: str | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Read, fit, and print what came of it; the exit status."""
    from ..certificates.theorems import Verdict
    from ..estimators.isotron import IsotronClassifier, IsotronRegressor
    from ..training.session import everything

    X, y, weight, names, _ = everything(data, target, reading, **some)
    labels = y.dtype.kind == "U"
    try:
        step = None if eta is None else float(eta)
    except ValueError:
        raise ValueError(f"--eta must be a number above 0; got {eta!r}") from None
    kind = IsotronClassifier if labels else IsotronRegressor
    model = kind(lipschitz, rounds, step, verbose=not quiet and sys.stderr.isatty())
    model.fit(X, y, weight)
    losses = [history.loss for history in model.histories_]
    best = [history.best + 1 for history in model.histories_]
    how = "isotonic regression" if lipschitz is None else f"slopes at most {lipschitz:g}"
    if not quiet:
        tell(f"{data}  target {target!r}" if target else data)
        tell(f"  isotron, link by {how}, η = {model.eta_:g}, {rounds} rounds")
        for k, each in enumerate(losses):
            if len(losses) > 1:
                tell(f"  {model.classes_[k]} against the rest")
            tell(f"{'round':>12} {'mean squared error':>20}")
            for t in sorted({min(len(each), 2**i) for i in range(len(each).bit_length() + 1)}):
                tell(f"{t:>12,} {each[t - 1]:>20.6g}")
    made = model.certify(X, y, weight) if certify else None
    if save is not None:
        model.save(save)
    if as_json:
        out: dict[str, Any] = {"data": data, "rows": X.shape[0], "features": X.shape[1], "rounds": rounds}
        out |= {"losses": [list(map(float, each)) for each in losses], "best_round": list(map(int, best))}
        weights = model.coef_.reshape(-1, X.shape[1])
        out["weights"] = [dict(zip(names, w.tolist(), strict=True)) for w in weights]
        print(json.dumps(out | ({"certificate": made.to_dict()} if made is not None else {})))
    else:
        print(f"{X.shape[0]:,} rows × {X.shape[1]:,} features")
        for t, each in zip(best, losses, strict=True):
            print(f"mean squared error {each[t - 1]:.6g} in round {t}, the best of {rounds}")
        for line in made.lines() if made is not None else []:
            print(line)
    return int(made is not None and made.verdict is Verdict.BROKEN)


def tell(line: str) -> None:
    """Something that is no result."""
    print(line, file=sys.stderr, flush=True)
