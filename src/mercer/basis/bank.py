"""Filters side by side that forget at different rates, weighted by how well they predicted.

The weight of each falls with the predictive log densities that it missed, those of the last rows
counting most. With one filter all of this is that filter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mercer.basis.arrays import Array
from mercer.basis.filter import Seen
from mercer.basis.predict import filter_law
from mercer.basis.printed import AnyFilter
from mercer.basis.state import State, copied
from mercer.posterior.student_predictive import StudentMixture

__all__ = ["Bank", "BankState", "Outlook"]

# Of the sum of predictive log densities by which filters are weighted, after each row.
_SCORE_RETENTION = 0.99


@dataclass(frozen=True, eq=False)
class BankState:
    """States of the filters, by position as text, and the score of each (F,), in nats."""

    filters: Mapping[str, State]
    scores: Array

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
        """Rows learned."""
        return self.states[0].n_seen

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
    """

    seen: tuple[Seen, ...]
    log_weights: Array

    @property
    def log_density(self) -> float:
        """Of the target, in nats."""
        each = [seen.log_density for seen in self.seen]
        return float(np.logaddexp.reduce(self.log_weights + each))

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
        )


@dataclass(frozen=True, eq=False)
class Bank:
    """One filter for each rate of forgetting."""

    filters: tuple[AnyFilter, ...]

    def init(self, rng: np.random.Generator) -> BankState:
        """Draw the populations before the first row."""
        states = {str(i): each.init(rng) for i, each in enumerate(self.filters)}
        return BankState(states, np.zeros(len(states)))

    def learn(
        self, rng: np.random.Generator, state: BankState, x: Array, y: float
    ) -> tuple[BankState, Outlook]:
        """Learn a row; the arrays of ``state`` are used up."""
        states, seen = {}, []
        for (name, each), filter_ in zip(state.filters.items(), self.filters, strict=True):
            states[name], one = filter_.learn(rng, each, x, y)
            seen.append(one)
        outlook = Outlook(tuple(seen), state.log_weights)
        if len(seen) == 1:
            return replace(state, filters=states), outlook
        scores = _SCORE_RETENTION * state.scores + [one.log_density for one in seen]
        return BankState(states, scores), outlook

    def copied(self, state: BankState) -> BankState:
        """Return a state that shares no array with this one."""
        filters = {name: copied(each) for name, each in state.filters.items()}
        return BankState(filters, state.scores.copy())

    def law(self, state: BankState, Z: Array, *, has_noise: bool = True) -> StudentMixture:
        """Law of the targets of rows Z (m, d), or of the function without their noise."""
        pairs = zip(self.filters, state.states, strict=True)
        laws = [filter_law(f, s, Z, has_noise=has_noise) for f, s in pairs]
        if len(laws) == 1:
            return laws[0]
        shares = np.exp(state.log_weights)
        weights = np.concatenate([w * law.weights for w, law in zip(shares, laws, strict=True)])
        return StudentMixture(
            np.concatenate([law.locations for law in laws], axis=1),
            np.concatenate([law.scales for law in laws], axis=1),
            weights / weights.sum(),
            np.concatenate([np.full(len(law.weights), law.df) for law in laws]),
        )
