from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel

from mercer.errors import UsageError
from mercer.kernels.linear import Polynomial

THETA = np.array([0.7])
X = np.random.default_rng(1).standard_normal((15, 4))

each_degree = pytest.mark.parametrize("degree", [1, 2, 3, 5])


def formula_error(seen: Polynomial, degree: int) -> float:
    # scikit-learn's scale of the product is 1 / d unless another is given
    expected = np.exp(THETA[0]) * polynomial_kernel(X, degree=degree)
    return float(np.abs(seen.gram(THETA, X) - expected).max() / expected.max())


@each_degree
def test_against_scikit_learn(degree: int) -> None:
    assert formula_error(Polynomial(degree), degree) < 1e-14
    cross = Polynomial(degree).cross_gram(THETA, X, X[:3])
    expected = np.exp(THETA[0]) * polynomial_kernel(X, X[:3], degree=degree)
    np.testing.assert_allclose(cross, expected, rtol=1e-12, atol=1e-12)


@each_degree
def test_sees_another_degree(degree: int) -> None:
    assert formula_error(Polynomial(degree + 1), degree) > 1e-1


def test_long_rows_are_shortened_and_keep_their_direction() -> None:
    longest = 2.0 * 1e50  # sqrt(d) 10^(100 / degree)
    direction = np.array([[0.6, 0.0, -0.8, 0.0]])
    kernel = Polynomial(2)
    at_limit = kernel.cross_gram(THETA, longest * direction, X)
    np.testing.assert_allclose(kernel.cross_gram(THETA, 1e90 * direction, X), at_limit, rtol=1e-12)
    plain = np.exp(THETA[0]) * (1.0 + longest * direction @ X.T / 4.0) ** 2
    np.testing.assert_allclose(at_limit, plain, rtol=1e-12)


def test_parameters_are_counted() -> None:
    assert Polynomial().n_parameters(5) == 1


@pytest.mark.parametrize("degree", [0, 21, 2.0, True, "2"])
def test_other_degrees_are_refused(degree: object) -> None:
    with pytest.raises(UsageError, match="degree"):
        Polynomial(degree)  # type: ignore[arg-type]
