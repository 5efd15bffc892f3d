"""Tiny fits of `SequentialKernelClassifier`, and rows for its streams."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.basis.classifier import SequentialKernelClassifier
from mercer.sampling.checkpoint import pack

TINY: dict[str, Any] = {
    "n_particles": 30,
    "expected_centres": 5.0,
    "max_centres": 8,
    "max_candidates": 16,
    "random_state": 0,
    "progress": False,
}
# As the paper has it for numbers, in little.
PAPER: dict[str, Any] = {
    "lengthscale": 3.0,
    "expected_centres": 1.0,
    "centres_prior": "poisson",
    "linear_part": False,
}
# Rows are held back, candidates make room for others, and rows leave.
LITTLE: dict[str, Any] = {
    **TINY, "n_particles": 12, "max_candidates": 6, "scale_rows": 10, "n_buffered": 16
}  # fmt: skip
NAMES = np.array(["ash", "birch", "cedar", "fir"])


def tiny(**own: Any) -> SequentialKernelClassifier:
    """An unfitted classifier of few particles and centres."""
    return SequentialKernelClassifier(**{**TINY, **own})


def little(**own: Any) -> SequentialKernelClassifier:
    """One whose buffers are full after a few rows."""
    return SequentialKernelClassifier(**{**LITTLE, **own})


def make_rows(n: int, n_classes: int = 2, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sectors of a plane, one a class, around a point that is not the origin."""
    rng = np.random.default_rng(seed)
    X = 3.0 * rng.standard_normal((n, 2)) + 10.0
    angle = np.arctan2(X[:, 1] - 10.0, X[:, 0] - 10.0) + np.pi
    return X, NAMES[np.minimum((angle / (2 * np.pi) * n_classes).astype(int), n_classes - 1)]


def bits(model: SequentialKernelClassifier) -> dict[str, bytes]:
    """All that the next row depends on, and what was held back."""
    learner = model._learner
    held = {"X": np.array(learner.held_X).tobytes(), "y": np.array(learner.held_y).tobytes()}
    if learner.running is None:
        return held
    running = learner.running
    state = {name: array.tobytes() for name, array in pack(running.state, "").items()}
    return {**held, **state, "rng": repr(running.rng.bit_generator.state).encode()}
