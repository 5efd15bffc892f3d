"""BNK-19: several outputs on one spectrum are regressions of their own whose evidences add."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
import pytest

from mercer import BaNKRegressor
from mercer.spectral import sampler as spectral_sampler
from mercer.spectral.model import (
    coefficients,
    evidence_of_choice,
    evidence_of_products,
    ridge_density,
)
from mercer.spectral.rows import MemoryRows
from mercer.spectral.sampler import CoefDraw, SpectralSampler, SpectralState, decide, join
from support import spectral_joint
from support.spectral_cases import (
    LINEAR_PRIOR,
    NOISE,
    RIDGE_PRIOR,
    make_model,
    marginal_law,
    plain_design,
    problem,
)
from support.spectral_joint import Joint, M, N, make, n_reference, sweeps
from support.statistics import dkw_limit, few_first, tiers

# Rows, inputs, frequencies, linear part, outputs.
CASES = [(6, 1, 2, True, 2), (9, 3, 10, False, 3), (40, 2, 7, True, 2), (30, 2, 26, True, 3)]
RIDGE, LINEAR = 0.3, 1.7


class Regressions:
    """One problem of several outputs, and what its parts must be, by dense formulas."""

    def __init__(self, n: int, d: int, m: int, has_linear_part: bool, q: int) -> None:
        self.X, y = problem(n, d)
        rng = np.random.default_rng(4)
        self.Y = np.column_stack([y, rng.standard_normal((n, q - 1)) * [0.1, 5.0][: q - 1]])
        self.W = rng.standard_normal((m, d))
        self.has_linear_part = has_linear_part
        self.rows = MemoryRows(self.X, self.Y, has_linear_part)
        one = make_model(n, 1 + d if has_linear_part else 0)
        self.one, self.model = one, dataclasses.replace(one, n_outputs=q)
        self.prior = one.prior_precisions(2 * m, RIDGE, LINEAR)

    def log_evidence(self, W: np.ndarray, ridge: float = RIDGE) -> float:
        """The sum over outputs of the multivariate t that each has by itself."""
        prior = self.one.prior_precisions(2 * len(W), ridge, LINEAR)
        law = marginal_law(self.one, plain_design(W, self.X, self.has_linear_part), prior)
        return float(sum(law.logpdf(y) for y in self.Y.T))


@pytest.mark.parametrize("case", CASES)
def test_bnk_19_evidence_is_the_sum_of_those_of_the_outputs(case: tuple) -> None:
    all_of = Regressions(*case)
    gram = all_of.rows.gram(all_of.W)
    law = coefficients(all_of.model, gram, all_of.prior)
    assert law.log_evidence == pytest.approx(all_of.log_evidence(all_of.W), rel=1e-9)
    assert law.log_evidence == evidence_of_products(all_of.model, gram, all_of.prior)
    for k, y in enumerate(all_of.Y.T):
        rows = MemoryRows(all_of.X, y, all_of.has_linear_part)
        alone = coefficients(all_of.one, rows.gram(all_of.W), all_of.prior)
        np.testing.assert_allclose(law.mean[k], alone.mean, rtol=1e-7, atol=1e-9)
        assert law.rate[k] == pytest.approx(alone.rate, rel=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_bnk_19_decisions_go_by_that_evidence(case: tuple) -> None:
    """Each frequency in its turn, those before it as decided, and all of a choice at once."""
    all_of = Regressions(*case)
    m, W = len(all_of.W), all_of.W.copy()
    proposed = np.random.default_rng(5).standard_normal(W.shape)
    gram, products = all_of.rows.gram(W), all_of.rows.products(proposed, W)
    linear = all_of.model.linear_precisions(LINEAR)
    joint = join(gram, products, RIDGE, linear)
    log_uniform = np.log(np.random.default_rng(6).random(m))
    found = decide(joint, log_uniform, all_of.model.posterior_shape, NOISE[1])
    for j in range(m):
        now, other = all_of.log_evidence(W), W.copy()
        other[j] = proposed[j]
        ratio = all_of.log_evidence(other) - now
        assert found.log_ratio[j] == pytest.approx(ratio, rel=1e-6, abs=1e-7)
        assert found.is_accepted[j] == (log_uniform[j] < ratio)
        W = other if found.is_accepted[j] else W
    chosen = evidence_of_choice(all_of.model, gram, products, found.is_accepted, all_of.prior)
    assert chosen == pytest.approx(all_of.log_evidence(W), rel=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_bnk_19_the_ridge_is_that_of_all_outputs(case: tuple) -> None:
    all_of = Regressions(*case)
    density = ridge_density(all_of.model, all_of.rows.gram(all_of.W), LINEAR)
    values = np.log([1e-3, 0.1, 1.0, 30.0])
    prior = RIDGE_PRIOR.shape * values - RIDGE_PRIOR.rate * np.exp(values)
    plain = prior + [all_of.log_evidence(all_of.W, math.exp(x)) for x in values]
    np.testing.assert_allclose(np.diff([density(x) for x in values]), np.diff(plain), rtol=1e-7)


def test_bnk_19_outputs_in_another_order() -> None:
    """Features alone decide, and they do not know the order: predictions are permuted."""
    X, y = problem(30, 2)
    rng = np.random.default_rng(9)
    Y = np.column_stack([y, y**2, rng.standard_normal(30)])
    model = BaNKRegressor(
        n_frequencies=8, linear_part=False, n_draws=5, n_warmup=5, n_chains=1, random_state=0,
        standardize="std",
    )  # fmt: skip
    order = [2, 0, 1]
    expected, found = (model.fit(X, Y[:, own]).predict(X) for own in ([0, 1, 2], order))
    np.testing.assert_allclose(found, expected[:, order], rtol=1e-6, atol=1e-8)


# The joint law of state and targets, as BNK-6.

Q, N_SWEEPS, N_RUNS = 2, 8, 600
JOINT = ("full, prior, linear part", "diagonal, half global, scale drawn")
N_STATISTICS = 18


def several(case: str) -> SpectralSampler:
    one = make(case)
    rows = dataclasses.replace(one.rows, y=np.zeros((N, Q)))
    return dataclasses.replace(one, rows=rows, model=dataclasses.replace(one.model, n_outputs=Q))


def draw_joint(
    rng: np.random.Generator, sampler: SpectralSampler
) -> tuple[SpectralSampler, SpectralState]:
    """State and targets by their definition."""
    model = sampler.model
    mixture, W = sampler.mixture.draw_prior(rng, M)
    ridge = rng.gamma(RIDGE_PRIOR.shape) / RIDGE_PRIOR.rate
    linear = rng.gamma(LINEAR_PRIOR.shape) / LINEAR_PRIOR.rate
    noise = NOISE[1] / rng.gamma(NOISE[0], size=Q)
    precisions = model.prior_precisions(2 * M, ridge, linear)
    beta = rng.standard_normal((Q, len(precisions))) * np.sqrt(noise[:, np.newaxis] / precisions)
    coef = CoefDraw(beta, np.zeros((Q, 1, len(precisions))), noise, math.nan)
    state = SpectralState(W, np.empty((0, 0)), ridge, linear, mixture, coef, N)
    return redraw(rng, sampler, state)


def redraw(
    rng: np.random.Generator, sampler: SpectralSampler, state: SpectralState
) -> tuple[SpectralSampler, SpectralState]:
    """New targets given the state."""
    rows, coef = sampler.rows, state.coef
    F = plain_design(state.frequencies, rows.X, rows.has_linear_part)
    noise = rng.standard_normal((N, Q)) * np.sqrt(coef.noise_variance)
    Y = F @ (coef.mean + coef.deviations[:, 0]).T + noise
    columns = np.column_stack([F, Y])
    sampler = dataclasses.replace(sampler, rows=dataclasses.replace(rows, y=Y))
    return sampler, dataclasses.replace(state, gram=columns.T @ columns)


def statistics(sampler: SpectralSampler, state: SpectralState) -> dict[str, float]:
    """Those of BNK-6 of each output by itself; of what all share, once."""
    found: dict[str, float] = {}
    for k in range(Q):
        coef = state.coef
        own = CoefDraw(
            coef.mean[k], coef.deviations[k], float(coef.noise_variance[k]), coef.log_evidence
        )
        alone = dataclasses.replace(
            sampler,
            rows=dataclasses.replace(sampler.rows, y=sampler.rows.y[:, k]),
            model=dataclasses.replace(sampler.model, n_outputs=1),
        )
        each = spectral_joint.statistics(alone, dataclasses.replace(state, coef=own))
        found |= {f"{name} {k}" if name in OF_EACH else name: v for name, v in each.items()}
    return found


OF_EACH = (
    "noise variance", "residuals", "coefficients", "all targets", "products", "slopes",
)  # fmt: skip


@functools.cache
def evidence_of_prior(case: str, n: int) -> np.ndarray:
    """Log evidence of n sets of targets from their joint law with the state."""
    rng, sampler, found = np.random.default_rng(72), several(case), []
    for _ in range(n):
        own, state = draw_joint(rng, sampler)
        F = plain_design(state.frequencies, own.rows.X, own.rows.has_linear_part)
        precisions = own.model.prior_precisions(2 * M, state.ridge, state.linear_precision)
        law = marginal_law(own.model, F, precisions)
        found.append(law.logpdf(own.rows.y.T).sum())
    return np.array(found)


def distances(case: str, n: int = N_RUNS) -> dict[str, float]:
    """Largest differences of distribution functions after sweeps from exact draws."""
    joint = Joint(draw_joint, redraw, statistics, sweeps(N_SWEEPS))
    reference = {"log evidence": evidence_of_prior(case, n_reference(n))}
    return joint.distances(np.random.default_rng(71), several(case), n, 1, reference)


def limit(n: int = N_RUNS) -> float:
    """False alarm 1e-6 over all statistics of both cases."""
    return dkw_limit(n, N_STATISTICS * len(JOINT))


@pytest.mark.parametrize("n", tiers(150, 600))
@pytest.mark.parametrize("case", few_first(JOINT, JOINT[0]))
def test_bnk_19_joint(case: str, n: int) -> None:
    """False alarm 1e-6 over the 36 distances; detects 0.5 (600 runs: 0.25)."""
    found = distances(case, n)
    assert len(found) <= N_STATISTICS
    assert max(found.values()) < limit(n), found


def decide_by_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frequencies are decided by all outputs but the last."""
    monkeypatch.setattr(
        spectral_sampler,
        "decide",
        lambda joint, *rest: decide(np.asfortranarray(joint[:-1, :-1]), *rest),
    )


def forget_the_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise of the last output knows none of its targets."""
    solve = spectral_sampler.coefficients

    def solved(*given):
        law = solve(*given)
        return dataclasses.replace(law, rate=np.append(law.rate[:-1], NOISE[1]))

    monkeypatch.setattr(spectral_sampler, "coefficients", solved)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [decide_by_the_first, forget_the_targets])
def test_bnk_19_sees_an_output_forgotten(mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    found = distances(JOINT[0])
    assert max(found.values()) > 1.2 * limit(), found
