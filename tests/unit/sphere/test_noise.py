"""From the argument ``noise_rate`` to costs. Refusals: ``tests/contracts``."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from mercer import KernelGibbsClassifier
from mercer.errors import UsageError
from mercer.likelihoods.label_noise import (
    IMPOSSIBLE,
    class_rates,
    fixed_rate,
    learned_class_rates,
    learned_rate,
    row_rates,
)
from mercer.sphere.estimator import NoiseArgument, check_noise

LABELS, CLASSES = np.array([0, 1, 1, 0, 1]), np.array(["no", "yes"])
THREE, NAMES = np.array([0, 1, 2, 0, 1]), np.array([3, 5, 9])


def same(one, two) -> bool:
    return (
        np.array_equal(one.group, two.group)
        and np.array_equal(one.step, two.step)
        and np.array_equal(one.row_cost, two.row_cost)
        and one.log_no_errors == two.log_no_errors
        and one.n_classes == two.n_classes
    )


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        ("learn", learned_rate((1.0, 3.0), 5)),
        ("learn per class", learned_class_rates((1.0, 3.0), LABELS)),
        (0.2, fixed_rate(0.2, 5)),
        (np.float32(0.25), fixed_rate(0.25, 5)),
        (np.array(0.2), fixed_rate(0.2, 5)),
        (0, fixed_rate(0.0, 5)),
        ({"yes": 0.3, "no": 0.1}, class_rates(np.array([0.1, 0.3]), LABELS)),
        ([0.0, 0.1, 0.2, 0.3, 0.5], row_rates(np.array([0.0, 0.1, 0.2, 0.3, 0.5]))),
    ],
)
def test_costs_of_two_classes(rate, expected) -> None:
    assert same(check_noise(rate, (1, 3)).costs(LABELS, CLASSES), expected)


def test_costs_of_three_classes() -> None:
    """Rates up to 2/3; labels of any type."""
    assert same(check_noise(0.6, (1, 1)).costs(THREE, NAMES), fixed_rate(0.6, 5, 3))
    rates = check_noise({np.int64(9): 0.6, 3: 0.1, 5: 0.0}, (1, 1)).costs(THREE, NAMES)
    np.testing.assert_allclose(rates.matrix, [[0.9, 0.05, 0.05], [0, 1, 0], [0.3, 0.3, 0.4]])
    assert rates.prior is None
    of_classes = check_noise("learn per class", (2.0, 5.0)).costs(THREE, NAMES)
    np.testing.assert_array_equal(of_classes.prior, [[5, 1, 1], [1, 5, 1], [1, 1, 5]])
    learned = check_noise("learn", (2.0, 5.0)).costs(THREE, NAMES)
    assert same(learned, learned_rate((2.0, 5.0), 5, 3))
    with pytest.raises(UsageError, match=r"in \[0, 0\.6667\]; got 0\.7"):
        check_noise(0.7, (1, 1)).costs(THREE, NAMES)
    with pytest.raises(UsageError, match=r"in \[0, 0\.5\]; got 0\.6"):
        check_noise(0.6, (1, 1)).costs(LABELS, CLASSES)


def test_a_matrix_of_classes() -> None:
    """Rows are true classes; of two classes its rates are what a dict has."""
    matrix = [[0.9, 0.1], [0.3, 0.7]]
    two = check_noise(matrix, (1, 1)).costs(LABELS, CLASSES)
    np.testing.assert_allclose(
        two.row_cost, class_rates(np.array([0.1, 0.3]), LABELS).row_cost, rtol=1e-12
    )
    matrix = [[0.5, 0.3, 0.2], [0.0, 1.0, 0.0], [0.2, 0.2, 0.6]]
    np.testing.assert_array_equal(check_noise(matrix, (1, 1)).costs(THREE, NAMES).matrix, matrix)
    for wrong in ([[0.9, 0.2], [0.3, 0.7]], [[0.4, 0.6], [0.3, 0.7]], [[1.0, 0.0], [0.5, 0.6]]):
        with pytest.raises(UsageError, match="rows that sum to 1, the diagonal the largest"):
            check_noise(wrong, (1, 1)).costs(LABELS, CLASSES)
    with pytest.raises(UsageError, match=r"each of the 3 classes; got shape \(2, 2\)"):
        check_noise([[0.9, 0.1], [0.3, 0.7]], (1, 1)).costs(THREE, NAMES)


def compared_under(rate, prior=(1, 1), labels=LABELS, classes=CLASSES, rows=None):
    noise = check_noise(rate, prior)
    rows = np.arange(len(labels)) if rows is None else rows
    return noise.for_comparison(noise.costs(labels, classes))(rows)


def test_models_are_compared_under_the_rates_that_were_given() -> None:
    """Several classes, each beside the others, under one rate of two."""
    n, rows = len(LABELS), np.array([0, 2])
    for rate in (0.2, np.array(0.2)):
        assert same(compared_under(rate), fixed_rate(0.2, n))
    assert same(compared_under(0.6, (1, 1), THREE, NAMES), fixed_rate(0.5, len(THREE)))
    for rate in ("learn", "learn per class"):
        assert same(compared_under(rate, (1, 4)), learned_rate((1.0, 4.0), n))
    by_row = np.full(len(THREE), 0.1)
    assert same(compared_under(by_row, (1, 4), THREE, NAMES), learned_rate((1.0, 4.0), len(THREE)))
    for rate in (dict(zip(CLASSES.tolist(), (0.1, 0.3), strict=True)), np.linspace(0.1, 0.4, n)):
        assert same(compared_under(rate), check_noise(rate, (1, 1)).costs(LABELS, CLASSES))
        whole, some = compared_under(rate), compared_under(rate, rows=rows)
        np.testing.assert_array_equal(some.row_cost, whole.row_cost[rows])


def test_certain_labels_are_compared_as_all_but_certain() -> None:
    """A run may see no classifier without an error, and then says nothing of rate 0."""
    assert 5.0 < compared_under(0.0).step[0, 0] < 20.0
    assert compared_under(np.zeros(len(LABELS))).row_cost.max() < 20.0
    assert check_noise(0.0, (1, 1)).costs(LABELS, CLASSES).step[0, 0] == IMPOSSIBLE


def test_the_argument_is_kept() -> None:
    rate = {"yes": 0.3}
    assert check_noise(rate, [1, 2]) == NoiseArgument(rate, (1.0, 2.0))
    with pytest.raises(UsageError, match=r"names the classes \['yes'\], the target has"):
        check_noise(rate, (1, 2)).costs(LABELS, CLASSES)


def test_rates_by_class_of_many_rows_are_refused_before_anything_is_made_of_them() -> None:
    """A table of all pairs of counts of errors would take 72 MB here, and 20 GB of 10^5 rows."""
    X = np.random.default_rng(0).standard_normal((6000, 1))
    model = KernelGibbsClassifier(noise_rate="learn per class", kernel="linear")
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match="above 5000 rows noise_rate must be one number"):
            model.fit(X, np.arange(6000) % 2)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
