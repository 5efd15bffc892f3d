"""Folds that weigh the draws of the model on all rows, beside folds that are fitted anew.

``mercer fit`` scores a Gaussian process by ten folds that start from what the fit to all rows has
left. Here each of the same folds is also fitted without that, kernels compared anew: held-out log
scores (nats, lower is better) of both, their difference by row with its standard error over rows,
and CPU seconds of the ten fits and predictions. Tables of scikit-learn, two of them simulated. One
BLAS thread; loops are compiled before the clock starts.
"""

from __future__ import annotations

import time
import warnings
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
from sklearn.model_selection import KFold, StratifiedKFold
from threadpoolctl import threadpool_limits

from mercer import GPClassifier, GPRegressor
from mercer.estimation.cross_validate import for_folds, maker_of
from mercer.estimation.inspection import losses_of
from reproduce.cells import measured

SEED = 0
N_FOLDS = 10
TABLES = ("iris", "wine", "breast cancer", "four classes", "diabetes", "friedman")
NUMBERS = ("diabetes", "friedman")

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Score all tables both ways."""
    return {"rows": measured("gp-folds-v1", [(name, N_FOLDS) for name in TABLES], scored)}


def scored(name: str, n_folds: int) -> list[dict[str, Any]]:
    """Log scores and seconds of folds that weigh draws, and of folds fitted anew."""
    X, y = _table(name)
    estimator = (GPRegressor if name in NUMBERS else GPClassifier)(
        random_state=SEED, progress=False
    )
    kind = KFold if name in NUMBERS else StratifiedKFold
    folds = list(kind(n_folds, shuffle=True, random_state=SEED).split(X, y))
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator.fit(X, y)
        weighed, seconds = _held_out(maker_of(for_folds(estimator), model._left), X, y, folds)
        anew, seconds_anew = _held_out(maker_of(for_folds(estimator)), X, y, folds)
    gaps = weighed - anew
    return [
        {
            "data": name,
            "n": len(y),
            "d": X.shape[1],
            "weighed": round(float(weighed.mean()), 4),
            "anew": round(float(anew.mean()), 4),
            "gap": round(float(gaps.mean()), 4),
            "gap_se": round(float(gaps.std(ddof=1) / np.sqrt(len(gaps))), 4),
            "seconds": round(seconds, 1),
            "seconds_anew": round(seconds_anew, 1),
        }
    ]


def _held_out(make: Any, X: Array, y: NDArray[Any], folds: list[Any]) -> tuple[Array, float]:
    """Losses of all rows, each by the fold that held it out, and CPU seconds."""
    losses, begin = np.empty(len(y)), time.process_time()
    for train, test in folds:
        model = make(len(train), len(train)).fit(X[train], y[train])
        losses[test] = losses_of(model, X[test], y[test])[0]
    return losses, time.process_time() - begin


def _table(name: str) -> tuple[Array, NDArray[Any]]:
    if name == "four classes":
        return make_classification(  # type: ignore[no-any-return]
            500, 8, n_informative=5, n_redundant=0, n_classes=4, random_state=3
        )
    if name == "friedman":
        return make_friedman1(300, 10, noise=1.0, random_state=SEED)  # type: ignore[no-any-return]
    load = {
        "iris": load_iris,
        "wine": load_wine,
        "breast cancer": load_breast_cancer,
        "diabetes": load_diabetes,
    }[name]
    return load(return_X_y=True)  # type: ignore[no-any-return]
