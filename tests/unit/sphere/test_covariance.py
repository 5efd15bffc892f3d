"""Kernels of every kind on one scale, with an intercept."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import DataError
from mercer.kernels.names import kernel_named
from mercer.sphere import space as module
from mercer.sphere.space import fit_covariance, median_distance, precomputed

X = np.random.default_rng(1).standard_normal((9, 2)) * [1.0, 5.0]
Z = np.random.default_rng(2).standard_normal((4, 2))


def plain(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return 3.0 + A @ B.T


class WithDiagonal:
    """As the kernels of scikit-learn are called."""

    def __call__(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return plain(A, B)

    def diag(self, A: np.ndarray) -> np.ndarray:
        return 3.0 + (A**2).sum(axis=1)


KERNELS = [kernel_named("rbf"), kernel_named("polynomial"), kernel_named("linear"), plain]


@pytest.mark.parametrize("kernel", [*KERNELS, WithDiagonal()])
def test_the_mean_variance_is_one_and_the_constant(kernel) -> None:
    C = fit_covariance(kernel, 2.0, X, 0.5)
    G = C.gram(X)
    assert np.mean(G.diagonal()) == pytest.approx(1.5)
    np.testing.assert_allclose(G, G.T)
    np.testing.assert_allclose(C.diagonal(X), G.diagonal())
    both = C.gram(np.vstack([X, Z]))
    np.testing.assert_allclose(C.cross(X, Z), both[:9, 9:])
    np.testing.assert_allclose(C.cross(X, Z), C.cross(Z, X).T)
    np.testing.assert_allclose(C.diagonal(Z), both.diagonal()[9:])
    assert fit_covariance(kernel, 2.0, X, 0.0).gram(X)[0, 1] == pytest.approx(G[0, 1] - 0.5)


def test_the_length_scale_is_in_units_of_the_input() -> None:
    C = fit_covariance(kernel_named("rbf"), 2.0, X, 0.0)
    expected = np.exp(-0.5 * ((X[:, np.newaxis] - X) ** 2).sum(axis=-1) / 4.0)
    np.testing.assert_allclose(C.gram(X), expected, atol=1e-12)


def test_kernels_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match=r"shape \(1,\) for 1 and 1 rows"):
        fit_covariance(lambda A, B: A[:, 0], None, X, 0.0)
    for variance in (-1.0, np.nan, np.inf):
        with pytest.raises(DataError, match="mean variance"):
            fit_covariance(lambda A, B, v=variance: np.full((len(A), len(B)), v), None, X, 1.0)


def test_rows_without_variance_have_the_intercept_alone() -> None:
    C = fit_covariance(kernel_named("linear"), None, np.zeros((3, 2)), 1.0)
    np.testing.assert_array_equal(C.gram(np.zeros((3, 2))), 1.0)
    with pytest.raises(DataError, match="mean variance of 0"):
        fit_covariance(kernel_named("linear"), None, np.zeros((3, 2)), 0.0)


def test_precomputed() -> None:
    G = plain(X, X)
    C = precomputed(G)
    np.testing.assert_allclose(C.gram(G), G / np.mean(G.diagonal()))
    np.testing.assert_allclose(C.cross(G[:2], G), C.gram(G)[:2])
    assert C.diagonal(G) is None
    with pytest.raises(DataError, match=r"square; got shape \(9, 8\)"):
        precomputed(G[:, :8])
    with pytest.raises(DataError, match="symmetric"):
        precomputed(G + np.triu(np.ones((9, 9)), 1))
    with pytest.raises(DataError, match="mean diagonal of 0"):
        precomputed(np.zeros((9, 9)))
    precomputed(G * (1.0 + 1e-9 * np.random.default_rng(3).standard_normal((9, 9))))  # rounding


def test_median_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    line = np.array([[0.0], [1.0], [3.0]])
    assert median_distance(line) == 2.0
    assert median_distance(np.repeat(line, 5, axis=0)) == 2.0  # copies have no distance
    assert median_distance(np.ones((4, 2))) == 1.0
    many = np.linspace(0.0, 1.0, 400)[:, np.newaxis]
    whole = median_distance(many)
    monkeypatch.setattr(module, "_MEDIAN_ROWS", 50)
    assert median_distance(many) == pytest.approx(whole, rel=0.05)


def test_parts_of_a_sum_have_equal_variances_and_one_length_scale() -> None:
    C = fit_covariance(kernel_named("rbf + linear"), 2.0, X, 0.5)
    rbf = fit_covariance(kernel_named("rbf"), 2.0, X, 0.0)
    linear = fit_covariance(kernel_named("linear"), None, X, 0.0)
    expected = 0.5 * (rbf.gram(X) + linear.gram(X)) + 0.5
    np.testing.assert_allclose(C.gram(X), expected, rtol=1e-12)
    nothing = fit_covariance(kernel_named("rbf + linear"), 2.0, np.zeros((3, 2)), 0.0)
    np.testing.assert_allclose(nothing.gram(np.zeros((3, 2))), 1.0)  # as the constant part alone
