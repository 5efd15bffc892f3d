"""The filter of classes: a row after the other, and several classes by stick-breaking.

Columns of a design are numbered as in `mercer.basis.model`: the mean first, then the candidates.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from mercer.basis.class_loops import (
    admit,
    eliminate_mean,
    fill_latent,
    move_particles,
    retire,
    weigh_row,
)
from mercer.basis.length_scales import LengthScaleGrid
from mercer.basis.loops import draw_scale, factorise_set, solve_back
from mercer.basis.model import Array, Integers, Reservoir, SetPrior, counted
from mercer.basis.population_loops import effective_size, normalise
from mercer.numerics.cholesky import one_blas_thread
from mercer.sampling.resampling import resample


class ClassPrior(NamedTuple):
    """Priors of coefficients; see `mercer.basis.class_filter`.

    The variance of a centre's coefficient is inverse gamma; the constant of the mean and each
    of its slopes have prior precisions.
    """

    scale_shape: float
    scale_rate: float
    constant_precision: float
    slope_precision: float
    n_mean: int  # columns of the mean


class ClassParticles(NamedTuple):
    """N particles, their coefficients explicit."""

    size: Integers  # (N,), number of centres
    members: Integers  # (N, k_max), their columns; the first ``size`` entries of a row count
    level: Integers  # (N,), position of the length scale
    scale: Array  # (N,), prior variance of a centre's coefficient
    beta: Array  # (N, p + k_max), coefficients of the mean, then of the members in their order
    log_weight: Array  # (N,), normalised: their exponentials sum to 1
    log_likelihood: Array  # (N,), of the rows held, by weight
    ancestor: Integers  # (N, 2), which it comes from since families were counted, and before that


# The model of two classes: what a particle's target is made of.
#
# **Target.** p(y_s = 1) = 1 / (1 + e^-f(x_s)), f(x) = mean(x) + sum_j beta_j k(x, c_j), the
# centres a subset of the candidates with the prior of `mercer.basis.model.SetPrior`; beta_j | g ~
# N(0, g), g ~ IG(1/2, 1/10) cut to [1e-6, 1e6], the mean's constant N(0, v), its d slopes
# N(0, v / d), v = pi^2 / 3, the length scale uniform on its levels. A particle is (set, level, g,
# beta).
#
# **Where these come from.** Of few labels the prior decides how sure a prediction is. v is the
# variance of the logistic law: with it a probability is nearly uniform between 0 and 1, by the
# constant and by the linear part of a typical row, however many inputs there are. g is as for
# numbers (`mercer.basis.model`), where it is relative to the variance of the noise: that of a label
# is 4, one over the mean of its Polya-Gamma variable at f = 0.
#
# **Rows held.** The target after t rows is the posterior given the rows in the buffer and the
# candidates held, nothing else: of a stream that is longer than the buffer only its last rows
# count, as if the others had never been seen. A row that leaves is divided out. With a buffer that
# holds all rows it is the posterior.
#
# **Forgetting.** With retention g < 1 the likelihood of a row counts with the power g^a, where a
# rows came after it, those of classes that a filter does not learn too: the target is p(set, ...)
# prod_s p(y_s | x_s)^(g^(a_s)). A filter holds no more rows of its own than it takes to fall to
# `LEAST_WEIGHT`.
#
# **Several classes** in the order 0 .. C - 1: class c has probability s_c prod_(b < c) (1 - s_b),
# s_c = 1 / (1 + e^-f_c), s_(C-1) = 1. Each f_c is a model of two classes on the rows of class c and
# later ones, so that likelihood, evidence and predictive probability are products. The prior
# depends on the order of the classes.

_SCALE = 0.5, 0.1
_PRECISION = 3.0 / math.pi**2


def default_prior(n_mean: int) -> ClassPrior:
    """Return the priors of the default, for a mean with so many columns."""
    return ClassPrior(*_SCALE, _PRECISION, _PRECISION * max(n_mean - 1, 1), n_mean)


# When particles are moved and candidates change hands: by the number of rows alone.


@dataclass(frozen=True)
class ClassSchedule:
    """So many moves in each doubling of the rows held: a move costs as much as there are rows."""

    per_doubling: int = 16  # between t and 2 t rows; a power of 2. Up to so many rows, one each
    n_redraws: int = 3  # redraws of a centre in a move
    n_buffered: int = 1024  # the most rows held
    is_rare: bool = False  # whether candidates change hands after some rounds only
    n_counting: int = 2**62  # rows after which a move comes no more rarely

    def period(self, n_seen: int) -> int:
        """Rows in which each particle is moved once, after so many rows (from 1)."""
        power = 1 << (min(n_seen, self.n_buffered, self.n_counting).bit_length() - 1)
        return max(1, power // self.per_doubling)

    def renews_at(self, n_seen: int) -> bool:
        """Whether candidates change hands after so many rows, where a round of moves ends.

        That takes as long as ten rows and more. Where they do so rarely, and a round is 8 rows and
        longer, it is after every fourth.
        """
        period = self.period(n_seen)
        if self.is_rare:
            period *= 4 if period >= 8 else 1
        return n_seen % period == 0

    def share(self, n_seen: int, n_particles: int) -> tuple[int, int]:
        """First and last particle to be moved after so many rows."""
        period = self.period(n_seen)
        phase = n_seen % period
        return n_particles * phase // period, n_particles * (phase + 1) // period


#: A row may leave once it weighs no more.
LEAST_WEIGHT = 1e-3
# Rounds of moves are those of a stream of so many times as many rows as are remembered.
_ROWS_PER_REMEMBERED = 3.0


def forgetting_schedule(schedule: ClassSchedule, retention: float) -> ClassSchedule:
    """Hold rows as long as they weigh `LEAST_WEIGHT`, and move as often as is forgotten."""
    if retention == 1.0:
        return schedule
    n_held = max(1, math.ceil(math.log(LEAST_WEIGHT) / math.log(retention)))
    n_counting = max(1, int(_ROWS_PER_REMEMBERED / (1.0 - retention)))
    n_buffered = min(schedule.n_buffered, n_held)
    return replace(schedule, n_buffered=n_buffered, n_counting=n_counting)


# All that the filter of two classes needs for the next row.


class Labels(NamedTuple):
    """Labels of rows, and by which power of its likelihood each counts."""

    sign: Array  # (B,), 1 where y = 1, -1 where y = 0
    weight: Array  # (B,); (0,) where all count once


class HeldRows(NamedTuple):
    """The last rows, in a ring: row number t stands at t modulo the length B."""

    X: Array  # (B, d)
    sign: Array  # see `Labels`
    weight: Array
    design: Array  # (L, C, B), columns of the design at each level

    @property
    def labels(self) -> Labels:
        """What the loops are given."""
        return Labels(self.sign, self.weight)

    def weights(self, n: int) -> Array | float:
        """Weights of the first n rows, (n,) or 1."""
        return self.weight[:n] if len(self.weight) else 1.0


class Approximation(NamedTuple):
    """The quadratic approximation of the log likelihood, see `mercer.basis.class_loops`."""

    products: Array  # (L, C, C), of the columns by row weights, after `eliminate_mean`
    moments: Array  # (L, C)
    anchor: Array  # (B,), latent values of the rows around which it is; 0 for those that came since
    level: int  # of the length scale of the regression on all candidates that gave the anchors
    log_scale: float  # log prior variance of its coefficients


@dataclass(frozen=True, eq=False)
class ClassState:
    """The filter after some rows. Its arrays are changed in place by the next."""

    particles: ClassParticles
    rows: HeldRows
    centres: Array  # (R, d), inputs of the candidates, standardised
    n_candidates: int  # candidates held
    waiting: Array  # (R, d), inputs that become candidates at the next move, in their slots
    is_waiting: NDArray[np.bool_]  # (R,)
    approximation: Approximation
    n_seen: int  # rows learned
    log_evidence: float  # of the rows held, in nats: unbiased on the scale of the evidence itself
    evidence_variance: float  # of the log evidence, of families that are no longer followed
    n_ancestors: int  # distinct ancestors of the particles after the last fifty rows

    @property
    def n_held(self) -> int:
        """Rows in the ring."""
        return min(self.n_seen, len(self.rows.sign))


def with_more_rows(rows: HeldRows, length: int) -> HeldRows:
    """Return a longer ring; only before it is full."""
    more = length - len(rows.sign)
    return HeldRows(
        np.pad(rows.X, ((0, more), (0, 0))),
        np.pad(rows.sign, (0, more)),
        np.pad(rows.weight, (0, more if len(rows.weight) else 0)),
        np.pad(rows.design, ((0, 0), (0, 0), (0, more))),
    )


# The filter of two classes: a row after the other, each predicted before it is learned.
#
# **Target** after t rows: p(set, level, g, beta | rows held, candidates) of
# `mercer.basis.class_filter`.
#
# **One row** (`ClassFilter.learn`):
#
# 1. *Resample* if the effective sample size has fallen below N / 2.
# 2. *Forget*, where that is asked for: weigh by the power g - 1 of what the rows held still count.
# 3. *Weigh* each particle by the likelihood of the label, 1 / (1 + e^(-s f)) with s = +-1. If the
#    buffer was full, the row that leaves it is divided out first.
# 4. *Move* a share of the particles, so that all are moved once in a round. At the end of a round,
#    or after every fourth, *candidates* that have to make room retire, and the inputs
#    of the rows since then come in. When that is depends on the row's number alone.
#
# The product of the mean weights is the evidence of the rows held, unbiased for any N.
#
# **Symbols** (paper -> code): K columns of the design, U ``members``, k ``size``, delta^2
# ``scale``, W ``log_weight``.
#
# **Deviations**: the paper has regression only. A quadratic approximation of the likelihood, which
# all particles share, makes moves those of regression; what it proposes is accepted or weighted by
# the ratio to the likelihood (`mercer.basis.class_loops`).
#
# **Cost** of a row O(N k); of a round of moves O(N (n k + R k^2)) for n rows held and R candidates,
# and O(L n R^2) for the approximation at L length scales.

_FIRST_ROOM = 64
# Of Newton's method for the anchors of the approximation.
_NEWTON_STEPS = 2
_LEAST_WEIGHT, _MOST_LATENT = 1e-4, 8.0
_SCALE_STEP = math.log(4.0)
#: Log prior variance of its coefficients, at most.
MOST_SCALE = math.log(256.0)


class ClassSeen(NamedTuple):
    """What the filter said of a row before learning it."""

    proba: float  # P(y = 1)
    n_centres: float  # mean over particles
    each: Array  # (N,), P(y = 1) of each particle
    weights: Array  # (N,)


@dataclass(frozen=True, eq=False)
class ClassFilter:
    """Settings of a filter over rows of standardised inputs and labels."""

    n_particles: int
    prior: ClassPrior
    sets: SetPrior
    grid: LengthScaleGrid
    reservoir: Reservoir
    schedule: ClassSchedule
    scheme: str  # of resampling
    retention: float = 1.0  # weight of a row after the next; 1 forgets nothing

    def init(self, rng: np.random.Generator) -> ClassState:
        """Draw particles without centres, all else from the prior."""
        N, k_max, m, prior = self.n_particles, self.sets.largest, self.grid.n_mean, self.prior
        L, R, d = self.grid.n_levels, self.reservoir.n_slots, self.grid.scalings.shape[1]
        B, forgets = min(_FIRST_ROOM, self.schedule.n_buffered), self.retention < 1.0
        beta = np.zeros((N, m + k_max))
        beta[:, :m] = rng.standard_normal((N, m)) / math.sqrt(prior.slope_precision)
        beta[:, 0] *= math.sqrt(prior.slope_precision / prior.constant_precision)
        shape, rate = prior.scale_shape, prior.scale_rate
        particles = ClassParticles(
            size=np.zeros(N, np.int64),
            members=np.zeros((N, k_max), np.int64),
            level=rng.integers(0, L, N),
            scale=np.array([draw_scale(rng, shape, rate, 1.0) for _ in range(N)]),
            beta=beta,
            log_weight=np.full(N, -math.log(N)),
            log_likelihood=np.zeros(N),
            ancestor=np.column_stack([np.arange(N)] * 2),
        )
        return ClassState(
            particles=particles,
            rows=HeldRows(
                np.zeros((B, d)), np.zeros(B), np.zeros(B if forgets else 0),
                np.zeros((L, m + R, B)),
            ),
            centres=np.zeros((R, d)),
            n_candidates=0,
            waiting=np.zeros((R, d)),
            is_waiting=np.zeros(R, np.bool_),
            approximation=Approximation(
                _no_products(prior, L, m + R), np.zeros((L, m + R)), np.zeros(B), L // 2, 0.0
            ),
            n_seen=0,
            log_evidence=0.0,
            evidence_variance=0.0,
            n_ancestors=N,
        )  # fmt: skip

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
        state = self._moved(rng, state)
        return replace(state, **counted(state)), seen

    def faded(self, state: ClassState) -> ClassState:
        """Forget a little, as with each row that comes; the arrays of ``state`` are changed."""
        if self.retention == 1.0:
            return state
        particles = state.particles
        particles.log_weight[:] += (self.retention - 1.0) * particles.log_likelihood
        particles.log_likelihood[:] *= self.retention
        state.rows.weight[:] *= self.retention
        gain = normalise(particles.log_weight)
        return replace(state, log_evidence=state.log_evidence + gain)

    def look(self, state: ClassState, x: Array) -> ClassSeen:
        """Predict a row x (d,) that is not learned."""
        return self._looked(state, x)[2]

    def _moved(self, rng: np.random.Generator, state: ClassState) -> ClassState:
        """Move a share of the particles; candidates change hands first where they are to."""
        if self.schedule.renews_at(state.n_seen):
            state = self._with_new_candidates(rng, state)
        r, share = state.n_candidates, self.schedule.share(state.n_seen, self.n_particles)
        move_particles(
            rng, *self._arguments(state), self.sets.log_size(r), self.grid.n_widths, r,
            self.schedule.n_redraws, state.particles, *share,
        )  # fmt: skip
        return state

    def predict(self, state: ClassState, Z: Array) -> Array:
        """Probability of y = 1 at rows Z (m, d), standardised: shape (m,)."""
        particles, m, r = state.particles, self.grid.n_mean, state.n_candidates
        result, weights = np.zeros(len(Z)), np.exp(particles.log_weight)
        for level in np.unique(particles.level):
            which = np.flatnonzero(particles.level == level)
            coef = np.zeros((m + r, len(which)))
            for j, i in enumerate(which):
                k = particles.size[i]
                coef[:m, j] = particles.beta[i, :m]
                coef[particles.members[i, :k], j] = particles.beta[i, m : m + k]
            design = self.grid.design(Z, state.centres[:r], int(level))
            result += expit(design @ coef) @ weights[which]
        return result

    def functions(
        self, state: ClassState, parts: Sequence[Array], n: int, rng: np.random.Generator
    ) -> list[Array]:
        """Probability of y = 1 at parts of rows Z (m, d) by drawn particles: (n, m) each."""
        particles, m, r = state.particles, self.grid.n_mean, state.n_candidates
        weights = np.exp(particles.log_weight)
        chosen = rng.choice(len(weights), size=n, p=weights / weights.sum())
        coef = np.zeros((n, m + r))
        for s, i in enumerate(chosen):
            k = particles.size[i]
            coef[s, :m] = particles.beta[i, :m]
            coef[s, particles.members[i, :k]] = particles.beta[i, m : m + k]
        drawn = self.grid.functions(parts, state.centres[:r], coef, particles.level[chosen])
        return [np.asarray(expit(values)) for values in drawn]

    def _resampled(self, rng: np.random.Generator, state: ClassState) -> ClassState:
        particles = state.particles
        if effective_size(particles.log_weight) >= 0.5 * self.n_particles:
            return state
        chosen = resample(rng, np.exp(particles.log_weight), self.scheme)
        particles = ClassParticles._make(array[chosen] for array in particles)
        particles.log_weight[:] = -math.log(self.n_particles)
        return replace(state, particles=particles)

    def _weighed(self, state: ClassState, x: Array, sign: float) -> tuple[ClassState, ClassSeen]:
        """Predict a row, make room for it, weigh by it and keep it."""
        rows, particles, m = state.rows, state.particles, self.grid.n_mean
        n_ring = len(rows.sign)
        if state.n_seen == n_ring and n_ring < self.schedule.n_buffered:
            rows = with_more_rows(rows, min(2 * n_ring, self.schedule.n_buffered))
            anchor = np.pad(state.approximation.anchor, (0, len(rows.sign) - n_ring))
            state = replace(state, approximation=state.approximation._replace(anchor=anchor))
            n_ring = len(rows.sign)
        design, f, seen = self._looked(state, x)
        state = self.faded(state)
        position, gain, forgets = state.n_seen % n_ring, 0.0, self.retention < 1.0
        if state.n_seen >= n_ring:
            old = np.empty(self.n_particles)
            fill_latent(np.ascontiguousarray(rows.design[:, :, position]), m, particles, old)
            weight = float(rows.weight[position]) if forgets else 1.0
            gain = weigh_row(old, rows.sign[position], -weight, particles)
        gain += weigh_row(f, sign, 1.0, particles)
        if forgets:
            rows.weight[position] = 1.0
        rows.X[position], rows.sign[position] = x, sign
        state.approximation.anchor[position] = 0.0
        rows.design[:, : design.shape[1], position] = design
        return replace(state, rows=rows, log_evidence=state.log_evidence + gain), seen

    def _looked(self, state: ClassState, x: Array) -> tuple[Array, Array, ClassSeen]:
        """Row of the design of an input at each level (L, p + r), latent values (N,), and proba."""
        r, particles = state.n_candidates, state.particles
        row = np.empty((self.grid.n_levels, self.grid.n_mean + r))
        self.grid.fill_row(x, self.grid.distances(x, state.centres, r), r, row)
        f = np.empty(self.n_particles)
        fill_latent(row, self.grid.n_mean, particles, f)
        weights = np.exp(particles.log_weight)
        each = expit(f)
        n_centres = float(weights @ particles.size)
        return row, f, ClassSeen(float(weights @ each), n_centres, each, weights)

    def _with_new_candidates(self, rng: np.random.Generator, state: ClassState) -> ClassState:
        """Let candidates that have to make room go, renew the approximation, let others in."""
        slots = np.flatnonzero(state.is_waiting)
        r, m = state.n_candidates, self.grid.n_mean
        old, gain = m + slots[slots < r], 0.0
        if len(old):
            sizes = self._log_sizes(np.arange(r, r - len(old) - 1, -1))
            gain = retire(*self._arguments(state), sizes, old, state.particles)
            r -= len(old)
        self._fill_columns(state, slots)
        # Two BLAS threads that wait for each other take longer than one.
        with one_blas_thread():
            state = self._approximate(state, r + len(slots))
        if len(slots):
            sizes = self._log_sizes(np.arange(r, r + len(slots) + 1))
            gain += admit(rng, *self._arguments(state), sizes, m + slots, state.particles)
        state.is_waiting[:] = False
        return replace(state, n_candidates=r + len(slots), log_evidence=state.log_evidence + gain)

    def _arguments(self, state: ClassState) -> tuple[Any, ...]:
        """First arguments of the loops."""
        rows, near = state.rows, state.approximation
        return rows.design, rows.labels, near.products, near.moments, state.n_held, self.prior

    def _approximate(self, state: ClassState, r: int) -> ClassState:
        """Renew the approximation, for r candidates.

        Its anchors are those of a regression on all candidates by Newton's method, at one length
        scale with one variance of the coefficients; a neighbour of these two is tried beside, and
        taken if its evidence (Laplace's) is greater. Nothing of this looks at the particles.
        """
        n, here, C = state.n_held, state.approximation, self.grid.n_mean + r
        label = 0.5 * (1.0 + state.rows.sign[:n])
        level, log_scale = here.level, here.log_scale
        value, anchor = self._newton(state, level, log_scale, here.anchor[:n], C)
        turn = state.n_seen // self.schedule.period(state.n_seen) % 4
        other, log_other = level, log_scale
        if turn < 2:
            other = min(max(level + 2 * turn - 1, 0), self.grid.n_levels - 1)
        else:
            log_other = min(max(log_scale + (2 * turn - 5) * _SCALE_STEP, -MOST_SCALE), MOST_SCALE)
        if (other, log_other) != (level, log_scale):
            tried, latent = self._newton(state, other, log_other, anchor, C)
            if tried > value:
                level, log_scale, anchor = other, log_other, latent
        here.anchor[:n] = anchor
        proba, counts = expit(anchor), state.rows.weights(n)
        weight = counts * proba * (1.0 - proba)
        right = counts * (label - proba) + weight * anchor
        for a in range(self.grid.n_levels):
            columns = state.rows.design[a, :C, :n]
            here.products[a, :C, :C] = _gram(columns, weight)
            here.moments[a, :C] = columns @ right
            eliminate_mean(self.prior, here.products[a], here.moments[a], C)
        return replace(state, approximation=here._replace(level=level, log_scale=log_scale))

    def _newton(
        self, state: ClassState, level: int, log_scale: float, anchor: Array, C: int
    ) -> tuple[float, Array]:
        """Laplace's log evidence and latent values (n,) after some steps."""
        n, m = state.n_held, self.grid.n_mean
        columns = state.rows.design[level, :C, :n]
        sign, label = state.rows.sign[:n], 0.5 * (1.0 + state.rows.sign[:n])
        prior, precision, counts = self.prior, math.exp(-log_scale), state.rows.weights(n)
        ridge = np.full(C, precision)
        ridge[:m], ridge[0] = prior.slope_precision, prior.constant_precision
        U, whitened, coef, half_logdet = np.empty((C, C)), np.empty(C), np.empty(C), 0.0
        for _ in range(_NEWTON_STEPS):
            proba = expit(anchor)
            weight = counts * np.maximum(proba * (1.0 - proba), _LEAST_WEIGHT)
            right = columns @ (counts * (label - proba) + weight * anchor)
            half_logdet, _ = factorise_set(
                _gram(columns, weight), right, np.arange(C), C, m,
                prior.constant_precision, prior.slope_precision, precision, U, whitened,
            )  # fmt: skip
            solve_back(U, C, whitened, coef)
            if not np.isfinite(coef).all():  # inputs so far out that their products lose all else
                return -math.inf, np.zeros(n)
            anchor = np.clip(coef @ columns, -_MOST_LATENT, _MOST_LATENT)
        fit = (counts * log_expit(sign * anchor)).sum()
        value = float(fit - 0.5 * ridge @ coef**2) - half_logdet
        value += 0.5 * float(np.log(ridge).sum())
        return value, anchor

    def _log_sizes(self, counts: Integers) -> Array:
        return np.array([self.sets.log_size(int(r)) for r in counts])

    def _fill_columns(self, state: ClassState, slots: NDArray[np.intp]) -> None:
        """Put waiting inputs into their slots, with their columns of the design."""
        n, m = state.n_held, self.grid.n_mean
        column = np.empty((self.grid.n_levels, m + n))
        for slot in slots:
            x = state.waiting[slot]
            state.centres[slot] = x
            self.grid.fill_row(x, self.grid.distances(x, state.rows.X, n), n, column)
            state.rows.design[:, m + slot, :n] = column[:, m:]


def _no_products(prior: ClassPrior, n_levels: int, n_columns: int) -> Array:
    """Return what `eliminate_mean` leaves of sums over no row: shape (L, C, C)."""
    products = np.zeros((n_levels, n_columns, n_columns))
    for each in products:
        eliminate_mean(prior, each, np.zeros(n_columns), n_columns)
    return products


def _gram(columns: Array, weight: Array) -> Array:
    """Products (C, C) of columns (C, n), rows weighted: of a matrix and itself, half the work."""
    rooted = columns * np.sqrt(weight)
    return np.asarray(rooted @ rooted.T)


# Several classes by stick-breaking: a filter of two classes for each class but the last.
#
# Filter c asks of the rows of class c or later: is it c? Its target is its own, so evidence and
# predictive probability of all classes are exact products; see `mercer.basis.class_filter`.

_SMALLEST_PROBA = 1e-12
_INTERVAL_DRAWS = 2000  # of probabilities, for the ends of an interval


@dataclass(frozen=True, eq=False)
class StickState:
    """States of the filters, by position as text."""

    filters: Mapping[str, ClassState]

    @property
    def states(self) -> tuple[ClassState, ...]:
        """States of the filters, in order."""
        return tuple(self.filters.values())

    @property
    def n_seen(self) -> int:
        """Rows learned: the first filter learns all."""
        return self.states[0].n_seen


@dataclass(frozen=True, eq=False)
class ClassOutlook:
    """What was said of a row before it was learned."""

    proba: Array  # (C,), probability of each class; none is 0
    log_density: float  # log probability of the row's class, in nats; NaN if it has none
    n_centres: float  # mean over particles, summed over filters
    seen: tuple[ClassSeen, ...]  # by each filter

    def interval(self, level: float) -> tuple[Array, Array]:
        """Central posterior intervals of the probabilities of the classes, both (C,).

        Filters are independent: of each as many particles as count, in an order of its own.
        """
        success, rng = np.empty((len(self.seen), _INTERVAL_DRAWS)), np.random.default_rng(0)
        at = (np.arange(_INTERVAL_DRAWS) + 0.5) / _INTERVAL_DRAWS
        for c, seen in enumerate(self.seen):
            order = np.argsort(seen.each)
            ends = np.cumsum(seen.weights[order])
            found = np.minimum(np.searchsorted(ends, at * ends[-1]), len(order) - 1)
            drawn = seen.each[order[found]]
            success[c] = drawn if len(self.seen) == 1 else rng.permutation(drawn)
        lower, upper = np.quantile(
            stick_proba(success), (0.5 - 0.5 * level, 0.5 + 0.5 * level), axis=0
        )
        return lower, upper


@dataclass(frozen=True, eq=False)
class StickBreaking:
    """One filter for each class but the last."""

    filters: tuple[ClassFilter, ...]

    def init(self, rng: np.random.Generator) -> StickState:
        """Draw the populations before the first row."""
        return StickState({str(c): each.init(rng) for c, each in enumerate(self.filters)})

    def learn(
        self, rng: np.random.Generator, state: StickState, x: Array, label: int
    ) -> tuple[StickState, ClassOutlook]:
        """Learn a row x (d,) of a class; the arrays of ``state`` are used up."""
        states, all_seen = dict(state.filters), []
        for c, (filter_, name) in enumerate(zip(self.filters, states, strict=True)):
            if c <= label:
                sign = 1.0 if c == label else -1.0
                states[name], seen = filter_.learn(rng, states[name], x, sign)
            else:
                seen = filter_.look(states[name], x)
                states[name] = filter_.faded(states[name])
            all_seen.append(seen)
        return StickState(states), _outlook(all_seen, label)

    def look(self, state: StickState, x: Array) -> ClassOutlook:
        """Predict a row x (d,) that is not learned."""
        pairs = zip(self.filters, state.states, strict=True)
        return _outlook([filter_.look(each, x) for filter_, each in pairs], None)

    def copied(self, state: StickState) -> StickState:
        """Return a state that shares no array with this one."""
        return copy.deepcopy(state)

    def drawn_proba(
        self, state: StickState, parts: Sequence[Array], n: int, rng: np.random.Generator
    ) -> list[Array]:
        """Probabilities of the classes at parts of rows by drawn particles: (n, C, m) each."""
        pairs = zip(self.filters, state.states, strict=True)
        drawn = [filter_.functions(each, parts, n, rng) for filter_, each in pairs]
        found = []
        for success in zip(*drawn, strict=True):
            flat = stick_proba(np.stack(success).reshape(len(success), -1))
            found.append(np.moveaxis(flat.reshape(n, -1, flat.shape[1]), 1, 2))
        return found

    def proba(self, state: StickState, Z: Array) -> Array:
        """Probabilities (m, C) of the classes at rows Z (m, d), standardised; none is 0."""
        pairs = zip(self.filters, state.states, strict=True)
        return stick_proba(np.array([filter_.predict(each, Z) for filter_, each in pairs]))


def _outlook(seen: Sequence[ClassSeen], label: int | None) -> ClassOutlook:
    proba = stick_proba(np.array([each.proba for each in seen])[:, np.newaxis])[0]
    log_density = math.nan if label is None else float(np.log(proba[label]))
    return ClassOutlook(proba, log_density, sum(each.n_centres for each in seen), tuple(seen))


def stick_proba(success: Array) -> Array:
    """Return class probabilities (m, C) from success probabilities (C - 1, m); none is 0."""
    proba = np.ones((len(success) + 1, success.shape[1]))
    np.cumprod(1.0 - success, axis=0, out=proba[1:])
    proba[:-1] *= success
    proba = np.minimum(np.maximum(proba, _SMALLEST_PROBA), 1.0 - _SMALLEST_PROBA)
    return np.asarray((proba / proba.sum(axis=0)).T)
