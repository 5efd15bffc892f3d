"""A table of few rows as steps of the driver, for the filters of `SequentialKernelClassifier`."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.basis.learner import BatchSampler, ClassSettings
from support.class_fits import NAMES, make_rows

LITTLE: dict[str, Any] = {
    "kernel": "rbf",
    "lengthscale": (1.0, 0.5),
    "n_particles": 6,
    "expected_centres": 2.0,
    "max_centres": 3,
    "max_candidates": 7,
    "centres_prior": "poisson",
    "linear_part": True,
    "resampling": "systematic",
    "n_buffered": 12,
}


def class_settings(**own: Any) -> ClassSettings:
    """Settings of small filters, from whose buffer rows leave."""
    return ClassSettings(**{**LITTLE, **own})


def make_class_batches(
    n_rows: int = 40, n_at_once: int = 4, n_classes: int = 2, **own: Any
) -> BatchSampler:
    """Rows of classes in two inputs; more of them than candidates, or than are held."""
    X, y = make_rows(n_rows, n_classes)
    settings, Z = class_settings(**own), (X - 10.0) / 3.0
    sticks = settings.sticks(settings.lengthscales(Z), 2, n_classes, 0, 11)
    return BatchSampler(sticks, Z, np.searchsorted(NAMES, y), n_at_once)
