"""GP-3, G1: Laplace's log evidence agrees with the exact one to second order in the variance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mercer.gp.laplace import fit_laplace
from support.gp_cases import exact_evidence, log_det_half, plain_gram, plain_log_evidence, problem

Evidence = Callable[[np.ndarray, np.ndarray], float]


def laplace(K: np.ndarray, y: np.ndarray) -> float:
    return fit_laplace(K, y).log_evidence


def laplace_without_determinant(K: np.ndarray, y: np.ndarray) -> float:
    fit = fit_laplace(K, y)
    return fit.log_evidence + log_det_half(K, fit.f)


def slope(evidence: Evidence, n: int) -> float:
    """Slope of log |Laplace - exact| in log v0 as v0 -> 0."""
    X, _ = problem(n, 1)
    y = np.array([1.0, 0.0, 1.0])[:n]
    log_v0 = np.linspace(-6.0, -3.5, 6)
    errors = []
    for value in log_v0:
        K = plain_gram(np.array([value, 0.0]), X)
        errors.append(abs(evidence(K, y) - np.log(exact_evidence(K, y))))
    return float(np.polyfit(log_v0, np.log(errors), 1)[0])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_gp_3_small_variance(n: int) -> None:
    assert 1.8 <= slope(laplace, n) <= 2.1


def test_gp_3_small_variance_sees_a_missing_determinant() -> None:
    assert slope(laplace_without_determinant, 2) < 1.2


def test_gp_3_evidence_against_a_plain_one() -> None:
    for n in (2, 9, 30):
        X, y = problem(n, 2)
        for log_v0 in (-3.0, 0.0, 3.0, 6.0):
            K = plain_gram(np.array([log_v0, 0.3, -1.0]), X)
            assert laplace(K, y) == pytest.approx(plain_log_evidence(K, y), rel=1e-10)
