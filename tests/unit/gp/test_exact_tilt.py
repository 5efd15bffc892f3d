from __future__ import annotations

import numpy as np

from mercer.gp.exact import TiltedTarget, fit_slope, tilted
from support.gp_cases import posterior


def test_a_line_is_found_whatever_the_scales() -> None:
    rng = np.random.default_rng(0)
    theta = rng.standard_normal((60, 3)) * [1.0, 0.1, 10.0]
    slope = np.array([0.5, -3.0, 0.02])
    errors = 7.0 + theta @ slope + 0.01 * rng.standard_normal(60)
    np.testing.assert_allclose(fit_slope(theta, errors), slope, rtol=0.05)


def test_noise_has_no_slope_and_neither_have_few_points() -> None:
    rng = np.random.default_rng(1)
    theta = rng.standard_normal((60, 10))
    assert np.abs(fit_slope(theta, rng.standard_normal(60))).max() < 0.2
    assert not fit_slope(theta[:19], theta[:19, 0]).any()
    assert np.isfinite(fit_slope(np.ones((30, 2)), rng.standard_normal(30))).all()


def test_tilted_target_has_the_gradient_of_its_density() -> None:
    model, slope = posterior(10, 1), np.array([0.7, -0.3])
    target, theta, h = TiltedTarget(model, slope), np.array([1.0, 0.5]), 1e-5
    ends = [target.evaluate(theta + h * s * np.eye(2)[0]).log_density for s in (1.0, -1.0)]
    assert abs((ends[0] - ends[1]) / (2.0 * h) - target.evaluate(theta).gradient[0]) < 1e-6
    back = tilted(target.evaluate(theta), -slope)
    np.testing.assert_allclose(back.gradient, model.evaluate(theta).gradient, rtol=1e-12)
