"""Filters side by side, weighted by how well they predict; outliers are set aside before them."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from mercer.basis.filter import AnyFilter, Seen, State, copied
from mercer.basis.model import Array, Integers
from mercer.basis.population_loops import coefficients, log_density_of_few, predict_rows
from mercer.posterior.predictive import Contamination, StudentMixture

# Of the function, in noise variances: what rounding leaves of it.
_LEAST_SPREAD = 1e-15


def filter_law(
    filter_: AnyFilter, state: State, Z: Array, *, has_noise: bool = True
) -> StudentMixture:
    """Law of the targets of rows Z (m, d), standardised, or of the function without their noise."""
    particles, n_rows = state.particles, state.statistics.n_rows + state.n_pending
    means = np.empty((len(Z), len(particles.size)))
    spreads = np.empty_like(means)
    Z_candidates = state.centres[: state.statistics.n_candidates]
    for level in np.unique(particles.level):
        design = filter_.grid.design(Z, Z_candidates, int(level))
        which = np.flatnonzero(particles.level == level)
        predict_rows(design, which, n_rows, filter_.prior, particles, means, spreads)
    variances, degrees = noise_variances(filter_, state)
    if not has_noise:
        spreads = np.maximum(spreads - 1.0, _LEAST_SPREAD)
    weights = np.exp(particles.log_weight)
    return StudentMixture(means, np.sqrt(variances * spreads), weights / weights.sum(), degrees)


def filter_functions(
    filter_: AnyFilter, state: State, parts: Sequence[Array], n: int, rng: np.random.Generator
) -> list[Array]:
    """Draw functions of a population, and return their values at parts of rows Z: (n, m) each.

    A particle by its weight, its noise variance, and its coefficients given both:
    b = U^-1 (w + s e), e ~ N(0, I), where U'U is their precision in noise variances.
    """
    particles, m = state.particles, filter_.grid.n_mean
    weights = np.exp(particles.log_weight)
    chosen = rng.choice(len(weights), size=n, p=weights / weights.sum())
    variances, degrees = noise_variances(filter_, state)
    stretch = 1.0 if math.isinf(degrees) else degrees / rng.chisquare(degrees, size=n)
    spread = np.sqrt(variances[chosen] * stretch)
    by_column = np.zeros((n, m + state.statistics.n_candidates))
    for s, i in enumerate(chosen):
        k = int(particles.size[i])
        white = particles.whitened[i, : m + k] + spread[s] * rng.standard_normal(m + k)
        beta = solve_triangular(particles.factor[i, : m + k, : m + k], white)
        by_column[s, :m] = beta[:m]
        by_column[s, particles.members[i, :k]] = beta[m:]
    centres = state.centres[: by_column.shape[1] - m]
    return filter_.grid.functions(parts, centres, by_column, particles.level[chosen])


def noise_variances(filter_: AnyFilter, state: State) -> tuple[Array, float]:
    """Squared scale of each particle's noise (N,), and its degrees of freedom."""
    particles, prior = state.particles, filter_.prior
    if prior.is_sampled:
        return particles.noise, math.inf
    shape = prior.noise_shape + 0.5 * (state.statistics.n_rows + state.n_pending)
    return (prior.noise_rate + 0.5 * particles.rss) / shape, 2.0 * shape


def mean_function(filter_: AnyFilter, state: State, Z: Array) -> Array:
    """Posterior mean of the function at rows Z (m, d): shape (m,)."""
    particles, m = state.particles, filter_.grid.n_mean
    N, r = len(particles.size), state.statistics.n_candidates
    beta = np.zeros(particles.whitened.shape)
    coefficients(particles, m, beta)
    weights, result = np.exp(particles.log_weight), np.zeros(len(Z))
    by_column = np.zeros((filter_.grid.n_levels, m + r))
    for i in range(N):
        k = particles.size[i]
        row = by_column[particles.level[i]]
        row[:m] += weights[i] * beta[i, :m]
        row[particles.members[i, :k]] += weights[i] * beta[i, m : m + k]
    for level in np.unique(particles.level):
        result += filter_.grid.design(Z, state.centres[:r], int(level)) @ by_column[level]
    return result


# Outliers among the targets: rows that are set aside, neither learned nor forgotten by.
#
# **Model.** A row is an outlier with probability e. The target of one that is none has the filters'
# predictive density p(y | x, rows learned); that of an outlier has a Cauchy density q, a hundred
# target scales wide, and says nothing of the function. The share e has a Beta(1/2, 100) law.
#
# **One row**:
#
# 1. e = (1/2 + rows set aside) / (100 1/2 + rows met).
# 2. The row is *surprising* if e q(y) > (1 - e) t(y), where t is p with the tails of a Student's t
#    of six degrees of freedom: if it is an outlier with probability above 1/2, though the noise may
#    have longer tails than the model's. That is from about ten standard deviations on: what lies
#    nearer is learned, since it spoils little if it is an outlier, and tells much if it is none.
# 3. A surprising row is set aside: sums, particles and random stream stay as they are, so that all
#    sums are shared by all particles as before. But not the third in a row, nor the eighth of the
#    last fifty rows: so many are a change of the function or of its level, and are learned.
# 4. It is scored by the mixture, log((1 - e) p(y) + e q(y)), whatever is done with it.
#
# **Approximation.** That a row is an outlier or not is decided once, for all particles and when it
# comes, where the posterior would keep both cases with their weights. Without surprising rows
# nothing is decided, and what is learned is the posterior to the last bit.
#
# **Cost.** p(y) is at least what a few particles contribute; that settles nearly all rows, and
# takes one row of a design at one length scale.

# Beta law of the share of outliers: one in two hundred at first, with the weight of a hundred rows.
_PRIOR = 0.5, 100.0
# Of q, in target scales.
_WIDTH = 100.0
# So many surprising rows are a change: in a row, and among the last ones.
_RUN, _MOST, _LAST = 3, 8, 50
_FEW = 8  # particles
_DEGREES = 6.0  # of freedom, at most: where a target is judged


@dataclass(frozen=True, eq=False)
class Surprises:
    """How many rows were met and set aside, and which of the last fifty were surprising."""

    n_met: int
    n_set_aside: int
    last: Integers  # (50,), 1 where one was, the latest last

    @staticmethod
    def none() -> Surprises:
        """Return those before the first row."""
        return Surprises(0, 0, np.zeros(_LAST, np.int64))

    @property
    def share(self) -> float:
        """Posterior mean of the share of outliers."""
        return (_PRIOR[0] + self.n_set_aside) / (_PRIOR[0] + _PRIOR[1] + self.n_met)

    def sets_aside(self, *, is_surprising: bool) -> bool:
        """Whether the next row is set aside: it is surprising, and there is no change."""
        if not is_surprising:
            return False
        run = int(self.last[1 - _RUN :].sum()) + 1
        return run < _RUN and int(self.last[1:].sum()) + 1 < _MOST

    def after(self, *, is_surprising: bool) -> Surprises:
        """Return those after one more row."""
        last = np.empty_like(self.last)
        last[:-1], last[-1] = self.last[1:], is_surprising
        aside = self.sets_aside(is_surprising=is_surprising)
        return Surprises(self.n_met + 1, self.n_set_aside + aside, last)


def contamination(surprises: Surprises) -> Contamination:
    """Return the law of outliers, of standardised targets, and their share."""
    return Contamination(surprises.share, 0.0, _WIDTH)


def long_tailed(law: StudentMixture) -> StudentMixture:
    """Return a law with the tails by which a target is judged."""
    return replace(law, df=np.minimum(law.df, _DEGREES))


def at_least(filter_: AnyFilter, state: State, x: Array, y: float) -> float:
    """Return what a few particles contribute to the log density that judges a row, in nats."""
    particles = state.particles
    level = int(particles.level[int(np.argmax(particles.log_weight))])
    row = filter_.grid.row(x, state.centres, state.statistics.n_candidates, level)
    n_rows = state.statistics.n_rows + state.n_pending
    return float(
        log_density_of_few(row, y, _FEW, _DEGREES, level, filter_.prior, n_rows, particles)
    )


# Filters side by side that forget at different rates, weighted by how well they predicted.
#
# The weight of each falls with the predictive log densities that it missed, those of the last rows
# counting most. With one filter all of this is that filter. Rows that are outliers are learned by
# none (`mercer.basis.ensemble`).

# Of the sum of predictive log densities by which filters are weighted, after each row.
_SCORE_RETENTION = 0.99


@dataclass(frozen=True, eq=False)
class EnsembleState:
    """States of the filters, by position as text, and the score of each (F,), in nats."""

    filters: Mapping[str, State]
    scores: Array
    surprises: Surprises

    @property
    def states(self) -> tuple[State, ...]:
        """States of the filters, in order."""
        return tuple(self.filters.values())

    @property
    def log_weights(self) -> Array:
        """Log weights of the filters (F,), normalised."""
        return np.asarray(self.scores - np.logaddexp.reduce(self.scores))

    @property
    def n_seen(self) -> int:
        """Rows learned or set aside."""
        return self.states[0].n_seen + self.surprises.n_set_aside

    def mean(self, values: Array) -> float:
        """Average one number a filter by their weights."""
        return float(np.exp(self.log_weights) @ values)


@dataclass(frozen=True, eq=False)
class Outlook:
    """What all F filters, with their log weights before the row, said of it before learning it."""

    seen: tuple[Seen, ...]
    log_weights: Array
    target: float
    outliers: Contamination | None  # their law and share, where such rows are set aside

    @functools.cached_property
    def log_density(self) -> float:
        """Log predictive density of the target, in nats."""
        each = [seen.log_density for seen in self.seen]
        log_density = np.logaddexp.reduce(self.log_weights + each)
        if self.outliers is not None:
            log_density = self.outliers.joined(np.array(self.target), log_density)
        return float(log_density)

    @property
    def n_centres(self) -> float:
        """Mean over particles of all filters."""
        return float(np.exp(self.log_weights) @ [seen.n_centres for seen in self.seen])

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation of the predictive law."""
        parts = list(zip(np.exp(self.log_weights), self.seen, strict=True))
        mean = sum(share * float(seen.weights @ seen.means) for share, seen in parts)
        variance = sum(share * seen.second_moment(mean) for share, seen in parts)
        return float(mean), math.sqrt(variance)

    @property
    def law(self) -> StudentMixture:
        """Predictive law, of one row."""
        degrees = [np.full(len(seen.means), seen.degrees) for seen in self.seen]
        logs = [w + seen.log_weights for w, seen in zip(self.log_weights, self.seen, strict=True)]
        weights = np.exp(np.concatenate(logs))
        return StudentMixture(
            np.concatenate([seen.means for seen in self.seen])[np.newaxis],
            np.sqrt(np.concatenate([seen.variances for seen in self.seen]))[np.newaxis],
            weights / weights.sum(),
            np.concatenate(degrees),
            outliers=self.outliers,
        )


@dataclass(frozen=True, eq=False)
class Ensemble:
    """One filter for each rate of forgetting; if robust, rows that are outliers are set aside."""

    filters: tuple[AnyFilter, ...]
    is_robust: bool = False

    def init(self, rng: np.random.Generator) -> EnsembleState:
        """Draw the populations before the first row."""
        states = {str(i): each.init(rng) for i, each in enumerate(self.filters)}
        return EnsembleState(states, np.zeros(len(states)), Surprises.none())

    def learn(
        self, rng: np.random.Generator, state: EnsembleState, x: Array, y: float
    ) -> tuple[EnsembleState, Outlook]:
        """Learn a row, or set it aside; the arrays of ``state`` are used up."""
        surprises, outliers = state.surprises, None
        if self.is_robust:
            outliers = contamination(surprises)
            is_surprising = self._is_surprising(state, outliers, x, y)
            surprises = surprises.after(is_surprising=is_surprising)
            if surprises.n_set_aside > state.surprises.n_set_aside:
                seen_by_all = tuple(self._foreseen(state, x, y))
                outlook = Outlook(seen_by_all, state.log_weights, y, outliers)
                return replace(state, surprises=surprises), outlook
        states, seen = {}, []
        for (name, each), filter_ in zip(state.filters.items(), self.filters, strict=True):
            states[name], one = filter_.learn(rng, each, x, y)
            seen.append(one)
        outlook = Outlook(tuple(seen), state.log_weights, y, outliers)
        if len(seen) == 1:
            return replace(state, filters=states, surprises=surprises), outlook
        scores = _SCORE_RETENTION * state.scores + [one.log_density for one in seen]
        return EnsembleState(states, scores, surprises), outlook

    def _is_surprising(
        self, state: EnsembleState, outliers: Contamination, x: Array, y: float
    ) -> bool:
        """Whether a row is an outlier with probability above 1/2."""
        limit = math.log(outliers.share) - math.log1p(-outliers.share)
        limit += float(outliers.log_density(np.array(y)))
        best = int(np.argmax(state.scores))
        log_weights = state.log_weights
        least = at_least(self.filters[best], state.states[best], x, y)
        if log_weights[best] + least > limit:
            return False
        laws = [long_tailed(filter_law(f, s, x[np.newaxis])) for f, s in self._pairs(state)]
        logs = [float(law.log_density([y])[0]) for law in laws]
        return bool(np.logaddexp.reduce(log_weights + logs) < limit)

    def _foreseen(self, state: EnsembleState, x: Array, y: float) -> Iterator[Seen]:
        """What the filters say of a row that none of them learns."""
        for filter_, each in self._pairs(state):
            law, particles = filter_law(filter_, each, x[np.newaxis]), each.particles
            n_centres = float(np.exp(particles.log_weight) @ particles.size)
            yield Seen(
                law.locations[0], law.scales[0] ** 2, particles.log_weight.copy(), float(law.df),
                float(law.log_density([y])[0]), n_centres,
            )  # fmt: skip

    def _pairs(self, state: EnsembleState) -> Iterator[tuple[AnyFilter, State]]:
        return zip(self.filters, state.states, strict=True)

    def copied(self, state: EnsembleState) -> EnsembleState:
        """Return a state that shares no array with this one."""
        filters = {name: copied(each) for name, each in state.filters.items()}
        surprises = replace(state.surprises, last=state.surprises.last.copy())
        return EnsembleState(filters, state.scores.copy(), surprises)

    def functions(
        self, state: EnsembleState, parts: Sequence[Array], n_draws: int, rng: np.random.Generator
    ) -> list[Array]:
        """Draw functions, and return their values at parts of rows Z (m, d): (n_draws, m)."""
        counts = rng.multinomial(n_draws, np.exp(state.log_weights))
        drawn = [
            filter_functions(filter_, each, parts, int(n), rng)
            for n, (filter_, each) in zip(counts, self._pairs(state), strict=True)
        ]
        order = rng.permutation(n_draws)
        return [np.concatenate(values)[order] for values in zip(*drawn, strict=True)]

    def law(self, state: EnsembleState, Z: Array, *, has_noise: bool = True) -> StudentMixture:
        """Law of the targets of rows Z (m, d), or of the function without their noise."""
        laws = [filter_law(f, s, Z, has_noise=has_noise) for f, s in self._pairs(state)]
        is_contaminated = self.is_robust and has_noise
        outliers = contamination(state.surprises) if is_contaminated else None
        if len(laws) == 1:
            return replace(laws[0], outliers=outliers)
        shares = np.exp(state.log_weights)
        weights = np.concatenate([w * law.weights for w, law in zip(shares, laws, strict=True)])
        return StudentMixture(
            np.concatenate([law.locations for law in laws], axis=1),
            np.concatenate([law.scales for law in laws], axis=1),
            weights / weights.sum(),
            np.concatenate([np.full(len(law.weights), law.df) for law in laws]),
            outliers=outliers,
        )
