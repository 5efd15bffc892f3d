"""Folds, which want a quarter of the effective draws, beside folds that want as many as a model.

``mercer fit`` scores a Gaussian process by ten folds. Each is fitted to its own rows alone, as one
chain of 250 draws would be, and importance sampling makes fewer effective draws for it. Here each
is also fitted as the model is that is saved: held-out log scores (nats, lower is better) of both,
their difference by row with its standard error over rows, and CPU seconds of the ten fits and
predictions. The tables of ``gp-kernels-v3``, of at most 300 rows. One BLAS thread; loops are
compiled before the clock starts. Needs ``MERCER_DATA``.

In the first version folds began with the draws of the fit to all rows. Draws of single kernels
flattered: iris by .0032 nats a row (standard error .0008), diabetes .0038 (.0015).
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold
from threadpoolctl import threadpool_limits

from mercer import GPClassifier, GPRegressor
from mercer.estimation.cross_validate import for_folds
from mercer.estimation.inspection import losses_of
from reproduce.cells import measured
from reproduce.scenarios.gp_kernels_v3 import N_ROWS, NUMBERS, TABLES, table_of

SEED = 0
NEEDS_DATA = True
N_FOLDS = 10

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Score all tables both ways."""
    return {"rows": measured("gp-folds-v2", [(name, N_FOLDS) for name in TABLES], scored)}


def scored(name: str, n_folds: int) -> list[dict[str, Any]]:
    """Log scores and seconds of folds as they are, and of folds fitted as a model is."""
    is_number = name in NUMBERS
    X, y = table_of(name, N_ROWS)
    if not is_number:
        y = np.unique(y, return_inverse=True)[1]
    estimator: Any = (GPRegressor if is_number else GPClassifier)(random_state=SEED, progress=False)
    kind = (KFold if is_number else StratifiedKFold)(n_folds, shuffle=True, random_state=SEED)
    folds = list(kind.split(X, y))
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(X, y)
        short, seconds = _held_out(for_folds(estimator), X, y, folds)
        whole, seconds_whole = _held_out(estimator, X, y, folds)
    gaps = short - whole
    return [
        {
            "data": name,
            "n": len(y),
            "d": X.shape[1],
            "short": round(float(short.mean()), 4),
            "whole": round(float(whole.mean()), 4),
            "gap": round(float(gaps.mean()), 4),
            "gap_se": round(float(gaps.std(ddof=1) / np.sqrt(len(gaps))), 4),
            "seconds": round(seconds, 1),
            "seconds_whole": round(seconds_whole, 1),
        }
    ]


def _held_out(estimator: Any, X: Array, y: NDArray[Any], folds: list[Any]) -> tuple[Array, float]:
    """Losses of all rows, each by the fold that held it out, and CPU seconds."""
    losses, begin = np.empty(len(y)), time.process_time()
    for train, test in folds:
        model = clone(estimator).fit(X[train], y[train])
        losses[test] = losses_of(model, X[test], y[test])[0]
    return losses, time.process_time() - begin
