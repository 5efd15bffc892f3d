"""Fits of BaNK: do they warn, what do longer chains cost, and do scores change?

*Data*: thirteen tables, eight of numbers and five of classes, as many rows as each has for it or
as are named in `DATA`; other rows of the table, 2000 at most, are predicted. Simulated: "friedman"
(ten inputs, five of them idle), "sine" (two waves), "bumps" (a kernel of two bumps), "linear",
"wavy" (classes, a wave and a product) and "blobs" (`make_classification`, a tenth of the labels
flipped). The real ones are of scikit-learn and ``MERCER_DATA``.

*Settings*: ``thin="auto"``, the default, and ``thin=1``, by which chains end after 100 draws each.

A fit warns where R-hat, effective sizes or the length of its chains are not what its diagnostics
ask for: see `mercer.posterior.diagnostics`. Two splits. A quarter of an hour; use ``--cache``;
needs ``MERCER_DATA``.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification, make_friedman1
from threadpoolctl import threadpool_limits

from mercer import BaNKClassifier, BaNKRegressor
from mercer.data.named import TARGET, load_named
from reproduce.cells import measured

SEED = 0
NEEDS_DATA = True
N_SEEDS, N_NEW = 2, 2000
SETTINGS = {"auto": {"thin": "auto"}, "1": {"thin": 1}}
#: Name, rows, whether targets are classes.
DATA = (
    ("friedman", 200, False), ("diabetes_progression", 300, False), ("sine", 100, False),
    ("bumps", 500, False), ("linear", 150, False), ("boston", 400, False),
    ("concrete", 500, False), ("airfoil", 400, False), ("breast_cancer", 400, True),
    ("iris", 110, True), ("pima", 400, True), ("wavy", 300, True), ("blobs", 200, True),
)  # fmt: skip

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Cells, and of how many tables no fit warns."""
    return summary(rows_of(DATA, N_SEEDS))


def rows_of(data: tuple[tuple[str, int, bool], ...], n_seeds: int) -> list[dict[str, Any]]:
    """Measure both settings: a row for each (table, seed, setting)."""
    cells = [(*each, seed, how) for each in data for seed in range(n_seeds) for how in SETTINGS]
    with threadpool_limits(limits=1):
        return measured("spectral-default-v1", cells, _cell)


def table_of(name: str, n_rows: int, seed: int) -> tuple[Array, NDArray[Any], Array, NDArray[Any]]:
    """Inputs and targets to learn from, and those to predict."""
    rng = np.random.default_rng([SEED, seed])
    n = n_rows + N_NEW
    if name == "friedman":
        X, y = make_friedman1(n, 10, noise=1.0, random_state=seed)
    elif name == "sine":
        X = rng.uniform(-3.0, 3.0, (n, 1))
        y = np.sin(2.0 * X[:, 0]) + 0.5 * np.sin(5.0 * X[:, 0]) + 0.2 * rng.standard_normal(n)
    elif name == "bumps":
        W = np.where(rng.random(250) < 0.5, 0.0, 0.75 * np.pi) + 0.5 * rng.standard_normal(250)
        X = 4.0 * rng.standard_normal((n, 1))
        waves = np.hstack([np.cos(X * W), np.sin(X * W)]) / np.sqrt(250)
        y = waves @ rng.standard_normal(500) + rng.standard_normal(n)
    elif name == "linear":
        X = rng.standard_normal((n, 4))
        y = X @ [1.0, -0.5, 0.3, 0.0] + 0.7 * rng.standard_normal(n)
    elif name == "wavy":
        X = rng.standard_normal((n, 3))
        f = 3.0 * np.sin(2.0 * X[:, 0]) + 2.0 * X[:, 1] * X[:, 2]
        y = (rng.random(n) < 1.0 / (1.0 + np.exp(-f))).astype(int)
    elif name == "blobs":
        X, y = make_classification(
            n, 8, n_informative=4, n_redundant=0, flip_y=0.1, random_state=seed
        )
    else:
        frame = load_named(name)
        X = np.column_stack([c.values for c in frame.columns if c.name != TARGET]).astype(float)
        y = frame.column(TARGET).values
        order = rng.permutation(len(y))[: n_rows + N_NEW]
        X, y = X[order], y[order]
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def _cell(name: str, n_rows: int, is_class: bool, seed: int, how: str) -> list[dict[str, Any]]:
    X, y, X_new, y_new = table_of(name, n_rows, seed)
    make = BaNKClassifier if is_class else BaNKRegressor
    model = make(random_state=seed, progress=False, **SETTINGS[how])
    quick = make(random_state=seed, progress=False, n_draws=3, n_warmup=3, n_chains=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quick.fit(X, y)  # compiles
        begin = time.process_time()
        model.fit(X, y)
        seconds = time.process_time() - begin
    if is_class:
        proba = model.predict_proba(X_new)
        scores = np.log(proba[np.arange(len(y_new)), np.searchsorted(model.classes_, y_new)])
    else:
        scores = model.predictive(X_new).log_density(y_new)
    found = model.diagnostics_
    longer = [note for note in model.notes_ if "times as long" in note]
    row = {
        "data": name, "n_rows": len(y), "seed": seed, "setting": how, "cpu_seconds": seconds,
        "log_score": float(-scores.mean()), "max_rhat": found.max_rhat, "min_ess": found.min_ess,
        "warns": bool(found.warnings), "times": int(longer[0].split()[2]) if longer else 1,
    }  # fmt: skip
    return [row]


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over seeds by table and setting, and of how many fits none warns."""
    cells = []
    for name, _, _ in DATA:
        for how in SETTINGS:
            own = [row for row in rows if (row["data"], row["setting"]) == (name, how)]
            if own:
                means = {
                    key: float(np.mean([row[key] for row in own]))
                    for key in ("cpu_seconds", "log_score", "max_rhat", "min_ess", "times")
                }
                warns = sum(row["warns"] for row in own)
                cells.append(
                    {"data": name, "n_rows": own[0]["n_rows"], "setting": how, **means,
                     "n_seeds": len(own), "n_warn": warns}
                )  # fmt: skip
    quiet = {
        how: sum(cell["setting"] == how and cell["n_warn"] == 0 for cell in cells)
        for how in SETTINGS
    }
    return {"n_tables": len({cell["data"] for cell in cells}), "without_warning": quiet,
            "cells": cells}  # fmt: skip
