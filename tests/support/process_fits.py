"""Tiny fits of `GPRegressor`, and posteriors of its hyperparameters."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from mercer.gp.fitting import GPSettings, RegressionSettings
from mercer.gp.gaussian import RegressionPosterior
from mercer.gp.regressor import GPRegressor
from support.spectral_fits import waves

TINY: dict[str, Any] = {
    "kernel": "rbf",
    "n_draws": 20,
    "n_warmup": 10,
    "n_chains": 1,
    "random_state": 0,
    "progress": False,
}
# As the paper has it, in little.
PAPER: dict[str, Any] = {
    "prior": "paper",
    "n_leapfrog": 3,
    "step_size": 0.1,
    "standardize": "std",
}
CHAIN = GPSettings("hmc", "wide", None, None)


def tiny(**own: Any) -> GPRegressor:
    """An unfitted regressor of few draws."""
    return GPRegressor(**{**TINY, **own})


def standardised(n: int, d: int, seed: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets with mean 0 and standard deviation 1."""
    X, y = waves(n, d, seed)
    return X - X.mean(axis=0), (y - y.mean()) / y.std()


def process_posterior(
    n: int, d: int, *, kernel: str = "rbf", log_noise: float | None = None
) -> RegressionPosterior:
    """The posterior with the default prior."""
    X, y = standardised(n, d)
    chain = dataclasses.replace(CHAIN, kernel=kernel)
    return RegressionSettings(chain, log_noise).posterior(X, y)


def process_thetas(d: int, count: int, *, has_noise: bool = True) -> np.ndarray:
    """Hyperparameters over all sizes that data can ask for."""
    rng = np.random.default_rng(7)
    columns = [rng.uniform(-3.0, 4.0, count), rng.uniform(-4.0, 1.5, (count, d))]
    if has_noise:
        columns.append(rng.uniform(-6.0, 1.0, count))
    return np.column_stack(columns)
