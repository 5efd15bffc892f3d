"""The function without the noise of a target, against the predictive law."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import SequentialKernelRegressor

RNG = np.random.default_rng(6)
X = RNG.uniform(-3.0, 3.0, (40, 1))
Y = 5.0 + 2.0 * np.sin(2.0 * X[:, 0]) + 0.4 * RNG.standard_normal(40)
NEW = np.linspace(-5.0, 5.0, 7)[:, np.newaxis]


@pytest.mark.parametrize("variances", ["integrated", "sampled"])
def test_the_noise_is_what_is_left(variances: str) -> None:
    model = SequentialKernelRegressor(
        n_particles=60, variances=variances, random_state=0, progress=False
    ).fit(X, Y)
    mean, std = model.latent(NEW)
    whole, with_noise = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, whole, rtol=1e-12)
    # The variance of the noise is the same everywhere.
    noise = with_noise**2 - std**2
    np.testing.assert_allclose(noise, noise[0], rtol=1e-9)
    assert np.sqrt(noise[0]) == pytest.approx(model.noise_std_, rel=0.05)
    lower, upper = model.latent_interval(NEW, 0.9)
    outer_lower, outer_upper = model.predict_interval(NEW, 0.9)
    assert np.all((outer_lower < lower) & (lower < mean) & (mean < upper) & (upper < outer_upper))
    inner = model.latent_interval(NEW, 0.5)
    assert np.all((lower < inner[0]) & (inner[1] < upper))


def test_blocks_of_rows_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    model = SequentialKernelRegressor(n_particles=10, random_state=0, progress=False).fit(X, Y)
    expected = model.latent_interval(NEW)
    monkeypatch.setattr(SequentialKernelRegressor, "_rows_at_once", 3)
    np.testing.assert_array_equal(model.latent_interval(NEW), expected)
