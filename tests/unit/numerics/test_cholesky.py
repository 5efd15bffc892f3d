from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import NumericalError
from mercer.numerics.cholesky import (
    factorise,
    invert_factored,
    invert_lower,
    invert_triangle,
    multiply_lower,
    solve_by_inverse,
    solve_factored,
    solve_lower,
    solve_positive,
    symmetric_product,
)

SIZES = (1, 2, 63, 64, 65, 130, 200)


def positive(n: int) -> np.ndarray:
    G = np.random.default_rng(n).standard_normal((n, n))
    return np.asfortranarray(G @ G.T + np.eye(n))


def with_junk_above(B: np.ndarray) -> np.ndarray:
    return np.asfortranarray(np.tril(B) + np.triu(np.full(B.shape, 1e9), 1))


@pytest.mark.parametrize("n", SIZES)
def test_factorise_reads_the_lower_triangle_and_works_in_place(n: int) -> None:
    B = positive(n)
    given = with_junk_above(B)
    L = factorise(given)
    assert np.shares_memory(L, given)
    np.testing.assert_allclose(np.tril(L) @ np.tril(L).T, B, rtol=1e-11, atol=1e-9)


def test_factorise_refuses_what_is_not_positive_definite() -> None:
    with pytest.raises(NumericalError, match="order 3 is not positive definite"):
        factorise(np.asfortranarray(np.diag([1.0, -1.0, 1.0])))


@pytest.mark.parametrize("n", SIZES)
def test_invert_factored(n: int) -> None:
    B = positive(n)
    L = factorise(with_junk_above(B))
    inverse = invert_factored(L)
    assert np.shares_memory(inverse, L)
    np.testing.assert_allclose(np.tril(inverse), np.tril(np.linalg.inv(B)), rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("columns", [None, 3])
def test_solve_lower(columns: int | None) -> None:
    L = with_junk_above(np.linalg.cholesky(positive(20)))
    b = np.random.default_rng(0).standard_normal(20 if columns is None else (20, columns))
    np.testing.assert_allclose(np.tril(L) @ solve_lower(L, b), b, rtol=1e-10, atol=1e-11)


def test_solve_factored() -> None:
    B, b = positive(20), np.random.default_rng(0).standard_normal(20)
    before = b.copy()
    x = solve_factored(factorise(with_junk_above(B)), b)
    np.testing.assert_allclose(B @ x, b, rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(b, before)


def test_solve_lower_refuses_a_singular_factor() -> None:
    with pytest.raises(NumericalError, match="triangular solve"):
        solve_lower(np.zeros((2, 2), order="F"), np.ones(2))


def test_symmetric_product() -> None:
    B = positive(9)
    x = np.arange(9.0)
    np.testing.assert_allclose(symmetric_product(with_junk_above(B), x), B @ x, rtol=1e-13)


@pytest.mark.parametrize("columns", [None, 3])
def test_solve_positive(columns: int | None) -> None:
    for n in (1, 5, 64):
        B, b = positive(n), np.random.default_rng(0).standard_normal((n, columns or 1))
        b = b if columns else b[:, 0]
        before = B.copy(), b.copy()
        np.testing.assert_allclose(B @ solve_positive(B, b), b, atol=1e-9)
        np.testing.assert_array_equal(B, before[0])
        np.testing.assert_array_equal(b, before[1])


def test_solve_positive_refuses_what_is_not_positive_definite() -> None:
    with pytest.raises(NumericalError, match="not positive definite"):
        solve_positive(np.diag([1.0, -1.0]), np.ones(2))


@pytest.mark.parametrize("n", SIZES)
def test_invert_lower(n: int) -> None:
    L = with_junk_above(np.linalg.cholesky(positive(n)))
    before = L.copy()
    inverse = invert_lower(L)
    np.testing.assert_array_equal(L, before)
    np.testing.assert_array_equal(np.triu(inverse, 1), 0.0)
    np.testing.assert_allclose(inverse @ np.tril(L), np.eye(n), atol=1e-8)


@pytest.mark.parametrize("n", SIZES)
def test_an_inverse_triangle_multiplies_and_solves(n: int) -> None:
    B, b = positive(n), np.random.default_rng(0).standard_normal((n, 3))
    L = with_junk_above(np.linalg.cholesky(B))
    expected, before = solve_lower(L, b), b.copy()
    invert_triangle(L)
    np.testing.assert_allclose(multiply_lower(L, b), expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(multiply_lower(L, b[:, :1]), expected[:, :1], rtol=1e-8, atol=1e-9)
    x = solve_by_inverse(L, b[:, 0])
    np.testing.assert_allclose(B @ x, b[:, 0], rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(b, before)
