"""A stream of rows with classes being learned: scales, filters, random stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.basis.arrays import Array
from mercer.basis.classes.settings import ClassSettings
from mercer.basis.classes.several import ClassOutlook, StickBreaking, StickState
from mercer.basis.row_learner import RowLearner
from mercer.basis.scales import leaving_columns
from mercer.errors import RowsError
from mercer.estimation.standardize import Standardizer
from mercer.random import stream

__all__ = ["ClassLearner", "ClassRunning", "check_size"]

# Standardised inputs: the products of larger ones overflow.
_LARGEST = 1e100


@dataclass
class ClassRunning:
    """What there is once the scales are known.

    Attributes
    ----------
    standardizer : Standardizer
    sticks : StickBreaking
    state : StickState
        After the rows learned so far.
    rng : numpy.random.Generator
        As the last row left it.
    """

    standardizer: Standardizer
    sticks: StickBreaking
    state: StickState
    rng: np.random.Generator

    def standardise(self, X: Array) -> Array:
        """Standardise rows (n, d)."""
        return self.standardizer.transform(X)

    def proba(self, Z: Array) -> Array:
        """Probabilities (m, C) of the classes at standardised rows Z (m, d)."""
        return self.sticks.proba(self.state, Z)

    def scaled(self, y: NDArray[Any]) -> list[int]:
        """Return positions (n,) among the classes as they are."""
        positions: list[int] = y.astype(np.int64).tolist()
        return positions

    def learn(self, z: Array, target: int) -> ClassOutlook:
        """Learn a standardised row."""
        self.state, outlook = self.sticks.learn(self.rng, self.state, z, target)
        return outlook

    def score(self, seen: ClassOutlook) -> float:
        """Log probability of the class of a row that was learned, in nats."""
        return seen.log_density

    def leaving(self, X: Array, y: NDArray[Any], names: tuple[str, ...]) -> list[str]:
        """Name the columns of X (n, d) that leave ten scales."""
        return leaving_columns(self.standardise(X), np.zeros(0), names)


@dataclass(kw_only=True)
class ClassLearner(RowLearner[ClassRunning, ClassOutlook]):
    """Learns rows with positions among the classes as targets.

    Attributes
    ----------
    settings : ClassSettings
    n_classes : int
    """

    settings: ClassSettings
    n_classes: int

    def check(self, X: Array, y: NDArray[Any]) -> None:
        """Refuse inputs whose products overflow."""
        check_size(X if self.running is None else self.running.standardise(X))

    def begin_stream(self, X: Array, y: NDArray[Any]) -> ClassRunning:
        """Set up the filters, with scales learned from the first rows (n, d)."""
        scales = self.given.of_first_rows(X, y.astype(np.float64), self.names)
        return self.begin(scales.standardizer, X, 0)

    def begin(self, standardizer: Standardizer, X: Array, n_rows: int) -> ClassRunning:
        """Set up the filters: length scales from rows X (n, d), ``n_rows`` of a table to hold."""
        lengthscales = self.settings.lengthscales(standardizer.transform(X))
        sticks = self.settings.sticks(
            lengthscales, X.shape[1], self.n_classes, n_rows, self.entropy
        )
        state = sticks.init(stream(self.entropy, "start"))
        self.running = ClassRunning(standardizer, sticks, state, stream(self.entropy, "chain"))
        return self.running


def check_size(Z: Array) -> None:
    """Refuse inputs Z (n, d) whose products overflow.

    Raises
    ------
    DataError
        Naming the row.
    """
    is_large = (~(np.abs(Z) < _LARGEST)).any(axis=1)
    if is_large.any():
        raise RowsError([int(np.argmax(is_large))], ": an input is too large to compute with")
