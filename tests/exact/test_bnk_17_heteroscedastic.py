"""BNK-17: noise whose log variance is a function of the inputs: quadrature, the joint law.

One frequency of the function that stays, and one of the log variance: both of its coefficients and
its spread by quadrature, the variance and the function integrated out. Then the joint law of all
that a sweep draws. False alarm 1e-6.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

from mercer.spectral.model import HeteroscedasticNoise
from mercer.spectral.rows import MemoryRows
from mercer.spectral.sampler import NoiseState, SpectralSampler, SpectralState
from support.mixture_cases import BASES
from support.spectral_cases import (
    LINEAR_PRIOR,
    NOISE,
    RIDGE_PRIOR,
    draw_joint,
    drawn_coef,
    make_spectral,
    plain_design,
)
from support.spectral_joint import Joint
from support.statistics import dkw_limit, few_first, largest_z, tiers, z_limit

Mutant = Callable[[pytest.MonkeyPatch], None]

X = np.array([[-1.6], [-0.7], [0.3], [0.9], [1.8], [2.5]])
Y = np.array([0.5, -0.3, 0.2, 0.4, 4.0, -5.0])
RIDGE, BATCHES = 0.2, 50
SPREADS = HeteroscedasticNoise.spreads
MOST = 20.0  # of a log variance


def _law(beside: np.ndarray, rows: np.ndarray) -> HeteroscedasticNoise:
    """Features of these frequencies, and a centre that is not theirs."""
    features = plain_design(beside, rows, False).T
    centre = np.linspace(0.3, -0.2, len(features))
    first = np.append(1.0, np.zeros(len(features)))
    return HeteroscedasticNoise(beside, centre, 0.5 * np.cov(features, ddof=0), first)


def _log_variances(law: HeteroscedasticNoise, gamma: np.ndarray, rows: np.ndarray) -> np.ndarray:
    features = plain_design(law.beside, rows, False) - law.centre
    return np.clip(gamma @ features.T, -MOST, MOST)


def _sampler() -> SpectralSampler:
    """One frequency, which hardly moves."""
    sampler = make_spectral(
        X, Y, has_linear_part=False, is_ridge_learned=False, step=1e-6, n_frequencies=1,
        ridge=RIDGE,
    )  # fmt: skip
    return replace(sampler, noise=_law(np.array([[0.7]]), X))


def _start(sampler: SpectralSampler) -> tuple[np.random.Generator, SpectralState]:
    rng = np.random.default_rng(90)
    return rng, sampler.init(rng)


@functools.cache
def _truth() -> np.ndarray:
    """Means of log s2, log tau, the function, and tame log variances, at all rows."""
    sampler = _sampler()
    F = plain_design(_start(sampler)[1].frequencies, X, False)
    u = np.linspace(-5.0, 5.0, 401)
    grid = np.stack(np.meshgrid(np.sinh(u), np.sinh(u)), axis=-1).reshape(-1, 2)
    logs = np.log(np.cosh(np.stack(np.meshgrid(u, u), axis=-1).reshape(-1, 2))).sum(axis=1)
    prior = np.array([
        stats.norm(0.0, tau).logpdf(grid).sum(axis=1) for tau in SPREADS
    ])  # fmt: skip
    g = _log_variances(sampler.noise, grid, X)
    K = F @ F.T / RIDGE + np.exp(g)[:, :, np.newaxis] * np.eye(len(X))
    solved = np.linalg.solve(K, np.tile(Y[:, np.newaxis], (len(K), 1, 1)))[..., 0]
    shape, rate = NOISE[0] + 0.5 * len(X), NOISE[1] + 0.5 * solved @ Y
    logs = logs + prior - shape * np.log(rate) - 0.5 * np.linalg.slogdet(K)[1]
    W = np.exp(logs - logs.max())
    W /= W.sum()
    of_grid, of_spread = W.sum(axis=0), W.sum(axis=1)
    return np.r_[
        of_grid @ (np.log(rate) - special.digamma(shape)),
        of_spread @ np.log(SPREADS),
        of_grid @ (solved @ F @ F.T / RIDGE),
        of_grid @ np.tanh(0.5 * g),
    ]


def _moments(n_draws: int) -> np.ndarray:
    sampler = _sampler()
    (rng, state), found = _start(sampler), []
    for _ in range(n_draws + 100):
        state, _ = sampler.step(rng, state)
        F = plain_design(state.frequencies, X, False)
        tau, *gamma = state.noise.parameter
        g = _log_variances(sampler.noise, np.array(gamma), X)
        logs = math.log(state.coef.noise_variance), math.log(tau)
        found.append(np.r_[logs, F @ state.coef.mean, np.tanh(0.5 * g)])
    return np.array(found[100:])


LIMIT = z_limit(BATCHES, 2 + 2 * len(X))


@pytest.mark.slow
@pytest.mark.parametrize("n_draws", [5000, 40_000])
def test_bnk_17_draws_have_the_moments_of_the_posterior(n_draws: int) -> None:
    assert largest_z(_moments(n_draws), _truth(), BATCHES) < LIMIT


# The joint law of a sweep.

N_STEPS, N, M, Q = 3, 10, 4, 2
STATISTICS = 12
# base, linear part, share of global proposals
CASES = {
    "linear part": ("diagonal, 2 inputs", True, 0.5),
    "carried": ("full, 1 input", False, 0.5),
}


def _draw_joint(
    rng: np.random.Generator, sampler: SpectralSampler
) -> tuple[SpectralSampler, SpectralState]:
    """Draw state and targets from their joint law."""
    _, state = draw_joint(rng, replace(sampler, noise=None))
    tau = rng.choice(SPREADS)
    parameter = np.append(tau, tau * rng.standard_normal(2 * Q))
    return _redraw_targets(rng, sampler, replace(state, noise=NoiseState(parameter)))


def _redraw_targets(
    rng: np.random.Generator, sampler: SpectralSampler, state: SpectralState
) -> tuple[SpectralSampler, SpectralState]:
    rows, parameter, law = sampler.rows, state.noise.parameter, sampler.noise
    assert isinstance(rows, MemoryRows)
    variances = np.exp(_log_variances(law, parameter[1:], rows.X)) * state.coef.noise_variance
    f = plain_design(state.frequencies, rows.X, rows.has_linear_part) @ drawn_coef(state)
    y = f + np.sqrt(variances) * rng.standard_normal(N)
    sampler = replace(sampler, rows=MemoryRows(rows.X, y, rows.has_linear_part))
    return sampler, sampler._heard(rng, law, state, parameter)


def _statistics(
    rng: np.random.Generator, sampler: SpectralSampler, state: SpectralState
) -> dict[str, float]:
    """Values of distribution functions, uniform if the joint law is right."""
    rows, m2, variance = sampler.rows, 2 * M, state.coef.noise_variance
    tau, beta = state.noise.parameter[0], drawn_coef(state)
    gamma = state.noise.parameter[1:] / tau
    g = _log_variances(sampler.noise, tau * gamma, rows.X)
    f = plain_design(state.frequencies, rows.X, rows.has_linear_part) @ beta
    squares = np.square(rows.y - f) / (variance * np.exp(g))
    Z = state.mixture.assignment[0]
    deviation = (state.frequencies[0, 0] - state.mixture.means[Z, 0]) / (
        state.mixture.components.stds[Z, 0]
    )
    place = int(np.argmin(np.abs(SPREADS - tau)))
    found = {
        "frequency in its component": special.ndtr(deviation),
        "ridge": special.gammainc(RIDGE_PRIOR.shape, RIDGE_PRIOR.rate * state.ridge),
        "noise variance": special.gammaincc(NOISE[0], NOISE[1] / variance),
        "errors": special.chdtr(N, squares.sum()),
        "largest error": special.chdtr(1, squares.max()) ** N,
        "coefficients": special.chdtr(m2, state.ridge * beta[:m2] @ beta[:m2] / variance),
        "spread": (place + rng.random()) / len(SPREADS),
        "log variance": special.chdtr(2 * Q, gamma @ gamma),
        "of one row": special.ndtr(gamma[0]),
        "components": state.mixture.n_components,
    }
    slopes = beta[m2 + 1 :]
    if len(slopes):
        found["linear precision"] = special.gammainc(
            LINEAR_PRIOR.shape, LINEAR_PRIOR.rate * state.linear_precision
        )
        square = state.linear_precision * slopes @ slopes / variance
        found["slopes"] = special.chdtr(len(slopes), square)
    return {name: float(value) for name, value in found.items()}


def _distances(case: str, n: int, seed: int = 91) -> dict[str, float]:
    """Largest difference of distribution functions, for each statistic."""
    name, has_linear_part, global_share = CASES[case]
    base = BASES[name]
    rows = np.random.default_rng(40).standard_normal((N, base.n_inputs))
    sampler = make_spectral(
        rows, np.zeros(N), base=base, has_linear_part=has_linear_part,
        global_share=global_share, carries=case == "carried", n_frequencies=M,
    )  # fmt: skip
    beside = np.random.default_rng(7).standard_normal((Q, base.n_inputs))
    rng, sampler = np.random.default_rng(seed), replace(sampler, noise=_law(beside, rows))
    joint = Joint(_draw_joint, _redraw_targets, functools.partial(_statistics, rng))
    found = joint.distances(rng, sampler, n, N_STEPS)
    assert len(found) <= STATISTICS
    return found


def _limit(n: int) -> float:
    return dkw_limit(n, STATISTICS * len(CASES))


@pytest.mark.parametrize("n", tiers(150, 4000))
@pytest.mark.parametrize("case", few_first(CASES, "linear part"))
def test_bnk_17_joint(case: str, n: int) -> None:
    """False alarm 1e-6 over the 24 distances; detects 0.5, with more runs 0.1."""
    found = _distances(case, n)
    assert max(found.values()) < _limit(n), found


# What must be seen.


def forget_the_heights(monkeypatch: pytest.MonkeyPatch) -> None:
    """The density of an error lacks its height: larger variances cost nothing."""
    hearer = HeteroscedasticNoise.hearer

    def mutant(self, noise_variance, parameter, rng):
        say = hearer(self, noise_variance, parameter, rng)

        def wrong(f, y):
            at_the_function = say(f, f[0])
            at_the_function[-1] = 0.0
            return say(f, y) - at_the_function

        return wrong

    monkeypatch.setattr(HeteroscedasticNoise, "hearer", mutant)


def take_every_trajectory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What leapfrog steps lose or gain is not looked at."""
    monkeypatch.setattr(HeteroscedasticNoise, "_log_density", lambda self, *given: 0.0)
    monkeypatch.setattr("mercer.spectral.model._N_LEAPS", 1)


def keep_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """The function is learned with the weights of the sweep before."""
    weighed, kept = SpectralSampler._weighed, []

    def mutant(self, rng, noise, W, coef, noise_variance, parameter):
        kept.append(parameter)
        given = kept[-2] if len(kept) > 1 else parameter
        return weighed(self, rng, noise, W, coef, noise_variance, given)

    monkeypatch.setattr(SpectralSampler, "_weighed", mutant)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [forget_the_heights, take_every_trajectory, keep_the_weights])
def test_bnk_17_sees(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = _truth()
    mutant(monkeypatch)
    assert largest_z(_moments(5000), truth, BATCHES) > 1.2 * LIMIT


@pytest.mark.slow
def test_bnk_17_joint_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_the_heights(monkeypatch)
    found = _distances("linear part", 1000)
    assert max(found.values()) > 1.2 * _limit(1000), found
