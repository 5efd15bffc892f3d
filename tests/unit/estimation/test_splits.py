from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from mercer.errors import DataError, UsageError
from mercer.estimation.splits import folds, forward_folds, holdout, latest


def generator() -> np.random.Generator:
    return np.random.default_rng(8)


LABELS = np.array(["a"] * 60 + ["b"] * 30 + ["c"] * 10, dtype=object)


def count(labels: np.ndarray) -> list[int]:
    return [int((labels == name).sum()) for name in "abc"]


def test_holdout_keeps_the_shares() -> None:
    train, test = holdout(LABELS, 0.2, generator())
    assert count(LABELS[test]) == [12, 6, 2]
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(100))
    assert (np.diff(test) > 0).all()


def test_holdout_is_drawn_by_the_generator() -> None:
    again = holdout(LABELS, 0.2, generator())
    first = holdout(LABELS, 0.2, generator())
    other = holdout(LABELS, 0.2, np.random.default_rng(9))
    np.testing.assert_array_equal(first[1], again[1])
    assert (first[1] != other[1]).any()


@pytest.mark.parametrize("test_size", [0.01, 0.5, 0.99])
def test_holdout_leaves_every_class_in_training(test_size: float) -> None:
    labels = np.array([0] * 5 + [1] * 2 + [2])
    train, test = holdout(labels, test_size, generator())
    assert set(labels[train]) == {0, 1, 2}
    assert len(test) >= 1
    assert 7 not in test


def test_holdout_of_numbers() -> None:
    train, test = holdout(np.linspace(0, 1, 10), 0.25, generator(), is_classification=False)
    assert (len(train), len(test)) == (8, 2)


def test_holdout_keeps_groups_whole() -> None:
    groups = np.array([f"g{i // 5}" for i in range(100)])
    train, test = holdout(LABELS, 0.3, generator(), groups)
    assert not set(groups[train]) & set(groups[test])
    assert set(LABELS[train]) == {"a", "b", "c"}
    assert 20 <= len(test) <= 40


def test_d1_too_few_rows() -> None:
    with pytest.raises(DataError, match=r"found 1 row\(s\)"):
        holdout(np.array([1.0]), 0.5, generator(), is_classification=False)
    with pytest.raises(DataError, match="every class needs two rows"):
        folds(np.array([0, 1]), 2, generator())


def test_groups_that_cannot_be_split() -> None:
    with pytest.raises(DataError, match="every class needs two groups"):
        holdout(np.array([0, 0, 1, 1]), 0.5, generator(), np.array([1, 1, 2, 2]))
    with pytest.raises(UsageError, match="4 rows, but 2 entries"):
        holdout(np.array([0, 0, 1, 1]), 0.5, generator(), np.array([1, 2]))


def test_folds_partition_the_rows_and_keep_the_shares() -> None:
    found = folds(LABELS, 10, generator())
    assert found.note == ""
    tested = np.concatenate([test for _, test in found.pairs])
    np.testing.assert_array_equal(np.sort(tested), np.arange(100))
    for train, test in found.pairs:
        assert count(LABELS[test]) == [6, 3, 1]
        assert len(train) == 90
        assert not set(train) & set(test)


def test_fewer_folds_for_a_small_class() -> None:
    labels = np.array([0] * 20 + [1] * 3)
    found = folds(labels, 10, generator())
    assert len(found.pairs) == 3
    assert found.note == "3 folds instead of 10: the smallest class has 3 rows"
    assert all(set(labels[test]) == {0, 1} for _, test in found.pairs)


def test_fewer_folds_for_few_rows() -> None:
    found = folds(np.arange(4.0), 10, generator(), is_classification=False)
    assert len(found.pairs) == 4
    assert found.note == "4 folds instead of 10: there are 4 rows"


def test_the_only_row_of_a_class_is_never_tested() -> None:
    labels = np.array([0] * 20 + [1] * 20 + [2])
    found = folds(labels, 10, generator())
    assert len(found.pairs) == 10
    assert "1 of 41 rows is never tested" in found.note
    assert all(40 in train and 40 not in test for train, test in found.pairs)


@pytest.mark.parametrize("n_groups", [5, 12, 40])
def test_folds_keep_groups_whole(n_groups: int) -> None:
    groups = generator().integers(n_groups, size=100)
    found = folds(LABELS, 5, generator(), groups)
    for train, test in found.pairs:
        assert not set(groups[train]) & set(groups[test])
        assert set(LABELS[train]) == {"a", "b", "c"}
        assert len(test)
    tested = np.concatenate([test for _, test in found.pairs])
    np.testing.assert_array_equal(np.sort(tested), np.arange(100))


def test_folds_of_groups_are_balanced() -> None:
    groups = np.repeat(np.arange(20), 5)
    found = folds(np.arange(100.0), 5, generator(), groups, is_classification=False)
    assert [len(test) for _, test in found.pairs] == [20] * 5


def test_d13_number_of_folds() -> None:
    with pytest.raises(UsageError, match="at least 2, and is 1"):
        folds(LABELS, 1, generator())


# Forward in time.


def test_folds_go_forward_in_time() -> None:
    """Whatever the order of the rows; those of one time stay together."""
    times = np.random.default_rng(0).permutation(np.repeat(np.arange(40.0), 3))
    found = forward_folds(times, 5)
    assert len(found.pairs) == 5
    for train, test in found.pairs:
        assert times[train].max() < times[test].min()
        assert not set(times[train]) & set(times[test])
    tested = np.concatenate([test for _, test in found.pairs])
    assert len(set(tested)) == len(tested) == 120 - len(found.pairs[0][0])
    for (train, test), (later, _) in pairwise(found.pairs):
        assert set(later) == {*train, *test}
    assert found.note == f"the {len(found.pairs[0][0])} earliest of 120 rows are never tested"


@pytest.mark.parametrize("share", [0.25, 0.01])
def test_the_latest_rows_are_held_out(share: float) -> None:
    times = np.random.default_rng(0).permutation(np.repeat(np.arange(40.0), 3))
    train, test = latest(times, share)
    assert times[train].max() < times[test].min()
    assert len(test) == (30 if share == 0.25 else 3)
    assert len(train) + len(test) == 120


@pytest.mark.parametrize(
    ("split", "error", "words"),
    [
        (lambda: forward_folds(np.zeros(9), 3), DataError, "3 folds in time need 4 times; 1 found"),
        (lambda: forward_folds(np.arange(9.0), 1), UsageError, "at least 2, and is 1"),
        (lambda: latest(np.zeros(9), 0.25), DataError, "their times are the same"),
        (lambda: latest(np.arange(9.0), 1.5), UsageError, "between 0 and 1, and is 1.5"),
    ],
)
def test_what_has_no_order_in_time_is_refused(split: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        split()
