"""GP-4: the exact evidence sums to one over all labels; with a probit link it is an orthant."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

from mercer.likelihoods.logistic import log_likelihood, success_probability
from support.gp_cases import exact_evidence, label_vectors, plain_gram, problem


def sum_over_labels(n: int, link) -> float:
    X, _ = problem(n, 1)
    K = plain_gram(np.array([1.0, 0.0]), X)
    return math.fsum(exact_evidence(K, y, link) for y in label_vectors(n))


def orthant_error(K: np.ndarray, used: np.ndarray) -> float:
    """Largest error over labels of the evidence of ``used`` against the orthants of K + I."""
    n, worst = len(K), 0.0
    total = K + np.eye(n)
    scale = np.sqrt(total.diagonal())
    correlation = total / np.outer(scale, scale)
    for y in label_vectors(n):
        s = 2.0 * y - 1.0
        angles = [math.asin(s[i] * s[j] * correlation[i, j]) for i in range(n) for j in range(i)]
        exact = {
            1: lambda angles: 0.5,
            2: lambda angles: 0.25 + sum(angles) / (2.0 * math.pi),
            3: lambda angles: 0.125 + sum(angles) / (4.0 * math.pi),
        }[n](angles)
        worst = max(worst, abs(exact_evidence(used, y, ndtr) - exact))
    return worst


@pytest.mark.parametrize("n", [1, 2, 3])
def test_gp_4_exact_evidence_sums_to_one(n: int) -> None:
    assert sum_over_labels(n, success_probability) == pytest.approx(1.0, abs=1e-10)


def test_gp_4_the_likelihood_is_the_log_of_the_link() -> None:
    f = np.linspace(-40.0, 40.0, 41)
    for y in (np.zeros(41), np.ones(41), np.arange(41.0) % 2):
        # p(y = 0 | f) is the link at -f: no cancellation.
        expected = np.log(success_probability(np.where(y == 1.0, f, -f))).sum()
        assert log_likelihood(y, np.ones(41), f) == pytest.approx(expected, rel=1e-13)


def test_gp_4_likelihood_sees_labels_of_the_wrong_code() -> None:
    f = np.linspace(-3.0, 3.0, 7)
    right = np.log(success_probability(f)).sum()
    assert log_likelihood(np.ones(7), np.ones(7), f) == pytest.approx(right)
    total = sum(np.exp(log_likelihood(np.array([y]), np.ones(1), f[:1])) for y in (-1.0, 1.0))
    assert abs(total - 1.0) > 0.1


@pytest.mark.parametrize("n", [1, 2, 3])
def test_gp_4_probit_evidence_is_an_orthant_probability(n: int) -> None:
    X, _ = problem(n, 1)
    K = plain_gram(np.array([0.5, 0.0]), X)
    assert orthant_error(K, K) < 1e-6


def test_gp_4_orthant_sees_a_kernel_without_its_correlations() -> None:
    X, _ = problem(2, 1)
    K = plain_gram(np.array([0.5, -1.0]), X)
    assert orthant_error(K, np.diag(K.diagonal())) > 1e-2
