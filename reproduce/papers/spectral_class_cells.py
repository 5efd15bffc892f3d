"""Cells of Table 2: one method on one fold of one data set, kept in a file each.

A run that was stopped goes on where it was; several processes may share the cells of one folder.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from mercer.errors import MercerWarning
from reproduce.papers.kept import kept, parts_folder
from reproduce.papers.reproduction import Settings
from reproduce.papers.spectral_cells import CellKey
from reproduce.papers.spectral_class_folds import CLASS_SETS, ClassFold, class_fold_of
from reproduce.papers.spectral_class_methods import CLASS_METHODS, ClassMethod
from reproduce.papers.spectral_folds import is_at_hand, n_folds, n_training_rows

__all__ = ["ClassCell", "class_work", "run_class_cell"]

# A probability below this counts as this: one wrong row is not to decide a mean.
_LEAST = 1e-9


@dataclass(frozen=True)
class ClassCell:
    """What was seen.

    Attributes
    ----------
    wrong : tuple of int
        Places, among the test rows, of those whose class is not the more probable one.
    log_loss : float
        Mean over the test rows, in nats, no probability below 1e-9.
    seconds : float
        To fit and to predict, with one thread for linear algebra.
    n_train, n_test, n_inputs : int
    """

    wrong: tuple[int, ...]
    log_loss: float
    seconds: float
    n_train: int
    n_test: int
    n_inputs: int

    @property
    def error(self) -> float:
        """Share of test rows that are wrong."""
        return len(self.wrong) / self.n_test


def class_work(settings: Settings) -> list[CellKey]:
    """List the cells that are to be run: all methods on a fold, before the next fold.

    A method is left out of sets with more training rows than it can take; a quick run has the
    first set that is at hand.
    """
    at_hand = [class_set.name for class_set in CLASS_SETS if is_at_hand(class_set.name)]
    keys = []
    for name in at_hand[:1] if settings.is_quick else at_hand:
        n_train = n_training_rows(name)
        fitting = [m for m in CLASS_METHODS if m.largest is None or n_train <= m.largest]
        for fold in range(n_folds(settings.is_quick)):
            keys += [CellKey(name, method.key, fold) for method in fitting]
    return keys


def run_class_cell(key: CellKey, settings: Settings) -> ClassCell:
    """Run one cell, or read it where this version of mercer ran it before.

    Raises
    ------
    StorageError
        If the data set is not at hand, or the cell cannot be written.
    """
    method = next(method for method in CLASS_METHODS if method.key == key.method)

    def run() -> dict[str, Any]:
        settings.tell(f"{key.name}, {method.name}, fold {key.fold + 1}")
        fold = class_fold_of(key.name, key.fold, settings.is_quick)
        return asdict(_run(method, fold, settings))

    name = f"{key.name}-{key.method}-{key.fold}"
    found = kept(parts_folder(settings, "spectral-table-2"), name, asdict(key), run)
    return ClassCell(**{**found, "wrong": tuple(found["wrong"])})


def _run(method: ClassMethod, fold: ClassFold, settings: Settings) -> ClassCell:
    begin = time.perf_counter()
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        # Constant columns; settings at a bound.
        warnings.simplefilter("ignore", MercerWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        proba = method.run(fold, settings.is_quick, settings.n_jobs)
    seconds = time.perf_counter() - begin
    is_wrong = (proba > 0.5) != (fold.y_test == 1)
    of_class = np.where(fold.y_test == 1, proba, 1.0 - proba)
    loss = float(-np.log(np.maximum(of_class, _LEAST)).mean())
    wrong = tuple(int(row) for row in np.flatnonzero(is_wrong))
    return ClassCell(wrong, loss, seconds, len(fold.y), len(fold.y_test), fold.X.shape[1])
