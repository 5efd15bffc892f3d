"""The forensic glass of Barber & Williams, Table 2, and the folds that all methods share."""

from __future__ import annotations

import warnings

from sklearn.model_selection import StratifiedKFold

from reproduce.papers.gp_cells import Repeat, Split
from reproduce.papers.matrices import named_arrays

__all__ = ["glass_repeats"]


def glass_repeats(n_shuffles: int, n_folds: int) -> list[Repeat]:
    """Stratified folds of the 214 rows, shuffled anew for each repeat.

    Raises
    ------
    StorageError
        If the data set is not at hand.
    """
    X, y = named_arrays("fgl")
    repeats = []
    for seed in range(n_shuffles):
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        with warnings.catch_warnings():
            # Nine rows of tableware: one of ten folds tests on none of them.
            warnings.simplefilter("ignore", UserWarning)
            rows = list(folds.split(X, y))
        splits = [Split(X[train], y[train], X[test], y[test]) for train, test in rows]
        repeats.append(Repeat(splits, seed))
    return repeats
