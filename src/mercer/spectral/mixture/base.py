"""What a base measure and its components must know; parameters of both kinds of base.

A component of the mixture is a normal distribution of frequencies, N(mu_k, Sigma_k). The base
measure is the prior of (mu_k, Sigma_k), conjugate and centred at 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mercer.errors import UsageError

__all__ = [
    "Array",
    "BaseMeasure",
    "Components",
    "Labels",
    "ScalePrior",
    "group_moments",
    "require_positive",
]

Array = NDArray[np.float64]
Labels = NDArray[np.int64]


class Components(ABC):
    """K normal distributions of frequencies in d inputs."""

    means: Array

    @property
    def n_components(self) -> int:
        """K."""
        return int(self.means.shape[0])

    @property
    @abstractmethod
    def stds(self) -> Array:
        """Standard deviation of each input, shape (K, d)."""

    @abstractmethod
    def log_densities(self, W: Array) -> Array:
        """Log density of frequencies W (n, d) under each component, shape (n, K), in nats."""

    @abstractmethod
    def draw_noise(self, rng: np.random.Generator, assignment: Labels) -> Array:
        """Draw N(0, Sigma_k) for each entry k of ``assignment`` (n,), shape (n, d)."""

    @abstractmethod
    def characteristic(self, lags: Array) -> Array:
        """Real part exp(-t'Sigma t / 2) cos(mu't) at lags t (n, d), shape (n, K)."""


C = TypeVar("C", bound=Components)


@dataclass(frozen=True)
class ScalePrior:
    """Gamma(shape, shape / mean) prior of each scale of a base measure.

    Attributes
    ----------
    shape : float
    mean : ndarray of the shape of the scale
        t0, in squared units of a frequency for a diagonal base, a factor for a full one.
    """

    shape: float
    mean: Array

    def __post_init__(self) -> None:
        require_positive("shape of the prior of the scale", self.shape)
        require_positive("mean of the prior of the scale", self.mean)

    def draw(self, rng: np.random.Generator) -> Array:
        """Draw the scales from their prior."""
        return rng.gamma(self.shape, self.mean / self.shape)

    def draw_posterior(self, rng: np.random.Generator, half_count: float, half_sum: Array) -> Array:
        """Draw t from its prior times t^half_count exp(-half_sum t)."""
        return np.asarray(
            rng.gamma(self.shape + half_count, 1.0 / (self.shape / self.mean + half_sum))
        )


class BaseMeasure(ABC, Generic[C]):
    """A conjugate prior of components.

    Attributes
    ----------
    scale : ndarray
        What the chain may redraw: see the two kinds.
    kappa0 : float
        mu_k | Sigma_k ~ N(0, Sigma_k / kappa0).
    nu0 : float
        Degrees of freedom of the prior of Sigma_k.
    """

    scale: Array
    kappa0: float
    nu0: float

    @property
    @abstractmethod
    def n_inputs(self) -> int:
        """Length of a frequency."""

    @abstractmethod
    def with_scale(self, scale: Array) -> BaseMeasure[C]:
        """Return the same base with another scale."""

    @abstractmethod
    def log_predictive(self, W: Array) -> Array:
        """Log density of frequencies W (n, d) alone in a new component, shape (n,), in nats."""

    @abstractmethod
    def log_marginal(self, W: Array) -> float:
        """Log density of frequencies W (m, d) that share one component, in nats."""

    @abstractmethod
    def draw_components(
        self, rng: np.random.Generator, W: Array, assignment: Labels, n_components: int
    ) -> C:
        """Draw each (mu_k, Sigma_k) given its members among W (n, d); from the prior if none."""

    @abstractmethod
    def draw_scale(
        self, rng: np.random.Generator, components: C, prior: ScalePrior
    ) -> BaseMeasure[C]:
        """Draw the scale given all components, and return the base with it."""

    @abstractmethod
    def characteristic(self, lags: Array) -> Array:
        """Characteristic function of a frequency in a new component at lags (n, d), shape (n,)."""

    @abstractmethod
    def log_marginal_predictive(self, values: Array, j: int) -> Array:
        """Log density of input j of a frequency in a new component at values (n,)."""


def require_positive(name: str, value: float | Array) -> None:
    """Refuse what is not a finite positive number.

    Raises
    ------
    UsageError
        Naming the parameter and its range.
    """
    if not np.all(np.isfinite(value) & (np.asarray(value) > 0.0)):
        raise UsageError(f"{name} must be positive and finite; got {value}")


def group_moments(W: Array, assignment: Labels, n_components: int) -> tuple[Array, Array, Array]:
    """Return number of members (K,), their mean (K, d) (0 if none) and W less it (n, d)."""
    is_member = (assignment == np.arange(n_components)[:, np.newaxis]).astype(np.float64)
    counts = is_member.sum(axis=1)
    means = (is_member @ W) / np.maximum(counts, 1.0)[:, np.newaxis]
    return counts, means, W - means[assignment]
