"""The kernels that the data choose beside each kernel alone: held-out log scores.

Twelve tables, ten random splits each: 150 rows to learn from, or half of them where there are fewer
than 300, and up to 300 others to judge. ``inference="map"`` for all, so that nothing but the kernel
differs: two shells in 20 inputs (the label is the radius), simulated classes of 8 and 20
inputs, breast cancer, Pima, iris, wine; for numbers diabetes, concrete, Boston, a function of
five of ten inputs (Friedman 1), and airfoil, which was added after all settings were fixed. Log
scores in nats, differences with the standard error over splits. Three CPU minutes; needs
``MERCER_DATA``.

Target: on no table worse than the best single kernel by more than a standard error; better than the
usual one ("rbf") on average. The best kernel is known afterwards, from the rows that judge.

In the first version weights were by evidence, in the second each table was split once.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_iris,
    load_wine,
    make_classification,
    make_friedman1,
)

from mercer import GPClassifier, GPRegressor
from reproduce.cells import held_out, less, measured

SEED = 0
NEEDS_DATA = True
N_ROWS, SPLITS = 300, tuple(range(10))
N_LEARNED, N_JUDGED = 150, 300
AUTO, SINGLE = "auto", ("rbf", "matern52", "isotropic(rbf)", "isotropic(matern52)", "rbf + linear")
TABLES = (
    "two shells", "simulated, 8 inputs", "simulated, 20 inputs", "breast cancer", "pima", "iris",
    "wine", "diabetes", "concrete", "boston", "friedman 1", "airfoil",
)  # fmt: skip
NUMBERS = TABLES[7:]

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Measure every kernel on every table."""
    return summary(rows_of(TABLES, SPLITS, N_LEARNED, N_JUDGED))


def rows_of(
    tables: tuple[str, ...], splits: tuple[int, ...], n_learned: int, n_judged: int
) -> list[dict[str, Any]]:
    """Score all kernels: a row for each table and split."""
    cells = [(table, split, n_learned, n_judged) for table in tables for split in splits]
    return measured("gp-kernels-v3", cells, _cell)


def split_of(
    name: str, split: int, n_learned: int, n_judged: int
) -> tuple[Array, NDArray[Any], Array, NDArray[Any]]:
    """Rows to learn from, at most half of all, and others to judge: inputs and targets of both."""
    X, y = table_of(name, 10**6)
    order = np.random.default_rng(split).permutation(len(y))
    n_learned = min(n_learned, len(y) // 2)
    train, test = order[:n_learned], order[n_learned : n_learned + n_judged]
    return X[train], y[train], X[test], y[test]


def table_of(name: str, n_rows: int) -> tuple[Array, NDArray[Any]]:
    """Inputs and targets, of more rows a random choice."""
    X, y = _whole(name)
    chosen = np.random.default_rng(SEED).permutation(len(y))[:n_rows]
    return X[chosen], y[chosen]


def _whole(name: str) -> tuple[Array, NDArray[Any]]:
    if name == "two shells":
        X = np.random.default_rng(SEED).standard_normal((N_ROWS, 20))
        return X, (np.linalg.norm(X, axis=1) > np.sqrt(20.0 - 2.0 / 3.0)).astype(int)
    if name == "simulated, 8 inputs":
        settings = {"n_informative": 4, "n_redundant": 0, "flip_y": 0.1, "random_state": SEED}
        return make_classification(N_ROWS, 8, **settings)  # type: ignore[no-any-return]
    if name == "simulated, 20 inputs":
        return make_classification(  # type: ignore[no-any-return]
            N_ROWS, 20, n_informative=6, flip_y=0.05, random_state=SEED
        )
    if name == "friedman 1":
        return make_friedman1(N_ROWS, 10, noise=1.0, random_state=SEED)  # type: ignore[no-any-return]
    shipped = {
        "breast cancer": load_breast_cancer,
        "iris": load_iris,
        "wine": load_wine,
        "diabetes": load_diabetes,
    }
    if name in shipped:
        return shipped[name](return_X_y=True)  # type: ignore[no-any-return]
    path = Path(os.environ["MERCER_DATA"]) / f"{name}.csv"
    rows = np.loadtxt(path, delimiter=",", skiprows=1, dtype=str)
    y = rows[:, -1]
    return rows[:, :-1].astype(float), y.astype(float) if name in NUMBERS else y


def scores_of(name: str, kernel: str, split: tuple[Array, ...]) -> tuple[Array, str]:
    """Log score of each row that judges, in nats (lower is better), and the kernels."""
    X, y, X_new, y_new = split
    kind = GPRegressor if name in NUMBERS else GPClassifier
    model = kind(kernel=kernel, inference="map", random_state=SEED).fit(X, y)
    kernels = (f"{name} {weight:.2f}" for name, weight in model.kernel_weights_.items())
    return held_out(model, X_new, y_new)[0], ", ".join(kernels)


def _cell(name: str, split: int, n_learned: int, n_judged: int) -> list[dict[str, Any]]:
    rows = split_of(name, split, n_learned, n_judged)
    scores, seconds, chosen = {}, {}, ""
    for kernel in (AUTO, *SINGLE):
        begin = time.process_time()
        own, kernels = scores_of(name, kernel, rows)
        seconds[kernel] = round(time.process_time() - begin, 2)
        scores[kernel] = np.round(own, 5).tolist()
        chosen = kernels if kernel == AUTO else chosen
    return [
        {
            "data": name,
            "split": split,
            "n_rows": len(rows[0]),
            "n_inputs": rows[0].shape[1],
            "scores": scores,
            "seconds": seconds,
            "chosen": chosen,
        }
    ]


def summary(rows: list[dict[str, Any]]) -> dict[str, object]:
    """A row for each table, the mean gaps, and where it is behind the best by over an error."""
    tables, behind = list[dict[str, Any]](), []
    for name in dict.fromkeys(row["data"] for row in rows):
        own = [row for row in rows if row["data"] == name]
        mean = {
            kernel: float(np.mean([np.mean(row["scores"][kernel]) for row in own]))
            for kernel in (AUTO, *SINGLE)
        }
        gaps = {kernel: less(own, AUTO, kernel) for kernel in SINGLE}
        tables.append(
            {
                "data": name,
                "n_rows": own[0]["n_rows"],
                "n_inputs": own[0]["n_inputs"],
                "log_score": {kernel: round(value, 4) for kernel, value in mean.items()},
                "gap": {kernel: gap for kernel, (gap, _) in gaps.items()},
                "gap_error": {kernel: error for kernel, (_, error) in gaps.items()},
                "seconds": {
                    kernel: round(float(np.mean([row["seconds"][kernel] for row in own])), 2)
                    for kernel in mean
                },
                "chosen": [row["chosen"] for row in own],
                "of_splits": [round(float(np.mean(row["scores"][AUTO])), 4) for row in own],
            }
        )
        best = min(SINGLE, key=mean.__getitem__)
        if gaps[best][0] > gaps[best][1]:
            behind.append({"data": name, "kernel": best, "gap": gaps[best][0]})
    mean_gap = {k: round(float(np.mean([row["gap"][k] for row in tables])), 4) for k in SINGLE}
    return {"rows": tables, "mean_gap": mean_gap, "behind_the_best_by_over_an_error": behind}
