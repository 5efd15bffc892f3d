"""GP-2, G1, G2: the gradient against differences; the energy is a function of theta alone."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.gp.hyperparameters import kernel_prior
from mercer.gp.laplace import HyperparameterPosterior
from support.gp_cases import posterior, thetas
from support.mutants import drop_weight_term, start_newton_warm, stop_newton_early

_STEP = 2e-3


def five_points(model: HyperparameterPosterior, theta: np.ndarray) -> np.ndarray:
    """The gradient by five-point differences: error of order step^4."""
    gradient = np.empty_like(theta)
    for k in range(len(theta)):
        shift = np.zeros_like(theta)
        shift[k] = _STEP
        one = [model.evaluate(theta + m * shift).log_density for m in (-2, -1, 1, 2)]
        gradient[k] = (one[0] - 8.0 * one[1] + 8.0 * one[2] - one[3]) / (12.0 * _STEP)
    return gradient


def worst_gradient_error(n: int, d: int) -> float:
    """Largest relative error over twenty thetas."""
    model, worst = posterior(n, d), 0.0
    for theta in thetas(d, 20):
        expected = five_points(model, theta)
        error = np.abs(model.evaluate(theta).gradient - expected).max()
        worst = max(worst, error / np.abs(expected).max())
    return float(worst)


def path_dependence() -> float:
    """Largest change of the energy at a theta when other thetas were visited in between."""
    model, points = posterior(40, 2), thetas(2, 10)
    first = [model.evaluate(theta).log_density for theta in points]
    again = [model.evaluate(theta).log_density for theta in points[::-1]][::-1]
    return float(np.abs(np.subtract(first, again)).max())


@pytest.mark.parametrize(("n", "d"), [(12, 1), (40, 2), (60, 5)])
def test_gp_2_gradient(n: int, d: int) -> None:
    assert worst_gradient_error(n, d) < 1e-7


def test_gp_2_gradient_sees_the_weight_term_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    drop_weight_term(monkeypatch)
    assert worst_gradient_error(40, 2) > 0.1


def test_gp_2_gradient_sees_newton_stopped_at_1e_4(monkeypatch: pytest.MonkeyPatch) -> None:
    stop_newton_early(monkeypatch)
    assert worst_gradient_error(40, 2) > 1e-7


def test_g2_energy_is_a_function_of_theta() -> None:
    assert path_dependence() == 0.0


def test_g2_energy_sees_warm_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    start_newton_warm(monkeypatch)
    assert path_dependence() > 0.0


def test_evidence_beyond_double_precision_is_minus_infinity() -> None:
    model = posterior(12, 2)
    for bad in (41.0, -41.0, np.inf, np.nan):
        for k in range(3):
            theta = np.zeros(3)
            theta[k] = bad
            point = model.evaluate(theta)
            assert point.log_density == -np.inf
            np.testing.assert_array_equal(point.gradient, np.zeros(3))


def test_default_prior_is_in_the_gradient() -> None:
    base = posterior(12, 2)
    model = HyperparameterPosterior(base.X, base.y, base.kernel, kernel_prior(2))
    theta = np.array([0.5, -2.0, 0.3])
    np.testing.assert_allclose(model.evaluate(theta).gradient, five_points(model, theta), rtol=1e-7)
