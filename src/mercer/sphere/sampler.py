"""Samplers of classifiers under label noise, in the Gaussian lift.

**Target.** g ~ N(0, I_r) times the likelihood of the labels, eq. (2); the direction g / |g| has
the posterior of the paper's w, and |g| is independent of it.

**One step**: a pass of the moves, each exact, without rejection or step size.

- ``hmc``: free flight g cos t + v sin t with v ~ N(0, I). At the wall of a row the normal velocity
  is reflected, or refracted where its energy pays the cost of the change.
- ``lines``: Gibbs moves along fixed directions, restricted to a window around the point.
- ``great_circle``: the paper's step, `mercer.sphere.circle.step`.

**Symbols** (paper -> code): w -> g / |g|, <w, x_i> -> f_i / |g|, m -> n, v -> a row of ``block``,
b and zeta are not needed.

**Deviations.** The paper has the great circle alone. Velocities and directions do not depend on
the state, so [L z; z] is drawn ahead for a block of steps: one matrix product.

**Cost.** Of a trajectory: O(n + r) an event, about n T / pi events in time T. Of a line move and
of a great circle: O(n) and O(n log n), and O(n r) for its share of the product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.sampling.sampler import Sampler
from mercer.sphere.model import SphereModel
from mercer.sphere.moves import Moves

__all__ = ["SphereInfo", "SphereSampler", "SphereState"]

Array = NDArray[np.float64]

# Velocities that one product draws ahead, at least; afterwards f = L g is computed anew.
_BLOCK = 32


@dataclass(frozen=True)
class SphereState:
    """A classifier and the velocities that are drawn ahead.

    Attributes
    ----------
    point : ndarray of shape (n + r,)
        [f; g], labels multiplied in.
    block : ndarray of shape (b, n + r)
        Rows [L z; z], z ~ N(0, I).
    n_used : int
        Rows of the block that are spent.
    """

    point: Array
    block: Array
    n_used: int


@dataclass(frozen=True)
class SphereInfo:
    """What a diagnostician needs to know of one pass of moves."""

    acceptance_rate: float
    n_errors: int
    n_events: int
    n_reflections: int
    n_crossings: int


@dataclass(frozen=True)
class SphereSampler(Sampler[SphereState, SphereInfo]):
    """A chain over classifiers.

    Attributes
    ----------
    model : SphereModel
    moves : Moves
    start : callable
        Draws the first g, shape (r,), of positive density, from a generator.
    recorder : callable
        Turns (f, g) into the named arrays of one draw; f has the labels multiplied in.
    """

    model: SphereModel
    moves: Moves
    start: Callable[[np.random.Generator], Array]
    recorder: Callable[[Array, Array], Mapping[str, NDArray[np.generic]]]

    def init(self, rng: np.random.Generator) -> SphereState:
        """Draw a start; no velocities are drawn ahead yet."""
        if "hmc" in self.moves.names:
            _ = self.model.table  # made once, here
        n, r = self.model.L.shape
        return SphereState(self.model.point(self.start(rng)), np.empty((0, n + r)), 0)

    def step(self, rng: np.random.Generator, state: SphereState) -> tuple[SphereState, SphereInfo]:
        """Take one pass of moves."""
        point, block, n_used = state.point, state.block, state.n_used
        n_drawn = self.moves.n_drawn
        if len(block) == 0 or n_used + n_drawn > len(block):
            n_passes = -(-_BLOCK // max(n_drawn, 1))
            Z = rng.standard_normal((n_passes * n_drawn, self.model.rank))
            block, n_used = self.model.extended(Z), 0
            point = self.model.point(point[self.model.n_rows :])
        drawn = block[n_used : n_used + n_drawn]
        end, passed = self.moves.apply(rng, self.model, self.model.noise, point, drawn)
        n_errors = int(np.count_nonzero(end[: self.model.n_rows] <= 0.0))
        info = SphereInfo(
            float(passed.is_whole),
            n_errors,
            int(passed.n_events),
            int(passed.n_reflections),
            passed.n_crossings,
        )
        return SphereState(end, block, n_used + n_drawn), info

    def record(self, state: SphereState) -> Mapping[str, NDArray[np.generic]]:
        """Return what the recorder makes of the classifier."""
        n = self.model.n_rows
        return self.recorder(state.point[:n], state.point[n:])
