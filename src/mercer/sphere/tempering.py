"""Parallel tempering over the noise level: rungs between the prior and the posterior, with swaps.

**Target.** Rung k has the density N(g; 0, I) exp(-b_k cost), b_0 = 0 < .. < b_K = 1: the product
over rungs. The last rung has the posterior; the first, where no label is certain, is the prior.

**One step**

1. Rung 0 is drawn anew from the prior; every other rung takes a pass of the moves at its costs.
2. Neighbours, even and odd pairs in turn, swap with probability
   min(1, exp((b_{k+1} - b_k) (cost_{k+1} - cost_k))).

**Deviations.** Not in the paper: it cures a posterior of several modes, and the errors seen at the
rungs give the evidence at every noise level (`mercer.sphere.evidence`).

**Cost.** A pass of the moves for each rung, and one product for all their velocities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mercer.likelihoods.label_noise import LabelNoise
from mercer.sampling.sampler import Sampler
from mercer.sphere.model import SphereModel
from mercer.sphere.moves import Moves

__all__ = ["TemperedInfo", "TemperedSampler", "TemperedState"]

Array = NDArray[np.float64]

# Sweeps after which f = L g is computed anew.
_REFRESH = 32
# Passes that lead from the start of one rung to that of the next.
_FIRST_PASSES = 4


@dataclass(frozen=True)
class TemperedState:
    """A classifier on each rung.

    Attributes
    ----------
    points : ndarray of shape (n_rungs, n + r)
        [f; g] of each rung, labels multiplied in.
    n_steps : int
        Steps taken: whether even or odd pairs swap next.
    """

    points: Array
    n_steps: int


@dataclass(frozen=True)
class TemperedInfo:
    """What a diagnostician needs to know of one sweep over the rungs."""

    acceptance_rate: float
    n_errors: int
    n_events: int


@dataclass(frozen=True)
class TemperedSampler(Sampler[TemperedState, TemperedInfo]):
    """Chains at several powers of the likelihood that swap places.

    Attributes
    ----------
    model : SphereModel
    powers : tuple of float
        b_k, ascending from 0.
    moves : tuple of Moves
        One for each rung; that of the first is not used where rung 0 is the prior.
    start, recorder : callable
        As for `SphereSampler`; the recorder sees the last rung.
    """

    model: SphereModel
    powers: tuple[float, ...]
    moves: tuple[Moves, ...]
    start: Callable[[np.random.Generator], Array]
    recorder: Callable[[Array, Array], Mapping[str, NDArray[np.generic]]]

    @cached_property
    def noises(self) -> tuple[LabelNoise, ...]:
        """Costs of the rungs."""
        return tuple(self.model.noise.tempered(power) for power in self.powers)

    @cached_property
    def is_prior_free(self) -> bool:
        """Whether rung 0 is the prior: no label is certain."""
        return not self.model.noise.must_be_right.any()

    def init(self, rng: np.random.Generator) -> TemperedState:
        """Draw a start on the first rung; every other one begins where the last few passes led."""
        if "hmc" in self.moves[-1].names:
            _ = self.model.table  # made once, here
        _ = self.noises, self.is_prior_free, self.model.noise.total
        points = [self.model.point(self.start(rng))]
        for noise, moves in zip(self.noises[1:], self.moves[1:], strict=True):
            point, n_drawn = points[-1], moves.n_drawn
            drawn = self.model.extended(
                rng.standard_normal((_FIRST_PASSES * n_drawn, self.model.rank))
            )
            for k in range(_FIRST_PASSES):
                own = drawn[k * n_drawn : (k + 1) * n_drawn]
                point, _ = moves.apply(rng, self.model, noise, point, own)
            points.append(point)
        return TemperedState(np.stack(points), 0)

    def step(
        self, rng: np.random.Generator, state: TemperedState
    ) -> tuple[TemperedState, TemperedInfo]:
        """Take one sweep over the rungs, then let neighbours swap."""
        n_rungs, n_drawn = len(self.powers), self.moves[-1].n_drawn
        Z = rng.standard_normal((n_rungs * max(n_drawn, 1), self.model.rank))
        drawn = self.model.extended(Z)
        n, points, n_events = self.model.n_rows, state.points.copy(), 0
        if state.n_steps % _REFRESH == 0:
            points = np.stack([self.model.point(point[n:]) for point in points])
        for k, (noise, moves) in enumerate(zip(self.noises, self.moves, strict=True)):  # step 1
            own = drawn[k * max(n_drawn, 1) : (k + 1) * max(n_drawn, 1)]
            if k == 0 and self.is_prior_free:
                points[k] = own[0]
                continue
            points[k], passed = moves.apply(rng, self.model, noise, points[k], own)
            n_events += passed.n_events
        acceptance_rate = self._swap(rng, points, state.n_steps % 2)  # step 2
        n_errors = int(np.count_nonzero(points[-1, :n] <= 0.0))
        info = TemperedInfo(acceptance_rate, n_errors, int(n_events))
        return TemperedState(points, state.n_steps + 1), info

    def record(self, state: TemperedState) -> Mapping[str, NDArray[np.generic]]:
        """Return what the recorder makes of the last rung."""
        n = self.model.n_rows
        return self.recorder(state.points[-1, :n], state.points[-1, n:])

    def _swap(self, rng: np.random.Generator, points: Array, first: int) -> float:
        """Swap neighbours in place; return the mean probability of a swap."""
        costs = self.model.noise.cost(points[:, : self.model.n_rows] <= 0.0)
        probabilities = []
        for k in range(first, len(points) - 1, 2):
            gap = (self.powers[k + 1] - self.powers[k]) * (costs[k + 1] - costs[k])
            probability = float(np.exp(min(0.0, gap)))
            probabilities.append(probability)
            if rng.random() < probability:
                points[[k, k + 1]] = points[[k + 1, k]]
        return float(np.mean(probabilities)) if probabilities else 1.0
