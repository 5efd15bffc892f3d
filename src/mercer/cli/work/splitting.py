"""How `fit` scores: a test file, a part held out, or folds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.cli.work.known import read_scored
from mercer.cli.work.table import TrainingTable
from mercer.data.tables import read_frame
from mercer.data.wording import printable
from mercer.errors import UsageError
from mercer.estimation.cross_validate import Fold
from mercer.estimation.splits import folds, holdout
from mercer.random import stream

__all__ = ["UNSCORED", "ScoringOptions", "Split", "cross_validation", "split_rows"]

SMALL = 1000  # below so many rows, cross-validation
N_FOLDS, TEST_SIZE = 10, 0.25

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class ScoringOptions:
    """What the user asked for; at most one of the first three."""

    test: str | None
    test_size: float | None
    cv: int | None
    is_refitted: bool

    def __post_init__(self) -> None:
        asked = {"--test": self.test, "--test-size": self.test_size, "--cv": self.cv}
        given = [name for name, value in asked.items() if value is not None]
        if len(given) > 1:
            raise UsageError(f"{given[0]} and {given[1]} exclude each other")
        if not self.is_refitted and self.cv is not None:
            raise UsageError("--no-refit keeps the model that was scored; --cv has none, it has K")


@dataclass(frozen=True, eq=False)
class Split:
    """The folds to score on.

    Attributes
    ----------
    folds : tuple of Fold
    how : str
        In words.
    notes : tuple of str
    train : ndarray or None
        Rows of the saved model, where it is itself the one that is scored; None where it is
        fitted again on all rows.
    """

    folds: tuple[Fold, ...]
    how: str
    notes: tuple[str, ...]
    train: Rows | None


UNSCORED = Split((), "no row is held out", (), None)


def split_rows(table: TrainingTable, target: str, options: ScoringOptions, seed: int) -> Split:
    """Choose how to score, and split.

    Raises
    ------
    UsageError
        If the options do not fit together.
    DataError
        If there are too few rows, or the test file does not fit.
    """
    n = len(table.labels)
    if options.test is not None:
        return _test_file(table, target, options.test)
    if options.cv is not None or (options.test_size is None and n < SMALL):
        if not options.is_refitted:
            raise UsageError("--no-refit needs --test-size here: folds leave no model to keep")
        return cross_validation(table, options.cv or N_FOLDS, seed)
    size = TEST_SIZE if options.test_size is None else options.test_size
    train, test = holdout(
        table.labels,
        size,
        stream(seed, "folds"),
        table.groups,
        is_classification=table.task.is_stratified,
    )
    how = f"{100 * size:g} % of the rows held out"
    kept = None if options.is_refitted else train
    return Split((table.fold(train, test),), how, (), kept)


def cross_validation(table: TrainingTable, n_folds: int, seed: int) -> Split:
    """Split into folds."""
    found = folds(
        table.labels,
        n_folds,
        stream(seed, "folds"),
        table.groups,
        is_classification=table.task.is_stratified,
    )
    how = f"{len(found.pairs)}-fold cross-validation"
    notes = (found.note,) if found.note else ()
    return Split(tuple(table.fold(*pair) for pair in found.pairs), how, notes, None)


def _test_file(table: TrainingTable, target: str, test: str) -> Split:
    written = list(table.encoder.written_names)
    if table.encoder.target is not None:
        written.append(target)
    frame = read_frame(test, as_written=written)
    rows = read_scored(frame, target, table.encoder, table.task, table.classes)
    how = f"the {len(rows.y)} rows of {printable(test)}"
    fold = Fold(table.X, table.y, rows.X, rows.y)
    return Split((fold,), how, rows.notes, np.arange(len(table.labels)))
