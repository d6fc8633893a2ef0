"""Generative classification: a density for each class, and Bayes' rule."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted

from ..density import Keyed, Product
from ..density.product import columns_of
from ..errors import RowError
from .class_densities import ClassDensitiesMixin
from .mixins.rows import check_finite


class GenerativeClassifier(ClassDensitiesMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier with a density for each class and Bayes' rule: P(class | x) is proportional to P(class) p(x | class).

    Each class has its own parameters (so covariances may differ), learnt in one pass. All computations are in the log
    domain, so rows of many columns do not underflow. The priors of the classes are (n_c + ½)/(n + ½ n_classes) [2]_,
    unless they are given. A class that was declared but never seen is predicted by the prior of its density. For a
    comparison with discriminative classifiers see [1]_.

    Parameters
    ----------
    density : str, density or mapping of classes to these, default="gaussian"
        The density of every class: "gaussian" (independent columns), "tied" (the same with one variance per column for
        all classes), "full" (all covariances), "bernoulli", "poisson", "exponential", or a density (rows that it has
        learnt are ignored). With `Product` or `Keyed`, rows may be a dataframe or a mapping of names to columns, and
        columns need not be numeric.
    priors : array-like of shape (n_classes,), default=None
        P(class) in the order of the classes; None learns them.
    crowd : float, default=2.0
        If `density` is a name, the prior of each class is the density of the rows of all classes together, with the
        weight of this many rows (while fewer than two rows have been seen, only the priors of the classes are used). 0
        keeps the weak prior of the density.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    class_count_ : ndarray of shape (n_classes,)
        Rows of each class so far.
    densities_ : list of densities
        The density of each class, with the prior used for its predictions.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the rows had names.

    References
    ----------
    .. [1] A. Y. Ng and M. I. Jordan, "On discriminative vs. generative classifiers: a comparison of logistic
       regression and naive Bayes", NIPS 2002.
    .. [2] R. Krichevsky and V. Trofimov, "The performance of universal encoding", IEEE Transactions on Information
       Theory 27(2), 1981.

    Examples
    --------
    >>> from hindsight import GenerativeClassifier
    >>> heights, sex = [[160.0], [165.0], [170.0], [175.0], [180.0], [185.0]], list("fffmmm")
    >>> GenerativeClassifier().fit(heights, sex).predict([[162.0], [182.0]])
    array(['f', 'm'], dtype='<U1')
    """

    _private_state = ("_bank", "_each")

    def __init__(self, density: Any = "gaussian", *, priors: Any = None, crowd: float = 2.0) -> None:
        self._take_parameters(locals())

    # ---- learning

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from these rows, forgetting any earlier ones; if it raises, the estimator is unchanged.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_rows, n_features), or mapping of names to columns
            Rows.
        y : array-like of shape (n_rows,)
            Labels.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with self._all_or_nothing():
            self._forget_fit()
            self.partial_fit(X, y)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Continue learning from these rows; if it raises, the estimator is unchanged.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_rows, n_features), or mapping of names to columns
            Rows.
        y : array-like of shape (n_rows,)
            Labels.
        classes : array-like of shape (n_classes,), default=None
            All classes, declared by the first call; None takes those in y.

        Returns
        -------
        self : object
            The estimator.
        """
        self._take_rows(X, y, classes, self._learn)
        return self

    def progressive(self, X: Any, y: Any, classes: Any = None) -> np.ndarray:
        """Predict each row before learning it: return log probabilities, and learn the rows as `partial_fit` does.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_rows, n_features), or mapping of names to columns
            Rows.
        y : array-like of shape (n_rows,)
            Labels.
        classes : array-like of shape (n_classes,), default=None
            All classes, declared by the first call; None takes those in y.

        Returns
        -------
        log_probabilities : ndarray of shape (n_rows, n_classes)
            ln P(class | x), one column per class.
        """
        joint = self._take_rows(X, y, classes, self._predict_and_learn)
        return np.asarray(joint - logsumexp(joint, axis=1, keepdims=True))

    def _take_rows(self, X: Any, y: Any, classes: Any, learn: Any) -> Any:
        """Read the rows, declare the classes if this is the first call, and learn; on an error nothing changes."""
        with self._all_or_nothing():
            fresh = not hasattr(self, "classes_")
            X = self._rows(X, reset=fresh)
            first = next(iter(X.values())) if isinstance(X, dict) else X
            y = self._labels(first, y, known=not fresh or classes is not None)
            if fresh:
                self._declare(unique_labels(y if classes is None else classes))
            else:
                self._same_classes(classes)
            self._check_named(X)
            codes = self._codes(y).astype(np.int32)
            learnt = learn(X, codes)
            self.class_count_ = self.class_count_ + np.bincount(codes, minlength=len(self.classes_))
        return learnt

    def _rows(self, X: Any, reset: bool) -> Any:
        """A matrix of numbers, or named columns if the densities take names."""
        if not self._named():
            return self._matrix(X, reset)
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

    def _check_named(self, X: Any) -> None:
        """Check that named columns meet densities that take names."""
        plain = [d for d in [self._bank, *self._each] if d is not None and not isinstance(d, (Product, Keyed))]
        if isinstance(X, dict) and plain:
            raise ValueError(f"rows with named columns need a Product or Keyed for every class, not {plain[0]!r}")

    def _declare(self, classes: np.ndarray) -> None:
        self.classes_ = classes
        self.class_count_ = np.zeros(len(classes))
        self._log_priors()
        self._begin_densities()

    # ---- the priors of the classes

    def _log_priors(self, counts: np.ndarray | None = None) -> np.ndarray:
        """ln P(class) given the class counts: those so far by default, or one row of counts per row of data."""
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
        """Return ln P(class) + ln p(x | class).

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_rows, n_features), or mapping of names to columns
            Rows.

        Returns
        -------
        log_joint : ndarray of shape (n_rows, n_classes)
            One column per class.
        """
        check_is_fitted(self, "classes_")
        X = self._rows(X, reset=False)
        self._check_named(X)
        if not isinstance(X, dict) and X.dtype.kind == "f":
            check_finite(X)
        joint = np.stack([density.logp(X) for density in self.densities_], axis=1) + self._log_priors()
        if self._worth() > 0.0 and self.class_count_.sum() < 2:
            joint[:] = self._log_priors()
        lost = ~np.isfinite(joint).any(axis=1)
        if lost.any():
            raise RowError(int(np.flatnonzero(lost)[0]), " has density 0 under every class")
        return np.asarray(joint)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return ln P(class | x).

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_rows, n_features), or mapping of names to columns
            Rows.

        Returns
        -------
        log_probabilities : ndarray of shape (n_rows, n_classes)
            One column per class.
        """
        joint = self.predict_joint_log_proba(X)
        return np.asarray(joint - logsumexp(joint, axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return P(class | x).

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_rows, n_features), or mapping of names to columns
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            One column per class.
        """
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the log odds of two classes, or the joint log probabilities of more.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_rows, n_features), or mapping of names to columns
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
            For two classes ln P(classes_[1] | x)/P(classes_[0] | x).
        """
        joint = self.predict_joint_log_proba(X)
        return joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row, the first one in case of ties.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_rows, n_features), or mapping of names to columns
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_rows,)
        """
        best = self.predict_joint_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def explain(self, X: Any, label: Any = None, against: Any = None) -> dict[str, np.ndarray]:
        """Return the log odds of a class against another, split into the priors and each column.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_rows, n_features), or mapping of names to columns
            Rows.
        label : object, default=None
            The class; None is the last.
        against : object, default=None
            The other class; None is the first.

        Returns
        -------
        terms : dict of str to ndarray of shape (n_rows,)
            The terms by name; they sum to the log odds.
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
