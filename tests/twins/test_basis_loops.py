"""The compiled loops of the particle filter against NumPy, with the same uniform numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from mercer.basis import length_scales as levels_compiled
from mercer.basis import loops as redraw
from mercer.basis import loops as regression
from mercer.basis.length_scales import KINDS
from support.basis_twins import CLOSE, assert_factor

P, N_CANDIDATES, OF_MEAN, OF_CENTRES = 6, 9, 0.01, 0.7


class Dense:
    """A regression of some columns of a design, by dense algebra."""

    def __init__(self, seed: int = 0, columns: tuple[int, ...] = (0, 4, 2, 7, 1)) -> None:
        rng = np.random.default_rng(seed)
        self.K, self.y = rng.standard_normal((12, N_CANDIDATES)), rng.standard_normal(12)
        self.gram, self.moment = self.K.T @ self.K, self.K.T @ self.y
        self.columns = np.array(columns)

    def of(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """U and w."""
        R = np.full(len(columns), OF_CENTRES)
        R[columns == 0] = OF_MEAN
        U = np.linalg.cholesky(self.gram[np.ix_(columns, columns)] + np.diag(R)).T
        return U, np.linalg.solve(U.T, self.moment[columns])

    def room(self) -> tuple[np.ndarray, np.ndarray]:
        """Arrays that hold the factor, nonsense below its diagonal and beyond."""
        U, w = np.full((P, P), np.nan), np.full(P, np.nan)
        p = len(self.columns)
        U[:p, :p], w[:p] = self.of(self.columns)
        U[np.tril_indices(P, -1)] = np.nan
        return U, w


class _Last:
    """A generator of the largest number below 1."""

    def random(self) -> float:
        return 1.0 - 2.0**-53


def test_whole_numbers_below() -> None:
    """All are as likely, and none is the bound itself, whatever is rounded."""
    rng, same = np.random.default_rng(1), np.random.default_rng(1)
    drawn = [redraw.whole_below(rng, 7) for _ in range(7000)]
    assert drawn == np.floor(7.0 * same.random(7000)).astype(int).tolist()
    assert np.abs(np.bincount(drawn, minlength=7) - 1000).max() < 6.0 * np.sqrt(1000.0)
    assert all(redraw.whole_below.py_func(_Last(), n) == n - 1 for n in range(1, 5000))


def test_factorise_set() -> None:
    dense, U, w = Dense(), np.full((P, P), np.nan), np.full(P, np.nan)
    for p in range(1, 6):
        half_logdet, fit = regression.factorise_set(
            dense.gram, dense.moment, dense.columns, p, 1, OF_MEAN, OF_MEAN, OF_CENTRES, U, w
        )
        expected = dense.of(dense.columns[:p])
        assert_factor(U, w, expected)
        np.testing.assert_allclose(half_logdet, np.log(np.diag(expected[0])).sum(), **CLOSE)
        np.testing.assert_allclose(fit, expected[1] @ expected[1], **CLOSE)


@pytest.mark.parametrize("column", [3, 8])
def test_append(column: int) -> None:
    dense = Dense()
    (U, w), p = dense.room(), len(dense.columns)
    v, old = np.empty(P), dense.of(dense.columns)
    square, part = regression.append_terms(
        dense.gram, dense.moment, dense.columns, p, OF_CENTRES, U, w, column, np.empty(P), v
    )
    new = dense.of(np.append(dense.columns, column))
    gain = new[1] @ new[1] - old[1] @ old[1]
    np.testing.assert_allclose(part * part / square, gain, **CLOSE)
    np.testing.assert_allclose(math.sqrt(square), new[0][-1, -1], **CLOSE)
    regression.append_column(U, w, p, v, square, part)
    assert_factor(U, w, new)


@pytest.mark.parametrize("j", range(5))
def test_drop(j: int) -> None:
    dense = Dense()
    (U, w), p, old = dense.room(), len(dense.columns), dense.of(dense.columns)
    inverse = np.linalg.inv(old[0].T @ old[0])
    variance, estimate = regression.drop_terms(U, w, p, j, np.empty(P), np.empty(P))
    np.testing.assert_allclose(variance, inverse[j, j], **CLOSE)
    np.testing.assert_allclose(estimate, (inverse @ old[0].T @ old[1])[j], **CLOSE)
    out = regression.drop_column(U, w, p, j, U[:, :0])
    new = dense.of(np.delete(dense.columns, j))
    assert_factor(U, w, new)
    np.testing.assert_allclose(out * out, old[1] @ old[1] - new[1] @ new[1], **CLOSE)
    np.testing.assert_allclose(out * out, estimate**2 / variance, **CLOSE)


def test_rotate_row_and_solve() -> None:
    dense, rng = Dense(), np.random.default_rng(1)
    U, w = dense.room()
    p, row, y = len(dense.columns), rng.standard_normal(N_CANDIDATES), 0.7
    x, v = row[dense.columns].copy(), np.empty(P)
    regression.solve_forward(U, p, x.copy(), v)
    np.testing.assert_allclose(v[:p], np.linalg.solve(dense.of(dense.columns)[0].T, x), **CLOSE)
    regression.rotate_row(U, w, p, x, y)
    dense.gram += np.outer(row, row)
    dense.moment += y * row
    assert_factor(U, w, dense.of(dense.columns))
    beta, own = np.empty(P), w.copy()
    regression.solve_back(U, p, w, beta)
    A = dense.gram[np.ix_(dense.columns, dense.columns)]
    A = A + np.diag([OF_MEAN, *[OF_CENTRES] * (p - 1)])
    np.testing.assert_allclose(beta[:p], np.linalg.solve(A, dense.moment[dense.columns]), **CLOSE)
    regression.solve_back(U, p, own, own)
    np.testing.assert_array_equal(own[:p], beta[:p])


def test_solve_all_columns() -> None:
    dense = Dense()
    (U, w), p = dense.room(), len(dense.columns)
    V, squares, parts = np.empty((P, N_CANDIDATES)), np.empty(N_CANDIDATES), np.empty(N_CANDIDATES)
    redraw.solve_all(
        dense.gram, dense.moment, dense.columns, p, OF_CENTRES, U, w, N_CANDIDATES, V, squares,
        parts,
    )  # fmt: skip
    for column in range(N_CANDIDATES):
        v = np.empty(P)
        terms = regression.append_terms(
            dense.gram, dense.moment, dense.columns, p, OF_CENTRES, U, w, column, np.empty(P), v
        )
        np.testing.assert_allclose((squares[column], parts[column]), terms, **CLOSE)
        np.testing.assert_allclose(V[:p, column], v[:p], **CLOSE)


@pytest.mark.parametrize("j", [1, 3, 4])
def test_terms_of_all_columns_follow_the_set(j: int) -> None:
    dense, ridge, n = Dense(), OF_CENTRES, N_CANDIDATES
    (U, w), p = dense.room(), len(dense.columns)
    V, squares, parts = np.empty((P, n)), np.empty(n), np.empty(n)
    given = dense.gram, dense.moment
    redraw.solve_all(*given, dense.columns, p, ridge, U, w, n, V, squares, parts)

    def assert_terms_of(columns: np.ndarray) -> None:
        p, own_V, own_squares, own_parts = len(columns), np.empty((P, n)), np.empty(n), np.empty(n)
        room = np.zeros((P, P)), np.zeros(P)
        room[0][:p, :p], room[1][:p] = dense.of(columns)
        redraw.solve_all(*given, columns, p, ridge, *room, n, own_V, own_squares, own_parts)
        np.testing.assert_allclose(V[:p], own_V[:p], **CLOSE)
        np.testing.assert_allclose(squares, own_squares, **CLOSE)
        np.testing.assert_allclose(parts, own_parts, **CLOSE)

    redraw.drop_column(U, w, p, j, V)
    redraw.terms_less(V, w, p - 1, -1.0, ridge, squares, parts)
    left = np.delete(dense.columns, j)
    assert_terms_of(left)
    v = V[: p - 1, 3].copy()
    redraw.append_column(U, w, p - 1, v, squares[3], parts[3])
    redraw.append_row(V, v, dense.gram[3], p - 1, U[p - 1, p - 1])
    redraw.terms_less(V, w, p - 1, 1.0, ridge, squares, parts)
    assert_terms_of(np.append(left, 3))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_halving", [False, True])
def test_kernel_levels(kind: str, is_halving: bool) -> None:
    if is_halving and kind != "rbf":
        return
    rng = np.random.default_rng(2)
    x, Z, scalings = rng.standard_normal(3), rng.standard_normal((6, 3)), rng.random((2, 3))
    widths = 1.3 * 2.0 ** (-0.5 * np.arange(4)) if is_halving else np.array([2.0, 0.9, 0.8])
    distances, rows = np.empty((2, 5)), np.full((2 * len(widths), 8), np.nan)
    levels_compiled.squared_distances(x, Z, 5, scalings, distances)
    levels_compiled.kernel_levels(distances, 5, widths, KINDS.index(kind), is_halving, 2, rows)
    for a, scaling in enumerate(scalings):
        r = cdist([x * scaling], Z[:5] * scaling)[0]
        np.testing.assert_allclose(distances[a], r**2, **CLOSE)
        for j, width in enumerate(widths):
            u = r / width
            expected = {
                "rbf": np.exp(-0.5 * u**2),
                "matern12": np.exp(-u),
                "matern32": (1 + math.sqrt(3) * u) * np.exp(-math.sqrt(3) * u),
                "matern52": (1 + math.sqrt(5) * u + 5 * u**2 / 3) * np.exp(-math.sqrt(5) * u),
            }[kind]
            np.testing.assert_allclose(rows[a * len(widths) + j, 2:7], expected, **CLOSE)
    assert np.isnan(rows[:, :2]).all()
    assert np.isnan(rows[:, 7]).all()
