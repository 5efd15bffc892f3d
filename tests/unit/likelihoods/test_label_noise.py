"""The likelihood of labels that are wrong at some rate."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betainc, betaln

from mercer.likelihoods.label_noise import (
    IMPOSSIBLE,
    class_rates,
    fixed_rate,
    learned_class_rates,
    learned_rate,
    log_incomplete_beta,
    row_rates,
)
from support.sphere_cases import RateGrid, noises, patterns

LABELS = np.array([0, 1, 1, 2, 0, 2, 2])


def log_likelihood(is_wrong: np.ndarray, rates: np.ndarray, n_classes: int) -> np.ndarray:
    """Row by row: q/(C - 1) if wrong, 1 - q if right."""
    wrong, right = np.log(rates / (n_classes - 1)), np.log1p(-rates)
    return np.where(is_wrong, wrong, right).sum(axis=-1)


def test_known_rates_row_by_row() -> None:
    is_wrong, n = patterns(7), 7
    of_rows = np.linspace(0.05, 0.6, n)
    for noise, row in (
        (fixed_rate(0.2, n, 3), np.full(n, 0.2)),
        (row_rates(of_rows, 3), of_rows),
    ):
        expected = log_likelihood(is_wrong, row, 3)
        np.testing.assert_allclose(noise.log_no_errors - noise.cost(is_wrong), expected)
        np.testing.assert_allclose(noise.cost(is_wrong[5]), noise.cost(is_wrong)[5])


def test_two_classes_differ_from_three() -> None:
    """A wrong row has two other classes to choose from: log 2 more an error."""
    extra = fixed_rate(0.2, 4, 3).step - fixed_rate(0.2, 4, 2).step
    np.testing.assert_allclose(extra, np.log(2.0))


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_no_information_at_the_largest_rate(n_classes: int) -> None:
    noise = fixed_rate((n_classes - 1) / n_classes, 5, n_classes)
    np.testing.assert_allclose(noise.cost(patterns(5)), 0.0, atol=1e-12)
    assert noise.log_no_errors == pytest.approx(-5.0 * np.log(n_classes))
    # Rates above it are no use: an error costs nothing, and never less.
    assert fixed_rate(0.95, 5, n_classes).step.min() == 0.0


def test_rate_zero_makes_errors_impossible() -> None:
    noise = row_rates(np.array([0.0, 0.2, 0.0]))
    np.testing.assert_array_equal(noise.row_cost == IMPOSSIBLE, [True, False, True])
    assert np.exp(-noise.cost(np.array([True, False, False]))) == 0.0
    assert fixed_rate(0.0, 3).log_no_errors == 0.0


def test_common_rates() -> None:
    of_kind = {kind: noise.is_common for kind, noise in noises(6).items()}
    assert of_kind == {
        "fixed": True,
        "per class": False,
        "per row": False,
        "learned": True,
        "learned per class": False,
    }


def test_errors_by_group() -> None:
    noise = learned_class_rates((1.0, 1.0), np.array([0, 1, 1, 1, 0, 1, 1]))
    is_wrong = np.array([[True, True, False, True, True, False, True], [False] * 7])
    np.testing.assert_array_equal(noise.errors_by_group(is_wrong), [[2, 3], [0, 0]])
    np.testing.assert_array_equal(noise.sizes, [2, 5])
    assert fixed_rate(0.1, 7).errors_by_group(is_wrong[0]).shape == (1,)


def test_one_row_tells_nothing_of_how_rates_differ() -> None:
    """It is of one true class, whose rate has the prior of a common one."""
    for labels in ([0], [1]):
        one, two = learned_rate((1.0, 2.0), 1), learned_class_rates((1.0, 2.0), np.array(labels))
        assert two.cost(patterns(1)) == pytest.approx(one.cost(patterns(1)))
        assert two.log_no_errors == pytest.approx(one.log_no_errors)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("n", [1, 50, 100_000])
@pytest.mark.parametrize("prior", [(1.0, 1.0), (1.0, 9.0), (0.5, 0.5), (20.0, 2.0)])
def test_learned_costs_are_positive_and_fall(prior: tuple[float, float], n: int) -> None:
    """The more errors there are, the larger the rate, the less one more costs."""
    for n_classes in (2, 5):
        step = learned_rate(prior, n, n_classes).step[0]
        assert (step[:-1] > 0.0).all()
        assert step[-1] == 0.0
        assert (np.diff(step) <= 0.0).all()


def test_known_rates_are_given_back() -> None:
    rng = np.random.default_rng(1)
    errors = np.array([[2], [3]])
    np.testing.assert_array_equal(fixed_rate(0.2, 9).expected_rates(errors), [[0.2], [0.2]])
    np.testing.assert_array_equal(fixed_rate(0.2, 9).draw_rates(rng, errors), [[0.2], [0.2]])
    per_class = class_rates(np.array([0.1, 0.3]), np.array([0, 1, 1]))
    np.testing.assert_array_equal(per_class.expected_rates(np.array([1])), [0.1, 0.3])
    np.testing.assert_array_equal(per_class.draw_rates(rng, errors), [[0.1, 0.3], [0.1, 0.3]])
    per_row = row_rates(np.array([0.0, 0.1, 0.2]))
    np.testing.assert_allclose(per_row.expected_rates(np.array([1])), [0.1])


def test_draws_leave_nothing_to_a_global_generator() -> None:
    noise, errors = learned_rate((1.0, 3.0), 40), np.array([[5], [6]])
    first = noise.draw_rates(np.random.default_rng(8), errors)
    np.testing.assert_array_equal(first, noise.draw_rates(np.random.default_rng(8), errors))
    assert first.shape == (2, 1)
    assert len(np.unique(first)) == 2


def test_incomplete_beta_where_scipy_has_it() -> None:
    a, b = np.array([0.5, 1.0, 3.0, 40.0]), np.array([2.0, 1.0, 7.5, 60.0])
    for x in (0.01, 0.5, 0.99, 1.0):
        expected = np.log(betainc(a, b, x)) + betaln(a, b)
        np.testing.assert_allclose(log_incomplete_beta(a, b, x), expected)


@pytest.mark.parametrize(("e", "n"), [(990, 1000), (1000, 1000), (3000, 3001), (49_990, 50_000)])
def test_incomplete_beta_far_in_the_tail(e: int, n: int) -> None:
    """Where the mass below 1/2 underflows: against the trapezoid rule in logarithms."""
    grid = RateGrid.of((1.0, 1.0))
    assert betainc(1.0 + e, 1.0 + n - e, 0.5) < 1e-250
    value = log_incomplete_beta(np.array([1.0 + e]), np.array([1.0 + n - e]), 0.5)[0]
    assert value - np.log(0.5) == pytest.approx(grid.log_weight(e, n), rel=1e-8)


def test_incomplete_beta_goes_on_smoothly_at_the_switch() -> None:
    """The two forms meet at a share of 1e-250: second differences show no step."""
    a = np.linspace(800.0, 900.0, 401)
    b = np.full_like(a, 3.0)
    is_tail = betainc(a, b, 0.5) < 1e-250
    assert is_tail.any()
    assert not is_tail.all()
    assert np.abs(np.diff(log_incomplete_beta(a, b, 0.5), 2)).max() < 1e-5


def test_the_tail_is_caught_without_its_series(monkeypatch: pytest.MonkeyPatch) -> None:
    from mercer.likelihoods import label_noise

    monkeypatch.setattr(label_noise, "_tail_series", lambda a, b, x: np.ones_like(x))
    value = log_incomplete_beta(np.array([991.0]), np.array([11.0]), 0.5)[0]
    expected = RateGrid.of((1.0, 1.0)).log_weight(990, 1000) + np.log(0.5)
    assert value != pytest.approx(expected, rel=1e-8)
