"""What every estimator has: fits that change nothing if they fail, saving, a card in notebooks; and `fit`."""

from __future__ import annotations

import math
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Self, get_origin

import numpy as np

from ...certificates.certificate import Certificate, Certificates
from ...certificates.wording import PLAIN, TONES, Scores, card
from ...formatting import brief
from ...rows.matrices import joined_weights, stacked
from ...storage.fields import annotations_of, check_value, conforms, is_count
from ...storage.registry import PACKAGE, storable, want
from .rows import RowsMixin

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

LATER = ("interval", "window", "features")  # parameters that files of earlier versions do not have
TEMPORARY = ("_lock", "_ones", "_row", "_swift", "_places")  # attributes that are made again when they are needed


def register_estimator(cls: type) -> None:
    """Make estimators of a class of this package savable; user code registers its own classes with `storable`.

    Fitted attributes are checked by the ``_check_saved`` of the mixins that define them.
    """
    if cls.__module__.startswith(f"{PACKAGE}."):
        storable(cls, check=partial(check_estimator, cls), where=PACKAGE, omit=TEMPORARY, file="estimator")


def check_estimator(cls: Any, fields: dict[str, Any]) -> None:
    """Refuse saved fields if a parameter is missing, or the number or the names of features are wrong.

    What a fitted estimator must have is annotated in its class, with `Annotated` and the words of the message.
    """
    parameters = cls().get_params(deep=False)
    for name in LATER:
        if name in parameters:
            fields.setdefault(name, parameters[name])
    missing = [name for name in parameters if name not in fields]
    want(not missing, f"the parameter `{missing[0] if missing else ''}` of {cls.__name__} is missing")
    features, names = fields.get("n_features_in_"), fields.get("feature_names_in_")
    counted = features is None or (is_count(features) and features > 0)
    want(counted, f"`n_features_in_` is {features!r:.40}, but must be a count above 0")
    if names is not None:
        known = isinstance(names, np.ndarray) and names.shape == (features,) and names.dtype.kind in "OU"
        want(known, "`feature_names_in_` must have one name per feature")
    want(conforms(fields.get("fit_intercept", True), bool | int), "`fit_intercept` must be true or false")
    for name, hint in annotations_of(cls).items() if any(name.endswith("_") for name in fields) else ():
        if get_origin(hint) is Annotated:
            check_value(f"`{name}`", fields[name], hint)
    if "certificate_" in fields:
        known = isinstance(fields["certificate_"], (Certificate, Certificates))
        want(known, "`certificate_` must be a certificate")


class EstimatorMixin(RowsMixin):
    """Rows; fits that change nothing if they fail, saving to one file, and a card above scikit-learn's diagram.

    Every subclass is registered for saving under its public name.
    """

    _private_state: tuple[str, ...] = ()  # attributes of a fit whose names do not end in an underscore

    def _take_parameters(self, given: dict[str, Any]) -> None:
        """Store the parameters of a constructor, given as its ``locals()``, as attributes of the same names."""
        for name, value in given.items():
            if name != "self":
                setattr(self, name, value)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Restore every attribute if an exception leaves the block; the objects they refer to must not be modified."""
        kept = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(kept)
            raise

    def _forget_fit(self) -> None:
        """Remove the attributes of an earlier fit."""
        for name in [k for k in vars(self) if k.endswith("_") or k in self._private_state]:
            delattr(self, name)

    def _run_labels(self) -> list[str | None]:
        """The label of each run in certificates."""
        return [None]

    # ---- files

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        register_estimator(cls)

    def save(self, path: Any) -> None:
        """Write the estimator to one file.

        Parameters
        ----------
        path : str or os.PathLike
            Where to write it. `hindsight.load` reads it back as an equal estimator.
        """
        from ...storage.model import save_estimator

        save_estimator(self, path)

    # ---- notebooks

    def _repr_html_(self) -> str:
        from sklearn.utils import estimator_html_repr

        return f"{estimator_card(self)}{estimator_html_repr(self)}"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        from sklearn import get_config

        shown = {"text/html": self._repr_html_()} if get_config()["display"] == "diagram" else {}
        return {"text/plain": repr(self)} | shown


class FitMixin(EstimatorMixin):
    """`fit` from scratch: either it succeeds, or the estimator is unchanged.

    Subclasses implement `_fit`, which learns from scratch, and `certify`.
    """

    certificate_: Any

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, certify: bool = False) -> Self:
        """Learn from these rows, forgetting any earlier ones; if it raises, the estimator is unchanged.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features), or source
            Rows, in the order in which they are learnt; a source from `hindsight.open_source` is read into memory.
        y : array-like of shape (n_rows,), default=None
            Targets or labels; None with a source that has them.
        sample_weight : array-like of shape (n_rows,), default=None
            Weight of each row, which multiplies its loss; None is 1.
        certify : bool, default=False
            Whether to also compute the certificate and store it as ``certificate_``.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if y is None and callable(getattr(X, "chunks", None)):
            X, y, sample_weight = all_rows(X)
        with self._all_or_nothing():
            self._drop_certificate()
            if not self._resumes():
                self._forget_fit()
            self._fit(X, y, sample_weight)
            if certify:
                self.certificate_ = self.certify(X, y, sample_weight)
        return self

    def _resumes(self) -> bool:
        """Whether `fit` continues from the previous fit."""
        return False

    def _drop_certificate(self) -> None:
        """Drop a certificate that does not cover all rounds any more."""
        self.__dict__.pop("certificate_", None)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        raise NotImplementedError

    def certify(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        raise NotImplementedError

    def report(self, path: str | os.PathLike[str], X: Any, y: Any, sample_weight: Any = None) -> None:
        """Write a report of the training as one self-contained HTML page.

        The run is replayed over the rows to compute the certificate, which is stored as ``certificate_``, and the
        curves.

        Parameters
        ----------
        path : str or path-like
            The file; an existing one is overwritten.
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            The rows the model was trained on, in that order (all `partial_fit` calls together).
        y : array-like of shape (n_rows,)
            Targets as in training.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights as in training.

        Raises
        ------
        MismatchError
            If these are not the rows of the run.
        ValueError
            If the file cannot be written, or the model has seen only one class.
        """
        import_module(PACKAGE).report(self, path, X, y, sample_weight)


def last_step(model: Any, X: Any) -> tuple[Any, Any]:
    """The last step of a pipeline, and the rows as it saw them; any other model and its rows are returned unchanged."""
    steps = getattr(model, "steps", None)
    if steps is None or hasattr(model, "certify"):
        return model, X
    return steps[-1][1], model[:-1].transform(X) if len(steps) > 1 else X


def all_rows(source: Any) -> tuple[Any, Any, Any]:
    """The rows, targets and weights of a source."""
    chunks = [chunk for chunk in source.chunks() if len(chunk)]
    if not chunks or chunks[0].y is None:
        raise ValueError(f"{source.where}: there is no row" if not chunks else f"{source.where}: open it with a target")
    weight = joined_weights([chunk.weight for chunk in chunks], [len(chunk) for chunk in chunks])
    return stacked([chunk.X for chunk in chunks]), np.concatenate([chunk.y for chunk in chunks]), weight


def estimator_card(model: Any) -> str:
    """The card of an estimator; empty if it is not fitted."""
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


def before_each(runs: list[Any], classes: Any) -> str:
    """The quality of the progressive predictions (each made before its row was learnt), after a colon."""
    facts = [run.facts for run in runs]
    weight = facts[0].weight or 1.0
    if len(runs) > 1:
        mean = brief(math.fsum(f.loss for f in facts) / weight)
        said = f"mean {runs[0].learner.loss.name} loss {mean}, summed over the classes"
    elif classes is None:
        said = Scores(square=facts[0].square / weight).sentence()
    else:
        said = Scores(right=1.0 - facts[0].mistake_weight / weight).sentence()
    return f": {said}, each predicted before it was learnt"


def facts_of(model: Any) -> list[str]:
    """A short description of the training data."""
    out = []
    if hasattr(model, "n_features_in_"):
        out.append(f"{model.n_features_in_:,} features")
    if (classes := getattr(model, "classes_", None)) is not None:
        some = ", ".join(map(str, classes[:5])) + (", …" if len(classes) > 5 else "")
        out.append(f"{len(classes)} classes: {some}")
    runs = getattr(model, "runs_", None)
    if runs:
        out.insert(0, f"{runs[0].facts.rounds:,} rounds{before_each(runs, classes)}")
    return out
