"""BNK-13 and all else: steps and new frequencies leave the prior of the whole state as it is."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from scipy import stats

from mercer.spectral import mixture as gibbs
from mercer.spectral.base_measure import DiagonalBase, ScalePrior
from mercer.spectral.mixture import ConcentrationPrior, Mixture
from support.mixture_cases import BASES, ShiftedBeta, expected_components, halve_the_count
from support.statistics import dkw_distance, dkw_limit, tiers

M, SHAPE = 6, 2.0
KINDS = ["diagonal, 2 inputs", "full, 2 inputs"]


def limit(n: int) -> float:
    """False alarm 1e-6 over eight distances."""
    return dkw_limit(n, 4 * len(KINDS))


@functools.cache
def component_law() -> np.ndarray:
    """p(K) for K = 0, .., M: products of (i + alpha P) / (i + alpha), averaged over alpha."""
    nodes = (np.arange(2000) + 0.5) / 2000
    law = np.zeros(M + 1)
    for alpha in stats.gamma(SHAPE).ppf(nodes):
        p = np.array([1.0])
        for i in range(M):
            p = (np.append(p * i, 0.0) + np.append(0.0, p * alpha)) / (i + alpha)
        assert p @ np.arange(M + 1) == pytest.approx(expected_components(M, alpha))
        law += p / len(nodes)
    return law


def one_frequency(base, scale: float, value: float) -> float:
    """Distribution function of the first input of a frequency given the scale, at the value."""
    if isinstance(base, DiagonalBase):
        degrees, square = base.nu0, scale
    else:
        degrees, square = base.nu0 - base.n_inputs + 1.0, scale * base.psi[0, 0]
    return stats.t.cdf(value / math.sqrt(square * (1.0 + 1.0 / base.kappa0) / degrees), degrees)


def distances(case: str, n: int) -> dict[str, float]:
    """From the exact laws, after three times (step, new frequencies) from exact draws."""
    base = BASES[case]
    mixture = Mixture(base, 1.0, ConcentrationPrior(SHAPE, 1.0), ScalePrior(SHAPE, base.scale))
    rng, rows = np.random.default_rng(31), []
    for _ in range(n):
        state, W = mixture.draw_prior(rng, M)
        for _ in range(3):
            state, _ = mixture.step(rng, state, W)
            W = mixture.centre(state) + mixture.draw_noise(rng, state)
        place = one_frequency(base, state.scale[0], W[0, 0])
        rows.append([state.concentration, state.scale[0], place, state.n_components])
    concentration, scale, place, K = np.array(rows).T
    shares = np.bincount(K.astype(int), minlength=M + 1) / n
    return {
        "concentration": dkw_distance(concentration, stats.gamma(SHAPE).cdf),
        "scale": dkw_distance(scale, stats.gamma(SHAPE, scale=base.scale[0] / SHAPE).cdf),
        "frequency": dkw_distance(place, stats.uniform.cdf),
        "components": float(np.abs(np.cumsum(component_law() - shares)).max()),
    }


@pytest.mark.parametrize("n", tiers(800, 2000))
@pytest.mark.parametrize("case", KINDS)
def test_bnk_13_the_prior_is_kept(case: str, n: int) -> None:
    """False alarm 1e-6 over eight distances; detects 0.2 (2000 runs: 0.13)."""
    found = distances(case, n)
    assert max(found.values()) < limit(n), found


def test_bnk_13_the_prior_is_not_kept_with_another_auxiliary(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Mutant: x ~ Beta(alpha, M)."""
    draw = gibbs.draw_concentration
    monkeypatch.setattr(
        gibbs, "draw_concentration", lambda rng, *rest: draw(ShiftedBeta(rng), *rest)
    )
    assert distances(KINDS[0], 800)["concentration"] > limit(800)


def test_bnk_13_the_prior_is_not_kept_with_half_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: half of the degrees of freedom are forgotten when the scale is drawn."""
    halve_the_count(monkeypatch)
    assert distances(KINDS[1], 800)["scale"] > limit(800)
