"""Missing inputs: BaNK that draws them, beside medians, with and without indicators, and boosting.

*Data*: 300 rows of a known function of three of six inputs, sin 1.5 a + .7 b + .5 a c and noise of
standard deviation .2; a fifth of all cells is removed. "together": normal inputs, correlations
.7; "apart": normal, none; "skewed": exponentials of .7 times the first, the function of their
logarithms; "hidden": as "together", but three in five of an input's highest third are
removed, and no others. `diabetes` (scikit-learn; 310 of 442), a fifth of all cells
removed. Other rows are predicted, 2000 at most, with gaps alike.

*Ours*: `BaNKRegressor` with ``missing="posterior"``; and, defaults, on what `TableEncoder` makes
with ``missing`` "indicator" and "impute".

*Rival*: scikit-learn's gradient boosting, defaults, which takes gaps as they are, with a normal law
as wide as what five folds leave. Two splits.

*Classes*: the same functions f of "together", "apart" and "hidden", a label with probability
1 / (1 + exp(-3 f)); `BaNKClassifier` and the classifier of the rival.

*Scores*: mean of -log density (nats) and share inside the 90 % interval, of rows without a gap and
of those with one; root mean squared error of all, of classes the share of wrong ones. A quarter of
an hour; use ``--cache``.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from mercer import BaNKClassifier, BaNKRegressor, TableEncoder
from mercer.baselines.peers import ResidualSpread
from reproduce.cells import measured_tables

SEED = 0
N_SEEDS, N_NEW, BLOCK, SHARE = 2, 2000, 500, 0.2
#: Name, rows; of numbers, then of classes.
DATA = (("together", 300), ("apart", 300), ("skewed", 300), ("hidden", 300), ("diabetes", 310))
CLASS_DATA = (("together", 300), ("apart", 300), ("hidden", 300))
DRAWN, BOOSTING = "mercer, drawn", "gradient boosting"
METHODS = (DRAWN, "mercer, indicator", "mercer, impute", BOOSTING)
CLASS_KEYS = ("log_loss_whole", "log_loss_gaps", "errors", "cpu_seconds")
KEYS = ("log_score_whole", "log_score_gaps", "coverage_whole", "coverage_gaps", "rmse",
        "cpu_seconds")  # fmt: skip

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Mean scores by table and method."""
    numbers = measured_tables("spectral-missing-v1", DATA, N_SEEDS, _cell)
    classes = measured_tables("spectral-missing-classes-v1", CLASS_DATA, N_SEEDS, _class_cell)
    return {**summary(numbers, KEYS), "classes": summary(classes, CLASS_KEYS)["cells"]}


def table_of(name: str, n_rows: int, seed: int, *, is_class: bool = False) -> tuple[Array, Array]:
    """Inputs with gaps, and targets, of so many rows at most."""
    rng = np.random.default_rng([SEED, seed])
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True)
        chosen = rng.permutation(len(y))[:n_rows]
        X, y = X[chosen], y[chosen].astype(np.float64)
    else:
        rho = 0.0 if name == "apart" else 0.7
        shared, own = rng.standard_normal((n_rows, 1)), rng.standard_normal((n_rows, 6))
        X = np.sqrt(rho) * shared + np.sqrt(1.0 - rho) * own
        y = np.sin(1.5 * X[:, 0]) + 0.7 * X[:, 1] + 0.5 * X[:, 0] * X[:, 2]
        if is_class:
            y = (rng.random(n_rows) < expit(3.0 * y)).astype(np.float64)
        else:
            y += 0.2 * rng.standard_normal(n_rows)
    is_missing = rng.random(X.shape) < SHARE
    if name == "hidden":
        is_missing = (np.quantile(X, 2.0 / 3.0, axis=0) < X) & (rng.random(X.shape) < 3 * SHARE)
    X = np.exp(0.7 * X) if name == "skewed" else X
    return np.where(is_missing, np.nan, X), y


def _cell(name: str, n_rows: int, seed: int) -> list[dict[str, Any]]:
    X, y = table_of(name, n_rows + N_NEW, seed)
    known, new = slice(n_rows), slice(n_rows, None)
    has_gap, found = np.isnan(X[new]).any(axis=1), []
    for method in METHODS:
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            logs, is_inside, mean = _scored(method, X[known], y[known], X[new], y[new], seed)
        seconds = round(time.process_time() - begin, 2)
        scores = {
            "log_score_whole": -logs[~has_gap].mean(),
            "log_score_gaps": -logs[has_gap].mean(),
            "coverage_whole": is_inside[~has_gap].mean(),
            "coverage_gaps": is_inside[has_gap].mean(),
            "rmse": np.sqrt(np.mean(np.square(mean - y[new]))),
        }
        scores = {key: round(float(value), 5) for key, value in scores.items()}
        found.append({"data": name, "n_rows": n_rows, "seed": seed, "method": method, **scores}
                     | {"cpu_seconds": seconds})  # fmt: skip
    return found


def _class_cell(name: str, n_rows: int, seed: int) -> list[dict[str, Any]]:
    X, y = table_of(name, n_rows + N_NEW, seed, is_class=True)
    known, new = slice(n_rows), slice(n_rows, None)
    has_gap, found = np.isnan(X[new]).any(axis=1), []
    for method in METHODS:
        begin = time.process_time()
        own, Z = _encoded(method, X[known], X[new])
        model: Any = HistGradientBoostingClassifier(random_state=seed)
        if method != BOOSTING:
            model = BaNKClassifier(**_settings(method, seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            proba = model.fit(own, y[known]).predict_proba(Z)
        seconds = round(time.process_time() - begin, 2)
        logs = -np.log(proba[np.arange(len(Z)), y[new].astype(int)])
        scores = {
            "log_loss_whole": logs[~has_gap].mean(),
            "log_loss_gaps": logs[has_gap].mean(),
            "errors": (proba.argmax(axis=1) != y[new]).mean(),
        }
        scores = {key: round(float(value), 5) for key, value in scores.items()}
        found.append({"data": name, "n_rows": n_rows, "seed": seed, "method": method, **scores}
                     | {"cpu_seconds": seconds})  # fmt: skip
    return found


def _settings(method: str, seed: int) -> dict[str, Any]:
    fixed: dict[str, Any] = {"random_state": seed, "n_jobs": 1, "progress": False}
    return fixed | ({"missing": "posterior"} if method == DRAWN else {})


def _encoded(method: str, X: Array, Z: Array) -> tuple[Array, Array]:
    """Gaps as a method takes them, of rows that are learned from and of new ones."""
    if method in (DRAWN, BOOSTING):
        return X, Z
    encoder = TableEncoder(missing=method.removeprefix("mercer, ")).fit(X)
    return encoder.transform(X), encoder.transform(Z)


def _scored(
    method: str, X: Array, y: Array, Z: Array, new: Array, seed: int
) -> tuple[Array, NDArray[np.bool_], Array]:
    """Log densities of new targets, whether intervals hold them, and means."""
    if method == BOOSTING:
        rival = ResidualSpread(HistGradientBoostingRegressor(random_state=seed), seed).fit(X, y)
        law = stats.norm(rival.predict(Z), rival.std_)
        lower, upper = law.interval(0.9)
        return law.logpdf(new), (lower <= new) & (new <= upper), law.mean()
    X, Z = _encoded(method, X, Z)
    model = BaNKRegressor(**_settings(method, seed)).fit(X, y)
    parts = [slice(begin, begin + BLOCK) for begin in range(0, len(Z), BLOCK)]
    laws = [model.predictive(Z[part]) for part in parts]
    logs = [law.log_density(new[part]) for law, part in zip(laws, parts, strict=True)]
    lower, upper = np.concatenate([np.stack(law.interval(0.9)) for law in laws], axis=1)
    mean = np.concatenate([law.mean for law in laws])
    return np.concatenate(logs), (lower <= new) & (new <= upper), mean


def summary(rows: list[dict[str, Any]], keys: tuple[str, ...] = KEYS) -> dict[str, Any]:
    """Mean over seeds, by table and method."""
    cells: list[dict[str, Any]] = []
    for name, n_rows in dict.fromkeys((row["data"], row["n_rows"]) for row in rows):
        scores: dict[str, dict[str, float]] = {}
        for method in METHODS:
            own = [row for row in rows if (row["data"], row["method"]) == (name, method)]
            scores[method] = {
                key: round(float(np.mean([row[key] for row in own])), 4) for key in keys
            }
        cells.append({"data": name, "n_rows": n_rows, "scores": scores})
    return {"n_seeds": len({row["seed"] for row in rows}), "n_new": N_NEW, "cells": cells}
