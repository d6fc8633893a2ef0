"""What every estimator has: rows, fits that change nothing if they fail, saving, and a card in notebooks."""

from __future__ import annotations

import math
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, get_origin

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d, validate_data

from ...certificates.certificate import Certificate, Certificates
from ...certificates.wording import PLAIN, TONES, Scores, card
from ...formatting import brief
from ...rows.matrices import checked, joined_weights, stacked
from ...storage.fields import annotations_of, check_value, conforms, is_count
from ...storage.registry import PACKAGE, storable, want
from ...validation import check_numbers
from .rows import check_columns, require_y

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FLOATS = [np.float64, np.float32]
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


class Estimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """Rows; fits that change nothing if they fail, saving to one file, and a card above scikit-learn's diagram.

    Every subclass is registered for saving under its public name.
    """

    n_features_in_: int
    feature_names_in_: np.ndarray
    _takes_sparse = False  # whether rows may be a sparse matrix
    _bounds_loss = False  # whether theorems give a bound, not a good score on any data with default parameters
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

    # ---- rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        if self._bounds_loss:
            (tags.regressor_tags or tags.classifier_tags).poor_score = True
        return tags

    def _read(self, X: Any, reset: bool, *, ordered: bool = True, **checks: Any) -> Any:
        """X as a float array or CSR matrix, without a copy if it is one already; `reset` records its features.

        A sparse matrix is `checked` before it is read, and its column indices as well unless `ordered` is False.
        """
        checks |= {"accept_sparse": "csr" if self._takes_sparse else False, "dtype": FLOATS}
        if self._takes_sparse and hasattr(X, "tocsr"):
            X = checked(X, ordered)
        frame = X if isinstance(X, np.ndarray) else nw.from_native(X, eager_only=True, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            check_numbers(X, "X")
            return validate_data(self, X, reset=reset, **checks)
        validate_data(self, X, reset=reset, skip_check_array=True)
        check_columns(frame)
        return check_array(frame.to_numpy(), **checks)

    def _matrix(self, X: Any, reset: bool) -> Any:
        """X as `_read` returns it, without checks for finite values and sorted indices.

        Learning checks both while it reads the rows; another pass over them would double the time.
        """
        return self._read(X, reset, ordered=False, ensure_all_finite=False)

    @property
    def _feature_names(self) -> Sequence[Any] | None:
        """Names of the features for error messages; None if they have none."""
        return getattr(self, "feature_names_in_", None)

    def _target(self, X: Any, y: Any) -> np.ndarray:
        """The targets as numbers, one per row."""
        require_y(self, y)
        if not (type(y) is np.ndarray and y.ndim == 1 and y.dtype in FLOATS):  # those need no check
            check_numbers(y, "y")
            y = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite=False), warn=True)
        check_consistent_length(X, y)
        return np.ascontiguousarray(y, np.float64)

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
        return card(type(model).__name__, [], PLAIN, rest=fact_lines(model))
    verdict = certificate.verdict.value
    above, title = [], f"{verdict} for all classes"
    if isinstance(certificate, Certificate):
        above = certificate.opening()
        worth = f", {certificate.worth}" if certificate.worth else ""
        title = f"{verdict}{worth}: {certificate.theorem.name}"
    return card(title, above, TONES[certificate.verdict], rest=fact_lines(model))


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


def fact_lines(model: Any) -> list[str]:
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
