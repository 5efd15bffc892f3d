"""The filter of two classes: a row after the other, each predicted before it is learned.

**Target** after t rows: p(set, level, g, beta | rows held, candidates) of
`mercer.basis.classes.model`.

**One row** (`ClassFilter.learn`):

1. *Resample* if the effective sample size has fallen below N / 2.
2. *Weigh* each particle by the likelihood of the label, 1 / (1 + e^(-s f)) with s = +-1. If the
   buffer was full, the row that leaves it is divided out first.
3. On a schedule that depends on the row's number alone: *candidates* that have to make room
   retire, the inputs of the rows since then come in, and all particles are *moved*.

The product of the mean weights is the evidence of the rows held, unbiased for any N.

**Symbols** (paper -> code): K columns of the design, U ``members``, k ``size``, delta^2 ``scale``,
W ``log_weight``.

**Deviations**: the paper has regression only. Polya-Gamma variables make each move one of
regression; they are drawn afresh in each, so that nothing is carried but the coefficients.

**Cost** of a row O(N k); of a move O(N n (R k + k^2)) for n rows held and R candidates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from mercer.basis.arrays import Array, Integers
from mercer.basis.classes.arrays import ClassParticles, ClassPrior
from mercer.basis.classes.candidates.compiled import admit, retire
from mercer.basis.classes.moves.compiled import move_particles
from mercer.basis.classes.population.compiled import fill_latent, weigh_row
from mercer.basis.classes.schedule import ClassSchedule
from mercer.basis.classes.state import ClassState, HeldRows, with_more_rows
from mercer.basis.levels.levels import Levels
from mercer.basis.model import SetPrior
from mercer.basis.particle.compiled import draw_scale
from mercer.basis.reservoir import Reservoir
from mercer.sampling.resampling import effective_sample_size, resample

__all__ = ["ClassFilter", "ClassSeen"]

_FIRST_ROOM = 64
_ANCESTRY_ROWS = 50


class ClassSeen(NamedTuple):
    """What the filter said of a row before learning it.

    Attributes
    ----------
    proba : float
        Probability of y = 1.
    n_centres : float
        Mean over particles.
    """

    proba: float
    n_centres: float


@dataclass(frozen=True, eq=False)
class ClassFilter:
    """Settings of a filter over rows of standardised inputs and labels.

    Attributes
    ----------
    n_particles : int
    prior : ClassPrior
    sets : SetPrior
    levels : Levels
    reservoir : Reservoir
    schedule : ClassSchedule
    scheme : str
        Of resampling.
    """

    n_particles: int
    prior: ClassPrior
    sets: SetPrior
    levels: Levels
    reservoir: Reservoir
    schedule: ClassSchedule
    scheme: str

    def init(self, rng: np.random.Generator) -> ClassState:
        """Draw particles without centres, all else from the prior."""
        N, k_max, m, prior = self.n_particles, self.sets.largest, self.levels.n_mean, self.prior
        L, R, d = self.levels.n_levels, self.reservoir.n_slots, self.levels.scalings.shape[1]
        B = min(_FIRST_ROOM, self.schedule.n_buffered)
        beta = np.zeros((N, m + k_max))
        beta[:, :m] = rng.standard_normal((N, m)) / math.sqrt(prior.mean_precision)
        shape, rate = prior.scale_shape, prior.scale_rate
        particles = ClassParticles(
            size=np.zeros(N, np.int64),
            members=np.zeros((N, k_max), np.int64),
            level=rng.integers(0, L, N),
            scale=np.array([draw_scale(rng, shape, rate, 1.0) for _ in range(N)]),
            beta=beta,
            log_weight=np.full(N, -math.log(N)),
            ancestor=np.arange(N),
        )
        return ClassState(
            particles=particles,
            rows=HeldRows(np.zeros((B, d)), np.zeros(B), np.zeros((L, m + R, B))),
            centres=np.zeros((R, d)),
            n_candidates=0,
            waiting=np.zeros((R, d)),
            is_waiting=np.zeros(R, np.bool_),
            n_seen=0,
            log_evidence=0.0,
            evidence_variance=0.0,
            n_ancestors=N,
        )

    def learn(
        self, rng: np.random.Generator, state: ClassState, x: Array, sign: float
    ) -> tuple[ClassState, ClassSeen]:
        """Learn a row x (d,), sign 1 or -1; the arrays of ``state`` are used up."""
        state = self._resampled(rng, state)
        state, seen = self._weighed(state, x, sign)
        slot = self.reservoir.slot(state.n_seen)
        if slot is not None:
            state.waiting[slot], state.is_waiting[slot] = x, True
        state = replace(state, n_seen=state.n_seen + 1)
        if self.schedule.moves_at(state.n_seen):
            state = self.moved(rng, state)
        return self._with_ancestry(state), seen

    def look(self, state: ClassState, x: Array) -> ClassSeen:
        """Predict a row x (d,) that is not learned."""
        return self._looked(state, x)[2]

    def moved(self, rng: np.random.Generator, state: ClassState) -> ClassState:
        """Let waiting candidates in, and move all; the arrays of ``state`` are used up."""
        state = self._with_new_candidates(rng, state)
        n, r = state.n_held, state.n_candidates
        move_particles(
            rng, state.rows.design, self._moment(state), n, self.prior, self.sets.log_size(r),
            self.levels.n_widths, r, self.schedule.n_redraws, state.particles,
        )  # fmt: skip
        return state

    def predict(self, state: ClassState, Z: Array) -> Array:
        """Probability of y = 1 at rows Z (m, d), standardised: shape (m,)."""
        particles, m, r = state.particles, self.levels.n_mean, state.n_candidates
        result, weights = np.zeros(len(Z)), np.exp(particles.log_weight)
        for level in np.unique(particles.level):
            which = np.flatnonzero(particles.level == level)
            coef = np.zeros((m + r, len(which)))
            for j, i in enumerate(which):
                k = particles.size[i]
                coef[:m, j] = particles.beta[i, :m]
                coef[particles.members[i, :k], j] = particles.beta[i, m : m + k]
            design = self.levels.design(Z, state.centres[:r], int(level))
            result += expit(design @ coef) @ weights[which]
        return result

    def _resampled(self, rng: np.random.Generator, state: ClassState) -> ClassState:
        particles = state.particles
        ess = effective_sample_size(particles.log_weight)
        if ess >= 0.5 * self.n_particles:
            return state
        chosen = resample(rng, np.exp(particles.log_weight), self.scheme)
        particles = ClassParticles._make(array[chosen] for array in particles)
        particles.log_weight[:] = -math.log(self.n_particles)
        variance = state.evidence_variance + 1.0 / ess - 1.0 / self.n_particles
        return replace(state, particles=particles, evidence_variance=variance)

    def _weighed(self, state: ClassState, x: Array, sign: float) -> tuple[ClassState, ClassSeen]:
        """Predict a row, make room for it, weigh by it and keep it."""
        rows, particles, m = state.rows, state.particles, self.levels.n_mean
        n_ring = len(rows.sign)
        if state.n_seen == n_ring and n_ring < self.schedule.n_buffered:
            rows = with_more_rows(rows, min(2 * n_ring, self.schedule.n_buffered))
            n_ring = len(rows.sign)
        design, f, seen = self._looked(state, x)
        position, gain = state.n_seen % n_ring, 0.0
        if state.n_seen >= n_ring:
            old = np.empty(self.n_particles)
            fill_latent(np.ascontiguousarray(rows.design[:, :, position]), m, particles, old)
            gain = weigh_row(old, rows.sign[position], -1.0, particles.log_weight)
        gain += weigh_row(f, sign, 1.0, particles.log_weight)
        rows.X[position], rows.sign[position] = x, sign
        rows.design[:, : design.shape[1], position] = design
        return replace(state, rows=rows, log_evidence=state.log_evidence + gain), seen

    def _looked(self, state: ClassState, x: Array) -> tuple[Array, Array, ClassSeen]:
        """Row of the design of an input at each level (L, p + r), latent values (N,), and proba."""
        r, particles = state.n_candidates, state.particles
        row = np.empty((self.levels.n_levels, self.levels.n_mean + r))
        self.levels.fill_row(x, self.levels.distances(x, state.centres, r), r, row)
        f = np.empty(self.n_particles)
        fill_latent(row, self.levels.n_mean, particles, f)
        weights = np.exp(particles.log_weight)
        return row, f, ClassSeen(float(weights @ expit(f)), float(weights @ particles.size))

    def _moment(self, state: ClassState) -> Array:
        """Sums of column times y - 1/2 over the rows held: shape (L, C)."""
        n = state.n_held
        return np.asarray(state.rows.design[:, :, :n] @ (0.5 * state.rows.sign[:n]))

    def _with_new_candidates(self, rng: np.random.Generator, state: ClassState) -> ClassState:
        slots = np.flatnonzero(state.is_waiting)
        if not len(slots):
            return state
        n, r, m = state.n_held, state.n_candidates, self.levels.n_mean
        old, gain = slots[slots < r], 0.0
        if len(old):
            gain = retire(
                rng, state.rows.design, self._moment(state), n, self.prior,
                self._log_sizes(np.arange(r, r - len(old) - 1, -1)), m + old, state.particles,
            )  # fmt: skip
            r -= len(old)
        self._fill_columns(state, slots)
        gain += admit(
            rng, state.rows.design, self._moment(state), n, self.prior,
            self._log_sizes(np.arange(r, r + len(slots) + 1)), m + slots, state.particles,
        )  # fmt: skip
        state.is_waiting[:] = False
        return replace(state, n_candidates=r + len(slots), log_evidence=state.log_evidence + gain)

    def _log_sizes(self, counts: Integers) -> Array:
        return np.array([self.sets.log_size(int(r)) for r in counts])

    def _fill_columns(self, state: ClassState, slots: NDArray[np.intp]) -> None:
        """Put waiting inputs into their slots, with their columns of the design."""
        n, m = state.n_held, self.levels.n_mean
        column = np.empty((self.levels.n_levels, m + n))
        for slot in slots:
            x = state.waiting[slot]
            state.centres[slot] = x
            self.levels.fill_row(x, self.levels.distances(x, state.rows.X, n), n, column)
            state.rows.design[:, m + slot, :n] = column[:, m:]

    def _with_ancestry(self, state: ClassState) -> ClassState:
        if state.n_seen % _ANCESTRY_ROWS:
            return state
        n_ancestors = len(np.unique(state.particles.ancestor))
        state.particles.ancestor[:] = np.arange(self.n_particles)
        return replace(state, n_ancestors=n_ancestors)
