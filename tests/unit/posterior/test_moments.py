"""Means, spreads and quantiles, weighted or not."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.posterior.diagnostics import effective_size, flat_weights, mean_sd, quantiles
from mercer.posterior.draws import Draws


def weighted(log_weights: np.ndarray) -> Draws:
    return Draws({"a": np.zeros(log_weights.shape)}, {}, {}, (), log_weights=log_weights)


def test_weights_are_normalised_and_may_be_zero() -> None:
    draws = weighted(np.array([[1000.0, 1000.0 + np.log(3.0), -np.inf]]))
    np.testing.assert_allclose(flat_weights(draws), [0.25, 0.75, 0.0])


def test_no_weights() -> None:
    assert flat_weights(Draws({"a": np.zeros((1, 2))}, {}, {}, ())) is None


def test_effective_size_adds_over_populations() -> None:
    assert effective_size(weighted(np.zeros((2, 5)))) == pytest.approx(10.0)
    one = np.where(np.arange(5) == 0, 0.0, -np.inf)
    assert effective_size(weighted(np.stack([one, np.zeros(5)]))) == pytest.approx(6.0)


def test_mean_sd_agree_with_numpy() -> None:
    x = np.random.default_rng(2).normal(3.0, 2.0, size=(50, 4))
    mean, sd = mean_sd(x, None)
    np.testing.assert_allclose(mean, x.mean(axis=0))
    np.testing.assert_allclose(sd, x.std(axis=0, ddof=1))


def test_weighted_mean_sd() -> None:
    mean, sd = mean_sd(np.array([[0.0], [4.0]]), np.array([0.75, 0.25]))
    assert mean[0] == pytest.approx(1.0)
    assert sd[0] == pytest.approx(np.sqrt(3.0))


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_extreme_scales(scale: float) -> None:
    mean, sd = mean_sd(scale * np.array([[1.0], [3.0]]), None)
    np.testing.assert_allclose([mean[0] / scale, sd[0] / scale], [2.0, np.sqrt(2.0)])


def test_one_draw_has_no_spread() -> None:
    assert mean_sd(np.array([[7.0]]), None)[1][0] == 0.0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite_is_nan_for_that_quantity_only(bad: float) -> None:
    mean, sd = mean_sd(np.array([[1.0, bad], [2.0, 0.0]]), None)
    assert mean[0] == 1.5
    assert np.isnan([mean[1], sd[1]]).all()


def test_quantiles() -> None:
    x = np.arange(101.0)
    assert quantiles(x, None, (0.05, 0.95)) == (5.0, 95.0)
    assert quantiles(np.array([3.0, 1.0, 2.0]), np.array([0.0, 0.5, 0.5]), (0.05, 0.95)) == (1, 2)
    assert quantiles(np.array([1.0, 2.0]), np.array([0.5, 0.5 - 1e-12]), (1.0,)) == (2.0,)
