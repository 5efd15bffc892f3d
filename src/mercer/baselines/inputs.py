"""What the baselines share: forgetting earlier fits, names of columns, standardised inputs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.errors import UsageError
from mercer.estimation.options import check_choice, check_count
from mercer.estimation.standardize import METHODS, Standardizer, fit_standardizer

__all__ = ["InputEstimator", "some_rows"]

Array = NDArray[np.float64]


class InputEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of the baselines on Fourier features."""

    n_features: int
    n_folds: int
    selection_rows: int
    standardize: str | bool
    standardizer_: Standardizer

    def _forget(self) -> None:
        """Drop an earlier fit, so that one that fails leaves no mixture behind."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _checked(self) -> tuple[int, int]:
        """Check the arguments that all have; return folds, and rows that settings are chosen on."""
        check_count("n_features", self.n_features, 2)
        if self.n_features % 2:
            raise UsageError(f"n_features must be even: a cosine and a sine; got {self.n_features}")
        return self._checked_selection()

    def _checked_selection(self) -> tuple[int, int]:
        check_choice("standardize", self.standardize, METHODS)
        selection_rows = check_count("selection_rows", self.selection_rows, 2)
        return check_count("n_folds", self.n_folds, 2), selection_rows

    def _learn_inputs(self, X: Array) -> None:
        self.standardizer_ = fit_standardizer(X, self.standardize, self._names())

    def _names(self) -> tuple[str, ...]:
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return tuple(f"x{j}" for j in range(self.n_features_in_))
        return tuple(str(name) for name in names)

    def _new_rows(self, X: ArrayLike) -> Array:
        """Check rows that are to be predicted."""
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, order="C", reset=False))


def some_rows(rng: np.random.Generator, n: int, n_kept: int) -> NDArray[np.int64]:
    """All rows, or a random subset of them in their order."""
    return np.arange(n) if n <= n_kept else np.sort(rng.choice(n, n_kept, replace=False))
