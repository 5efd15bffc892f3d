"""The most probable hyperparameters beside scikit-learn's GaussianProcessClassifier.

`make_classification(1000, 10)`, standardised, three sets. Both maximise Laplace's evidence over a
variance and ten length scales, mercer with ``inference="map"`` and scikit-learn with
``n_restarts_optimizer=0``, each from its own start. mercer maximises evidence times prior; its
prior is all but flat here, with a standard deviation of 99 of each log parameter, so that both have
the same objective: it changes the logarithm by a thousandth or two. scikit-learn's bounds are wide.

Seconds, the two in turn, one thread; and the evidence, in nats, at both maxima by mercer's
`HyperparameterPosterior`. Targets: five times faster, at an evidence not lower by more than a
hundredth of a nat. A few minutes.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from threadpoolctl import threadpool_limits

from mercer import GPClassifier
from mercer.gp.hyperparameters import kernel_prior
from mercer.gp.laplace import HyperparameterPosterior
from mercer.kernels.stationary import SquaredExponentialARD
from reproduce.cells import measured

SEED = 0

SIZE = (1000, 10)
TARGETS = {"times_faster": 5.0, "nats_below": 0.01}
PRIOR = {"variance": (0.0, 99.0), "weight": (-8.0, 99.0)}
# Of which few rows are fitted first, so that nothing is compiled or loaded on the clock.
_N_BEFORE = 40

Array = NDArray[np.float64]
Rows = list[dict[str, Any]]


def run() -> dict[str, object]:
    """Measure three sets of rows."""
    return summary(rows_of(*SIZE, n_sets=3))


def rows_of(n: int, d: int, n_sets: int) -> Rows:
    """Fit both to several sets: a row for each set."""
    return measured("gp-map-v1", [(n, d, seed) for seed in range(n_sets)], _cell)


def summary(rows: Rows) -> dict[str, object]:
    """All rows, the median of seconds and ratios, and the least gain of evidence."""
    keys = ("mercer_seconds", "sklearn_seconds", "ratio")
    medians = {key: float(f"{np.median([row[key] for row in rows]):.4g}") for key in keys}
    gains = [row["mercer_evidence"] - row["sklearn_evidence"] for row in rows]
    return {
        "targets": TARGETS,
        **medians,
        "smallest_gain_of_evidence": round(min(gains), 3),
        "rows": rows,
    }


def _cell(n: int, d: int, seed: int) -> Rows:
    X, y = make_classification(
        n, d, n_informative=d // 2, n_redundant=0, flip_y=0.1, random_state=seed
    )
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    few = np.concatenate([np.flatnonzero(y == label)[: _N_BEFORE // 2] for label in (0, 1)])
    row: dict[str, Any] = {"n": n, "d": d, "seed": seed}
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a length scale at its bound
        for name, find in (("mercer", _mercer), ("sklearn", _sklearn)):
            find(X[few], y[few])
            begin = time.perf_counter()
            theta = find(X, y)
            row[f"{name}_seconds"] = float(f"{time.perf_counter() - begin:.4g}")
            row[f"{name}_evidence"] = round(evidence(X, y, theta), 4)
    row["ratio"] = float(f"{row['sklearn_seconds'] / row['mercer_seconds']:.4g}")
    return [row]


def evidence(X: Array, y: Array, theta: Array) -> float:
    """Laplace's log evidence, in nats, at theta = log(v0, w_1, .., w_d)."""
    kernel = SquaredExponentialARD()
    prior = kernel_prior(X.shape[1], PRIOR, kernel)
    point = HyperparameterPosterior(X, y.astype(np.float64), kernel, prior).evaluate(theta)
    return point.log_density - prior.log_density(theta)


def _mercer(X: Array, y: Array) -> Array:
    settings = {"kernel": "rbf", "inference": "map", "prior": PRIOR, "standardize": False}
    model = GPClassifier(**settings).fit(X, y)
    draws = model.posterior_
    return np.append(draws.flat("log_signal_variance"), draws.flat("log_weight"))


def _sklearn(X: Array, y: Array) -> Array:
    kernel = ConstantKernel(1.0, (1e-4, 1e8)) * RBF(np.ones(X.shape[1]), (1e-3, 1e6))
    fitted = GaussianProcessClassifier(kernel, n_restarts_optimizer=0).fit(X, y).kernel_
    return np.append(np.log(fitted.k1.constant_value), -2.0 * np.log(fitted.k2.length_scale))
