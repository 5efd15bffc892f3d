"""BNK-13: the updates of the concentration and of the scale against grids; with all else, steps and
new frequencies leave the prior of the whole state as it is.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from scipy import special, stats
from scipy.special import gammaln

from mercer.spectral import mixture as gibbs
from mercer.spectral.base_measure import BaseMeasure, DiagonalBase, ScalePrior
from mercer.spectral.mixture import ConcentrationPrior, Mixture, draw_concentration
from support.mixture_cases import BASES, ShiftedBeta, expected_components, halve_the_count
from support.statistics import dkw_distance, dkw_limit, few_first, tiers

ALL = 20_000  # draws of the second tier, and of mutants


class Grid:
    """A density on (0, inf), given its log up to a constant, by a fine grid of log x."""

    def __init__(self, log_density) -> None:
        self.u = np.linspace(-25.0, 8.0, 200_001)
        logs = log_density(np.exp(self.u)) + self.u
        mass = np.exp(logs - logs.max())
        self.total = np.concatenate([[0.0], np.cumsum(0.5 * (mass[1:] + mass[:-1]))])
        self.total /= self.total[-1]

    def cdf(self, x: np.ndarray) -> np.ndarray:
        return np.interp(np.log(x), self.u, self.total)

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return np.exp(np.interp(rng.random(n), self.total, self.u))


# --- concentration -------------------------------------------------------------------------------

PRIORS = {
    "(K, M) = (1, 5)": (1, 5, 2.0, 1.0),
    "(4, 6)": (4, 6, 0.3, 0.5),
    "(7, 384)": (7, 384, 2, 1),
}


def concentration_distance(case: str, n: int) -> float:
    """From the exact law, after ten updates from exact draws of it."""
    K, M, a, b = PRIORS[case]
    grid = Grid(lambda x: (a - 1 + K) * np.log(x) - b * x + gammaln(x) - gammaln(x + M))
    rng, prior = np.random.default_rng(23), ConcentrationPrior(a, b)
    draws = grid.draw(rng, n)
    for _ in range(10):
        draws = np.array([draw_concentration(rng, x, K, M, prior) for x in draws])
    return dkw_distance(draws, grid.cdf)


@pytest.mark.parametrize("n", tiers(5_000, ALL))
@pytest.mark.parametrize("case", PRIORS)
def test_bnk_13_concentration(case: str, n: int) -> None:
    """False alarm 1e-6 over the cases; detects a distance of 0.08 (20 000 draws: 0.04)."""
    assert concentration_distance(case, n) < dkw_limit(n, len(PRIORS))


def test_bnk_13_sees_another_auxiliary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: x ~ Beta(alpha, M)."""
    draw = draw_concentration
    monkeypatch.setitem(
        globals(), "draw_concentration", lambda rng, *rest: draw(ShiftedBeta(rng), *rest)
    )
    found = concentration_distance("(K, M) = (1, 5)", 5_000)
    assert found > 2.0 * dkw_limit(5_000, len(PRIORS))


# --- scale ---------------------------------------------------------------------------------------

SHAPE = 1.5


def scale_distance(base: BaseMeasure, n: int) -> float:
    """Largest distance of drawn scales given three components from grids, one for each scale."""
    rng = np.random.default_rng(29)
    nobody = np.empty((0, base.n_inputs)), np.empty(0, dtype=np.int64)
    components = base.draw_components(rng, *nobody, 3)
    mean = 2.0 * base.scale
    prior = ScalePrior(SHAPE, mean)
    draws = [base.draw_scale(rng, components, prior).scale for _ in range(n)]

    def log_density(t: np.ndarray, j: int) -> np.ndarray:
        total = stats.gamma.logpdf(t, SHAPE, scale=mean[j] / SHAPE)
        if isinstance(base, DiagonalBase):
            for variance in components.variances[:, j]:
                total += stats.invgamma.logpdf(variance, 0.5 * base.nu0, scale=0.5 * t)
            return total
        for sigma in components.covariances:  # the law of t psi is that of psi, with its Jacobian
            trace = np.trace(np.linalg.solve(sigma, base.psi))
            unit = stats.invwishart.logpdf(sigma, base.nu0, base.psi) + 0.5 * trace
            total += unit + 0.5 * base.nu0 * base.n_inputs * np.log(t) - 0.5 * t * trace
        return total

    grids = [Grid(lambda t, j=j: log_density(t, j)) for j in range(len(mean))]
    return max(
        dkw_distance(own, grid.cdf) for own, grid in zip(np.array(draws).T, grids, strict=True)
    )


SCALES = 6


@pytest.mark.parametrize("n", tiers(5_000, ALL))
@pytest.mark.parametrize("case", few_first(BASES, "diagonal, 1 input", "full, 2 inputs"))
def test_bnk_13_scale(case: str, n: int) -> None:
    """Six scales in all: false alarm 1e-6; detects a distance of 0.08 (20 000 draws: 0.04)."""
    assert scale_distance(BASES[case], n) < dkw_limit(n, SCALES)


@pytest.mark.parametrize("case", ["diagonal, 2 inputs", "full, 2 inputs"])
def test_bnk_13_sees_half_the_count(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: half of the degrees of freedom of the components are forgotten."""
    halve_the_count(monkeypatch)
    assert scale_distance(BASES[case], ALL) > 2.0 * dkw_limit(ALL, SCALES)


M, PRIOR_SHAPE = 6, 2.0
KINDS = ["diagonal, 2 inputs", "full, 2 inputs"]


def limit(n: int) -> float:
    """False alarm 1e-6 over eight distances."""
    return dkw_limit(n, 4 * len(KINDS))


@functools.cache
def component_law() -> np.ndarray:
    """p(K) for K = 0, .., M: products of (i + alpha P) / (i + alpha), averaged over alpha."""
    nodes = (np.arange(2000) + 0.5) / 2000
    law = np.zeros(M + 1)
    for alpha in stats.gamma(PRIOR_SHAPE).ppf(nodes):
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
    std = math.sqrt(square * (1.0 + 1.0 / base.kappa0) / degrees)
    return float(special.stdtr(degrees, value / std))


def distances(case: str, n: int) -> dict[str, float]:
    """From the exact laws, after three times (step, new frequencies) from exact draws."""
    base = BASES[case]
    mixture = Mixture(
        base,
        1.0,
        ConcentrationPrior(PRIOR_SHAPE, 1.0),
        ScalePrior(PRIOR_SHAPE, base.scale),
    )
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
        "concentration": dkw_distance(concentration, stats.gamma(PRIOR_SHAPE).cdf),
        "scale": dkw_distance(
            scale,
            stats.gamma(PRIOR_SHAPE, scale=base.scale[0] / PRIOR_SHAPE).cdf,
        ),
        "frequency": dkw_distance(place, stats.uniform.cdf),
        "components": float(np.abs(np.cumsum(component_law() - shares)).max()),
    }


@pytest.mark.parametrize("n", tiers(400, 2000))
@pytest.mark.parametrize("case", few_first(KINDS, KINDS[0]))
def test_bnk_13_the_prior_is_kept(case: str, n: int) -> None:
    """False alarm 1e-6 over eight distances; detects 0.28 (2000 runs: 0.13)."""
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
