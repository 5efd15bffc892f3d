"""How many frequencies BaNK takes of many rows, and what that costs and loses.

*Data*, 5000 rows to learn from, up to 5000 others to predict. Simulated: "weak classes" (15 inputs,
two classes, the logit a plane and a slow wave), "weak numbers" (Friedman's function with noise four
times as large as it is), "friedman" (noise 1). Of ``MERCER_DATA``: eeg, shuttle (seven classes),
bike, naval, toms.

*Settings*: ``n_frequencies="auto"``, the default, and 384, which it takes at most. Beside them is
scikit-learn's histogram gradient boosting, whose numbers have normal noise of the spread of
residuals on a fifth of its rows. Numbers are scored in standard deviations of the target.

One split. Half an hour; use ``--cache``; needs ``MERCER_DATA``.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from mercer import BaNKClassifier, BaNKRegressor
from mercer.data.named import TARGET, load_named
from reproduce.cells import measured

SEED = 0
NEEDS_DATA = True
N_ROWS, N_NEW = 5000, 5000
#: Name, and whether targets are classes.
DATA = (
    ("weak classes", True), ("weak numbers", False), ("friedman", False), ("eeg", True),
    ("shuttle", True), ("bike", False), ("naval", False), ("toms", False),
)  # fmt: skip
METHODS = ("auto", "384", "gradient boosting")

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Fit all tables by all methods."""
    cells = [(*each, method, N_ROWS) for each in DATA for method in METHODS]
    with threadpool_limits(limits=1):
        return {"cells": measured("spectral-frequencies-v1", cells, fitted)}


def table_of(name: str, n_rows: int) -> tuple[Array, NDArray[Any], Array, NDArray[Any]]:
    """Inputs and targets to learn from, and those to predict."""
    rng, n = np.random.default_rng(SEED), n_rows + N_NEW
    if name == "weak classes":
        X = rng.standard_normal((n, 15))
        f = X[:, :3] @ [0.6, -0.4, 0.3] + 0.8 * np.sin(1.5 * X[:, 3]) - 2.0
        y: NDArray[Any] = (rng.random(n) < 1.0 / (1.0 + np.exp(-f))).astype(int)
    elif name in ("weak numbers", "friedman"):
        X, y = make_friedman1(n, 10, noise=20.0 if name == "weak numbers" else 1.0, random_state=0)
    else:
        frame = load_named(name)
        X = np.column_stack([c.values for c in frame.columns if c.name != TARGET]).astype(float)
        y = frame.column(TARGET).values
        order = rng.permutation(len(y))[:n]
        X, y = X[order], y[order]
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def fitted(name: str, is_class: bool, method: str, n_rows: int) -> list[dict[str, Any]]:
    """Fit one table by one method."""
    X, y, X_new, y_new = table_of(name, n_rows)
    if is_class:
        seen = np.isin(y_new, y)  # a class of a few rows may be missing
        X_new, y_new = X_new[seen], y_new[seen]
    else:
        y, y_new = (y - y.mean()) / y.std(), (y_new - y.mean()) / y.std()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row = _boosted if method == "gradient boosting" else _by_bank
        found = row(is_class, method, X, y, X_new, y_new)
    return [{"data": name, "method": method, **found}]


def _by_bank(
    is_class: bool, method: str, X: Array, y: Array, X_new: Array, y_new: Array
) -> dict[str, Any]:
    make = BaNKClassifier if is_class else BaNKRegressor
    number = method if method == "auto" else int(method)
    some = np.concatenate([np.flatnonzero(y == label)[:9] for label in np.unique(y)])[:200]
    quick = make(random_state=SEED, progress=False, n_draws=2, n_warmup=2, n_chains=1)
    quick.fit(X[some], y[some])  # compiles
    model = make(random_state=SEED, progress=False, n_jobs=1, n_frequencies=number)
    begin = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - begin
    if is_class:
        scores, error = _of_classes(model, X_new, y_new)
    else:
        scores = -model.predictive(X_new).log_density(y_new)
        error = float(np.mean((model.predict(X_new) - y_new) ** 2))
    return _row(seconds, scores, error) | {"frequencies": int(model.n_frequencies_)}


def _boosted(
    is_class: bool, method: str, X: Array, y: Array, X_new: Array, y_new: Array
) -> dict[str, Any]:
    begin = time.process_time()
    if is_class:
        model = HistGradientBoostingClassifier(random_state=SEED).fit(X, y)
        seconds = time.process_time() - begin
        return _row(seconds, *_of_classes(model, X_new, y_new)) | {"frequencies": None}
    make, kept = HistGradientBoostingRegressor, len(y) * 4 // 5
    part = make(random_state=SEED).fit(X[:kept], y[:kept])
    spread = float(np.sqrt(np.mean((part.predict(X[kept:]) - y[kept:]) ** 2)))
    mean = make(random_state=SEED).fit(X, y).predict(X_new)
    seconds = time.process_time() - begin
    error = float(np.mean((mean - y_new) ** 2))
    return _row(seconds, -norm.logpdf(y_new, mean, spread), error) | {"frequencies": None}


def _of_classes(model: Any, X_new: Array, y_new: Array) -> tuple[Array, float]:
    proba = model.predict_proba(X_new)
    of_labels = proba[np.arange(len(y_new)), np.searchsorted(model.classes_, y_new)]
    error = float(np.mean(model.classes_[proba.argmax(axis=1)] != y_new))
    return -np.log(np.maximum(of_labels, 1e-12)), error


def _row(seconds: float, scores: Array, error: float) -> dict[str, Any]:
    return {
        "cpu_seconds": float(f"{seconds:.3g}"),
        "log_score": float(f"{scores.mean():.4g}"),
        "log_score_se": float(f"{scores.std() / np.sqrt(len(scores)):.2g}"),
        "error": float(f"{error:.4g}"),
    }
