"""A table of few rows as steps of the driver, for the filters of `SequentialKernelRegressor`."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.basis.learner import BatchSampler
from mercer.basis.settings import FilterSettings

LITTLE: dict[str, Any] = {
    "kernel": "rbf",
    "lengthscale": (1.0, 0.5),
    "n_particles": 6,
    "expected_centres": 2.0,
    "max_centres": 3,
    "max_candidates": 7,
    "centres_prior": "poisson",
    "variances": "integrated",
    "linear_part": False,
    "resampling": "systematic",
    "forgetting": (1.0,),
}


def little(**own: Any) -> FilterSettings:
    """Settings of small filters."""
    return FilterSettings(**{**LITTLE, **own})


def make_batches(n_rows: int = 40, n_at_once: int = 4, **own: Any) -> BatchSampler:
    """Rows of a wave in two inputs; more of them than candidates."""
    rng = np.random.default_rng(5)
    Z = rng.standard_normal((n_rows, 2))
    y = np.sin(2.0 * Z[:, 0]) + 0.1 * rng.standard_normal(n_rows)
    settings = little(**own)
    ensemble = settings.ensemble(settings.grid(Z, y, 11), 11)
    return BatchSampler(ensemble, Z, y, n_at_once)
