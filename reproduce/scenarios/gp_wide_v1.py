"""Few inputs that decide among many: Gaussian processes beside a lasso, a forest and boosting.

Standard normal inputs and noise of standard deviation .5 (*sum*: 1.5 a + b - c; *squares*: 1.5
(a^2 + b^2 - 2); *chance*: no input tells anything), and of classes the sign of that. A model is
judged by 500 further rows: classes by the log loss in nats, numbers by the mean squared error over
the variance of the target, and by how many of them 90 % intervals hold. Where nothing is to be
learned the log loss of the shares of the classes is about .693, and the error of the mean 1.

Means over tables with standard errors. An hour and a half; use ``--cache``.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LassoCV, LogisticRegressionCV
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

import mercer
from reproduce.cells import means, measured

SEED = 0
KINDS, TASKS = ("sum", "squares", "chance"), ("classes", "numbers")
SIZES, N_TABLES, N_NEW = ((80, 100), (150, 400), (60, 1000)), 4, 500
MOST_OF_NUMBERS = 400  # inputs
MODELS = ("default", "maximum", "lasso", "forest", "boosting")

Array = NDArray[np.float64]
Rows = list[dict[str, Any]]


def run() -> dict[str, object]:
    """Means by task, kind, size and model."""
    cells = [
        (task, kind, n, d, k)
        for k in range(N_TABLES) for n, d in SIZES for task in TASKS for kind in KINDS
        if task == "classes" or d <= MOST_OF_NUMBERS
    ]  # fmt: skip
    return summary(measured("gp-wide-v1", cells, cell))


def summary(rows: Rows) -> dict[str, object]:
    """Means over tables with standard errors."""
    keys, found = ("task", "kind", "n", "d"), []
    for task in TASKS:
        own = [row for row in rows if row["task"] == task]
        names = tuple(name for name in own[0] if name not in (*keys, "table")) if own else ()
        found += means(own, keys, names, count="n_tables")
    return {"rows": found}


def cell(task: str, kind: str, n: int, d: int, k: int) -> Rows:
    """Losses, seconds and coverages of one table."""
    rng = np.random.default_rng([SEED, n, d, k])
    X = rng.standard_normal((n + N_NEW, d))
    f = {
        "sum": 1.5 * X[:, 0] + X[:, 1] - X[:, 2],
        "squares": 1.5 * (X[:, 0] ** 2 + X[:, 1] ** 2 - 2.0),
        "chance": np.zeros(len(X)),
    }[kind]
    y = f + 0.5 * rng.standard_normal(len(X))
    if task == "classes":
        y = (y > 0.0).astype(int)
    row: dict[str, Any] = {"task": task, "kind": kind, "n": n, "d": d, "table": k}
    for name in MODELS:
        model, begin = _model(name, task, k), time.process_time()
        with threadpool_limits(limits=1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X[:n], y[:n])
        row[f"{name}_seconds"] = time.process_time() - begin
        row[name] = _loss(model, X[n:], y[n:])
        if task == "numbers" and name in MODELS[:2]:
            lower, upper = model.predict_interval(X[n:], 0.9)
            row[f"{name}_inside_90"] = float(((lower <= y[n:]) & (y[n:] <= upper)).mean())
    return [row]


def _loss(model: Any, X: Array, y: Array) -> float:
    if hasattr(model, "predict_proba"):
        return float(log_loss(y, model.predict_proba(X)))
    return float(np.square(y - model.predict(X)).mean() / y.var())


def _model(name: str, task: str, seed: int) -> Any:
    is_class, own = task == "classes", {"random_state": seed}
    if name in MODELS[:2]:
        inference = "importance" if name == "default" else "map"
        process = mercer.GPClassifier if is_class else mercer.GPRegressor
        return process(**own, inference=inference, progress=False)
    if name == "lasso" and is_class:
        return LogisticRegressionCV(penalty="l1", solver="liblinear", scoring="neg_log_loss", **own)
    if name == "lasso":
        return LassoCV(**own)
    if name == "forest":
        return (RandomForestClassifier if is_class else RandomForestRegressor)(500, **own)
    return (HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor)(**own)
