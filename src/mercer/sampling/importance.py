"""Adaptive importance sampling of a density that can be evaluated point by point.

**Target.** Any log density on R^p, of which only values are needed.

**Learning**, one round [1]_

1. Draw positions from the proposal q_r, and evaluate the target at each.
2. Weigh **all** positions so far by the mixture of all proposals so far,
   w_i = p(x_i) / sum_s (n_s / N) q_s(x_i): no single round can spoil the result.
3. Fit the centre and the scales of q_{r+1} to the weighted positions.

Rounds go on until the positions are worth enough equal draws for the fit to be good.

**Sampling**

4. The last proposal q is fixed, and so is the number of draws that it takes until they are worth
   as many equal ones as are wanted. Their weights are p(x_i) / q(x_i); no other draws count.

The positions of step 1 have taught the proposals that weigh them, and learning ends once these
weights look good: averages over them are biased, with three parameters and twelve rows variances up
to a fifth too small, with twelve and a hundred rows by a fiftieth. Those over step 4 are not. Where
that matters little step 4 is left out: rounds go on until the weights of step 2 are worth enough.

**Proposals** are Student's t's with a centre and, along each axis, a scale below and one above it
[2]_; sides are as probable as they are wide, so that the density is continuous. The posterior of a
log parameter is often one-sided: an idle weight is as small as its prior lets it be. Only these 3 p
numbers are learned; the correlations stay those of the curvature at the maximum. A covariance
learned from a few hundred positions is too narrow in some direction.

A tenth of the positions (with step 4 a fifth) come from a wide proposal instead, the prior where it
is known, or one that is as wide but along parameters of which the data say much: proposals learn
only from what they have seen, and would leave out a second maximum, or a tail as long as that of an
idle weight, without a sign of it in their weights [3]_. Of up to eight parameters the posterior may
have branches, as where a kernel of short length scales stands in for the noise: a round whose
positions are worth much less than their number adds a part around the heaviest of them. Where a few
positions outweigh all others, they may be at the foot of a maximum that no search has found: the
target is climbed from the heaviest, and the proposal becomes a mixture with a part where that ends
[4]_; each part is fitted to the positions in proportion to its share of the parts' density there.

Where the target does not change as parameters change places, as two terms of a sum do that are
alike, each of its modes has a mirror image. The proposal knows one; its density is averaged over
these orders, as if each draw were put into one of them at random. Then no mode is left out.

**Cost.** All evaluations of a round are independent: any number of processes, the same bits.

References
----------
.. [1] Cornuet, Marin, Mira & Robert (2012), Adaptive multiple importance sampling, Scandinavian
   Journal of Statistics 39.
.. [2] Geweke (1989), Bayesian inference in econometric models using Monte Carlo integration,
   Econometrica 57.
.. [3] Hesterberg (1995), Weighted average importance sampling and defensive mixture distributions,
   Technometrics 37.
.. [4] Raftery & Bao (2010), Estimating and projecting trends in HIV/AIDS generalized epidemics
   using incremental mixture importance sampling, Biometrics 66.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from joblib import delayed
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from mercer.errors import ModelFileError
from mercer.numerics.cholesky import one_blas_thread
from mercer.posterior.diagnostics import LARGEST_SHAPE, effective_sample_size
from mercer.random import stream
from mercer.sampling.checkpoint import ChainFile
from mercer.sampling.driver import (
    RunOptions,
    SamplingStoppedError,
    count_workers,
    in_processes,
    uses_other_engine,
)
from mercer.sampling.signals import StopRequestedError, StopSignals, check_stop, is_late

Array = NDArray[np.float64]
Evaluated = tuple[float, Mapping[str, Array]]  # log density, and what a draw records
Target = Callable[[Array], Evaluated]
Difference = Callable[[Array, float, Mapping[str, Array]], float]  # of where, and what was there
Correct = Callable[[Array], Difference | None]
Climb = Callable[[Array], "SplitT | None"]
Orders = NDArray[np.int64] | tuple[slice]  # (g, p): of parameters, g of them
_AS_IS = (slice(None),)


@dataclass(frozen=True)
class SplitT:
    """Student's t with two scales along each axis, as wide below the centre as above or not.

    Attributes
    ----------
    centre : ndarray of shape (p,)
        The mode.
    root : ndarray of shape (p, p)
        Symmetric and positive definite: its columns are the axes.
    below, above : ndarray of shape (p,)
        Scales along the axes on either side of the centre.
    df : float
        Degrees of freedom.
    """

    centre: Array
    root: Array
    below: Array
    above: Array
    df: float

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Draw n positions, shape (n, p)."""
        p = len(self.centre)
        u = np.abs(rng.standard_normal((n, p)))
        u /= np.sqrt(rng.chisquare(self.df, n) / self.df)[:, np.newaxis]
        is_above = rng.random((n, p)) * (self.below + self.above) < self.above
        return self.centre + np.where(is_above, self.above * u, -self.below * u) @ self.root

    def log_density(self, positions: Array) -> Array:
        """Log density at positions (n, p), shape (n,)."""
        p, df = len(self.centre), self.df
        square = self.square_distance(positions)
        return np.asarray(self._log_constant - 0.5 * (df + p) * np.log1p(square / df))

    def square_distance(self, positions: Array) -> Array:
        """Squared distance of positions (n, p) from the centre, in scales, shape (n,)."""
        z = self.along_axes(positions)
        return np.asarray(np.square(z / np.where(z > 0.0, self.above, self.below)).sum(axis=1))

    def along_axes(self, positions: Array) -> Array:
        """Coordinates of positions (n, p) along the axes, from the centre."""
        return np.asarray((positions - self.centre) @ self._inverse)

    @functools.cached_property
    def _inverse(self) -> Array:
        return np.asarray(np.linalg.inv(self.root))

    @functools.cached_property
    def _log_constant(self) -> float:
        p, df = len(self.centre), self.df
        log_scale = np.linalg.slogdet(self.root)[1] + np.log(0.5 * (self.below + self.above)).sum()
        constant = gammaln(0.5 * (df + p)) - gammaln(0.5 * df) - 0.5 * p * math.log(df * math.pi)
        return float(constant - log_scale)


@dataclass(frozen=True)
class Defended:
    """A proposal that is a wide one in a share of its draws: no weight is beyond a bound.

    Attributes
    ----------
    own, wide : SplitT
    share : float
        Of the wide one.
    orders : ndarray of shape (g, p), int
        A group of orders of the parameters that neither the target nor the wide one tells apart.
    """

    own: SplitT
    wide: SplitT | Defended
    share: float
    orders: Orders = _AS_IS

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Draw n positions, shape (n, p)."""
        own, wide = self.own.draw(rng, n), self.wide.draw(rng, n)
        return np.where(rng.random((n, 1)) < self.share, wide, own)

    def log_density(self, positions: Array) -> Array:
        """Log density at positions (n, p) whose order is left to chance, shape (n,).

        To such a target it is the same which of the orders a draw has.
        """
        each = (self.own.log_density(positions[:, order]) for order in self.orders)
        own = functools.reduce(np.logaddexp, each) + math.log1p(-self.share)
        own -= math.log(len(self.orders))
        wide = self.wide.log_density(positions) + math.log(self.share)
        return np.asarray(np.logaddexp(own, wide))


Proposal = SplitT | Defended

_FIRST_SCALE = math.sqrt(1.2)  # the first proposal is wider than the curvature says
_TOLD, _ROOM = 0.2, 3.0  # of the wide proposal's scale; of the first one's


def _degrees(p: int) -> float:
    """Degrees of freedom: the radius of a t spreads by 1/sqrt(2 df), of a normal by 1/sqrt(2 p)."""
    return max(7.0, float(p if p < 20 else max(p, 40)))


def first_proposal(mean: Array, covariance: Array) -> SplitT:
    """Return the t around the maximum of a density, from its curvature."""
    std = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(std, std))
    # The symmetric root of the correlations: its axes are as close to the parameters as can be.
    root = (vectors * np.sqrt(np.maximum(values, 1e-8))) @ vectors.T * std
    scale = np.full(len(mean), _FIRST_SCALE)
    return SplitT(mean, root, scale, scale, _degrees(len(mean)))


def wide_proposal(mean: Array, std: Array) -> SplitT:
    """Return the t that is as wide as independent normals."""
    ones = np.ones(len(mean))
    return SplitT(mean, np.diag(std), ones, ones, _degrees(len(mean)))


def _defence(first: SplitT, wide: SplitT, orders: Orders) -> Proposal:
    """What is wide: the wide one or, in half of its draws, narrow along parameters that are told.

    These are known to a fifth of the wide one's scale. Where data tell one parameter and leave
    others to their prior, hardly a draw of the wide one is right in that one.
    """
    std, widest = (np.sqrt(np.square(each.root).sum(axis=0)) for each in (first, wide))
    is_told = std < _TOLD * widest
    if not is_told.any():
        return wide
    centre = np.where(is_told, first.centre, wide.centre)
    root = np.diag(np.where(is_told, _ROOM * std, widest))
    return Defended(replace(wide, centre=centre, root=root), wide, 0.5, orders)


def _branch(positions: Array, log_weights: Array, std: Array) -> SplitT:
    """Propose around the heaviest position, as wide as those near it are spread.

    Near is meant in scales ``std``; a position counts half by its weight, half as one of all [4]_.
    """
    heaviest, n_near = positions[np.argmax(log_weights)], max(10 * len(std), _FEWEST_NEAR)
    shifted = positions - heaviest
    near = np.argsort(np.square(shifted / std).sum(axis=1), kind="stable")[:n_near]
    W = np.exp(log_weights[near] - logsumexp(log_weights)) + 1.0 / len(log_weights)
    root = np.sqrt(W / W.sum())[:, np.newaxis] * shifted[near]
    return first_proposal(heaviest, root.T @ root + 1e-8 * np.diag(std**2))


def fit_proposal(first: SplitT, positions: Array, log_weights: Array) -> SplitT:
    """Fit centre and scales to weighted positions (n, p); axes stay those of the first proposal.

    The fewer parameters, the wider may a proposal be at no cost.
    """
    p = positions.shape[1]
    W = _tempered(log_weights, p)
    centre, below, above = _two_piece_normals(first.along_axes(positions), W)
    shifted = first.centre + centre @ first.root
    wider = math.sqrt(1.0 + 1.0 / p)
    return SplitT(shifted, first.root, wider * below, wider * above, first.df)


def tempered_positions(sample: ImportanceSample) -> tuple[Array, Array]:
    """Positions that have mass, and weights of them as a proposal would be fitted to."""
    kept = np.flatnonzero(np.isfinite(sample.log_weights))
    positions = sample.positions[kept]
    return positions, _tempered(sample.log_weights[kept], positions.shape[1])


def _tempered(log_weights: Array, p: int) -> Array:
    """Normalised weights, raised to a power until they are worth enough to fit p parameters.

    That is 3 p equal ones and at least 30, or half of all where these are fewer.
    """
    power, wanted = 1.0, min(max(3.0 * p, 30.0), 0.5 * len(log_weights))
    while power > 0.01 and effective_sample_size(power * log_weights) < wanted:
        power *= 0.8
    return np.asarray(np.exp(power * log_weights - logsumexp(power * log_weights)))


def _two_piece_normals(z: Array, W: Array) -> tuple[Array, Array, Array]:
    """Maximum likelihood of a mode and of scales below and above it, for each column of z (n, p).

    With S1 and S2 the weighted sums of squares on the two sides of a mode, the likelihood is
    largest where S1^(1/3) + S2^(1/3) is least; the squared scales are S1^(2/3) and S2^(2/3) times
    that sum [John (1982), The three-parameter two-piece normal family]. The mode is sought among
    the positions between the deciles.
    """
    order = np.argsort(z, axis=0, kind="stable")
    x, w = np.take_along_axis(z, order, axis=0), W[order]
    share, first, second = np.cumsum(w, 0), np.cumsum(w * x, 0), np.cumsum(w * x * x, 0)
    below = second - 2.0 * x * first + x * x * share
    above = (second[-1] - second) - 2.0 * x * (first[-1] - first) + x * x * (share[-1] - share)
    below, above = np.cbrt(np.maximum(below, 1e-12)), np.cbrt(np.maximum(above, 1e-12))
    is_central = (share > 0.1) & (share < 0.9)
    best = np.argmin(np.where(is_central, below + above, np.inf), axis=0)
    columns = np.arange(z.shape[1])
    a, b = below[best, columns], above[best, columns]
    return x[best, columns], a * np.sqrt(a + b), b * np.sqrt(a + b)


# Weights, and what they say of themselves.


def weigh(
    log_density: Array, positions: Array, proposals: Sequence[Proposal | _Known], counts: list[int]
) -> Array:
    """Log weights of positions (N, p), of which ``counts`` came from each of the proposals."""
    total, drawn = sum(counts), zip(proposals, counts, strict=True)
    parts = [proposal.log_density(positions) + math.log(n / total) for proposal, n in drawn]
    return np.asarray(log_density - logsumexp(np.stack(parts), axis=0))


class _Known:
    """A proposal that computes its density at each of a growing number of positions once."""

    def __init__(self, proposal: Proposal) -> None:
        self._proposal, self._known = proposal, np.empty(0)

    def log_density(self, positions: Array) -> Array:
        """Log density at positions (n, p), which begin with those of the last call."""
        new = self._proposal.log_density(positions[len(self._known) :])
        self._known = np.concatenate([self._known, new])
        return self._known


def expected_share(log_weights: Array, log_ratios: Array) -> float:
    """How large a share of the draws of a proposal q their effective size will be, at most 1.

    That is Z / E(p/q) over the target p, whose integral is Z; ``log_ratios`` are log p/q.
    """
    total = logsumexp(log_weights)
    second = logsumexp(log_weights + log_ratios)
    return math.exp(min(0.0, 2.0 * total - math.log(len(log_weights)) - second))


def evidence_of_rounds(
    log_density: Array, positions: Array, proposals: Sequence[Proposal], counts: list[int]
) -> tuple[float, float]:
    """Log evidence and its standard error, from draws weighted by their own proposals only.

    Given the rounds before it, the mean weight of a round is an unbiased estimate of the evidence;
    that of the mixture of all proposals is not: they have seen the draws that they weigh, and the
    estimate comes out too small. Later rounds are better: round r has a share in proportion to
    r n_r, the first, r = 0, none unless it is alone.
    """
    shares = np.arange(float(len(counts))) * counts if len(counts) > 1 else np.ones(1)
    shares /= shares.sum()
    ends = np.cumsum(counts)
    logs = [
        log_density[end - n : end] - proposal.log_density(positions[end - n : end])
        for end, n, proposal in zip(ends, counts, proposals, strict=False)
    ]
    peak = max(float(each.max()) for each, share in zip(logs, shares, strict=True) if share > 0.0)
    if not math.isfinite(peak):
        return -math.inf, math.inf
    weights = [np.exp(each - peak) for each in logs]
    means = np.array([each.mean() for each in weights])
    variances = np.array([each.var(ddof=int(len(each) > 1)) / len(each) for each in weights])
    evidence = float(shares @ means)
    error = math.sqrt(float(np.square(shares) @ variances)) / evidence
    return peak + math.log(evidence), error


def pareto_shape(log_weights: Array) -> float:
    """Pareto k-hat of the largest weights: above 0.7 averages cannot be trusted.

    Vehtari, Simpson, Gelman, Yao & Gabry (2024), Pareto smoothed importance sampling. Infinite
    where there are too few weights for a tail of five.
    """
    ordered = np.sort(log_weights[np.isfinite(log_weights)])
    n = len(ordered)
    if n < 25:
        return math.inf
    m = math.floor(3.0 * math.sqrt(n) if n > 225 else n / 5.0)
    with np.errstate(all="ignore"):
        beyond = np.exp(ordered[-m:] - ordered[-1]) - np.exp(ordered[-m - 1] - ordered[-1])
        # Zhang & Stephens' (2009) estimate of the generalised Pareto law, by a grid of its b.
        n_grid = 30 + math.isqrt(m)
        b = 1.0 - np.sqrt(n_grid / (np.arange(n_grid) + 0.5))
        b = b / (3.0 * beyond[int(m / 4 + 0.5) - 1]) + 1.0 / beyond[-1]
        k = np.log1p(-b[:, np.newaxis] * beyond).mean(axis=1)
        log_likelihood = m * (np.log(-b / k) - k - 1.0)
        share = np.exp(log_likelihood - logsumexp(log_likelihood))
        share[share < 10.0 * np.finfo(float).eps] = 0.0
        shape = float(np.log1p(-(share @ b) / share.sum() * beyond).mean())
    shape = (m * shape + 5.0) / (m + 10.0)  # the prior: ten more of shape 1/2
    return shape if math.isfinite(shape) else math.inf


def thinned(
    rng: np.random.Generator, log_weights: Array, most: int
) -> tuple[NDArray[np.int64], Array]:
    """Keep ``most`` of the weighted draws, so that no average changes in expectation.

    The heaviest keep their weights; of the others some are drawn and get one weight in common
    (Fearnhead & Clifford 2003, On-line inference for hidden Markov models via particle filters).
    Returns positions, ascending, and log weights, of sum 1. Draws below 1e-9 of all are left out.
    """
    W = np.exp(log_weights - logsumexp(log_weights))
    alive = np.flatnonzero(W > 1e-9)
    if len(alive) <= most:
        return alive, np.log(W[alive] / W[alive].sum())
    ordered = np.sort(W[alive])[::-1]
    rest = ordered.sum() - np.concatenate([[0.0], np.cumsum(ordered)])
    n_heavy = 0
    while n_heavy < most and ordered[n_heavy] * (most - n_heavy) > rest[n_heavy]:
        n_heavy += 1
    heavy = alive[np.argsort(-W[alive], kind="stable")[:n_heavy]]
    light = np.setdiff1d(alive, heavy)
    n_light = most - n_heavy
    ends = np.cumsum(W[light]) / W[light].sum() * n_light
    chosen = light[np.searchsorted(ends, np.arange(n_light) + rng.random()).clip(0, len(light) - 1)]
    kept = np.concatenate([heavy, chosen])
    weights = np.concatenate([W[heavy], np.full(n_light, W[light].sum() / max(n_light, 1))])
    order = np.argsort(kept, kind="stable")
    return kept[order], np.log(weights[order] / weights.sum())


# The rounds.


@dataclass(frozen=True)
class Rounds:
    """How many evaluations are made.

    Attributes
    ----------
    learned, is_frozen
        Effective draws at which learning ends, without step 4 not before there are as many as
        ``wanted``; whether step 4 is taken, or else all draws count.
    size, most : int
        Evaluations of a round of learning; at most in all.
    wanted : callable
        How many effective draws there should be, from what was recorded and normalised weights.
    """

    learned: float
    is_frozen: bool
    size: int
    wanted: Callable[[Mapping[str, Array], Array], float]
    most: int


@dataclass(frozen=True, eq=False)
class ImportanceSample:
    """Weighted positions, and what their weights say."""

    positions: Array  # (N, p)
    log_density: Array  # (N,), -inf where the target has no mass
    recorded: Mapping[str, Array]  # what the target recorded, each (N, ...)
    log_weights: Array  # (N,), -inf, too, where the position has only taught the proposal
    log_evidence: float  # log of the integral of the target, nats
    log_evidence_se: float
    ess: float  # how many equal draws the weighted ones are worth
    k_hat: float
    is_trusted: bool  # k-hat is small and the draws are enough
    is_late: bool = False  # the clock ended it: all draws count
    is_resumed: bool = False  # evaluations of an earlier run were used


_SHARES = (0.1, 0.2)  # of the wide proposal: without step 4, and with it
_NEARLY_EQUAL = 0.5  # effective size over number of draws
_FEWEST = 0.25  # of the wanted effective draws
# After so many rounds, fewer effective draws than this in the last three will not become enough;
# in one alone they may: a draw in a place that no proposal knew outweighs all others at first.
_HOPELESS_ROUNDS, _HOPELESS_SIZE, _HOPELESS_LAST = 16, 10.0, 3
_CORRECTING = 40  # draws, and what positions are worth by then
_CLIMB_ROUNDS = 3  # so many rounds of that few call for a climb
# Of a part of a mixture: its share, and effective draws for each parameter that it is fitted to.
_LEAST_SHARE, _OWNED = 0.1, 2.0
# Parameters up to which a mixture gets a further part after a round, and parts that it has at most;
# not where the positions are worth so large a share of their number.
_MOST_BRANCHED, _MOST_PARTS, _EVEN = 8, 8, 0.6
_FEWEST_NEAR = 50  # positions that a further part is fitted to
_CHUNK = 25  # evaluations of one process between two looks at the clock
# Seconds of evaluations that are left in a round for which processes are started, which takes two.
_WORTH_PROCESSES, _FIRST_CHUNK = 4.0, 5
_MARGIN = 1.25  # of the number of draws: the effective share that is expected is a little too large


def is_trusted(log_weights: Array) -> bool:
    """Whether k-hat is small, or draws are worth half of their number: it then says nothing."""
    is_equal = effective_sample_size(log_weights) >= _NEARLY_EQUAL * len(log_weights)
    return is_equal or pareto_shape(log_weights) <= LARGEST_SHAPE


class _Mixture:
    """The proposal: a part around each maximum that is known, and what is wide."""

    def __init__(
        self,
        firsts: list[SplitT],
        wide: SplitT | None,
        share: float,
        orders: Orders,
        climb: Climb | None,
    ) -> None:
        self._std = None if wide is None else wide.root.diagonal()
        self._firsts, self._parts = firsts, list(firsts)
        self._mass = np.full(len(firsts), 1.0 / len(firsts))
        self._wide = None if wide is None else _defence(firsts[0], wide, orders)
        self._share, self._orders = share, orders
        self._climb, self._next_climb = climb, _CLIMB_ROUNDS
        self.n_rounds = 0  # before the last maximum was found

    @property
    def proposal(self) -> Proposal:
        """The parts, in proportion to their mass, and what is wide with its share."""
        if self._wide is None:
            return self._parts[0]
        mixed: Proposal = self._wide
        share = self._share
        for part, own in zip(self._parts, (1.0 - share) * self._mass, strict=True):
            mixed, share = Defended(part, mixed, share / (share + own), self._orders), share + own
        return mixed

    def learned(
        self, positions: Array, log_weights: Array, sizes: list[float], *, is_open: bool = True
    ) -> Proposal:
        """The proposal fitted to weighted positions; if open, perhaps with one part more."""
        if self._climb and sizes[-1] < _HOPELESS_SIZE and len(sizes) >= self._next_climb:
            self._next_climb = len(sizes) + _CLIMB_ROUNDS
            above = self._climb(positions[np.argmax(log_weights)])
            if above is not None:
                self.n_rounds = len(sizes)
                self._add(above)
        is_open &= positions.shape[1] <= _MOST_BRANCHED and len(self._parts) < _MOST_PARTS
        if self._std is not None and is_open and sizes[-1] < _EVEN * len(positions):
            self._add(_branch(positions, log_weights, self._std))
        if len(self._firsts) == 1:
            self._parts = [fit_proposal(self._firsts[0], positions, log_weights)]
        else:
            self._fit_parts(positions, log_weights)
        return self.proposal

    def _add(self, part: SplitT) -> None:
        self._firsts.append(part)
        self._parts.append(part)

    def _fit_parts(self, positions: Array, log_weights: Array) -> None:
        """Fit each to the positions (n, p) that are its own; it stays where they are too few."""
        logs = np.stack([part.log_density(positions) for part in self._parts])
        owned = np.exp(logs - logsumexp(logs, axis=0))  # (k, n), of sum 1 over parts
        W, p = _tempered(log_weights, positions.shape[1]), positions.shape[1]
        for k, first in enumerate(self._firsts):
            with np.errstate(divide="ignore"):
                log_own = np.log(W * owned[k])
            if effective_sample_size(log_own) >= _OWNED * p:
                self._parts[k] = fit_proposal(first, positions, log_own)
        mass = np.maximum(owned @ np.exp(log_weights - logsumexp(log_weights)), _LEAST_SHARE)
        self._mass = mass / mass.sum()


def importance_sample(
    target: Target,
    start: SplitT,
    rounds: Rounds,
    options: RunOptions,
    wide: SplitT | None = None,
    orders: Orders = _AS_IS,
    others: Sequence[SplitT] = (),
    climb: Climb | None = None,
    correct: Correct | None = None,
) -> ImportanceSample | None:
    """Draw weighted positions of a target; None if it has no mass where they fall.

    Parameters
    ----------
    target : callable
        From a position (p,) to its log density and what is recorded there; picklable.
    start : SplitT
        The first proposal.
    rounds : Rounds
    options : RunOptions
        Entropy, processes, deadline and checkpoint; the rest is for chains.
    wide : SplitT, optional
        What a tenth or a fifth of the positions come from.
    orders : ndarray of shape (g, p), int, optional
        With ``wide``, of `Defended`: weights are then of positions in an order left to chance.
    others : sequence of SplitT, optional
        With ``wide``, proposals around further maxima.
    climb : callable, optional
        With ``wide``, from a position to a proposal around the maximum above it; None where that
        was known.
    correct : callable, optional
        From some draws of the target to what is to be added to its log density; None: nothing.

    Raises
    ------
    SamplingStoppedError
        After Ctrl-C or SIGTERM, once the checkpoint is written. It is a KeyboardInterrupt.
    """
    name = f"importance-{options.first_chain}" if options.first_chain else "importance"
    file = None if options.run is None else options.run.file(name)
    work = _Evaluations(target, options, file, correct)
    mixture = _Mixture([start, *others], wide, _SHARES[rounds.is_frozen], orders, climb)
    proposals, counts, sizes = [mixture.proposal], list[int](), list[float]()
    known, n_next, wanted, is_last = list[_Known](), rounds.size, rounds.learned, False
    while True:
        rng = stream(options.entropy, "importance", len(counts))
        n_done = work.extend(proposals[-1].draw(rng, n_next))
        counts += [n_done] if n_done else []
        known += map(_Known, proposals[len(known) : len(counts)])
        log_weights = work.weigh(known, counts, rng)
        log_density, positions = work.log_density, work.positions
        if not np.isfinite(log_weights).any():
            return None
        n_left = rounds.most - len(positions)
        if is_last and not work.is_late:  # step 4
            own = log_density[-n_done:] - proposals[-1].log_density(positions[-n_done:])
            if np.isfinite(own).any() and (n_left < n_done or _is_sound(own, wanted)):
                log_weights = own
                break
        sizes.append(effective_sample_size(log_weights))
        is_learned = _is_learned(rounds, work, log_weights, sizes[-1])
        is_few = max(sizes[-_HOPELESS_LAST:]) < _HOPELESS_SIZE
        is_hopeless = is_few and len(sizes) >= mixture.n_rounds + _HOPELESS_ROUNDS
        if work.is_late or n_left <= 0 or is_hopeless or (is_learned and not rounds.is_frozen):
            break
        is_ending = rounds.is_frozen and (is_learned or 2 * n_left < rounds.most)
        # No part that nothing has judged in a proposal to be kept, unless such a one failed before.
        is_open, is_last = is_last or not is_ending, is_last or is_ending
        proposals.append(mixture.learned(positions, log_weights, sizes, is_open=is_open))
        n_next = min(rounds.size, n_left)
        if is_last:
            wanted = rounds.wanted(work.recorded, np.exp(log_weights - logsumexp(log_weights)))
            ratios = log_density - proposals[-1].log_density(positions)
            n_next = min(math.ceil(_MARGIN * wanted / expected_share(log_weights, ratios)), n_left)
    if len(log_weights) < sum(counts):
        proposals, counts = proposals[-1:], counts[-1:]
    n = len(log_weights)
    evidence = evidence_of_rounds(log_density[-n:], positions[-n:], proposals, counts)
    wanted = 0.0 if work.is_late else wanted
    return work.result(log_weights, evidence, is_trusted=_is_sound(log_weights, wanted))


def _is_learned(rounds: Rounds, work: _Evaluations, log_weights: Array, size: float) -> bool:
    """Whether draws are worth enough for learning to end and, without step 4, to end with them."""
    if size < rounds.learned or not is_trusted(log_weights):
        return False
    W = np.exp(log_weights - logsumexp(log_weights))
    return rounds.is_frozen or size >= rounds.wanted(work.recorded, W)


def _is_sound(log_weights: Array, wanted: float) -> bool:
    return effective_sample_size(log_weights) >= _FEWEST * wanted and is_trusted(log_weights)


class _Evaluations:
    """All evaluations so far: in order, those of an earlier run first."""

    def __init__(
        self, target: Target, options: RunOptions, file: ChainFile | None, correct: Correct | None
    ) -> None:
        self._target, self._options, self._file, self._correct = target, options, file, correct
        self._known: list[Evaluated] = []
        self._known_positions = np.empty((0, 0))
        self._positions: list[Array] = []
        self._evaluated: list[Evaluated] = []
        self._values: list[float] = []  # log densities as they were evaluated
        self._difference: Difference | None = None
        self._differences: list[float] = []
        self._seconds: float | None = None  # of an evaluation in this process
        self.is_late = False
        saved = None if file is None else file.load()
        if saved is not None and file is not None:
            with file.remedied():
                self._load(saved[1])
        self._n_resumed = len(self._known)

    @property
    def positions(self) -> Array:
        """All positions, shape (N, p)."""
        return np.array(self._positions)

    @property
    def log_density(self) -> Array:
        """Log density at each, shape (N,), with the difference where there is one."""
        values = np.array(self._values)
        if self._difference is None:
            return values
        n_known = len(self._differences)
        rest = zip(self._positions[n_known:], self._evaluated[n_known:], strict=True)
        self._differences += [self._difference(position, *each) for position, each in rest]
        return np.asarray(values + self._differences)

    def weigh(self, known: list[_Known], counts: list[int], rng: np.random.Generator) -> Array:
        """Log weights, (N,); once they are worth some draws, these correct the density."""
        log_weights = weigh(self.log_density, self.positions, known, counts)
        if self._correct is None or not np.isfinite(log_weights).any():
            return log_weights
        if effective_sample_size(log_weights) < _CORRECTING:
            return log_weights
        few = self.positions[thinned(rng, log_weights, _CORRECTING)[0]]
        self._difference, self._correct = self._correct(few), None
        return self.weigh(known, counts, rng)

    @property
    def recorded(self) -> dict[str, Array]:
        """What the target recorded at each, by name: (N, ...)."""
        names = self._evaluated[0][1]
        return {name: np.stack([each[name] for _, each in self._evaluated]) for name in names}

    def extend(self, positions: Array) -> int:
        """Evaluate the target at further positions, in order; how many before it is late."""
        n_before, n_jobs = len(self._evaluated), count_workers(self._options.n_jobs)
        n_wanted = n_before + len(positions)
        known = self._known[n_before:n_wanted]
        saved = self._known_positions[n_before:n_wanted]
        if known and not np.array_equal(saved, positions[: len(known)]):
            raise ModelFileError("inconsistent checkpoint: positions are not those of this run")
        self._keep(positions[: len(known)], known)
        with StopSignals() as signals, one_blas_thread():
            try:
                while len(self._evaluated) < n_wanted:
                    if is_late(self._options.deadline) and self._evaluated:
                        self.is_late = True
                        break
                    rest = positions[len(self._evaluated) - n_before :]
                    self._keep(*self._evaluate(rest, n_jobs, signals))
                    if self._file is not None and self._file.is_due:
                        self._save()
            except StopRequestedError as error:
                signals.received = error.signal_number
        self._save()
        if signals.received is not None:  # also one that came after the last evaluation began
            folder = None if self._options.run is None else self._options.run.path
            raise SamplingStoppedError(signals.received, folder)
        return len(self._evaluated) - n_before

    def result(
        self, log_weights: Array, evidence: tuple[float, float], *, is_trusted: bool
    ) -> ImportanceSample:
        """Say what the evaluations, and the weights of all or the last of them, say."""
        taught = np.full(len(self._evaluated) - len(log_weights), -np.inf)
        return ImportanceSample(
            positions=self.positions,
            log_density=self.log_density,
            recorded=self.recorded,
            log_weights=np.concatenate([taught, log_weights]),
            log_evidence=evidence[0],
            log_evidence_se=evidence[1],
            ess=effective_sample_size(log_weights),
            k_hat=pareto_shape(log_weights),
            is_trusted=is_trusted,
            is_late=self.is_late,
            is_resumed=self._n_resumed > 0,
        )

    def _evaluate(
        self, rest: Array, n_jobs: int, signals: StopSignals
    ) -> tuple[Array, list[Evaluated]]:
        """Evaluate some of the positions that are left: here, unless that takes long."""
        is_quick = self._seconds is None or self._seconds * len(rest) < _WORTH_PROCESSES
        if n_jobs == 1 or (is_quick and not uses_other_engine()):
            positions = rest[: _FIRST_CHUNK if self._seconds is None else _CHUNK]
            started = time.thread_time()
            with signals.interruptible():
                evaluated = _evaluate_here(self._target, positions)
            self._seconds = (time.thread_time() - started) / len(positions)
            return positions, evaluated
        positions = rest[: _CHUNK * n_jobs]
        parts = np.array_split(positions, min(n_jobs, len(positions)))
        calls = [delayed(_evaluate_away)(self._target, each) for each in parts]
        found = signals.wait_for(functools.partial(in_processes, n_jobs, calls))
        return positions, [each for part in found for each in part]

    def _keep(self, positions: Array, evaluated: list[Evaluated]) -> None:
        self._positions += list(positions)
        self._evaluated += evaluated
        self._values += [log_density for log_density, _ in evaluated]

    def _save(self) -> None:
        if self._file is None or len(self._evaluated) <= len(self._known):
            return
        arrays = {"positions": self.positions, "log_density": np.array(self._values)}
        arrays |= {f"draws/{name}": values for name, values in self.recorded.items()}
        self._file.save({"n_done": len(self._evaluated)}, arrays)

    def _load(self, arrays: Mapping[str, Array]) -> None:
        try:
            self._known_positions, log_density = arrays["positions"], arrays["log_density"]
        except KeyError as error:
            raise ModelFileError(f"inconsistent checkpoint: {error} is missing") from error
        drawn = [name for name in arrays if name.startswith("draws/")]
        recorded = {name.removeprefix("draws/"): arrays[name] for name in drawn}
        lengths = {len(each) for each in (self._known_positions, *recorded.values())}
        if lengths != {len(log_density)}:
            raise ModelFileError("inconsistent checkpoint: evaluations of different number")
        self._known = [
            (float(value), {name: np.asarray(each[i]) for name, each in recorded.items()})
            for i, value in enumerate(log_density)
        ]


def _evaluate_here(target: Target, positions: Array) -> list[Evaluated]:
    evaluated = []
    for position in positions:
        check_stop()
        evaluated.append(target(position))
    return evaluated


def _evaluate_away(target: Target, positions: Array) -> list[Evaluated]:
    with one_blas_thread():
        return [target(position) for position in positions]
