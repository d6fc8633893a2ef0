"""The generative approach of N0: a density for each class, and Bayes' rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ..density import Bernoulli, Exponential, FullGaussian, Gaussian, Keyed, Poisson, Product
from ..density.base import Density, learn
from ..density.product import columns_of
from ..errors import RowError
from ..kernels import densities as kernels
from ..validation import choice
from .base import SaveMixin
from .classify import OnlineClassifier

NAMES: dict[str, Any] = {
    "gaussian": lambda d: Gaussian(columns=d),
    "full": lambda d: FullGaussian(d),
    "bernoulli": lambda d: Bernoulli(columns=d),
    "poisson": lambda d: Poisson(columns=d),
    "exponential": lambda d: Exponential(columns=d),
}


class GenerativeClassifier(SaveMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """A density for each class and Bayes' rule (N0): P(class | x) is proportional to P(class)·p(x | class).

    Everything stays in the log domain, so many columns don't underflow. Each class has its own parameters (unequal
    covariances). A class that was declared but never seen is predicted by the prior of its density.

    Parameters
    ----------
    density : "gaussian" (independent columns), "full" (all covariances), "bernoulli", "poisson", "exponential"; or a
        density (what it learnt doesn't count), for every class; or a mapping of classes to such. With `Product` or
        `Keyed` rows may be a dataframe or a mapping of names to columns; then columns need not be numbers.
    priors : P(class) in the order of the classes; None learns them, (n_c + ½)/(n + ½·classes).
    crowd : where `density` is a name, each class starts from what the rows of all classes together look like, worth so
        many rows (while there are fewer than two, the columns say nothing); 0 keeps the weak prior of the density.

    Examples
    --------
    >>> heights, sex = [[160.0], [165.0], [170.0], [175.0], [180.0], [185.0]], list("fffmmm")
    >>> GenerativeClassifier().fit(heights, sex).predict([[162.0], [182.0]])
    array(['f', 'm'], dtype='<U1')
    """

    classes_: np.ndarray
    class_count_: np.ndarray
    n_features_in_: int

    def __init__(self, density: Any = "gaussian", *, priors: Any = None, crowd: float = 2.0) -> None:
        self.density = density
        self.priors = priors
        self.crowd = crowd

    # ---- learning

    def fit(self, X: Any, y: Any) -> Self:
        """Learn anew from these rows."""
        kept = dict(self.__dict__)
        try:
            for name in [name for name in self.__dict__ if name.endswith("_") or name in ("_bank", "_each")]:
                delattr(self, name)
            return self.partial_fit(X, y)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(kept)
            raise

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Go on learning from these rows; the first call declares all classes (without `classes`, those in y)."""
        self._go(X, y, classes, self._learn)
        return self

    def progressive(self, X: Any, y: Any, classes: Any = None) -> np.ndarray:
        """ln P(class | x) of each row before it is learnt, a column a class; then it is learnt, as by `partial_fit`."""
        joint = self._go(X, y, classes, self._predict_and_learn)
        return np.asarray(joint - logsumexp(joint, axis=1, keepdims=True))

    def _go(self, X: Any, y: Any, classes: Any, do: Any) -> Any:
        """Read the rows, declare the classes if that is to be done, and do it; on an error all is as before."""
        kept = dict(self.__dict__)
        try:
            fresh = not hasattr(self, "classes_")
            X = self._rows(X, reset=fresh)
            first = next(iter(X.values())) if isinstance(X, dict) else X
            y = OnlineClassifier._labels(self, first, y, known=not fresh or classes is not None)
            if fresh:
                self._declare(unique_labels(y if classes is None else classes))
            elif classes is not None and not np.array_equal(unique_labels(classes), self.classes_):
                raise ValueError(f"classes={classes!r} is not the same as declared before: {self.classes_.tolist()}")
            self._fits(X)
            codes = self._codes(y)
            done = do(X, codes)
            self.class_count_ = self.class_count_ + np.bincount(codes, minlength=len(self.classes_))
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(kept)
            raise
        return done

    def _rows(self, X: Any, reset: bool) -> Any:
        """A matrix of numbers, or named columns where the densities take those."""
        if not self._named():
            return matrix(self, X, reset)
        columns = columns_of(X)
        if columns is None:
            X = np.asarray(X)
            if X.ndim != 2:
                raise ValueError(f"rows must be a 2-D array, a dataframe or a mapping of columns; got shape {X.shape}")
        count = X.shape[1] if columns is None else len(columns)
        if reset:
            self.n_features_in_ = count
        elif count != self.n_features_in_:
            raise ValueError(f"X has {count} features, but the model is expecting {self.n_features_in_}")
        return X if columns is None else {name: np.asarray(values) for name, values in columns.items()}

    def _fits(self, X: Any) -> None:
        """Named columns need densities that know names."""
        plain = [d for d in [self._bank, *self._each] if d is not None and not isinstance(d, (Product, Keyed))]
        if isinstance(X, dict) and plain:
            raise ValueError(f"rows with named columns need a Product or Keyed for every class, not {plain[0]!r}")

    def _named(self) -> bool:
        given = self.density.values() if isinstance(self.density, Mapping) else [self.density]
        return any(isinstance(density, (Product, Keyed)) for density in given)

    def _declare(self, classes: np.ndarray) -> None:
        self.classes_ = classes
        self.class_count_ = np.zeros(len(classes))
        self._log_priors()
        if not 0.0 <= self.crowd < np.inf:
            raise ValueError(f"crowd must be a finite number of rows, at least 0; got {self.crowd!r}")
        one = None if isinstance(self.density, Mapping) else self._make(self.density)
        if isinstance(one, Keyed) and one.spill is not None:
            raise ValueError("each class needs a file of its own to spill to: give a mapping of classes to densities")
        self._bank: Density | None = None
        self._each: list[Any] = []
        if isinstance(one, Density) and one.forget == 1.0 and not getattr(one, "grows", False):
            # all classes in one set of arrays, a slot each, so that one pass over the rows learns them
            one.n, one.state = np.zeros(len(classes)), np.zeros((len(classes), *one.state.shape[1:]))
            self._bank = one
        elif one is not None:
            self._each = [one.fresh() for _ in classes]
        else:
            absent = [label for label in classes.tolist() if label not in self.density]
            if absent:
                raise ValueError(f"density has no entry for class {absent[0]!r} (it has {list(self.density)})")
            self._each = [self._make(self.density[label]) for label in classes.tolist()]

    def _make(self, density: Any) -> Any:
        if isinstance(density, str):
            return NAMES[choice("density", density, NAMES)](self.n_features_in_)
        if not hasattr(density, "logp"):
            raise ValueError(f"density must be a name of {', '.join(NAMES)}, a density or a mapping; got {density!r}")
        if density.columns != self.n_features_in_ and not self._named():
            raise ValueError(f"{density!r} is over {density.columns} columns, but the rows have {self.n_features_in_}")
        return density.fresh()

    def _codes(self, y: np.ndarray) -> np.ndarray:
        codes = np.full(len(y), -1, np.int32)
        for k, label in enumerate(self.classes_):
            codes[y == label] = k
        if codes.size and codes.min() < 0:
            row = int(np.flatnonzero(codes < 0)[0])
            raise RowError(row, f": class {y[row].item()!r} was not declared (classes={self.classes_.tolist()})")
        return codes

    def _learn(self, X: Any, codes: np.ndarray) -> None:
        if self._bank is not None:
            bank = self._bank.copy()
            learn(bank, codes, bank._numbers(X))
            self._bank = bank
            return
        held = [np.flatnonzero(codes == k) for k in range(len(self._each))]
        each = self._copies(X, held)
        for k, density in enumerate(each):
            self._at(held[k], density.update, taken(X, held[k]))
        self._each = each

    def _predict_and_learn(self, X: Any, codes: np.ndarray) -> np.ndarray:
        out = np.empty((len(codes), len(self.classes_)))
        if self._bank is not None:
            bank = self._bank.copy()
            rows = bank._numbers(X)
            bank._refuse(rows)
            crowd = bank.pooled()
            n, state = np.append(bank.n, crowd.n), np.concatenate([bank.state, crowd.state])
            part = type(bank.part)(bank.part.prior.copy())
            kernels.contest(part, bank.part.prior, self._worth(), codes, rows, n, state, out)
            bank.n, bank.state = n[:-1], state[:-1]
            self._bank = bank
        else:
            each = self._copies(X, [np.flatnonzero(codes == k) for k in range(len(self._each))])
            for t, k in enumerate(codes.tolist()):
                here = np.array([t])
                row = taken(X, here)
                if self._worth() > 0.0 and self.class_count_.sum() + t < 2:
                    out[t] = 0.0
                else:
                    out[t] = [density.logp(row)[0] for density in self._inheriting(each)]
                self._at(here, each[k].update, row)
            self._each = each
        ones = np.eye(len(self.classes_))[codes]
        return out + self._log_priors(self.class_count_ + np.cumsum(ones, axis=0) - ones)

    def _copies(self, X: Any, held: list[np.ndarray]) -> list[Any]:
        """Copies to learn with. One a key is too large to copy: beside it all look at their rows before any learns."""
        each = [density if isinstance(density, Keyed) else density.copy() for density in self._each]
        if any(isinstance(density, Keyed) for density in each):
            for k, density in enumerate(each):
                look = density.check if isinstance(density, Keyed) else density.copy().update
                self._at(held[k], look, taken(X, held[k]))
        return each

    @staticmethod
    def _at(rows: np.ndarray, do: Any, X: Any) -> None:
        """Do it; an error names the row among all classes'."""
        try:
            if rows.size:
                do(X)
        except RowError as error:
            raise RowError(int(rows[error.row]), error.message) from None

    # ---- what was learnt

    @property
    def densities_(self) -> list[Any]:
        """The density of each class, in the order of `classes_`, with the prior it predicts with; copies, for names."""
        check_is_fitted(self, "classes_")
        if self._bank is None:
            return self._inheriting(self._each)
        bank = self._bank
        if self._worth() > 0.0:
            bank = bank.given(bank.pooled().as_prior(self.crowd))
        return [bank.slot(k) for k in range(len(self.classes_))]

    def _worth(self) -> float:
        return float(self.crowd) if isinstance(self.density, str) else 0.0

    def _inheriting(self, each: list[Any]) -> list[Any]:
        """The densities with the crowd for a prior, where that is asked for."""
        if self._worth() == 0.0:
            return list(each)
        crowd = each[0]
        for density in each[1:]:
            crowd = crowd + density
        prior = crowd.as_prior(self.crowd)
        return [density.given(prior) for density in each]

    def _log_priors(self, counts: np.ndarray | None = None) -> np.ndarray:
        """ln P(class), where so many of each have been seen: all so far, or a row each."""
        count = len(self.classes_)
        counts = self.class_count_ if counts is None else counts
        if self.priors is None:
            return np.log((counts + 0.5) / (counts.sum(axis=-1, keepdims=True) + 0.5 * count))
        p = np.asarray(self.priors, np.float64)
        if p.shape != (count,) or not (p > 0.0).all() or not abs(p.sum() - 1.0) <= 1e-9:
            raise ValueError(f"priors must be {count} numbers above 0 that sum to 1, got {self.priors!r}")
        return np.log(p)

    # ---- predicting

    def predict_joint_log_proba(self, X: Any) -> np.ndarray:
        """ln P(class) + ln p(x | class), a column a class."""
        check_is_fitted(self, "classes_")
        X = self._rows(X, reset=False)
        if not isinstance(X, dict) and X.dtype.kind == "f" and not np.isfinite(X).all():
            row, column = np.argwhere(~np.isfinite(X))[0].tolist()
            value = "NaN" if np.isnan(X[row, column]) else repr(float(X[row, column]))
            raise RowError(row, f", column {column}: value {value} is not finite")
        joint = np.stack([density.logp(X) for density in self.densities_], axis=1) + self._log_priors()
        if self._worth() > 0.0 and self.class_count_.sum() < 2:
            joint[:] = self._log_priors()
        lost = ~np.isfinite(joint).any(axis=1)
        if lost.any():
            raise RowError(int(np.flatnonzero(lost)[0]), " has density 0 under every class")
        return np.asarray(joint)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """ln P(class | x), a column a class."""
        joint = self.predict_joint_log_proba(X)
        return np.asarray(joint - logsumexp(joint, axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> np.ndarray:
        """P(class | x), a column a class."""
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X: Any) -> np.ndarray:
        """For two classes ln P(classes_[1] | x)/P(classes_[0] | x); otherwise the joint log probabilities."""
        joint = self.predict_joint_log_proba(X)
        return joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row; of equals the first."""
        best = self.predict_joint_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def explain(self, X: Any, label: Any = None, against: Any = None) -> dict[str, np.ndarray]:
        """The log odds of a class against another by what they come from: the priors, and each column.

        Without `label` and `against`, of the last class against the first. The entries sum to the log odds.
        """
        check_is_fitted(self, "classes_")
        X = self._rows(X, reset=False)
        labels = self.classes_.tolist()
        if label not in (None, *labels) or against not in (None, *labels):
            raise ValueError(f"there is no class {label if label not in (None, *labels) else against!r} ({labels})")
        a = len(labels) - 1 if label is None else labels.index(label)
        b = 0 if against is None else labels.index(against)
        first, second = self.densities_[a], self.densities_[b]
        priors = self._log_priors()
        count = len(next(iter(X.values()))) if isinstance(X, dict) else len(X)
        out = {"prior": np.full(count, priors[a] - priors[b])}
        if not hasattr(first, "terms") or not hasattr(second, "terms"):
            return out | {"all columns": first.logp(X) - second.logp(X)}
        columns: Any = getattr(self, "feature_names_in_", range(self.n_features_in_))
        terms = first.terms(X) - second.terms(X)
        return out | {str(name): terms[:, j] for j, name in enumerate(getattr(first, "names", columns))}


def taken(X: Any, rows: np.ndarray) -> Any:
    """These rows of a matrix or of named columns."""
    return {name: values[rows] for name, values in X.items()} if isinstance(X, dict) else X[rows]


def matrix(estimator: Any, X: Any, reset: bool) -> np.ndarray:
    """X as a 2-D float array, without a copy where it is one already, and its names noted or checked."""
    checks: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_all_finite": False}
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return np.asarray(validate_data(estimator, X, reset=reset, **checks))
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return np.asarray(check_array(frame.to_numpy(), **checks))
