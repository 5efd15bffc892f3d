"""What a regressor with a law for each row answers: its prediction methods."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer.estimation.base import KernelEstimator
from mercer.posterior.predictive import Predictive, check_level

__all__ = ["NumberAnswers"]

Array = NDArray[np.float64]
Law = TypeVar("Law", bound=Predictive)


class NumberAnswers(RegressorMixin, KernelEstimator, Generic[Law]):  # type: ignore[misc]
    """Base of regressors: a subclass gives the law of standardised rows, and the rest follows."""

    # Rows whose laws are in memory at a time.
    _rows_at_once: ClassVar[int] = 1024

    @abstractmethod
    def _law(self, Z: Array) -> Law:
        """Law of the targets of standardised rows (m, d), in their units."""

    @abstractmethod
    def _expected(self, Z: Array) -> Array:
        """Mean of that law, shape (m,), where the law itself is not needed."""

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Posterior mean of the target.

        Parameters
        ----------
        X : array or frame of shape (m, d)
        return_std : bool, default=False

        Returns
        -------
        mean : ndarray of shape (m,)
            In units of the target.
        std : ndarray of shape (m,)
            Of a new observation, noise included; only with ``return_std``.
        """
        check_is_fitted(self)
        Z = self._standardized(X)
        if return_std:
            laws = [self._law(Z[rows]) for rows in self._blocks(Z)]
            return (
                np.concatenate([law.mean for law in laws]),
                np.concatenate([law.std for law in laws]),
            )
        return np.concatenate([self._expected(Z[rows]) for rows in self._blocks(Z)])

    def predict_interval(self, X: ArrayLike, level: float = 0.9) -> tuple[Array, Array]:
        """Central interval of a new observation, averaged over draws.

        Parameters
        ----------
        X : array or frame of shape (m, d)
        level : float, default=0.9
            Its probability, in (0, 1).

        Returns
        -------
        lower, upper : ndarray of shape (m,)
            In units of the target.
        """
        check_is_fitted(self)
        check_level(level)
        Z = self._standardized(X)
        ends = [self._law(Z[rows]).interval(level) for rows in self._blocks(Z)]
        lower, upper = (np.concatenate(side) for side in zip(*ends, strict=True))
        return lower, upper

    def predictive(self, X: ArrayLike) -> Law:
        """Predictive law of the target of each row: a mixture, one or more components a draw.

        Parameters
        ----------
        X : array or frame of shape (m, d)
            A thousand rows or so at a time: each takes hundreds of components.
        """
        check_is_fitted(self)
        return self._law(self._standardized(X))

    def _blocks(self, Z: Array) -> Iterator[slice]:
        for begin in range(0, len(Z), self._rows_at_once):
            yield slice(begin, begin + self._rows_at_once)
