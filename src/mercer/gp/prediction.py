"""What a fitted Gaussian process says of new rows with numbers for targets."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr
from sklearn.utils.validation import check_is_fitted

from mercer.errors import DataError
from mercer.estimation.base import NumberPredictions, by_partition
from mercer.estimation.run import check_choice, check_count
from mercer.gp.averaging import Few, KernelFit, choose_few, mixed_moments, sample_functions
from mercer.gp.contamination import with_errors
from mercer.gp.gaussian import FunctionDraws, NoiseOfRows, function_draws
from mercer.kernels.names import kernel_named
from mercer.posterior.predictive import StudentMixture
from mercer.random import entropy_of

Array = NDArray[np.float64]

FEW_ROWS = 100  # up to which the draws that predict are chosen by how sure they are, too
_MOST_TOGETHER = 10_000  # training and new rows of one draw of a function


class ProcessRegressor(NumberPredictions[StudentMixture]):
    """Base of `GPRegressor`: all that needs the draws only."""

    # More than elsewhere: each block costs a factorisation a draw.
    _rows_at_once: ClassVar[int] = 8192

    _functions: tuple[FunctionDraws, ...]  # one a kernel, of the draws that predict
    _all_functions: tuple[FunctionDraws, ...]
    _weights: tuple[float, ...]
    target_centre_: float
    target_scale_: float
    _known_std: float  # of the noise on average, where each row's is known

    @by_partition
    def predict(self, X: ArrayLike, return_std: bool = False, n_draws: str | None = None) -> Any:
        """Posterior mean of the target.

        Parameters
        ----------
        X : array or frame of shape (m, d)
        return_std : bool, default=False
        n_draws : {None, "all"}, default=None
            None: a few draws, weighted so as to agree with all; ``notes_`` says how closely. "all":
            all of them; with inducing points there are the few only.

        Returns
        -------
        mean : ndarray of shape (m,)
            In units of the target.
        std : ndarray of shape (m,)
            Standard deviation of a new observation, noise included; only with ``return_std``.
        """
        check_is_fitted(self)
        check_choice("n_draws", n_draws, (None, "all"))
        if n_draws is None:
            return super().predict(X, return_std)
        purist = copy.copy(self)
        purist._functions = self._all_functions
        return super(ProcessRegressor, purist).predict(X, return_std)

    def latent(self, X: ArrayLike) -> tuple[Array, Array]:
        """Posterior mean and variance of the function, without the noise of a target.

        Parameters
        ----------
        X : array or frame of shape (m, d)

        Returns
        -------
        mean, variance : ndarray of shape (m,)
            Over the function and the draws of the hyperparameters, in units of the target and
            their squares.
        """
        check_is_fitted(self)
        Z = self._standardized(X)
        each = [self._latent_of(functions, Z) for functions in self._functions]
        mean, variance = mixed_moments(self._weights, each)
        scale = self.target_scale_
        return mean * scale + self.target_centre_, variance * scale**2

    def _latent_of(self, functions: FunctionDraws, Z: Array) -> tuple[Array, Array]:
        """Mean and variance of the function of one kernel, standardised."""
        mean, variance = functions.expected(Z), np.empty(len(Z))
        for rows in self._blocks(Z):
            locations, variances = functions.moments(Z[rows])
            centres = np.average(locations, axis=1, weights=functions.weights)
            squares = variances + np.square(locations - centres[:, np.newaxis])
            variance[rows] = np.average(squares, axis=1, weights=functions.weights)
        return mean, variance

    def sample_y(
        self,
        X: ArrayLike,
        n_draws: int = 1,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> Array:
        """Draw new targets: those of a draw come from one function, with noise of their own.

        Parameters
        ----------
        X : array or frame of shape (m, d)
        n_draws : int, default=1
        random_state : int, Generator, RandomState or None, default=None

        Returns
        -------
        ndarray of shape (n_draws, m)
            In units of the target.

        Raises
        ------
        DataError
            If X has so many rows that their joint covariance is too large.
        """
        check_is_fitted(self)
        check_count("n_draws", n_draws, 1)
        Z = self._standardized(X)
        together = len(Z) + len(self._functions[0].X)
        if together > _MOST_TOGETHER:
            raise DataError(
                f"{len(Z)} rows: one function at these and the training rows needs matrices of "
                f"{8e-9 * together**2:.1f} GB; give fewer at a time, or use predictive(X).sample"
            )
        rng = np.random.default_rng(entropy_of(random_state))
        if len(self._all_functions) == 1:
            drawn = self._all_functions[0].sample(rng, Z, n_draws)
        else:
            drawn = np.empty((n_draws, len(Z)))
            of_kernel = rng.choice(len(self._weights), size=n_draws, p=self._weights)
            for i, functions in enumerate(self._all_functions):
                mine = of_kernel == i
                drawn[mine] = functions.sample(rng, Z, int(mine.sum()))
        return drawn * self.target_scale_ + self.target_centre_

    def _function_draws(
        self, parts: Sequence[Array], n_draws: int, rng: np.random.Generator
    ) -> list[Array]:
        drawn = sample_functions(self._functions, self._weights, parts, n_draws, rng)
        scale, centre = self.target_scale_, self.target_centre_
        return [f[:, np.newaxis] * scale + centre for f in drawn]

    def _law(self, Z: Array) -> StudentMixture:
        parts = [_law_of(functions, Z) for functions in self._functions]
        locations, scales = (
            np.hstack([getattr(part, name) for part in parts]) for name in ("locations", "scales")
        )
        shares = zip(self._weights, parts, strict=True)
        weights = np.concatenate([w * part.weights for w, part in shares])
        law = StudentMixture(locations, scales, weights, math.inf, n_kinds=parts[0].n_kinds)
        return law.in_units(self.target_scale_, self.target_centre_, self._expected(Z))

    def _expected(self, Z: Array) -> Array:
        each = [w * f.expected(Z) for w, f in zip(self._weights, self._functions, strict=True)]
        return np.asarray(sum(each) * self.target_scale_ + self.target_centre_)


def _law_of(functions: FunctionDraws, Z: Array) -> StudentMixture:
    """Law of standardised targets by the draws of one kernel."""
    means, variances = functions.moments(Z)
    noise, shares = (each[functions.of_spread] for each in functions.noise_of_targets)
    n, weights = len(noise), functions.weights
    weights = np.full(n, 1.0 / n) if weights is None else weights
    return StudentMixture.of_functions(means, variances, noise, shares, weights)


def few_functions(functions: FunctionDraws, y: Array, *most: int) -> tuple[Few, float] | None:
    """Choose the draws that predict, by what they say of the mean and of the noise."""
    n_total, weights = len(functions.theta), functions.weights
    if weights is None:
        weights = np.full(n_total, 1.0 / n_total)
        functions = functions.chosen(np.arange(n_total), weights)
    noise = functions.target_variance[:, np.newaxis]
    # Of the noise of each draw the shares within some distances: the shape of its mixture.
    distances = np.array([0.5, 1.0, 1.5, 2.0, 3.0])[:, np.newaxis] * (weights @ np.sqrt(noise))
    variances, shares = (each[:, np.newaxis] for each in functions.noise_of_targets)
    within = (shares * ndtr(distances / np.sqrt(variances))).sum(axis=2)
    parameters = np.hstack([functions.theta, np.log(noise), within])
    fitted = functions.fitted(y)

    def with_spread(X: Array) -> Array:
        """Means at rows (m, d), and second moments of targets in units of means: (N, 2 m)."""
        means, variances = (each.T for each in functions.moments(X))
        second = np.square(means - weights @ means) + variances + noise
        second /= np.sqrt(weights @ second)
        return np.stack([means, second], axis=2).reshape(n_total, -1)

    # Of few rows, draws that agree in what they expect may differ much in how sure they are; of
    # more so they do far from all, where a target has the variance of the prior.
    predict = with_spread
    if len(functions.X) > FEW_ROWS:
        predict = functions.means
        prior = [functions.kernel.diagonal(theta, functions.X).mean() for theta in functions.theta]
        parameters = np.column_stack([parameters, noise[:, 0] + prior])
    return choose_few(functions.X, weights, fitted, predict, parameters, *most)


def functions_of(
    fits: tuple[KernelFit, ...], X: Array, intercept_variance: float, noise: NoiseOfRows | None
) -> tuple[FunctionDraws, ...]:
    """Return the functions of the draws of each kernel that predict."""
    found = []
    for each in fits:
        draws, kernel = each.predicting, kernel_named(each.kernel)
        functions = function_draws(draws, X, kernel, intercept_variance, noise)
        found.append(with_errors(functions, draws))
    return tuple(found)
