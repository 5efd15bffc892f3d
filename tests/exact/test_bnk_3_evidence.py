"""BNK-3: the evidence of one component, and draws given its members, from their exact laws."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from mercer.spectral import base_measure as full
from mercer.spectral.base_measure import BaseMeasure, DiagonalBase, FullBase
from support.mixture_cases import frequencies, log_marginal
from support.statistics import dkw_distance, dkw_limit, tiers

PSI = np.array([[0.7, 0.2, -0.1], [0.2, 0.5, 0.1], [-0.1, 0.1, 0.9]])
CASES: dict[str, BaseMeasure] = {
    "diagonal, 1 input": DiagonalBase(np.array([0.5]), 0.2, 3.0),
    "diagonal, 3 inputs": DiagonalBase(np.array([0.5, 0.2, 3.0]), 0.1, 2.5),
    "full, 1 input": FullBase(np.array([[0.4]]), 0.3, 4.0),
    "full, 3 inputs": FullBase(PSI, 0.3, 5.5, np.array([1.7])),
}


@pytest.mark.parametrize("case", CASES)
def test_bnk_3_evidence(case: str) -> None:
    base = CASES[case]
    W = frequencies(9, base.n_inputs)
    alone = [log_marginal(base, w[np.newaxis]) for w in W]
    np.testing.assert_allclose(base.log_predictive(W), alone, atol=1e-10, rtol=0.0)


def limit(n_draws: int) -> float:
    """False alarm 1e-6 over at most 20 distances of twelve tests."""
    return dkw_limit(n_draws, 12 * 20)


def covariances_of(components) -> np.ndarray:
    if hasattr(components, "covariances"):
        return components.covariances
    return components.variances[:, :, np.newaxis] * np.eye(components.variances.shape[1])


def largest_distance(base: BaseMeasure, W: np.ndarray, n_draws: int) -> float:
    """Of what is drawn for a component with members W from its exact laws."""
    m, d = W.shape
    every = np.tile(W, (n_draws, 1)) if m else W
    assignment = np.repeat(np.arange(n_draws), m)
    rng = np.random.default_rng(17)
    blocks = []
    for first in range(0, n_draws, 1000):  # a thousand components with the same members
        own = slice(first * m, (first + 1000) * m)
        blocks.append(base.draw_components(rng, every[own], assignment[own] - first, 1000))
    means = np.concatenate([block.means for block in blocks])
    covariances = np.concatenate([covariances_of(block) for block in blocks])
    kappa, nu = base.kappa0 + m, base.nu0 + m
    centre = W.sum(axis=0) / kappa
    spread = W.T @ W - kappa * np.outer(centre, centre)
    if isinstance(base, DiagonalBase):
        psi, degrees = np.diag(base.scale + spread.diagonal()), nu
        directions = np.eye(d)
    else:
        psi, degrees = base.scale[0] * base.psi + spread, nu - d + 1.0
        directions = np.vstack([np.eye(d), np.random.default_rng(0).standard_normal((2, d))])
    distances = []
    for c in directions:
        square = c @ psi @ c
        variances = np.einsum("i,nij,j->n", c, covariances, c)
        law = stats.invgamma(0.5 * degrees, scale=0.5 * square)
        distances.append(dkw_distance(variances, law.cdf))
        law = stats.t(degrees, c @ centre, np.sqrt(square / (kappa * degrees)))
        distances.append(dkw_distance(means @ c, law.cdf))
        standard = (means @ c - c @ centre) / np.sqrt(variances / kappa)
        distances.append(dkw_distance(standard, stats.norm.cdf))
        if isinstance(base, FullBase):
            precisions = np.einsum("i,nij,j->n", c, np.linalg.inv(covariances), c)
            law = stats.chi2(nu, scale=c @ np.linalg.inv(psi) @ c)
            distances.append(dkw_distance(precisions, law.cdf))
    return max(distances)


@pytest.mark.parametrize("n_draws", tiers(8_000, 20_000))
@pytest.mark.parametrize("n", [0, 1, 6])
@pytest.mark.parametrize("case", CASES)
def test_bnk_3_draws_given_members(case: str, n: int, n_draws: int) -> None:
    """False alarm 1e-6 over all distances of the 12 tests; detects 0.08 (20 000 draws: 0.05)."""
    base = CASES[case]
    assert largest_distance(base, frequencies(n, base.n_inputs), n_draws) < limit(n_draws)


@pytest.mark.parametrize("case", CASES)
def test_bnk_3_sees_a_spread_without_the_mean(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: kappa0 m / kappa mean mean' left out."""
    base = CASES[case]
    posterior = type(base)._posterior

    def without_mean(self, W, assignment, n_components):
        after = posterior(self, W, assignment, n_components)
        _, counts, means, _ = full.group_moments(W, assignment, n_components)
        share = self.kappa0 * counts / (self.kappa0 + counts)
        if isinstance(self, FullBase):
            outer = means[:, :, np.newaxis] * means[:, np.newaxis]
            return (*after[:3], after[3] - share[:, np.newaxis, np.newaxis] * outer)
        return dataclasses.replace(after, scale=after.scale - share[:, np.newaxis] * means**2)

    monkeypatch.setattr(type(base), "_posterior", without_mean)
    W = frequencies(6, base.n_inputs) + 2.0  # far from 0, so that the mean counts
    assert largest_distance(base, W, 8_000) > 2.0 * limit(8_000)


def test_bnk_3_sees_degrees_in_the_other_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: the upper triangle of Bartlett's matrix with the degrees of the lower one."""

    class Turned:
        def __init__(self, rng) -> None:
            self.standard_normal = rng.standard_normal
            self.chisquare = lambda degrees: rng.chisquare(degrees[:, ::-1])

    draw = full._draw_factors
    monkeypatch.setattr(full, "_draw_factors", lambda rng, nu, psi: draw(Turned(rng), nu, psi))
    assert largest_distance(CASES["full, 3 inputs"], frequencies(6, 3), 8_000) > 2.0 * limit(8_000)


def test_bnk_3_sees_a_mean_with_the_spread_of_the_prior(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: mu_k ~ N(m, Sigma_k / kappa0)."""
    posterior = DiagonalBase._posterior

    def with_kappa0(self, W, assignment, n_components):
        after = posterior(self, W, assignment, n_components)
        return dataclasses.replace(after, kappa=np.full(n_components, self.kappa0))

    monkeypatch.setattr(DiagonalBase, "_posterior", with_kappa0)
    found = largest_distance(CASES["diagonal, 3 inputs"], frequencies(6, 3), 8_000)
    assert found > 2.0 * limit(8_000)
