"""All rows of a training set as steps of the one driver, which keeps the last state only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.basis.arrays import Array
from mercer.sampling.sampler import Sampler
from mercer.sampling.signals import check_stop

__all__ = ["BatchInfo", "BatchSampler", "BatchState", "RowFilters"]


class RowFilters(Protocol):
    """Filters side by side, which learn row after row."""

    def init(self, rng: np.random.Generator) -> Any:
        """Draw the populations before the first row."""
        ...

    def learn(self, rng: np.random.Generator, state: Any, x: Array, y: Any) -> tuple[Any, Any]:
        """Learn a row; the arrays of ``state`` are used up."""
        ...

    def copied(self, state: Any) -> Any:
        """Return a state that shares no array with this one."""
        ...


@dataclass(frozen=True, eq=False)
class BatchState:
    """The filters after some rows, and the predictive log densities of these (n,), in nats."""

    filters: Any
    log_density: Array


@dataclass(frozen=True)
class BatchInfo:
    """What a progress bar shows: mean predictive log density of the rows of the step."""

    log_density: float


@dataclass(frozen=True, eq=False)
class BatchSampler(Sampler[BatchState, BatchInfo]):
    """Learns the rows in order, ``n_at_once`` a step.

    Attributes
    ----------
    filters : Bank or StickBreaking
    Z : ndarray of shape (n, d)
        Standardised.
    y : ndarray of shape (n,)
        Standardised, or positions among the classes.
    n_at_once : int
    """

    filters: RowFilters
    Z: Array
    y: NDArray[Any]
    n_at_once: int

    @property
    def n_steps(self) -> int:
        """Steps to the last row."""
        return -(-len(self.y) // self.n_at_once)

    def init(self, rng: np.random.Generator) -> BatchState:
        """Draw the populations before the first row."""
        return BatchState(self.filters.init(rng), np.zeros(len(self.y)))

    def step(self, rng: np.random.Generator, state: BatchState) -> tuple[BatchState, BatchInfo]:
        """Learn the next rows."""
        filters, densities = self.filters.copied(state.filters), state.log_density.copy()
        first = filters.n_seen
        last = min(first + self.n_at_once, len(self.y))
        for t in range(first, last):
            check_stop()
            filters, outlook = self.filters.learn(rng, filters, self.Z[t], self.y[t].item())
            densities[t] = outlook.log_density
        mean = float(densities[first:last].mean()) if last > first else 0.0
        return BatchState(filters, densities), BatchInfo(mean)

    def record(self, state: BatchState) -> Mapping[str, NDArray[Any]]:
        """Return the number of centres of each particle of the first filter."""
        return {"n_centres": state.filters.states[0].particles.size}
