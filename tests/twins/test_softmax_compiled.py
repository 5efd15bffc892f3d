"""Compiled loops of the softmax approximation against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from mercer.gp import loops as compiled
from support.softmax_cases import classes, dense_mode, dense_r, grams, log_joint, targets, thetas

SIZES = (1, 3, 4, 5, 13, 33)
C = 3
both_kinds = pytest.mark.parametrize("n_grams", [1, C])


def case(n: int, n_grams: int = C) -> tuple[np.ndarray, np.ndarray]:
    """Gram matrices and one-hot targets."""
    X, y = classes(n, 2)
    K = grams(thetas(2, n_grams, 2)[1].reshape(n_grams, 3), X)
    return K, np.ascontiguousarray(targets(y, C))


def factors(
    K: np.ndarray, f: np.ndarray, scale: float = 1.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inverses, roots (times a scale) and M' at latent values f, as the loops take them."""
    roots = scale * np.sqrt(softmax(f, axis=0))
    n = f.shape[1]
    B = [np.eye(n) + r[:, None] * K[c % len(K)] * r for c, r in enumerate(roots)]
    inverses = np.linalg.inv(np.array(B))
    S = sum(r[:, None] * inverse * r for r, inverse in zip(roots, inverses, strict=True))
    return inverses, roots, np.ascontiguousarray(np.linalg.cholesky(S).T)


@pytest.mark.parametrize("n", SIZES)
def test_add_weighted_and_mirror(n: int) -> None:
    rng = np.random.default_rng(n)
    inverse, roots, total = rng.random((n, n)), rng.random(n), rng.random((n, n))
    expected = total + np.triu(roots[:, None] * inverse * roots)
    compiled.add_weighted(inverse, roots, total)
    np.testing.assert_allclose(total, expected, rtol=1e-14)
    upper = np.triu(total)
    compiled.mirror(total)
    np.testing.assert_array_equal(np.triu(total), upper)
    np.testing.assert_array_equal(total, total.T)


@pytest.mark.parametrize("n", SIZES)
def test_softmax_and_log_joint(n: int) -> None:
    rng = np.random.default_rng(n)
    f, a = 300.0 * rng.standard_normal((C, n)), rng.standard_normal((C, n))
    Y, proba = case(n)[1], np.empty((C, n))
    assert compiled._softmax(f, np.ones(f.shape[1]), proba) == pytest.approx(
        logsumexp(f, axis=0).sum()
    )
    np.testing.assert_allclose(proba, softmax(f, axis=0), rtol=1e-12, atol=1e-300)
    expected = -0.5 * np.sum(a * f) + np.sum(Y * f) - logsumexp(f, axis=0).sum()
    assert compiled._log_joint(a, f, Y, Y.sum(axis=0), proba) == pytest.approx(expected, rel=1e-12)


@both_kinds
@pytest.mark.parametrize("low", [0.0, -30.0])
@pytest.mark.parametrize("n", SIZES)
def test_newton_step(n: int, low: float, n_grams: int) -> None:
    """The step, and K times it: by division, and by products where a probability is tiny."""
    K, Y = case(n, n_grams)
    rng = np.random.default_rng(5)
    a, at = rng.standard_normal((C, n)), rng.standard_normal((C, n))
    at[1, ::2] += low
    f, step, step_f = np.empty((C, n)), np.empty((C, n)), np.empty((C, n))
    compiled._multiply(K, a, f)
    inverses, roots, U = factors(K, at)
    compiled._softmax_step(K, inverses, roots, U, Y, Y.sum(axis=0), a, f, step, step_f)
    g, K_g = Y - softmax(f, axis=0) - a, np.empty((C, n))
    compiled._multiply(K, g, K_g)
    expected = g - (dense_r(K, at) @ K_g.ravel()).reshape(C, n)
    size = max(1.0, np.abs(K_g).max())
    np.testing.assert_allclose(step, expected, atol=1e-11 * size)
    compiled._multiply(K, expected, f)
    np.testing.assert_allclose(step_f, f, atol=1e-8 * size)


@both_kinds
@pytest.mark.parametrize("memory", [0, 5])
def test_chord_steps(memory: int, n_grams: int) -> None:
    """The fixed point is the mode, f stays K a, and the error and the count are told."""
    K, Y = case(13, n_grams)
    mode = dense_mode(K, Y)
    a, f = np.zeros((C, 13)), np.zeros((C, 13))
    error, taken = compiled.chord_steps(
        K, factors(K, mode), Y, Y.sum(axis=0), a, f, 1e-12, 60, memory
    )
    np.testing.assert_allclose(f, mode, atol=1e-9)
    np.testing.assert_allclose(f, log_joint(K, Y, a)[1], atol=1e-10)
    assert error < 1e-9
    assert 1 <= taken <= 60


def test_chord_steps_never_lower_psi() -> None:
    """With factors of too small a curvature: the full step is far too long."""
    K, Y = case(20)
    K *= 50.0
    inverses, roots, U = factors(K, np.zeros((C, 20)), scale=0.02)
    a, f, proba = np.zeros((C, 20)), np.zeros((C, 20)), np.empty((C, 20))
    psi = compiled._log_joint(a, f, Y, Y.sum(axis=0), proba)
    for _ in range(8):
        compiled.chord_steps(K, (inverses, roots, U), Y, Y.sum(axis=0), a, f, 1e-12, 2, 5)
        new_psi = compiled._log_joint(a, f, Y, Y.sum(axis=0), proba)
        assert new_psi >= psi - 1e-11 * (1.0 + abs(psi))
        psi = new_psi


@pytest.mark.parametrize("start", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_climb_without_factors(scale: float, start: float) -> None:
    """From the mode, from nothing and from far off; f stays K a, and too few products are told."""
    K, Y = case(33, 1)
    K *= scale
    mode = dense_mode(K, Y)
    near = start * np.random.default_rng(0).standard_normal(mode.shape)
    a, f = np.empty_like(Y), np.empty_like(Y)
    assert compiled.climb_without_factors(K[0], Y, Y.sum(axis=0), near, a, f, 1e-7, 400)
    np.testing.assert_allclose(f, mode, atol=1e-6)
    np.testing.assert_allclose(f, a @ K[0], atol=1e-10 * scale)
    assert not compiled.climb_without_factors(K[0], Y, Y.sum(axis=0), near, a, f, 1e-7, 5)
    assert compiled.climb_without_factors(0.0 * K[0], Y, Y.sum(axis=0), near, a, f, 1e-7, 400)
    np.testing.assert_array_equal(f, 0.0)


def test_halved_until_psi_does_not_fall() -> None:
    K, Y = case(8)
    a, f, proba = np.zeros((C, 8)), np.zeros((C, 8)), np.empty((C, 8))
    step = 64.0 * (Y - 1.0 / C)  # uphill, far too long
    step_f, new_a, new_f = np.empty_like(f), np.empty_like(f), np.empty_like(f)
    compiled._multiply(K, step, step_f)
    psi = compiled._log_joint(a, f, Y, Y.sum(axis=0), proba)
    new = compiled._halve_until_ascent(
        Y, Y.sum(axis=0), a, f, psi, step, step_f, new_a, new_f, proba
    )
    assert new >= psi
    assert new == compiled._log_joint(new_a, new_f, Y, Y.sum(axis=0), proba)
    halvings = np.log2(step[0, 0] / new_a[0, 0])
    assert halvings == pytest.approx(round(halvings))
    assert round(halvings) > 0
    assert compiled._log_joint(2.0 * new_a, 2.0 * new_f, Y, Y.sum(axis=0), proba) < psi


@pytest.mark.parametrize("n", SIZES)
def test_column_sums(n: int) -> None:
    rng = np.random.default_rng(n)
    N, inverse_M, difference = rng.standard_normal((3, n, n))
    roots, V = rng.random(n), N.T.copy()
    squares, products = np.empty(n), np.empty(n)
    U = inverse_M * roots - N
    compiled.column_sums(V, inverse_M.T.copy(), difference.T.copy(), roots, squares, products)
    np.testing.assert_allclose(V.T, N * roots, rtol=1e-14)
    np.testing.assert_allclose(squares, np.sum(U * U, axis=0), rtol=1e-12)
    np.testing.assert_allclose(products, np.sum(U * difference, axis=0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", SIZES)
def test_add_products(n: int) -> None:
    rng = np.random.default_rng(n)
    A, a, q = rng.random((n, n)), rng.standard_normal(n), rng.standard_normal(n)
    sum_of = 0.5 * (np.outer(a, a) + np.outer(q, a) + np.outer(a, q))
    expected = A + np.triu(sum_of)
    compiled.add_products(A, a, q)
    np.testing.assert_allclose(A, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n_classes", [3, 5])
def test_average_softmax(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    mean, normals = (
        30.0 * rng.standard_normal((7, n_classes)),
        rng.standard_normal((9, n_classes - 1)),
    )
    roots = rng.standard_normal((7, n_classes - 1, n_classes))
    out = np.empty_like(mean)
    compiled.average_softmax(mean, roots, normals, out)
    expected = softmax(mean[:, np.newaxis] + normals @ roots, axis=2).mean(axis=1)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-300)


def test_exponentials() -> None:
    x = np.concatenate([np.linspace(-708.0, 700.0, 100_003), [0.0, -1e-300, 1e-9]])
    out, work = np.empty_like(x), np.empty_like(x)
    compiled.exponentials(x, work, out)
    np.testing.assert_allclose(out, np.exp(x), rtol=3e-16)


def test_exponentials_far_out() -> None:
    x = np.array([-708.1, -1e300, -np.inf, np.nan])
    out, work = np.empty_like(x), np.empty_like(x)
    compiled.exponentials(x, work, out)
    np.testing.assert_array_equal(out, [0.0, 0.0, 0.0, np.nan])
