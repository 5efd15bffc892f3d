"""SMC-6: how often particles are kept, on average and in each run.

One position taken at random among the N ancestors of a run is particle i with probability
E N_i / N, whatever the scheme: over independent runs these are multinomial, and chi-square exact.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from mercer.sampling import resampling
from mercer.sampling.resampling import SCHEMES, resample
from support.statistics import FALSE_ALARM, tiers

N_RUNS = 20_000
# No N w_i is whole, and the last particle has no weight.
UNEVEN = np.array([0.02, 0.31, 0.005, 0.19, 0.11, 0.365, 0.0])
DYADIC = np.array([3, 0, 17, 1, 40, 2, 1, 64]) / 128.0
# To every scheme and set of weights one statistic, and one to each count.
WEIGHTS = {"uneven": UNEVEN, "rarely": np.array([0.998, 0.002])}


def chi_square(scheme: str, weights: np.ndarray, n_runs: int = N_RUNS) -> tuple[float, float]:
    """Chi-square of one ancestor of each run against the weights, and its limit."""
    rng, other = np.random.default_rng(21), np.random.default_rng(22)
    seen = np.zeros(len(weights))
    for position in other.integers(len(weights), size=n_runs):
        seen[resample(rng, weights, scheme)[position]] += 1
    expected = n_runs * weights
    is_possible = expected > 0.0
    assert expected[is_possible].min() > 20.0
    if seen[~is_possible].any():
        return math.inf, 0.0
    value = ((seen - expected)[is_possible] ** 2 / expected[is_possible]).sum()
    n_tests = len(SCHEMES) * len(WEIGHTS)
    return float(value), float(stats.chi2.isf(FALSE_ALARM / n_tests, is_possible.sum() - 1))


@pytest.mark.parametrize("n_runs", tiers(12_000, N_RUNS))
@pytest.mark.parametrize("scheme", list(SCHEMES))
@pytest.mark.parametrize("name", list(WEIGHTS))
def test_smc_6_every_particle_is_kept_in_proportion(scheme: str, name: str, n_runs: int) -> None:
    """Detects 0.026 of the probability moved from one particle of weight 0.31 to another.

    Of 20 000 runs 0.02.
    """
    value, limit = chi_square(scheme, WEIGHTS[name], n_runs)
    assert value < limit


@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_smc_6_sees_tempered_weights(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    real = SCHEMES[scheme]

    def tempered(rng, W):
        flat = W**0.8
        return real(rng, flat / flat.sum())

    monkeypatch.setitem(resampling.SCHEMES, scheme, tempered)
    value, limit = chi_square(scheme, UNEVEN)
    assert value > 2.0 * limit


@pytest.mark.parametrize("scheme", ["systematic", "stratified"])
def test_smc_6_sees_points_that_never_move(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    """Points in the middle of the strata: weights are rounded, always the same way."""
    real = SCHEMES[scheme]

    class Middle:
        def random(self, n: int | None = None) -> float | np.ndarray:
            return 0.5 if n is None else np.full(n, 0.5)

    monkeypatch.setitem(resampling.SCHEMES, scheme, lambda rng, W: real(Middle(), W))
    value, limit = chi_square(scheme, UNEVEN)
    assert value > 2.0 * limit


def counts_of(scheme: str, weights: np.ndarray, n_runs: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array(
        [np.bincount(resample(rng, weights, scheme), minlength=len(weights)) for _ in range(n_runs)]
    )


def test_smc_6_systematic_counts_are_rounded_down_or_up() -> None:
    """Exact: cumulative sums of these weights are. How often up: binomial, 1e-6 over particles."""
    n_runs = 4000
    counts = counts_of("systematic", DYADIC, n_runs, seed=23)
    mean = len(DYADIC) * DYADIC
    lower, upper = np.floor(mean), np.ceil(mean)
    assert ((counts == lower) | (counts == upper)).all()
    fraction = mean - lower
    moves = fraction > 0
    ups = (counts[:, moves] == upper[moves]).sum(axis=0)
    p = 2.0 * np.minimum(
        stats.binom.cdf(ups, n_runs, fraction[moves]),
        stats.binom.sf(ups - 1, n_runs, fraction[moves]),
    )
    assert (p > FALSE_ALARM / moves.sum()).all()
    for scheme in ("stratified", "multinomial"):  # the mutants: these may stray further
        strayed = counts_of(scheme, DYADIC, n_runs, seed=23)
        assert ((strayed < lower) | (strayed > upper)).any()


def test_smc_6_stratified_counts_stray_by_less_than_two() -> None:
    counts = counts_of("stratified", DYADIC, 4000, seed=24)
    mean = len(DYADIC) * DYADIC
    assert (np.abs(counts - mean) < 2.0).all()
    assert (np.abs(counts_of("multinomial", DYADIC, 4000, seed=24) - mean) > 2.0).any()


@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_smc_6_degenerate_and_tiny_weights(scheme: str) -> None:
    rng = np.random.default_rng(25)
    for n in (1, 2, 9, 300):
        for heavy in {0, n // 2, n - 1}:
            for tiny in (0.0, 5e-324, 1e-300, 1e-40):
                weights = np.full(n, tiny)
                weights[heavy] = 1.0
                for _ in range(5):
                    np.testing.assert_array_equal(resample(rng, weights, scheme), heavy)


@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_smc_6_weights_off_by_an_ulp(scheme: str) -> None:
    rng = np.random.default_rng(26)
    for n in (2, 3, 10, 1000):
        W = rng.dirichlet(np.ones(n))
        W[n // 3] = 0.0
        W /= W.sum()
        for off in (np.nextafter(W, 0.0), W * (1 + 2**-52), W * (1 - 2**-52), W * (1 + 5e-9)):
            for _ in range(20):
                ancestors = resample(rng, off, scheme)
                assert len(ancestors) == n
                assert (off[ancestors] > 0).all()
                assert 0 <= ancestors.min() <= ancestors.max() < n
