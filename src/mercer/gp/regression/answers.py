"""What draws of a GP regressor answer: the prediction methods of the estimator."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.errors import DataError
from mercer.estimation.number_answers import NumberAnswers
from mercer.estimation.options import check_count
from mercer.gp.regression.predict import FunctionDraws
from mercer.posterior.predictive import NormalMixture
from mercer.random import entropy_of

__all__ = ["ProcessRegressor"]

Array = NDArray[np.float64]

_MOST_TOGETHER = 10_000  # training and new rows of one draw of a function


class ProcessRegressor(NumberAnswers[NormalMixture]):
    """Base of `GPRegressor`: all that needs the draws only."""

    # More than elsewhere: each block costs a factorisation a draw.
    _rows_at_once: ClassVar[int] = 8192

    _functions: FunctionDraws
    target_centre_: float
    target_scale_: float

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
        mean, variance = self._expected(Z), np.empty(len(Z))
        for rows in self._blocks(Z):
            locations, variances = self._functions.moments(Z[rows])
            variance[rows] = variances.mean(axis=1) + locations.var(axis=1)
        return mean, variance * self.target_scale_**2

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
        together = len(Z) + len(self._functions.X)
        if together > _MOST_TOGETHER:
            raise DataError(
                f"{len(Z)} rows: one function at these and the training rows needs matrices of "
                f"{8e-9 * together**2:.1f} GB; give fewer at a time, or use predictive(X).sample"
            )
        rng = np.random.default_rng(entropy_of(random_state))
        drawn = self._functions.sample(rng, Z, n_draws)
        return drawn * self.target_scale_ + self.target_centre_

    def _law(self, Z: Array) -> NormalMixture:
        means, variances = self._functions.moments(Z)
        noise = self._functions.noise_variance[self._functions.of_spread]
        scale, centre = self.target_scale_, self.target_centre_
        spreads = np.sqrt(variances + noise) * scale
        return NormalMixture(means * scale + centre, spreads, self._expected(Z))

    def _expected(self, Z: Array) -> Array:
        return self._functions.expected(Z) * self.target_scale_ + self.target_centre_
