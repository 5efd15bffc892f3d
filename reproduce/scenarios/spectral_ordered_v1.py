"""Ordered classes: BaNK that knows their order beside BaNK that does not.

*Data*: four tables of numbers, 300 rows at random, whose target is cut at its quintiles into five
classes. All other rows, 2000 at most, are predicted. Two seeds.

*Methods*: `BaNKClassifier(ordered=True)` and `BaNKClassifier()`, all else by default.

*Scores*: mean of -log probability (nats), and of the ranked probability score: the sum of squared
differences between the distribution function of the classes and the step at the class that came;
of their differences the standard error over rows, each row beside itself. Share of wrong classes.
Ten minutes; use ``--cache``.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer import BaNKClassifier
from mercer.data.named import TARGET, load_named
from reproduce.cells import measured

SEED = 0
NEEDS_DATA = True
N_SEEDS, N_ROWS, N_NEW, N_CLASSES = 2, 300, 2000, 5
DATA = ("airfoil", "bike", "boston", "concrete")
METHODS = {"ordered": True, "no order": False}
SCORES = ("log_score", "ranked", "error")

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Mean scores by table and method."""
    cells = [(name, seed) for name in DATA for seed in range(N_SEEDS)]
    with threadpool_limits(limits=1):
        return summary(measured("spectral-ordered-v1", cells, _cell))


def table_of(name: str, seed: int) -> tuple[Array, NDArray[np.int64]]:
    """Inputs, and the fifth of the target that a row is in, in an order drawn at random."""
    frame = load_named(name)
    y = np.asarray(frame.column(TARGET).values, dtype=np.float64)
    X = np.column_stack([c.values for c in frame.columns if c.name != TARGET])
    edges = np.quantile(y, np.arange(1, N_CLASSES) / N_CLASSES)
    chosen = np.random.default_rng([SEED, seed]).permutation(len(y))[: N_ROWS + N_NEW]
    return X[chosen], np.searchsorted(edges, y[chosen])


def scores_of(proba: Array, y: NDArray[np.int64]) -> Array:
    """The three scores of each row, shape (3, n)."""
    steps = np.arange(N_CLASSES) >= y[:, np.newaxis]
    ranked = np.square(proba.cumsum(axis=1) - steps).sum(axis=1)
    return np.stack([-np.log(proba[np.arange(len(y)), y]), ranked, proba.argmax(axis=1) != y])


def _cell(name: str, seed: int, **own: Any) -> list[dict[str, Any]]:
    X, y = table_of(name, seed)
    rows, scores = list[dict[str, Any]](), list[Array]()
    for method, ordered in METHODS.items():
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = BaNKClassifier(
                ordered=ordered, random_state=seed, n_jobs=1, progress=False, **own
            ).fit(X[:N_ROWS], y[:N_ROWS])
            scores.append(scores_of(model.predict_proba(X[N_ROWS:]), y[N_ROWS:]))
        seconds = round(time.process_time() - begin, 2)
        rows.append({"data": name, "seed": seed, "method": method, "cpu_seconds": seconds})
    gaps = scores[1] - scores[0]
    for row, found in zip(rows, scores, strict=True):
        for k, key in enumerate(SCORES):
            row[key] = round(float(found[k].mean()), 5)
            row[f"{key}_se"] = round(float(gaps[k].std() / np.sqrt(gaps.shape[1])), 5)
    return rows


def summary(rows: list[dict[str, Any]]) -> dict[str, object]:
    """Mean over seeds, by table and method."""
    cells = []
    for name in dict.fromkeys(row["data"] for row in rows):
        for method in METHODS:
            mine = [row for row in rows if (row["data"], row["method"]) == (name, method)]
            found = {
                key: round(float(np.mean([row[key] for row in mine])), 4)
                for key in (*SCORES, "cpu_seconds")
            }
            for key in SCORES:  # of the mean of independent seeds
                squares = [row[f"{key}_se"] ** 2 for row in mine]
                found[f"{key}_se"] = round(float(np.sqrt(np.sum(squares)) / len(mine)), 4)
            cells.append({"data": name, "method": method, **found})
    return {"n_seeds": len({row["seed"] for row in rows}), "n_rows": N_ROWS, "cells": cells}
