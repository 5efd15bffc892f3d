"""The mass of Hamiltonian samplers, as an estimate of the covariance of the target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from mercer.errors import NumericalError

__all__ = ["Mass", "mass_from_covariance", "mass_from_draws", "unit_mass"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Mass:
    """Momentum p ~ N(0, M) with M^-1 = ``covariance`` = ``factor`` factor'."""

    covariance: Array
    factor: Array

    def draw_momentum(self, rng: np.random.Generator) -> Array:
        """Draw p ~ N(0, M): solve factor' p = z."""
        z = rng.standard_normal(len(self.covariance))
        return np.asarray(solve_triangular(self.factor, z, trans=1, lower=True))

    def velocity(self, p: Array) -> Array:
        """M^-1 p."""
        return np.asarray(self.covariance @ p)

    def kinetic_energy(self, p: Array) -> float:
        """p' M^-1 p / 2."""
        return float(0.5 * (p @ self.velocity(p)))


def unit_mass(n: int) -> Mass:
    """Mass one for every coordinate."""
    return Mass(np.eye(n), np.eye(n))


def mass_from_covariance(covariance: Array) -> Mass:
    """Mass whose inverse is the given positive definite covariance.

    Raises
    ------
    NumericalError
        If it is not positive definite.
    """
    try:
        factor = np.ascontiguousarray(np.linalg.cholesky(covariance), dtype=np.float64)
    except np.linalg.LinAlgError as error:
        raise NumericalError("the covariance of the mass is not positive definite") from error
    return Mass(np.ascontiguousarray(covariance), factor)


def mass_from_draws(draws: Array) -> Mass:
    """Mass from warm-up draws of shape (k, p), shrunk towards a diagonal.

    Notes
    -----
    k/(k+5) of the sample covariance, of whose off-diagonal a further 5/(k+5) is dropped, plus
    5/(k+5) of 1e-3: weak enough to follow the draws, strong enough to stay positive definite.
    """
    k, p = draws.shape
    keep = k / (k + 5.0)
    sample = np.atleast_2d(np.cov(draws, rowvar=False))
    diagonal = np.diag(np.diag(sample))
    shrunk = keep * (keep * sample + (1.0 - keep) * diagonal)
    return mass_from_covariance(shrunk + 1e-3 * (1.0 - keep) * np.eye(p))
