"""The compiled loops of the classifier against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from mercer.likelihoods.polya_gamma import fill_polya_gamma_of_shapes
from mercer.spectral.class_model import signs_of
from mercer.spectral.loops import move_jointly, pull_of_phases, slope_of_sticks
from support.spectral_joint_moves import move_plain


@pytest.mark.parametrize(("m", "n", "K"), [(1, 5, 1), (6, 40, 1), (6, 40, 3), (3, 1, 2)])
def test_move_jointly(m: int, n: int, K: int) -> None:
    rng = np.random.default_rng(m + n + K)
    now, proposed = rng.standard_normal((2, 2 * m, n))
    codes = rng.integers(0, K + 1, n)
    k = np.arange(K)[:, np.newaxis]
    sign = np.where(codes == k, 1.0, np.where(codes > k, -1.0, 0.0))
    coef, ridge = rng.standard_normal((K, 2 * m)), rng.gamma(2.0, 0.3, K)
    f = coef @ now + rng.standard_normal((K, n))
    given = ridge, rng.standard_normal((m, K, 2)), np.log(rng.random(m))
    found = []
    for move in (move_jointly, move_plain):
        own, functions = coef.copy(), f.copy()
        is_accepted, log_ratio = np.zeros(m, dtype=bool), np.empty(m)
        move(now, proposed, sign, own, *given, functions, is_accepted, log_ratio)
        found.append((own, functions, is_accepted, log_ratio))
    for compiled, plain in zip(*found, strict=True):
        np.testing.assert_allclose(compiled, plain, rtol=1e-9, atol=1e-10)
    own, functions, is_accepted, _ = found[0]
    chosen = np.where(np.repeat(is_accepted, 2)[:, np.newaxis], proposed, now)
    np.testing.assert_allclose(functions - f, own @ chosen - coef @ now, atol=1e-10)


def test_both_outcomes_are_among_them() -> None:
    """A proposal that a uniform variable of 0 accepts, and one that none accepts."""
    rng = np.random.default_rng(4)
    now, proposed = rng.standard_normal((2, 4, 30))
    sign = np.sign(rng.standard_normal((1, 30)))
    is_accepted, log_ratio = np.zeros(2, dtype=bool), np.empty(2)
    move_jointly(
        now, proposed, sign, np.zeros((1, 4)), np.ones(1), np.zeros((2, 1, 2)),
        np.array([-1e9, 1e9]), np.zeros((1, 30)), is_accepted, log_ratio,
    )  # fmt: skip
    assert is_accepted.tolist() == [True, False]


@pytest.mark.parametrize(("m", "n", "K"), [(1, 1, 1), (5, 40, 1), (5, 40, 3)])
def test_pull_of_phases(m: int, n: int, K: int) -> None:
    rng = np.random.default_rng(m + n + K)
    features, residual = rng.standard_normal((2 * m, n)), rng.standard_normal((K, n))
    coef, out = rng.standard_normal((K, 2 * m + 3)), rng.standard_normal((m, n))
    pull_of_phases(features, residual, coef, out)
    cosine, sine = coef[:, 0 : 2 * m : 2].T @ residual, coef[:, 1 : 2 * m : 2].T @ residual
    np.testing.assert_allclose(out, sine * features[0::2] - cosine * features[1::2], rtol=1e-12)


@pytest.mark.parametrize("K", [1, 3])
def test_slope_of_sticks(K: int) -> None:
    """Also far out, where exponentials overflow."""
    rng = np.random.default_rng(K)
    f, codes = rng.standard_normal((K, 60)), rng.integers(0, K + 1, 60).astype(float)
    f[:, :9] *= 1e3
    losses, slope = np.empty(f.size), rng.standard_normal(f.shape)
    n_told = slope_of_sticks(f, codes, losses, slope)
    sign = signs_of(codes, K)
    expected = np.logaddexp(0.0, -sign * f)[sign != 0.0]
    np.testing.assert_allclose(losses[:n_told], expected, rtol=1e-14, atol=1e-300)
    np.testing.assert_allclose(slope, sign * expit(-sign * f), rtol=1e-14, atol=1e-300)


def plain_polya_gamma(rng: np.random.Generator, b: float, c: float) -> float:
    """The series of PG(b, c), its rest a gamma of that mean and variance; far out its law."""
    if c == 0.0:
        mean, variance = 0.25, 1.0 / 24.0
    else:
        mean = np.tanh(0.5 * c) / (2.0 * c)
        variance = (np.sinh(c) - c) / (4.0 * c**3 * np.cosh(0.5 * c) ** 2)
    if c > 23.0 + max(np.log(b), 0.0):
        mean, shape = 0.5 * b / c, 0.25 * b * b
        y = rng.standard_normal() ** 2
        x = mean + 0.5 * mean**2 * y / shape
        x -= 0.5 * mean / shape * np.sqrt(4.0 * mean * shape * y + (mean * y) ** 2)
        return mean**2 / x if rng.random() > mean / (mean + x) else x
    w = 1.0 / (2.0 * np.pi**2 * ((np.arange(24) + 0.5) ** 2 + (c / (2.0 * np.pi)) ** 2))
    total = float(w @ rng.standard_gamma(b, 24))
    mean, variance = mean - w.sum(), variance - (w @ w)
    return total + variance / mean * rng.standard_gamma(b * mean**2 / variance)


@pytest.mark.parametrize("b", [0.2, 3.0, 700.0])
@pytest.mark.parametrize("c", [0.0, 0.6, 4.0, 20.0, 50.0])
def test_fill_polya_gamma_of_shapes(b: float, c: float) -> None:
    omega, plain = np.empty(50), np.random.default_rng(3)
    given = np.full(50, b), np.full(50, -c), 50
    fill_polya_gamma_of_shapes(np.random.default_rng(3), *given, omega)
    expected = [plain_polya_gamma(plain, b, c) for _ in range(50)]
    np.testing.assert_allclose(omega, expected, rtol=1e-7)
