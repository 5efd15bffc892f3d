"""The posterior of two hyperparameters on a grid: its moments, marginals and exact draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.gp.laplace import HyperparameterPosterior


@dataclass(frozen=True)
class Grid:
    """Density on a product of two equally spaced axes; ``weights`` sum to one."""

    axes: tuple[np.ndarray, np.ndarray]
    log_density: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, model: HyperparameterPosterior, size: int, half_width: float) -> Grid:
        """Evaluate a model with one input, so many prior standard deviations either way."""
        mean, std = model.prior.mean, model.prior.std
        span = np.linspace(-half_width, half_width, size)
        axes = (mean[0] + std[0] * span, mean[1] + std[1] * span)
        log_density = np.array(
            [[model.evaluate(np.array([u, v])).log_density for v in axes[1]] for u in axes[0]]
        )
        weights = np.exp(log_density - log_density.max())
        return cls(axes, log_density, weights / weights.sum())

    @property
    def edge_mass(self) -> float:
        """Share of the mass that lies on the border."""
        return float(1.0 - self.weights[1:-1, 1:-1].sum())

    def expectation(self, functions) -> np.ndarray:
        """Expectations of functions of theta (N, 2) -> (N, K): the trapezoid rule."""
        theta = np.stack(np.meshgrid(*self.axes, indexing="ij"), axis=-1).reshape(-1, 2)
        return self.weights.ravel() @ functions(theta)

    def cdf(self, k: int):
        """Distribution function of theta_k: the marginal's integral, by cubic splines."""
        from scipy.interpolate import CubicSpline

        axis = self.axes[k]
        marginal = self.weights.sum(axis=1 - k)
        integral = CubicSpline(axis, marginal).antiderivative()
        total = float(integral(axis[-1]))
        return lambda x: np.clip(integral(np.clip(x, axis[0], axis[-1])) / total, 0.0, 1.0)

    def draw(self, rng: np.random.Generator, model: HyperparameterPosterior, count: int):
        """Exact draws by rejection from a step function over the cells, and its excess.

        The step is the largest density at a cell's corners times e^(0.5): the second value is
        the largest ratio of density to step that was met, which must not exceed one.
        """
        corners = [self.log_density[i:-1 + i or None, j:-1 + j or None]
                   for i in (0, 1) for j in (0, 1)]  # fmt: skip
        log_step = np.maximum.reduce(corners) + 0.5
        share = np.exp(log_step - log_step.max()).ravel()
        share /= share.sum()
        widths = np.array([axis[1] - axis[0] for axis in self.axes])
        draws, largest = [], 0.0
        while len(draws) < count:
            cell = np.array(np.unravel_index(rng.choice(share.size, p=share), log_step.shape))
            low = np.array([self.axes[0][cell[0]], self.axes[1][cell[1]]])
            theta = low + widths * rng.random(2)
            ratio = np.exp(model.evaluate(theta).log_density - log_step[tuple(cell)])
            largest = max(largest, float(ratio))
            if rng.random() < ratio:
                draws.append(theta)
        return np.array(draws), largest


def five_moments(theta: np.ndarray) -> np.ndarray:
    """First and second moments of two parameters: shape (N, 5)."""
    u, v = theta.T
    return np.column_stack([u, v, u * u, v * v, u * v])
