"""Warm-up of the sampler of several classes: length of a trajectory, directions of line moves.

Contrasts, g_c less the mean over classes, are what the labels speak of. Their covariance, pooled
over classes, is estimated in windows of the warm-up, each twice as long as the last. Directions
are its principal axes, and windows a few standard deviations wide; trajectories are as long as it
takes to cross the posterior. Above a limit of the rank the axes stay those of the feature space,
and the variances along them alone are learned.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.sampling.adaptation import mass_windows
from mercer.sampling.sampler import Adaptation
from mercer.sphere.several.model import SeveralModel
from mercer.sphere.several.moves import QUARTER, WINDOW, SeveralMoves, moves_along

__all__ = ["LearnedContrasts", "SeveralAdaptation", "SeveralTuning"]

Array = NDArray[np.float64]

# Trajectories are this many standard deviations long, where that is below a quarter of a period.
_LENGTH_IN_SD = 6.0
# The covariance is rotated into directions up to this rank.
_LARGEST_ROTATED = 64


@dataclass(frozen=True)
class SeveralTuning:
    """What warm-up changes: duration, directions (r, r), and widths of windows (r,)."""

    duration: float
    directions: Array
    widths: Array


@dataclass(frozen=True)
class LearnedContrasts:
    """What warm-up has gathered in the window in hand.

    Attributes
    ----------
    n_seen : int
        Steps of the warm-up.
    count : int
        Draws in the window.
    sums : ndarray of shape (C, r)
        Of contrasts.
    products : ndarray of shape (r, r) or (1, r)
        Of their outer products over classes and draws; the diagonal where axes stay.
    """

    n_seen: int
    count: int
    sums: Array
    products: Array


@dataclass(frozen=True)
class SeveralAdaptation(Adaptation):
    """Tune over ``n_warmup`` steps, in windows, each twice as long as the last."""

    n_warmup: int

    def init(self, sampler: Any) -> LearnedContrasts:
        """Nothing is known."""
        return _nothing(sampler.model, 0)

    def update(
        self, learned: LearnedContrasts, sampler: Any, state: Any, info: Any
    ) -> tuple[LearnedContrasts, Any]:
        """Gather contrasts; at the end of a window tune to their spread."""
        learned = dataclasses.replace(learned, n_seen=learned.n_seen + 1)
        first, ends = mass_windows(self.n_warmup)
        if first < learned.n_seen <= max(ends, default=0):
            g = state.point[:, sampler.model.n_rows :]
            learned = _gathered(learned, (g - g.mean(axis=0)) @ sampler.moves.directions)
        if learned.n_seen in ends:
            sampler = self.with_tuning(sampler, _tuned(learned, sampler.moves))
            learned = _nothing(sampler.model, learned.n_seen)
        return learned, sampler

    def finish(self, learned: LearnedContrasts, sampler: Any) -> Any:
        """Return the sampler as the last window left it."""
        return sampler

    def tuning(self, sampler: Any) -> SeveralTuning:
        """Return duration, directions and widths."""
        moves = sampler.moves
        return SeveralTuning(moves.duration, moves.directions, moves.widths)

    def with_tuning(self, sampler: Any, tuning: SeveralTuning) -> Any:
        """Put duration, directions and widths in place."""
        moves = moves_along(
            sampler.model, sampler.moves.names, tuning.duration, tuning.directions, tuning.widths
        )
        return dataclasses.replace(sampler, moves=moves)


def _nothing(model: SeveralModel, n_seen: int) -> LearnedContrasts:
    r = model.rank
    products = np.zeros((r if r <= _LARGEST_ROTATED else 1, r))
    return LearnedContrasts(n_seen, 0, np.zeros((model.n_classes, r)), products)


def _gathered(learned: LearnedContrasts, contrasts: Array) -> LearnedContrasts:
    if len(learned.products) == 1:
        products = np.sum(contrasts**2, axis=0, keepdims=True)
    else:
        products = contrasts.T @ contrasts
    return dataclasses.replace(
        learned,
        count=learned.count + 1,
        sums=learned.sums + contrasts,
        products=learned.products + products,
    )


def _tuned(learned: LearnedContrasts, moves: SeveralMoves) -> SeveralTuning:
    """Tune to the pooled covariance, in coordinates along the present directions.

    A contrast has (C - 1)/C of the variance of g_c. Shrunk as in `mercer.sampling.mass`.
    """
    n_classes, k = len(learned.sums), learned.count
    share = 1.0 / ((n_classes - 1) * k) * (k / (k + 5.0))
    directions = moves.directions
    if len(learned.products) == 1:
        variances = share * (learned.products[0] - np.sum(learned.sums**2, axis=0) / k)
    else:
        covariance = share * (learned.products - learned.sums.T @ learned.sums / k)
        variances, axes = np.linalg.eigh(covariance)
        variances, axes = variances[::-1], axes[:, ::-1]
        directions = np.ascontiguousarray(directions @ axes)
    variances = np.clip(variances, 1e-12, 1.0)
    duration = min(QUARTER, _LENGTH_IN_SD * float(np.sqrt(variances.mean())))
    return SeveralTuning(duration, directions, WINDOW * np.sqrt(variances))
