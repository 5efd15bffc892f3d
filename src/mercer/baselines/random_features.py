"""Banks of random frequencies, and the spectral densities that they are drawn from.

A kernel of differences t = x - x', for a unit length scale, and how its frequencies are drawn:

    "rbf"       exp(-|t|^2 / 2)            omega_l ~ N(0, 1)
    "laplace"   prod_l exp(-|t_l|)         omega_l ~ Cauchy, density 1 / (pi (1 + omega^2))
    "cauchy"    prod_l 1 / (1 + t_l^2)     omega_l ~ Laplace, density exp(-|omega|) / 2

The last two are products over inputs. A length scale s takes t / s for t, and omega / s for omega.

Concatenating the features of several kernels with equal weights, eq. (17) of [1]_, is the feature
map of their pooled frequencies, so that a bank is one matrix of frequencies. With F of them

    phi(x) = F^(-1/2) [cos(omega_1'x), sin(omega_1'x), cos(omega_2'x), ..]

References
----------
.. [1] J. B. Oliva et al., Bayesian nonparametric kernel-learning, AISTATS (2016).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

__all__ = ["KERNELS", "Bank", "draw_bank", "typical_distance"]

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, int]], Array]

# Pairs of so many rows at most give the typical distance.
_DISTANCE_ROWS = 1000


def _normal(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return rng.standard_normal(shape)


def _cauchy(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return rng.standard_cauchy(shape)


def _double_exponential(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return rng.laplace(size=shape)


# Name of a kernel: draws of its frequencies, and the distance that its length scale is measured in.
KERNELS: Final[dict[str, tuple[Draw, str]]] = {
    "rbf": (_normal, "euclidean"),
    "laplace": (_cauchy, "cityblock"),
    "cauchy": (_double_exponential, "euclidean"),
}


@dataclass(frozen=True, eq=False)
class Bank:
    """Frequencies whose common length scale is still to be chosen.

    Attributes
    ----------
    frequencies : ndarray of shape (F, d)
        At length scale factor 1, in radians per unit of the standardised inputs.
    """

    frequencies: Array

    def scaled(self, factor: float) -> Array:
        """Return the frequencies with all length scales multiplied by ``factor``."""
        return self.frequencies / factor


def draw_bank(
    rng: np.random.Generator,
    Z: Array,
    kernels: Sequence[str],
    scales: Sequence[float],
    n_frequencies: int,
) -> Bank:
    """Draw frequencies of every kernel at every scale, in equal shares.

    Parameters
    ----------
    rng : Generator
    Z : ndarray of shape (n, d)
        Standardised rows, for the typical distances.
    kernels : sequence of str
        Of `KERNELS`.
    scales : sequence of float
        Length scales, in typical distances of the kernel: Euclidean, or city-block for "laplace".
    n_frequencies : int
        F: at least one for each kernel and scale; what is left over goes to the first ones.

    Returns
    -------
    Bank
    """
    members = [(kernel, scale) for kernel in kernels for scale in scales]
    share, n_left = divmod(n_frequencies, len(members))
    distance = {kernel: typical_distance(rng, Z, KERNELS[kernel][1]) for kernel in kernels}
    parts = []
    for k, (kernel, scale) in enumerate(members):
        draw, _ = KERNELS[kernel]
        n = share + (k < n_left)
        parts.append(draw(rng, (n, Z.shape[1])) / (scale * distance[kernel]))
    return Bank(np.vstack(parts))


def typical_distance(rng: np.random.Generator, Z: Array, metric: str) -> float:
    """Median distance of two rows that differ, among 1000 rows at most; 1 if all are equal."""
    if len(Z) > _DISTANCE_ROWS:
        Z = Z[rng.choice(len(Z), _DISTANCE_ROWS, replace=False)]
    distances = pdist(Z, metric)
    distances = distances[distances > 0.0]
    return float(np.median(distances)) if distances.size else 1.0
