"""Compiled loops of the stationary kernels against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels.stationary import (
    distances_from_products,
    exponent_from_products,
    exponentials,
    matern_from_distances,
    minus_half_squares,
    multiply_by_cosines,
    multiply_by_matern_slopes,
    slopes_of_cosines,
)


def twin(S: np.ndarray, s: np.ndarray, z: np.ndarray, log_scale: float) -> np.ndarray:
    return np.minimum(S - s[:, None] - z[None, :], 0.0) + log_scale


@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 3), (4, 9)])
def test_exponent_from_products(n: int, m: int) -> None:
    rng = np.random.default_rng(1)
    X, Z = rng.standard_normal((n, 2)), rng.standard_normal((m, 2))
    S, s, z = X @ Z.T, 0.5 * (X**2).sum(axis=1), 0.5 * (Z**2).sum(axis=1)
    expected = twin(S, s, z, 0.7)
    exponent_from_products(S, s, z, 0.7)
    np.testing.assert_array_equal(S, expected)
    distances = ((X[:, None] - Z[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(S, 0.7 - 0.5 * distances, atol=1e-14)


def test_a_squared_distance_is_never_negative() -> None:
    S = np.array([[1.0 + 1e-15]])
    exponent_from_products(S, np.array([0.5]), np.array([0.5]), -2.0)
    assert S[0, 0] == -2.0


@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 3), (4, 9)])
def test_distances_from_products(n: int, m: int) -> None:
    rng = np.random.default_rng(1)
    X, Z = rng.standard_normal((n, 2)), rng.standard_normal((m, 2))
    Z[0] = X[0]
    S, s, z = X @ Z.T, 0.5 * (X**2).sum(axis=1), 0.5 * (Z**2).sum(axis=1)
    expected = np.minimum(np.sqrt(-twin(S, s, z, 0.0)) * 1.3, 2.0)
    distances_from_products(S, s, z, 1.3, 2.0)
    np.testing.assert_array_equal(S, expected)
    distances = np.linalg.norm(X[:, None] - Z[None], axis=2)
    np.testing.assert_allclose(S, np.minimum(1.3 * distances / np.sqrt(2.0), 2.0), atol=1e-7)


def test_exponentials_are_right_to_two_units_of_the_last_place() -> None:
    exponents = np.random.default_rng(2).uniform(-240.0, 40.0, (60, 61))
    found, true = exponents.copy(), np.exp(exponents)
    exponentials(found, 0.0)
    assert (np.abs(found - true) <= 2.0 * np.spacing(true)).all()
    ends = np.array([[0.0, -0.0, 709.0, -708.0, 800.0, np.nan]])
    exponentials(ends, 0.0)
    assert ends[0, :2].tolist() == [1.0, 1.0]
    np.testing.assert_allclose(ends[0, 2:5], [np.exp(709.0), np.exp(-708.0), np.inf], rtol=1e-15)
    assert np.isnan(ends[0, 5])


def test_exponentials_are_the_same_wherever_arrays_lie() -> None:
    exponents = np.random.default_rng(3).uniform(-240.0, 40.0, (8, 37))
    whole = exponents.copy()
    exponentials(whole, 1e-80)
    assert (whole[exponents < np.log(1e-80)] == 0.0).all()
    memory = np.empty(exponents.size + 8)
    for offset in range(1, 8):
        moved = memory[offset : offset + exponents.size].reshape(exponents.shape)
        moved[:] = exponents
        exponentials(moved, 1e-80)
        assert (moved == whole).all()
    for j in range(exponents.shape[1]):
        alone = exponents[:1, j : j + 1].copy()
        exponentials(alone, 1e-80)
        assert alone[0, 0] == whole[0, j]


@pytest.mark.parametrize("share", [3.0, np.inf])
def test_matern_from_distances(share: float) -> None:
    a = np.random.default_rng(1).uniform(0.0, 9.0, (4, 7))
    a[0, 0], decay = 800.0, np.exp(-a)
    expected = decay * (1.0 + a * (1.0 + a / share)) * 1.7
    matern_from_distances(a, decay, share, 1.7)
    np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize(("n", "m", "d"), [(1, 1, 1), (5, 3, 2), (4, 9, 5)])
def test_minus_half_squares(n: int, m: int, d: int) -> None:
    rng = np.random.default_rng(1)
    X, Z, S = rng.standard_normal((n, d)), rng.standard_normal((d, m)), np.full((n, m), np.nan)
    expected = -0.5 * ((X[:, :, None] - Z[None]) ** 2).sum(axis=1)
    minus_half_squares(S, X, Z)
    np.testing.assert_allclose(S, expected, rtol=1e-14)


@pytest.mark.parametrize(("factor", "share"), [(3.0, np.inf), (5.0 / 3.0, 3.0)])
def test_multiply_by_matern_slopes(factor: float, share: float) -> None:
    """-C'(a) / a of (1 + a + a^2 / share) e^-a, by the derivative of the polynomial."""
    rng = np.random.default_rng(1)
    a, A = rng.uniform(0.1, 9.0, (4, 7)), rng.standard_normal((4, 7))
    K = 1.7 * (1.0 + a * (1.0 + a / share)) * np.exp(-a)
    slope = 1.7 * (1.0 + 2.0 * a / share) * np.exp(-a) - K  # by a = sqrt(2 nu) r
    two_nu = 3.0 if share == np.inf else 5.0
    expected = A * -two_nu * slope / a
    multiply_by_matern_slopes(A, K, a, factor, share)
    np.testing.assert_allclose(A, expected, rtol=1e-12)


def angles(n: int, m: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    return rng.uniform(-4.0, 4.0, (n, d)), rng.uniform(-4.0, 4.0, (m, d))


each_shape = pytest.mark.parametrize(("n", "m", "d"), [(1, 1, 1), (5, 3, 2), (4, 9, 5)])


@each_shape
def test_multiply_by_cosines(n: int, m: int, d: int) -> None:
    a, b = angles(n, m, d)
    K = np.random.default_rng(3).standard_normal((n, m))
    expected = K * np.cos(a[:, None] - b[None]).prod(axis=2)
    multiply_by_cosines(K, np.cos(a), np.sin(a), np.cos(b).T.copy(), np.sin(b).T.copy())
    np.testing.assert_allclose(K, expected, rtol=1e-12, atol=1e-15)


@each_shape
def test_slopes_of_cosines(n: int, m: int, d: int) -> None:
    a, b = angles(n, m, d)
    rng = np.random.default_rng(3)
    G, turns, slopes = rng.standard_normal((n, m)), rng.standard_normal((n, d)), np.ones(d)
    t = a[:, None] - b[None]
    expected = np.ones(d)
    for k in range(d):
        others = np.cos(np.delete(t, k, axis=2)).prod(axis=2)
        expected[k] += np.sum(G * turns[:, [k]] * np.sin(t[:, :, k]) * others)
    slopes_of_cosines(
        G, turns, np.cos(a), np.sin(a), np.cos(b).T.copy(), np.sin(b).T.copy(), slopes
    )
    np.testing.assert_allclose(slopes, expected, rtol=1e-12)
