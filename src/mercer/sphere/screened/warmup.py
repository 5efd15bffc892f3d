"""Warm-up of the screened sampler: which rows are near the boundary, and how long to travel."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.sampling.sampler import Adaptation
from mercer.sphere.screened.sampler import Rows, ScreenedSampler, Screening

__all__ = ["LearnedPlace", "ScreenedAdaptation", "first_screening"]

Array = NDArray[np.float64]

# Active rows: |mean f| below so many standard deviations of f.
_N_SD = 8.0
# The table of the active rows has so many squared numbers at most.
_LARGEST_ACTIVE = 12_000
# Rows taken as active before anything is known, for each dimension.
_ROWS_A_DIMENSION = 20
# Trajectories are so many posterior standard deviations long.
_LENGTH_IN_SD = 6.0
# The covariance of few draws is shrunk by this share towards its mean variance.
_SHRINKAGE = 0.2
# Shares of warm-up after which the active rows are chosen anew.
_ROUNDS = (0.1, 0.2, 0.3, 0.4, 0.55, 0.75)
# From one round to the next trajectories become longer at most by this factor.
_LARGEST_GROWTH = 3.0
# Below this share of accepted trajectories a round has left the rows it knew: they become more,
# and trajectories shorter by the factor that follows.
_ACCEPTED, _SHORTER = 0.5, 0.25
_BLOCK_ROWS = 16384


@dataclass(frozen=True)
class LearnedPlace:
    """Steps seen, and since the last round the g, shape (k, r), and the acceptance rates' sum."""

    n_seen: int
    window: Array
    accepted: float


@dataclass(frozen=True)
class ScreenedAdaptation(Adaptation):
    """Choose the active rows in rounds over ``n_warmup`` steps, then freeze them.

    In warm-up too the far rows count: a chain that nears them waits for the next round.
    """

    n_warmup: int

    def init(self, sampler: ScreenedSampler) -> LearnedPlace:
        """Nothing is known."""
        return LearnedPlace(0, np.empty((0, sampler.near.rank)), 0.0)

    def update(
        self, learned: LearnedPlace, sampler: Any, state: Any, info: Any
    ) -> tuple[LearnedPlace, Any]:
        """Gather g; at the end of a round choose the rows and the duration anew."""
        # On the sphere, blown up: the length of g is drawn afresh and says nothing.
        direction = state.g * (math.sqrt(len(state.g)) / np.linalg.norm(state.g))
        n_seen, window = learned.n_seen + 1, np.vstack([learned.window, direction])
        accepted = learned.accepted + info.acceptance_rate
        if n_seen not in [round(share * self.n_warmup) for share in _ROUNDS]:
            return LearnedPlace(n_seen, window, accepted), sampler
        old: Screening = sampler.screening
        if accepted > _ACCEPTED * len(window):
            settled = window[len(window) // 3 :]
            screening = _chosen(sampler.L, settled, _LARGEST_GROWTH * old.duration)
        else:
            screening = _around(sampler.L, direction, 2 * len(old.active), _SHORTER * old.duration)
        sampler = dataclasses.replace(sampler, screening=screening)
        return LearnedPlace(n_seen, window[:0], 0.0), sampler

    def finish(self, learned: LearnedPlace, sampler: Any) -> Any:
        """Return the sampler as the last round left it."""
        return sampler

    def tuning(self, sampler: Any) -> Screening:
        """Return the active rows and the duration."""
        return sampler.screening  # type: ignore[no-any-return]

    def with_tuning(self, sampler: Any, tuning: Screening) -> Any:
        """Put them in place."""
        return dataclasses.replace(sampler, screening=tuning)


def first_screening(L: Rows, g: Array) -> Screening:
    """The rows nearest to a first guess of the classifier."""
    n, r = L.shape
    return _around(L, g, _ROWS_A_DIMENSION * r, min(0.5 * math.pi, 2.0 * r / n))


def _around(L: Rows, g: Array, count: int, duration: float) -> Screening:
    """The rows nearest to the boundary of g, in angle."""
    f = L @ g.astype(L.dtype)
    lengths = np.sqrt(np.einsum("ij,ij->i", L, L))
    distance = np.abs(f) / np.maximum(lengths, np.finfo(L.dtype).tiny)
    active = _nearest_rows(distance, min(count, _LARGEST_ACTIVE))
    return Screening(active, _far_errors(f, active), duration)


def _nearest_rows(distance: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Positions of the smallest distances, in the order of the rows."""
    if count >= len(distance):
        return np.arange(len(distance))
    return np.sort(np.argpartition(distance, count)[:count]).astype(np.int64)


def _chosen(L: Rows, draws: Array, longest: float) -> Screening:
    mean, deviations = draws.mean(axis=0), draws - draws.mean(axis=0)
    variance = float(np.mean(deviations**2))
    f, sd = _moments(L, mean, deviations, variance)
    ratio = np.abs(f) / np.maximum(sd, np.finfo(L.dtype).tiny)
    count = min(int(np.count_nonzero(ratio < _N_SD)), _LARGEST_ACTIVE)
    active = _nearest_rows(ratio, max(count, L.shape[1]))
    duration = min(0.5 * math.pi, _LENGTH_IN_SD * math.sqrt(variance), longest)
    return Screening(active, _far_errors(f, active), max(duration, 1e-9))


def _moments(L: Rows, mean: Array, deviations: Array, variance: float) -> tuple[Any, Any]:
    """Mean and standard deviation of f at every row, under the shrunk covariance of the draws."""
    k, n = len(deviations), len(L)
    scale = math.sqrt((1.0 - _SHRINKAGE) / k)
    vectors = np.vstack([mean, scale * deviations]).T.astype(L.dtype)
    floor = _SHRINKAGE * variance
    f, sd = np.empty(n, L.dtype), np.empty(n, L.dtype)
    for begin in range(0, n, _BLOCK_ROWS):
        block = L[begin : begin + _BLOCK_ROWS]
        products = block @ vectors
        rows = slice(begin, begin + len(block))
        f[rows] = products[:, 0]
        squares = np.einsum("ij,ij->i", products[:, 1:], products[:, 1:])
        sd[rows] = np.sqrt(squares + floor * np.einsum("ij,ij->i", block, block))
    return f, sd


def _far_errors(f: NDArray[Any], active: NDArray[np.int64]) -> int:
    is_wrong = f <= 0.0
    return int(np.count_nonzero(is_wrong) - np.count_nonzero(is_wrong[active]))
