"""Warm-up of the sphere samplers: the length of a trajectory, and directions for the line moves.

Both come from the spread of g over the draws of a window. A trajectory of pi/2 would make g
independent where no wall is met; where many rows hold g in a narrow cone it need be no longer than
takes it across: a few posterior standard deviations. Directions are the principal axes of the
covariance, as long as the standard deviation along them.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.sampling.adaptation import mass_windows
from mercer.sampling.sampler import Adaptation
from mercer.sphere.model import SphereModel
from mercer.sphere.moves import Moves

__all__ = ["LearnedSpread", "SphereAdaptation", "SphereTuning", "first_moves"]

Array = NDArray[np.float64]

QUARTER = 0.5 * math.pi
# Trajectories are this many posterior standard deviations long, where that is below a quarter.
_LENGTH_IN_SD = 6.0
# The covariance is rotated into directions up to this rank; above, line moves keep their axes.
_LARGEST_ROTATED = 100
# Directions of the line moves where trajectories do most of the work.
_N_LINES = 16


@dataclass(frozen=True)
class SphereTuning:
    """What warm-up changes: the duration, and the directions d of shape (k, r)."""

    duration: float
    directions: Array


@dataclass(frozen=True)
class LearnedSpread:
    """Steps seen, and the g of the window in hand, shape (k, r)."""

    n_seen: int
    window: Array


@dataclass(frozen=True)
class SphereAdaptation(Adaptation):
    """Tune over ``n_warmup`` steps, in windows, each twice as long as the last."""

    n_warmup: int

    def init(self, sampler: Any) -> LearnedSpread:
        """Nothing is known."""
        return LearnedSpread(0, np.empty((0, sampler.model.rank)))

    def update(
        self, learned: LearnedSpread, sampler: Any, state: Any, info: Any
    ) -> tuple[LearnedSpread, Any]:
        """Gather g; at the end of a window tune to its spread."""
        n_seen, window = learned.n_seen + 1, learned.window
        first, ends = mass_windows(self.n_warmup)
        if first < n_seen <= max(ends, default=0):
            window = np.vstack([window, state.point[sampler.model.n_rows :]])
        if n_seen in ends:
            sampler = self.with_tuning(sampler, _tuned(window, sampler.moves, sampler.model))
            window = window[:0]
        return LearnedSpread(n_seen, window), sampler

    def finish(self, learned: LearnedSpread, sampler: Any) -> Any:
        """Return the sampler as the last window left it."""
        return sampler

    def tuning(self, sampler: Any) -> SphereTuning:
        """Return duration and directions."""
        n = sampler.model.n_rows
        return SphereTuning(sampler.moves.duration, sampler.moves.directions[:, n:])

    def with_tuning(self, sampler: Any, tuning: SphereTuning) -> Any:
        """Put duration and directions in place."""
        directions = sampler.model.extended(tuning.directions)
        moves = Moves(sampler.moves.names, tuning.duration, directions)
        return dataclasses.replace(sampler, moves=moves)


def first_moves(names: tuple[str, ...], model: SphereModel) -> Moves:
    """Moves before anything is known: axes as directions, lengths from the shape of the data."""
    n, r = model.L.shape
    n_lines = 0 if "lines" not in names else r if "hmc" not in names else min(r, _N_LINES)
    directions = model.extended(np.eye(r)[:n_lines])
    return Moves(names, min(QUARTER, 8.0 * r / n), directions)


def _tuned(window: Array, moves: Moves, model: SphereModel) -> SphereTuning:
    n, r = model.L.shape
    deviations = window - window.mean(axis=0)
    directions = window * (math.sqrt(r) / np.linalg.norm(window, axis=1, keepdims=True))
    sd = math.sqrt(float(np.mean(directions.var(axis=0))))  # without that of the length
    duration = QUARTER if n <= r else min(QUARTER, max(_LENGTH_IN_SD * sd, 1e-6))
    axes = moves.directions[:, n:]
    if len(axes) > 0 and r <= _LARGEST_ROTATED and len(window) > 2 * r:
        variances, vectors = np.linalg.eigh(deviations.T @ deviations / len(window))
        scaled = (vectors * np.sqrt(np.maximum(variances, 1e-12 * variances.max()))).T[::-1]
        axes = np.ascontiguousarray(scaled[: len(axes)])
    return SphereTuning(duration, axes)
