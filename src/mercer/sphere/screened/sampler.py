"""Many rows: trajectories that meet only the rows near the boundary, corrected by the others.

**Target.** That of `mercer.sphere.sampler`, for noise that is common to all rows.

**One step**: a number of trajectories, each by delayed acceptance.

0. The length of g is drawn anew from its law.
1. Follow a trajectory of reflecting and refracting HMC on the surrogate: only the active rows cost
   anything, the far ones are taken to have as many errors as they had at the end of warm-up.
2. Accept its end with probability min(1, exp(-(D(end) - D(start)))), D the cost of all errors
   less that of the surrogate. The errors of the far rows come from one product in single
   precision for many trajectories at once; what was drawn after a rejection is drawn again.

**Deviations.** Not in the paper. Active are the rows with |mean f| < 8 sd(f) under the draws of
warm-up; the set is frozen then, so that the chain is exact. Far rows hardly ever err otherwise
than at their mean, and acceptance is close to one.

**Cost.** O(m + r) an event for m active rows, and O(n r) a trajectory in the product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.likelihoods.label_noise import LabelNoise
from mercer.sampling.sampler import Sampler
from mercer.sphere.compiled import reflect_and_refract
from mercer.sphere.model import SphereModel

__all__ = ["Rows", "ScreenedInfo", "ScreenedSampler", "ScreenedState", "Screening"]

Array = NDArray[np.float64]
Rows = NDArray[np.floating[Any]]

_JITTER = 0.2
_MAX_EVENTS_A_ROW = 100
# Rows of the product that are held at a time.
_BLOCK_ROWS = 16384


@dataclass(frozen=True)
class Screening:
    """What warm-up changes.

    Attributes
    ----------
    active : ndarray of shape (m,), int64
        Rows that a trajectory meets.
    n_far_errors : int
        Errors that the surrogate takes the others to have.
    duration : float
        Of a trajectory.
    """

    active: NDArray[np.int64]
    n_far_errors: int
    duration: float


@dataclass(frozen=True)
class ScreenedState:
    """A classifier g of shape (r,) and its errors, of all rows."""

    g: Array
    n_errors: int


@dataclass(frozen=True)
class ScreenedInfo:
    """What a diagnostician needs to know of one step; the rate is over its trajectories."""

    acceptance_rate: float
    n_errors: int
    n_events: int


@dataclass(frozen=True)
class ScreenedSampler(Sampler[ScreenedState, ScreenedInfo]):
    """A chain over classifiers of many rows.

    Attributes
    ----------
    L : ndarray of shape (n, r), float32 or float64
        Rows of the feature space, labels multiplied in.
    noise : LabelNoise
        Common to all rows.
    screening : Screening
    n_trajectories : int
        Of a step: what one product looks at.
    start, recorder : callable
        As for `SphereSampler`; the recorder is given (number of errors, g).
    """

    L: Rows
    noise: LabelNoise
    screening: Screening
    n_trajectories: int
    start: Callable[[np.random.Generator], Array]
    recorder: Callable[[int, Array], Mapping[str, NDArray[np.generic]]]

    @cached_property
    def near(self) -> SphereModel:
        """The surrogate: the active rows, in double precision."""
        L = self.L[self.screening.active].astype(np.float64)
        group, row_cost = np.zeros(len(L), np.int64), np.zeros(len(L))
        return SphereModel(L, replace(self.noise, group=group, row_cost=row_cost))

    @cached_property
    def is_far(self) -> NDArray[np.bool_]:
        """The other rows."""
        is_far = np.ones(len(self.L), dtype=bool)
        is_far[self.screening.active] = False
        return is_far

    def init(self, rng: np.random.Generator) -> ScreenedState:
        """Draw a start and count its errors."""
        _ = self.near.table, self.noise.total  # made once, here
        g = self.start(rng)
        n_near = self._near_errors(self.near.point(g))
        return ScreenedState(g, n_near + self._far_errors(g[np.newaxis])[0])

    def step(
        self, rng: np.random.Generator, state: ScreenedState
    ) -> tuple[ScreenedState, ScreenedInfo]:
        """Take ``n_trajectories``, accepted or rejected one by one."""
        length = np.sqrt(rng.chisquare(len(state.g)))  # of g: errors do not depend on it
        point = self.near.point(state.g * (length / np.linalg.norm(state.g)))
        n_far = state.n_errors - self._near_errors(point)
        n_left, n_accepted, n_events = self.n_trajectories, 0, 0
        n_ahead = n_left  # what is followed before the far rows are looked at
        while n_left > 0:
            path, more_events = self._follow(rng, point, min(n_ahead, n_left))  # step 1
            n_ahead *= 2
            far = self._far_errors(path[:, self.near.n_rows :])
            n_events += more_events
            for k in range(len(path)):  # step 2
                n_left -= 1
                gap = self._excess(path[k], far[k]) - self._excess(point, n_far)
                if rng.random() >= np.exp(min(0.0, -gap)):
                    n_ahead = 1
                    break
                point, n_far = path[k], far[k]
                n_accepted += 1
        g = point[self.near.n_rows :].copy()
        n_errors = self._near_errors(point) + n_far
        info = ScreenedInfo(n_accepted / self.n_trajectories, n_errors, n_events)
        return ScreenedState(g, n_errors), info

    def record(self, state: ScreenedState) -> Mapping[str, NDArray[np.generic]]:
        """Return what the recorder makes of the classifier."""
        return self.recorder(state.n_errors, state.g)

    def _follow(
        self, rng: np.random.Generator, point: Array, n_trajectories: int
    ) -> tuple[Array, int]:
        """Points at the ends of successive trajectories of the surrogate."""
        near, screening = self.near, self.screening
        velocities = near.extended(rng.standard_normal((n_trajectories, near.rank)))
        path, total = np.empty((n_trajectories, near.n_rows + near.rank)), 0
        for k in range(n_trajectories):
            end = point.copy()
            errors = np.array([self._near_errors(point) + screening.n_far_errors])
            duration = screening.duration * rng.uniform(1.0 - _JITTER, 1.0 + _JITTER)
            n_events, _, is_whole = reflect_and_refract(
                near.table, end, velocities[k], near.noise.group, errors, near.noise.step,
                near.noise.row_cost, duration, _MAX_EVENTS_A_ROW * near.n_rows + 1000,
            )  # fmt: skip
            point = path[k] = end if is_whole else point
            total += n_events
        return path, total

    def _excess(self, point: Array, n_far: int) -> float:
        """Cost of all errors less the cost that the surrogate saw."""
        n_near, total = self._near_errors(point), self.noise.total[0]
        return float(total[n_near + n_far] - total[n_near + self.screening.n_far_errors])

    def _near_errors(self, point: Array) -> int:
        return int(np.count_nonzero(point[: self.near.n_rows] <= 0.0))

    def _far_errors(self, G: Array) -> list[int]:
        """Errors of the far rows for each row of G, shape (k, r)."""
        if len(self.screening.active) == len(self.L):
            return [0] * len(G)
        return [int(e) for e in _errors_of_rows(self.L, G, self.is_far)]


def _errors_of_rows(L: Rows, G: Array, is_counted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count the rows of L that classifiers G (k, r) get wrong, in the precision of L."""
    vectors = np.ascontiguousarray(G.T, dtype=L.dtype)
    errors = np.zeros(len(G), np.int64)
    for begin in range(0, len(L), _BLOCK_ROWS):
        rows = slice(begin, begin + _BLOCK_ROWS)
        is_wrong = (L[rows] @ vectors <= 0.0) & is_counted[rows, np.newaxis]
        errors += np.count_nonzero(is_wrong, axis=0)
    return errors
