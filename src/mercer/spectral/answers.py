"""What drawn functions answer: the prediction methods of the regressor."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.estimation.number_answers import NumberAnswers
from mercer.estimation.options import check_count
from mercer.posterior.predictive import NormalMixture
from mercer.random import entropy_of
from mercer.spectral.kernel_estimator import KernelAnswers
from mercer.spectral.predict import FunctionDraws

__all__ = ["FunctionRegressor"]

Array = NDArray[np.float64]


class FunctionRegressor(KernelAnswers, NumberAnswers[NormalMixture]):
    """Base of `BaNKRegressor`: all that needs the drawn functions and spectra only."""

    _functions: FunctionDraws

    def sample_y(
        self,
        X: ArrayLike,
        n_draws: int = 1,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> Array:
        """Draw new targets of each row, independent of each other given the draw: (n_draws, m)."""
        check_is_fitted(self)
        check_count("n_draws", n_draws, 1)
        rng = np.random.default_rng(entropy_of(random_state))
        Z = self._standardized(X)
        # All rows of a draw come from the same function, in whatever block they are.
        drawn = rng.integers(len(self._functions.scales), size=n_draws)
        parts = [self._law(Z[rows]).sample(rng, n_draws, drawn) for rows in self._blocks(Z)]
        return np.concatenate(parts, axis=1)

    def _law(self, Z: Array) -> NormalMixture:
        centre, locations = self._functions.locations(Z)
        scale, shift = self.target_scale_, self.target_centre_
        return NormalMixture(
            locations * scale + shift, self._functions.scales * scale, centre * scale + shift
        )

    def _expected(self, Z: Array) -> Array:
        mean = self._functions.expected(Z) * self.target_scale_ + self.target_centre_
        return np.asarray(mean)
