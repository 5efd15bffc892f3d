"""GP-9: order of rows and columns, names of the labels and the origin do not matter."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.gp import laplace
from mercer.gp.hyperparameters import kernel_prior
from mercer.gp.laplace import HyperparameterPosterior, LatentDraws
from mercer.kernels import stationary as squared_exponential
from mercer.kernels.stationary import SquaredExponentialARD
from support.gp_cases import problem

_KERNEL = SquaredExponentialARD()
_THETA = np.array([1.2, -0.5, 0.3, -2.0])
_COLUMNS = np.array([1, 2, 0])  # no reversal, so that a reversal is seen


def everything(X: np.ndarray, y: np.ndarray, Z: np.ndarray, theta: np.ndarray):
    """Log density, gradient and probabilities at Z for one theta."""
    point = HyperparameterPosterior(X, y, _KERNEL, kernel_prior(X.shape[1])).evaluate(theta)
    a, q = point.extra["a"], point.extra["q"]
    draws = LatentDraws(X, _KERNEL, theta[None], a[None], y, (a + q)[None])
    return point.log_density, point.gradient, draws.probabilities(Z)[:, 1]


def relative_error(seen, expected) -> float:
    return max(
        float(np.abs(np.subtract(s, e)).max() / np.abs(e).max())
        for s, e in zip(seen, expected, strict=True)
    )


def row_error() -> float:
    X, y = problem(30, 3)
    Z = problem(9, 3, seed=4)[0]
    order = np.random.default_rng(2).permutation(30)
    return relative_error(everything(X[order], y[order], Z, _THETA), everything(X, y, Z, _THETA))


def column_error() -> float:
    X, y = problem(30, 3)
    Z = problem(9, 3, seed=4)[0]
    theta = np.concatenate([_THETA[:1], _THETA[1:][_COLUMNS]])
    log_density, gradient, p = everything(X, y, Z, _THETA)
    gradient = np.concatenate([gradient[:1], gradient[1:][_COLUMNS]])
    seen = everything(X[:, _COLUMNS], y, Z[:, _COLUMNS], theta)
    return relative_error(seen, (log_density, gradient, p))


def flip_error() -> float:
    X, y = problem(30, 3)
    Z = problem(9, 3, seed=4)[0]
    log_density, gradient, p = everything(X, y, Z, _THETA)
    return relative_error(everything(X, 1.0 - y, Z, _THETA), (log_density, gradient, 1.0 - p))


def offset_error() -> float:
    """Largest relative change of K when a dyadic grid moves by 2^20."""
    X = np.round(problem(30, 3)[0] * 1024.0) / 1024.0
    far = X + 2.0**20
    return relative_error(
        (_KERNEL.gram(_THETA, far), _KERNEL.cross_gram(_THETA, far[:7], far)),
        (_KERNEL.gram(_THETA, X), _KERNEL.cross_gram(_THETA, X[:7], X)),
    )


@pytest.mark.parametrize("error", [row_error, column_error, flip_error, offset_error])
def test_gp_9_symmetries(error) -> None:
    assert error() < 1e-12


def test_gp_9_columns_see_weights_in_the_wrong_order(monkeypatch: pytest.MonkeyPatch) -> None:
    scaled = squared_exponential.scaled_rows
    monkeypatch.setattr(
        squared_exponential,
        "scaled_rows",
        lambda log_weights, X, reference: scaled(log_weights[::-1], X, reference),
    )
    assert column_error() > 1e-3


def test_gp_9_rows_see_a_target_that_depends_on_order(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = laplace.fit_laplace
    monkeypatch.setattr(
        "mercer.gp.laplace.fit_laplace",
        lambda K, y, *others: fit(K + 1e-6 * np.diag(np.arange(len(y))), y, *others),
    )
    assert row_error() > 1e-9


def test_gp_9_flip_sees_a_lopsided_likelihood(monkeypatch: pytest.MonkeyPatch) -> None:
    likelihood = laplace.log_likelihood
    monkeypatch.setattr(
        laplace, "log_likelihood", lambda y, totals, f: likelihood(y, totals, f) + 1e-6 * f.sum()
    )
    assert flip_error() > 1e-9


def test_gp_9_offset_sees_inputs_that_are_not_centred(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        squared_exponential, "scaled_rows", lambda weights, X, reference: X * np.exp(0.5 * weights)
    )
    assert offset_error() > 1e-6
