"""Tiny fits of `SequentialKernelRegressor`."""

from __future__ import annotations

from typing import Any

from mercer.basis.estimator import SequentialKernelRegressor

TINY: dict[str, Any] = {
    "n_particles": 30,
    "expected_centres": 5.0,
    "max_centres": 8,
    "random_state": 0,
    "progress": False,
}
# As the paper has it, in little.
PAPER: dict[str, Any] = {
    "lengthscale": 1.0,
    "expected_centres": 1.0,
    "centres_prior": "poisson",
    "variances": "sampled",
}


def tiny(**own: Any) -> SequentialKernelRegressor:
    """An unfitted regressor of few particles and centres."""
    return SequentialKernelRegressor(**{**TINY, **own})
