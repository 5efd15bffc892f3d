"""What a regressor says of new rows: a law of each row's target, in the user's units."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import UsageError
from mercer.numerics.normal_mixture import mixture_cdf, mixture_log_density, mixture_quantiles
from mercer.posterior.mixture_checks import check_components, one_value_per_row

__all__ = ["NormalMixture", "Predictive", "check_level"]

Array = NDArray[np.float64]


class Predictive(Protocol):
    """The predictive law of the targets of m rows."""

    @property
    def mean(self) -> Array:
        """What is reported as the prediction, of shape (m,)."""
        ...

    @property
    def std(self) -> Array:
        """Standard deviation of a new observation, of shape (m,)."""
        ...

    def log_density(self, y: ArrayLike) -> Array:
        """Log density of one value per row, in nats; finite."""
        ...

    def cdf(self, y: ArrayLike) -> Array:
        """Probability of values up to y, one per row, in [0, 1]: the PIT of an observation."""
        ...

    def interval(self, level: float) -> tuple[Array, Array]:
        """Lower and upper ends of the central interval of that probability."""
        ...

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """Draw n new targets of each row, of shape (n, m)."""
        ...


@dataclass(frozen=True, eq=False)
class NormalMixture:
    """A mixture of normals with equal weights for each of m rows: one normal a posterior draw.

    Parameters
    ----------
    locations : ndarray of shape (m, C)
        Means of the components.
    scales : ndarray of shape (C,) or (m, C)
        Their standard deviations, positive.
    centre : ndarray of shape (m,), optional
        The mean that is reported, where a better one than the average of the locations is known:
        one with draws integrated out.

    Raises
    ------
    DataError
        When shapes do not fit, a value is not finite, or a scale is not positive.

    Examples
    --------
    >>> law = NormalMixture(np.array([[-1.0, 1.0]]), np.array([1.0, 1.0]))
    >>> float(law.mean[0]), round(float(law.std[0]), 4), float(law.cdf([0.0])[0])
    (0.0, 1.4142, 0.5)
    """

    locations: Array
    scales: Array
    centre: Array | None = None

    def __post_init__(self) -> None:
        check_components(self.locations, self.scales, self.centre)

    @cached_property
    def _average(self) -> Array:
        """Mean of the mixture itself."""
        return np.asarray(self.locations.mean(axis=1))

    @property
    def mean(self) -> Array:
        """The centre where it is given, else the mean of the mixture."""
        return self._average if self.centre is None else self.centre

    @cached_property
    def std(self) -> Array:
        """Standard deviation of the mixture."""
        deviations = self.locations - self._average[:, np.newaxis]
        scales = np.broadcast_to(self.scales, deviations.shape)
        # The largest is taken out, so that no square underflows or overflows.
        largest = np.maximum(np.abs(deviations).max(axis=1), scales.max(axis=1))[:, np.newaxis]
        squares = (deviations / largest) ** 2 + (scales / largest) ** 2
        return np.asarray(largest[:, 0] * np.sqrt(squares.mean(axis=1)))

    def log_density(self, y: ArrayLike) -> Array:
        """Return the log density of one finite value per row, in nats; finite."""
        return mixture_log_density(
            one_value_per_row(y, len(self.locations)), self.locations, self.scales
        )

    def cdf(self, y: ArrayLike) -> Array:
        """Return the probability of values up to y, one per row."""
        return mixture_cdf(one_value_per_row(y, len(self.locations)), self.locations, self.scales)

    def interval(self, level: float) -> tuple[Array, Array]:
        """Return the ends of the central interval, with equal probability on both sides.

        Parameters
        ----------
        level : float
            Probability inside, in (0, 1).

        Returns
        -------
        lower, upper : ndarray of shape (m,)
            To 1e-8 of the row's standard deviation.
        """
        check_level(level)
        # Centred and scaled, so that an offset costs no digits and the tolerance is relative.
        average, std = self._average[:, np.newaxis], self.std[:, np.newaxis]
        locations = (self.locations - average) / std
        scales = np.broadcast_to(self.scales, locations.shape) / std
        tail = (1.0 - level) / 2.0
        lower = mixture_quantiles(tail, locations, scales)
        upper = -mixture_quantiles(tail, -locations, scales)
        return self._average + self.std * lower, self._average + self.std * upper

    def sample(
        self, rng: np.random.Generator, n: int, chosen: NDArray[np.integer] | None = None
    ) -> Array:
        """Draw new targets.

        Parameters
        ----------
        rng : numpy.random.Generator
        n : int
            Number of draws.
        chosen : ndarray of shape (n,), int, optional
            The component of each draw, where other rows are to share it.

        Returns
        -------
        ndarray of shape (n, m)
            The rows of one draw share their component, as they share the posterior draw that it
            stands for, and have noise of their own.
        """
        if chosen is None:
            chosen = rng.integers(self.locations.shape[1], size=n)
        scales = np.broadcast_to(self.scales, self.locations.shape)
        noise = rng.standard_normal((n, len(self.locations)))
        return np.asarray(self.locations[:, chosen].T + scales[:, chosen].T * noise)


def check_level(level: float) -> None:
    """Refuse a probability of an interval that is not between 0 and 1.

    Raises
    ------
    UsageError
        Naming it.
    """
    is_real = isinstance(level, numbers.Real)
    if not (is_real and 0.0 < level < 1.0):
        raise UsageError(f"level must be between 0 and 1, and is {level!r}")
