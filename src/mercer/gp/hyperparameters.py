"""What the hyperparameters of all GP models have in common: their prior, range and start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.numerics.normal_prior import NormalPrior
from mercer.sampling.target import Point

__all__ = [
    "LARGEST_LOG",
    "NO_EVIDENCE",
    "HyperparameterTarget",
    "default_prior",
    "is_within_range",
    "no_density",
    "paper_prior",
    "paper_start",
]

Array = NDArray[np.float64]

NO_EVIDENCE = "the evidence cannot be computed in double precision; standardise the inputs"

# exp(40) is beyond any scale that data can tell apart, and within double precision.
LARGEST_LOG = 40.0


class HyperparameterTarget(Protocol):
    """The posterior of the log parameters of a GP, as searches and samplers see it."""

    @property
    def prior(self) -> NormalPrior:
        """Of the log parameters, shape (p,)."""
        ...

    @property
    def starts(self) -> tuple[Array, ...]:
        """Where searches begin, each of shape (p,); the paper's chain begins at the first."""
        ...

    def evaluate(self, theta: Array) -> Point:
        """Evaluate log density, gradient and what a draw records at theta of shape (p,)."""
        ...


def is_within_range(theta: Array) -> bool:
    """Whether all log parameters are numbers that double precision and data can tell apart."""
    return bool(np.all(np.abs(theta) < LARGEST_LOG))


def no_density(theta: Array, extra: Mapping[str, Array]) -> Point:
    """Return a point of no mass and no slope, where the evidence cannot be computed."""
    return Point(theta, -np.inf, np.zeros_like(theta), extra)


def default_prior(n_inputs: int) -> NormalPrior:
    """log v0 ~ N(1, 3^2), log w_l ~ N(-1 - log d, 2^2).

    Wide where data speak (separable classes want v0 of e^4 to e^7), and with the weight of an
    input that says nothing at a size that does not slow the chain down.
    """
    mean = np.full(n_inputs + 1, -1.0 - np.log(n_inputs))
    std = np.full(n_inputs + 1, 2.0)
    mean[0], std[0] = 1.0, 3.0
    return NormalPrior(mean, std)


def paper_prior(n_inputs: int) -> NormalPrior:
    """N(-3, 3^2) for every log parameter: section 2.3 of the paper."""
    return NormalPrior(np.full(n_inputs + 1, -3.0), np.full(n_inputs + 1, 3.0))


def paper_start(n_inputs: int) -> Array:
    """0 for log v0 and -2 for every log w: section 2.3 of the paper."""
    theta = np.full(n_inputs + 1, -2.0)
    theta[0] = 0.0
    return theta
