"""Scikit-learn's Gaussian process with one length scale an input, found by maximum likelihood."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.preprocessing import StandardScaler

from mercer.baselines.residual_spread import least_std
from mercer.posterior.predictive import NormalMixture

__all__ = ["ArdProcess"]

Array = NDArray[np.float64]


class ArdProcess(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A Gaussian process with the RBF kernel on standardised inputs, and noise.

    Its law of a new observation is its own: the variance of the function and that of the noise.
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> ArdProcess:
        """Maximise the marginal likelihood, from length scales of sqrt(d) and a tenth of noise."""
        target = np.asarray(y, dtype=np.float64)
        self.scaler_ = StandardScaler().fit(X)
        Z = self.scaler_.transform(X)
        d = Z.shape[1]
        function = ConstantKernel(1.0, (1e-3, 1e4)) * RBF(np.full(d, np.sqrt(d)), (1e-2, 1e4))
        noise = WhiteKernel(0.1, (1e-8, 10.0))
        self.process_ = GaussianProcessRegressor(function + noise, normalize_y=True)
        self.process_.fit(Z, target)
        self.least_std_ = least_std(target)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Return the posterior mean, of shape (m,)."""
        return np.asarray(self.process_.predict(self.scaler_.transform(X)), dtype=np.float64)

    def predictive(self, X: ArrayLike) -> NormalMixture:
        """Return a normal law for each row."""
        mean, std = self.process_.predict(self.scaler_.transform(X), return_std=True)
        return NormalMixture(mean[:, np.newaxis], np.maximum(std, self.least_std_)[:, np.newaxis])
