"""The posterior of a GP regressor's three hyperparameters, with one input, on a grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.gp.gaussian import NOISE_FLOOR, RegressionPosterior


@dataclass(frozen=True)
class ProcessGrid:
    """Weights of log (v0, w, noise variance) on three equally spaced axes; they sum to one."""

    axes: tuple[np.ndarray, np.ndarray, np.ndarray]
    weights: np.ndarray

    @classmethod
    def of(cls, model: RegressionPosterior, size: int, half_width: float) -> ProcessGrid:
        """So many prior standard deviations either way.

        One eigendecomposition of the correlations for each w: without the intercept C has
        eigenvalues v0 lambda + s2, and y and 1 their coordinates, whatever v0 and s2; the
        intercept adds a matrix of rank one.
        """
        span = np.linspace(-half_width, half_width, size)
        prior = model.prior
        axes = tuple(m + s * span for m, s in zip(prior.mean, prior.std, strict=True))
        v0, t = np.exp(axes[0])[:, None, None], axes[2][None, :, None]
        noise = np.exp(t) + NOISE_FLOOR * (1.0 + v0)
        squares = (model.X - model.X.T) ** 2
        log_density = np.empty((size, size, size))
        for k, log_w in enumerate(axes[1]):
            values, vectors = np.linalg.eigh(np.exp(-0.5 * np.exp(log_w) * squares))
            spectrum = v0 * np.maximum(values, 0.0) + noise
            terms = (vectors.T @ model.y) ** 2 / spectrum + np.log(spectrum)
            of_y, of_one = vectors.T @ model.y, vectors.T @ np.ones(len(model.y))
            gain = model.intercept_variance * (of_one**2 / spectrum).sum(axis=2)
            pull = model.intercept_variance * (of_one * of_y / spectrum).sum(axis=2) ** 2
            rank_one = np.log1p(gain) - pull / (1.0 + gain)
            log_density[:, k] = -0.5 * (terms.sum(axis=2) + rank_one)
        z = 0.5 * span**2
        log_density -= z[:, None, None] + z[:, None] + z
        weights = np.exp(log_density - log_density.max())
        return cls(axes, weights / weights.sum())

    @property
    def edge_mass(self) -> float:
        """Share of the mass that lies on the border."""
        return float(1.0 - self.weights[1:-1, 1:-1, 1:-1].sum())

    def moments(self) -> np.ndarray:
        """First and second moments, in the order of `nine_moments`: the trapezoid rule."""
        theta = np.stack(np.meshgrid(*self.axes, indexing="ij"), axis=-1).reshape(-1, 3)
        return self.weights.ravel() @ nine_moments(theta)


def nine_moments(theta: np.ndarray) -> np.ndarray:
    """First and second moments of three parameters: shape (N, 9)."""
    u, v, t = theta.T
    return np.column_stack([u, v, t, u * u, v * v, t * t, u * v, u * t, v * t])
