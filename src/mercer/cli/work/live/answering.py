"""What a model that learns row by row says of a row, as fields of an answer: numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.cli.work.live.cells import read_number
from mercer.posterior.predictive import Predictive, check_level

__all__ = ["Answers", "Fields", "Foretold", "Numbers", "Said"]

Array = NDArray[np.float64]
Fields = dict[str, Any]


@dataclass(frozen=True)
class Said:
    """What was said of a row before it was learned.

    Parameters
    ----------
    fields : dict
        The prediction, as JSON can hold it.
    score : float or None
        Log predictive density of the target, nats; None where the target is not known.
    is_inside : bool or None
        Whether the target lies in its interval.
    is_right : bool or None
        Whether the class is the one predicted.
    """

    fields: Fields
    score: float | None = None
    is_inside: bool | None = None
    is_right: bool | None = None


class Foretold(Protocol):
    """What was said of a row whose target comes later."""

    @property
    def fields(self) -> Fields:
        """The prediction."""
        ...

    def scored(self, y: Any) -> Said:
        """Score it, now that the target is there."""
        ...


class Answers(Protocol):
    """A model as a stream asks it; targets are of its task, and None where they are missing."""

    model: Any

    @property
    def unknown(self) -> Fields:
        """The fields of a prediction, of a row that cannot be predicted yet."""
        ...

    def target(self, cell: str, *, has_decimal_comma: bool) -> Any:
        """Read a target; a ValueError says why it is none."""
        ...

    def shown(self, target: Any) -> Any:
        """Return a target as JSON has it."""
        ...

    def ahead(self, X: Array, y: Sequence[Any]) -> list[Said]:
        """Predict each row, then learn it where its target is there, one after the other."""
        ...

    def learn(self, X: Array, y: Sequence[Any]) -> None:
        """Learn rows, one after the other."""
        ...

    def settle(self, n_features: int) -> None:
        """Fix what the model learns from its first rows: scales."""
        ...


class Numbers:
    """Mean and standard deviation of a new observation, and the ends of its interval.

    Parameters
    ----------
    model : regressor
        With ``partial_fit``, ``prequential`` and ``predictive``.
    level : float or None
        Probability inside the interval; None: there is none.

    Raises
    ------
    UsageError
        The level is not between 0 and 1.
    """

    def __init__(self, model: Any, level: float | None) -> None:
        if level is not None:
            check_level(level)
        self.model = model
        self.level = level

    @property
    def unknown(self) -> Fields:
        """No number at all."""
        return dict.fromkeys(("prediction", "std", *self._ends))

    @property
    def _ends(self) -> tuple[str, ...]:
        return () if self.level is None else ("lower", "upper")

    def target(self, cell: str, *, has_decimal_comma: bool) -> float:
        """Read a number; a ValueError says why it is none."""
        return read_number(cell, has_decimal_comma=has_decimal_comma)

    def shown(self, target: float) -> float:
        """Return a target as JSON has it."""
        return target

    def ahead(self, X: Array, y: Sequence[float | None]) -> list[Said]:
        """Predict each row, then learn it where its target is there, one after the other."""
        targets = np.array([math.nan if value is None else value for value in y])
        rows = self.model.prequential(X, targets, level=self.level)
        said = []
        for k, value in enumerate(y):
            fields: Fields = {"prediction": float(rows.mean[k]), "std": float(rows.std[k])}
            if self.level is not None:
                fields |= {"lower": float(rows.lower[k]), "upper": float(rows.upper[k])}
            fields["n_centres"] = float(rows.n_centres[k])
            score = None if value is None else float(rows.log_density[k])
            said.append(Said(fields, score, _is_inside(fields, value)))
        return said

    def learn(self, X: Array, y: Sequence[float]) -> None:
        """Learn rows, one after the other."""
        self.model.partial_fit(X, np.asarray(y, dtype=np.float64))

    def foretell(self, x: Array) -> _ForetoldNumber:
        """Predict the row x, of shape (1, d), whose target comes later."""
        law = self.model.predictive(x)
        fields: Fields = {"prediction": float(law.mean[0]), "std": float(law.std[0])}
        if self.level is not None:
            lower, upper = law.interval(self.level)
            fields |= {"lower": float(lower[0]), "upper": float(upper[0])}
        fields["n_centres"] = float(self.model.n_centres_)
        return _ForetoldNumber(fields, law)

    def settle(self, n_features: int) -> None:
        """Ask for a prediction: rows that the model holds back are learned before.

        Else the scales would depend on how many rows come together after these.
        """
        self.model.predictive(np.zeros((1, n_features)))


@dataclass(frozen=True)
class _ForetoldNumber:
    fields: Fields
    law: Predictive

    def scored(self, y: float) -> Said:
        score = float(self.law.log_density(np.array([y]))[0])
        return Said(self.fields, score, _is_inside(self.fields, y))


def _is_inside(fields: Fields, y: float | None) -> bool | None:
    if y is None or "lower" not in fields:
        return None
    return bool(fields["lower"] <= y <= fields["upper"])
