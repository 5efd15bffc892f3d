"""The filter: a row after the other, each predicted before it is learned.

**Target** after t rows: p(U, length scale, variances | y_1 .. y_t, candidates), see
`mercer.basis.model`.

**One row** (`Filter.learn`):

1. *Resample* if the effective sample size has fallen below N / 2 (so the population that a user
   sees is the one before resampling, as the estimate of least mean squared error wants it).
2. *Take back*, where the first rows shaped the scalings of the inputs: the prior of these comes to
   its place step by step, see `mercer.basis.length_scales`. The score of a row is the sum of
   this gain (a loss, where a scaling has taken from the targets) and that of the next step.
3. *Weigh* each particle by its predictive density of the target, and take the row in by rotations.
4. *Candidates*: an old one may retire (weight pi'(V) / (pi(V) + pi(V + c)), V = U - c), the new
   input comes in (weight (pi'(U) + pi'(U + c)) / pi(U), one of both drawn in proportion). A subset
   of the new candidates holds the new one or does not: it has one parent.
5. *Move* the particles on a schedule that depends on the row's number alone.
6. *Discount* the sums for the next row, where there is forgetting, or for the next block of rows,
   where that leaves half of them; weigh by the ratio of the targets. The prior part is never
   discounted.

The product of the mean weights is the evidence, unbiased for any N.

**Symbols** (paper -> code): K candidate columns of the design, U ``members``, k ``size``,
delta^2 / sigma^2 ``scale``, W ``log_weight``.

**Deviations**: the printed weight, eq. (9), leaves out the ways back and is wrong (see
`PrintedFilter`); the length scale is learned; one noise variance is integrated out.

**Cost** of a row: O(N k^2 + L R^2), and O(N (R k + k^2)) times the share of particles moved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mercer.basis.length_scales import LengthScaleGrid
from mercer.basis.loops import draw_scale, draw_variance, move_particles
from mercer.basis.model import (
    Array,
    Integers,
    Particles,
    Prior,
    Reservoir,
    Schedule,
    SetPrior,
    Statistics,
    add_rows,
    counted,
    taken,
)
from mercer.basis.population_loops import (
    discount,
    drop_candidate,
    effective_size,
    extend,
    learn_row,
    normalise,
    printed_step,
)
from mercer.numerics.cholesky import solve_positive
from mercer.sampling.resampling import resample

# All that the filter needs for the next row.


class Sums(NamedTuple):
    """Sums over rows that have left the buffer, for each level; without columns until one has."""

    gram: Array
    moment: Array


class RowBuffer(NamedTuple):
    """The last B rows, in a ring: row number t stands at t modulo the length."""

    X: Array  # (B, d)
    y: Array  # (B,)
    distances: Array  # (A, B, R), squared, to each candidate, for each scaling of the inputs
    age: Integers  # (B,), discounts that had been applied when the row came


@dataclass(frozen=True, eq=False)
class State:
    """The filter after some rows. Its arrays are changed in place by the next: see `copied`.

    Rows that are leaving are not yet in ``old``. Sums of a level that is not kept up to date
    are made when they are wanted, from the buffer and what has left it.
    """

    particles: Particles
    statistics: Statistics  # without the rows that are pending
    old: Sums
    rows: RowBuffer
    centres: Array  # (R, d), inputs of the candidates, standardised
    pending: Array  # (block, L, C), rows of the design that the particles know, not yet the sums
    pending_y: Array  # (block,)
    leaving: Array  # (n, L, C), rows that left the buffer, times the root of their weight
    leaving_y: Array  # (n,)
    is_kept: NDArray[np.bool_]  # (L,), levels that particles have or may propose
    n_pending: int
    n_leaving: int
    n_seen: int  # rows learned
    n_discounts: int
    log_evidence: float  # of the rows, in nats: unbiased on the scale of the evidence itself
    evidence_variance: float  # of the log evidence, of families that are no longer followed
    n_ancestors: int  # distinct ancestors of the particles after the last fifty rows


def _changed(state: State, **values: Any) -> State:
    """Return a state with other fields, as `dataclasses.replace` in a sixth of its time."""
    new = object.__new__(State)
    vars(new).update(vars(state), **values)
    return new


def copied(state: State) -> State:
    """Return a state that shares no array with this one."""
    values = {}
    for field in fields(state):
        value = getattr(state, field.name)
        if isinstance(value, np.ndarray):
            value = value.copy()
        elif isinstance(value, Statistics):
            value = _copied_sums(value, state.is_kept)
        elif isinstance(value, tuple):
            kind = type(value)
            value = kind(*(v.copy() if isinstance(v, np.ndarray) else v for v in value))
        values[field.name] = value
    return State(**values)


def _copied_sums(statistics: Statistics, is_kept: NDArray[np.bool_]) -> Statistics:
    """Return copies of the sums; of levels that are not kept they are 0, which takes no time."""
    gram = np.zeros_like(statistics.gram)
    gram[is_kept] = statistics.gram[is_kept]
    return statistics._replace(gram=gram, moment=statistics.moment.copy())


def with_room(state: State, n_rows: int, n_candidates: int, n_mean: int) -> State:
    """Return a state with longer arrays: for so many rows in the ring, and so many candidates.

    The ring may only grow before it is full.
    """
    return _resized(state, n_rows, n_candidates, n_mean, _grown)


def without_room(state: State, n_rows: int, n_candidates: int, n_mean: int) -> State:
    """Return a state with arrays for no more than so many rows and candidates: views."""
    return _resized(state, n_rows, n_candidates, n_mean, _cut)


def _resized(
    state: State, n_rows: int, n_candidates: int, n_mean: int, resize: Callable[..., NDArray[Any]]
) -> State:
    C = n_mean + n_candidates
    statistics, rows = state.statistics, state.rows
    n_old = 0 if state.old.gram.shape[1] == 0 else C
    return _changed(
        state,
        statistics=statistics._replace(
            gram=resize(statistics.gram, None, C, C), moment=resize(statistics.moment, None, C)
        ),
        old=Sums(resize(state.old.gram, None, n_old, n_old), resize(state.old.moment, None, n_old)),
        rows=RowBuffer(
            resize(rows.X, n_rows),
            resize(rows.y, n_rows),
            resize(rows.distances, None, n_rows, n_candidates),
            resize(rows.age, n_rows),
        ),
        centres=resize(state.centres, n_candidates),
        pending=resize(state.pending, None, None, C),
        leaving=resize(state.leaving, None, None, C),
    )


def _cut(array: NDArray[Any], *lengths: int | None) -> NDArray[Any]:
    """Shorten the leading axes to at most these lengths: a view; None leaves an axis alone."""
    return array[tuple(map(slice, lengths))]


def _grown(array: NDArray[Any], *lengths: int | None) -> NDArray[Any]:
    """Lengthen the leading axes to at least these lengths, with zeros; None leaves one alone."""
    wanted = [max(n or 0, m) for n, m in zip(lengths, array.shape, strict=False)]
    shape = (*wanted, *array.shape[len(lengths) :])
    if shape == array.shape:
        return array
    result = np.zeros(shape, array.dtype)
    result[tuple(slice(n) for n in array.shape)] = array
    return result


# Sums of a new candidate: exact over the rows in the buffer, by projection over older ones.
#
# On rows that are gone its feature is *defined* as the projection on the nearest candidates then
# held, a'k(x, near) with a = (K_near + ridge)^-1 k_near(new). That needs no row, and depends on no
# target: the filter is exact for that design.

_NEAREST = 32
_RIDGE = 1e-6


def admit(state: State, grid: LengthScaleGrid, slot: int, x: Array, weights: Array) -> State:
    """Put a candidate, an input x (d,), into a slot, with its sums; changes the state in place.

    The slot is the next free one, or one that no particle uses any more; ``weights`` (n,) are
    those of the rows in the buffer. Its sums are those of all rows: of pending ones they are not
    added again.
    """
    m, column = grid.n_mean, grid.n_mean + slot
    r = max(state.statistics.n_candidates, slot + 1)
    n_rows = len(weights)
    gram, moment = state.statistics.gram, state.statistics.moment
    projection = _projection(state, grid, slot, x, r) if state.old.gram.shape[1] else None
    state.centres[slot] = x
    rows = state.rows
    own = grid.distances(x, rows.X, n_rows)
    rows.distances[:, :n_rows, slot] = own
    features = np.empty((grid.n_levels, n_rows))
    grid.fill_kernel(own, n_rows, features)
    targets = features @ (weights * rows.y[:n_rows])
    features *= weights
    sums = grid.cross_sums(rows.distances[:, :n_rows, :r], features, state.is_kept)
    crosses = np.concatenate([features @ grid.mean(rows.X[:n_rows]), sums], axis=1)
    for level in range(grid.n_levels):
        cross, of_target = crosses[level], float(targets[level])
        if projection is not None:
            old_cross, old_target = projection[level]
            state.old.gram[level, column, : m + r] = old_cross
            state.old.gram[level, : m + r, column] = old_cross
            state.old.moment[level, column] = old_target
            leaving = state.leaving[: state.n_leaving, level]
            feature = leaving[:, column]
            cross = cross + old_cross + feature @ leaving[:, : m + r]
            of_target += old_target + float(feature @ state.leaving_y[: state.n_leaving])
        if not state.is_kept[level]:
            continue
        gram[level, column, : m + r] = cross
        gram[level, : m + r, column] = cross
        moment[level, column] = of_target
    state.pending[: state.n_pending, :, column] = 0.0
    return _changed(state, statistics=state.statistics._replace(n_candidates=r))


def _projection(
    state: State, grid: LengthScaleGrid, slot: int, x: Array, r: int
) -> list[tuple[Array, float]]:
    """Sums of the new feature over rows that are gone, at each level: with all columns, with y.

    Those that are leaving are not in them: the feature is written into these rows.
    """
    m = grid.n_mean
    others = np.delete(np.arange(r), slot)
    Z = state.centres[others]
    near = np.argsort(grid.distances(x, Z, len(others))[0], kind="stable")[:_NEAREST]
    columns = m + others[near]
    distances = grid.all_distances(np.vstack([Z[near], x]), Z[near])
    ridge, a, result = _RIDGE * np.eye(len(near)), np.zeros(0), []
    for level in range(grid.n_levels):
        if len(near):
            K = grid.kernel(distances, level)
            a = solve_positive(K[:-1] + ridge, K[-1])
        near_sums = state.old.gram[level, columns, : m + r]
        cross = a @ near_sums
        cross[m + slot] = a @ near_sums.take(columns, axis=1) @ a
        result.append((cross, float(a @ state.old.moment[level, columns])))
        leaving = state.leaving[: state.n_leaving, level]
        leaving[:, m + slot] = leaving[:, columns] @ a
    return result


_FIRST_ROOM = 64
# Rows that have left the buffer are added to their sums so many at a time.
_LEAVING_ROWS = 64
# Once in so many rows levels that no particle is near are left.
_KEEPING_ROWS = 32
# Where a block of rows would leave less of the sums, these are discounted row by row.
_LEAST_LEFT = 0.5


class Seen(NamedTuple):
    """What the filter said of a row before learning it: a mixture, one component a particle."""

    means: Array  # (N,), locations
    variances: Array  # (N,), squared scales
    log_weights: Array
    degrees: float  # degrees of freedom of Student's t; inf where variances are sampled
    log_density: float  # of the target, in nats; less what scalings shaped by it took beforehand
    n_centres: float  # mean over particles

    @property
    def weights(self) -> Array:
        """Weights of the particles (N,), with sum 1."""
        return np.asarray(np.exp(self.log_weights))

    def second_moment(self, centre: float) -> float:
        """Mean squared distance of the target from a number; inf up to two degrees of freedom."""
        if self.degrees <= 2.0:
            return math.inf
        inflation = 1.0 / (1.0 - 2.0 / self.degrees)
        return float(self.weights @ (inflation * self.variances + (self.means - centre) ** 2))


@dataclass(frozen=True, eq=False)
class Filter:
    """Settings of a filter over rows of standardised inputs and targets."""

    n_particles: int
    prior: Prior
    sets: SetPrior
    grid: LengthScaleGrid
    reservoir: Reservoir
    schedule: Schedule
    scheme: str  # of resampling
    retention: float  # weight of a row after the next; 1 forgets nothing

    def init(self, rng: np.random.Generator) -> State:
        """Draw particles without centres, their variances from the prior."""
        L, m = self.grid.n_levels, self.grid.n_mean
        A, d = self.grid.scalings.shape
        room = min(_FIRST_ROOM, self.reservoir.n_slots)
        C, block = m + room, self.schedule.block
        ring = min(_FIRST_ROOM, self.schedule.n_buffered)
        state = State(
            particles=self._first_particles(rng),
            statistics=Statistics(np.zeros((L, C, C)), np.zeros((L, C)), 0.0, 0.0, 0),
            old=Sums(np.zeros((L, 0, 0)), np.zeros((L, 0))),
            rows=RowBuffer(
                np.zeros((ring, d)), np.zeros(ring), np.zeros((A, ring, room)),
                np.zeros(ring, np.int64),
            ),
            centres=np.zeros((room, d)),
            pending=np.zeros((block, L, C)),
            pending_y=np.zeros(block),
            leaving=np.zeros((_LEAVING_ROWS, L, C)),
            leaving_y=np.zeros(_LEAVING_ROWS),
            is_kept=np.ones(L, np.bool_),
            n_pending=0,
            n_leaving=0,
            n_seen=0,
            n_discounts=0,
            log_evidence=0.0,
            evidence_variance=0.0,
            n_ancestors=self.n_particles,
        )  # fmt: skip
        discount(state.statistics, self.prior, self.sets.log_size(0), state.particles)
        return state

    def learn(
        self, rng: np.random.Generator, state: State, x: Array, y: float
    ) -> tuple[State, Seen]:
        """Learn a row x (d,), y; the arrays of ``state`` are used up."""
        state = self._resampled(rng, state)
        state, gain = self._taken_back(state)
        state, seen = self._weighed(state, x, y)
        seen = seen._replace(log_density=seen.log_density + gain)
        slot = self.reservoir.slot(state.n_seen - 1)
        if slot is not None:
            state = self._offered(rng, state, slot, x)
        return self.discounted(self._moved(rng, state)), seen

    def _first_particles(self, rng: np.random.Generator) -> Particles:
        N, k_max = self.n_particles, self.sets.largest
        P, prior = self.grid.n_mean + k_max, self.prior
        noise, scale = np.ones(N), np.ones(N)
        for i in range(N):
            if prior.is_sampled:
                noise[i] = draw_variance(rng, prior.noise_shape, prior.noise_rate)
            rate = prior.scale_rate / noise[i]
            scale[i] = draw_scale(rng, prior.scale_shape, rate, 1.0)
        return Particles(
            size=np.zeros(N, np.int64),
            members=np.zeros((N, k_max), np.int64),
            level=rng.integers(0, self.grid.n_levels, N),
            scale=scale,
            noise=noise,
            factor=np.zeros((N, P, P)),
            whitened=np.zeros((N, P)),
            rss=np.zeros(N),
            half_logdet=np.zeros(N),
            log_target=np.zeros(N),
            log_weight=np.full(N, -math.log(N)),
            ancestor=np.column_stack([np.arange(N)] * 2),
        )

    def _resampled(self, rng: np.random.Generator, state: State) -> State:
        if effective_size(state.particles.log_weight) >= 0.5 * self.n_particles:
            return state
        return _drawn_anew(rng, state, self.scheme)

    def discounted(self, state: State) -> State:
        """Multiply the sums by the retention of the next rows, and weigh by the ratio of targets.

        These are those of a block, at its start; the next one alone where a block loses half. The
        arrays of ``state`` are used up.
        """
        n_rows = self.schedule.rows_in_block(state.n_seen)
        if self.retention**n_rows < _LEAST_LEFT:
            n_rows = 1
        elif self.retention == 1.0 or not self.schedule.begins_block(state.n_seen):
            return state
        state = flushed(state)
        factor = self.retention**n_rows
        sums, old = state.statistics, state.old
        for level in np.flatnonzero(state.is_kept):
            sums.gram[level] *= factor
        for array in (sums.moment, old.gram, old.moment):
            array *= factor
        state.leaving[: state.n_leaving] *= math.sqrt(factor)
        state.leaving_y[: state.n_leaving] *= math.sqrt(factor)
        sums = sums._replace(square=sums.square * factor, n_rows=sums.n_rows * factor)
        log_size = self.sets.log_size(sums.n_candidates)
        gain = discount(sums, self.prior, log_size, state.particles)
        return _changed(
            state,
            statistics=sums,
            n_discounts=state.n_discounts + n_rows,
            log_evidence=state.log_evidence + gain,
        )

    def _taken_back(self, state: State) -> tuple[State, float]:
        """Weigh the scalings by the next row's share of what they took from the targets."""
        grid, n = self.grid, state.n_seen
        if grid.log_prior is None or n >= grid.n_shaping:
            return state, 0.0
        step = grid.log_prior_after(n + 1) - grid.log_prior_after(n)
        particles = state.particles
        particles.log_weight[:] += step[particles.level // grid.n_widths]
        gain = float(normalise(particles.log_weight))
        return _changed(state, log_evidence=state.log_evidence + gain), gain

    def _weighed(self, state: State, x: Array, y: float) -> tuple[State, Seen]:
        """Weigh by the density of a row, take it into the factors, and keep it in the buffer."""
        state = self._with_space_for_a_row(state)
        sums, N = state.statistics, self.n_particles
        position = state.n_seen % len(state.rows.y)
        distances = self.grid.distances(x, state.centres, sums.n_candidates)
        rows = state.pending[state.n_pending]
        self.grid.fill_row(x, distances, sums.n_candidates, rows)
        means, variances = np.empty(N), np.empty(N)
        before, n_before = state.particles.log_weight.copy(), sums.n_rows + state.n_pending
        sizes = state.particles.size
        n_centres = float(np.exp(before) @ sizes)
        gain, said = learn_row(
            rows, y, sums.n_candidates, n_before, self.prior, state.particles, means, variances
        )
        state.rows.X[position], state.rows.y[position] = x, y
        state.rows.distances[:, position, : sums.n_candidates] = distances
        state.rows.age[position] = state.n_discounts
        state.pending_y[state.n_pending] = y
        degrees = math.inf
        if not self.prior.is_sampled:
            degrees = 2.0 * self.prior.noise_shape + n_before
        new = _changed(
            state,
            n_pending=state.n_pending + 1,
            n_seen=state.n_seen + 1,
            log_evidence=state.log_evidence + gain,
        )
        return new, Seen(means, variances, before, degrees, said, n_centres)

    def _with_space_for_a_row(self, state: State) -> State:
        """Empty what is full: the pending rows, and the place in the ring."""
        if state.n_pending == len(state.pending_y):
            state = flushed(state)
        n_rows, n_ring = state.n_seen, len(state.rows.y)
        if n_rows == n_ring and n_ring < self.schedule.n_buffered:
            longer = min(2 * n_ring, self.schedule.n_buffered)
            return with_room(state, longer, 0, self.grid.n_mean)
        return self._without_oldest(state) if n_rows >= n_ring else state

    def _without_oldest(self, state: State) -> State:
        """Add the row that the next one overwrites to those that have left."""
        if state.old.gram.shape[1] == 0:
            gram = np.zeros_like(state.statistics.gram)
            state = _changed(state, old=Sums(gram, np.zeros_like(state.statistics.moment)))
        if state.n_leaving == len(state.leaving_y):
            state = _flushed_old(state)
        rows, n = state.rows, state.statistics.n_candidates
        position = state.n_seen % len(rows.y)
        row = state.leaving[state.n_leaving]
        distances = np.ascontiguousarray(rows.distances[:, position, :n])
        self.grid.fill_row(rows.X[position], distances, n, row)
        root = self.retention ** (0.5 * float(state.n_discounts - rows.age[position]))
        row *= root
        state.leaving_y[state.n_leaving] = root * rows.y[position]
        return _changed(state, n_leaving=state.n_leaving + 1)

    def _offered(self, rng: np.random.Generator, state: State, slot: int, x: Array) -> State:
        """Let the last row's input be a candidate, in the place of another if there is none."""
        column, r = self.grid.n_mean + slot, state.statistics.n_candidates
        log_evidence = state.log_evidence
        if slot < r:
            _flush_column(state, column)
            log_evidence += drop_candidate(
                _counted(state), self.prior, self.sets.log_size(r), self.sets.log_size(r - 1),
                column, state.particles,
            )  # fmt: skip
            r -= 1
        elif slot >= len(state.centres):
            room = min(2 * len(state.centres), self.reservoir.n_slots)
            state = with_room(state, 0, room, self.grid.n_mean)
        n_kept = min(state.n_seen, len(state.rows.y))
        ages = state.n_discounts - state.rows.age[:n_kept]
        state = admit(state, self.grid, slot, x, self.retention ** ages.astype(np.float64))
        log_evidence += extend(
            rng, _counted(state), self.prior, self.sets.log_size(r), self.sets.log_size(r + 1),
            column, state.particles,
        )  # fmt: skip
        return _changed(state, log_evidence=log_evidence)

    def _moved(self, rng: np.random.Generator, state: State) -> State:
        fraction = self.schedule.fraction(state.n_seen)
        if fraction > 0.0:
            state = flushed(state)
            state = self._with_near_levels(state)
            move_particles(
                rng, state.statistics, self.prior,
                self.sets.log_size(state.statistics.n_candidates), self.grid.n_widths,
                state.particles, fraction, self.schedule.n_redraws, self.schedule.n_changes,
                self.grid.log_prior_after(state.n_seen),
            )  # fmt: skip
        return _changed(state, **counted(state))

    def _with_near_levels(self, state: State) -> State:
        """Have the sums of all levels that particles may propose; now and then leave the others."""
        sums, rows, m = state.statistics, state.rows, self.grid.n_mean
        near = self.grid.near(np.unique(state.particles.level))
        if state.n_seen % _KEEPING_ROWS == 0:
            left = state.is_kept & ~near
            sums.gram[left] = 0.0
            sums.moment[left] = 0.0
            state.is_kept[left] = False
        wanted = np.flatnonzero(near & ~state.is_kept).tolist()
        if not wanted:
            return state
        state = _flushed_old(state)
        n, r = min(state.n_seen, len(rows.y)), sums.n_candidates
        ages = (state.n_discounts - rows.age[:n]).astype(np.float64)
        weights = (self.retention**ages)[:, np.newaxis]
        design = np.empty((n, m + r))
        design[:, :m] = self.grid.mean(rows.X[:n])
        for level in wanted:
            design[:, m:] = self.grid.kernel(rows.distances[:, :n, :r], level)
            weighted = (design * weights).T
            sums.gram[level, : m + r, : m + r] = weighted @ design
            sums.moment[level, : m + r] = weighted @ rows.y[:n]
            if state.old.gram.shape[1]:
                sums.gram[level] += state.old.gram[level]
                sums.moment[level] += state.old.moment[level]
            state.is_kept[level] = True
        return state


def _drawn_anew(rng: np.random.Generator, state: State, scheme: str) -> State:
    particles = taken(state.particles, resample(rng, np.exp(state.particles.log_weight), scheme))
    particles.log_weight[:] = -math.log(len(particles.size))
    return _changed(state, particles=particles)


def flushed(state: State) -> State:
    """Add the pending rows to the sums."""
    n, sums = state.n_pending, state.statistics
    if n == 0:
        return state
    add_rows(
        sums.gram, sums.moment, state.pending[:n], state.pending_y[:n],
        np.flatnonzero(state.is_kept),
    )  # fmt: skip
    square = sums.square + float(state.pending_y[:n] @ state.pending_y[:n])
    sums = sums._replace(square=square, n_rows=sums.n_rows + n)
    return _changed(state, statistics=sums, n_pending=0)


def _flush_column(state: State, column: int) -> None:
    """Add the pending rows to the sums of a column that is about to go, and to no others."""
    sums, pending = state.statistics, state.pending[: state.n_pending]
    for level in np.flatnonzero(state.is_kept).tolist():
        feature = pending[:, level, column]
        sums.gram[level, column] += feature @ pending[:, level]
        sums.moment[level, column] += feature @ state.pending_y[: state.n_pending]


def _counted(state: State) -> Statistics:
    """Return the sums with the pending rows counted, which are in the factors of particles."""
    sums = state.statistics
    return sums._replace(n_rows=sums.n_rows + state.n_pending)


def _flushed_old(state: State) -> State:
    """Add the rows that have left the buffer to their sums."""
    n = state.n_leaving
    if n == 0:
        return state
    add_rows(state.old.gram, state.old.moment, state.leaving[:n], state.leaving_y[:n])
    return _changed(state, n_leaving=0)


# Algorithm 1 as it is printed: for study, since its weights are biased.
#
# **Target** as in this file, both variances carried by the particle.
#
# **One row** (`PrintedFilter.learn`):
#
# 1. *Resample*, at every row. A user sees the population before it, as the paper's estimate does.
# 2. *Take the row in*, and its input as a candidate.
# 3. *Move* each particle: nothing, a birth at an input drawn uniformly from those unoccupied, or
#    the death of a centre drawn uniformly. P(birth) = c min(1, p(k + 1) / p(k)), P(death) = c
#    min(1, p(k - 1) / p(k)), c = 1/4; without a centre a birth; no birth at k_max or t.
# 4. *Weigh* by eq. (9): the ratio of targets over the probability q of the centre that was chosen;
#    1 for the choice of nothing.
# 5. *Draw* coefficients, then both variances, by Gibbs, eqs. (4) and (5).
#
# **What is wrong.** Eq. (8) has the probability of the way back, from the new set to the old one.
# The paper sets it to the point mass at the old state, "so that it effectively disappears": but
# that is a function of the old state, no distribution given the new one, and the weight is off by
# the number of ways that lead to a set. Sets that many ways lead to, the small ones above all,
# weigh too much.
#
# **Deviations**: the paper's priors of the variances are improper and are made proper (see
# `mercer.basis.model`). Candidates are the first inputs, as many as there may be.
#
# **Cost** of a row: O(N k^3 + R^2).

# c: the share of moves that change the number of centres.
_CHANGES = 0.25


@dataclass(frozen=True, eq=False)
class PrintedFilter:
    """Settings of Algorithm 1 as it is printed."""

    n_particles: int
    prior: Prior  # its variances are sampled
    sets: SetPrior
    grid: LengthScaleGrid  # a particle keeps the length scale that it began with
    n_candidates: int  # the most candidates
    scheme: str  # of resampling
    n_buffered: int  # rows kept: no fewer than candidates

    def init(self, rng: np.random.Generator) -> State:
        """Draw particles without centres, their variances from the prior."""
        return self._rows.init(rng)

    def learn(
        self, rng: np.random.Generator, state: State, x: Array, y: float
    ) -> tuple[State, Seen]:
        """Learn a row x (d,), y; the arrays of ``state`` are used up."""
        state = _drawn_anew(rng, state, self.scheme)
        state, seen = self._rows.learn(rng, state, x, y)
        state = self._with_candidate(flushed(state), x)
        log_size = self.sets.log_size(state.statistics.n_candidates)
        gain = printed_step(
            rng, state.statistics, self.prior, log_size, _CHANGES, state.particles
        )  # eq. (9)
        return _changed(state, log_evidence=state.log_evidence + gain), seen

    @property
    def _rows(self) -> Filter:
        """What predicts a row and takes it in: no candidates come, nothing is moved."""
        return Filter(
            n_particles=self.n_particles,
            prior=self.prior,
            sets=self.sets,
            grid=self.grid,
            reservoir=Reservoir(0, 0, False),
            schedule=Schedule(n_eager=0, block=1, later_fraction=0.0, n_buffered=self.n_buffered),
            scheme=self.scheme,
            retention=1.0,
        )

    def _with_candidate(self, state: State, x: Array) -> State:
        """Let the last row's input be a candidate, while there is room."""
        slot = state.statistics.n_candidates
        if slot == self.n_candidates:
            return state
        if slot == len(state.centres):
            room = min(max(_FIRST_ROOM, 2 * slot), self.n_candidates)
            state = with_room(state, 0, room, self.grid.n_mean)
        weights = np.ones(min(state.n_seen, len(state.rows.y)))
        return admit(state, self.grid, slot, x, weights)


AnyFilter: TypeAlias = Filter | PrintedFilter
