"""Trained models as saved by the command and loaded by `hindsight.load`: prediction, certification, export."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from ..formatting import _plain
from ..online.learners import Learner, descent
from ..online.margins import each_mean
from ..online.run import Run, play, predicted
from ..rows.labels import chosen_codes, run_count, typed_labels
from ..storage.fields import check_value
from ..storage.model import opened, save, versions
from ..storage.registry import PACKAGE, storable

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from ..certificates.certificate import Certificate, Certificates
    from ..certificates.coverage import CoverageCertificate
    from ..online.facts import Facts
    from .figures import Evaluation


@partial(storable, file="model")
@dataclass
class Model:
    """A trained model: the runs of one learner, with what is needed to predict new rows and certify the old ones.

    Parameters
    ----------
    runs : list of Run
        One run, or one per label if there are more than two labels.
    names : list of str, default=None
        Names of the features; None if they are numbered.
    labels : list of str, default=None
        Labels of a classifier. With a single run, ``labels[0]`` is -1 (or 0) and ``labels[1]`` is 1. None for a
        regression.
    average : {"before", "after"}, default=None
        Predict with the mean of the iterates that `Run.mean` gives; None predicts with the last weights.
    settings : dict, default={}
        Settings of the training, as plain values.
    preparation : dict, default={}
        How rows were prepared before they were played, as plain values and arrays.
    digest : str, default=None
        SHA-256 of the training data.
    certificate : Certificate or Certificates, default=None
        The certificate of the runs.
    versions : dict of str to str
        Versions of the software that trained the model; by default the versions in use.
    progress : dict, default={}
        The progress of training, as plain values and arrays, which lets the model learn further rows.

    Raises
    ------
    ValueError
        If runs, names, labels and average do not fit together.

    Examples
    --------
    >>> import numpy as np
    >>> import hindsight
    >>> from hindsight.online import learners
    >>> from hindsight.online.run import Run, play
    >>> run = Run(learners.perceptron(), 2)
    >>> play([run], np.array([[1.0, 0.0], [0.0, 1.0]]), [np.array([1.0, -1.0])])
    >>> model = hindsight.Model([run], names=["a", "b"], labels=["no", "yes"])
    >>> model.predict(np.array([[2.0, 0.0], [0.0, 2.0]])).tolist()
    ['yes', 'no']
    """

    runs: list[Run]
    names: list[str] | None = None
    labels: list[str] | None = None
    average: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    preparation: dict[str, Any] = field(default_factory=dict)
    digest: str | None = None
    certificate: Certificate | Certificates | None = None
    versions: dict[str, str] = field(default_factory=versions)
    progress: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        from ..certificates.certificate import Certificate, Certificates

        check_value("`certificate`", fields["certificate"], Certificate | Certificates | None)
        if "labels" in fields["preparation"]:
            typed_labels(fields["labels"] or [], fields["preparation"]["labels"])

    def __post_init__(self) -> None:
        self.names, self.labels = (None if v is None else list(v) for v in (self.names, self.labels))
        runs, labels = self.runs, self.labels
        if not isinstance(runs, list) or not runs or not all(isinstance(run, Run) for run in runs):
            raise ValueError("a model must have at least one run")
        if len({(run.width, run.bias, run.averaging) for run in runs}) > 1:
            raise ValueError("the runs of a model must have the same features")
        if self.names is not None and len(self.names) != self.features:
            raise ValueError(f"{len(self.names)} names for {self.features} features")
        if labels is None and len(runs) > 1:
            raise ValueError(f"{len(runs)} runs, but no labels")
        if labels is not None and len(runs) != run_count(len(labels)):
            raise ValueError(f"{len(runs)} runs for {len(labels)} labels")
        if self.average not in (None, "before", "after"):
            raise ValueError(f"average must be None, 'before' or 'after', got {self.average!r}")
        if self.average is not None and not runs[0].averaging:
            raise ValueError("the runs kept no average")

    @property
    def learner(self) -> Learner:
        """The learner of the runs."""
        return self.runs[0].learner

    @property
    def features(self) -> int:
        """Number of features, without the intercept."""
        return self.runs[0].features

    @property
    def intercept(self) -> bool:
        """Whether there is an intercept."""
        return self.runs[0].intercept

    @property
    def facts(self) -> list[Facts]:
        """Facts of each run."""
        return [run.facts for run in self.runs]

    @property
    def weights(self) -> np.ndarray:
        """The weights that predict: one row per run, the intercept's weight last."""
        return np.array([run.weights if self.average is None else run.mean(self.average) for run in self.runs])

    @property
    def coverage(self) -> CoverageCertificate | None:
        """The coverage of the intervals during learning, each made before its row was learnt, or None."""
        if self.runs[0].coverage is None:
            return None
        from ..certificates.coverage import certify_coverage

        return certify_coverage(self.runs[0].coverage, self.labels is not None)

    @property
    def half(self) -> float:
        """Half the width of the next interval, or the largest score at which a label is in the set."""
        if self.runs[0].coverage is None:
            raise ValueError("the model was learnt without intervals: learn it with interval=0.9, or --interval 90")
        return float(self.runs[0].coverage.half)

    def margins(self, X: Any) -> np.ndarray:
        """Return the margin w·x of each row, which does not depend on the other rows.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_runs)
            The margins, one column per run.

        Raises
        ------
        RowError
            If a value is not finite, or a margin overflows.
        """
        X = X if hasattr(X, "tocsr") else np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.features:
            raise ValueError(f"the model has {self.features} features, the rows have shape {X.shape}")
        if self.average is None and not self.learner.geometry.linear:
            return predicted(self.runs, X, self.names)
        return margins(self.weights, X, self.runs[0].bias, self.names)

    def predict(self, data: Any) -> np.ndarray:
        """Return the predicted label of each row, or the predicted mean for a regression.

        Parameters
        ----------
        data : object
            The raw rows: anything that `hindsight.open_source` reads, such as a data frame with the columns that the
            model learnt from, the path of a file, dicts, or an array with the features.

        Returns
        -------
        ndarray of shape (n_rows,)
            Numbers for a regression. Labels have the type that they had in the rows: boolean, integer, float or text.
            The type of labels read from text, as in CSV, is one that fits all of them.
        """
        return self.predictions(self._margins_of(data))

    def predict_proba(self, data: Any) -> np.ndarray:
        """Return the probability of each label.

        Parameters
        ----------
        data : object
            Rows, as for `predict`.

        Returns
        -------
        ndarray of shape (n_rows, n_labels)
            The probabilities, in the order of `labels`. With more than two labels they are those of each label against
            the rest, scaled to sum to 1.

        Raises
        ------
        ValueError
            If the loss of the model gives no probabilities.
        """
        from .evaluation import probabilities

        found = probabilities(self, self._margins_of(data))
        if found is None:
            raise ValueError(f"{self.learner.name} with the loss {self.learner.loss.name} gives no probabilities")
        return found

    def predict_interval(self, data: Any) -> np.ndarray:
        """Return a range for the target of each row.

        Parameters
        ----------
        data : object
            Rows, as for `predict`.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            The lowest and the highest value.
        """
        if self.labels is not None:
            raise ValueError("the model predicts labels: predict_set gives sets of them")
        half, middle = self.half, self.predict(data)
        return np.column_stack([middle - half, middle + half])

    def predict_set(self, data: Any) -> list[tuple[Any, ...]]:
        """Return a set of labels for each row.

        Parameters
        ----------
        data : object
            Rows, as for `predict`.

        Returns
        -------
        list of tuple
            The labels in each set, of the type that `predict` returns and in the order of `labels`.
        """
        if self.labels is None:
            raise ValueError("the model predicts numbers: predict_interval gives ranges of them")
        from ..online.coverage import sets_of

        labels = typed_labels(self.labels, self.preparation.get("labels", "text")).tolist()
        return sets_of(self.learner.loss, self._margins_of(data), self.half, labels)

    def _margins_of(self, data: Any) -> np.ndarray:
        """The margins of raw rows."""
        if isinstance(data, list) and data and not isinstance(data[0], (dict, str)):
            data = np.asarray(data, float)
        from .prepare import in_order_of, open_for_model, rows_of_model

        ordered = in_order_of(self, data)
        if ordered and not isinstance(self.preparation.get("scale"), dict):
            return self.margins(data)
        parts = [self.margins(X) for X, _ in rows_of_model(self, open_for_model(self, data), ordered)]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.runs)))

    def partial_fit(self, data: Any, y: Any = None, **rows: Any) -> Model:
        """Learn from further rows, exactly as if they had followed the previous rows in one stream.

        Parameters
        ----------
        data : object
            The rows with their targets: anything that `hindsight.open_source` reads.
        y : array-like or None, default=None
            The targets of rows in memory; None takes the column that the model learnt.
        **rows
            Which rows to take: ``limit``, ``sample``, ``shuffle`` and ``seed``; and the ``format`` of a file.

        Returns
        -------
        Model
            The model itself. It is unchanged if an error is raised because a row cannot be learnt.
        """
        from .session import Session
        from .state import plan_after

        if y is not None:
            data = (data, y)
        state = Session(plan_after(self, data, **rows), model=self).run()
        later = state.to_model()
        for name in ("runs", "names", "settings", "preparation", "digest", "certificate", "progress"):
            setattr(self, name, getattr(later, name))
        return self

    def certify(self, data: Any) -> Certificate | Certificates:
        """Return the certificate over the rows that the model was trained on.

        Parameters
        ----------
        data : object
            All rows that the model learnt from, in that order; a list of paths if there were several parts.

        Returns
        -------
        Certificate or Certificates
            One certificate, or one per label if there are more than two labels; also kept as `certificate`.
        """
        from .certify import certify_model

        self.certificate = certify_model(self, data)
        return self.certificate

    def report(self, path: str | os.PathLike[str], data: Any) -> None:
        """Write a report of the training as one HTML page that loads nothing.

        The rows are read again for the curves of the run and for the certificate, which is kept as `certificate`.

        Parameters
        ----------
        path : str or path-like
            The file; one that exists is replaced.
        data : object
            All rows that the model learnt from, in that order.

        Raises
        ------
        ModelError
            If the model does not tell how its rows were read.
        MismatchError
            If these are not the rows it was trained on.
        """
        import_module(PACKAGE).report(self, path, data)

    def predictions(self, z: np.ndarray) -> np.ndarray:
        """Return the predictions given by margins: labels, or numbers for a regression."""
        if self.labels is None:
            return each_mean(self.learner.loss, z[:, 0])
        return typed_labels(self.labels, self.preparation.get("labels", "text"))[chosen_codes(z)]

    def evaluate(self, data: Any, y: Any = None, **options: Any) -> Evaluation:
        """Score the predictions on rows that have targets.

        Parameters
        ----------
        data : object
            The raw rows: anything that `hindsight.open_source` reads.
        y : array-like or None, default=None
            The targets of rows in memory; None takes the column that the model learnt.
        **options
            Those of `hindsight.evaluate`.

        Returns
        -------
        Evaluation
            The figures.
        """
        from .evaluation import evaluate

        return evaluate(self, data, y, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, atomically; `hindsight.load` returns an equal one.

        Parameters
        ----------
        path : str or path-like
            The file; one that exists is replaced.

        Raises
        ------
        ModelError
            If a setting cannot be saved, or the file cannot be written.
        """
        save(path, "model", self)


def margins(weights: np.ndarray, X: Any, bias: float, names: Sequence[Any] | None = None) -> np.ndarray:
    """Return the margins of rows, summed in the same order as during learning.

    Parameters
    ----------
    weights : ndarray of shape (n_runs, width)
        One row per run, the intercept's weight last.
    X : array or CSR matrix
        The rows, float64 or float32.
    bias : float
        1 if there is an intercept, 0 otherwise.
    names : sequence, default=None
        Names of the features, for errors.

    Returns
    -------
    ndarray of shape (n_rows, n_runs)
        The margins.

    Raises
    ------
    RowError
        If a value is not finite, or a margin overflows.
    """
    learner, features = descent(), weights.shape[1] - bool(bias)
    runs = [Run(learner, features, intercept=bool(bias), start=w) for w in weights]
    z, nothing = np.empty((X.shape[0], len(runs))), np.zeros(X.shape[0])
    play(runs, X, [nothing] * len(runs), nothing, z, names, idle=True)  # rows of weight 0: nothing is learnt
    return z


# ---------------------------------------------------------------- files, and what they hold


def open_model(path: str) -> Model:
    """The model of a file, or the one inside a saved estimator.

    Parameters
    ----------
    path : str
        A file that `Model.save`, or `save` of an estimator, wrote.

    Returns
    -------
    Model

    Raises
    ------
    ModelError
        If the file does not hold a model.
    ValueError
        If it holds an estimator that has no runs.
    """
    return model_of(path, *opened(path))


def model_of(path: str, found: Any, versions: dict[str, str]) -> Model:
    """The content of a file as a model; see `open_model`."""
    if isinstance(found, Model):
        return found
    runs = getattr(found, "runs_", None)
    if not runs:
        raise ValueError(f"{path}: holds a {type(found).__name__} without runs: open it with hindsight.load in Python")
    features = found.n_features_in_
    for run in runs:  # rows given as dicts may have left room for names to come
        if run.features > features:
            run.resize(features)
    names = getattr(found, "feature_names_in_", None)
    if names is None:
        names = vars(found).get("_column")
    classes = getattr(found, "classes_", None)
    settings = {"estimator": type(found).__name__} | found.get_params(deep=False)
    return Model(
        runs,
        None if names is None else [str(name) for name in names],
        None if classes is None else [str(label) for label in classes],
        found.average,
        settings,
        certificate=getattr(found, "certificate_", None),
        versions=versions,
    )


def describe_model(model: Model) -> str:
    """The learner of a model, and the weights used for prediction, in one line."""
    from .plan import describe_learner

    mean = "" if model.average is None else f", mean of the weights {model.average} each step"
    return describe_learner(model.learner) + mean


def link_of(model: Model) -> str:
    """The name of the link of a model's loss; "identity" if the loss does not define one."""
    return getattr(model.learner.loss, "link", None) or "identity"


def has_probability(model: Model) -> bool:
    """Whether the link maps a margin to the probability of the second of two labels."""
    return has_probabilities(model) and len(model.runs) == 1


def has_probabilities(model: Model) -> bool:
    """Whether the link maps margins to probabilities of the labels; those of several labels are scaled to sum to 1."""
    return model.labels is not None and model.learner.targets == "unit" and link_of(model) != "identity"


def feature_name(model: Model, j: int) -> str:
    """The name of feature j."""
    return f"column {j}" if model.names is None else model.names[j]


def to_portable(model: Model) -> dict[str, Any]:
    """A model as plain values: prediction = link(weights · x + intercept), or the label chosen by the margins.

    Parameters
    ----------
    model : Model
        The model.

    Returns
    -------
    dict
        Numbers, text, lists and dicts, ready for JSON. "outputs" has one entry per run with its nonzero weights by
        name; "decide" says whether the prediction is a "value", the "sign" of the margin, or the "argmax" over the
        labels.
    """
    decide = "value"
    if model.labels is not None:
        decide = "sign" if len(model.runs) == 1 else "argmax"
    outputs = []
    for k, w in enumerate(model.weights.tolist()):
        outputs.append(
            {
                "label": None if model.labels is None else model.labels[k if len(model.runs) > 1 else 1],
                "intercept": w.pop() if model.intercept else 0.0,
                "weights": {feature_name(model, j): value for j, value in enumerate(w) if value != 0.0},
            }
        )
    found = {
        "format": "hindsight linear model",
        "version": 1,
        "learner": model.learner.name,
        "features": model.features,
        "link": link_of(model),
        "decide": decide,
        "labels": model.labels,
        "outputs": outputs,
        "preparation": model.preparation,
    }
    return dict(_plain(found))
