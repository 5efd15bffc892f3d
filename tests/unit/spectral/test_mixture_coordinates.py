from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from mercer.errors import UsageError
from mercer.spectral.mixture import Mixture, MixtureState
from mercer.spectral.trajectory import Coordinates, coordinates_of
from support.mixture_cases import BASES, CONCENTRATION
from support.statistics import dkw_distance, dkw_limit, tiers

M = 7


def case(name: str, seed: int = 3) -> tuple[Coordinates, MixtureState, np.ndarray]:
    """A chart, and the state and frequencies, drawn from the prior, that it is made for."""
    base = BASES[name]
    state, W = Mixture(base, CONCENTRATION).draw_prior(np.random.default_rng(seed), M)
    return coordinates_of(base.with_scale(state.scale), state), state, W


@pytest.mark.parametrize("name", BASES)
def test_there_and_back(name: str) -> None:
    chart, state, W = case(name)
    assert state.n_components > 1
    theta = chart.position(W, state.components)
    np.testing.assert_allclose(chart.at(theta)[0], W, rtol=1e-12, atol=1e-14)
    again = chart.components(theta)
    np.testing.assert_allclose(again.means, state.means, rtol=1e-12)
    np.testing.assert_allclose(again.stds, state.components.stds, rtol=1e-12)
    np.testing.assert_allclose(
        again.log_densities(W), state.components.log_densities(W), rtol=1e-10
    )
    np.testing.assert_allclose(chart.position(W, again), theta, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", BASES)
def test_a_component_takes_its_members_with_it(name: str) -> None:
    chart, state, W = case(name)
    theta = chart.position(W, state.components)
    d = W.shape[1]
    theta[M * d : (M + state.n_components) * d] += 0.3  # means
    moved, new = chart.at(theta)[0], chart.components(theta)
    before = chart.components(chart.position(W, state.components)).means
    Z = state.assignment
    np.testing.assert_allclose(moved - new.means[Z], W - before[Z], atol=1e-12)
    assert np.abs(moved - W).max() > 0.1


@pytest.mark.parametrize("name", BASES)
def test_gradients_against_differences(name: str) -> None:
    """Of the density that is missing, and of a function of the frequencies."""
    chart, state, W = case(name)
    theta = chart.position(W, state.components) + 0.1
    weights = np.random.default_rng(5).standard_normal(W.shape)

    def function(theta: np.ndarray) -> float:
        return float((weights * np.sin(chart.at(theta)[0])).sum())

    W, _, pull = chart.at(theta)
    of_density = pull(np.zeros_like(W))
    of_function = pull(weights * np.cos(W)) - of_density
    h = 1e-4
    for i in range(len(theta)):
        step = h * np.eye(len(theta))[i]
        for f, gradient in (
            (function, of_function),
            (lambda theta: chart.at(theta)[1], of_density),
        ):
            difference = (
                f(theta - 2 * step)
                - 8 * f(theta - step)
                + 8 * f(theta + step)
                - f(theta + 2 * step)
            ) / (12 * h)
            assert gradient[i] == pytest.approx(difference, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("name", ["diagonal, 1 input", "diagonal, 2 inputs"])
def test_the_density_is_that_of_the_logarithms(name: str) -> None:
    """With the standard normal part: inverse gamma, times the derivative of the exponential."""
    chart, state, W = case(name)
    base, theta = BASES[name].with_scale(state.scale), chart.position(W, state.components)
    size = state.n_components * W.shape[1]

    def expected(theta: np.ndarray) -> float:
        variances = chart.components(theta).stds ** 2
        law = stats.invgamma(0.5 * base.nu0, scale=0.5 * state.scale)
        return float((law.logpdf(variances) + np.log(variances)).sum())

    def found(theta: np.ndarray) -> float:
        s = theta[-size:]
        return chart.at(theta)[1] - 0.5 * float(s @ s)

    other = theta.copy()
    other[-size:] += np.random.default_rng(6).standard_normal(size)
    difference = expected(other) - expected(theta)
    assert found(other) - found(theta) == pytest.approx(difference, rel=1e-10)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("n", tiers(1500, 4000))
@pytest.mark.parametrize("name", BASES)
def test_the_prior_is_standard_normal(name: str, n: int) -> None:
    """Frequencies, and means of components: false alarm 1e-6; detects 0.1 (4000 draws: 0.06)."""
    rows = []
    for seed in range(n):
        chart, state, W = case(name, seed)
        theta, d = chart.position(W, state.components), W.shape[1]
        rows.append(np.append(theta[:d], theta[M * d : (M + 1) * d]))
    for values in np.array(rows).T:
        assert dkw_distance(values, stats.norm.cdf) < dkw_limit(n, 12)


@pytest.mark.parametrize("name", BASES)
def test_precisions(name: str) -> None:
    """Positive, and of nothing known those of the prior alone."""
    chart, state, W = case(name)
    size = len(chart.position(W, state.components))
    for information in (0.0, 100.0):
        found = chart.precisions(information)
        assert found.shape == (size,)
        assert (found >= 0.0).all()
    assert (chart.precisions(100.0)[: W.size] > 1.0).all()


@pytest.mark.parametrize("name", BASES)
def test_precisions_do_not_depend_on_what_moves(name: str) -> None:
    """A chart that is made where another one has led has the same."""
    chart, state, W = case(name)
    theta = chart.position(W, state.components) + 0.3
    there = dataclasses.replace(state, components=chart.components(theta))
    again = coordinates_of(BASES[name].with_scale(state.scale), there)
    np.testing.assert_allclose(again.precisions(50.0), chart.precisions(50.0), rtol=1e-12)
    np.testing.assert_allclose(again.at(theta)[0], chart.at(theta)[0], rtol=1e-12)


def test_other_components_are_refused() -> None:
    _, state, _ = case("diagonal, 1 input")
    with pytest.raises(UsageError, match="no coordinates for components of FullBase"):
        coordinates_of(BASES["full, 1 input"], state)
