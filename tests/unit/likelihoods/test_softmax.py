from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from mercer.likelihoods.logistic import class_probabilities, one_hot
from mercer.likelihoods.logistic import softmax_log_likelihood as log_likelihood


def test_one_hot() -> None:
    expected = [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 1.0]]
    np.testing.assert_array_equal(one_hot(np.array([2, 0, 2]), 3), expected)


def test_far_out_nothing_overflows() -> None:
    f = np.array([[1e300, -800.0], [-1e300, 800.0]])
    np.testing.assert_array_equal(class_probabilities(f), np.eye(2))
    assert log_likelihood(np.array([[0.0], [1.0]]), np.array([[0.0], [-800.0]])) == -800.0


def test_against_a_library() -> None:
    f = np.random.default_rng(0).standard_normal((4, 9))
    Y = one_hot(np.arange(9) % 4, 4)
    np.testing.assert_allclose(class_probabilities(f), softmax(f, axis=0))
    expected = np.sum(Y * f) - logsumexp(f, axis=0).sum()
    assert log_likelihood(Y, f) == pytest.approx(expected, rel=1e-14)
