"""Ridge and logistic regression along a path of penalties, and choosing one by cross-validation.

Losses of linear functions of features, with their gradients.

Each takes functions f (n, q) and targets t (n, q) and returns the loss, summed over rows, and its
derivatives with respect to f.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from sklearn.model_selection import GroupKFold, KFold

from mercer.errors import NumericalError
from mercer.features.products import FeatureProducts, fill_features
from mercer.numerics.cholesky import factorise
from mercer.numerics.sums import PairwiseSum

if TYPE_CHECKING:
    from mercer.data.source import RowSource

Array = NDArray[np.float64]
Folds = list[tuple[NDArray[np.int64], NDArray[np.int64]]]  # training and held-out rows
# Standardised inputs (b, d) of some rows, and their targets (b, q).
Block = tuple[Array, Array]
Loss = Callable[[Array, Array], tuple[float, Array]]


def squared(f: Array, t: Array) -> tuple[float, Array]:
    """Half the sum of squares."""
    residuals = f - t
    return 0.5 * float(np.vdot(residuals, residuals)), residuals


def logistic(f: Array, t: Array) -> tuple[float, Array]:
    """Negative log likelihood of two classes, t being 0 or 1: q = 1."""
    return float(np.logaddexp(0.0, f).sum() - np.vdot(t, f)), expit(f) - t


def softmax(f: Array, t: Array) -> tuple[float, Array]:
    """Negative log likelihood of q classes; t is 1 in the column of a row's class."""
    log_total = logsumexp(f, axis=1, keepdims=True)
    return float(log_total.sum() - np.vdot(t, f)), np.exp(f - log_total) - t


# L-BFGS with a limit of time.


@dataclass(frozen=True)
class Deadline:
    """A time, in seconds of `time.monotonic`, after which no further step begins."""

    at: float = float("inf")

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """So many seconds from now; None is never."""
        return cls() if seconds is None else cls(time.monotonic() + seconds)

    @property
    def is_over(self) -> bool:
        """Whether the time has come."""
        return time.monotonic() >= self.at


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where a descent ended."""

    theta: Array  # the best that was seen
    value: float
    n_steps: int
    is_cut_short: bool  # by the deadline


def minimise(
    objective: Callable[[Array], tuple[float, Array]],
    start: Array,
    max_iter: int,
    deadline: Deadline,
    bounds: Sequence[tuple[float | None, float | None]] | None = None,
) -> Minimum:
    """Go down from ``start``; a step into numerical trouble ends the descent at the best so far.

    The objective, theta -> value and gradient, must be computable at ``start``. The deadline is
    looked at after each step: one is always made.
    """
    best, lowest = start, np.inf
    n_steps = 0
    is_cut_short = False

    def watched(theta: Array) -> tuple[float, Array]:
        nonlocal best, lowest
        value, gradient = objective(theta)
        if value < lowest:
            best, lowest = theta.copy(), value
        return value, gradient

    def after_step(intermediate_result: object) -> None:
        nonlocal n_steps, is_cut_short
        n_steps += 1
        if deadline.is_over:
            is_cut_short = True
            raise StopIteration

    options = {"maxiter": max_iter, "maxfun": 3 * max_iter}
    try:
        minimize(
            watched, start, jac=True, method="L-BFGS-B", bounds=bounds, callback=after_step,
            options=options,
        )  # fmt: skip
    except NumericalError:
        if not np.isfinite(lowest):
            raise
    return Minimum(best, lowest, n_steps, is_cut_short)


# Ridge regression on random features, from the normal equations of blocks of rows.
#
#     minimise over b0, b:   sum_i (y_i - b0 - phi(x_i)'b)^2 + penalty |b|^2
#
# The intercept b0 is not penalised. With F = [1, Phi] the products F'F and F'y are all that is
# kept of the rows: memory does not grow with their number, and every penalty costs one
# factorisation.

# 8 megabytes of doubles in the features of a block of rows.
_BLOCK_ENTRIES = 2**20


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """F'F of shape (p, p) and F'y of shape (p,); sums and differences are those of rows."""

    gram: Array
    moments: Array

    def __add__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(self.gram + other.gram, self.moments + other.moments)

    def __sub__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(self.gram - other.gram, self.moments - other.moments)


def normal_equations(frequencies: Array, blocks: Iterable[tuple[Array, Array]]) -> NormalEquations:
    """Sum over blocks of rows (b, d) and targets (b,), for frequencies (F, d).

    The equations have order p = 1 + 2 F: the intercept, then cosine and sine of each frequency.
    """
    products, corners = FeatureProducts(frequencies, None, 2), PairwiseSum()
    for Z, y in blocks:
        products.add(Z, np.vstack([np.ones(len(y)), y]))
        corners.add(np.array([len(y), y.sum()]))
    sums, corner = products.total(), corners.total()
    p = 1 + len(sums.among)
    gram = np.empty((p, p))
    gram[0, 0], gram[1:, 1:] = corner[0], sums.among
    gram[0, 1:] = gram[1:, 0] = sums.across[:, 0]
    return NormalEquations(gram, np.append(corner[1], sums.across[:, 1]))


def fitted_values(frequencies: Array, coef: Array, Z: Array) -> Array:
    """Evaluate b0 + phi(x)'b: shape (n,), or (n, k) for coefficients of shape (p, k)."""
    values = np.empty((len(Z), *coef.shape[1:]))
    for rows in blocks_of(len(Z), len(coef)):
        values[rows] = coef[0] + features_of(frequencies, Z[rows]).T @ coef[1:]
    return values


def features_of(W: Array, Z: Array) -> Array:
    """Features (2 F, n) of rows Z (n, d) by frequencies W (F, d)."""
    Phi = np.empty((2 * len(W), len(Z)))
    fill_features(W, Z, Phi)
    return Phi


def blocks_of(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Consecutive rows that are computed with together."""
    step = max(_BLOCK_ENTRIES // n_columns, 1)
    for begin in range(0, n_rows, step):
        yield slice(begin, min(begin + step, n_rows))


def ridge(equations: NormalEquations, penalty: float) -> Array:
    """Solve for (b0, b): shape (p,); a `NumericalError` if the penalty is too small for that."""
    A = np.array(equations.gram, order="F")
    A[np.diag_indices(len(A))] += penalty
    A[0, 0] = equations.gram[0, 0]
    return np.asarray(cho_solve((factorise(A), True), equations.moments, check_finite=False))


def ridge_path(equations: NormalEquations, penalties: Sequence[float]) -> Array:
    """Solve for every penalty: shape (p, n_penalties), nan where the matrix is singular."""
    coef = np.full((len(equations.moments), len(penalties)), np.nan)
    for k, penalty in enumerate(penalties):
        try:
            coef[:, k] = ridge(equations, penalty)
        except NumericalError:
            continue
    return coef


# Cross-validation of the common length scale and the ridge penalty, on the same folds for all.


def split_rows(
    n_rows: int, n_folds: int, seed: int, groups: NDArray[np.int64] | None = None
) -> Folds:
    """Split rows into folds, whole groups where there are several: training and held-out rows."""
    n_groups = 0 if groups is None else len(np.unique(groups))
    if n_groups > 1:
        whole = GroupKFold(min(n_folds, n_groups), shuffle=True, random_state=seed)
        return list(whole.split(np.empty(n_rows), groups=groups))
    folds = KFold(min(n_folds, n_rows), shuffle=True, random_state=seed)
    return list(folds.split(np.empty(n_rows)))


@dataclass(frozen=True, eq=False)
class Selection:
    """The best of a grid."""

    #: (n_factors, n_penalties), of the rows held out; inf where the matrix was singular
    errors: Array
    factor: float  # of the smallest error
    penalty: float  # of the smallest error


def cross_validate(
    frequencies: Array,
    Z: Array,
    y: Array,
    factors: Sequence[float],
    penalties: Sequence[float],
    n_folds: int,
    seed: int,
    groups: NDArray[np.int64] | None = None,
) -> Selection:
    """Choose a length scale factor and a penalty by the squared errors of K-fold cross-validation.

    ``frequencies`` (F, d) are those of factor 1. For each factor the products of every
    fold are computed once, and those of the other folds are a difference from their sum. Cost O(n
    F^2 + n_folds n_penalties F^3) for each factor. A `NumericalError` if every matrix of the grid
    is singular.
    """
    parts = [held_out for _, held_out in split_rows(len(y), n_folds, seed, groups)]
    errors = np.array([_errors(frequencies / factor, Z, y, parts, penalties) for factor in factors])
    errors[~np.isfinite(errors)] = np.inf
    i, k = divmod(int(np.argmin(errors)), len(penalties))
    if not np.isfinite(errors[i, k]):
        raise NumericalError("ridge regression is singular at every penalty; give larger ones")
    return Selection(errors, float(factors[i]), float(penalties[k]))


def _errors(
    W: Array, Z: Array, y: Array, parts: Sequence[NDArray[np.int64]], penalties: Sequence[float]
) -> Array:
    """Mean squared errors of the held-out rows, one for each penalty."""
    equations = [normal_equations(W, [(Z[rows], y[rows])]) for rows in parts]
    total = equations[0]
    for part in equations[1:]:
        total = total + part
    squares = np.zeros(len(penalties))
    for rows, part in zip(parts, equations, strict=True):
        coef = ridge_path(total - part, penalties)
        squares += ((y[rows, np.newaxis] - fitted_values(W, coef, Z[rows])) ** 2).sum(axis=0)
    return squares / len(y)


# Logistic and softmax regression on random features, for a path of penalties.
#
#     minimise over b0, b:   sum_i loss(b0 + phi(x_i)'b, t_i) + penalty |b|^2 / 2
#
# The intercepts b0 are not penalised. A path goes from the largest penalty to the smallest, each
# from where the one before ended. Unlike scikit-learn's it takes rows that lack a class, as folds
# may.

# Steps of L-BFGS: for settings that are compared, and for the one that is kept.
_SELECTION_STEPS, _STEPS = 100, 500


@dataclass(frozen=True, eq=False)
class WeightObjective:
    """The penalised loss as a function of the coefficients (p, q), row by row, intercepts first."""

    loss_at: Callable[[Array], tuple[float, Array]]  # of all rows, with its gradient (p, q)
    n_functions: int  # q
    penalty: float

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the objective and its gradient."""
        coef = theta.reshape(-1, self.n_functions)
        loss, of_loss = self.loss_at(coef)
        gradient = self.penalty * coef
        gradient[0] = 0.0
        value = 0.5 * self.penalty * float(np.vdot(coef[1:], coef[1:])) + loss
        return value, (gradient + of_loss).ravel()


def loss_of_block(Phi: Array, targets: Array, loss: Loss, coef: Array) -> tuple[float, Array]:
    """Loss of rows of features (p - 1, b) and targets (b, q), and its gradient (p, q)."""
    value, residuals = loss(coef[0] + Phi.T @ coef[1:], targets)
    return value, np.vstack([residuals.sum(axis=0), Phi @ residuals])


def fit_weights(
    frequencies: Array,
    source: RowSource,
    split: Callable[[Array], Block],
    loss: Loss,
    n_functions: int,
    penalty: float,
) -> tuple[Array, Minimum]:
    """Fit the coefficients (1 + 2 F, q) to all rows, one pass over them for each step or try.

    ``split`` turns rows of the source into standardised inputs and targets.
    """

    def loss_at(coef: Array) -> tuple[float, Array]:
        total = source.total(functools.partial(_sum_losses, frequencies, split, loss, coef))
        return float(total[0]), total[1:].reshape(coef.shape)

    objective = WeightObjective(loss_at, n_functions, penalty)
    start = np.zeros((1 + 2 * len(frequencies)) * n_functions)
    found = minimise(objective, start, _STEPS, Deadline())
    return found.theta.reshape(-1, n_functions), found


def _sum_losses(
    W: Array,
    split: Callable[[Array], Block],
    loss: Loss,
    coef: Array,
    _: int,
    blocks: Iterable[Array],
) -> Array:
    """Sum the loss of blocks of rows and its gradient: shape (1 + p q,)."""
    total = PairwiseSum()
    for block in blocks:
        found = np.zeros(1 + coef.size)
        for rows in blocks_of(len(block), len(coef)):
            Z, targets = split(block[rows])
            value, gradient = loss_of_block(features_of(W, Z), targets, loss, coef)
            found += np.append(value, gradient)
        total.add(found)
    return np.asarray(total.total())


def choose_by_log_loss(
    frequencies: Array,
    Z: Array,
    targets: Array,
    loss: Loss,
    factors: Sequence[float],
    penalties: Sequence[float],
    n_folds: int,
    seed: int,
    groups: NDArray[np.int64] | None = None,
) -> Selection:
    """Choose a length scale factor and a penalty by cross-validated log loss, in nats a row.

    ``frequencies`` (F, d) are those of factor 1; targets are (n, q); penalties rise.
    """
    folds = split_rows(len(Z), n_folds, seed, groups)
    errors = np.zeros((len(factors), len(penalties)))
    for i, factor in enumerate(factors):
        W = frequencies / factor
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
    Phi, q = features_of(W, Z), targets.shape[1]
    loss_at = functools.partial(loss_of_block, Phi, targets, loss)
    theta = np.zeros((1 + 2 * len(W)) * q)
    found = []
    for penalty in penalties[::-1]:
        objective = WeightObjective(loss_at, q, penalty)
        theta = minimise(objective, theta, _SELECTION_STEPS, Deadline()).theta
        found.append(theta.reshape(-1, q))
    return found[::-1]
