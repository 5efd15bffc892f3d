"""Mixture discriminant analysis: some Gaussians a class, all of one covariance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from scipy.special import logsumexp, softmax
from sklearn.base import BaseEstimator, ClassifierMixin

__all__ = ["MixtureDiscriminant"]

Array = NDArray[np.float64]

_N_STEPS = 100
# Added to the variances of standardised inputs: keeps columns that depend on others from failing.
_FLOOR = 1e-4
# A Gaussian that has lost its rows keeps a mean.
_NO_ROWS = 1e-10


class MixtureDiscriminant(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A mixture of Gaussians for each class, and Bayes' rule; inputs are to be standardised.

    All Gaussians of all classes have one covariance, as in linear discriminant analysis, which
    this is with one Gaussian a class. scikit-learn's mixtures share it within a class only.

    Parameters
    ----------
    n_components : int
        Gaussians a class; fewer where they would have less than two rows each.
    n_starts : int
        EM starts from so many random shares of the rows of a class; the likeliest end is kept.
    random_state : int

    References
    ----------
    T. Hastie and R. Tibshirani, Discriminant Analysis by Gaussian Mixtures, Journal of the Royal
    Statistical Society B 58 (1996).
    """

    def __init__(self, *, n_components: int = 2, n_starts: int = 10, random_state: int = 0) -> None:
        self.n_components = n_components
        self.n_starts = n_starts
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> MixtureDiscriminant:
        """Fit by 100 steps of EM from every start."""
        X = np.asarray(X, dtype=np.float64)
        self.classes_, codes = np.unique(y, return_inverse=True)
        sizes = [min(self.n_components, max(1, int(count) // 2)) for count in np.bincount(codes)]
        self.owners_ = np.repeat(np.arange(len(sizes)), sizes)
        rng = np.random.default_rng(self.random_state)
        ends = [self._climb(X, codes, self._start(rng, codes)) for _ in range(self.n_starts)]
        _, shares = max(ends, key=lambda end: end[0])
        self._maximise(X, shares)
        return self

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the classes, shape (m, n_classes)."""
        log_densities = self._log_densities(np.asarray(X, dtype=np.float64))
        of_classes = [
            logsumexp(log_densities[:, self.owners_ == code], axis=1)
            for code in range(len(self.classes_))
        ]
        return np.asarray(softmax(np.column_stack(of_classes), axis=1))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Most probable class of each row."""
        labels: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels

    def _start(self, rng: np.random.Generator, codes: NDArray[np.int64]) -> Array:
        """Random shares of the rows in the Gaussians of their classes, shape (n, Gaussians)."""
        numbers = rng.random((len(codes), len(self.owners_)))
        numbers[self.owners_ != codes[:, None]] = -1.0
        return np.asarray(np.eye(len(self.owners_))[numbers.argmax(axis=1)])

    def _climb(self, X: Array, codes: NDArray[np.int64], shares: Array) -> tuple[float, Array]:
        """Steps of EM; the log likelihood before the last, and the shares after it."""
        is_own = self.owners_ == codes[:, None]
        likelihood = -np.inf
        for _ in range(_N_STEPS):
            self._maximise(X, shares)
            log_densities = np.where(is_own, self._log_densities(X), -np.inf)
            likelihood = float(logsumexp(log_densities, axis=1).sum()) - len(X) * float(
                np.log(np.diag(self.factor_)).sum()
            )
            shares = softmax(log_densities, axis=1)
        return likelihood, shares

    def _maximise(self, X: Array, shares: Array) -> None:
        counts = shares.sum(axis=0) + _NO_ROWS
        self.means_ = shares.T @ X / counts[:, None]
        scatter = sum(
            (share[:, None] * (X - mean)).T @ (X - mean)
            for share, mean in zip(shares.T, self.means_, strict=True)
        )
        covariance = scatter / len(X) + _FLOOR * np.eye(X.shape[1])
        self.factor_ = np.linalg.cholesky(covariance)
        self.log_weights_ = np.log(counts / len(X))

    def _log_densities(self, X: Array) -> Array:
        """Of each Gaussian with its weight, up to what all have in common: shape (n, Gaussians)."""
        Z = solve_triangular(self.factor_, X.T, lower=True).T
        centres = solve_triangular(self.factor_, self.means_.T, lower=True).T
        squares = ((Z[:, None] - centres) ** 2).sum(axis=2)
        return np.asarray(self.log_weights_ - 0.5 * squares)
