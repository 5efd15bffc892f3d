from __future__ import annotations

import math

import numpy as np
import pytest

from mercer.estimation.cross_validate import Result
from mercer.estimation.tasks import CLASSIFICATION
from mercer.posterior.evaluation import (
    Evaluation,
    HeldClasses,
    ModelScore,
    compared,
    error_rate_se,
    log_score_words,
    paired_gap,
    standing,
    verdict,
)
from mercer.posterior.scores import Scores


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
    assert whole.entries[1].gap_error > 1.5 * apart.entries[1].gap_error  # type: ignore[operator]
    assert error_rate_se(whole.entries[0]) > 1.5 * error_rate_se(apart.entries[0])
    assert standing(single)[0] == "unknown"  # type: ignore[index]
    assert "One group says nothing of a difference." in verdict(single)
    assert math.isinf(error_rate_se(single.entries[0]))


def test_a_file_without_paired_errors_is_not_judged() -> None:
    found = Evaluation(
        "a test", ("no", "yes"), np.zeros(9), np.full((9, 2), 0.5),
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
