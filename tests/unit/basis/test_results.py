import dataclasses

import numpy as np
import pytest

from mercer import SequentialKernelRegressor
from mercer.basis.model import counted
from mercer.basis.prediction import (
    diagnose_population,
    evidence_variance,
    population_draws,
)
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


@pytest.mark.parametrize(("n_each", "variance"), [(1, 0.0), (4, 0.1 - 0.025)])
def test_error_of_the_evidence(learned, n_each: int, variance: float) -> None:
    """Equal weights: what families that are gone left, and the families that there are."""
    first, own = learned[1].states[0], np.arange(40)
    particles = first.particles._replace(
        log_weight=np.full(40, -np.log(40.0)), ancestor=np.column_stack([own, own // n_each])
    )
    level = dataclasses.replace(first, particles=particles, evidence_variance=0.09)
    assert evidence_variance(level) == pytest.approx(0.09 + variance)


def test_the_error_of_the_evidence_is_its_scatter_over_seeds() -> None:
    """Of the weights between two resamplings alone it was .6 of it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, (16, 1))
    y = np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(16)
    models = [
        SequentialKernelRegressor(n_particles=100, random_state=s).fit(X, y) for s in range(30)
    ]
    scatter = np.std([model.log_evidence_ for model in models], ddof=1)
    error = np.sqrt(np.mean([model.log_evidence_se_**2 for model in models]))
    assert 0.75 < error / scatter < 1.3


def test_old_families_are_followed_for_fifty_rows_more(learned) -> None:
    """Then what they say and later ones do not is kept, and the errors go on from there."""
    particles, own = learned[1].states[0].particles, np.arange(40)
    old, new = own // 4, own // 2
    weights = np.full(40, -np.log(40.0))
    particles = particles._replace(log_weight=weights, ancestor=np.column_stack([new, old]))
    state = dataclasses.replace(learned[1].states[0], particles=particles, n_seen=100)
    before = evidence_variance(state)
    changes = counted(state)
    assert changes["n_ancestors"] == 20
    assert evidence_variance(dataclasses.replace(state, **changes)) == pytest.approx(before)
    np.testing.assert_array_equal(particles.ancestor, np.column_stack([own, new]))
    assert counted(dataclasses.replace(state, n_seen=101)) == {}
