"""The methods of Oliva et al., Table 1, and three that everybody knows.

Every method chooses its own settings from the training rows, as the paper's do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer.baselines.a_la_carte import AlaCarteRegressor
from mercer.baselines.base import RandomFeatureRegressor
from mercer.baselines.random_features import MKLRegressor, RKSRegressor
from reproduce.papers.spectral_folds import Fold

__all__ = ["HOUR_A_SET", "METHODS", "NORMAL_NOISE", "PAPER_CHAIN", "Method", "Prediction"]

Array = NDArray[np.float64]

LEVEL = 0.9
#: Column of BaNK with the paper's law of noise.
NORMAL_NOISE = "BaNK, normal noise"
#: Column of the chain as the paper has it, and its limit: seconds a fold, an hour for five.
PAPER_CHAIN, HOUR_A_SET = "BaNK, the paper's chain", 720.0
_SEED = 0
# Above so many training rows a GP is left out.
_LARGEST_GP = 1500
# From so many training rows, BaNK has one chain of 60 draws: four of 100 take minutes a fold.
_MANY_ROWS = 5000
# Settings of gradient boosting are chosen on so many rows, as those of RKS and MKL are.
_SELECTION_ROWS = 10_000
_RATES, _LEAVES, _LARGEST_ENSEMBLE = (0.05, 0.1), (15, 31), 500


@dataclass(frozen=True, eq=False)
class Prediction:
    """Of test rows: means, and bounds of 90 % intervals where the method has them."""

    mean: Array
    lower: Array | None = None
    upper: Array | None = None


@dataclass(frozen=True)
class Method:
    """A column of the table.

    Attributes
    ----------
    key : str
        In names of files.
    name : str
        In tables.
    run : callable
        (fold, is_quick, n_jobs) -> Prediction.
    largest : int or None
        Training rows beyond which it is left out.
    """

    key: str
    name: str
    run: Callable[[Fold, bool, int | None], Prediction]
    largest: int | None = None


def _random_features(make: Callable[..., RandomFeatureRegressor]) -> Any:
    def run(fold: Fold, is_quick: bool, n_jobs: int | None) -> Prediction:
        """Inputs standardised or as they are, whichever cross-validates better."""
        size = {"n_features": 96} if is_quick else {}
        fitted = [
            make(standardize=standardize, random_state=_SEED, **size).fit(fold.X, fold.y)
            for standardize in ("auto", False)
        ]
        best = min(fitted, key=lambda model: float(model.cv_errors_.min()))
        return Prediction(best.predict(fold.X_test))

    return run


def _a_la_carte(fold: Fold, is_quick: bool, n_jobs: int | None) -> Prediction:
    model = AlaCarteRegressor(random_state=_SEED)
    if is_quick:
        model.set_params(components=(2,), frequencies_each=(12,), max_iter=30)
    return Prediction(model.fit(fold.X, fold.y).predict(fold.X_test))


def _bank(fold: Fold, is_quick: bool, n_jobs: int | None, noise: str = "auto") -> Prediction:
    from mercer.spectral.estimator import BaNKRegressor

    model = BaNKRegressor(noise=noise, random_state=_SEED, n_jobs=n_jobs, progress=False)
    if len(fold.y) >= _MANY_ROWS:
        model.set_params(n_chains=1, n_draws=60)
    if is_quick:
        model.set_params(n_frequencies=24, n_draws=20, n_warmup=10, n_chains=1)
    model.fit(fold.X, fold.y)
    lower, upper = model.predict_interval(fold.X_test, level=LEVEL)
    return Prediction(model.predict(fold.X_test), lower, upper)


def _paper_chain(fold: Fold, is_quick: bool, n_jobs: int | None) -> Prediction:
    """384 frequencies, 150 sweeps of the paper's chain, or as many as its time allows."""
    from mercer.spectral.estimator import BaNKRegressor

    model = BaNKRegressor.paper().set_params(
        random_state=_SEED, n_jobs=n_jobs, progress=False, max_seconds=HOUR_A_SET
    )
    if is_quick:
        model.set_params(n_frequencies=24, n_draws=20, n_warmup=10)
    model.fit(fold.X, fold.y)
    lower, upper = model.predict_interval(fold.X_test, level=LEVEL)
    return Prediction(model.predict(fold.X_test), lower, upper)


def _boosting(fold: Fold, is_quick: bool, n_jobs: int | None) -> Prediction:
    """Learning rate, leaves and number of trees by cross-validation, no early stopping."""
    n_trees = 30 if is_quick else _LARGEST_ENSEMBLE
    rows = np.arange(len(fold.y))
    if len(rows) > _SELECTION_ROWS:
        rows = np.random.default_rng(_SEED).choice(len(rows), _SELECTION_ROWS, replace=False)
    grid = [(rate, leaves) for rate in _RATES for leaves in _LEAVES]
    grid = grid[-2:-1] if is_quick else grid
    errors = np.array([_staged_errors(fold.X[rows], fold.y[rows], n_trees, *g) for g in grid])
    which, stage = divmod(int(np.argmin(errors)), n_trees)
    model = _trees(stage + 1, *grid[which]).fit(fold.X, fold.y)
    return Prediction(model.predict(fold.X_test))


def _trees(n_trees: int, rate: float, leaves: int) -> HistGradientBoostingRegressor:
    return HistGradientBoostingRegressor(
        learning_rate=rate, max_leaf_nodes=leaves, max_iter=n_trees, early_stopping=False,
        random_state=_SEED,
    )  # fmt: skip


def _staged_errors(X: Array, y: Array, n_trees: int, rate: float, leaves: int) -> Array:
    """Mean squared errors of three folds, one for each number of trees: shape (n_trees,)."""
    errors = np.zeros(n_trees)
    for train, test in KFold(3, shuffle=True, random_state=_SEED).split(X):
        model = _trees(n_trees, rate, leaves).fit(X[train], y[train])
        for k, u in enumerate(model.staged_predict(X[test])):
            errors[k] += ((u - y[test]) ** 2).sum()
    return errors / len(y)


def _gaussian_process(fold: Fold, is_quick: bool, n_jobs: int | None) -> Prediction:
    d = fold.X.shape[1]
    covariance = ConstantKernel(1.0, (1e-3, 1e4)) * RBF(np.full(d, d**0.5), (1e-2, 1e4))
    process = GaussianProcessRegressor(
        covariance + WhiteKernel(0.05, (1e-8, 1e1)), random_state=_SEED
    )
    model = make_pipeline(StandardScaler(), process).fit(fold.X, fold.y)
    mean, std = model.predict(fold.X_test, return_std=True)
    reach = norm.ppf(0.5 + LEVEL / 2.0) * std
    return Prediction(mean, mean - reach, mean + reach)


def _ridge(fold: Fold, is_quick: bool, n_jobs: int | None) -> Prediction:
    model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-6.0, 4.0, 21)))
    return Prediction(model.fit(fold.X, fold.y).predict(fold.X_test))


METHODS = (
    Method("rks", "RKS", _random_features(RKSRegressor)),
    Method("mkl", "MKL", _random_features(MKLRegressor)),
    Method("alac", "AlaC", _a_la_carte),
    Method("bank", "BaNK", _bank),
    Method("bank-normal", NORMAL_NOISE, partial(_bank, noise="normal")),
    Method("bank-paper", PAPER_CHAIN, _paper_chain),
    Method("boosting", "gradient boosting", _boosting),
    Method("gp", "GP, ARD", _gaussian_process, _LARGEST_GP),
    Method("ridge", "ridge regression", _ridge),
)
