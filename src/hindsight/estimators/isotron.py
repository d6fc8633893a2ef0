"""Isotron, and GLM-tron over epochs: every round is a pass over all rows, with one mean update."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted

from ..batch.isotonic import check_lipschitz
from ..batch.isotron import Curve, GivenLink, LearntLink
from ..batch.links import LINK_FUNCTIONS, own_link
from ..validation import choice
from .classify import OnlineClassifier
from .rounds import ROUNDS, SweepEstimator, SweepRegressor

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

    def _part(self) -> LearntLink:
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

    def _part(self) -> LearntLink:
        return _learnt(self.lipschitz)

    def _seen(self, X: Any, y: Any, weight: np.ndarray | None) -> list[np.ndarray]:
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

    def _part(self) -> GivenLink:
        if callable(self.link):
            link = own_link(self.link, self.lipschitz)
        else:
            link = LINK_FUNCTIONS[choice("link", self.link, LINK_FUNCTIONS)]
            if self.lipschitz is not None:
                raise ValueError(f"lipschitz is for a link of your own; {self.link!r} has {link.lipschitz:g}")
        return GivenLink(link, link.lipschitz)


def _learnt(lipschitz: float | None) -> LearntLink:
    constant = check_lipschitz(lipschitz)
    return LearntLink(constant, constant if constant < math.inf else 1.0)


for _class in (IsotronRegressor, IsotronClassifier, GLMtronBatchRegressor):
    _head, _examples = str(_class.__doc__).split("\n\n    Examples\n")
    _head, _, _link = _head.partition("\n\n    link_ :")
    _common = ("" if _class is GLMtronBatchRegressor else ISOTRON.rstrip()) + ROUNDS.rstrip()
    _link = f"\n    link_ :{_link}" if _link else ""
    _class.__doc__ = f"{_head}{_common}{_link}\n\n    Examples\n{_examples}"
