"""Numbers that were made wrong, and who finds them.

200 rows of five tables with numbers for targets; a tenth of the targets are made wrong, in one of
two ways: "shifted", by a normal error as wide as the targets, or "swapped", as the value of another
row (what a slip of a line gives). A score of the rows is worth its average precision for finding
them.

*Ours*: P(wrong) of `GPRegressor` with ``noise="contaminated"``, else its defaults; beside it that
of `BaNKRegressor`, which audits larger tables: neither ours of a cell nor a rival.

*Rivals*: residuals out of ten folds, over nothing (one spread for all rows, the usual z-score), by
scikit-learn's Gaussian process (a weight for each input), gradient boosting and a random forest;
and cleanlab's `regression` scores with the last two, its defaults else. The best rival of a cell is
the best of these six *in that cell*, in hindsight.

Target: in no cell below the best rival by more than two standard errors. About twenty CPU minutes;
use ``--cache``; needs ``MERCER_DATA``.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.metrics import average_precision_score
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from mercer import BaNKRegressor, GPRegressor
from reproduce.cells import measured
from reproduce.scenarios.gp_kernels_v3 import NUMBERS, table_of

SEED = 0
NEEDS_DATA = True
NEEDS_PACKAGES = ("cleanlab",)

KINDS = ("shifted", "swapped")
N_SEEDS, N_ROWS, SHARE = 3, 200, 0.1
OURS, OF_MANY_ROWS = "mercer", "mercer, BaNK"
RESIDUALS = ("gp", "boosting", "forest")
CLEANLAB = ("boosting", "forest")

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Mean average precision by table, kind of error and method."""
    return summary(rows_of(NUMBERS, N_SEEDS, N_ROWS))


def rows_of(tables: tuple[str, ...], n_seeds: int, n_rows: int) -> list[dict[str, Any]]:
    """Measure all methods: a row for each (table, kind, seed, method)."""
    cells = [
        (name, kind, seed, n_rows) for seed in range(n_seeds) for name in tables for kind in KINDS
    ]
    with threadpool_limits(limits=1):
        return measured("audit-numbers-v1", cells, _cell)


def spoiled(y: Array, kind: str, seed: int) -> tuple[Array, NDArray[np.bool_]]:
    """Targets as recorded, and which of them are wrong."""
    rng = np.random.default_rng([SEED, seed])
    wrong = np.zeros(len(y), bool)
    wrong[rng.choice(len(y), round(SHARE * len(y)), replace=False)] = True
    recorded = y.copy()
    if kind == "shifted":
        recorded[wrong] += y.std() * rng.standard_normal(wrong.sum())
    else:
        recorded[wrong] = y[(np.flatnonzero(wrong) + rng.integers(1, len(y), wrong.sum())) % len(y)]
    return recorded, wrong


def _cell(name: str, kind: str, seed: int, n_rows: int) -> list[dict[str, Any]]:
    X, y = table_of(name, 10**6)
    rows = np.random.default_rng([SEED, seed, 1]).permutation(len(y))[:n_rows]
    recorded, wrong = spoiled(y[rows], kind, seed)
    found = []
    for method, score in _scores(X[rows], recorded, seed):
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = score()
        found.append(
            {
                "data": name,
                "kind": kind,
                "seed": seed,
                "method": method,
                "average_precision": round(float(average_precision_score(wrong, scores)), 5),
                "share": round(float(scores.mean()), 5) if method == OURS else None,
                "cpu_seconds": round(time.process_time() - begin, 2),
            }
        )
    return found


def _scores(X: Array, y: Array, seed: int) -> Any:
    yield OURS, lambda: _mercer(GPRegressor, X, y, seed)
    yield OF_MANY_ROWS, lambda: _mercer(BaNKRegressor, X, y, seed)
    yield "z-score", lambda: np.abs(y - y.mean())
    for family in RESIDUALS:
        yield f"{family}, residual", lambda family=family: _residuals(family, X, y, seed)
    for family in CLEANLAB:
        yield f"{family}, cleanlab", lambda family=family: _cleanlab(family, X, y, seed)


def _mercer(kind: Any, X: Array, y: Array, seed: int) -> Array:
    model = kind(noise="contaminated", random_state=seed, n_jobs=1, progress=False)
    return model.fit(X, y).target_error_proba_


def _residuals(family: str, X: Array, y: Array, seed: int) -> Array:
    folds = KFold(10, shuffle=True, random_state=seed)
    return np.abs(y - cross_val_predict(_model(family, X.shape[1], seed), X, y, cv=folds))


def _cleanlab(family: str, X: Array, y: Array, seed: int) -> Array:
    from cleanlab.regression.learn import CleanLearning

    learner = CleanLearning(model=_model(family, X.shape[1], seed), seed=seed)
    return 1.0 - learner.find_label_issues(X, y)["label_quality"].to_numpy()


def _model(family: str, d: int, seed: int) -> Any:
    if family == "boosting":
        return HistGradientBoostingRegressor(random_state=seed)
    if family == "forest":
        return RandomForestRegressor(100, random_state=seed, n_jobs=1)
    scales = RBF(np.full(d, np.sqrt(d)), (1e-2, 1e3))
    kernel = ConstantKernel(1.0, (1e-3, 1e4)) * scales + WhiteKernel(0.1, (1e-6, 1e2))
    process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed)
    return make_pipeline(StandardScaler(), process)


def summary(rows: list[dict[str, Any]]) -> dict[str, object]:
    """Mean over seeds; ours less the best rival of each cell, with its standard error."""
    cells = []
    for name in dict.fromkeys(row["data"] for row in rows):
        for kind in KINDS:
            mine = [row for row in rows if (row["data"], row["kind"]) == (name, kind)]
            cells.append(_mean_cell(mine))
    return {
        "n_seeds": len({row["seed"] for row in rows}),
        "share_wrong": SHARE,
        "largest_below_best": max(cell["below_best"] for cell in cells),
        "cpu_seconds": round(float(np.mean([cell["cpu_seconds"] for cell in cells])), 1),
        "cells": cells,
    }


def _mean_cell(rows: list[dict[str, Any]]) -> dict[str, Any]:
    precision = {
        method: np.array([row["average_precision"] for row in rows if row["method"] == method])
        for method in dict.fromkeys(row["method"] for row in rows)
    }
    means = {method: round(float(values.mean()), 4) for method, values in precision.items()}
    rivals = [method for method in means if method not in (OURS, OF_MANY_ROWS)]
    best = max(rivals, key=lambda method: means[method])
    gap, ours = precision[best] - precision[OURS], [row for row in rows if row["method"] == OURS]
    error = None if len(gap) < 2 else round(float(gap.std(ddof=1) / np.sqrt(len(gap))), 4)
    return {
        "data": rows[0]["data"],
        "kind": rows[0]["kind"],
        "average_precision": means,
        "best_rival": best,
        "below_best": round(float(gap.mean()), 4),
        "below_best_standard_error": error,
        "learned_share": round(float(np.mean([row["share"] for row in ours])), 4),
        "cpu_seconds": round(float(np.mean([row["cpu_seconds"] for row in ours])), 1),
    }
