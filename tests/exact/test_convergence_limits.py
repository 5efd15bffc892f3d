"""What chance makes of R-hat and effective sizes, by simulation: false alarms and power.

A "fit" is `N_QUANTITIES` quantities of independent autoregressions, judged at the level that a fit
of so many gets. False alarms are counted over `N_FITS` fits: a binomial with probability 1 % (the
promise) passes 10 of 100 with a probability below 1e-6. Mutants: R-hat against 1.01 whatever the
draws (alarms in a third of the fits), and no limit at all (nothing is caught).
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, f, kstest

from mercer.posterior import diagnostics
from mercer.posterior import diagnostics as verdict
from mercer.posterior.diagnostics import FALSE_ALARM_RATE, diagnose
from mercer.posterior.draws import Draws
from support.statistics import few_first

N_FITS, N_QUANTITIES, MOST_ALARMS = 100, 5, 10
# chains, draws, correlation of successive ones: in order, and enough to be judged
SETTINGS = [(4, 400, 0.5), (4, 100, 0.0), (4, 100, 0.5), (2, 100, 0.0), (1, 400, 0.3)]


def chains(rng: np.random.Generator, shape: tuple[int, int, int], rho: float) -> np.ndarray:
    """Stationary autoregressions of shape (quantities, chains, draws)."""
    x = rng.normal(size=shape)
    for t in range(1, shape[2]):
        x[..., t] = rho * x[..., t - 1] + np.sqrt(1.0 - rho**2) * x[..., t]
    return x


def alarms(x: np.ndarray) -> np.ndarray:
    """Whether each fit of `N_QUANTITIES` quantities warns, of x (quantities, chains, draws).

    All are measured at once, at the level of one fit; then judged fit by fit.
    """
    n_chains, n_draws = x.shape[1:]
    level = FALSE_ALARM_RATE / (4 * N_QUANTITIES)
    _, bulk, tail, rhat, limit = diagnostics._chain_measures(x, level)
    least = verdict.ess_limit(n_chains * n_draws, level)
    is_bad = (rhat >= limit) | (limit > verdict.RHAT_OF_TWO_PLACES)
    is_bad |= np.minimum(bulk, tail) < least
    return is_bad.reshape(-1, N_QUANTITIES).any(axis=1)


def test_the_bound_is_that_of_the_binomial() -> None:
    assert binom.sf(MOST_ALARMS, N_FITS, FALSE_ALARM_RATE) < 1e-6


def test_measuring_at_once_is_measuring_one_fit() -> None:
    x = chains(np.random.default_rng(11), (N_QUANTITIES, 4, 60), 0.3)
    found = diagnose(Draws({"x": np.moveaxis(x, 0, 2)}, {}, {}, ("x",)))
    measures = diagnostics._chain_measures(x, FALSE_ALARM_RATE / (4 * N_QUANTITIES))
    np.testing.assert_allclose([row[4:] for row in found.table.rows], measures[1:].T)
    assert bool(found.warnings) == bool(alarms(x)[0])


@pytest.mark.parametrize("setting", few_first(SETTINGS, *SETTINGS[2::2]))
def test_chains_in_order_seldom_warn(setting: tuple[int, int, float]) -> None:
    n_chains, n_draws, rho = setting
    rng = np.random.default_rng(1000 * n_chains + n_draws)
    x = chains(rng, (N_FITS * N_QUANTITIES, n_chains, n_draws), rho)
    assert np.count_nonzero(alarms(x)) <= MOST_ALARMS


def hold_the_limit(monkeypatch: pytest.MonkeyPatch, limit: float) -> None:
    """Let the limit of R-hat be the same for all draws."""
    measured = diagnostics._rhat_and_limit

    def held(z: np.ndarray, level: float) -> np.ndarray:
        rhat, _ = measured(z, level)
        return np.array([rhat, np.full(len(rhat), limit)])

    monkeypatch.setattr(diagnostics, "_rhat_and_limit", held)


def test_a_fixed_limit_warns_of_chains_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    hold_the_limit(monkeypatch, 1.01)
    x = chains(np.random.default_rng(1), (50 * N_QUANTITIES, 4, 100), 0.0)
    assert np.mean(alarms(x)) > 2.0 * MOST_ALARMS / N_FITS


def is_caught_by_rhat(x: np.ndarray) -> np.ndarray:
    """Whether R-hat of some quantity of each fit passes its limit, whatever the ESS says."""
    rhat, limit = diagnostics._chain_measures(x, FALSE_ALARM_RATE / (4 * N_QUANTITIES))[3:]
    return (rhat >= limit).reshape(-1, N_QUANTITIES).any(axis=1)


def shifted(x: np.ndarray) -> np.ndarray:
    """One chain of four is half a standard deviation away, in all quantities of the fit."""
    return x + 0.5 * (np.arange(4) == 0)[:, np.newaxis]


def apart(x: np.ndarray) -> np.ndarray:
    """Two chains of four have settled in another mode, in one quantity of the fit."""
    is_one = np.arange(len(x)) % N_QUANTITIES == 0
    return x + 6.0 * is_one[:, np.newaxis, np.newaxis] * (np.arange(4) < 2)[:, np.newaxis]


def wider(x: np.ndarray) -> np.ndarray:
    """One chain of four is twice as wide, around the same mean."""
    return x * (1.0 + (np.arange(4) == 0))[:, np.newaxis]


def late(x: np.ndarray) -> np.ndarray:
    """All chains arrive half way: their first halves are one standard deviation off."""
    return x + (np.arange(x.shape[2]) < x.shape[2] // 2)


DISAGREEING = [
    (shifted, 500, 0.0, 0.99), (shifted, 500, 0.5, 0.9), (apart, 50, 0.0, 0.99),
    (apart, 100, 0.5, 0.99), (wider, 250, 0.0, 0.99), (late, 200, 0.0, 0.99),
]  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "n_draws", "rho", "power"),
    [pytest.param(*DISAGREEING[0], marks=pytest.mark.slow), *DISAGREEING[1:]],
)
def test_chains_that_disagree_are_caught(fault, n_draws: int, rho: float, power: float) -> None:
    x = chains(np.random.default_rng(n_draws), (40 * N_QUANTITIES, 4, n_draws), rho)
    assert np.mean(is_caught_by_rhat(fault(x))) >= power


def test_without_a_limit_nothing_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    hold_the_limit(monkeypatch, np.inf)
    x = chains(np.random.default_rng(500), (10 * N_QUANTITIES, 4, 500), 0.0)
    assert not is_caught_by_rhat(shifted(x)).any()


def test_the_law_of_a_split_rhat() -> None:
    """Independent draws: (1 - 1/L)(1 + F(m - 1, m (L - 1)) / L) to the order of 1 / L^2."""
    from arviz_stats.base import array_stats

    x = np.random.default_rng(3).normal(size=(4000, 4, 100))
    rhat = array_stats.rhat(x, method="split")
    length, m = 50, 8
    law = length * (rhat**2 - (1.0 - 1.0 / length))
    assert kstest(law, f(m - 1, m * (length - 1)).cdf).pvalue > 1e-6
    # Whole chains in place of halves would be seen.
    assert kstest(law, f(m // 2 - 1, m * (length - 1)).cdf).pvalue < 1e-6


def test_chains_that_disagree_keep_their_own_effective_size() -> None:
    """The limit must not widen because chains are apart: N comes from within sequences."""
    x = chains(np.random.default_rng(4), (200, 4, 200), 0.5)
    together = diagnostics._chain_measures(x, 1e-4)[4]
    y = x + 6.0 * (np.arange(4) < 2)[:, np.newaxis]
    measures = diagnostics._chain_measures(y, 1e-4)
    assert measures[1].max() < 30  # the usual ESS collapses
    assert np.median(measures[4]) < 1.1 * np.median(together)


def test_the_noise_of_an_effective_size() -> None:
    """The variance of a log ESS is at most about `ESS_NOISE` / ESS, and not half of it."""
    x = chains(np.random.default_rng(6), (400, 4, 150), 0.6)
    bulk, tail = diagnostics._chain_measures(x, 1e-4)[1:3]
    noise = [np.var(np.log(size)) * np.median(size) for size in (bulk, tail)]
    assert 0.5 * verdict.ESS_NOISE < max(noise) < 1.33 * verdict.ESS_NOISE
