"""BNK-7: one or two frequencies of one input, targets given, against quadrature.

Nodes are quantiles of the prior, so that a sum over them with the evidence as weight is a mean
under the posterior. Components, coefficients and noise are integrated out in closed form.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from mercer.spectral import sampler as spectral_sampler
from mercer.spectral.base_measure import DiagonalBase
from mercer.spectral.sampler import SpectralSampler
from support.spectral_cases import (
    CONCENTRATION,
    LINEAR_PRIOR,
    NOISE,
    RIDGE_PRIOR,
    make_spectral,
    problem,
)
from support.statistics import largest_z, tiers, z_limit

N, RIDGE = 8, 0.01
SCALE, KAPPA0, NU0 = 0.5, 0.2, 3.0
PREDICTIVE = stats.t(NU0, scale=np.sqrt(SCALE * (1.0 + 1.0 / KAPPA0) / NU0))
N_BATCHES, N_CELLS = 50, 8
LIMIT = z_limit(N_BATCHES, 4 * (2 * N_CELLS + 2))
X, Y = problem(N, 1)


def chain(
    n_frequencies: int, step: float, has_linear_part: bool, n_steps: int, global_share: float = 0.0
) -> list:
    """States of one long chain, after a few hundred steps."""
    base = DiagonalBase(np.array([SCALE]), KAPPA0, NU0)
    sampler: SpectralSampler = make_spectral(
        X, Y, base=base, has_linear_part=has_linear_part, is_ridge_learned=has_linear_part,
        step=step, global_share=global_share, n_frequencies=n_frequencies, ridge=RIDGE,
    )  # fmt: skip
    rng, states = np.random.default_rng(70), []
    state = sampler.init(rng)
    for _ in range(n_steps + 300):
        state, _ = sampler.step(rng, state)
        states.append(state)
    return states[300:]


def log_evidence(W: np.ndarray, ridge: np.ndarray, linear=None) -> np.ndarray:
    """Of frequencies (g, M), ridge (g,) and linear precision (g,), up to a constant."""
    g, m = W.shape
    phase = W[:, np.newaxis] * X
    parts = [np.cos(phase) / np.sqrt(m), np.sin(phase) / np.sqrt(m)]
    prior = np.repeat(ridge[:, np.newaxis], 2 * m, axis=1)
    if linear is not None:
        parts.append(np.broadcast_to(np.column_stack([np.ones(N), X]), (g, N, 2)))
        prior = np.column_stack([prior, np.full(g, 1e-4), linear])
    F = np.concatenate(parts, axis=2)
    A = F.transpose(0, 2, 1) @ F
    A[:, np.arange(A.shape[1]), np.arange(A.shape[1])] += prior
    b = F.transpose(0, 2, 1) @ Y
    quadratic = np.einsum("gi,gi->g", b, np.linalg.solve(A, b[..., np.newaxis])[..., 0])
    rate = NOISE[1] + 0.5 * (Y @ Y - quadratic)
    log_det = np.linalg.slogdet(A)[1] - np.log(prior).sum(axis=1)
    return -0.5 * log_det - (NOISE[0] + 0.5 * N) * np.log(rate)


def nodes(law, n: int) -> np.ndarray:
    """Quantiles of a distribution, of equal weight."""
    return law.ppf((np.arange(n) + 0.5) / n)


def edges(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Bounds of cells of about the same probability."""
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    places = np.searchsorted(total, np.arange(1, N_CELLS) / N_CELLS)
    return values[order][places]


def worst(exact: dict, weights: np.ndarray, seen: dict) -> float:
    """Largest z over cells of continuous values, and over the probabilities of events."""
    weights, truth, columns = weights / weights.sum(), [], []
    for name, values in exact.items():
        if values.dtype == bool:
            truth.append([values @ weights])
            columns.append(seen[name][:, np.newaxis])
            continue
        bounds = edges(values, weights)
        cells = np.searchsorted(bounds, values)
        truth.append(np.bincount(cells, weights, N_CELLS))
        columns.append(np.searchsorted(bounds, seen[name])[:, np.newaxis] == np.arange(N_CELLS))
    return largest_z(np.column_stack(columns).astype(float), np.concatenate(truth), N_BATCHES)


def one_frequency(n_steps: int) -> float:
    W = nodes(PREDICTIVE, 20_000)
    logs = log_evidence(W[:, np.newaxis], np.full(len(W), RIDGE))
    seen = np.abs([state.frequencies[0, 0] for state in chain(1, 1.0, False, n_steps)])
    return worst({"size": np.abs(W)}, np.exp(logs - logs.max()), {"size": seen})


def two_global_proposals(n_steps: int) -> float:
    """As `two_frequencies`, by proposals from the whole mixture alone."""
    return two_frequencies(n_steps, 1.0)


def two_frequencies(n_steps: int, global_share: float = 0.0) -> float:
    """Two in one component are bivariate t; else independent."""
    W = np.stack(np.meshgrid(*2 * [nodes(PREDICTIVE, 300)], indexing="ij"), -1).reshape(-1, 2)
    shape = SCALE / NU0 * (np.eye(2) + 1.0 / KAPPA0)
    alone = PREDICTIVE.logpdf(W).sum(axis=1)
    ratio = np.exp(stats.multivariate_t(np.zeros(2), shape, df=NU0).logpdf(W) - alone)
    logs = log_evidence(W, np.full(len(W), RIDGE))
    likelihood = np.exp(logs - logs.max())
    together, apart = likelihood * ratio, likelihood * CONCENTRATION
    W = np.concatenate([W, W])
    exact = {"smaller": np.abs(W).min(axis=1), "larger": np.abs(W).max(axis=1)}
    exact |= {"same sign": W.prod(axis=1) > 0.0, "one": np.arange(len(W)) < len(W) // 2}
    states = chain(2, 0.8, False, n_steps, global_share)
    drawn = np.array([state.frequencies[:, 0] for state in states])
    seen = {"smaller": np.abs(drawn).min(axis=1), "larger": np.abs(drawn).max(axis=1)}
    seen["same sign"] = drawn.prod(axis=1) > 0.0
    seen["one"] = np.array([state.mixture.n_components == 1 for state in states])
    return worst(exact, np.concatenate([together, apart]), seen)


def with_ridge_and_linear_part(n_steps: int) -> float:
    """One frequency, ridge and linear precision unknown as well."""
    W = nodes(PREDICTIVE, 300)
    ridge = nodes(stats.gamma(RIDGE_PRIOR.shape, scale=1.0 / RIDGE_PRIOR.rate), 30)
    linear = nodes(stats.gamma(LINEAR_PRIOR.shape, scale=1.0 / LINEAR_PRIOR.rate), 30)
    grid = np.stack(np.meshgrid(W, ridge, linear, indexing="ij"), -1).reshape(-1, 3)
    logs = np.concatenate(
        [log_evidence(part[:, :1], part[:, 1], part[:, 2]) for part in np.array_split(grid, 20)]
    )
    states = chain(1, 1.0, True, n_steps)
    seen = {
        "size": np.abs([state.frequencies[0, 0] for state in states]),
        "ridge": np.array([state.ridge for state in states]) > np.median(ridge),
        "linear": np.array([state.linear_precision for state in states]) > np.median(linear),
    }
    exact = {"size": np.abs(grid[:, 0])}
    exact |= {"ridge": grid[:, 1] > np.median(ridge), "linear": grid[:, 2] > np.median(linear)}
    return worst(exact, np.exp(logs - logs.max()), seen)


@pytest.mark.parametrize("n_steps", tiers(1_000, 4_000))
@pytest.mark.parametrize(
    "case",
    [
        one_frequency,
        pytest.param(two_frequencies, marks=pytest.mark.slow),
        pytest.param(two_global_proposals, marks=pytest.mark.slow),
        with_ridge_and_linear_part,
    ],
)
def test_bnk_7_posterior_of_frequencies(case, n_steps: int) -> None:
    """False alarm 1e-6 over all cells of the four cases; detects 7 standard errors."""
    assert case(n_steps) < LIMIT


def ignore_the_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """All proposals are accepted."""
    decide = spectral_sampler.decide
    monkeypatch.setattr(
        spectral_sampler, "decide", lambda joint, u, *noise: decide(joint, u - 1e9, *noise)
    )


@pytest.mark.parametrize("case", [one_frequency, two_frequencies, two_global_proposals])
def test_bnk_7_sees(case, monkeypatch: pytest.MonkeyPatch) -> None:
    ignore_the_targets(monkeypatch)
    assert case(1_000 if case is one_frequency else 2_000) > 1.5 * LIMIT
