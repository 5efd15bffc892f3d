"""Cells of Table 1: one method on one fold of one data set, kept in a file each.

A run that was stopped goes on where it was; several processes may share the cells of one folder.
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import asdict, dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from mercer.errors import MercerWarning
from reproduce.papers.kept import kept, parts_folder
from reproduce.papers.reproduction import Settings
from reproduce.papers.spectral_folds import (
    SETS,
    Fold,
    fold_of,
    is_at_hand,
    n_folds,
    n_training_rows,
)
from reproduce.papers.spectral_methods import METHODS, Method, Prediction

__all__ = ["Cell", "CellKey", "run_cell", "work"]


@dataclass(frozen=True)
class CellKey:
    """A data set by name, a method by its key, a fold by its number from 0."""

    name: str
    method: str
    fold: int


@dataclass(frozen=True)
class Cell:
    """What was seen.

    Attributes
    ----------
    mse : float
        Of the test rows, with the target standardised by the training rows.
    coverage : float
        Share of test rows within their 90 % intervals; nan for a method without intervals.
    seconds : float
        To fit and to predict, with one thread for linear algebra.
    n_train, n_test, n_inputs : int
    """

    mse: float
    coverage: float
    seconds: float
    n_train: int
    n_test: int
    n_inputs: int


def work(settings: Settings) -> list[CellKey]:
    """List the cells that are to be run: all methods on a fold, before the next fold.

    A method is left out of sets with more training rows than it can take, in quick runs too.
    """
    keys = []
    for table_set in SETS:
        if not is_at_hand(table_set.name):
            continue
        n_train = n_training_rows(table_set.name)
        fitting = [m for m in METHODS if m.largest is None or n_train <= m.largest]
        for fold in range(n_folds(settings.is_quick)):
            keys += [CellKey(table_set.name, method.key, fold) for method in fitting]
    return keys


def run_cell(key: CellKey, settings: Settings) -> Cell:
    """Run one cell, or read it where this version of mercer ran it before.

    Raises
    ------
    StorageError
        If the data set is not at hand, or the cell cannot be written.
    """
    method = next(method for method in METHODS if method.key == key.method)

    def run() -> dict[str, float]:
        settings.tell(f"{key.name}, {method.name}, fold {key.fold + 1}")
        return asdict(_run(method, fold_of(key.name, key.fold, settings.is_quick), settings))

    name = f"{key.name}-{key.method}-{key.fold}"
    return Cell(**kept(parts_folder(settings, "spectral-table-1"), name, asdict(key), run))


def _run(method: Method, fold: Fold, settings: Settings) -> Cell:
    begin = time.perf_counter()
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        # Constant columns; hyperparameters at a bound.
        warnings.simplefilter("ignore", MercerWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        prediction = method.run(fold, settings.is_quick, settings.n_jobs)
    seconds = time.perf_counter() - begin
    mse = float(np.mean((prediction.mean - fold.y_test) ** 2))
    coverage = _coverage(prediction, fold)
    return Cell(mse, coverage, seconds, len(fold.y), len(fold.y_test), fold.X.shape[1])


def _coverage(prediction: Prediction, fold: Fold) -> float:
    if prediction.lower is None or prediction.upper is None:
        return math.nan
    inside = (prediction.lower <= fold.y_test) & (fold.y_test <= prediction.upper)
    return float(inside.mean())
