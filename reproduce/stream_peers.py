"""Learners of a stream, for `basis-drift-v1` and `basis-outliers-v1`.

Each is made of the first rows (inputs and targets, to learn scales from) and has
``predict_then_learn``: the prediction of one row's target, in standard deviations of the first
targets, before it is learned.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDRegressor

__all__ = [
    "Persistence", "RandomFeatures", "RiverGradients", "RiverNeighbours", "RiverOnBasis",
    "StreamScores", "scores_of",
]  # fmt: skip

# Of the squared errors that the spread of a point prediction is learned from, after each row.
_RETENTION = 0.99

Array = NDArray[np.float64]


@dataclass(frozen=True)
class StreamScores:
    """What was predicted of each row (m,): mean and log density, in units of the target."""

    mean: Array
    log_density: Array
    seconds: float


class PointLearner(Protocol):
    """What a learner of a stream does."""

    def predict_then_learn(self, z: Array, target: float) -> float:
        """Predict the target of standardised inputs z (d,), then learn it."""


def scores_of(
    make: Callable[[Array], PointLearner], X: Array, y: Array, n_first: int, cut: float = np.inf
) -> StreamScores:
    """Run a learner of points over rows; its log density is that of a normal law around them.

    The variance is a mean of earlier squared errors, the last hundred rows or so counting most.

    Parameters
    ----------
    make : callable
        Standardised first inputs (n_first, d) -> learner.
    X, y : ndarray of shape (n, d) and (n,)
    n_first : int
        Rows from which scales are learned.
    cut : float
        A squared error counts as so many times the variance at most.
    """
    centre, scale = X[:n_first].mean(axis=0), X[:n_first].std(axis=0)
    level, spread = float(y[:n_first].mean()), float(y[:n_first].std())
    Z, targets = (X - centre) / scale, (y - level) / spread
    begin = time.perf_counter()
    learner = make(Z[:n_first])
    means = np.array([learner.predict_then_learn(*row) for row in zip(Z, targets, strict=True)])
    seconds = time.perf_counter() - begin
    squares, variance = (targets - means) ** 2, np.empty(len(y))
    current = 1.0
    for t, square in enumerate(squares):
        variance[t] = current
        current = _RETENTION * current + (1.0 - _RETENTION) * min(square, cut * current)
    log_density = -0.5 * (np.log(2.0 * np.pi * variance) + squares / variance) - np.log(spread)
    return StreamScores(level + spread * means, log_density, seconds)


class Persistence:
    """The last target."""

    def __init__(self, first: Array) -> None:
        self._last = 0.0

    def predict_then_learn(self, z: Array, target: float) -> float:
        """Return the target of the row before; 0 at first."""
        mean, self._last = self._last, float(target)
        return mean


class RiverOnBasis:
    """River's BayesianLinearRegression on a constant and a fixed basis of Gaussian bumps.

    In one dimension the bumps stand on a grid over the first inputs, as wide as the grid's steps;
    otherwise on the first inputs, as wide as their median distance. The noise variance, which it
    needs beforehand, is 0.1 of that of the targets; the prior variance of a coefficient is 1, and
    in proportion more with smoothing, which takes a mean over rows instead of their sum.
    """

    def __init__(self, first: Array, n_bumps: int, smoothing: float | None) -> None:
        from river.linear_model import BayesianLinearRegression

        self._bumps = _Bumps(first, n_bumps)
        alpha = 1.0 if smoothing is None else 1.0 / (1.0 - smoothing)
        self._model: Any = BayesianLinearRegression(alpha=alpha, beta=10, smoothing=smoothing)

    def predict_then_learn(self, z: Array, target: float) -> float:
        """Predict a row, then learn it."""
        row = self._bumps.row(z)
        mean = float(self._model.predict_one(row))
        self._model.learn_one(row, float(target))
        return mean


class _Bumps:
    """A constant and Gaussian bumps, as named features."""

    def __init__(self, first: Array, n_bumps: int) -> None:
        if first.shape[1] == 1:
            self._centres = np.linspace(first.min(), first.max(), n_bumps)[:, np.newaxis]
            width = float(np.ptp(self._centres)) / (n_bumps - 1)
        else:
            self._centres = first[:n_bumps]
            width = float(np.median(pdist(first)))
        self._factor = -0.5 / width**2

    def row(self, z: Array) -> dict[int, float]:
        """Features of an input."""
        bumps = np.exp(self._factor * ((self._centres - z) ** 2).sum(axis=1))
        return {0: 1.0} | dict(enumerate(bumps.tolist(), start=1))


class RiverGradients:
    """River's LinearRegression by the Huber loss, on the basis of `RiverOnBasis`."""

    def __init__(self, first: Array, n_bumps: int, rate: float) -> None:
        from river.linear_model import LinearRegression
        from river.optim import SGD
        from river.optim.losses import Huber

        self._bumps = _Bumps(first, n_bumps)
        self._model: Any = LinearRegression(SGD(rate), loss=Huber(), intercept_lr=0.0)

    def predict_then_learn(self, z: Array, target: float) -> float:
        """Predict a row, then learn it."""
        row = self._bumps.row(z)
        mean = float(self._model.predict_one(row))
        self._model.learn_one(row, float(target))
        return mean


class RiverNeighbours:
    """River's KNNRegressor: the median of the targets of the five nearest of the last rows."""

    def __init__(self, first: Array) -> None:
        from river.neighbors import KNNRegressor

        self._model: Any = KNNRegressor(n_neighbors=5, aggregation_method="median")

    def predict_then_learn(self, z: Array, target: float) -> float:
        """Predict a row, then learn it."""
        row = dict(enumerate(z.tolist()))
        mean = float(self._model.predict_one(row) or 0.0)
        self._model.learn_one(row, float(target))
        return mean


class RandomFeatures:
    """scikit-learn's SGDRegressor with a constant rate on random Fourier features.

    ``width`` is that of the kernel, as a share of the median distance of the first inputs.
    """

    def __init__(
        self, first: Array, n_features: int, width: float, rate: float, loss: str = "squared_error"
    ) -> None:
        gamma = 0.5 / (width * float(np.median(pdist(first)))) ** 2
        self._features = RBFSampler(gamma=gamma, n_components=n_features, random_state=0)
        self._features.fit(first)
        self._model = SGDRegressor(loss=loss, learning_rate="constant", eta0=rate, random_state=0)
        self._is_begun = False

    def predict_then_learn(self, z: Array, target: float) -> float:
        """Predict a row, then learn it; 0 before the first."""
        row = self._features.transform(z[np.newaxis])
        mean = float(self._model.predict(row)[0]) if self._is_begun else 0.0
        self._model.partial_fit(row, [target])
        self._is_begun = True
        return mean
