from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import DotProduct

from mercer.kernels.linear import Linear

THETA = np.array([0.7])
X = np.random.default_rng(1).standard_normal((15, 4))


def formula_error(theta: np.ndarray) -> float:
    expected = np.exp(THETA[0]) * DotProduct(sigma_0=0.0)(X)
    return float(np.abs(Linear().gram(theta, X) - expected).max())


def test_against_scikit_learn() -> None:
    assert formula_error(THETA) < 1e-13
    cross = Linear().cross_gram(THETA, X, X[:3])
    expected = np.exp(THETA[0]) * DotProduct(sigma_0=0.0)(X, X[:3])
    np.testing.assert_allclose(cross, expected, rtol=1e-12, atol=1e-14)


def test_sees_a_standard_deviation_in_place_of_the_variance() -> None:
    assert formula_error(0.5 * THETA) > 1e-1


def test_products_of_features_are_the_gram_matrix() -> None:
    Phi = Linear().features(THETA, X)
    assert Phi.shape == X.shape
    np.testing.assert_allclose(Phi @ Phi.T, Linear().gram(THETA, X), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("d", [1, 7])
def test_parameters_are_counted(d: int) -> None:
    assert Linear().n_parameters(d) == 1
