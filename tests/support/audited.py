"""A tiny fitted kernel Gibbs classifier with a few wrong labels, for reports and plots."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from mercer import KernelGibbsClassifier

__all__ = ["WRONG", "audited", "two_clusters"]

WRONG = (5, 12)
_TINY: dict[str, Any] = {
    "lengthscale": "median",
    "nugget": 0.0,
    "n_draws": 20,
    "n_warmup": 20,
    "n_chains": 2,
    "random_state": 0,
}


def two_clusters(n: int = 40, d: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Two clusters, far apart, "no" and "yes" in turn; flipped labels in their midst: `WRONG`."""
    rng = np.random.default_rng(6)
    kind = np.arange(n) % 2
    X = 0.7 * rng.standard_normal((n, d))
    X[list(WRONG)] = 0.0
    X[:, 0] += 5.0 * kind - 2.5
    labels = np.array(["no", "yes"])[kind]
    labels[list(WRONG)] = np.array(["no", "yes"])[1 - kind[list(WRONG)]]
    return X, labels


@functools.cache
def audited(*, d: int = 2, **settings: Any) -> KernelGibbsClassifier:
    """Fit once for each set of settings; read only."""
    X, y = two_clusters(d=d)
    return KernelGibbsClassifier(**{**_TINY, **settings}).fit(X, y)
