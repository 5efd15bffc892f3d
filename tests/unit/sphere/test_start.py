"""Where chains start: anywhere, or right where a row must be."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import DataError
from mercer.likelihoods.label_noise import class_rates, fixed_rate, learned_rate, row_rates
from mercer.sphere.sampler import (
    PriorStart,
    SeparatingStart,
    SphereModel,
    make_start,
    separating_point,
)
from mercer.sphere.space import spectrum_of

RNG = np.random.default_rng(1)


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Every test draws the same, whatever ran before it."""
    RNG.bit_generator.state = np.random.default_rng(2).bit_generator.state


def separable(n: int, r: int) -> np.ndarray:
    """Rows that are right for one classifier, of very different lengths."""
    L, u = RNG.standard_normal((n, r)), RNG.standard_normal(r)
    return L * np.sign(L @ u)[:, np.newaxis] * 10.0 ** RNG.uniform(-3.0, 3.0, (n, 1))


def test_a_draw_from_the_prior_where_every_label_may_be_wrong() -> None:
    model = SphereModel(separable(5, 3), learned_rate((1.0, 1.0), 5))
    start = make_start(model)
    assert start == PriorStart((3,))
    draws = np.array([start(np.random.default_rng(s)) for s in range(2000)])
    np.testing.assert_allclose(draws.mean(axis=0), 0.0, atol=0.12)
    np.testing.assert_allclose(np.cov(draws.T), np.eye(3), atol=0.2)


@pytest.mark.parametrize(("n", "r"), [(3, 3), (20, 30), (40, 3), (200, 10)])
def test_separating(n: int, r: int) -> None:
    """By least squares where n <= r, else by a linear program; the length is the prior's."""
    L = separable(n, r)
    start = make_start(SphereModel(L, fixed_rate(0.0, n)))
    assert isinstance(start, SeparatingStart)
    assert np.linalg.norm(start.g) == pytest.approx(1.0)
    g = np.array([start(np.random.default_rng(s)) for s in range(200)])
    assert (g @ L.T > 0.0).all()
    assert (g**2).sum(axis=1).mean() == pytest.approx(r, rel=0.4)


def test_only_rows_that_must_be_right_count() -> None:
    L = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    by_row = make_start(SphereModel(L, row_rates(np.array([0.0, 0.2, 0.0]))))
    assert isinstance(by_row, SeparatingStart)
    assert (L[[0, 2]] @ by_row.g > 0.0).all()
    labels = np.array([1, 0, 1])
    by_class = make_start(SphereModel(L, class_rates(np.array([0.0, 0.3]), labels)))
    assert (L[[0, 2]] @ by_class.g > 0.0).all()


def test_conflicting_rows_are_named() -> None:
    """Positions are those of the data, not among the rows that must be right."""
    L = separable(12, 4)
    L[9] = -3.0 * L[5]
    L[2] = L[9]
    with pytest.raises(
        DataError, match=r"rows (2|5) and (5|9) of X .* contradict each other.*noise_rate > 0"
    ):
        make_start(SphereModel(L, fixed_rate(0.0, 12)))
    rates = np.full(12, 0.1)
    rates[[5, 9]] = 0.0
    with pytest.raises(DataError, match=r"rows 5 and 9 of X .* contradict"):
        make_start(SphereModel(L, row_rates(rates)))


def test_equal_inputs_with_different_labels_are_not_separated_by_rounding() -> None:
    """Rows of a Gram matrix are equal up to rounding only, and span a cone of its width."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((20, 2)), np.where(rng.random(20) < 0.5, 1.0, -1.0)
        X[7], y[7] = X[3], -y[3]
        G = np.exp(-0.5 * ((X[:, np.newaxis] - X) ** 2).sum(axis=-1))
        L = spectrum_of(G).design().L * y[:, np.newaxis]
        with pytest.raises(DataError, match=r"rows 3 and 7 of X .* contradict"):
            separating_point(L, np.arange(20))


def test_rows_that_are_nearly_equal_are_separated() -> None:
    X = np.array([[0.0, 0.0], [1e-3, 0.0], [1.0, 0.4], [-0.7, 0.8]])
    G = np.exp(-0.5 * ((X[:, np.newaxis] - X) ** 2).sum(axis=-1))
    L = spectrum_of(G).design().L * np.array([1.0, -1.0, 1.0, -1.0])[:, np.newaxis]
    assert (L @ separating_point(L, np.arange(4)) > 0.0).all()


def test_inseparable_rows_and_rows_that_are_zero() -> None:
    square = np.array([[1.0, 1.0], [1.0, -1.0], [-2.0, 0.5], [-1.0, -0.2]])
    with pytest.raises(DataError, match=r"no classifier separates the classes: .*noise_rate"):
        separating_point(square, np.arange(4))
    with pytest.raises(DataError, match=r"row 8 of X .* is zero .*noise_rate"):
        separating_point(np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]), np.array([5, 8, 9]))
