"""Several classes by default settings, in CPU seconds, beside scikit-learn's classifiers.

* Wine, 120 rows of three classes and 13 inputs; digits, 300 and 1297 rows of ten classes and 64
  inputs, three of which are constant. One split each, stratified; the other rows, of digits 500 of
  them, are predicted at once.
* scikit-learn's Gaussian process has one function for each class against the others, and a length
  scale for each input, at the maximum; of 1297 rows it is left out. Logistic regression has its
  defaults. Inputs of both are standardised.

Loops are compiled, and modules loaded, before the clock starts. One BLAS thread.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from mercer import BaNKClassifier, GPClassifier, KernelGibbsClassifier
from reproduce.cells import measured

SEED = 0
DATA = {"wine": load_wine, "digits": load_digits}
#: Rows that are learned from, and whether scikit-learn's Gaussian process is.
SIZES = (("wine", 120, True), ("digits", 300, True), ("digits", 1297, False))
_MOST_TEST = 500


def run() -> dict[str, object]:
    """Fit and predict all."""
    cells = [(name, n, int(has_peer)) for name, n, has_peer in SIZES]
    return {"rows": measured("seconds-classes-v1", cells, fitted)}


def fitted(name: str, n: int, has_peer: int) -> list[dict[str, Any]]:
    """Fit a table by each method: seconds, error and log score."""
    X, y = DATA[name](return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, train_size=n, stratify=y, random_state=SEED)
    X_test, y_test = X_test[:_MOST_TEST], y_test[:_MOST_TEST]
    common: dict[str, Any] = {"random_state": SEED, "progress": False}
    kernel = ConstantKernel(1.0, (1e-4, 1e8)) * RBF(np.ones(X.shape[1]), (1e-3, 1e6))
    methods: dict[str, Callable[[], Any]] = {
        "gp": lambda: GPClassifier(**common),
        "gp, maximum": lambda: GPClassifier(**common, inference="map"),
        "sphere": lambda: KernelGibbsClassifier(**common),
        "spectral": lambda: BaNKClassifier(**common),
        "scikit-learn, Gaussian process": lambda: make_pipeline(
            StandardScaler(), GaussianProcessClassifier(kernel, random_state=SEED)
        ),
        "scikit-learn, logistic regression": lambda: make_pipeline(
            StandardScaler(), LogisticRegression(max_iter=1000)
        ),
    }
    if not has_peer:
        del methods["scikit-learn, Gaussian process"], methods["gp, maximum"]
    rows, few = [], np.concatenate([np.flatnonzero(y == c)[:4] for c in np.unique(y)])
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, make in methods.items():
            make().fit(X[few], y[few]).predict_proba(X_test[:2])
            begin = time.process_time()
            model = make().fit(X, y)
            middle = time.process_time()
            proba = model.predict_proba(X_test)
            end = time.process_time()
            rows.append(
                {
                    "data": f"{name}, {n} rows",
                    "method": method,
                    "fit_seconds": float(f"{middle - begin:.3g}"),
                    "predict_seconds": float(f"{end - middle:.3g}"),
                    "error": round(float((proba.argmax(axis=1) != y_test).mean()), 4),
                    "log_score": round(
                        float(-np.log(proba[np.arange(len(y_test)), y_test]).mean()), 4
                    ),
                }
            )
    return rows
