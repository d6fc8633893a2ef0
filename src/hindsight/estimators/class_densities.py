"""One density per class: how they start, learn and predict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..density import Bernoulli, Exponential, FullGaussian, Gaussian, Keyed, Poisson, Product
from ..density.base import Density, learn
from ..density.gaussian import TiedGaussian
from ..density.online import OnlineDensity
from ..errors import RowError
from ..storage.fields import is_vector
from ..storage.registry import want
from ..validation import choice
from .mixins.estimator import Estimator
from .mixins.labels import LabelsMixin

NAMES: dict[str, Any] = {
    "gaussian": lambda d: Gaussian(columns=d),
    "tied": lambda d: TiedGaussian(columns=d),
    "full": lambda d: FullGaussian(d),
    "bernoulli": lambda d: Bernoulli(columns=d),
    "poisson": lambda d: Poisson(columns=d),
    "exponential": lambda d: Exponential(columns=d),
}


class ClassDensitiesMixin(LabelsMixin, Estimator):
    """Densities in the order of `classes_`, in one set of arrays with a slot per class if possible."""

    crowd: Annotated[float, lambda crowd: 0.0 <= crowd < np.inf, "a number, at least 0"]
    class_count_: np.ndarray
    _bank: Annotated[Density | None, "one density per class"]  # the densities of all classes in one
    _each: Annotated[list[OnlineDensity], "one density per class"]  # or one by one

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        """Refuse saved densities unless there is one per class: loops index them by the class of a row."""
        if "classes_" not in fields:
            return
        count, features = fields["classes_"].size, fields.get("n_features_in_")
        bank, each, counts = fields["_bank"], fields["_each"], fields["class_count_"]
        want(is_vector(counts, count) and bool((counts >= 0.0).all()), f"`class_count_` must be {count} counts")
        want(len(each) == (count if bank is None else 0), "`_each` must be one density per class")
        if bank is not None:
            fits = bank.n.size == count and bank.columns == features
            want(fits and not getattr(bank, "grows", False), "`_bank` must have one density per class")
        for density in each:
            fits = density.columns == features or isinstance(density, (Product, Keyed))
            want(fits, f"a density has {density.columns} columns, `n_features_in_` is {features!r:.40}")

    def _named(self) -> bool:
        given = self.density.values() if isinstance(self.density, Mapping) else [self.density]
        return any(isinstance(density, (Product, Keyed)) for density in given)

    def _begin_densities(self) -> None:
        """Start a density for every class."""
        classes = self.classes_
        if not 0.0 <= self.crowd < np.inf:
            raise ValueError(f"crowd must be a finite number of rows, at least 0; got {self.crowd!r}")
        one = None if isinstance(self.density, Mapping) else self._make(self.density)
        if isinstance(one, Keyed) and one.spill is not None:
            raise ValueError("each class needs a file of its own to spill to: give a mapping of classes to densities")
        self._bank, self._each = None, []
        if isinstance(one, Density) and one.forget == 1.0 and not getattr(one, "grows", False):
            # so that one pass over the rows learns all classes
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

    def _learn(self, X: Any, codes: np.ndarray) -> None:
        """Learn rows with these class indices."""
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
        """ln p(x | class) + ln P(class) of each row before it is learnt."""
        if self._bank is not None:
            bank = self._bank.copy()
            out = bank.contest(X, codes, self._worth())
            self._bank = bank
        else:
            out = np.empty((len(codes), len(self.classes_)))
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
        """Copies to learn with. Keyed densities are too large to copy: all check their rows before any learns."""
        each = [density if isinstance(density, Keyed) else density.copy() for density in self._each]
        if any(isinstance(density, Keyed) for density in each):
            for k, density in enumerate(each):
                look = density.check if isinstance(density, Keyed) else density.copy().update
                self._at(held[k], look, taken(X, held[k]))
        return each

    @staticmethod
    def _at(rows: np.ndarray, do: Any, X: Any) -> None:
        """Call a method; an error names the row by its index among the rows of all classes."""
        try:
            if rows.size:
                do(X)
        except RowError as error:
            raise RowError(int(rows[error.row]), error.message) from None

    # ---- what was learnt

    @property
    def densities_(self) -> list[Any]:
        """The density of each class, with the prior used for its predictions, in the order of `classes_`."""
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
        """The densities, with the density of all rows as their prior if `crowd` is above 0."""
        if self._worth() == 0.0:
            return list(each)
        crowd = each[0]
        for density in each[1:]:
            crowd = crowd + density
        prior = crowd.as_prior(self.crowd)
        return [density.given(prior) for density in each]


def taken(X: Any, rows: np.ndarray) -> Any:
    """These rows of a matrix or of named columns."""
    return {name: values[rows] for name, values in X.items()} if isinstance(X, dict) else X[rows]
