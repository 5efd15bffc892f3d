"""Networks of one hidden layer from several starts: the likeliest, or their average."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neural_network import MLPClassifier

__all__ = ["Networks"]

Array = NDArray[np.float64]

_N_STEPS = 500  # of L-BFGS


class Networks(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """One hidden layer with tanh, trained from several starts; inputs are to be standardised.

    Parameters
    ----------
    n_hidden : int
    decay : float
        Of the weights, as ``alpha`` in scikit-learn; 0: maximum likelihood.
    n_starts : int
    is_averaged : bool
        Whether probabilities are averaged over the starts; else the likeliest end counts.
    random_state : int
        The starts are numbered from ``n_starts`` times this on.
    """

    def __init__(
        self,
        *,
        n_hidden: int = 1,
        decay: float = 0.0,
        n_starts: int = 5,
        is_averaged: bool = False,
        random_state: int = 0,
    ) -> None:
        self.n_hidden = n_hidden
        self.decay = decay
        self.n_starts = n_starts
        self.is_averaged = is_averaged
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Networks:
        """Train from every start."""
        first = self.n_starts * self.random_state
        fitted = [
            MLPClassifier(
                (self.n_hidden,), activation="tanh", solver="lbfgs", alpha=self.decay,
                max_iter=_N_STEPS, random_state=seed,
            ).fit(X, y)
            for seed in range(first, first + self.n_starts)
        ]  # fmt: skip
        best = min(fitted, key=lambda network: float(network.loss_))
        self.networks_ = fitted if self.is_averaged else [best]
        self.classes_ = best.classes_
        return self

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the classes, shape (m, n_classes)."""
        return np.asarray(np.mean([each.predict_proba(X) for each in self.networks_], axis=0))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Most probable class of each row."""
        labels: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels
