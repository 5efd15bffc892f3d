"""BNK-8: Laplace's evidence, eq. (13), which the paper names and leaves (trap B2).

A posterior of q coefficients gives q / 2 log 2 pi, here M log 2 pi; the paper prints n / 2. The
evidence by quadrature is what the samplers' chains have; Laplace's is near it and is not it.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_expit

from support.spectral_joint_moves import laplace_evidence

N, RIDGE = 40, 0.3
X = 1.5 * np.random.default_rng(18).standard_normal(N)
SIGN = np.where(np.sin(1.4 * X + 0.3) > 0.2 * np.cos(5.0 * X), 1.0, -1.0)
PRECISIONS = np.full(2, RIDGE)
TOLERANCE = 0.1  # of the evidence, in nats: seen 0.03


def features(w: float) -> np.ndarray:
    return np.column_stack([np.cos(w * X), np.sin(w * X)])


def quadrature(F: np.ndarray, n_nodes: int = 100) -> float:
    """Log evidence by Gauss and Hermite's rule."""
    x, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    beta = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2) / np.sqrt(RIDGE)
    prior = np.outer(weights, weights).ravel() / (2.0 * np.pi)
    return float(np.log(prior @ np.exp(log_expit(SIGN * (beta @ F.T)).sum(axis=1))))


@pytest.mark.parametrize("w", [0.3, 1.4, 2.5])
def test_bnk_8_laplace_evidence(w: float) -> None:
    F = features(w)
    error = laplace_evidence(F, SIGN, PRECISIONS) - quadrature(F)
    assert 1e-4 < abs(error) < TOLERANCE
    printed = error + (0.5 * N - 1.0) * np.log(2.0 * np.pi)  # the mutant
    assert abs(printed) > 10.0


@pytest.mark.parametrize(("now", "proposed"), [(0.3, 1.4), (1.4, 2.5), (0.9, 1.1)])
def test_bnk_8_laplace_acceptance(now: float, proposed: float) -> None:
    """The ratio that would decide is that of the evidences but for a small error."""
    old, new = features(now), features(proposed)
    found = laplace_evidence(new, SIGN, PRECISIONS) - laplace_evidence(old, SIGN, PRECISIONS)
    expected = quadrature(new) - quadrature(old)
    assert abs(found - expected) < 0.5 * TOLERANCE < 0.05 * abs(expected)
