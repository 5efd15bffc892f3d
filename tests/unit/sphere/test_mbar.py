"""Prior weights of the draws of a ladder, their influences and the variance of correlated sums."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import logsumexp

from mercer.likelihoods.label_noise import IMPOSSIBLE
from mercer.sphere import tempering as mbar
from mercer.sphere.tempering import PriorWeights, RungCounts, weigh_draws

N_VALUES = 12


def counts_of(n_rungs: int, n_sweeps: int, seed: int = 1) -> tuple[RungCounts, np.ndarray]:
    """Counts of draws from a ladder of linear costs, and the costs (M, K)."""
    rng = np.random.default_rng(seed)
    U = np.arange(N_VALUES)[:, None] * np.linspace(0.0, 1.0, n_rungs)
    law = np.exp(-U) / np.exp(-U).sum(axis=0)
    columns = [rng.choice(N_VALUES, n_sweeps, p=law[:, k]) for k in range(n_rungs)]
    return RungCounts.of([n_sweeps] * n_rungs, np.concatenate(columns), N_VALUES), U


def test_counts() -> None:
    index = np.concatenate([np.zeros(100, int), np.ones(60, int), [2] * 50])
    counts = RungCounts.of([100, 110], index, 3)
    np.testing.assert_array_equal(counts.by_rung, [[100, 0, 0], [0, 60, 50]])
    assert counts.by_block.shape == (40, 3)
    np.testing.assert_array_equal(counts.by_block.sum(axis=0), [100, 60, 50])
    np.testing.assert_array_equal(counts.rung_by_block.sum(axis=0), [100, 110])
    # In the order of the sweeps, and every rung in every block.
    assert counts.by_block[:21, 2].sum() == 0
    assert counts.rung_by_block.min() >= 2


def test_the_equations_hold() -> None:
    counts, U = counts_of(5, 200)
    log_weight = weigh_draws(counts, U).log_weight
    f = -logsumexp(log_weight[:, None] - U, axis=0)
    H, N = counts.by_block.sum(axis=0), counts.rung_by_block.sum(axis=0)
    log_D = logsumexp(np.log(N) + f - U, axis=1)
    np.testing.assert_allclose(log_weight, np.log(H) - log_D, atol=1e-8)
    assert f[0] == pytest.approx(0.0, abs=1e-12)


def test_one_rung_is_its_histogram() -> None:
    counts, U = counts_of(1, 300)
    weights = weigh_draws(counts, U)
    np.testing.assert_allclose(np.exp(weights.log_weight), counts.by_rung[0] / 300.0)
    assert weights.is_connected


def test_two_rungs_are_bennetts_ratio() -> None:
    """Sum over rung 1 of 1/(1 + exp(u + f)) is that over rung 0 of 1/(1 + exp(-u - f))."""
    counts, U = counts_of(2, 200)
    u = U[:, 1]

    def excess(f: float) -> float:
        p = 1.0 / (1.0 + np.exp(u - f))  # share of rung 1
        return float(counts.by_rung[0] @ p - counts.by_rung[1] @ (1.0 - p))

    log_weight = weigh_draws(counts, U).log_weight
    assert -logsumexp(log_weight - u) == pytest.approx(brentq(excess, -50.0, 50.0), abs=1e-8)


def test_a_bad_first_guess_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, U = counts_of(6, 100)
    expected = weigh_draws(counts, U).log_weight
    rng = np.random.default_rng(2)
    for _ in range(5):
        bad = np.append(0.0, 20.0 * rng.standard_normal(5))
        monkeypatch.setattr(mbar, "_first_guess", lambda *_, bad=bad: bad)
        np.testing.assert_allclose(weigh_draws(counts, U).log_weight, expected, atol=1e-7)


def influence_error(power: float) -> float:
    """Influences against what a block counted (1 + 1e-5) times does to the weights."""
    counts, U = counts_of(4, 40 * 6)
    used = U * power
    weights, h, worst = weigh_draws(counts, used), 1e-5, 0.0
    for b in (0, 7, 39):
        scale = np.ones((40, 1))
        scale[b] += h
        heavier = RungCounts(counts.by_block * scale, counts.by_rung, counts.rung_by_block * scale)
        moved = (weigh_draws(heavier, U).log_weight - weigh_draws(counts, U).log_weight) / h
        worst = max(worst, np.abs(moved - weights.influence[b]).max())
    return float(worst)


def test_influence_is_the_derivative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mbar, "_TOLERANCE", 1e-13)
    assert influence_error(1.0) < 1e-5
    assert influence_error(0.5) > 1e-3  # mutant: costs halved


def test_influences_cancel() -> None:
    counts, U = counts_of(4, 240)
    weights = weigh_draws(counts, U)
    np.testing.assert_allclose(weights.influence.sum(axis=0), 0.0, atol=1e-7)
    np.testing.assert_allclose(weights.influence @ np.exp(weights.log_weight), 0.0, atol=1e-12)


def test_log_mean() -> None:
    log_weight = np.log(np.array([0.2, 0.3, 0.5]))
    influence = np.zeros((10, 3))
    weights = PriorWeights(log_weight, influence, True)
    cost = np.array([0.0, 1.0, 2.0])
    assert weights.log_mean(cost)[0] == pytest.approx(np.log(np.exp(log_weight - cost).sum()))
    assert weights.log_mean(cost)[1] == 0.0
    impossible = np.array([0.0, IMPOSSIBLE, 2.0 * IMPOSSIBLE])
    assert weights.log_mean(impossible)[0] == pytest.approx(np.log(0.2))
    assert np.isnan(weights.log_mean(np.full(3, IMPOSSIBLE))).all()
    apart = PriorWeights(log_weight, influence, False)
    assert apart.log_mean(cost)[1] == np.inf
    assert apart.log_mean(np.zeros(3)) == (pytest.approx(0.0), 0.0)


def test_a_rung_where_errors_are_impossible() -> None:
    """Every draw of it has none: it adds nothing to what the prior's draws say of P(0)."""
    first = np.array([0] * 20 + [1] * 30 + [2] * 50)
    counts = RungCounts.of([100, 100], np.append(first, np.zeros(100, int)), 3)
    weights = weigh_draws(counts, np.array([[0.0, 0.0], [0.0, IMPOSSIBLE], [0.0, 2 * IMPOSSIBLE]]))
    np.testing.assert_allclose(np.exp(weights.log_weight), [0.2, 0.3, 0.5], rtol=1e-8)
    assert weights.is_connected


def rms_of_sums(correlation: float, variance_of_sum) -> float:
    """Root mean square of a sum of 40 over its estimated standard error, 3000 series."""
    rng = np.random.default_rng(3)
    noise = rng.standard_normal((3000, 440))
    x = noise.copy()
    for t in range(1, 440):
        x[:, t] += correlation * x[:, t - 1]
    x = x[:, 400:]
    total = x.sum(axis=1)
    variance = [variance_of_sum(row - row.mean()) for row in x]
    return float(np.sqrt(np.mean(total**2 / variance)))


@pytest.mark.parametrize("correlation", [-0.3, 0.0, 0.3, 0.6])
def test_variance_of_a_sum(correlation: float) -> None:
    """Known to 0.02 or so; cautious where the autocorrelation is negative."""
    rms = rms_of_sums(correlation, mbar._variance_of_sum)
    assert rms < 1.15
    assert rms > (0.85 if correlation >= 0.0 else 0.6)


def test_variance_of_a_sum_sees_independence_assumed() -> None:
    assert rms_of_sums(0.6, lambda x: x @ x) > 1.6


def test_variance_of_a_constant() -> None:
    assert mbar._variance_of_sum(np.zeros(8)) == 0.0
