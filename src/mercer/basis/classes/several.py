"""Several classes by stick-breaking: a filter of two classes for each class but the last.

Filter c asks of the rows of class c or later: is it c? Its target is its own, so evidence and
predictive probability of all classes are exact products; see `mercer.basis.classes.model`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mercer.basis.arrays import Array
from mercer.basis.classes.filter import ClassFilter
from mercer.basis.classes.state import ClassState

__all__ = ["ClassOutlook", "StickBreaking", "StickState", "stick_proba"]

_SMALLEST_PROBA = 1e-12


@dataclass(frozen=True, eq=False)
class StickState:
    """States of the filters, by position as text."""

    filters: Mapping[str, ClassState]

    @property
    def states(self) -> tuple[ClassState, ...]:
        """Of the filters, in order."""
        return tuple(self.filters.values())

    @property
    def n_seen(self) -> int:
        """Rows learned: the first filter learns all."""
        return self.states[0].n_seen


@dataclass(frozen=True, eq=False)
class ClassOutlook:
    """What was said of a row before it was learned.

    Attributes
    ----------
    proba : ndarray of shape (C,)
        Of the classes; none is 0.
    log_density : float
        Log probability of the row's class, in nats; NaN if it has none.
    n_centres : float
        Mean over particles, summed over filters.
    """

    proba: Array
    log_density: float
    n_centres: float


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
        states, success, n_centres = dict(state.filters), [], 0.0
        for c, (filter_, name) in enumerate(zip(self.filters, states, strict=True)):
            if c <= label:
                sign = 1.0 if c == label else -1.0
                states[name], seen = filter_.learn(rng, states[name], x, sign)
            else:
                seen = filter_.look(states[name], x)
            success.append(seen.proba)
            n_centres += seen.n_centres
        proba = stick_proba(np.array(success)[:, np.newaxis])[0]
        return StickState(states), ClassOutlook(proba, float(np.log(proba[label])), n_centres)

    def copied(self, state: StickState) -> StickState:
        """Return a state that shares no array with this one."""
        return copy.deepcopy(state)

    def proba(self, state: StickState, Z: Array) -> Array:
        """Probabilities (m, C) of the classes at rows Z (m, d), standardised; none is 0."""
        pairs = zip(self.filters, state.states, strict=True)
        return stick_proba(np.array([filter_.predict(each, Z) for filter_, each in pairs]))


def stick_proba(success: Array) -> Array:
    """Return class probabilities (m, C) from success probabilities (C - 1, m); none is 0."""
    left = np.cumprod(np.concatenate([np.ones((1, success.shape[1])), 1.0 - success]), axis=0)
    proba = left * np.concatenate([success, np.ones((1, success.shape[1]))])
    proba = np.clip(proba, _SMALLEST_PROBA, 1.0 - _SMALLEST_PROBA)
    return np.asarray((proba / proba.sum(axis=0)).T)
