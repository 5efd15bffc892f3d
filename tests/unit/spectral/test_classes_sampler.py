from __future__ import annotations

import numpy as np
import pytest

from mercer.posterior.draws import Draws
from mercer.spectral.class_fitting import _words_of_trajectories
from mercer.spectral.class_model import (
    CLASSES,
    ClassState,
    LogisticModel,
    logistic_coefficients,
)
from mercer.spectral.class_sampler import ClassSampler, WeighedOnce, logistic_ridge_density
from mercer.spectral.model import GammaPrior, evidence_of_products
from mercer.spectral.rows import of_blocks
from support.spectral_cases import plain_design
from support.spectral_class_cases import functions, make_classes, plain_log_likelihood, problem

X, Y = problem(30, 2, 3)


def after(sampler: ClassSampler, n_steps: int, seed: int = 5) -> ClassState:
    rng = np.random.default_rng(seed)
    state = sampler.init(rng)
    for _ in range(n_steps):
        state, _ = sampler.step(rng, state)
    return state


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("has_linear_part", [False, True])
def test_a_step(n_classes: int, has_linear_part: bool) -> None:
    """The likelihood is that of the state; the functions do not change where signs do."""
    sampler = make_classes(
        *problem(30, 2, n_classes), n_classes=n_classes, has_linear_part=has_linear_part
    )
    rng = np.random.default_rng(1)
    state, n_turned = sampler.init(rng), 0
    assert state.log_likelihood == pytest.approx(
        plain_log_likelihood(np.zeros((n_classes - 1, 30)), sampler.rows.y)
    )
    for _ in range(20):
        before = state
        state, info = sampler.step(rng, state)
        expected = plain_log_likelihood(functions(sampler, state), sampler.rows.y)
        assert state.log_likelihood == info.log_density == pytest.approx(expected, rel=1e-10)
        assert info.acceptance_rate in (0.0, 0.25, 0.5, 0.75, 1.0)
        n_turned += int((state.frequencies == -before.frequencies).all(axis=1).sum())
    assert n_turned > 0
    turned = sampler._turn(rng, state)
    np.testing.assert_allclose(functions(sampler, state), functions(sampler, turned), atol=1e-10)


def test_a_ridge_that_is_given_stays() -> None:
    state = after(make_classes(X, Y, n_classes=3, is_ridge_learned=False, ridge=0.37), 5)
    np.testing.assert_array_equal(state.ridge, 0.37)
    assert (after(make_classes(X, Y, n_classes=3, ridge=0.37), 5).ridge != 0.37).all()


def test_without_a_linear_part_its_precision_stays() -> None:
    state = after(make_classes(X, Y, n_classes=3, has_linear_part=False), 5)
    np.testing.assert_array_equal(state.linear_precision, 1.0)


def test_what_a_draw_stores() -> None:
    sampler = make_classes(X, Y, n_classes=3, n_frequencies=6, n_deviations=3)
    state = after(sampler, 3)
    record = sampler.record(state)
    assert record["coef_deviation"].shape == (2, 3, 15)
    assert record["coef_mean"].shape == (2, 15)
    F = plain_design(state.frequencies, X, True)
    np.testing.assert_allclose(record["function"], state.coef @ F.T, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n_linear", [0, 3])
def test_the_density_of_the_ridge_is_that_of_the_evidence(n_linear: int) -> None:
    rng = np.random.default_rng(3)
    A = rng.standard_normal((12, 6 + n_linear + 1))
    gram, linear, prior = A.T @ A, np.full(n_linear, 0.7), GammaPrior(2.0, 3.0)
    density = logistic_ridge_density(gram, linear, prior, 12)

    def expected(x: float) -> float:
        diagonal = np.concatenate([np.full(6, np.exp(x)), linear])
        evidence = logistic_coefficients(gram, diagonal).log_evidence
        return evidence + prior.shape * x - prior.rate * np.exp(x)

    for x in (-3.0, 0.0, 2.0):
        assert density(x) - density(1.0) == pytest.approx(expected(x) - expected(1.0), rel=1e-9)
    assert density(-100.0) == -np.inf


def test_the_evidence_of_products_is_that_of_the_coefficients() -> None:
    rng = np.random.default_rng(4)
    A = rng.standard_normal((12, 8))
    diagonal, model = np.full(7, 0.7), LogisticModel(0, None, GammaPrior(2.0, 3.0))
    expected = logistic_coefficients(A.T @ A, diagonal).log_evidence
    assert evidence_of_products(model, A.T @ A, diagonal) == pytest.approx(expected, rel=1e-10)


def test_later_passes_weigh_rows_as_the_first_did() -> None:
    """Block by block, whatever the functions are by then."""
    weigh_of = WeighedOnce(of_blocks(np.random.default_rng(5), CLASSES.weigher))
    blocks = (0, np.linspace(-1.0, 1.0, 5)), (3, np.ones(4)), (1, np.zeros(2))
    first = [weigh_of(index)(f, np.full(len(f), 0.5)) for index, f in blocks]
    for (index, f), (omega, kappa) in zip(blocks, first, strict=True):
        again = weigh_of(index)(np.full(len(f), 9.0), np.zeros(len(f)))
        np.testing.assert_array_equal(again, (omega, kappa))
    assert not np.array_equal(first[0][0], first[1][0])


def test_it_says_where_trajectories_are_refused() -> None:
    """In chains, not in draws; where none were taken there is nothing to say."""
    rates = np.array([[0.0, 0.3], [0.5, 0.9], [0.1, 0.1]])
    variables = {"log_likelihood": np.zeros((3, 2))}
    (words,) = _words_of_trajectories(Draws(variables, {"trajectory_acceptance": rates}, {}, ()))
    assert words.startswith("in 2 of 3 chains trajectories were mostly refused")
    assert _words_of_trajectories(Draws(variables, {}, {}, ())) == ()
    good = {"trajectory_acceptance": np.full((3, 2), 0.8)}
    assert _words_of_trajectories(Draws(variables, good, {}, ())) == ()
