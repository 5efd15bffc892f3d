"""GPClassifier beside its peers on the same five folds: log score, errors, seconds.

The default averages over hyperparameters and kernels. The nearest peer of one kernel is
scikit-learn's GaussianProcessClassifier (Laplace's approximation, hyperparameters optimised);
beside it logistic regression and gradient boosting. CPU seconds, one thread each. Simulated data,
and breast cancer (first 300 rows), which scikit-learn ships.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from mercer import GPClassifier
from mercer.posterior.scores import error_rate, log_score

SEED = 0


def run() -> dict[str, object]:
    """Mean over folds of each score, seconds of fitting and predicting."""
    X, y = make_classification(300, 8, n_informative=4, n_redundant=0, flip_y=0.1, random_state=0)
    X_cancer, y_cancer = load_breast_cancer(return_X_y=True)
    data = {
        "make_classification_300_v1": (X, y),
        "breast_cancer_300_v1": (X_cancer[:300], y_cancer[:300]),
    }
    rows = []
    with threadpool_limits(limits=1):
        for name, (inputs, labels) in data.items():
            for method, model in _models(inputs.shape[1]).items():
                rows.append({"data": name, "method": method, **_score(model, inputs, labels)})
    return {"n_folds": 5, "rows": rows}


def _models(d: int) -> dict[str, Any]:
    ard = ConstantKernel(1.0, (1e-3, 1e4)) * RBF(np.ones(d), (1e-2, 1e3))
    return {
        "mercer GPClassifier, default": GPClassifier(random_state=0, progress=False),
        'mercer GPClassifier, kernel="rbf"': GPClassifier(
            kernel="rbf", random_state=0, progress=False
        ),
        'mercer GPClassifier, kernel="rbf", map': GPClassifier(kernel="rbf", inference="map"),
        "scikit-learn GaussianProcessClassifier, ARD": make_pipeline(
            StandardScaler(), GaussianProcessClassifier(ard, random_state=0)
        ),
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "histogram gradient boosting": HistGradientBoostingClassifier(random_state=0),
    }


def _score(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    errors, scores, fit_seconds, predict_seconds = [], [], [], []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=SEED).split(X, y):
        fold = clone(model)
        begin = time.process_time()
        fold.fit(X[train], y[train])
        middle = time.process_time()
        proba = fold.predict_proba(X[test])
        predict_seconds.append(time.process_time() - middle)
        fit_seconds.append(middle - begin)
        errors.append(error_rate(y[test], proba))
        scores.append(log_score(y[test], proba))
    return {
        "error_rate": round(float(np.mean(errors)), 4),
        "log_score": round(float(np.mean(scores)), 4),
        "log_score_standard_error": round(float(np.std(scores, ddof=1) / np.sqrt(5)), 4),
        "fit_seconds": round(float(np.median(fit_seconds)), 3),
        "predict_seconds": round(float(np.median(predict_seconds)), 3),
    }
