from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.special import log_expit

from mercer.basis.classifier import class_draws, log_targets
from mercer.basis.prediction import evidence_variance, judge_ancestry
from support.class_fits import make_rows, tiny


@pytest.fixture(scope="module", params=[2, 3])
def model(request: pytest.FixtureRequest):
    return tiny().fit(*make_rows(60, request.param))


def test_particles_are_weighted_draws(model) -> None:
    draws, C = model.posterior_, len(model.classes_)
    shape = (1, 30) if C == 2 else (1, 30, C - 1)
    assert {name: v.shape for name, v in draws.variables.items()} == dict.fromkeys(
        ("n_centres", "coef_std", "lengthscale"), shape
    )
    assert np.exp(draws.log_weights).sum() == pytest.approx(1.0)
    weights = np.exp(draws.log_weights[0])
    mean = weights @ draws.variables["n_centres"][0].reshape(30, -1).sum(axis=1)
    # Of more than two classes the particles are resampled: at most one more or fewer of each.
    assert mean == pytest.approx(model.n_centres_, rel=1e-9 if C == 2 else 0.2)
    running = model._learner.running
    again = class_draws(running.sticks, running.state, model._learner.entropy, ["a", "b", "c"][:C])
    np.testing.assert_array_equal(again.variables["coef_std"], draws.variables["coef_std"])


def test_functions_are_named_by_their_class() -> None:
    draws = tiny().fit(*make_rows(40, 4)).posterior_
    assert draws.entry_names("n_centres") == (
        "n_centres[ash]", "n_centres[birch]", "n_centres[cedar]"
    )  # fmt: skip


def test_the_target_is_prior_times_likelihood(model) -> None:
    """Differences between particles, for the terms that the set does not change."""
    running = model._learner.running
    filter_, state = running.sticks.filters[0], running.state.states[0]
    before = log_targets(filter_, state)
    f = np.empty((30, state.n_held))
    p, m = state.particles, filter_.prior.n_mean
    for i in range(30):
        k = p.size[i]
        columns = [*range(m), *p.members[i, :k]]
        f[i] = p.beta[i, : m + k] @ state.rows.design[p.level[i], columns, : state.n_held]
    signs = state.rows.sign[: state.n_held]
    flipped = state.rows._replace(sign=-state.rows.sign)
    after = log_targets(filter_, dataclasses.replace(state, rows=flipped))
    expected = log_expit(-f * signs).sum(axis=1) - log_expit(f * signs).sum(axis=1)
    np.testing.assert_allclose(after - before, expected, rtol=1e-9)


def test_few_ancestors_are_pointed_out(model) -> None:
    states = model._learner.running.state.states
    poor = [dataclasses.replace(states[0], n_ancestors=0), *states[1:]]
    said = judge_ancestry(model.posterior_, states, "").warnings
    warned = judge_ancestry(model.posterior_, poor, "").warnings
    assert warned[:-1] == said
    assert warned[-1].endswith("Try more particles (n_particles).")


def test_errors_of_the_evidences_add_up(model) -> None:
    total = sum(map(evidence_variance, model._learner.running.state.states))
    assert model.log_evidence_se_ == pytest.approx(np.sqrt(total))
