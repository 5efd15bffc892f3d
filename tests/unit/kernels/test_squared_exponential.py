from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels import base
from mercer.kernels import stationary as squared_exponential
from mercer.kernels.names import kernel_named
from mercer.kernels.stationary import SquaredExponentialARD
from support.gp_cases import plain_gram

KERNEL = SquaredExponentialARD()
THETA = np.array([0.7, 0.2, -1.0])
X = np.random.default_rng(1).standard_normal((15, 2))


def formula_error() -> float:
    return float(np.abs(KERNEL.gram(THETA, X) - plain_gram(THETA, X)).max())


def test_eq_8() -> None:
    assert formula_error() < 1e-13
    Z = X[:4] + 0.1
    np.testing.assert_allclose(KERNEL.cross_gram(THETA, X, Z), plain_gram(THETA, X, Z), rtol=1e-12)


def test_eq_8_sees_lengthscales_in_place_of_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(squared_exponential, "scaled_rows", lambda w, X, reference: X * np.exp(-w))
    assert formula_error() > 1e-2


def error_along_one_input() -> float:
    x, z, theta = X[:, :1], 3.0 + X[:4, 1:], np.array([0.7, 0.2])
    return max(
        float(np.abs(KERNEL.gram(theta, x) - plain_gram(theta, x)).max()),
        float(np.abs(KERNEL.cross_gram(theta, x, z) - plain_gram(theta, x, z)).max()),
    )


def test_eq_8_along_one_input() -> None:
    assert error_along_one_input() < 1e-14


def test_eq_8_along_one_input_sees_each_row_s_own_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    own = lambda w, X, reference: (X - X[:1]) * np.exp(0.5 * w)  # noqa: E731
    monkeypatch.setattr(squared_exponential, "scaled_rows", own)
    assert error_along_one_input() > 1e-2


@pytest.mark.parametrize("d", [1, 2])
def test_what_is_no_number_has_no_covariance(d: int) -> None:
    """It must not pass for a row that is far from all others."""
    rows, theta = X[:, :d].copy(), np.zeros(1 + d)
    rows[3] = np.nan
    assert np.isnan(KERNEL.gram(theta, rows)[3]).all()
    assert np.isnan(KERNEL.cross_gram(theta, rows, X[:4, :d])[3]).all()


def test_parameters_are_counted() -> None:
    assert KERNEL.n_parameters(5) == 6


@pytest.mark.parametrize("d", [2, 6])  # by differences, and by products
@pytest.mark.parametrize("place", [0, 15])
@pytest.mark.parametrize("name", ["rbf", "matern32", "matern52"])
def test_a_row_far_away_costs_the_others_no_digits(name: str, place: int, d: int) -> None:
    """Where all but the first, or the last, are close to each other."""
    kernel, theta = kernel_named(name), np.zeros(1 + d)
    near = np.round(np.tile(X, d // 2) * 1024.0) / 1024.0
    rows = np.insert(near, place, 1e5, axis=0)
    K = kernel.gram(theta, rows)
    left = np.arange(16) != place
    np.testing.assert_allclose(K[np.ix_(left, left)], kernel.gram(theta, near), rtol=1e-13)
    assert np.linalg.eigvalsh(K).min() > -1e-14


def test_digits_are_lost_where_all_are_far_from_what_is_subtracted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(base, "_middle", lambda rows: rows[:1])
    with pytest.raises(AssertionError):
        test_a_row_far_away_costs_the_others_no_digits("rbf", 0, 6)


def test_equal_rows_have_the_variance_exactly() -> None:
    """Rounding must not make a squared distance negative, hence a covariance above v0."""
    many = np.repeat(1e3 * X[:3], 40, axis=0)
    K = KERNEL.gram(np.array([2.0, 3.0, 3.0]), many)
    assert K.max() <= np.exp(2.0)
    np.testing.assert_allclose(K[0, :40], np.exp(2.0), rtol=1e-7)
