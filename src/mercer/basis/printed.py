"""Algorithm 1 as it is printed: for study, since its weights are biased.

**Target** as in `mercer.basis.filter`, both variances carried by the particle.

**One row** (`PrintedFilter.learn`):

1. *Resample*, at every row. A user sees the population before it, as the paper's estimate does.
2. *Take the row in*, and its input as a candidate.
3. *Move* each particle: nothing, a birth at an input drawn uniformly from those unoccupied, or the
   death of a centre drawn uniformly. P(birth) = c min(1, p(k + 1) / p(k)),
   P(death) = c min(1, p(k - 1) / p(k)), c = 1/4; without a centre a birth; no birth at k_max or t.
4. *Weigh* by eq. (9): the ratio of targets over the probability q of the centre that was chosen;
   1 for the choice of nothing.
5. *Draw* coefficients, then both variances, by Gibbs, eqs. (4) and (5).

**What is wrong.** Eq. (8) has the probability of the way back, from the new set to the old one. The
paper sets it to the point mass at the old state, "so that it effectively disappears": but that is a
function of the old state, no distribution given the new one, and the weight is off by the number of
ways that lead to a set. Sets that many ways lead to, the small ones above all, weigh too much.

**Deviations**: the paper's priors of the variances are improper and are made proper (see
`mercer.basis.model`). Candidates are the first inputs, as many as there may be.

**Cost** of a row: O(N k^3 + R^2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from mercer.basis.filter import Filter, Seen, State, admit, with_room
from mercer.basis.length_scales import LengthScaleGrid
from mercer.basis.model import Array, Prior, Reservoir, Schedule, SetPrior, add_rows, taken
from mercer.basis.population_loops import printed_step
from mercer.posterior.diagnostics import effective_sample_size
from mercer.sampling.resampling import resample

__all__ = ["AnyFilter", "PrintedFilter"]

# c: the share of moves that change the number of centres.
_CHANGES = 0.25
_FIRST_ROOM = 64


@dataclass(frozen=True, eq=False)
class PrintedFilter:
    """Settings of Algorithm 1 as it is printed.

    Attributes
    ----------
    n_particles : int
    prior : Prior
        Its variances are sampled.
    sets : SetPrior
    levels : LengthScaleGrid
        A particle keeps the length scale that it began with.
    n_candidates : int
        The most candidates.
    scheme : str
        Resampling scheme.
    n_buffered : int
        Rows kept: no fewer than candidates.
    """

    n_particles: int
    prior: Prior
    sets: SetPrior
    levels: LengthScaleGrid
    n_candidates: int
    scheme: str
    n_buffered: int

    def init(self, rng: np.random.Generator) -> State:
        """Draw particles without centres, their variances from the prior."""
        return self._rows.init(rng)

    def learn(
        self, rng: np.random.Generator, state: State, x: Array, y: float
    ) -> tuple[State, Seen]:
        """Learn a row x (d,), y; the arrays of ``state`` are used up."""
        state = self._resampled(rng, state)
        state, seen = self._rows.learn(rng, state, x, y)
        state = self._with_candidate(_summed(state), x)
        log_size = self.sets.log_size(state.statistics.n_candidates)
        gain = printed_step(
            rng, state.statistics, self.prior, log_size, _CHANGES, state.particles
        )  # eq. (9)
        return replace(state, log_evidence=state.log_evidence + gain), seen

    @property
    def _rows(self) -> Filter:
        """What predicts a row and takes it in: no candidates come, nothing is moved."""
        return Filter(
            n_particles=self.n_particles,
            prior=self.prior,
            sets=self.sets,
            levels=self.levels,
            reservoir=Reservoir(0, 0, False),
            schedule=Schedule(n_eager=0, block=1, later_fraction=0.0, n_buffered=self.n_buffered),
            scheme=self.scheme,
            retention=1.0,
        )

    def _resampled(self, rng: np.random.Generator, state: State) -> State:
        log_weight = state.particles.log_weight
        ess = effective_sample_size(log_weight)
        particles = taken(state.particles, resample(rng, np.exp(log_weight), self.scheme))
        particles.log_weight[:] = -math.log(self.n_particles)
        variance = state.evidence_variance + 1.0 / ess - 1.0 / self.n_particles
        return replace(
            state,
            particles=particles,
            evidence_variance=variance,
        )

    def _with_candidate(self, state: State, x: Array) -> State:
        """Let the last row's input be a candidate, while there is room."""
        slot = state.statistics.n_candidates
        if slot == self.n_candidates:
            return state
        if slot == len(state.centres):
            room = min(max(_FIRST_ROOM, 2 * slot), self.n_candidates)
            state = with_room(state, 0, room, self.levels.n_mean)
        weights = np.ones(min(state.n_seen, len(state.rows.y)))
        return admit(state, self.levels, slot, x, weights)


AnyFilter: TypeAlias = Filter | PrintedFilter


def _summed(state: State) -> State:
    """Add the pending row to the sums."""
    sums, y = state.statistics, state.pending_y
    add_rows(sums.gram, sums.moment, state.pending, y)
    sums = sums._replace(square=sums.square + float(y @ y), n_rows=sums.n_rows + 1.0)
    return replace(state, statistics=sums, n_pending=0)
