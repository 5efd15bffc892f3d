"""Predictive laws for regressors that give a number only: a normal as wide as their residuals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.model_selection import KFold

from mercer.errors import DataError
from mercer.posterior.predictive import NormalMixture

__all__ = ["ResidualSpread", "least_std"]

Array = NDArray[np.float64]

N_FOLDS = 5
ENOUGH = 5000  # residuals: their root mean square is then known to about one per cent
_LEAST = 1e-6  # of the target's standard deviation


class ResidualSpread(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor with a normal predictive law, equally wide for all rows.

    Parameters
    ----------
    regressor : estimator
        Gives the mean; unfitted.
    seed : int, default=0
        Of the folds.

    Notes
    -----
    The standard deviation is the root of the mean squared residual of rows that the regressor has
    not seen. These are the rows left out of the bootstrap samples where it is a forest that kept
    them (``oob_prediction_``), those of its own cross-validation where it has chosen its settings
    by one (``cv_errors_``, of the standardised target), and else those of five folds of the
    training rows: it is then fitted six times in all. Of many rows as many folds are left out one
    after the other as hold 5000 rows: one above 25 000 rows.
    """

    def __init__(self, regressor: Any, seed: int = 0) -> None:
        self.regressor = regressor
        self.seed = seed

    def fit(self, X: ArrayLike, y: ArrayLike) -> ResidualSpread:
        """Fit the regressor, and learn how far it is off on rows it has not seen.

        Raises
        ------
        DataError
            If there is one row only.
        """
        target = np.asarray(y, dtype=np.float64)
        if len(target) < 2:
            raise DataError("found 1 sample(s); the spread of residuals needs two")
        self.regressor_ = clone(self.regressor).fit(X, target)
        self.std_ = max(self._spread(X, target), least_std(target))
        return self

    def _spread(self, X: ArrayLike, y: Array) -> float:
        """Return the root of the mean squared residual of rows that were not seen."""
        errors = getattr(self.regressor_, "cv_errors_", None)
        if errors is not None:
            return float(np.sqrt(errors.min()) * y.std())
        predicted = getattr(self.regressor_, "oob_prediction_", None)
        residuals = self._left_out(np.asarray(X), y) if predicted is None else y - predicted
        return float(np.sqrt(np.mean(np.square(residuals))))

    def _left_out(self, X: Array, y: Array) -> Array:
        """Return residuals of rows left out, fold by fold, until they are enough."""
        folds = KFold(min(N_FOLDS, len(y)), shuffle=True, random_state=self.seed)
        residuals: list[Array] = []
        for train, test in folds.split(X):
            fitted = clone(self.regressor).fit(X[train], y[train])
            residuals.append(y[test] - fitted.predict(X[test]))
            if sum(map(len, residuals)) >= ENOUGH:
                break
        return np.concatenate(residuals)

    def predict(self, X: ArrayLike) -> Array:
        """Return the regressor's predictions, of shape (m,)."""
        return np.asarray(self.regressor_.predict(X), dtype=np.float64)

    def predictive(self, X: ArrayLike) -> NormalMixture:
        """Return a normal law for each row."""
        mean = self.predict(X)
        return NormalMixture(mean[:, np.newaxis], np.array([self.std_]))


def least_std(y: Array) -> float:
    """Return the least standard deviation of a law: a millionth of that of the training targets.

    A regressor without residuals would otherwise have an infinite density.
    """
    return _LEAST * float(y.std()) or float(np.finfo(float).tiny)
