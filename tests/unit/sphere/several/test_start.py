from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from mercer.errors import DataError
from mercer.likelihoods.label_noise import Confusion, fixed_rate, row_rates
from mercer.sphere import several as start
from mercer.sphere.several import (
    PriorStart,
    SeparatingStart,
    SeveralModel,
    make_several_start,
    separating_functions,
)
from support.several_cases import make_model, separable
from support.statistics import dkw_distance, dkw_limit


def test_with_noise_everywhere_a_start_is_a_draw_from_the_prior() -> None:
    begin = make_several_start(make_model(20, 3, 4))
    assert begin == PriorStart(4, 3)
    expected = np.random.default_rng(1).standard_normal((4, 3))
    np.testing.assert_array_equal(begin(np.random.default_rng(1)), expected)


@pytest.mark.parametrize(("n", "r"), [(3, 6), (40, 5), (150, 3)])
def test_without_noise_no_row_of_the_start_is_wrong(n: int, r: int) -> None:
    model = separable(make_model(n, r, 4))
    begin = make_several_start(model)
    assert isinstance(begin, SeparatingStart)
    g = begin(np.random.default_rng(1))
    assert g.shape == (4, r)
    assert not model.is_wrong(g @ model.L.T).any()


def test_the_length_is_that_of_the_prior() -> None:
    """False alarm 1e-6; one degree of freedom less would be seen."""
    begin, rng = SeparatingStart(np.full((3, 4), 7.0)), np.random.default_rng(2)
    squared = np.array([np.sum(begin(rng) ** 2) for _ in range(4000)])
    assert dkw_distance(squared, chi2(12).cdf) < dkw_limit(4000, 1)
    assert dkw_distance(squared, chi2(11).cdf) > 1.5 * dkw_limit(4000, 1)


@pytest.mark.parametrize("work", [0.0, 2e8], ids=["linear program", "perceptron"])
def test_each_way_to_separate(work: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Narrow cones, so that least squares fail: the seed is one where they do."""
    monkeypatch.setattr(start, "_PERCEPTRON_WORK", work)
    model = separable(make_model(150, 3, 4))
    targets = (model.labels[:, None] == np.arange(4)).astype(float)
    unit = model.L / np.linalg.norm(model.L, axis=1, keepdims=True)
    by_least_squares = np.linalg.lstsq(unit, targets, rcond=None)[0].T
    assert model.is_wrong(by_least_squares @ model.L.T).any()
    g = separating_functions(model.L, model.labels, 4, np.arange(150))
    assert not model.is_wrong(g @ model.L.T).any()


def test_only_rows_that_must_be_right_are_asked_for() -> None:
    model = make_model(30, 2, 3)
    free = separable(model)
    rates = np.where(model.labels == free.labels, 0.0, 0.2)
    mixed = SeveralModel(model.L, model.labels, row_rates(rates, 3))
    g = make_several_start(mixed)(np.random.default_rng(1))
    is_wrong = mixed.is_wrong(g @ model.L.T)
    assert not is_wrong[rates == 0.0].any()
    by_class = SeveralModel(
        model.L, free.labels, Confusion(free.labels, np.eye(3) * 0.8 + np.array([[0, 0.1, 0.1],
                                        [0.2, 0, 0], [0.2, 0, 0]]))
    )  # fmt: skip
    g = make_several_start(by_class)(np.random.default_rng(1))
    assert not by_class.is_wrong(g @ model.L.T)[free.labels != 0].any()


def test_where_no_classifier_separates_one_class_may_explain_all() -> None:
    """Class 0 may be recorded as any other, so that all rows may be of it."""
    L = np.array([[1.0], [2.0], [3.0], [1.0]])
    matrix = np.array([[0.6, 0.2, 0.2], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    labels = np.array([0, 1, 0, 2])
    model = SeveralModel(L, labels, Confusion(labels, matrix))
    g = make_several_start(model)(np.random.default_rng(1))
    np.testing.assert_array_equal((g @ L.T).argmax(axis=0), 0)
    with pytest.raises(DataError, match="equal inputs and different labels"):
        make_several_start(SeveralModel(L, labels, Confusion(labels, np.eye(3))))


def test_two_equal_rows_with_different_labels_are_named() -> None:
    model = separable(make_model(30, 4, 3))
    L, labels = model.L.copy(), model.labels.copy()
    L[21] = L[4]
    labels[4], labels[21] = 0, 2
    with pytest.raises(
        DataError, match=r"rows 4 and 21 of X .* have equal inputs and different labels"
    ):
        make_several_start(SeveralModel(L, labels, fixed_rate(0.0, 30, 3)))
    # Positions are those in the data, not among the rows that must be right.
    rates = np.where(np.arange(30) < 3, 0.2, 0.0)
    with pytest.raises(DataError, match=r"rows 4 and 21 .*use noise_rate > 0"):
        make_several_start(SeveralModel(L, labels, row_rates(rates, 3)))


def test_classes_that_cannot_be_separated() -> None:
    L = np.array([[1.0], [2.0], [3.0], [-1.0]])
    model = SeveralModel(L, np.array([0, 1, 0, 2]), fixed_rate(0.0, 4, 3))
    with pytest.raises(DataError, match="no classifier separates the classes"):
        make_several_start(model)


def test_a_row_of_zeros_cannot_be_right() -> None:
    model = SeveralModel(np.array([[0.0], [1.0]]), np.array([0, 1]), fixed_rate(0.0, 2, 2))
    with pytest.raises(DataError, match="no classifier separates"):
        make_several_start(model)
