"""Compiled loops of the Laplace approximation against NumPy, sizes around the blocks of four."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from mercer.gp import loops as compiled
from support.gp_cases import plain_gram, plain_mode, problem

SIZES = (1, 2, 3, 4, 5, 7, 8, 13, 33)


def case(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A Gram matrix, labels and square roots of weights."""
    X, y = problem(n, 2)
    K = plain_gram(np.array([1.0, 0.0, -1.0]), X)
    return K, y, np.random.default_rng(n).uniform(0.05, 0.5, n)


def identity_plus(K: np.ndarray, root_weights: np.ndarray) -> np.ndarray:
    return np.eye(len(K)) + root_weights[:, None] * K * root_weights


@pytest.mark.parametrize("n", SIZES)
def test_weighted_identity_plus(n: int) -> None:
    K, _, root_weights = case(n)
    out = np.full((n, n), np.nan)
    compiled.weighted_identity_plus(K, root_weights, out)
    upper = np.triu_indices(n)
    np.testing.assert_allclose(out[upper], identity_plus(K, root_weights)[upper], rtol=1e-15)
    assert np.isnan(out[np.tril_indices(n, -1)]).all()


@pytest.mark.parametrize("n", SIZES)
def test_solve_factored(n: int) -> None:
    K, _, root_weights = case(n)
    B = identity_plus(K, root_weights)
    U = np.asfortranarray(np.linalg.cholesky(B)).T
    U = U + np.tril(np.full((n, n), 1e9), -1)  # what stands below the diagonal is never read
    b = np.random.default_rng(3).standard_normal(n)
    x = b.copy()
    compiled.solve_factored(U, x)
    np.testing.assert_allclose(x, np.linalg.solve(B, b), rtol=1e-11)


@pytest.mark.parametrize("n", SIZES)
def test_log_joint(n: int) -> None:
    K, y, _ = case(n)
    a = 10.0 * np.random.default_rng(4).standard_normal(n)
    f = K @ a
    expected = -0.5 * (a @ f) + y @ f - np.logaddexp(0.0, f).sum()
    assert compiled._log_joint(a, f, y, np.ones(len(y)), f) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("smallest", [0.05, 1e-9])
@pytest.mark.parametrize("n", SIZES)
def test_newton_step(n: int, smallest: float) -> None:
    """The step, and K times it: by division, and by a product where a weight is tiny."""
    K, y, root_weights = case(n)
    root_weights[0] = smallest
    U = np.ascontiguousarray(np.linalg.cholesky(identity_plus(K, root_weights)).T)
    a = np.random.default_rng(5).standard_normal(n)
    f = K @ a
    step, step_f = np.empty(n), np.empty(n)
    compiled._logistic_step(K, U, root_weights, y, np.ones(len(y)), a, f, step, step_f)
    g = y - expit(f) - a
    inverse = np.linalg.inv(identity_plus(K, root_weights))
    expected = g - root_weights * (inverse @ (root_weights * (K @ g)))
    np.testing.assert_allclose(step, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(step_f, K @ expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("n_kept", [0, 1, 2, 4])
def test_mixture(n_kept: int) -> None:
    rng = np.random.default_rng(6)
    step, x = rng.standard_normal(9), rng.standard_normal(9)
    steps, points = rng.standard_normal((2, 5, 9))
    found = compiled._mixing_coef(step, steps, n_kept)
    coef = np.linalg.lstsq(steps[:n_kept].T, step, rcond=None)[0]
    np.testing.assert_allclose(found, coef, rtol=1e-9)
    out = np.empty(9)
    compiled._advance(x, step, points, found, out)
    np.testing.assert_allclose(out, x + step - coef @ points[:n_kept], rtol=1e-9)


def test_note_differences() -> None:
    x, step, last = np.random.default_rng(7).standard_normal((3, 9))
    row, before = np.empty(9), last.copy()
    compiled._note_differences(x, step, last, row)
    np.testing.assert_allclose(row, x + step - before)
    np.testing.assert_array_equal(last, x + step)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("memory", [0, 5])
def test_chord_steps(n: int, memory: int) -> None:
    """The fixed point is the mode, f stays K a, and the count and the change are told."""
    K, y, _ = case(n)
    mode = plain_mode(K, y)
    root_weights = np.sqrt(expit(mode) * expit(-mode))
    U = np.ascontiguousarray(np.linalg.cholesky(identity_plus(K, root_weights)).T)
    a, f = np.zeros(n), np.zeros(n)
    change, taken = compiled.chord_steps(
        K, (U, root_weights), y, np.ones(len(y)), a, f, 1e-12, 60, memory
    )
    np.testing.assert_allclose(f, mode, atol=1e-10)
    np.testing.assert_allclose(f, K @ a, atol=1e-12)
    assert change < 1e-9
    assert 1 <= taken <= 60


def test_chord_steps_first_step_is_newtons() -> None:
    K, y, _ = case(13)
    root_weights = np.full(13, 0.5)
    U = np.ascontiguousarray(np.linalg.cholesky(identity_plus(K, root_weights)).T)
    a, f = np.zeros(13), np.zeros(13)
    change, taken = compiled.chord_steps(
        K, (U, root_weights), y, np.ones(len(y)), a, f, 1e-12, 1, 5
    )
    expected = np.linalg.solve(np.eye(13) + 0.25 * K, y - 0.5)
    np.testing.assert_allclose(a, expected, rtol=1e-11)
    assert taken == 1
    assert change == pytest.approx(np.abs(K @ expected).max())


def test_chord_steps_never_lower_psi() -> None:
    """With labels that a long step overshoots: huge variance, one-sided factor."""
    X, _ = problem(20, 2)
    y = (X[:, 0] > 0.0).astype(float)
    K = plain_gram(np.array([8.0, -3.0, -3.0]), X)
    root_weights = np.full(20, 0.01)  # too small a curvature: the full step is far too long
    U = np.ascontiguousarray(np.linalg.cholesky(identity_plus(K, root_weights)).T)
    a, f = np.zeros(20), np.zeros(20)
    psi = compiled._log_joint(a, f, y, np.ones(len(y)), f)
    for _ in range(8):
        compiled.chord_steps(K, (U, root_weights), y, np.ones(len(y)), a, f, 1e-12, 1, 5)
        new_psi = compiled._log_joint(a, f, y, np.ones(len(y)), f)
        assert new_psi >= psi - 1e-12 * (1.0 + abs(psi))
        psi = new_psi


def test_inverse_diagonal() -> None:
    L = np.tril(np.random.default_rng(2).standard_normal((9, 9))) + 4.0 * np.eye(9)
    inverse = np.linalg.inv(L)
    with_junk = np.asfortranarray(inverse + np.triu(np.ones((9, 9)), 1))
    expected = np.diag(np.linalg.inv(L @ L.T))
    np.testing.assert_allclose(compiled.inverse_diagonal(with_junk.T), expected, rtol=1e-10)


@pytest.mark.parametrize("n", SIZES)
def test_evidence_adjoint(n: int) -> None:
    K, _, root_weights = case(n)
    rng = np.random.default_rng(8)
    a, q = rng.standard_normal((2, n))
    inverse = np.linalg.inv(identity_plus(K, root_weights))
    out = np.triu(inverse) + np.tril(np.full((n, n), 1e9), -1)  # the lower half is never read
    compiled.evidence_adjoint(out, root_weights, a, q)
    weighted = root_weights[:, None] * inverse * root_weights
    expected = 0.5 * (np.outer(a, a) + np.outer(q, a) + np.outer(a, q) - weighted)
    np.testing.assert_allclose(out, expected, rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal(out, out.T)


@pytest.mark.parametrize("m", [1, 2, 5])
def test_eliminate(m: int) -> None:
    G = np.random.default_rng(m).standard_normal((m, 9))
    A, b = G @ G.T, np.arange(1.0, m + 1.0)
    x = b.copy()
    compiled._eliminate(A.copy(), x)
    np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=1e-9)


def test_eliminate_where_a_pivot_vanishes() -> None:
    """Two unknowns that cannot be told apart: one is 0, and the equations still hold."""
    A, x = np.array([[4.0, 4.0, 0.0], [4.0, 4.0, 0.0], [0.0, 0.0, 1.0]]), np.array([8.0, 8.0, 3.0])
    compiled._eliminate(A, x)
    np.testing.assert_allclose(x, [2.0, 0.0, 3.0])
    x = np.array([1.0])
    compiled._eliminate(np.zeros((1, 1)), x)
    assert x[0] == 0.0


def test_halved_until_psi_does_not_fall() -> None:
    K, y, _ = case(8)
    a, f = np.zeros(8), np.zeros(8)
    step = 64.0 * (y - 0.5)  # uphill, far too long
    new_a, new_f = np.empty(8), np.empty(8)
    psi = compiled._log_joint(a, f, y, np.ones(len(y)), f)
    new_psi = compiled._halve_until_ascent(
        y, np.ones(len(y)), a, f, psi, step, K @ step, new_a, new_f, f
    )
    assert new_psi >= psi
    assert new_psi == compiled._log_joint(new_a, new_f, y, np.ones(len(y)), f)
    np.testing.assert_allclose(new_f, K @ new_a, atol=1e-12)
    halvings = np.log2(step[0] / new_a[0])
    assert halvings == round(halvings) > 0
    longer = 2.0 * new_a
    assert compiled._log_joint(longer, K @ longer, y, np.ones(len(y)), f) < psi
