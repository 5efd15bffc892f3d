"""The list of labels that are probably wrong: its order, its length, the suggested labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mercer.data.row_names import RowNames
from mercer.errors import UsageError
from mercer.posterior.labels import audit_labels, audit_targets, longest_list

P = np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [1.0, 0.0]])
RECORDED = np.array(["a", "a", "b", "a"])
CLASSES = np.array(["a", "b"])


def test_two_classes_in_order_with_the_other_label_suggested() -> None:
    audit = audit_labels(P, RECORDED, CLASSES)
    assert audit.row.tolist() == [1, 2, 0, 3]  # positions
    assert audit.recorded.tolist() == ["a", "b", "a", "a"]
    assert audit.suggested.tolist() == ["b", "a", "b", "b"]
    np.testing.assert_array_equal(audit.p_wrong, [0.8, 0.3, 0.1, 0.0])
    np.testing.assert_array_equal(audit.p_suggested, audit.p_wrong)


def test_several_classes_have_the_best_of_the_others_suggested() -> None:
    p = np.array([[0.5, 0.3, 0.2], [0.25, 0.05, 0.7], [0.0, 0.0, 1.0]])
    audit = audit_labels(
        p,
        np.array([1, 0, 2]),
        np.arange(3),
        names=RowNames("file", np.array([7, 8, 9]), ("a.csv",), np.zeros(3, np.int64)),
    )
    assert audit.row.tolist() == [8, 7, 9]
    assert audit.suggested.tolist() == [2, 0, 0]
    np.testing.assert_allclose(audit.p_wrong, [0.75, 0.7, 0.0])
    np.testing.assert_allclose(audit.p_suggested, [0.7, 0.5, 0.0])
    assert audit.n_classes == 3


@pytest.mark.parametrize(
    ("fdr", "n_listed"), [(0.0, 1), (0.05, 2), (0.0999, 2), (0.1, 3), (0.4, 4), (1.0, 5)]
)
def test_the_list_is_the_longest_whose_expected_share_of_right_labels_is_allowed(
    fdr: float, n_listed: int
) -> None:
    p = np.array([1.0, 0.9, 0.8, 0.0, 0.0])
    mean = [1 - p[:k].mean() for k in range(1, 6)]
    assert longest_list(p, fdr) == n_listed
    assert mean[n_listed - 1] <= fdr + 1e-9
    assert n_listed == 5 or mean[n_listed] > fdr


def test_the_expected_rate_is_that_of_the_list() -> None:
    assert audit_labels(P, RECORDED, CLASSES, fdr=0.5).expected_fdr == pytest.approx(0.45)
    empty = audit_labels(P, RECORDED, CLASSES, fdr=0.1)
    assert (empty.n_listed, empty.expected_fdr) == (0, 0.0)
    assert empty.wider() == (0.2, 1)
    assert audit_labels(P, RECORDED, CLASSES, fdr=1.0).wider() is None


@pytest.mark.parametrize(
    ("n", "n_suspicious", "shown"), [(40, 3, 5), (40, 9, 9), (40, 30, 15), (2, 0, 2)]
)
def test_a_table_shows_what_is_suspicious(n: int, n_suspicious: int, shown: int) -> None:
    p = np.where(np.arange(n) < n_suspicious, 0.5, 0.0)
    audit = audit_labels(np.column_stack([1 - p, p]), np.zeros(n, int), np.arange(2))
    assert audit.n_shown(15) == shown


@pytest.mark.parametrize("fdr", [-0.1, 1.5, float("nan")])
def test_a_rate_out_of_range_is_refused(fdr: float) -> None:
    with pytest.raises(UsageError, match="fdr must be in"):
        audit_labels(P, RECORDED, CLASSES, fdr=fdr)


def test_few_draws_call_for_caution() -> None:
    few = audit_labels(P, RECORDED, CLASSES, n_draws=8).caution()
    assert few.startswith("P(wrong) is a share of 8 draws, and known to 0.18 at best")
    enough = audit_labels(P, RECORDED, CLASSES, n_draws=50).caution()
    assert enough == audit_labels(P, RECORDED, CLASSES).caution()


def test_many_wrong_labels_call_for_caution() -> None:
    few = np.column_stack([np.full(50, 0.9), np.full(50, 0.1)])
    assert audit_labels(few, np.full(50, "a"), CLASSES).caution() == ""
    many = audit_labels(P, RECORDED, CLASSES).caution()
    assert many.startswith("30 % of the labels wrong are more than records usually have")
    assert "noise_rate=0.05" in many


@pytest.mark.parametrize(
    ("n_wrong", "n_above", "lowest", "words"),
    [
        (8, 8, 1.0, ""),  # too few to have a side
        (12, 6, 1.0, ""),
        (40, 20, 1.0, "40 % of the values wrong are more than records usually have"),
        (12, 12, 1.0, "100 % of what looks wrong lies above"),
        (12, 12, -1.0, "100 % of what looks wrong lies above"),
        (40, 6, 1.0, "85 % of what looks wrong lies below"),
    ],
)
def test_errors_on_one_side_and_many_errors_call_for_caution(
    n_wrong: int, n_above: int, lowest: float, words: str
) -> None:
    i = np.arange(100)
    p = np.where(i < n_wrong, 1.0, 0.0)
    recorded = np.where(i < n_above, 9.0, 2.0)
    recorded[-1] = lowest
    audit = audit_targets(p, recorded, np.full(100, 5.0), np.ones(100))
    assert audit.caution().startswith(words)
    assert bool(audit.caution()) == bool(words)
    wants_logarithms = n_wrong == n_above == 12 and lowest > 0.0
    assert ("logarithms" in audit.caution()) == wants_logarithms
    of_them = replace(audit, is_of_logarithms=True)
    assert "logarithms" not in of_them.caution()
    assert bool(of_them.caution()) == bool(words)
