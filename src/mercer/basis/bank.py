"""Filters side by side that forget at different rates, weighted by how well they predicted.

The weight of each falls with the predictive log densities that it missed, those of the last rows
counting most. With one filter all of this is that filter. Rows that are outliers are learned by
none (`mercer.basis.outliers`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from mercer.basis.arrays import Array
from mercer.basis.filter import Seen
from mercer.basis.outliers import Surprises, at_least, contamination, long_tailed
from mercer.basis.predict import filter_law
from mercer.basis.printed import AnyFilter
from mercer.basis.state import State, copied
from mercer.posterior.student_predictive import Contamination, StudentMixture

__all__ = ["Bank", "BankState", "Outlook"]

# Of the sum of predictive log densities by which filters are weighted, after each row.
_SCORE_RETENTION = 0.99


@dataclass(frozen=True, eq=False)
class BankState:
    """States of the filters, by position as text, and the score of each (F,), in nats."""

    filters: Mapping[str, State]
    scores: Array
    surprises: Surprises

    @property
    def states(self) -> tuple[State, ...]:
        """Of the filters, in order."""
        return tuple(self.filters.values())

    @property
    def log_weights(self) -> Array:
        """Of the filters (F,), normalised."""
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
    """What all filters said of a row before learning it.

    Attributes
    ----------
    seen : tuple of Seen
    log_weights : ndarray of shape (F,)
        Of the filters, before the row.
    target : float
    outliers : Contamination or None
        Their law and share, where rows that are outliers are set aside.
    """

    seen: tuple[Seen, ...]
    log_weights: Array
    target: float
    outliers: Contamination | None

    @property
    def log_density(self) -> float:
        """Of the target, in nats."""
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
class Bank:
    """One filter for each rate of forgetting.

    Attributes
    ----------
    filters : tuple of Filter or PrintedFilter
    is_robust : bool
        Whether rows that are outliers are set aside.
    """

    filters: tuple[AnyFilter, ...]
    is_robust: bool = False

    def init(self, rng: np.random.Generator) -> BankState:
        """Draw the populations before the first row."""
        states = {str(i): each.init(rng) for i, each in enumerate(self.filters)}
        return BankState(states, np.zeros(len(states)), Surprises.none())

    def learn(
        self, rng: np.random.Generator, state: BankState, x: Array, y: float
    ) -> tuple[BankState, Outlook]:
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
        return BankState(states, scores, surprises), outlook

    def _is_surprising(self, state: BankState, outliers: Contamination, x: Array, y: float) -> bool:
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

    def _foreseen(self, state: BankState, x: Array, y: float) -> Iterator[Seen]:
        """What the filters say of a row that none of them learns."""
        for filter_, each in self._pairs(state):
            law, particles = filter_law(filter_, each, x[np.newaxis]), each.particles
            n_centres = float(np.exp(particles.log_weight) @ particles.size)
            yield Seen(
                law.locations[0], law.scales[0] ** 2, particles.log_weight.copy(), float(law.df),
                float(law.log_density([y])[0]), n_centres,
            )  # fmt: skip

    def _pairs(self, state: BankState) -> Iterator[tuple[AnyFilter, State]]:
        return zip(self.filters, state.states, strict=True)

    def copied(self, state: BankState) -> BankState:
        """Return a state that shares no array with this one."""
        filters = {name: copied(each) for name, each in state.filters.items()}
        surprises = replace(state.surprises, last=state.surprises.last.copy())
        return BankState(filters, state.scores.copy(), surprises)

    def law(self, state: BankState, Z: Array, *, has_noise: bool = True) -> StudentMixture:
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
