"""A log density that samplers can move on, and a point at which it has been evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Point", "Target"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Point:
    """A position with all that evaluating the target there gave.

    Attributes
    ----------
    position : ndarray of shape (p,)
    log_density : float
        Up to a constant, in nats; -inf where the target has no mass.
    gradient : ndarray of shape (p,)
        Of the log density.
    extra : mapping of names to arrays
        By-products of the evaluation that are recorded with a draw.
    """

    position: Array
    log_density: float
    gradient: Array
    extra: Mapping[str, Array] = field(default_factory=dict)


class Target(Protocol):
    """Anything with a differentiable log density on R^p."""

    def evaluate(self, theta: Array) -> Point:
        """Evaluate log density and gradient at a position of shape (p,)."""
        ...
