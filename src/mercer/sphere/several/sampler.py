"""A sampler of several classes under label noise, in the Gaussian lift.

**Target.** `mercer.sphere.several.model.SeveralModel`: g_c ~ N(0, I_r) for C classes, times the
likelihood of the labels, eq. (2) of Graepel & Herbrich with C classes; with it, where rates are by
class and learned, the confusion matrix.

**One step**: a number of cycles. Each has the moves, all exact, without rejection or step size:

1. ``hmc``: free flight g cos t + v sin t of all classes, v ~ N(0, I). A row has a wall for each
   class other than its label, where the lead f_y - f_c changes sign. There the velocity along
   (e_y - e_c) L_i is reflected or refracted if the row becomes right or wrong by it.
2. ``lines``, for each class and along directions, in random order: the coordinate of g_c is drawn
   from its conditional, normal times a piecewise constant, restricted to a window around it. Along
   the line a row changes at most once: class c wins it from its best rival, or loses it.
3. ``ellipse``: the mean over classes and the length of the contrasts are drawn anew, since the
   labels depend on neither; then the contrasts turn together towards one more draw from the prior,
   by elliptical slice sampling.

Where the confusion matrix is learned it is drawn anew after the cycles, given the classes; there
are no trajectories then.

**Symbols** (paper -> code): w -> the contrasts of g over their length, m -> n, q -> in ``noise``.

**Deviations.** The paper has two classes and the great circle alone.

**Cost.** O(n C) an event of a trajectory. O(n) a line move: the best rivals, O(n C), are found
once for the lines of a class. The slice counts errors about a dozen times, O(n C) each. Velocities
of all cycles of a step come from one matrix product.

References
----------
Murray, Adams & MacKay, Elliptical slice sampling, 2010.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.likelihoods.label_noise import Confusion
from mercer.sampling.sampler import Sampler
from mercer.sphere.several.model import SeveralModel
from mercer.sphere.several.moves import SeveralMoves

__all__ = ["SeveralInfo", "SeveralSampler", "SeveralState"]

Array = NDArray[np.float64]

# Steps that a chain takes away from its start before the first is counted.
_FIRST_STEPS = 2


@dataclass(frozen=True)
class SeveralState:
    """C classifiers: ``point`` is [f_c; g_c] for each class, (C, n + r); the confusion matrix."""

    point: Array
    matrix: Array | None = None


@dataclass(frozen=True)
class SeveralInfo:
    """What a diagnostician needs to know of one step."""

    acceptance_rate: float
    n_errors: int
    n_events: int
    n_reflections: int
    n_breakpoints: int
    n_trials: int


@dataclass(frozen=True)
class SeveralSampler(Sampler[SeveralState, SeveralInfo]):
    """A chain over classifiers of several classes.

    Attributes
    ----------
    model : SeveralModel
    moves : SeveralMoves
    start : callable
        Draws the first g, shape (C, r), of positive density, from a generator.
    recorder : callable
        Turns (g, f), of shapes (C, r) and (C, n), into the named arrays of one draw.
    n_cycles : int
        Cycles in one step.
    """

    model: SeveralModel
    moves: SeveralMoves
    start: Callable[[np.random.Generator], Array]
    recorder: Callable[[Array, Array], Mapping[str, NDArray[Any]]]
    n_cycles: int = 1

    def init(self, rng: np.random.Generator) -> SeveralState:
        """Draw a start and take a few steps from it."""
        noise = self.model.noise
        matrix = noise.matrix if isinstance(noise, Confusion) else None
        state = SeveralState(self.model.point(self.start(rng)), matrix)
        for _ in range(_FIRST_STEPS):
            state, _ = self.step(rng, state)
        return state

    def step(
        self, rng: np.random.Generator, state: SeveralState
    ) -> tuple[SeveralState, SeveralInfo]:
        """Take ``n_cycles`` cycles of moves."""
        g = state.point[:, self.model.n_rows :]
        noise, matrix = self.model.noise, state.matrix
        f, g, counts = self.moves.apply(rng, self.model, g, self.n_cycles, matrix)
        if isinstance(noise, Confusion) and matrix is not None:
            matrix = noise.draw(rng, f.argmax(axis=0), matrix)
        n_whole, n_events, n_reflections, n_breakpoints, n_trials = (int(k) for k in counts)
        info = SeveralInfo(
            n_whole / self.n_cycles if "hmc" in self.moves.names else 1.0,
            int(np.count_nonzero(self.model.is_wrong(f))),
            n_events,
            n_reflections,
            n_breakpoints,
            n_trials,
        )
        return SeveralState(np.concatenate([f, g], axis=1), matrix), info

    def record(self, state: SeveralState) -> Mapping[str, NDArray[Any]]:
        """Return what the recorder makes of the classifiers, and the confusion matrix."""
        n = self.model.n_rows
        recorded = self.recorder(state.point[:, n:], state.point[:, :n])
        return recorded if state.matrix is None else {**recorded, "confusion": state.matrix}
