"""A stream being learned, whatever its targets: rows held back until scales are known.

Then these are learned in order, so that nothing depends on how the rows were cut into calls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mercer.basis.arrays import Array
from mercer.basis.scales import GivenScales
from mercer.errors import NumericalError
from mercer.sampling.signals import hold_interrupts

__all__ = ["RowLearner", "Running", "RunningFilters"]

Targets = NDArray[Any]
Seen = TypeVar("Seen")


class RunningFilters(Protocol[Seen]):
    """What there is once the scales are known."""

    def standardise(self, X: Array) -> Array:
        """Standardise rows (n, d)."""
        ...

    def scaled(self, y: Targets) -> Sequence[Any]:
        """Return targets (n,) as the filters take them."""
        ...

    def learn(self, z: Array, target: Any) -> Seen:
        """Learn a standardised row (d,); say what was said of it before."""
        ...

    def score(self, seen: Seen) -> float:
        """Log predictive density of a row that was learned, in nats and the user's units."""
        ...

    def leaving(self, X: Array, y: Targets, names: tuple[str, ...]) -> list[str]:
        """Name what leaves ten scales."""
        ...


Running = TypeVar("Running", bound=RunningFilters[Any])


@dataclass(kw_only=True)
class RowLearner(ABC, Generic[Running, Seen]):
    """Learns rows one after the other.

    Attributes
    ----------
    given : GivenScales
    scale_rows : int
        Rows from which scales are learned.
    entropy : int
    names : tuple of str
        Of the inputs.
    held_X, held_y : list
        Rows that wait for the scales, in the user's units.
    running : RunningFilters or None
        None while rows are held back.
    n_scored : int
        Rows that were predicted and then learned.
    sum_log_density : float
        Of these, in the user's units.
    told : set of str
        Columns whose leaving of ten scales has been said.
    is_whole : bool
        False once an error has left the arrays in the middle of a row.
    """

    given: GivenScales
    scale_rows: int
    entropy: int
    names: tuple[str, ...]
    held_X: list[Array] = field(default_factory=list)
    held_y: list[Any] = field(default_factory=list)
    running: Running | None = None
    n_scored: int = 0
    sum_log_density: float = 0.0
    told: set[str] = field(default_factory=set)
    is_whole: bool = True

    def check_whole(self) -> None:
        """Refuse to go on, or to be saved, in the middle of a row.

        Raises
        ------
        NumericalError
        """
        if not self.is_whole:
            raise NumericalError(
                f"the model failed in the middle of row {self.n_scored + 1} and cannot be used any "
                "more; go on from one that was saved before"
            )

    @abstractmethod
    def check(self, X: Array, y: Targets) -> None:
        """Refuse rows (n, d) that cannot be computed with, by a ValueError that names one."""

    @abstractmethod
    def begin_stream(self, X: Array, y: Targets) -> Running:
        """Set ``running`` up, with scales learned from the first rows (n, d)."""

    @property
    def n_seen(self) -> int:
        """Rows learned or held back."""
        return self.n_scored + len(self.held_y)

    def learn(self, X: Array, y: Targets, see: Callable[[Seen], Any]) -> None:
        """Learn rows X (n, d), y (n,); ``see`` is given what was said of each before.

        Of rows that are held back it is told when they are learned. Rows that are refused leave
        everything as it was.
        """
        self.check_whole()
        self.check(X, y)
        n_held = self._hold(X, y) if self.running is None else 0
        if self.running is None and (len(self.held_y) >= self.scale_rows or self.given.is_complete):
            try:
                self._begin_held()
                self.check(X, y)  # as they are in these scales
            except BaseException:
                n_before = len(self.held_y) - n_held
                del self.held_X[n_before:], self.held_y[n_before:]
                self.running = None
                raise
            self._learn_held(see)
        if self.running is not None:
            self._learn(self.running, X[n_held:], y[n_held:], see)

    def release(self, see: Callable[[Seen], Any]) -> Running:
        """Fix the scales from the rows held back and learn these, unless that is done."""
        self.check_whole()
        if self.running is None:
            self._begin_held()
            self._learn_held(see)
        assert self.running is not None
        return self.running

    def leaving(self, X: Array, y: Targets) -> list[str]:
        """Name columns that leave ten scales for the first time."""
        if self.running is None:
            return []
        far = self.running.leaving(X, y, self.names)
        new = [name for name in far if name not in self.told]
        self.told.update(new)
        return new

    def _hold(self, X: Array, y: Targets) -> int:
        """Hold rows back, as many as the scales need; return their number."""
        n_wanted = 1 if self.given.is_complete else self.scale_rows - len(self.held_y)
        n = min(len(y), max(n_wanted, 0))
        self.held_X.extend(np.array(X[:n]))
        self.held_y.extend(y[:n].tolist())
        return n

    def _held(self) -> tuple[Array, Targets]:
        return np.array(self.held_X).reshape(-1, len(self.names)), np.array(self.held_y)

    def _begin_held(self) -> None:
        self.begin_stream(*self._held())

    def _learn_held(self, see: Callable[[Seen], Any]) -> None:
        assert self.running is not None
        X, y = self._held()
        self.held_X, self.held_y = [], []
        self._learn(self.running, X, y, see)

    def _learn(self, running: Running, X: Array, y: Targets, see: Callable[[Seen], Any]) -> None:
        """Learn rows; Ctrl-C is heeded after a whole one, since states are changed in place."""
        with hold_interrupts() as interrupts:
            for z, target in zip(running.standardise(X), running.scaled(y), strict=True):
                self.is_whole = False
                try:
                    seen = running.learn(z, target)
                except ValueError as error:  # of linear algebra: nothing is wrong with the row
                    raise NumericalError(f"row {self.n_scored + 1}: {error}") from error
                self.n_scored += 1
                self.sum_log_density += running.score(seen)
                self.is_whole = True
                see(seen)
                interrupts.check()
