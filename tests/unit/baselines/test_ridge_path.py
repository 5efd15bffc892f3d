from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from mercer.baselines import paths as home
from mercer.baselines.paths import (
    NormalEquations,
    blocks_of,
    fitted_values,
    normal_equations,
    ridge,
    ridge_path,
)
from mercer.errors import NumericalError

RNG = np.random.default_rng(11)
W = RNG.standard_normal((20, 3))
X = RNG.standard_normal((90, 3))
Y = np.sin(X[:, 0]) + 0.1 * RNG.standard_normal(90) + 5.0


def features(W: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Cosine and sine of each frequency in turn."""
    phase = X @ W.T
    return np.stack([np.cos(phase), np.sin(phase)], axis=2).reshape(len(X), -1) / len(W) ** 0.5


def design(X: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(X)), features(W, X)])


EQUATIONS = normal_equations(W, [(X, Y)])


@pytest.mark.parametrize("n", [90, 25])  # 25 rows: fewer than the 40 features
@pytest.mark.parametrize("penalty", [1e-6, 0.1, 30.0])
def test_is_the_ridge_regression_of_scikit_learn(n: int, penalty: float) -> None:
    expected = Ridge(alpha=penalty, solver="svd").fit(features(W, X[:n]), Y[:n])
    coef = ridge(normal_equations(W, [(X[:n], Y[:n])]), penalty)
    assert coef[0] == pytest.approx(expected.intercept_, rel=1e-6)
    np.testing.assert_allclose(coef[1:], expected.coef_, rtol=1e-6, atol=1e-6)


def test_a_path_holds_the_single_solutions() -> None:
    path = ridge_path(EQUATIONS, (0.01, 1.0))
    for k, penalty in enumerate((0.01, 1.0)):
        np.testing.assert_array_equal(path[:, k], ridge(EQUATIONS, penalty))


def test_the_gradient_vanishes_but_for_the_intercept_penalty() -> None:
    F = design(X)
    coef = ridge(EQUATIONS, 0.3)
    gradient = F.T @ (F @ coef - Y) + 0.3 * np.append(0.0, coef[1:])
    assert np.abs(gradient).max() < 1e-11


def test_sees_a_penalised_intercept() -> None:
    """The mutant of the tests above."""
    F = design(X)
    coef = np.linalg.solve(F.T @ F + 0.3 * np.eye(F.shape[1]), F.T @ Y)
    assert np.abs(coef - ridge(EQUATIONS, 0.3)).max() > 1e-3


def test_equations_are_products_and_those_of_parts_add_up() -> None:
    F = design(X)
    whole = NormalEquations(F.T @ F, F.T @ Y)
    parts = [(X[:30], Y[:30]), (X[30:], Y[30:])]
    first, rest = (normal_equations(W, [part]) for part in parts)
    for found, expected in (
        (EQUATIONS, whole),
        (normal_equations(W, parts), whole),
        (first + rest, whole),
        (whole - first, rest),
    ):
        np.testing.assert_allclose(found.gram, expected.gram, atol=1e-12)
        np.testing.assert_allclose(found.moments, expected.moments, atol=1e-11)


def test_a_singular_matrix_is_left_out_of_the_path() -> None:
    equations = normal_equations(np.vstack([W, W]), [(X, Y)])
    with pytest.raises(NumericalError):
        ridge(equations, 1e-30)
    path = ridge_path(equations, (1e-30, 0.1))
    assert np.isnan(path[:, 0]).all()
    assert np.isfinite(path[:, 1]).all()


def test_blocks_cover_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "_BLOCK_ENTRIES", 35)
    assert list(blocks_of(17, 5)) == [slice(0, 7), slice(7, 14), slice(14, 17)]
    assert list(blocks_of(0, 5)) == []
    assert list(blocks_of(2, 100)) == [slice(0, 1), slice(1, 2)]


def test_fitted_values_are_those_of_the_features(monkeypatch: pytest.MonkeyPatch) -> None:
    path = ridge_path(EQUATIONS, (0.01, 1.0))
    expected = design(X) @ path
    for entries in (2**20, 41 * 7):
        monkeypatch.setattr(home, "_BLOCK_ENTRIES", entries)
        np.testing.assert_allclose(fitted_values(W, path, X), expected, rtol=1e-12)
        np.testing.assert_allclose(fitted_values(W, path[:, 0], X), expected[:, 0], rtol=1e-12)
    assert fitted_values(W, path, X[:0]).shape == (0, 2)


def test_phases_without_end_are_features_too() -> None:
    """Frequencies of the Laplace kernel have no mean: some phases are huge."""
    far = np.vstack([W, 1e9 * W])
    coef = ridge(normal_equations(far, [(X, Y)]), 0.5)
    expected = Ridge(alpha=0.5, solver="svd").fit(features(far, X), Y)
    np.testing.assert_allclose(coef[1:], expected.coef_, rtol=1e-6, atol=1e-6)
