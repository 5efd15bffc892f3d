"""Gaussian processes of more rows than teach their hyperparameters: given all, or these alone.

*Data*: "eeg" (two classes, 14 inputs), "shuttle" (those classes that have more than 150 rows), and
"bike", 4000 rows each; scikit-learn's "digits", 1297 rows; "angles", a number of eight joint angles
(`arm_v1`), 4000 rows, and which third of its values a target is in, 3000 rows. Up to 2000 other
rows are predicted.

*Methods*, defaults with one thread: "all rows", the default; "rows that teach", these alone;
"subset", twice as many rows of numbers and of two classes, and so many more of several classes as
the default took before it had all (1000 of three, 454 of digits), with all their draws; BaNK.

*Scores*: -log probability of a label, or -log density of a standardised number (nats); share of
wrong labels, or squared error over the variance of the targets. Seconds are CPU seconds. ``beside``
holds, for each table and method, by how much its log score is above that of all rows (more than 0:
these are better), and the standard error of that over the rows predicted. Half an hour; use
``--cache``; needs ``MERCER_DATA``.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import mercer
from mercer.data.named import TARGET, load_named
from mercer.gp.averaging import stratified_rows
from reproduce.cells import held_out, measured
from reproduce.scenarios.gp_inducing_v1 import summary
from reproduce.workloads import arm_v1

SEED = 0
NEEDS_DATA = True
N_NEW, _LEAST_OF_CLASS = 2000, 150
#: Name of a table, rows to learn from, rows that teach, rows of the subset, whether classes.
DATA = (
    ("eeg", 4000, 1000, 2000, True), ("shuttle", 4000, 635, 908, True),
    ("digits", 1297, 318, 454, True), ("angles, thirds", 3000, 700, 1000, True),
    ("bike", 4000, 1000, 2000, False), ("angles", 4000, 1000, 2000, False),
)  # fmt: skip
ALL, TEACH, SUBSET, BANK = "all rows", "rows that teach", "subset", "BaNK"

Array = NDArray[np.float64]
Rows = list[dict[str, Any]]


def run() -> dict[str, object]:
    """Scores and seconds of all methods on all tables."""
    cells = [(*each, method) for each in DATA for method in (ALL, TEACH, SUBSET, BANK)]
    with threadpool_limits(limits=1):
        return summary(measured("gp-rows-v1", cells, cell), ALL)


def table_of(name: str) -> tuple[Array, NDArray[Any]]:
    """Inputs and targets in an order drawn at random."""
    rng = np.random.default_rng(SEED)
    if name.startswith("angles"):
        X, y = arm_v1(6000)
        thirds = np.searchsorted(np.quantile(y, [1 / 3, 2 / 3]), y)
        return X, (thirds if "," in name else y)
    frame = load_named(name)
    X = np.column_stack([c.values for c in frame.columns if c.name != TARGET]).astype(np.float64)
    y = np.asarray(frame.column(TARGET).values)
    if name == "shuttle":
        classes, counts = np.unique(y, return_counts=True)
        is_kept = np.isin(y, classes[counts > _LEAST_OF_CLASS])
        X, y = X[is_kept], y[is_kept]
    order = rng.permutation(len(y))
    return X[order], y[order]


def cell(
    table: str, n: int, n_teach: int, n_subset: int, is_class: bool, method: str, **own: Any
) -> Rows:
    """Fit and judge one method on one table."""
    X, y = table_of(table)
    X, X_new, y, y_new = X[:n], X[n : n + N_NEW], y[:n], y[n : n + N_NEW]
    if method in (TEACH, SUBSET):
        codes = np.unique(y, return_inverse=True)[1].astype(np.float64) if is_class else y
        few = n_teach if method == TEACH else n_subset
        rows = stratified_rows(codes, few, np.random.default_rng(SEED), is_classes=is_class)
        X, y = X[rows], y[rows]
        own |= {"max_rows": few}
    kind = ("BaNK" if method == BANK else "GP") + ("Classifier" if is_class else "Regressor")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = getattr(mercer, kind)(random_state=SEED, progress=False, **own)
        begin = time.process_time()
        model.fit(X, y)
        middle = time.process_time()
        logs, error = held_out(model, X_new, y_new)
        end = time.process_time()
    if not is_class:  # of standardised numbers
        logs = logs - np.log(y.std())
    return [
        {
            "table": table,
            "n": n,
            "method": method,
            "n_fitted": len(y),
            "log_score": round(float(logs.mean()), 4),
            "error": round(error, 4),
            "seconds": round(middle - begin, 1),
            "predict_seconds": round(end - middle, 1),
            "logs": [float(f"{each:.5g}") for each in logs],
        }
    ]
