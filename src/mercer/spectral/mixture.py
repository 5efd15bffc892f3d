"""The Dirichlet-process mixture of frequencies: partition, seating, components, spectrum."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import norm

from mercer.errors import UsageError
from mercer.spectral import loops
from mercer.spectral.base_measure import (
    Array,
    BaseMeasure,
    Components,
    Labels,
    ScalePrior,
    require_positive,
)


@dataclass(frozen=True)
class MixtureState:
    """Which component each frequency comes from, and what the K components are."""

    assignment: Labels  # Z, (M,), in 0, .., K - 1; each component has a member
    components: Components
    scale: Array  # of the base measure: (d,) for a diagonal one, (1,) for a full one
    concentration: float

    @property
    def n_components(self) -> int:
        """K."""
        return self.components.n_components

    @property
    def means(self) -> Array:
        """mu_k, shape (K, d)."""
        return self.components.means

    @property
    def counts(self) -> NDArray[np.int64]:
        """Members of each component, shape (K,)."""
        return np.bincount(self.assignment, minlength=self.n_components)


# The Chinese restaurant process, and the concentration given how many components there are.
#
# References: Escobar & West, Bayesian density estimation and inference using mixtures (1995).


def draw_partition(rng: np.random.Generator, n_frequencies: int, concentration: float) -> Labels:
    """Draw the component of each frequency, numbered in the order of their first members."""
    assignment = np.zeros(n_frequencies, dtype=np.int64)
    for i in range(1, n_frequencies):
        # Each of those before is worth 1, and i joins the part of one of them; a new part, alpha.
        place = rng.random() * (i + concentration)
        assignment[i] = assignment[int(place)] if place < i else assignment[:i].max() + 1
    return assignment


@dataclass(frozen=True)
class ConcentrationPrior:
    """Gamma(shape, rate) prior of the concentration; both positive."""

    shape: float
    rate: float

    def __post_init__(self) -> None:
        require_positive("shape of the prior of the concentration", self.shape)
        require_positive("rate of the prior of the concentration", self.rate)

    def draw(self, rng: np.random.Generator) -> float:
        """Draw from the prior."""
        return _above_zero(rng.gamma(self.shape, 1.0 / self.rate))


def draw_concentration(
    rng: np.random.Generator,
    concentration: float,
    n_components: int,
    n_frequencies: int,
    prior: ConcentrationPrior,
) -> float:
    """Take one Gibbs step of the concentration; it needs K and M only.

    x ~ Beta(alpha + 1, M), then alpha from a mixture of Gamma(a + K, b - log x) and
    Gamma(a + K - 1, b - log x) with odds (a + K - 1) / (M (b - log x)) for the first.
    """
    x = _above_zero(rng.beta(concentration + 1.0, n_frequencies))
    rate = prior.rate - math.log(x)
    shape = prior.shape + n_components - 1.0
    odds = shape / (n_frequencies * rate)
    if rng.random() * (1.0 + odds) < odds:
        shape += 1.0
    return _above_zero(rng.gamma(shape, 1.0 / rate))


def _above_zero(x: float) -> float:
    """Undo an underflow: gamma draws of a small shape may be 0, whose logarithm is not finite."""
    return max(float(x), float(np.finfo(np.float64).tiny))


# One Gibbs pass over the component and the sign of every frequency.
#
# The components are instantiated. Frequency j leaves its own, which is dropped if j was alone; it
# joins component k with probability proportional to m_k N(W_j; mu_k, Sigma_k), eq. (8) of the
# paper, or a new one with concentration times its prior predictive density, whose parameters then
# come from their posterior given W_j.
#
# **Signs.** The likelihood does not change under W_j -> -W_j, nor does the base measure, so a pass
# may draw (Z_j, s_j) together, from m_k N(s W_j; mu_k, Sigma_k).
#
# **Deviation.** The paper draws the parameters of a new component from the prior: then Z does not
# have the posterior of the model.
#
# **Cost.** O(M K d) for the densities in NumPy, O(M K) exponentials in the compiled loop, and O(M
# d) for each new component.

# Empty slots that are added together when a new component finds none.
_SPARE = 8


def reseat(
    rng: np.random.Generator,
    base: BaseMeasure[Any],
    components: Components,
    assignment: Labels,
    concentration: float,
    W: Array,
    is_symmetric: bool,
) -> tuple[Labels, Array]:
    """Draw the assignment, and the signs, of frequencies W (M, d) given the components.

    The assignment is that of the frequencies times the signs, 1 or -1; it is in 0, .., K - 1,
    without gaps, and the components that it refers to are still to be drawn.
    """
    M, sides = len(W), np.concatenate([W, -W]) if is_symmetric else W
    tables = components.log_densities(sides).reshape(-1, M, components.n_components)
    log_new = base.log_predictive(W) + np.log(concentration)
    counts = np.bincount(assignment, minlength=components.n_components)
    assignment, signs = assignment.copy(), np.ones(M)
    uniforms = rng.random(M)
    first = 0
    while first < M:
        if counts.all():
            counts = np.append(counts, np.zeros(_SPARE, dtype=np.int64))
            tables = np.concatenate([tables, np.empty((*tables.shape[:2], _SPARE))], axis=2)
        opened = loops.seat(first, uniforms, tables, log_new, assignment, signs, counts)
        first = opened + 1
        if first < M:
            born = base.log_densities_around(rng, signs[opened] * W[opened], sides)
            tables[:, first:, assignment[opened]] = born.reshape(-1, M)[:, first:]
    return without_gaps(assignment)[1], signs


def without_gaps(assignment: Labels) -> tuple[Labels, Labels]:
    """Return which components have a member, ascending, and the assignment by places in these."""
    has_member = np.bincount(assignment) > 0
    return np.flatnonzero(has_member), (np.cumsum(has_member) - 1)[assignment]


# The spectral density and the kernel that a mixture stands for.
#
# With weights m_k / (M + alpha) of the components and alpha / (M + alpha) of a new one, the next
# frequency has density p. Since a feature map does not tell w from -w, what is reported is
# (p(w) + p(-w)) / 2; its Fourier transform is the kernel.


@dataclass(frozen=True)
class ComponentTable:
    """The components, the one with most members first."""

    weights: Array  # (K,), share of the frequencies, m_k / M
    means: Array  # (K, d), in units of a frequency
    stds: Array  # (K, d)


def mixture_weights(state: MixtureState) -> Array:
    """Probability of each component, and last of a new one, for the next frequency: (K + 1,)."""
    weights = np.append(state.counts, state.concentration)
    return np.asarray(weights / weights.sum())


# Dirichlet-process mixture of normal distributions over frequencies, by Gibbs sampling.
#
# **Target.** Z ~ CRP(alpha), (mu_k, Sigma_k) ~ base measure, W_j ~ N(mu_Zj, Sigma_Zj), eq. (6),
# given the frequencies W; optionally alpha ~ Gamma(a, b) and the scale of the base ~ Gamma.
#
# **One step**
#
# 1. (Z_j, sign of W_j) for j = 1, .., M: `mercer.spectral.mixture`.
# 2. (mu_k, Sigma_k) given the members of each component.
# 3. The scale of the base measure given all components, if it is learned.
# 4. alpha given K, if it is learned.
#
# **Deviations.** Centred at 0: with that, signs are drawn too. Scale and concentration may be
# learned. A new component's parameters come from their posterior.

_LARGEST_LOG = np.log(np.finfo(np.float64).max)

# Another mixture with all its frequencies, and the log ratio of the prior.
Whole = tuple[MixtureState, Array, float]

# Frequencies that a component draws to be drawn anew from, and spread of a scale's logarithm: from
# steps that hardly move to such as forget where they were. What rows allow differs by component.
_DRAWN = np.array([0, 1, 2, 4, 8, 16, 32])
_STRETCHES = (0.1, 0.3, 1.0)


@dataclass(frozen=True, eq=False)
class Carried:
    """Components elsewhere, and their members with them.

    A frequency is the place and spread of its component and a standard normal of its own. Given
    these normals the prior of components and scale alone counts, so that a move of them that is
    reversible for it takes all members along and is decided by the evidence: however many
    frequencies would have to move one by one.
    """

    frequencies: Array  # (M, d)
    components: Components  # (K,)

    def decided(
        self, state: MixtureState, W: Array, is_accepted: NDArray[np.bool_]
    ) -> tuple[MixtureState, Array]:
        """Return mixture and frequencies where components (K,), with their members, move or not."""
        places = np.arange(state.n_components) + state.n_components * is_accepted
        components = state.components.with_others(self.components).chosen(places)
        took = is_accepted[state.assignment, np.newaxis]
        return replace(state, components=components), np.where(took, self.frequencies, W)


def decide_groups(
    log_evidence: Callable[[NDArray[np.bool_]], float], log_uniform: Array
) -> tuple[NDArray[np.bool_], float]:
    """Accept or reject groups of proposals in their turn, all of a group or none.

    ``log_evidence`` is that where some groups are accepted, in nats; ``log_uniform`` has one
    entry for each group. Returns what is accepted, and its log evidence.
    """
    is_accepted = np.zeros(len(log_uniform), dtype=bool)
    now = log_evidence(is_accepted)
    for k, level in enumerate(log_uniform):
        is_accepted[k] = True
        then = log_evidence(is_accepted)
        is_accepted[k] = level < then - now
        now = then if is_accepted[k] else now
    return is_accepted, now


@dataclass(frozen=True)
class Mixture:
    """The prior of frequencies and its Gibbs sampler. Nothing that is passed in is changed.

    Concentration, and scale of the base, are where the chain starts, and stay if they have no
    prior. With ``is_symmetric`` a step may turn the sign of a frequency.
    """

    base: BaseMeasure[Any]
    concentration: float = 2.0
    concentration_prior: ConcentrationPrior | None = None
    scale_prior: ScalePrior | None = None
    is_symmetric: bool = True

    def __post_init__(self) -> None:
        require_positive("concentration", self.concentration)
        prior = self.scale_prior
        if prior is not None and prior.mean.shape != self.base.scale.shape:
            raise UsageError(
                f"the prior of the scale has shape {prior.mean.shape}, "
                f"the scale of the base measure {self.base.scale.shape}"
            )

    def init(self, rng: np.random.Generator, W: Array, assignment: Labels) -> MixtureState:
        """Start from a partition of frequencies W (M, d): components given their members.

        The assignment may be any integers: frequencies with the same one share a component.
        """
        if W.ndim != 2 or W.shape[1] != self.base.n_inputs or assignment.shape != W.shape[:1]:
            raise UsageError(
                f"frequencies of shape {W.shape} and an assignment of shape {assignment.shape}; "
                f"expected (M, {self.base.n_inputs}) and (M,)"
            )
        labels, Z = np.unique(assignment, return_inverse=True)
        Z = Z.astype(np.int64)
        components = self.base.draw_components(rng, W, Z, len(labels))
        return MixtureState(Z, components, self.base.scale.copy(), self.concentration)

    def draw_prior(
        self, rng: np.random.Generator, n_frequencies: int
    ) -> tuple[MixtureState, Array]:
        """Draw a state and frequencies of shape (n_frequencies, d) from the prior."""
        concentration, base = self.concentration, self.base
        if self.concentration_prior is not None:
            concentration = self.concentration_prior.draw(rng)
        if self.scale_prior is not None:
            base = base.with_scale(self.scale_prior.draw(rng))
        Z = draw_partition(rng, n_frequencies, concentration)
        nobody = np.empty((0, base.n_inputs)), np.empty(0, dtype=np.int64)
        components = base.draw_components(rng, *nobody, int(Z.max()) + 1)
        state = MixtureState(Z, components, base.scale, concentration)
        return state, self.centre(state) + self.draw_noise(rng, state)

    def step(
        self, rng: np.random.Generator, state: MixtureState, W: Array
    ) -> tuple[MixtureState, Array]:
        """Take one step given frequencies W (M, d).

        The state is that of the frequencies ``signs[:, None] * W``: where a sign is -1, the
        coefficient of the frequency's sine changes its sign with it.
        """
        base, concentration = self.base.with_scale(state.scale), state.concentration
        Z, signs = reseat(
            rng, base, state.components, state.assignment, concentration, W, self.is_symmetric
        )
        n_components = int(Z.max()) + 1
        components = base.draw_components(rng, signs[:, np.newaxis] * W, Z, n_components)
        if self.scale_prior is not None:
            base = base.draw_scale(rng, components, self.scale_prior)
        if self.concentration_prior is not None:
            concentration = draw_concentration(
                rng, concentration, n_components, len(W), self.concentration_prior
            )
        return MixtureState(Z, components, base.scale, concentration), signs

    def centre(self, state: MixtureState) -> Array:
        """Return the prior mean mu_Zj of each frequency, shape (M, d)."""
        return state.means[state.assignment]

    def draw_noise(self, rng: np.random.Generator, state: MixtureState) -> Array:
        """Draw N(0, Sigma_Zj) for each frequency, shape (M, d): with `centre`, the prior."""
        return state.components.draw_noise(rng, state.assignment)

    def draw_pairs(
        self, rng: np.random.Generator, state: MixtureState, n: int
    ) -> tuple[Labels, Components, Array]:
        """Draw the Dirichlet process given partition and components, then n pairs of it.

        Returns the component of each pair, the components that these are places in (those of the
        state, then new ones), and frequencies (n, d). Given all members the process is a mixture
        of the components with weights pi and of another process of the same prior with weight
        pi_0, and (pi, pi_0) ~ Dirichlet(m_1, .., m_K, alpha). Of the other one only what is drawn
        from it is needed: by the Chinese restaurant. Nothing is cut off.
        """
        levels = np.cumsum(rng.dirichlet(np.append(state.counts, state.concentration)))
        Z = np.searchsorted(levels, rng.random(n) * levels[-1], side="right")
        components, is_new = state.components, np.equal(Z, state.n_components)
        if is_new.any():
            parts = draw_partition(rng, int(is_new.sum()), state.concentration)
            Z[is_new] += parts
            base = self._base(state)
            nobody = np.empty((0, base.n_inputs)), np.empty(0, dtype=np.int64)
            born = base.draw_components(rng, *nobody, int(parts.max()) + 1)
            components = components.with_others(born)
        return Z, components, components.means[Z] + components.draw_noise(rng, Z)

    def propose_components(
        self, rng: np.random.Generator, state: MixtureState, W: Array
    ) -> Carried:
        """Propose other components, their members among W (M, d) moving along.

        Each component draws a few frequencies, from none to many, and is drawn anew from its
        posterior given those alone: reversible for the base measure.
        """
        n_drawn = _DRAWN[rng.integers(len(_DRAWN), size=state.n_components)]
        Z = np.repeat(np.arange(state.n_components), n_drawn)
        drawn = state.means[Z] + state.components.draw_noise(rng, Z)
        others = self._base(state).draw_components(rng, drawn, Z, state.n_components)
        proposed = state.components.carry(W, state.assignment, others)
        return Carried(proposed, others)

    def propose_scale(self, rng: np.random.Generator, state: MixtureState, W: Array) -> Whole:
        """Propose another scale of one input, or of all in a full base, all else moving along.

        The scale has a prior.
        """
        prior, factor = self.scale_prior, np.ones_like(state.scale)
        if prior is None:
            raise ValueError("the scale is fixed")
        place = rng.integers(len(factor))
        factor[place] = math.exp(rng.choice(_STRETCHES) * rng.standard_normal())
        scale = state.scale * factor**2
        # Of the density of the scale's logarithm.
        ratio = 2.0 * prior.shape * np.log(factor)
        ratio -= prior.shape / prior.mean * (scale - state.scale)
        stretched = replace(state, components=state.components.stretched(factor), scale=scale)
        return stretched, W * factor, float(ratio.sum())

    def propose_anew(
        self, rng: np.random.Generator, state: MixtureState, W: Array, n: int
    ) -> Whole:
        """Forget n frequencies of W (M, d) and what the mixture has from them; draw all that anew.

        The components of the others are drawn given these, then the scale, then they again, then n
        pairs as by `draw_pairs`: reversible for the prior given the others.
        """
        is_left = rng.permutation(len(W)) >= n
        left, Z = W[is_left], without_gaps(state.assignment[is_left])[1]
        base, given = self._base(state), (left, Z, int(Z.max(initial=-1)) + 1)
        components = base.draw_components(rng, *given)
        if self.scale_prior is not None:
            base = base.draw_scale(rng, components, self.scale_prior)
            components = base.draw_components(rng, *given)
        new = replace(state, assignment=Z, components=components, scale=base.scale)
        drawn, components, pairs = self.draw_pairs(rng, new, n)
        Z, W = state.assignment.copy(), W.copy()
        Z[is_left], Z[~is_left], W[~is_left] = new.assignment, drawn, pairs
        kept, Z = without_gaps(Z)
        return replace(new, assignment=Z, components=components.chosen(kept)), W, 0.0

    def density(self, state: MixtureState, frequencies: Array) -> Array:
        """Spectral density at frequencies (n, d), the mean of both signs, shape (n,).

        In many inputs it may be 0 or the largest number there is: then take its logarithm.
        """
        return np.exp(np.minimum(self.log_spectral_density(state, frequencies), _LARGEST_LOG))

    def log_spectral_density(self, state: MixtureState, frequencies: Array) -> Array:
        """Logarithm of `density`, shape (n,), in nats."""
        known = [state.components.log_densities(side) for side in (frequencies, -frequencies)]
        weights = mixture_weights(state)
        halves = 0.5 * weights[:-1]
        logs = np.column_stack([*known, self._base(state).log_predictive(frequencies)])
        return np.asarray(logsumexp(logs, axis=1, b=np.concatenate([halves, halves, weights[-1:]])))

    def marginal_density(self, state: MixtureState, values: Array, j: int) -> Array:
        """Spectral density of input j at values (n,), the mean of both signs, shape (n,)."""
        weights = mixture_weights(state)
        means, stds = state.components.means[:, j], state.components.stds[:, j]
        densities = weights[-1] * np.exp(self._base(state).log_marginal_predictive(values, j))
        for side in (values, -values):
            densities += 0.5 * (norm.pdf(side[:, np.newaxis], means, stds) @ weights[:-1])
        return np.asarray(densities)

    def kernel(self, state: MixtureState, lags: Array) -> Array:
        """Kernel at lags (n, d): the mean of cos(w't) over the next frequency, shape (n,)."""
        weights = mixture_weights(state)
        of_components = state.components.characteristic(lags) @ weights[:-1]
        return np.asarray(of_components + weights[-1] * self._base(state).characteristic(lags))

    def table(self, state: MixtureState) -> ComponentTable:
        """List weights, means and standard deviations of the components, the largest first."""
        order = np.argsort(-state.counts, kind="stable")
        weights = state.counts[order] / len(state.assignment)
        return ComponentTable(weights, state.means[order], state.components.stds[order])

    def _base(self, state: MixtureState) -> BaseMeasure[Any]:
        return self.base.with_scale(state.scale)


@dataclass(frozen=True)
class ProposalTuning:
    """What warm-up changes: the step sqrt(1 - rho^2), in (0, 1], of local proposals, and others."""

    step: float
    level: int = 0  # of the sampler's ``few``, if it has them, or all
    global_share: float = 0.0  # of the frequencies that have a global proposal in a sweep
    n_sweeps: int = 1  # that make a step
    is_noise_kept: bool = False  # whether the parameter of the noise is that of the start
    n_anew: int = 0  # frequencies that all that is known from them is forgotten with, at a time


_PART_OF_A_WAVE, _SPREAD_OF_A_WAVE = 16, 0.01  # of frequencies at the start, and of a frequency


@dataclass(frozen=True, eq=False)
class Start:
    """Where chains start: each draws frequencies around these scales."""

    scales: Array  # (d,), standard deviation of the frequencies of each input
    factors: tuple[float, ...]  # one component at each multiple of the scales
    ridge: float
    linear_precision: float
    waves: tuple[Array, ...] = ()  # (d,) each, frequencies that the rows show by themselves

    def frequencies(self, rng: np.random.Generator, n: int) -> tuple[Array, Labels]:
        """Draw n frequencies, (n, d), and say which factor or wave each has.

        A sixteenth of them, one at least, are a wave's, if there is room.
        """
        W, Z = rng.standard_normal((n, len(self.scales))) * self.scales_of(n), self.places(n)
        each = max(n // _PART_OF_A_WAVE, 1)
        for k, wave in enumerate(self.waves[: n // (2 * each)]):
            own = slice(n - (k + 1) * each, n - k * each)
            W[own] = wave * (1.0 + _SPREAD_OF_A_WAVE * rng.standard_normal((each, 1)))
            Z[own] = len(self.factors) + k
        return W, Z

    def places(self, n: int) -> Labels:
        """Which factor each of n frequencies has, shape (n,)."""
        return np.arange(n) * len(self.factors) // n

    def scales_of(self, n: int) -> Array:
        """Standard deviations that n frequencies are drawn with, shape (n, d)."""
        return np.outer(np.array(self.factors)[self.places(n)], self.scales)
