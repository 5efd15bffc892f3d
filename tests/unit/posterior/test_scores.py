"""Scores of predictions, of classes and of numbers: worked examples, other libraries, bad input."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss

from mercer.errors import DataError
from mercer.estimation.cross_validate import Result
from mercer.estimation.tasks import CLASSIFICATION
from mercer.posterior import scores
from mercer.posterior.evaluation import (
    Evaluation,
    HeldClasses,
    HeldTargets,
    ModelScore,
    RunningScores,
    clustered_error,
    compared,
    error_rate_se,
    log_score_words,
    mse_error,
    paired_gap,
    standing,
    verdict,
)
from mercer.posterior.scores import (
    Scores,
    gains_curve,
    interval_coverage,
    pit_histogram,
    score_classification,
)
from support.fake_regression import fake_regression, held_rows


def random_case(n: int, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(n_classes), size=n)
    return rng.integers(n_classes, size=n), proba


def test_worked_example() -> None:
    y, proba = [0, 1, 1, 0], [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75], [0.25, 0.75]]
    found = scores.score_classification(y, proba)
    assert found.n_rows == 4
    assert found.error_rate == 0.5  # the tie goes to the first class
    assert found.log_score == pytest.approx((2 * np.log(4 / 3) + np.log(2) + np.log(4)) / 4)
    assert found.brier_score == pytest.approx((2 / 16 + 1 / 4 + 9 / 16) / 4)
    assert found.calibration_error == pytest.approx((0.25 + 0.5 + 2 * 0.25) / 4)
    assert found.to_dict()["n_rows"] == 4


@pytest.mark.parametrize("n_classes", [2, 4])
def test_agrees_with_scikit_learn(n_classes: int) -> None:
    y, proba = random_case(200, n_classes, 14)
    found = scores.score_classification(y, proba)
    assert found.log_score == pytest.approx(log_loss(y, proba, labels=range(n_classes)))
    if n_classes == 2:
        assert found.brier_score == pytest.approx(brier_score_loss(y, proba[:, 1]))
    else:
        assert found.brier_score == pytest.approx(np.sum((proba - np.eye(4)[y]) ** 2) / 200)


def test_certain_and_wrong_is_finite() -> None:
    assert scores.log_score([1], [[1.0, 0.0]]) == pytest.approx(-np.log(2.0**-52))


def test_booleans_are_classes() -> None:
    assert scores.error_rate([True, False], [[0.1, 0.9], [0.1, 0.9]]) == 0.5


def test_calibration_of_perfect_probabilities_is_small() -> None:
    """False alarm: the mean is 0.0098 (standard deviation 0.0025); 0.025 is 6 deviations away.

    Mutant caught: binning by the other class (0.5), half the rows flipped (0.25).
    """
    rng = np.random.default_rng(15)
    p = rng.random(10_000)
    y = (rng.random(10_000) < p).astype(int)
    assert scores.calibration_error(y, np.column_stack([1 - p, p])) < 0.025
    assert scores.calibration_error(y, np.column_stack([p, 1 - p])) > 0.4


def test_calibration_of_many_classes_judges_the_predicted_one() -> None:
    proba = np.tile([0.1, 0.7, 0.2], (10, 1))
    y = np.array([1] * 7 + [0, 2, 2])
    assert scores.calibration_error(y, proba) == pytest.approx(0.0, abs=1e-12)


def test_curve_bins_have_equal_counts() -> None:
    p = np.linspace(0.01, 0.99, 95)
    curve = scores.reliability_curve(np.zeros(95, int), p, n_bins=10)
    assert set(curve.n_rows.tolist()) == {9, 10}
    assert curve.n_rows.sum() == 95
    assert np.all(np.diff(curve.mean_predicted) > 0)


def test_ties_share_a_bin_and_row_order_does_not_matter() -> None:
    rng = np.random.default_rng(16)
    p = rng.choice([0.2, 0.5, 0.9], size=100)
    y = rng.integers(2, size=100)
    order = rng.permutation(100)
    first, second = scores.reliability_curve(y, p), scores.reliability_curve(y[order], p[order])
    assert len(first.n_rows) == 3
    np.testing.assert_allclose(first.mean_predicted, [0.2, 0.5, 0.9])
    np.testing.assert_array_equal(first.observed, second.observed)


def test_wilson_interval() -> None:
    curve = scores.reliability_curve([1] * 8 + [0] * 2, [0.5] * 10)
    # z = 1.6449: (0.8 + z^2/20 -+ z sqrt(0.016 + z^2/400)) / (1 + z^2/10)
    assert curve.lower[0] == pytest.approx(0.5407, abs=2e-4)
    assert curve.upper[0] == pytest.approx(0.9313, abs=2e-4)


def test_interval_at_the_ends() -> None:
    curve = scores.reliability_curve([0] * 20, [0.1] * 20)
    assert curve.lower[0] == 0.0
    assert 0 < curve.upper[0] < 0.2


@given(st.integers(1, 60), st.integers(1, 15), st.integers(0, 2**32 - 1))
def test_curve_invariants(n: int, n_bins: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), rng.integers(0, 4))
    y = rng.integers(2, size=n)
    curve = scores.reliability_curve(y, p, n_bins=n_bins)
    assert curve.n_rows.sum() == n
    assert len(curve.n_rows) <= n_bins
    assert np.sum(curve.observed * curve.n_rows) == pytest.approx(y.sum())
    assert np.sum(curve.mean_predicted * curve.n_rows) == pytest.approx(p.sum())
    assert np.all((curve.lower >= 0) & (curve.lower <= curve.observed + 1e-12))
    assert np.all((curve.upper <= 1) & (curve.upper >= curve.observed - 1e-12))


@pytest.mark.parametrize(
    ("y", "proba", "message"),
    [
        ([0, 1], [[0.5, 0.5]], "shapes"),
        ([[0]], [[0.5, 0.5]], "shapes"),
        ([0], [0.5], "shapes"),
        ([], np.zeros((0, 2)), "at least one row"),
        ([0], [[1.0]], "two classes"),
        ([2], [[0.5, 0.5]], "0 to 1"),
        ([-1], [[0.5, 0.5]], "0 to 1"),
        ([0.5], [[0.5, 0.5]], "0 to 1"),
        (["a"], [[0.5, 0.5]], "0 to 1"),
        ([0, 0], [[0.5, 0.5], [0.5, 0.6]], "row 1"),
        ([0], [[np.nan, 0.5]], "row 0"),
        ([0], [[-0.5, 1.5]], "row 0"),
    ],
)
def test_bad_input(y: object, proba: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        scores.score_classification(y, proba)  # type: ignore[arg-type]


def test_bad_curve_input() -> None:
    with pytest.raises(DataError, match="n_bins"):
        scores.reliability_curve([0], [0.5], n_bins=0)
    with pytest.raises(DataError, match="shape"):
        scores.reliability_curve([0], [[0.5, 0.5]])


# Coverage of intervals and histograms of the PIT: worked examples, chance, bad input.


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


# Where a regressor stands beside its baselines, and what is said of it.


@pytest.mark.parametrize(
    ("noise", "baselines", "word", "best", "place"),
    [
        (0.0, (1.0, 2.0), "ahead", "baseline 1", "1 of 3"),
        (0.5, (0.5, 2.0), "level", "baseline 0.5", "1 of 3"),
        (1.5, (3.0, 0.0), "behind", "baseline 0", "2 of 3"),
    ],
)
def test_the_model_beside_the_best_baseline(
    noise: float, baselines: tuple[float, ...], word: str, best: str, place: str
) -> None:
    evaluation = fake_regression(noise=noise, baselines=baselines)
    found = standing(evaluation)
    assert found is not None
    assert (found[0], found[1].name) == (word, best)
    said = verdict(evaluation)
    phrase = {"level": "level with", "ahead": "ahead of", "behind": "behind"}[word]
    assert f"the model is {phrase} the best baseline, {best}" in said
    assert f"it takes place {place}" in said
    assert ("may well be chance" in said) == (word == "level")


def test_last_of_several_is_said_though_it_may_be_chance() -> None:
    found = fake_regression(noise=0.6, baselines=(0.5, 0.55))
    model, *others = found.entries
    said = verdict(replace(found, entries=(model, *(replace(e, gap_error=1.0) for e in others))))
    assert "the model is behind all 2 baselines, of which baseline 0.5 is the best" in said
    assert "may well be chance" in said


def test_pairing_tells_apart_what_the_errors_themselves_do_not() -> None:
    """The same small bias on every row: far less than the error of either score."""
    evaluation = fake_regression(shift=0.15, baselines=(0.0,))
    model, best = evaluation.entries
    gap = model.scores.mse - best.scores.mse
    assert gap < mse_error(evaluation)
    assert best.gap_error is not None
    assert best.gap_error < mse_error(evaluation) / 4


def test_without_a_baseline_or_with_one_row_nothing_is_claimed() -> None:
    alone = fake_regression(baselines=())
    assert standing(alone) is None
    assert "nothing to compare" in verdict(alone)
    assert "of the variance" in verdict(alone)
    single = fake_regression(n_rows=1, baselines=(5.0,))
    found = standing(single)
    assert found is not None
    assert found[0] == "unknown"
    assert "One row says nothing" in verdict(single)
    assert math.isinf(mse_error(single))


def classified(n: int, *is_wrong: np.ndarray, others: float = 0.8) -> list[HeldClasses]:
    """Rows of class 0, and models that miss those of each mask."""
    y = np.zeros(n, dtype=np.int64)
    right, wrong = np.array([others, 1 - others]), np.array([0.2, 0.8])
    return [HeldClasses(y, np.where(mask[:, np.newaxis], wrong, right)) for mask in is_wrong]


def evaluation(*is_wrong: np.ndarray) -> Evaluation:
    names = ["mercer gp", "logistic regression", "boosting"]
    results = [
        Result(name, name != "mercer gp", (held,), 1.0)
        for name, held in zip(names, classified(len(is_wrong[0]), *is_wrong), strict=False)
    ]
    found = CLASSIFICATION.evaluate("a test", ("no", "yes"), results)
    assert isinstance(found, Evaluation)
    return found


def entry(name: str, error: float, n: int = 400) -> ModelScore:
    return ModelScore(name, name != "mercer gp", Scores(n, error, 0.3, 0.1, 0.02), 1.0)


def first(n: int, k: int, begin: int = 0) -> np.ndarray:
    rows = np.arange(n)
    return (rows >= begin) & (rows < begin + k)


def test_the_standard_error_is_binomial_and_never_0() -> None:
    assert error_rate_se(entry("x", 0.25)) == pytest.approx(math.sqrt(0.25 * 0.75 / 400), rel=0.02)
    assert 0.0 < error_rate_se(entry("x", 0.0)) < 0.01


@pytest.mark.parametrize(
    ("is_wrong", "word"),
    [
        ((first(400, 40), first(400, 80), first(400, 90)), "ahead"),
        ((first(400, 40), first(400, 44, 100), first(400, 90)), "level"),
        ((first(400, 80), first(400, 60), first(400, 90)), "behind"),
    ],
)
def test_standing_is_beside_the_best_baseline(is_wrong: tuple[np.ndarray, ...], word: str) -> None:
    found = evaluation(*is_wrong)
    place = standing(found)
    assert place is not None
    assert place[0] == word
    assert place[1].name == "logistic regression"
    assert {"ahead": "ahead of", "level": "level with", "behind": "behind"}[word] in verdict(found)


def test_the_same_errors_are_told_apart_by_pairing_alone() -> None:
    """16.7 % against 27.8 % of 180 rows: hardly chance where one's errors are among the other's.

    The mutant, the error of independent rates, would call both level: sqrt(.028^2 + .033^2) = .043,
    and the gap is .111; with 54 rows, .05 and .06.
    """
    n = 54
    nested = evaluation(first(n, 9), first(n, 15))
    apart = evaluation(first(n, 9), first(n, 15, 30))
    assert standing(nested)[0] == "ahead"  # type: ignore[index]
    assert standing(apart)[0] == "level"  # type: ignore[index]
    said = verdict(nested)
    assert "16.7" in said
    assert "27.8" in said
    error = nested.entries[1].gap_error
    assert error is not None
    # Bonett and Price: 0 + 1 and 6 + 1 of 56 rows
    p, q = 1 / 56, 7 / 56
    assert error == pytest.approx(math.sqrt((p + q - (p - q) ** 2) / 56))
    assert f"11.1 percentage points with a standard error of {100 * error:.1f}" in said
    independent = math.hypot(*(error_rate_se(each) for each in nested.entries))
    assert 2 * independent > 6 / n


def test_two_models_that_miss_the_same_rows_are_level_with_an_error_above_0() -> None:
    found = evaluation(first(50, 5), first(50, 5))
    assert standing(found)[0] == "level"  # type: ignore[index]
    assert found.entries[1].gap_error > 0  # type: ignore[operator]


def test_two_calls_of_two_equal_models_are_told_apart_in_one_of_twenty() -> None:
    """False alarms of the verdict on error rates: 5 % by design; here 2000 tables of 100 rows.

    With 2000 tables the share found is within .015 of a true .05 with probability .998. The
    mutant, a plain standard error of the paired differences, calls more of them apart where few
    rows differ: above .065 at 8 rows that one alone misses.
    """
    rng = np.random.default_rng(5)
    n_apart = n_mutant = 0
    for _ in range(2000):
        differs = rng.random(100) < 0.06
        mine = differs & (rng.random(100) < 0.5)
        held, other = classified(100, mine, differs & ~mine)
        gap, error = paired_gap(held, other, "error_rate")
        assert error is not None
        n_apart += compared(gap, error) != "level"
        plain = (mine.astype(float) - (differs & ~mine)).std(ddof=1) / 10
        n_mutant += compared(gap, float(plain)) != "level"
    assert n_apart / 2000 < 0.065
    assert n_mutant > 1.5 * n_apart


def in_groups(rng: np.random.Generator, n_groups: int, n_rows: int) -> tuple[np.ndarray, ...]:
    """Rows that one of two equal models misses, whole groups of them alike, and the groups."""
    which = rng.choice(3, n_groups, p=[0.2, 0.2, 0.6])  # the first misses it, the second, neither
    groups = np.repeat(np.arange(n_groups), n_rows)
    is_alike = rng.random(len(groups)) < 0.8
    mine, other = which[groups] == 0, which[groups] == 1
    return mine & is_alike, other & is_alike, groups


@pytest.mark.one_in(2)
@pytest.mark.parametrize("metric", ["error_rate", "log_score"])
def test_rows_of_a_group_are_no_independent_witnesses(metric: str) -> None:
    """False alarms of 2000 pairs of equal models on 40 groups of 10 rows: 5 % by design.

    The share found is within .015 of a true .05 with probability .998. The mutant, which takes
    rows as independent, calls more than a third of them apart.
    """
    rng = np.random.default_rng(6)
    n_apart = n_mutant = 0
    for _ in range(2000):
        mine, theirs, groups = in_groups(rng, 40, 10)
        pair = classified(400, mine, theirs)
        order = rng.permutation(400)
        pair = [HeldClasses(held.y_index[order], held.proba[order]) for held in pair]
        n_apart += compared(*paired_gap(*pair, metric, groups[order])) != "level"
        n_mutant += compared(*paired_gap(*pair, metric)) != "level"
    assert 0.03 < n_apart / 2000 < 0.08
    assert n_mutant / 2000 > 1 / 3


@pytest.mark.parametrize("metric", ["error_rate", "log_score"])
def test_groups_of_one_row_are_rows(metric: str) -> None:
    mine, theirs, _ = in_groups(np.random.default_rng(7), 30, 1)
    pair = classified(30, mine, theirs)
    assert paired_gap(*pair, metric, np.arange(30)[::-1]) == pytest.approx(
        paired_gap(*pair, metric)
    )
    assert paired_gap(*pair, metric, np.full(30, 4))[1] is None


@pytest.mark.parametrize("metric", ["log_score", "brier_score"])
def test_scores_that_are_means_are_paired_by_row(metric: str) -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 40)
    p, q = rng.dirichlet(np.ones(3), (2, 40))
    first_rows, second_rows = HeldClasses(y, p), HeldClasses(y, q)
    gap, error = paired_gap(first_rows, second_rows, metric)
    assert gap == pytest.approx(
        getattr(first_rows.scores(), metric) - getattr(second_rows.scores(), metric)
    )
    each = [
        getattr(HeldClasses(y[i : i + 1], p[i : i + 1]).scores(), metric)
        - getattr(HeldClasses(y[i : i + 1], q[i : i + 1]).scores(), metric)
        for i in range(40)
    ]
    assert error == pytest.approx(np.std(each, ddof=1) / math.sqrt(40))


def test_log_scores_are_compared_on_the_same_rows() -> None:
    """Both are uneven over the rows; their difference is the same on each."""
    rng = np.random.default_rng(2)
    y, p = np.zeros(30, dtype=np.int64), rng.uniform(0.3, 0.9, 30)
    parts = [HeldClasses(y, np.column_stack([c * p, 1 - c * p])) for c in (1.0, 0.98)]
    results = [Result(n, n != "m", (held,), 1.0) for n, held in zip("mb", parts, strict=True)]
    found = CLASSIFICATION.evaluate("a test", ("no", "yes"), results)
    said = log_score_words(found)
    assert "ahead of b" in said
    assert "differ by 0.020 with a standard error of 0.000" in said
    sure = [HeldClasses(y, np.column_stack([1 - c * p, c * p])) for c in (1e-5, 2e-5)]
    results = [Result(n, n != "m", (held,), 1.0) for n, held in zip("mb", sure, strict=True)]
    said = log_score_words(CLASSIFICATION.evaluate("a test", ("no", "yes"), results))
    mine, theirs = float(np.mean(-np.log1p(-1e-5 * p))), float(np.mean(-np.log1p(-2e-5 * p)))
    assert f"{mine:.3g} beside {theirs:.3g}. On the same rows" in said


def test_an_evaluation_of_groups_says_how_many_and_widens_its_errors() -> None:
    mine, theirs, groups = in_groups(np.random.default_rng(8), 12, 10)
    parts = classified(120, mine, theirs)

    def evaluated(groups: np.ndarray | None) -> Evaluation:
        results = [
            Result(name, name != "m", (held,), 1.0, groups=groups)
            for name, held in zip("mb", parts, strict=True)
        ]
        return CLASSIFICATION.evaluate("a test", ("no", "yes"), results)

    whole, apart, single = evaluated(groups), evaluated(None), evaluated(np.zeros(120, np.int64))
    assert "rows paired, 12 groups taken whole)" in verdict(whole)
    assert "groups" not in verdict(apart)
    few = evaluated(np.arange(120) % 3)
    (model, best), error = few.entries, few.entries[1].gap_error
    gap = 3.0 * error if error else 0.0  # of three groups up to 4.5 are chance
    scores = replace(best.scores, error_rate=model.scores.error_rate - gap)
    said = verdict(replace(few, entries=(model, replace(best, scores=scores))))
    assert "behind, though that may be chance, the best baseline, b" in said
    assert said.endswith("may well be chance: of 3 groups one below 4.5 of these may be.")
    assert whole.entries[1].gap_error > 1.5 * apart.entries[1].gap_error  # type: ignore[operator]
    assert error_rate_se(whole.entries[0]) > 1.5 * error_rate_se(apart.entries[0])
    assert standing(single)[0] == "unknown"  # type: ignore[index]
    assert "One group says nothing of a difference." in verdict(single)
    assert math.isinf(error_rate_se(single.entries[0]))


def test_a_file_without_paired_errors_is_not_judged() -> None:
    found = Evaluation(
        "a test", ("no", "yes"), np.zeros(9, np.int64), np.full((9, 2), 0.5),
        (entry("mercer gp", 0.1), entry("svc", 0.3)),
    )  # fmt: skip
    assert standing(found)[0] == "unknown"  # type: ignore[index]
    assert "not known" in verdict(found)
    assert "chance." not in verdict(found).replace("by chance is", "")


def test_without_a_baseline_nothing_is_claimed() -> None:
    alone = evaluation(first(50, 5))
    assert standing(alone) is None
    assert "nothing to compare" in verdict(alone)
    assert log_score_words(alone) == ""


# Running sums give the scores of all rows together, without those that need them at once.


CUTS = (0, 1, 30, 400)


def test_numbers() -> None:
    whole = held_rows(n_rows=400, noise=0.5)
    running = RunningScores()
    assert running.scores() is None
    for begin, end in pairwise(CUTS):
        part = {k: v[begin:end] for k, v in vars(whole).items()}
        running.add(HeldTargets(**part))
    found, wanted = asdict(running.scores()), asdict(whole.scores())
    assert found["r2"] is None
    assert math.isnan(found["calibration_error"])
    for name in wanted.keys() - {"r2", "calibration_error"}:
        assert found[name] == pytest.approx(wanted[name], rel=1e-12), name


def test_numbers_of_which_the_variance_is_not_known() -> None:
    rows = held_rows(n_rows=5)
    running = RunningScores()
    running.add(replace(rows, variance=np.full(5, np.nan)))
    assert running.scores().standardized_mse is None


def test_classes() -> None:
    rng = np.random.default_rng(2)
    y, proba = rng.integers(3, size=400), rng.dirichlet(np.ones(3), size=400)
    running = RunningScores()
    for begin, end in pairwise(CUTS):
        running.add(HeldClasses(y[begin:end], proba[begin:end]))
    found, wanted = asdict(running.scores()), asdict(HeldClasses(y, proba).scores())
    assert math.isnan(found["calibration_error"])
    for name in wanted.keys() - {"calibration_error", "average_precision"}:
        assert found[name] == pytest.approx(wanted[name], rel=1e-12), name


def rare_rows() -> tuple[np.ndarray, np.ndarray]:
    """Of 200 rows nine are "yes", six of them among the nine that are the most likely."""
    y = np.zeros(200, np.int64)
    y[[0, 1, 2, 4, 5, 8, 20, 90, 150]] = 1
    return y, np.linspace(0.6, 0.001, 200)


@pytest.mark.parametrize("is_first", [False, True])
def test_a_rare_class_is_judged_by_whether_its_rows_come_first(is_first: bool) -> None:
    """Whichever of the two classes it is; block by block it is not known."""
    y, p = rare_rows()
    proba = np.column_stack([p, 1.0 - p] if is_first else [1.0 - p, p])
    held = HeldClasses(1 - y if is_first else y, proba)
    precision = held.scores().average_precision
    ranks = np.flatnonzero(y) + 1
    assert precision == pytest.approx(np.mean(np.arange(1, 10) / ranks), rel=1e-12)
    running = RunningScores()
    for begin, end in ((0, 100), (100, 200)):
        running.add(HeldClasses(held.y_index[begin:end], proba[begin:end]))
    found = running.scores()
    assert isinstance(found, Scores)
    assert found.average_precision is None
    mine = ModelScore("mercer gp", False, held.scores(), 1.0, None)
    chance = np.tile(proba.mean(axis=0), (200, 1))
    shares = HeldClasses(held.y_index, chance).scores()
    classes = ("yes", "no") if is_first else ("no", "yes")
    entries = (mine, ModelScore("shares", True, shares, 0.1, 0.01))
    words = verdict(Evaluation("a test", classes, held.y_index, proba, entries))
    assert words.startswith("“yes” is rare, 9 of 200 rows, so that errors say little of it")
    assert "Of the 9 rows where it is most likely 6 are “yes”" in words
    assert f"{precision:.3f}, by chance 0.045, of shares, the best baseline in this, 0.045" in words


@pytest.mark.parametrize("at", [0, 7])
def test_the_only_row_of_a_class_is_spoken_of_as_one(at: int) -> None:
    y, p = (np.arange(200) == at).astype(np.int64), np.linspace(0.6, 0.001, 200)
    proba = np.column_stack([1.0 - p, p])
    mine = ModelScore("mercer gp", False, HeldClasses(y, proba).scores(), 1.0, None)
    words = verdict(Evaluation("a test", ("no", "yes"), y, proba, (mine,)))
    assert f"The row where it is most likely {'is' if at == 0 else 'is not'} “yes”" in words


@pytest.mark.parametrize("digits", [1, 2, 9])
def test_average_precision_is_that_of_scikit_learn(digits: int) -> None:
    """Among rows of equal probabilities, too."""
    rng = np.random.default_rng(digits)
    p = np.round(rng.random(300), digits)
    y = (rng.random(300) < 0.1 * p).astype(np.int64)
    found = score_classification(y, np.column_stack([1.0 - p, p])).average_precision
    assert found == pytest.approx(average_precision_score(y, p), rel=1e-12)


@pytest.mark.parametrize("n", [0, 20, 100, 180, 200])
def test_no_class_is_rare_from_a_tenth_on_or_without_a_row(n: int) -> None:
    y = (np.arange(200) < n).astype(np.int64)
    assert score_classification(y, np.full((200, 2), 0.5)).average_precision is None


@pytest.mark.parametrize(
    ("counts", "is_rare"),
    [
        ([100, 95, 5], True),
        ([100, 0, 25], False),
        ([34] * 9 + [12], False),
        ([34] * 9 + [6], True),
    ],
)
def test_of_several_classes_one_is_rare_that_has_less_than_a_third_of_its_share(
    counts: list[int], is_rare: bool
) -> None:
    y = np.repeat(np.arange(len(counts)), counts)
    p = np.random.default_rng(0).dirichlet(np.ones(len(counts)), len(y))
    found = score_classification(y, p).average_precision
    last = len(counts) - 1
    assert (found is not None) == is_rare
    if is_rare:
        assert found == pytest.approx(average_precision_score(y == last, p[:, last]), rel=1e-12)


def test_gains_count_rows_and_what_the_probabilities_say() -> None:
    y, p = rare_rows()
    order = np.random.default_rng(0).permutation(200)
    curve = gains_curve(y[order], p[order])
    np.testing.assert_array_equal(curve.found, np.cumsum(y))
    np.testing.assert_allclose(curve.expected, np.cumsum(p))
    np.testing.assert_allclose(curve.spread, np.sqrt(np.cumsum(p * (1 - p))))
    assert [curve.n_looked_at(share) for share in (1e-9, 0.005, 0.1, 1.0)] == [1, 1, 20, 200]
    tied = gains_curve([1, 0, 0, 1], [0.5, 0.5, 0.5, 0.2])
    np.testing.assert_allclose(tied.found, [1 / 3, 2 / 3, 1, 2])
    with pytest.raises(DataError):
        gains_curve([2], [0.5])
    with pytest.raises(DataError):
        gains_curve([1], [[0.5, 0.5]])


@pytest.mark.parametrize("n_groups", [2, 3, 4, 10])
def test_equal_models_are_seldom_called_apart_from_few_groups(n_groups: int) -> None:
    """Of 2000 tables, 4.55 % by chance as from many rows; two standard errors: 30 % of 2 groups.

    Five standard deviations of the count are 2.3 %: a false alarm in a million.
    """
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(n_groups), 5)
    n_apart = 0
    for _ in range(2000):
        gaps = rng.normal(size=n_groups)[groups]
        word = compared(gaps.mean(), clustered_error(gaps, groups), n_groups)
        n_apart += word != "level"
    assert abs(n_apart / 2000 - 0.0455) < 0.024
