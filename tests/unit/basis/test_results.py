import dataclasses

import numpy as np
import pytest

from mercer.basis.prediction import diagnose_population, log_evidence_error, population_draws
from support.basis_batches import make_batches


@pytest.fixture(scope="module")
def learned():
    batches, rng = make_batches(60, forgetting=(1.0, 0.8), n_particles=40), np.random.default_rng(0)
    state = batches.init(rng)
    for _ in range(batches.n_steps):
        state, _ = batches.step(rng, state)
    return batches.filters, state.filters


def test_particles_are_weighted_draws(learned) -> None:
    ensemble, state = learned
    draws = population_draws(ensemble, state, 3)
    assert set(draws.variables) == {"n_centres", "noise_std", "lengthscale", "coef_std"}
    assert all(values.shape == (1, 80) for values in draws.variables.values())
    assert np.exp(draws.log_weights).sum() == pytest.approx(1.0)
    shares = np.exp(draws.log_weights[0]).reshape(2, 40).sum(axis=1)
    np.testing.assert_allclose(shares, np.exp(state.log_weights))
    assert set(np.unique(draws.variables["lengthscale"])) <= {1.0, 0.5}
    np.testing.assert_array_equal(
        draws.variables["noise_std"], population_draws(ensemble, state, 3).variables["noise_std"]
    )


def test_few_ancestors_are_pointed_out(learned) -> None:
    ensemble, state = learned
    draws = population_draws(ensemble, state, 3)
    said = diagnose_population(draws, state).warnings
    first = dataclasses.replace(state.states[0], n_ancestors=0)
    poor = dataclasses.replace(state, filters={"0": first, "1": state.states[1]})
    warned = diagnose_population(draws, poor).warnings
    assert len(warned) == len(said) + 1
    assert "0 % of those fifty rows earlier" in warned[-1]


def test_error_of_the_evidence(learned) -> None:
    """Equal weights: what resampling cost alone."""
    _, state = learned
    first = state.states[0]
    particles = first.particles._replace(log_weight=np.full(40, -np.log(40.0)))
    level = dataclasses.replace(first, particles=particles, evidence_variance=0.09)
    assert log_evidence_error(dataclasses.replace(state, filters={"0": level})) == pytest.approx(
        0.3
    )
