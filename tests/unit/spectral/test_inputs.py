from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import quad

from mercer.posterior.draws import Draws
from mercer.spectral.prediction import input_scales
from support.learned import learned


def _model(W, scale=None):
    """What is read of a model: frequencies (S, M, d), and which inputs are constant."""
    scale = np.ones(W.shape[2]) if scale is None else np.asarray(scale)
    draws = Draws({"frequencies": W[np.newaxis]}, {}, {}, ())
    return SimpleNamespace(posterior_=draws, standardizer_=SimpleNamespace(scale=scale))


def test_the_fall_is_the_mean_of_the_kernel_over_a_unit_of_lags():
    W = np.random.default_rng(0).normal(0.0, (0.2, 1.0, 9.0), (4, 5, 3))
    scales = input_scales(_model(W))
    for s in range(4):
        for j in range(3):
            mean, _ = quad(lambda t, w=W[s, :, j]: np.cos(w * t).mean(), 0.0, 1.0)
            assert scales.falls[s, j] == pytest.approx(1.0 - mean, abs=1e-10)
    assert scales.order == (2, 1, 0)
    np.testing.assert_allclose(scales.frequency_scales**2, (W**2).mean(axis=1))


def test_a_period_of_one_unit_does_not_hide_an_input():
    W = np.zeros((1, 6, 2))
    W[..., 0], W[..., 1] = 2.0 * np.pi, 0.5  # the kernel along the first is 1 again at lag 1
    assert input_scales(_model(W)).order == (0, 1)


def test_lags_end_after_three_units_or_four_short_periods():
    W = np.zeros((3, 8, 3))
    W[..., 1], W[..., 2] = 0.1, 2.0 * np.pi / 0.05
    np.testing.assert_allclose(input_scales(_model(W)).longest_lags, [3.0, 3.0, 0.2])


def test_constant_inputs_are_left_out_and_draws_are_thinned():
    W = np.random.default_rng(1).standard_normal((450, 3, 4))
    scales = input_scales(_model(W, scale=[1.0, 0.0, 2.0, 1.0]))
    assert sorted(scales.order) == [0, 2, 3]
    assert scales.falls.shape == (200, 4)


def test_the_input_that_waves_comes_first():
    scales = input_scales(learned())
    falls = scales.falls.mean(axis=0)
    assert scales.order[0] == 0
    assert falls[0] > 10 * max(falls[1:])
