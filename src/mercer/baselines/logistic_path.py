"""Logistic and softmax regression on random features, for a path of penalties.

    minimise over b0, b:   sum_i loss(b0 + phi(x_i)'b, t_i) + penalty |b|^2 / 2

The intercepts b0 are not penalised. A path goes from the largest penalty to the smallest, each from
where the one before ended. Unlike scikit-learn's it takes rows that lack a class, as folds may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from mercer.baselines.descent import Deadline, Minimum, minimise
from mercer.baselines.losses import Loss
from mercer.baselines.ridge_path import blocks_of, fitted_values
from mercer.baselines.selection import Selection
from mercer.features.products import fill_features

__all__ = ["WeightObjective", "choose_by_log_loss", "fit_weights"]

Array = NDArray[np.float64]
# Features (p - 1, b) of a block of rows, and their targets (b, q).
Block = tuple[Array, Array]

# Steps of L-BFGS: for settings that are compared, and for the one that is kept.
_SELECTION_STEPS, _STEPS = 100, 500


@dataclass(frozen=True, eq=False)
class WeightObjective:
    """The penalised loss as a function of the coefficients (p, q), row by row, intercepts first.

    Attributes
    ----------
    blocks : callable
        () -> all rows, block by block.
    loss : callable
        Of `mercer.baselines.losses`.
    n_functions : int
        q.
    penalty : float
    """

    blocks: Callable[[], Iterable[Block]]
    loss: Loss
    n_functions: int
    penalty: float

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the objective and its gradient."""
        coef = theta.reshape(-1, self.n_functions)
        value = 0.5 * self.penalty * float(np.vdot(coef[1:], coef[1:]))
        gradient = self.penalty * coef
        gradient[0] = 0.0
        for Phi, targets in self.blocks():
            loss, residuals = self.loss(coef[0] + Phi.T @ coef[1:], targets)
            value += loss
            gradient[0] += residuals.sum(axis=0)
            gradient[1:] += Phi @ residuals
        return value, gradient.ravel()


def fit_weights(
    frequencies: Array, Z: Array, targets: Array, loss: Loss, penalty: float
) -> tuple[Array, Minimum]:
    """Fit the coefficients (1 + 2 F, q) to all rows; features are made block by block."""
    n_features = 2 * len(frequencies)

    def blocks() -> Iterator[Block]:
        for rows in blocks_of(len(Z), 1 + n_features):
            yield _features(frequencies, Z[rows]), targets[rows]

    q = targets.shape[1]
    objective = WeightObjective(blocks, loss, q, penalty)
    found = minimise(objective, np.zeros((1 + n_features) * q), _STEPS, Deadline())
    return found.theta.reshape(-1, q), found


def choose_by_log_loss(
    frequencies: Callable[[float], Array],
    Z: Array,
    targets: Array,
    loss: Loss,
    factors: Sequence[float],
    penalties: Sequence[float],
    n_folds: int,
    seed: int,
) -> Selection:
    """Choose a length scale factor and a penalty by K-fold cross-validation.

    Parameters
    ----------
    frequencies : callable
        Frequencies (F, d) for a length scale factor.
    Z : ndarray of shape (n, d)
    targets : ndarray of shape (n, q)
    loss : callable
    factors, penalties : sequence of float
        Penalties in rising order.
    n_folds : int
        At most n are made.
    seed : int
        Of the folds.

    Returns
    -------
    Selection
        Its errors are log losses of the rows held out, in nats a row.
    """
    folds = list(KFold(min(n_folds, len(Z)), shuffle=True, random_state=seed).split(Z))
    errors = np.zeros((len(factors), len(penalties)))
    for i, factor in enumerate(factors):
        W = frequencies(factor)
        for train, test in folds:
            path = _path(W, Z[train], targets[train], loss, penalties)
            for k, coef in enumerate(path):
                errors[i, k] += loss(fitted_values(W, coef, Z[test]), targets[test])[0]
    i, k = divmod(int(np.argmin(errors)), len(penalties))
    return Selection(errors / len(Z), float(factors[i]), float(penalties[k]))


def _path(
    W: Array, Z: Array, targets: Array, loss: Loss, penalties: Sequence[float]
) -> list[Array]:
    """Coefficients of every penalty, in the order given."""
    block, q = (_features(W, Z), targets), targets.shape[1]
    theta = np.zeros((1 + 2 * len(W)) * q)
    found = []
    for penalty in penalties[::-1]:
        objective = WeightObjective(lambda: [block], loss, q, penalty)
        theta = minimise(objective, theta, _SELECTION_STEPS, Deadline()).theta
        found.append(theta.reshape(-1, q))
    return found[::-1]


def _features(W: Array, Z: Array) -> Array:
    Phi = np.empty((2 * len(W), len(Z)))
    fill_features(W, Z, Phi)
    return Phi
