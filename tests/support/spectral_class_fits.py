"""Tiny fits of `BaNKClassifier`."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.spectral.classifier import BaNKClassifier
from support.spectral_fits import TINY

NAMES = np.array(["ash", "birch", "cedar", "fir"])


def tiny(**own: Any) -> BaNKClassifier:
    """An unfitted classifier of few frequencies and draws, and of short trajectories."""
    return BaNKClassifier(**{**TINY, "n_leapfrog": 4, **own})


def waves(
    n: int = 80, d: int = 3, n_classes: int = 2, seed: int = 30
) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and labels that wave along the first input; some of them wrong."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    f = np.sin(2.0 * X[:, 0]) + 0.3 * X[:, -1] + 0.1 * rng.standard_normal(n)
    edges = np.quantile(f, np.arange(1, n_classes) / n_classes + 0.05)
    return X, NAMES[np.searchsorted(edges, f)]
