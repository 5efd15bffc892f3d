"""Rivals of sequential kernel regression: support and relevance vectors, Gaussian processes.

All standardise the target by the training rows. Widths are w of exp(-r^2 / w^2).
"""

from __future__ import annotations

import importlib.util
import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.svm import SVR

from reproduce.papers.basis_answer import LEVEL, Answer, Problem

__all__ = [
    "MISSING_RVM",
    "RVM_NOTE",
    "gaussian_process",
    "has_rvm",
    "relevance_vectors",
    "support_vectors",
]

Array = NDArray[np.float64]

MISSING_RVM = "not run: fastrvm is not installed"
RVM_NOTE = f"RVM: {MISSING_RVM} (`pip install fastrvm`)."
# Widths to choose among, in units of the paper's.
_FACTORS = 2.0 ** np.arange(-1.5, 2.01, 0.5)
_COSTS, _TUBES = (1.0, 10.0, 100.0, 1000.0), (0.05, 0.1, 0.2, 0.4)
_REACH = norm.ppf(0.5 + LEVEL / 2.0)


def has_rvm() -> bool:
    """Whether the package of the relevance vector machine is installed."""
    return importlib.util.find_spec("fastrvm") is not None


def support_vectors(problem: Problem, width: float, *, is_quick: bool = False) -> Answer:
    """SVR: width (around the one given), cost and tube by five-fold cross-validation."""
    X, y, X_test = problem.X, problem.y, problem.X_test
    centre, scale = y.mean(), y.std()
    gammas = 1.0 / (width * _FACTORS) ** 2
    grid = {"gamma": gammas[2:5], "C": _COSTS[1:2]} if is_quick else {"gamma": gammas, "C": _COSTS}
    search = GridSearchCV(
        SVR(), {**grid, "epsilon": _TUBES}, cv=_folds(), scoring="neg_mean_squared_error"
    )
    model = search.fit(X, (y - centre) / scale).best_estimator_
    return Answer(centre + scale * model.predict(X_test), n_kernels=len(model.support_))


def relevance_vectors(
    problem: Problem, width: float, *, is_chosen: bool, is_quick: bool = False
) -> Answer:
    """RVM by fast marginal likelihood, of that width or one around it by cross-validation."""
    X, y, X_test = problem.X, problem.y, problem.X_test
    centre, scale = y.mean(), y.std()
    z = (y - centre) / scale
    if is_chosen:
        widths = width * _FACTORS[2:5] if is_quick else width * _FACTORS
        width = float(min(widths, key=lambda each: _cross_validated(X, z, each)))
    model = _rvm(width).fit(X, z)
    mean, std = model.predict(X_test, return_std=True)
    noise = 1.0 / math.sqrt(float(model.beta_))
    return _normal(mean, std, noise, centre, scale, float(model.n_relevance_))


def gaussian_process(problem: Problem, width: float, *, kind: str = "isotropic") -> Answer:
    """GP by maximum likelihood.

    Parameters
    ----------
    kind : {"isotropic", "ard", "fixed"}
        One length scale, one for each input, or the width that is given.
    """
    X, y, X_test = problem.X, problem.y, problem.X_test
    d = X.shape[1]
    centre, scale = y.mean(), y.std()
    start = width / math.sqrt(2.0)
    bounds: Any = "fixed" if kind == "fixed" else (1e-2 * start, 1e3 * start)
    bell = RBF(np.full(d, start) if kind == "ard" else start, bounds)
    covariance = ConstantKernel(1.0, (1e-3, 1e4)) * bell + WhiteKernel(0.1, (1e-6, 1e1))
    with warnings.catch_warnings():
        # Length scales at their bound: inputs that do not matter.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = GaussianProcessRegressor(covariance, random_state=0).fit(X, (y - centre) / scale)
    mean, std = model.predict(X_test, return_std=True)
    noise = math.sqrt(model.kernel_.k2.noise_level)
    return _normal(mean, std, noise, centre, scale, float(len(y)))


def _normal(
    mean: Array, std: Array, noise: float, centre: float, scale: float, n_kernels: float
) -> Answer:
    """Intervals of a normal law whose standard deviations hold the noise."""
    without = np.sqrt(np.maximum(std**2 - noise**2, 0.0))
    bands = [
        (centre + scale * (mean - _REACH * each), centre + scale * (mean + _REACH * each))
        for each in (without, std)
    ]
    return Answer(centre + scale * mean, n_kernels, scale * noise, *bands)


def _rvm(width: float) -> Any:
    from fastrvm import RVR

    return RVR(kernel="rbf", gamma=1.0 / width**2, fit_intercept=True)


def _cross_validated(X: Array, z: Array, width: float) -> float:
    squares = 0.0
    for train, test in _folds().split(X):
        model = _rvm(width).fit(X[train], z[train])
        squares += float(((model.predict(X[test]) - z[test]) ** 2).sum())
    return squares


def _folds() -> KFold:
    return KFold(5, shuffle=True, random_state=0)
