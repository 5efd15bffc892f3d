"""BaNK as the paper has it on folds of Tables 1 and 2, beside the default; needs ``MERCER_DATA``.

`BaNKRegressor.paper()` and `BaNKClassifier.paper()`, 384 frequencies and 150 sweeps of one chain,
with the time limit of the tables (720 s a fold), which no fold needed. The default runs on the
same three folds of the four small sets; on the large ones, one fold each, its figures stand in
Tables 1 and 2. With ``--cache`` it goes on where it was stopped; half an hour of one core.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from mercer.errors import MercerWarning
from reproduce.cells import measured
from reproduce.papers.spectral_class_folds import class_fold_of
from reproduce.papers.spectral_class_methods import CLASS_METHODS
from reproduce.papers.spectral_folds import fold_of
from reproduce.papers.spectral_methods import HOUR_A_SET, METHODS

SEED = 0
NEEDS_DATA = True
SMALL = ("concrete", "airfoil", "pima", "diabetic")
LARGE = ("naval", "naval_turbine", "bike", "toms", "eeg", "shuttle")
CLASSES = ("pima", "diabetic", "eeg", "shuttle")
KEYS = ("bank-paper", "bank")
N_FOLDS = 3


def run() -> dict[str, object]:
    """Errors and seconds of each method on each fold, and their means over the folds."""
    cells = [
        (data, fold, key)
        for fold in range(N_FOLDS)
        for data in (*SMALL, *(LARGE if fold == 0 else ()))
        for key in (KEYS if data in SMALL else KEYS[:1])
    ]
    folds = measured("spectral-paper-chain-v1", cells, fit_fold)
    return {"folds": folds, "rows": means(folds)}


def fit_fold(data: str, fold: int, key: str, *, is_quick: bool = False) -> list[dict[str, Any]]:
    """One method on one fold: mean squared error or share of wrong rows, and CPU seconds."""
    is_class = data in CLASSES
    part: Any = (class_fold_of if is_class else fold_of)(data, fold, is_quick)
    methods: Any = CLASS_METHODS if is_class else METHODS
    method = next(each for each in methods if each.key == key)
    begin, began = time.process_time(), time.perf_counter()
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore", MercerWarning)
        found = method.run(part, is_quick, 1)
    seconds = time.process_time() - begin
    if is_class:
        error = float(np.mean((found > 0.5) != (part.y_test == 1)))
    else:
        error = float(np.mean((found.mean - part.y_test) ** 2))
    row = {"data": data, "fold": fold, "method": method.name, "n_train": len(part.y)}
    was_cut = time.perf_counter() - began >= HOUR_A_SET
    return [{**row, "error": error, "cpu_seconds": round(seconds, 2), "was_cut": was_cut}]


def means(folds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a data set and method."""
    rows = []
    for data in dict.fromkeys(each["data"] for each in folds):
        for method in dict.fromkeys(each["method"] for each in folds):
            own = [each for each in folds if (each["data"], each["method"]) == (data, method)]
            if not own:
                continue
            errors = np.array([each["error"] for each in own])
            spread = errors.std(ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else 0.0
            rows.append({
                "data": data, "method": method, "n_folds": len(own),
                "error": float(errors.mean()), "standard_error": float(spread),
                "cpu_seconds": float(np.mean([each["cpu_seconds"] for each in own])),
            })  # fmt: skip
    return rows
