"""What drawn functions answer: the prediction methods of the classifier."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.estimation.base import KernelEstimator
from mercer.spectral.classes.predict import ClassDraws
from mercer.spectral.kernel_estimator import KernelAnswers

__all__ = ["FunctionClassifier"]

Array = NDArray[np.float64]

# A probability is kept this far from 0 and 1, so that a log score is finite.
_SMALLEST_PROBA = 1e-12


class FunctionClassifier(ClassifierMixin, KernelAnswers, KernelEstimator):  # type: ignore[misc]
    """Base of `BaNKClassifier`: all that needs the drawn functions and spectra only."""

    # Rows whose features are in memory at a time.
    _rows_at_once: ClassVar[int] = 1024
    classes_: NDArray[Any]
    _functions: ClassDraws
    _order: NDArray[np.int64]

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the classes, averaged over draws.

        Parameters
        ----------
        X : array or frame of shape (m, d)

        Returns
        -------
        ndarray of shape (m, C)
            In the order of ``classes_``; never exactly 0 or 1.
        """
        check_is_fitted(self)
        Z = self._standardized(X)
        found = np.concatenate([self._functions.probabilities(Z[rows]) for rows in self._blocks(Z)])
        proba = np.empty_like(found)
        proba[:, self._order] = np.maximum(found, _SMALLEST_PROBA)
        proba /= proba.sum(axis=1, keepdims=True)
        return np.asarray(np.minimum(proba, 1.0 - _SMALLEST_PROBA))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Most probable class of each row of X, shape (m,), in the type of the labels."""
        check_is_fitted(self)
        labels: NDArray[Any] = self.classes_[np.argmax(self.predict_proba(X), axis=1)]
        return labels

    def decision_function(self, X: ArrayLike) -> Array:
        """Logarithms of the probabilities.

        Returns
        -------
        ndarray of shape (m,) or (m, C)
            Of two classes, the log odds of ``classes_[1]``.
        """
        check_is_fitted(self)
        log_proba = np.log(self.predict_proba(X))
        if len(self.classes_) > 2:
            return log_proba
        odds: Array = log_proba[:, 1] - log_proba[:, 0]
        return odds

    def latent(self, X: ArrayLike) -> tuple[Array, Array]:
        """Posterior mean and variance of the functions that tell classes apart, in logits.

        Returns
        -------
        mean, variance : ndarray of shape (m,) or (m, C - 1)
            Of two classes, of the log odds of ``classes_[1]``; of several, of the log odds of each
            of ``class_order_`` but the last against all that come after it.
        """
        check_is_fitted(self)
        Z = self._standardized(X)
        parts = [self._functions.moments(Z[rows]) for rows in self._blocks(Z)]
        mean, variance = (np.concatenate(side) for side in zip(*parts, strict=True))
        if mean.shape[1] == 1:
            return mean[:, 0], variance[:, 0]
        return mean, variance

    def _blocks(self, Z: Array) -> Iterator[slice]:
        for begin in range(0, len(Z), self._rows_at_once):
            yield slice(begin, begin + self._rows_at_once)
