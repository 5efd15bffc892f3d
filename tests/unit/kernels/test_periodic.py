from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import ExpSineSquared

from mercer.kernels import stationary as periodic
from mercer.kernels.stationary import Periodic
from support.kernel_cases import gradient_error, plain_covariances

KERNEL = Periodic()
THETA = np.array([0.7, 0.2, -1.0, 1.0, 0.3])
X = np.random.default_rng(1).standard_normal((15, 2))
Z = np.random.default_rng(2).standard_normal((4, 2)) * 3.0


def formula(x: np.ndarray, z: np.ndarray) -> float:
    sines = np.sin(np.pi * (x - z) / np.exp(THETA[3:]))
    return float(np.exp(THETA[0] - 2.0 * (np.exp(THETA[1:3]) * sines**2).sum()))


def formula_error() -> float:
    return float(np.abs(KERNEL.gram(THETA, X) - plain_covariances(formula, X, X)).max())


def adjoint() -> np.ndarray:
    A = np.random.default_rng(3).standard_normal((15, 15))
    return A + A.T


def test_against_the_formula() -> None:
    assert formula_error() < 1e-13
    cross = KERNEL.cross_gram(THETA, X, Z)
    np.testing.assert_allclose(cross, plain_covariances(formula, X, Z), rtol=1e-12)


def test_sees_half_the_period(monkeypatch: pytest.MonkeyPatch) -> None:
    turned = periodic.turned_rows
    monkeypatch.setattr(
        periodic, "turned_rows", lambda f, X, reference: turned(f, 2.0 * X, 2.0 * reference)
    )
    assert formula_error() > 1e-2


def test_against_scikit_learn() -> None:
    plain = ExpSineSquared(length_scale=np.exp(-0.1), periodicity=np.exp(0.3))
    seen = KERNEL.cross_gram(np.array([0.0, 0.2, 0.3]), X[:, :1], Z[:, :1])
    np.testing.assert_allclose(seen, plain(X[:, :1], Z[:, :1]), rtol=1e-12)


def test_a_whole_period_changes_nothing() -> None:
    """Also a thousand periods, where an angle of its own would have lost digits."""
    theta = np.array([0.7, 0.2, -1.0, np.log(4.0), 0.0])
    grid = np.round(X * 1024.0) / 1024.0
    moved = grid + 4096.0 * np.arange(15)[:, None]
    np.testing.assert_allclose(KERNEL.gram(theta, moved), KERNEL.gram(theta, grid), rtol=1e-11)


def test_gradient() -> None:
    assert gradient_error(KERNEL, THETA, X, adjoint()) < 1e-8


def test_gradient_sees_periods_one_turn_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A derivative with respect to a period counts whole turns too."""
    turned = periodic.turned_rows

    def broken_turns(*arguments: np.ndarray) -> tuple[np.ndarray, ...]:
        turns, cosine, sine = turned(*arguments)
        return np.fmod(turns, 1.0), cosine, sine

    wide = 3.0 * X
    monkeypatch.setattr(periodic, "turned_rows", broken_turns)
    assert gradient_error(KERNEL, THETA, wide, adjoint()) > 1e-3
    monkeypatch.undo()
    assert gradient_error(KERNEL, THETA, wide, adjoint()) < 1e-7
