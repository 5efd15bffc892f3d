"""A million rows of two classes, and what is fitted to them, each in a process of its own."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import BaNKClassifier
from mercer.posterior.scores import error_rate, log_score
from reproduce.workloads import friedman_rows_v1

__all__ = ["fit_features", "fit_mercer", "fit_trees"]

Array = NDArray[np.float64]

_TRAIN_PART, _TEST_PART = 1, 2
# The middle of Friedman's first function: log odds are its difference from there.
_MIDDLE = 14.4
# Widths times 1 / d, and penalties, tried on so many rows, scored on as many others.
_WIDTHS, _COSTS, _N_SELECTION = (0.03, 0.1, 0.3, 1.0), (1.0, 100.0), 10_000


def rows(n: int, part: int) -> tuple[Array, NDArray[np.int64], Array]:
    """Inputs (n, 20), classes (n,) and log odds (n,)."""
    X, _, f = friedman_rows_v1(n, part)
    odds = f - _MIDDLE
    y = np.random.default_rng([n, part]).random(n) < expit(odds)
    return X.astype(np.float64), y.astype(np.int64), odds


def fit_mercer(n: int, n_test: int, options: dict[str, Any]) -> dict[str, Any]:
    """Spectrum from some of the rows, coefficients from all."""
    X, y, _ = rows(n, _TRAIN_PART)
    begin = time.perf_counter()
    model = BaNKClassifier(random_state=0, n_jobs=2, progress=False, **options).fit(X, y)
    return {**_scores(model, begin, n_test), "notes": list(model.notes_)}


def fit_features(n: int, n_test: int, n_components: int) -> dict[str, Any]:
    """Logistic regression on `RBFSampler`'s features; the best width and penalty on some rows."""
    X, y, _ = rows(n, _TRAIN_PART)
    begin = time.perf_counter()
    some, others = slice(_N_SELECTION), slice(_N_SELECTION, 2 * _N_SELECTION)
    best, setting = np.inf, (_WIDTHS[0], _COSTS[0])
    for width in _WIDTHS:
        for cost in _COSTS:
            model = _features(width, cost, n_components).fit(X[some], y[some])
            score = log_score(y[others], model.predict_proba(X[others]))
            if score < best:
                best, setting = score, (width, cost)
    # More rows need as much less of a penalty.
    model = _features(*setting, n_components).fit(X, y)
    return {**_scores(model, begin, n_test), "width": setting[0], "cost": setting[1]}


def fit_trees(n: int, n_test: int, n_trees: int) -> dict[str, Any]:
    """Gradient boosting of histograms."""
    X, y, _ = rows(n, _TRAIN_PART)
    begin = time.perf_counter()
    model = HistGradientBoostingClassifier(max_iter=n_trees, random_state=0).fit(X, y)
    return _scores(model, begin, n_test)


def _features(width: float, cost: float, n_components: int) -> Any:
    features = RBFSampler(gamma=width / 20.0, n_components=n_components, random_state=0)
    machine = LogisticRegression(C=cost, max_iter=200)
    return make_pipeline(StandardScaler(), features, machine)


def _scores(model: Any, begin: float, n_test: int) -> dict[str, Any]:
    """Minutes since then, and scores of new rows; those of the law of the labels beside them."""
    minutes = (time.perf_counter() - begin) / 60.0
    X, y, odds = rows(n_test, _TEST_PART)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        p = model.predict_proba(X)
    best = -float(log_expit(np.where(y == 1, odds, -odds)).mean())
    return {
        "minutes": float(f"{minutes:.4g}"),
        "error_rate": round(error_rate(y, p), 5),
        "log_score": round(log_score(y, p), 5),
        "log_score_of_the_law": round(best, 5),
    }
