from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import NumericalError
from mercer.sampling.hmc import mass_from_covariance, mass_from_draws, unit_mass
from support.targets import uneven_mass


def test_momenta_have_the_inverse_covariance() -> None:
    """False alarm: 9 entries, each a mean of 20 000 with a limit of six standard errors."""
    mass, rng = uneven_mass(), np.random.default_rng(0)
    p = np.array([mass.draw_momentum(rng) for _ in range(20_000)])
    products = p[:, :, None] * p[:, None, :]
    error = products.mean(axis=0) - np.linalg.inv(mass.covariance)
    assert (np.abs(error) < 6.0 * products.std(axis=0) / np.sqrt(20_000)).all()


def test_velocity_and_energy() -> None:
    mass, p = uneven_mass(), np.array([0.3, -1.0, 2.0])
    np.testing.assert_allclose(mass.velocity(p), mass.covariance @ p)
    assert mass.kinetic_energy(p) == pytest.approx(0.5 * p @ mass.covariance @ p)
    h = 1e-6
    slope = [
        (mass.kinetic_energy(p + h * e) - mass.kinetic_energy(p - h * e)) / (2.0 * h)
        for e in np.eye(3)
    ]
    np.testing.assert_allclose(slope, mass.velocity(p), rtol=1e-8)


def test_factor() -> None:
    for mass in (uneven_mass(), unit_mass(3)):
        np.testing.assert_allclose(mass.factor @ mass.factor.T, mass.covariance)
    with pytest.raises(NumericalError):
        mass_from_covariance(-np.eye(2))


def test_many_draws_give_their_covariance() -> None:
    draws = np.random.default_rng(1).multivariate_normal(
        [5.0, -3.0], [[4.0, 1.5], [1.5, 1.0]], 5000
    )
    np.testing.assert_allclose(
        mass_from_draws(draws).covariance, np.cov(draws, rowvar=False), rtol=5e-3
    )


def test_shrinkage_by_its_formula() -> None:
    draws = np.random.default_rng(1).standard_normal((15, 3))
    sample = np.cov(draws, rowvar=False)
    expected = 0.75 * (0.75 * sample + 0.25 * np.diag(np.diag(sample))) + 0.25e-3 * np.eye(3)
    np.testing.assert_allclose(mass_from_draws(draws).covariance, expected)


@pytest.mark.parametrize("draws", [np.zeros((40, 3)), np.ones((2, 3)), np.arange(40.0)[:, None]])
def test_draws_that_hardly_move_give_a_positive_mass(draws: np.ndarray) -> None:
    mass = mass_from_draws(draws)
    assert mass.covariance.shape == (draws.shape[1],) * 2
    assert np.isfinite(mass.factor).all()
