"""What the hyperparameters of all GP models have in common: how samplers see them, their range."""

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
    "is_within_range",
    "no_density",
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
