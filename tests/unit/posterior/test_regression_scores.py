"""Scores of numbers: worked examples, against simulation and scipy, bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from mercer.errors import DataError
from mercer.posterior.evaluation import HeldTargets, hold, joined
from mercer.posterior.predictive import NormalMixture
from mercer.posterior.scores import (
    CLASSIFICATION_METRICS,
    REGRESSION_METRICS,
    find_metric,
    pit_distance,
    r_squared,
)
from support.fake_regression import held_rows
from support.statistics import FALSE_ALARM

LAW = NormalMixture(np.array([[1.0], [2.0], [-1.0]]), np.array([2.0]))


def test_worked_example() -> None:
    scores = hold(LAW, np.array([2.0, 2.0, 9.0]), 4.0).scores()
    assert scores.n_rows == 3
    assert scores.mse == pytest.approx(101 / 3)
    assert scores.rmse == pytest.approx(math.sqrt(101 / 3))
    assert scores.standardized_mse == pytest.approx(101 / 12)
    assert scores.mae == pytest.approx(11 / 3)
    assert scores.r2 == pytest.approx(1 - 101 / (2 * 49 / 9 * 3 + 0))
    exact = -stats.norm([1, 2, -1], 2.0).logpdf([2, 2, 9]).mean()
    assert scores.log_score == pytest.approx(exact)
    assert scores.coverage_90 == pytest.approx(2 / 3)
    assert scores.width_90 == pytest.approx(2 * 2.0 * stats.norm.ppf(0.95))
    assert set(scores.to_dict()) == set(vars(scores))


def test_errors_are_standardised_by_the_mean_variance_of_the_folds() -> None:
    """So that one wild value does not count twice: the fold that has it learned without it."""
    y = np.array([2.0, 2.0, 9.0])
    both = joined([hold(LAW, y, 4.0), hold(LAW, y, 16.0)])
    assert len(both.y) == 6
    assert both.scores().standardized_mse == pytest.approx(101 / 3 / 10)
    unknown = joined([hold(LAW, y, 4.0), hold(LAW, y, math.nan)]).scores()
    assert unknown.standardized_mse is None
    assert math.isnan(find_metric(REGRESSION_METRICS, "standardized_mse").of(unknown))


def test_equal_targets_have_no_r2() -> None:
    assert r_squared(np.ones(3), np.zeros(3)) is None
    assert hold(LAW, np.ones(3), 1.0).scores().r2 is None


def test_the_pit_distance_is_the_integral() -> None:
    u = np.random.default_rng(2).beta(0.6, 0.9, size=13)
    exact, _ = integrate.quad(lambda t: abs(np.mean(u <= t) - t), 0, 1, points=sorted(u), limit=200)
    assert pit_distance(u) == pytest.approx(exact, abs=1e-7)
    assert pit_distance([0.0]) == pit_distance([1.0]) == 0.5
    n = 400
    assert pit_distance((np.arange(n) + 0.5) / n) == pytest.approx(0.25 / n)


def test_laws_that_are_right_are_calibrated_and_others_are_not() -> None:
    """sqrt(n) sup |F_n - u| exceeds its DKW limit with probability 1e-6; the mean is below it.

    The mutants, laws too narrow and too wide by half and laws that are shifted, must exceed it.
    """
    n = 20_000
    limit = math.sqrt(math.log(2.0 / FALSE_ALARM) / (2.0 * n))
    assert held_rows(n_rows=n).scores().calibration_error < limit
    for mutant in ({"spread": 0.6}, {"spread": 1.6}, {"shift": 0.3}):
        assert held_rows(n_rows=n, **mutant).scores().calibration_error > limit, mutant


def test_coverage_of_right_laws_is_binomial() -> None:
    """False alarm 1e-6; the mutant, intervals of narrower laws, must miss."""
    n = 20_000
    low, high = stats.binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], n, 0.9) / n
    assert low <= held_rows(n_rows=n).scores().coverage_90 <= high
    assert not low <= held_rows(n_rows=n, spread=0.9).scores().coverage_90 <= high


def test_scores_without_rows_are_refused() -> None:
    nothing = HeldTargets(*(np.zeros(0) for _ in range(8)))
    with pytest.raises(DataError, match="at least one row"):
        nothing.scores()


def test_metrics_are_fields_of_the_scores_and_have_names_of_their_own() -> None:
    scores = held_rows(n_rows=50).scores()
    for metrics in (CLASSIFICATION_METRICS, REGRESSION_METRICS):
        assert len({metric.name for metric in metrics}) == len(metrics)
        assert len({metric.heading for metric in metrics}) == len(metrics)
    assert all(metric.of(scores) >= 0 for metric in REGRESSION_METRICS)
    with pytest.raises(KeyError):
        find_metric(REGRESSION_METRICS, "error_rate")
