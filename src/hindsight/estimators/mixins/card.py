"""How estimators show themselves in notebooks."""

from __future__ import annotations

import math
from typing import Any

from ...certificates.certificate import Certificate
from ...certificates.show import PLAIN, TONES, card


class CardMixin:
    """A short card above scikit-learn's diagram: what was learnt, and the first lines of the certificate."""

    def _repr_html_(self) -> str:
        from sklearn.utils import estimator_html_repr

        return f"{estimator_card(self)}{estimator_html_repr(self)}"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        from sklearn import get_config

        shown = {"text/html": self._repr_html_()} if get_config()["display"] == "diagram" else {}
        return {"text/plain": repr(self)} | shown


def estimator_card(model: Any) -> str:
    """The card of a fitted estimator; nothing where it is not fitted."""
    if not any(name.endswith("_") and not name.startswith("_") for name in vars(model)):
        return ""
    certificate: Any = getattr(model, "certificate_", None)
    if not hasattr(certificate, "verdict"):
        return card(type(model).__name__, [], PLAIN, rest=facts_of(model))
    verdict = certificate.verdict.value
    above, title = [], f"{verdict} for all classes"
    if isinstance(certificate, Certificate):
        above = certificate.opening()
        worth = f", {certificate.worth}" if certificate.worth else ""
        title = f"{verdict}{worth}: {certificate.theorem.name}"
    return card(title, above, TONES[certificate.verdict], rest=facts_of(model))


def facts_of(model: Any) -> list[str]:
    """What was learnt from, in a few words."""
    out = []
    if hasattr(model, "n_features_in_"):
        out.append(f"{model.n_features_in_:,} features")
    if (classes := getattr(model, "classes_", None)) is not None:
        some = ", ".join(map(str, classes[:5])) + (", …" if len(classes) > 5 else "")
        out.append(f"{len(classes)} classes: {some}")
    runs = getattr(model, "runs_", None)
    if runs:
        facts = [run.facts for run in runs]
        mean = math.fsum(f.loss for f in facts) / (facts[0].weight or 1.0)
        out.insert(0, f"{facts[0].rounds:,} rounds, mean loss of predictions before each {mean:.6g}")
    return out
