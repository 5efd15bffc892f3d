"""The model of a particle: its arrays, priors, schedule of moves, candidates and sums of rows.

**Target.** y_s = f(x_s) + noise, f(x) = sum_j beta_j k(x, c_j) + mean, the centres c_1 .. c_k a
subset of r candidates: all subsets of k share p_r(k), which is p(k) cut to 0 .. min(k_max, r) and
normalised. Since r grows, so does that constant: it stays in the evidence (eq. (2) of [1]_).

**Variances**, integrated (the default): noise s2 ~ IG(a, b), beta_j | s2 ~ N(0, g s2), the mean's
coefficients N(0, s2 / rho), g ~ IG(1/2, 1/40) cut to [1e-6, 1e6]; s2 and beta are integrated out,
the particle carries g. Sampled, as in the paper: s2 and the variance of all coefficients, both
inverse gamma, are carried. The paper's a = b = 0 is improper at every t and is not offered.

References
----------
.. [1] J. Vermaak, S. J. Godsill and A. Doucet, Sequential Bayesian Kernel Regression, NIPS 2003.
.. [2] A. Lee and N. Whiteley, Variance estimation in the particle filter, Biometrika 105, 2018.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas
from scipy.special import gammaln

# Groups of arrays that the compiled loops take and change in place.
#
# Columns of a design are numbered 0 .. p - 1 for the mean (a constant, then the inputs where there
# is a linear part) and p + c for candidate c. A particle is a set of candidates, held as column
# numbers, with its length scale, the variance of its coefficients, and the factor of its
# regression.

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Prior(NamedTuple):
    """Priors of variances and mean; see `mercer.basis.model`.

    Shapes and rates are those of inverse gamma priors: of the noise variance, and of the
    coefficients' variance relative to it, or absolute if sampled: then the mean shares that of
    the coefficients.
    """

    noise_shape: float
    noise_rate: float
    scale_shape: float
    scale_rate: float
    mean_precision: float  # of the coefficients of the mean, in noise precisions
    n_mean: int  # columns of the mean
    is_sampled: bool  # particles carry both variances; else the noise's is integrated out


class Statistics(NamedTuple):
    """Sums over rows that all particles share."""

    gram: Array  # (L, C, C), products of columns at each of L levels of the length scale; symmetric
    moment: Array  # (L, C), products of columns with targets
    square: float  # sum of squared targets
    n_rows: float  # sum of the rows' weights: their number where nothing is forgotten
    n_candidates: int  # columns of candidates in use


class Particles(NamedTuple):
    """N particles, p columns of the mean and up to k_max centres each."""

    size: Integers  # (N,), number of centres
    members: Integers  # (N, k_max), their columns; the first ``size`` entries of a row count
    level: Integers  # (N,), position of the length scale
    scale: Array  # (N,), prior variance of a coefficient, in noise variances
    noise: Array  # (N,), noise variance where it is sampled; else without meaning
    factor: Array  # (N, p + k_max, p + k_max), upper triangle U with U'U = K'K + R
    whitened: Array  # (N, p + k_max), w with U'w = K'y
    rss: Array  # (N,), y'y - w'w
    half_logdet: Array  # (N,), log|U|
    log_target: Array  # (N,), log evidence plus log prior of the set, in nats
    log_weight: Array  # (N,), normalised: their exponentials sum to 1
    ancestor: Integers  # (N, 2), which it comes from since families were counted, and before that


def taken(particles: Particles, which: Integers) -> Particles:
    """Return copies of some particles, by position; of factors, the part that is in use."""
    chosen = {name: array[which] for name, array in particles._asdict().items() if name != "factor"}
    P, k_max = particles.factor.shape[1], particles.members.shape[1]
    p = P - k_max + int(chosen["size"].max(initial=0))
    factor = np.zeros((len(which), P, P))
    factor[:, :p, :p] = particles.factor[which, :p, :p]
    return Particles(**chosen, factor=factor)


# How many rows a family of particles, the descendants of one, is followed for: once, and twice.
_ANCESTRY_ROWS = 50


def variance_of_families(particles: Any, generation: int) -> float:
    """Relative variance of the mean weight, from the weights of families; see `counted`."""
    W = np.bincount(particles.ancestor[:, generation], np.exp(particles.log_weight))
    return float(W @ W / W.sum() ** 2) - 1.0 / len(particles.size)


def counted(state: Any) -> dict[str, Any]:
    """Count families every fifty rows, and begin new ones: what changes of a filter's state.

    Without interaction, families would be independent: the squares of their weights give the
    variance of the evidence to first order [2]_, with what a particle means for later rows. Few
    are left of old ones, so that what happens at a row is followed for fifty rows to a hundred.
    """
    particles, N = state.particles, len(state.particles.size)
    if state.n_seen % _ANCESTRY_ROWS:
        return {}
    n_ancestors = len(np.unique(particles.ancestor[:, 0]))
    new = variance_of_families(particles, 1) - variance_of_families(particles, 0)
    particles.ancestor[:] = np.column_stack([np.arange(N), particles.ancestor[:, 0]])
    variance = max(state.evidence_variance + new, 0.0)
    return {"n_ancestors": n_ancestors, "evidence_variance": variance}


# On a standardised target. Of the noise hardly anything is said, half a row's worth: its variance
# is that of the target or a hundredth of it. Centre and scale of the target come from the rows
# themselves, so more would be said twice, and intervals of few rows be too narrow. Coefficients'
# variance: half of the prior is below a twentieth of the noise's, with tails so heavy that a curve
# without noise is not shrunk. The mean is known to ten noise standard deviations.
_NOISE = 0.25, 0.2
_SCALE = 0.5, 0.025
_MEAN_PRECISION = 0.01
# The paper's variances, made proper.
_PAPER_NOISE = 1.0, 0.1
_PAPER_SCALE = 1.0, 1.0


def integrated(n_mean: int) -> Prior:
    """Return the priors of the default, for a mean with so many columns."""
    return Prior(*_NOISE, *_SCALE, _MEAN_PRECISION, n_mean, is_sampled=False)


def sampled(n_mean: int) -> Prior:
    """Return the priors of the paper's model: both variances carried, one for all coefficients."""
    return Prior(*_PAPER_NOISE, *_PAPER_SCALE, 1.0, n_mean, is_sampled=True)


@dataclass(frozen=True)
class SetPrior:
    """How many centres: Poisson, or negative binomial with shape 1 (its mean integrated out)."""

    kind: str  # "poisson" or "negative_binomial"
    expected: float  # mean before it is cut
    largest: int  # k_max

    def log_size(self, n_candidates: int) -> Array:
        """Return log p_r(k) - log C(r, k) for k = 0 .. k_max + 1: -inf where k is not allowed."""
        return _log_size(self.kind, self.expected, self.largest, n_candidates)


@functools.lru_cache(maxsize=64)
def _log_size(kind: str, expected: float, largest: int, r: int) -> Array:
    result = np.full(largest + 2, -math.inf)
    k = np.arange(min(r, largest) + 1)
    log_p = k * math.log(expected) - gammaln(k + 1)
    if kind == "negative_binomial":
        log_p = k * math.log(expected / (1.0 + expected))
    log_sum = log_p.max() + math.log(np.exp(log_p - log_p.max()).sum())
    log_subsets = gammaln(r + 1) - gammaln(k + 1) - gammaln(r - k + 1)
    result[: len(k)] = log_p - log_sum - log_subsets
    result.flags.writeable = False  # shared by all who ask
    return result


# When particles are moved, rows are added to the sums, and the sums are discounted.
#
# It depends on the number of the row alone: a schedule that looked at the particles, even only at
# whether they were just resampled, would bias the evidence.


@dataclass(frozen=True)
class Schedule:
    """The first rows one by one, with all particles, then with some; then blocks.

    Rows up to ``n_eager``, then up to ``n_young``, both multiples of ``block``, are blocks of
    one.
    """

    n_eager: int = 64  # after each of these every particle is moved
    block: int = 8  # rows in a later block
    later_fraction: float = 0.2  # share of the particles that is moved after a later block
    n_redraws: int = 1  # of a centre, for each particle that is moved
    n_changes: int = 10  # births, deaths and swaps proposed for each of these
    n_buffered: int = 512  # rows kept, for the sums of later candidates
    n_young: int = 0
    young_fraction: float = 0.2  # share of the particles that is moved after each young row

    def rows_in_block(self, n_seen: int) -> int:
        """Rows in the block of row number ``n_seen`` (from 0)."""
        return 1 if n_seen < max(self.n_eager, self.n_young) else self.block

    def begins_block(self, n_seen: int) -> bool:
        """Whether row number ``n_seen`` (from 0) is the first of its block."""
        return n_seen % self.rows_in_block(n_seen) == 0

    def fraction(self, n_seen: int) -> float:
        """Share of the particles that is moved after so many rows."""
        if n_seen <= self.n_eager:
            return 1.0
        if n_seen <= self.n_young:
            return self.young_fraction
        return self.later_fraction if n_seen % self.block == 0 else 0.0


# Which inputs are candidates: a reservoir that looks neither at targets nor at particles.

# With forgetting, inputs are admitted as if the stream were never longer than so many rows for
# each candidate: one candidate is replaced every twenty rows or so.
_ROWS_PER_CANDIDATE = 20
_ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class Reservoir:
    """Algorithm R with a random stream of its own: any input is kept with the same probability."""

    n_slots: int  # the most candidates
    key: int  # seed; what happens at a row depends on it and the row's number alone
    is_forgetting: bool  # whether recent inputs are preferred

    def slot(self, n_seen: int) -> int | None:
        """Return the slot that the input of row number ``n_seen`` (from 0) takes, or None."""
        if n_seen < self.n_slots:
            return n_seen
        length = n_seen + 1
        if self.is_forgetting:
            length = min(length, _ROWS_PER_CANDIDATE * self.n_slots)
        numbers = _numbers(self.key, n_seen // _ROWS_AT_ONCE)
        drawn = numbers[n_seen % _ROWS_AT_ONCE] * length >> 64
        return drawn if drawn < self.n_slots else None


@functools.lru_cache(maxsize=64)
def _numbers(key: int, block: int) -> list[int]:
    """Whole numbers below 2^64, one for each row of a block."""
    seed = np.random.SeedSequence(key, spawn_key=(block,))
    values: list[int] = seed.generate_state(_ROWS_AT_ONCE, np.uint64).tolist()
    return values


# Sums of products over a few rows, each matrix passed once for all of them.


def add_rows(
    gram: Array, moment: Array, rows: Array, y: Array, levels: NDArray[np.intp] | None = None
) -> None:
    """Add products of rows (n, L, C) with each other and with their targets (n,), in place.

    ``gram`` (L, C, C) is symmetric; where ``levels`` are given, only their sums change.
    """
    for level in range(len(gram)) if levels is None else levels:
        K = rows[:, level].T
        # A symmetric matrix is its transpose, which is laid out as BLAS wants it.
        blas.dgemm(1.0, K, K, 1.0, gram[level].T, trans_b=1, overwrite_c=1)
        moment[level] += K @ y
