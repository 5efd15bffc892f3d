"""Scores of rows that are predicted block by block, as long as their target can be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.work.answers import Answerer
from mercer.cli.work.known import unknown_words
from mercer.errors import DataError
from mercer.posterior.held_out import HeldOut
from mercer.posterior.regression_scores import RegressionScores
from mercer.posterior.running_scores import RunningScores
from mercer.posterior.scores import Scores

__all__ = ["BlockScores"]

Rows = NDArray[np.int64]


class BlockScores:
    """What is known of the target of each block, and the scores so far.

    Parameters
    ----------
    answerer : Answerer
    targets : iterator of ndarray of shape (m,)
        The target, in the blocks that are predicted; numbers, or words. A `DataError` from it
        ends the scoring, not the predictions; so does its end.
    """

    def __init__(self, answerer: Answerer, targets: Iterator[NDArray[Any]]) -> None:
        self._answerer = answerer
        self._targets: Iterator[NDArray[Any]] | None = targets
        self._running = RunningScores()
        self._problem = ""
        self._n_rows = self._n_unknown = 0
        self._stranger: Any = None

    def next_known(self) -> tuple[Rows, NDArray[Any]]:
        """Return positions, in the next block, of the rows that can be scored, and targets."""
        values = None
        if self._targets is not None:
            try:
                values = next(self._targets, None)
            except DataError as error:
                self._targets, self._problem = None, f"not scored: {error}"
        if values is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        task = self._answerer.task
        positions, y = task.known(values, self._answerer.classes)
        self._n_rows += len(values)
        if len(positions) < len(values):
            if self._n_unknown == 0:
                first = np.setdiff1d(np.arange(len(values)), positions)[0]
                self._stranger = values[first]
            self._n_unknown += len(values) - len(positions)
        return positions, y

    def add(self, held: HeldOut | None) -> None:
        """Take what was said of these rows; None where none is known."""
        if held is not None:
            self._running.add(held)

    def scores(self) -> Scores | RegressionScores | None:
        """Return the scores of all blocks, without those that need all rows at once."""
        return None if self._problem else self._running.scores()

    @property
    def notes(self) -> tuple[str, ...]:
        """What kept rows from being scored, and which scores are left out."""
        if self._problem:
            return (self._problem,)
        notes: tuple[str, ...] = ()
        if self._n_unknown:
            notes = (unknown_words(self._n_unknown, self._n_rows, self._stranger),)
        if self._running.scores() is not None:
            notes += (
                "the table was predicted block by block, so the calibration error, which needs "
                "all rows at once, is left out",
            )
        return notes
