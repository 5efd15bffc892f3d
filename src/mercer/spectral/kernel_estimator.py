"""What drawn spectra answer: the learned kernel and its density, whatever it was learned from."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.errors import UsageError
from mercer.estimation.options import check_choice
from mercer.spectral.spectrum import Band, Spectrum

__all__ = ["KernelAnswers"]

Array = NDArray[np.float64]


class KernelAnswers:
    """Mixin of estimators that learn a kernel."""

    n_features_in_: int
    _spectrum: Spectrum

    def kernel(self, lags: ArrayLike) -> Band:
        """Kernel that was learned, as a function of the difference of two inputs.

        Parameters
        ----------
        lags : array of shape (n, d), or (n,) for one input
            In units of the inputs; those of a warped input are measured at its centre.

        Returns
        -------
        mean, lower, upper : ndarray of shape (n,)
            Over draws, the central 90 %; 1 at lag 0.
        """
        check_is_fitted(self)
        return self._spectrum.kernel(self._points(lags, "lags"))

    def spectral_density(self, frequencies: ArrayLike) -> Band:
        """Density of frequencies, the same for w and -w.

        Parameters
        ----------
        frequencies : array of shape (n, d), or (n,) for one input
            In radians per unit of each input.

        Returns
        -------
        mean, lower, upper : ndarray of shape (n,)
            Over draws, the central 90 %.
        """
        check_is_fitted(self)
        return self._spectrum.density(self._points(frequencies, "frequencies"))

    def marginal_spectral_density(self, frequencies: ArrayLike, column: int) -> Band:
        """Density of the frequencies of one input, at frequencies of shape (n,).

        Parameters
        ----------
        frequencies : array of shape (n,)
            In radians per unit of the input.
        column : int
            Position of the input, from 0.
        """
        check_is_fitted(self)
        check_choice("column", column, range(self.n_features_in_))
        values = np.asarray(frequencies, dtype=np.float64)
        if values.ndim != 1 or not np.isfinite(values).all():
            raise UsageError(
                f"frequencies must be finite numbers of shape (n,); got {values.shape}"
            )
        return self._spectrum.marginal_density(values, int(column))

    def _points(self, values: ArrayLike, name: str) -> Array:
        points = np.asarray(values, dtype=np.float64)
        d = self.n_features_in_
        if points.ndim == 1 and d == 1:
            points = points[:, np.newaxis]
        if points.ndim != 2 or points.shape[1] != d or not np.isfinite(points).all():
            raise UsageError(f"{name} must be finite numbers of shape (n, {d}); got {points.shape}")
        return points
