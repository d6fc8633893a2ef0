"""Isotron, and GLM-tron over epochs: every round is a pass over all rows, with one mean update."""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from ..facts import Facts
from ..isotonic import check_lipschitz
from ..isotron import LINKS, Curve, History, Known, Learnt, Sweep, own_link, play_rounds
from ..learners import choice, number
from ..rivals import Data
from ..run import check_targets, check_weights
from .base import FitMixin, OnlineEstimator
from .classify import OnlineClassifier
from .regress import OnlineRegressor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..certificate import Certificate, Certificates


class SweepEstimator(FitMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators that learn in rounds over all rows; a concrete one has a constructor and `_part`."""

    rounds: int
    eta: float | None
    held_out: float
    random_state: Any
    warm_start: bool
    verbose: bool
    histories_: list[History]
    _facts: list[Facts]
    _rows: tuple[np.ndarray, np.ndarray] | None
    n_features_in_: int

    _read, _kept, _restore = OnlineEstimator._read, OnlineEstimator._kept, OnlineEstimator._restore

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _part(self) -> Any:
        raise TypeError(f"{type(self).__name__} must say which link it has")

    def _seen(self, X: Any, y: Any) -> list[np.ndarray]:
        raise TypeError(f"{type(self).__name__} must say what it learns")

    def _bias(self) -> float:
        return 1.0 if getattr(self, "fit_intercept", False) else 0.0

    # ---- learning

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        if not isinstance(self.rounds, (int, np.integer)) or isinstance(self.rounds, bool) or self.rounds < 1:
            raise ValueError(f"rounds must be a whole number, at least 1; got {self.rounds!r}")
        X = self._read(X, reset=True, ensure_all_finite=False)
        targets = self._seen(X, y)
        self._rows = self._split(X.shape[0])
        weight = self._weight(X, sample_weight)
        last = self.__dict__.get("_last") if self.warm_start else None
        self.histories_, self._facts = [], []
        for k, target in enumerate(targets):
            sweep = self._sweep(X, target, weight, 0)
            held = self._sweep(X, target, weight, 1) if self._rows is not None else None
            start = None
            if last is not None and len(last) == len(targets) and last[k].size == sweep.width:
                start = last[k] * sweep.scale
            with _progress(self.rounds, self.verbose) as tell:
                history = play_rounds(sweep, int(self.rounds), start, held=held, tell=tell)
            self.histories_.append(history)
            self.eta_, self.x_scale_ = sweep.eta, sweep.scale
            self._facts.append(history.facts(sweep))
        self._last = [h.last / self.x_scale_ for h in self.histories_]
        self.n_iter_ = int(self.rounds)

    def _split(self, m: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Training and held-out rows, or None for all."""
        share = self.held_out
        if isinstance(share, bool) or not isinstance(share, (int, float, np.floating)) or not 0.0 <= share < 1.0:
            raise ValueError(f"held_out must be a share of the rows, 0 <= held_out < 1; got {share!r}")
        if share == 0.0:
            return None
        order = check_random_state(self.random_state).permutation(m)
        held = max(1, round(share * m))
        if held >= m:
            raise ValueError(f"held_out = {share:g} of {m} rows leaves none to learn from")
        return np.sort(order[held:]), np.sort(order[:held])

    def _weight(self, X: Any, sample_weight: Any) -> np.ndarray | None:
        if sample_weight is None:
            return None
        weight: np.ndarray = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=False, allow_all_zero_weights=True
        )
        check_weights(weight)
        return weight

    def _sweep(self, X: Any, y: np.ndarray, weight: np.ndarray | None, which: int) -> Sweep:
        """The training rows (0) or the held-out ones (1) as played."""
        if self._rows is not None:
            rows = self._rows[which]
            X, y, weight = X[rows], y[rows], None if weight is None else weight[rows]
            if weight is not None:
                check_weights(weight)
        eta = None if self.eta is None else number("eta", self.eta, 0)
        unit = bool(getattr(self, "scale_x", False))
        names = getattr(self, "feature_names_in_", None)
        return Sweep(X, y, weight, self._part(), eta, bias=self._bias(), unit=unit, names=names)

    # ---- what was learnt

    @property
    def facts_(self) -> Any:
        """Facts of the rounds, a round being a pass; for one-vs-rest a list, in the order of `classes_`."""
        check_is_fitted(self)
        facts: list[Facts] = self._facts
        return facts[0] if len(facts) == 1 else facts

    @property
    def losses_(self) -> np.ndarray:
        """Mean squared error of the training rows in every round; for one-vs-rest a row a class."""
        check_is_fitted(self)
        losses = np.array([h.loss for h in self.histories_])
        return losses[0] if len(losses) == 1 else losses

    @property
    def best_round_(self) -> Any:
        """The round, from 1, whose iterate predicts."""
        check_is_fitted(self)
        best = [h.best + 1 for h in self.histories_]
        return best[0] if len(best) == 1 else best

    def _weights(self) -> np.ndarray:
        check_is_fitted(self)
        return np.array([h.w for h in self.histories_]) / self.x_scale_

    def _means(self, X: Any) -> np.ndarray:
        """What each run predicts, a column a run."""
        check_is_fitted(self)
        X = self._read(X, reset=False)
        data = Data(X, np.zeros(X.shape[0]), None, self._bias())
        part = self._part()
        columns = [part.at(h.link, data.margins(w)) for h, w in zip(self.histories_, self._weights(), strict=True)]
        return np.stack(columns, axis=1)

    def certify(
        self, X: Any, y: Any, sample_weight: Any = None, *, planted: Any = None, u: Any = None
    ) -> Certificate | Certificates:
        """The certificate of the rounds: their losses, what the theorem promises, and whether it applies.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`.
        planted : the w* with y = u(w*.x), to be checked on the rows (the intercept's weight last). Without one Isotron
            is UNCHECKABLE, and GLM-tron certified in its matching loss.
        u : for GLM-tron, a comparator to take instead of the best in hindsight.
        """
        from ..certificate import Certificates
        from ..isotron_certificate import certify_sweep

        check_is_fitted(self)
        X = self._read(X, reset=False, ensure_all_finite=False)
        weight = self._weight(X, sample_weight)
        labels = self._labels_of_runs()
        each = tuple(
            certify_sweep(self._sweep(X, target, weight, 0), history, planted=planted, u=u, label=label)
            for target, history, label in zip(self._seen(X, y), self.histories_, labels, strict=True)
        )
        return each[0] if len(each) == 1 else Certificates(each)

    def _labels_of_runs(self) -> list[str | None]:
        return [None]


class SweepRegressor(RegressorMixin, SweepEstimator):  # type: ignore[misc]
    """Base of the regressors."""

    _targets = OnlineRegressor._targets
    y_offset_: float
    y_scale_: float

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # a fixed number of rounds promises a bound, not a score
        return tags

    def _seen(self, X: Any, y: Any) -> list[np.ndarray]:
        target = self._targets(X, y)[0]
        check_targets("real", target)
        if not hasattr(self, "y_offset_"):
            self.y_offset_, self.y_scale_ = 0.0, 1.0
            if getattr(self, "scale_y", False):
                self.y_offset_ = float(target.min())
                self.y_scale_ = float(target.max() - target.min()) or 1.0
        return [(target - self.y_offset_) / self.y_scale_]

    @property
    def coef_(self) -> np.ndarray:
        """The weights of the features, of the best round; on the rows as given."""
        return self._weights()[0, : self.n_features_in_]

    @property
    def intercept_(self) -> float:
        """The weight of the constant coordinate; 0 without one."""
        return float(self._weights()[0, -1]) if self._bias() else 0.0

    def predict(self, X: Any) -> np.ndarray:
        """What the best iterate predicts for each row, through its link."""
        means = self._means(X)[:, 0]
        return self.y_offset_ + self.y_scale_ * means


ROUNDS = """
    rounds : how many, at least 1.
    eta : step; None is 1/(lambda X2^2), X2 the largest |x|_2 of the rows with weight.
    held_out : share of the rows, drawn by `random_state`, that picks the best iterate; 0 picks it by the training loss.
    random_state : of that draw.
    warm_start : whether `fit` goes on from the last weights of the fit before.
    verbose : whether to show the progress of the rounds, on stderr.

    Attributes
    ----------
    losses_ : mean squared error in every round. best_round_ : the round, from 1, whose iterate predicts.
    coef_, eta_, facts_ : the weights of that round, the step, the facts of all rounds.
"""
ISOTRON = """
    lipschitz : None takes the link from isotonic regression (then lambda = 1 in the step and in the theorem); a
        constant L from Lipschitz isotonic regression: L-Isotron, for data with noise (lambda = L).
    scale_x : divide the rows by X2; undone in `coef_`, the divisor is `x_scale_`.
"""


class IsotronRegressor(SweepRegressor):
    """Isotron (N4 Theorem 3.1): a linear direction and the nondecreasing link on it, both learnt.

    In each round the link u_t is the isotonic regression of y on the margins w_t.x, and
    w_{t+1} = w_t + eta mean((y - u_t(w_t.x)) x), from w_1 = 0. If y = u(w*.x) with u nondecreasing and
    lambda-Lipschitz, the mean squared errors of all rounds add up to at most lambda^2 X2^2 |w*|^2.

    Parameters
    ----------
    scale_y : map y to [0, 1] by its least and largest value; undone in `predict`, reported as `y_offset_`, `y_scale_`.

    link_ : the learnt link, ready to plot: knots z and the mean there, straight between and level beyond.

    Examples
    --------
    >>> model = IsotronRegressor(rounds=3).fit([[1.0], [-1.0]], [0.9, 0.1])
    >>> model.predict([[1.0], [0.0], [-5.0]])
    array([0.9, 0.5, 0.1])
    >>> print(model.certify([[1.0], [-1.0]], [0.9, 0.1], planted=[0.4]).lines()[4].strip())
    the theorem promises at most 0.16; met with equality
    """

    def __init__(
        self,
        lipschitz: float | None = None,
        rounds: int = 100,
        eta: float | None = None,
        *,
        scale_x: bool = False,
        scale_y: bool = False,
        held_out: float = 0.0,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self.lipschitz = lipschitz
        self.rounds = rounds
        self.eta = eta
        self.scale_x = scale_x
        self.scale_y = scale_y
        self.held_out = held_out
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def _part(self) -> Learnt:
        return _learnt(self.lipschitz)

    @property
    def link_(self) -> Curve:
        """The learnt link in the units of y."""
        check_is_fitted(self)
        z, mean = self.histories_[0].link.knots()
        return Curve(z, self.y_offset_ + self.y_scale_ * mean)


class IsotronClassifier(ClassifierMixin, SweepEstimator):  # type: ignore[misc]
    """Isotron on labels: probabilities through a link that is learnt, calibrated on the training rows (N4 §2, §3).

    For two classes the target is 1 for classes_[1]; the isotonic link makes the mean of the labels at every level the
    level itself. More classes are one against the rest, scaled to sum to 1.

    Parameters
    ----------

    link_ : the learnt link (a list of them, one a class, for more than two classes).

    Examples
    --------
    >>> model = IsotronClassifier(rounds=5).fit([[-2.0], [-1.0], [1.0], [2.0]], ["no", "no", "yes", "yes"])
    >>> model.predict_proba([[-1.0], [0.0], [1.0]])
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """

    _labels = OnlineClassifier._labels

    def __init__(
        self,
        lipschitz: float | None = None,
        rounds: int = 100,
        eta: float | None = None,
        *,
        scale_x: bool = False,
        held_out: float = 0.0,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self.lipschitz = lipschitz
        self.rounds = rounds
        self.eta = eta
        self.scale_x = scale_x
        self.held_out = held_out
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def _part(self) -> Learnt:
        return _learnt(self.lipschitz)

    def _seen(self, X: Any, y: Any) -> list[np.ndarray]:
        y = self._labels(X, y)
        if not hasattr(self, "classes_"):
            self.classes_ = unique_labels(y)
            if len(self.classes_) < 2:
                raise ValueError(f"there must be at least two classes, got one class: {self.classes_.item(0)!r}")
        ours = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        return [(y == label).astype(np.float64) for label in ours]

    def _labels_of_runs(self) -> list[str | None]:
        return [None] if len(self.histories_) == 1 else [str(label) for label in self.classes_]

    @property
    def coef_(self) -> np.ndarray:
        """The weights of the features, a row a run."""
        return self._weights()

    @property
    def link_(self) -> Any:
        """The learnt link; for one-vs-rest a list, in the order of `classes_`."""
        check_is_fitted(self)
        curves = [Curve(*h.link.knots()) for h in self.histories_]
        return curves[0] if len(curves) == 1 else curves

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probabilities of the classes, a column each."""
        p = self._means(X)
        if p.shape[1] == 1:
            return np.hstack([1.0 - p, p])
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0.0, p / np.where(total > 0.0, total, 1.0), 1.0 / p.shape[1])

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row: the likeliest, the first of equals."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[likeliest])


class GLMtronBatchRegressor(SweepRegressor):
    """GLM-tron over epochs (N4 Theorem 1.1 with the mean update of §3), for a known link u.

    w_{t+1} = w_t + eta mean((y - u(w_t.x)) x). If y = u(w*.x) and eta lambda X2^2 < 2, the mean squared errors of all
    rounds add up to at most |w*|^2/(eta (2/lambda - eta X2^2)). It is gradient descent on the mean matching loss,
    which the certificate speaks of when no w* is declared.

    Parameters
    ----------
    link : "identity", "logistic", "probit", "clipped" (linear, clipped to [0, 1]), "tanh" ((1 + tanh z)/2), or a
        function of an array of margins, or of one margin if numba can compile it; it is checked at all margins seen.
    lipschitz : the Lipschitz constant of a link of your own.
    fit_intercept : a constant coordinate 1, which counts in the norms.

    Examples
    --------
    >>> model = GLMtronBatchRegressor("identity", rounds=1, fit_intercept=False).fit([[1.0], [-1.0]], [0.5, -0.5])
    >>> float(model.certify([[1.0], [-1.0]], [0.5, -0.5], planted=[0.5]).bound)
    0.25
    """

    def __init__(
        self,
        link: Any = "logistic",
        rounds: int = 100,
        eta: float | None = None,
        *,
        lipschitz: float | None = None,
        fit_intercept: bool = True,
        held_out: float = 0.0,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self.link = link
        self.rounds = rounds
        self.eta = eta
        self.lipschitz = lipschitz
        self.fit_intercept = fit_intercept
        self.held_out = held_out
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def _part(self) -> Known:
        if callable(self.link):
            link = own_link(self.link, self.lipschitz)
        else:
            link = LINKS[choice("link", self.link, LINKS)]
            if self.lipschitz is not None:
                raise ValueError(f"lipschitz is for a link of your own; {self.link!r} has {link.lipschitz:g}")
        return Known(link, link.lipschitz)


def _learnt(lipschitz: float | None) -> Learnt:
    constant = check_lipschitz(lipschitz)
    return Learnt(constant, constant if constant < math.inf else 1.0)


@contextmanager
def _progress(rounds: int, verbose: bool) -> Iterator[Callable[[int, float], None] | None]:
    """What tells the progress of the rounds, if asked to."""
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("round 0", total=rounds)
        yield lambda t, loss: bar.update(task, completed=t, description=f"round {t}: loss {loss:.6g}")


for _class in (IsotronRegressor, IsotronClassifier, GLMtronBatchRegressor):
    _head, _examples = str(_class.__doc__).split("\n\n    Examples\n")
    _head, _, _link = _head.partition("\n\n    link_ :")
    _common = ("" if _class is GLMtronBatchRegressor else ISOTRON.rstrip()) + ROUNDS.rstrip()
    _link = f"\n    link_ :{_link}" if _link else ""
    _class.__doc__ = f"{_head}{_common}{_link}\n\n    Examples\n{_examples}"
