"""BNK-10: frequencies fixed: coefficients, noise and predictions have laws in closed form."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats

from mercer.posterior.draws import Draws
from mercer.spectral import sampler as spectral_sampler
from mercer.spectral.model import RegressionModel
from mercer.spectral.prediction import FunctionDraws, function_draws
from mercer.spectral.sampler import SpectralSampler
from support.spectral_cases import make_spectral, plain_design, problem
from support.statistics import dkw_distance, dkw_limit, tiers

N, M, RIDGE, K = 7, 3, 0.05, 3
X, Y = problem(N, 2)
Y = 5.0 * Y  # a noise variance well above 1
NEW = np.array([[0.2, -0.4], [3.0, 1.0]])


@pytest.fixture(scope="module", autouse=True)
def fixed() -> Iterator[None]:
    """Proposals are the frequencies themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spectral_sampler, "propose", lambda rng, mixture, state, W, tuning: W)
        yield


@pytest.fixture(scope="module", params=tiers(1_000, 2_500))
def one(fixed: None, request: pytest.FixtureRequest) -> Fixed:
    return Fixed(request.param)


class Fixed:
    """Draws given the frequencies, and what they must be."""

    def __init__(self, n_steps: int) -> None:
        self.n_steps, self.limit = n_steps, dkw_limit(n_steps, 6)  # 0.090, 0.057
        sampler: SpectralSampler = make_spectral(
            X, Y, has_linear_part=False, is_ridge_learned=False, is_symmetric=False, ridge=RIDGE,
            n_frequencies=M, n_deviations=K,
        )  # fmt: skip
        rng = np.random.default_rng(100)
        state = sampler.init(rng)
        self.W, records = state.frequencies, []
        for _ in range(n_steps):
            state, _ = sampler.step(rng, state)
            np.testing.assert_array_equal(state.frequencies, self.W)
            records.append(sampler.record(state))
        variables = {name: np.stack([[each[name] for each in records]]) for name in records[0]}
        self.draws = Draws(variables, {}, {}, ())
        F = plain_design(self.W, X, False)
        self.precision = F.T @ F + RIDGE * np.eye(2 * M)
        self.mean = np.linalg.solve(self.precision, F.T @ Y)
        model = sampler.model
        self.shape = model.noise_shape + 0.5 * N
        residual = Y - F @ self.mean
        self.rate = model.noise_rate + 0.5 * (residual @ residual + RIDGE * self.mean @ self.mean)

    @property
    def functions(self) -> FunctionDraws:
        return function_draws(self.draws)

    def noise_distance(self) -> float:
        law = stats.invgamma(self.shape, scale=self.rate)
        return dkw_distance(self.draws.flat("noise_std") ** 2, law.cdf)

    def coefficient_distances(self) -> list[float]:
        """Of three combinations of the coefficients: t of 2 a_n degrees of freedom."""
        drawn = self.draws.flat("coef_mean") + self.draws.flat("coef_deviation")[:, 0]
        found = []
        for a in np.random.default_rng(1).standard_normal((3, 2 * M)):
            spread = self.rate / self.shape * (a @ np.linalg.solve(self.precision, a))
            law = stats.t(2.0 * self.shape, a @ self.mean, math.sqrt(spread))
            found.append(dkw_distance(drawn @ a, law.cdf))
        return found

    def predictive(self, x: np.ndarray):
        """t_{2 a_n}(phi'mu_n, (b_n / a_n)(1 + phi'Lambda_n^-1 phi))."""
        phi = plain_design(self.W, x[np.newaxis], False)[0]
        spread = 1.0 + phi @ np.linalg.solve(self.precision, phi)
        scale = math.sqrt(self.rate / self.shape * spread)
        return stats.t(2.0 * self.shape, phi @ self.mean, scale)

    def predictive_distances(self) -> list[float]:
        """One component of each draw, with noise: independent draws of the predictive law."""
        rng = np.random.default_rng(2)
        _, locations = self.functions.locations(NEW)
        scales = self.functions.scales
        chosen = 2 * K * np.arange(self.n_steps) + rng.integers(0, 2 * K, self.n_steps)
        noise = rng.standard_normal((len(NEW), self.n_steps))
        drawn = locations[:, chosen] + scales[chosen] * noise
        laws = [self.predictive(x) for x in NEW]
        return [dkw_distance(own, law.cdf) for own, law in zip(drawn, laws, strict=True)]


def test_bnk_10_laws(one: Fixed) -> None:
    """False alarm 1e-6 over the noise, three coefficients and two rows; detects 0.18.

    Of 2500 draws 0.11.
    """
    assert one.noise_distance() < one.limit
    assert max(one.coefficient_distances()) < one.limit
    assert max(one.predictive_distances()) < one.limit


def test_bnk_10_exact_parts(one: Fixed) -> None:
    """Means are those of the coefficients' law, without any error of Monte Carlo."""
    means = one.draws.flat("coef_mean")
    np.testing.assert_allclose(means, np.broadcast_to(one.mean, means.shape), atol=1e-10)
    expected = np.array([one.predictive(x).mean() for x in NEW])
    np.testing.assert_allclose(one.functions.expected(NEW), expected, rtol=1e-10)
    mean, locations = one.functions.locations(NEW)
    np.testing.assert_allclose(mean, expected, rtol=1e-10)
    # Each deviation comes with both signs.
    np.testing.assert_allclose(locations.mean(axis=1), expected, rtol=1e-10)
    assert np.ptp(one.draws.flat("log_evidence")) < 1e-10


def forget_the_noise_of_the_coefficients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deviations are drawn as if s2 were 1."""
    complete = SpectralSampler._complete

    def mutant(self, *rest):
        state = complete(self, *rest)
        coef = state.coef
        wrong = coef.deviations / math.sqrt(coef.noise_variance)
        return dataclasses.replace(state, coef=dataclasses.replace(coef, deviations=wrong))

    monkeypatch.setattr(SpectralSampler, "_complete", mutant)


def forget_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """a_n = a_0."""
    monkeypatch.setattr(RegressionModel, "posterior_shape", property(lambda self: self.noise_shape))


def test_bnk_10_sees_other_deviations(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_the_noise_of_the_coefficients(monkeypatch)
    one = Fixed(2_500)
    assert one.noise_distance() < one.limit
    assert min(one.coefficient_distances()) > 1.5 * one.limit
    assert max(one.predictive_distances()) > 1.5 * one.limit


def test_bnk_10_sees_another_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_the_rows(monkeypatch)
    one = Fixed(2_500)
    assert one.noise_distance() > 1.5 * one.limit
    assert max(one.predictive_distances()) > 1.5 * one.limit
