"""Streams of rows for `SequentialKernelRegressor`, and what two of them must share."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.basis.estimator import SequentialKernelRegressor
from mercer.sampling.checkpoint import pack

#: Name -> arguments: with rows that leave, scales to be learned and candidates that retire.
STREAMS: dict[str, dict[str, Any]] = {
    "default": {},
    "retiring": {"max_candidates": 5},
    "retiring, two filters": {"max_candidates": 5, "forgetting": (1.0, 0.95)},
    "as in the paper": {"centres_prior": "poisson", "variances": "sampled", "lengthscale": 1.0},
    "linear part": {"linear_part": True, "kernel": "matern32"},
    "linear in one": {"linear_part": 1},
    "known scales": {"input_scale": 1.0, "target_scale": (0.0, 1.0)},
}


def make_stream(n_rows: int = 60, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Rows of two inputs and targets that wave along the first, noise of a tenth."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n_rows, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(n_rows)


def small(**own: Any) -> SequentialKernelRegressor:
    """An unfitted regressor of few particles that learns its scales from ten rows."""
    plan = {"n_particles": 12, "expected_centres": 3.0, "max_centres": 5, "scale_rows": 10}
    return SequentialKernelRegressor(**{**plan, "random_state": 0, "progress": False, **own})


def bits(model: SequentialKernelRegressor) -> dict[str, bytes]:
    """All that a regressor goes on with, as bytes."""
    learner = model._learner
    held = np.array(learner.held_X), np.array(learner.held_y)
    result = {f"held {i}": each.tobytes() for i, each in enumerate(held)}
    result["scores"] = np.array([learner.n_scored, learner.sum_log_density]).tobytes()
    if learner.running is not None:
        arrays = pack(learner.running.state, "state")
        result |= {name: array.tobytes() for name, array in arrays.items()}
        result["rng"] = repr(learner.running.rng.bit_generator.state).encode()
    return result
