"""Coverage of intervals and histograms of the PIT: worked examples, chance, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from mercer.errors import DataError
from mercer.posterior.scores import interval_coverage, pit_histogram
from support.fake_regression import held_rows


def test_rows_are_counted_at_every_level() -> None:
    u = np.random.default_rng(1).random(200)
    curve = interval_coverage(u)
    for level, observed in zip(curve.level, curve.observed, strict=True):
        low, high = (1 - level) / 2, (1 + level) / 2
        assert observed == np.mean((low <= u) & (u <= high))
    assert curve.level[[0, 9, -1]].tolist() == [0.05, 0.5, 0.95]
    np.testing.assert_array_equal(curve.upper, binom.ppf(0.95, 200, curve.level) / 200)


def test_the_level_of_scores_is_that_of_the_curve() -> None:
    rows = held_rows(spread=0.7)
    curve = interval_coverage(rows.pit)
    assert curve.observed[curve.level == 0.9] == pytest.approx(rows.scores().coverage_90)


def test_right_laws_stay_in_the_band_and_narrow_ones_fall_out() -> None:
    right, narrow = (interval_coverage(held_rows(n_rows=2000, spread=s).pit) for s in (1.0, 0.7))
    is_in = [(c.lower <= c.observed) & (c.observed <= c.upper) for c in (right, narrow)]
    assert is_in[0].mean() > 0.5
    assert not is_in[1].any()
    assert (narrow.observed < narrow.lower).all()


def test_a_histogram_counts_all_rows() -> None:
    histogram = pit_histogram([0.0, 0.05, 0.5, 1.0] * 15)
    assert len(histogram.share) == 10
    assert histogram.share.sum() == pytest.approx(1.0)
    assert histogram.share[[0, 5, 9]] == pytest.approx([0.5, 0.25, 0.25])
    assert histogram.lower == binom.ppf(0.05, 60, 0.1) / 60
    assert [len(pit_histogram(np.full(n, 0.5)).share) for n in (1, 12, 25, 1000)] == [2, 2, 5, 10]


@pytest.mark.parametrize("pit", [[], [1.5], [-0.1], [np.nan], [[0.5]]])
def test_what_is_no_pit_is_refused(pit: list[float]) -> None:
    for function in (interval_coverage, pit_histogram):
        with pytest.raises(DataError):
            function(pit)
