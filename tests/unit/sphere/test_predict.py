"""Probabilities, votes and entropies from means and spreads of latent values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from mercer.likelihoods.label_noise import confusion_of_rates
from mercer.posterior.labels import entropy_bits
from mercer.sphere.prediction import (
    class_probability,
    finite_log_score,
    recorded_probability,
    votes,
)

RNG = np.random.default_rng(1)


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Every test draws the same, whatever ran before it."""
    RNG.bit_generator.state = np.random.default_rng(2).bit_generator.state


def test_two_classes() -> None:
    means, spread = RNG.standard_normal((6, 4)), np.array([0.5, 0.0, 2.0, 1e-9])
    v = class_probability(means, spread)
    assert v.shape == (6, 2, 4)
    np.testing.assert_allclose(v.sum(axis=1), 1.0)
    np.testing.assert_allclose(v[:, 1, [0, 2]], ndtr(means[:, [0, 2]] / spread[[0, 2]]))
    np.testing.assert_array_equal(v[:, 1, [1, 3]], means[:, [1, 3]] > 0.0)
    np.testing.assert_array_equal(class_probability(np.zeros((1, 1)), np.zeros(1)), 0.5)


def test_a_row_does_not_depend_on_the_others() -> None:
    """Not even on one that lies a million times as far out."""
    means, spread = RNG.standard_normal((5, 3)), np.array([0.3, 0.4, 0.5])
    far = np.column_stack([means, 1e12 * RNG.standard_normal(5)])
    v = class_probability(far, np.append(spread, 1.0))
    np.testing.assert_array_equal(v[..., :3], class_probability(means, spread))
    means = RNG.standard_normal((5, 4, 3))
    far = np.concatenate([means, 1e12 * RNG.standard_normal((5, 4, 1))], axis=2)
    v = class_probability(far, np.append(spread, 1.0))
    np.testing.assert_array_equal(v[..., :3], class_probability(means, spread))


def test_several_classes() -> None:
    """Against simulation, 0.01; without spread the largest wins, ties share."""
    means, spread = RNG.standard_normal((3, 4, 2)), np.array([0.7, 0.0])
    v = class_probability(means, spread)
    np.testing.assert_allclose(v.sum(axis=1), 1.0)
    f = means[..., 0] + 0.7 * RNG.standard_normal((100_000, 3, 4))
    for c in range(4):
        seen = (f.argmax(axis=2) == c).mean(axis=0)
        np.testing.assert_allclose(v[:, c, 0], seen, atol=0.01)
    np.testing.assert_array_equal(v[..., 1], means[..., 1] == means[..., 1].max(axis=1)[:, None])
    tie = class_probability(np.array([[[1.0], [1.0], [0.0]]]), np.zeros(1))
    np.testing.assert_array_equal(tie[0, :, 0], [0.5, 0.5, 0.0])


def test_two_of_several_classes_are_two_classes() -> None:
    """Of two independent functions the difference has twice the variance."""
    means = RNG.standard_normal((5, 2, 3))
    spread = np.array([0.2, 1.0, 5.0])
    two = class_probability(means[:, 1] - means[:, 0], np.sqrt(2.0) * spread)
    np.testing.assert_allclose(class_probability(means, spread), two, atol=1e-12)


def test_the_largest_of_ten() -> None:
    """Against quadrature, class by class."""
    z = 2.0 * RNG.standard_normal(10)
    v = class_probability(z[np.newaxis, :, np.newaxis], np.ones(1))[0, :, 0]
    for c in range(10):
        others = np.delete(z, c)
        wanted = quad(lambda x: norm.pdf(x - z[c]) * ndtr(x - others).prod(), -9.0, 14.0)[0]  # noqa: B023
        assert v[c] == pytest.approx(wanted, abs=1e-8)


def test_recorded_probability_of_one_rate() -> None:
    v = RNG.dirichlet(np.ones(3), (4, 5)).transpose(0, 2, 1)
    rates = RNG.uniform(0.0, 0.6, (4, 1))
    p = recorded_probability(v, rates)
    q = rates[:, :, np.newaxis]
    np.testing.assert_allclose(p, (1.0 - q) * v + 0.5 * q * (1.0 - v))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    same = recorded_probability(v, np.repeat(rates, 3, axis=1))
    np.testing.assert_allclose(same, p)


def test_recorded_probability_of_rates_by_class() -> None:
    """Of true classes: a first is recorded as a second at a rate of .2, a second never wrong."""
    v = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    p = recorded_probability(v, np.array([[0.2, 0.0]]))
    np.testing.assert_allclose(p[0, :, 0], [0.8, 0.2])
    np.testing.assert_allclose(p[0, :, 1], [0.0, 1.0])


def test_recorded_probability_of_a_matrix() -> None:
    """Rates by class are the matrix whose wrong labels are all other classes alike."""
    v = RNG.dirichlet(np.ones(3), (4, 5)).transpose(0, 2, 1)
    rates = RNG.uniform(0.0, 0.6, (4, 3))
    matrices = np.stack([confusion_of_rates(row) for row in rates])
    p = recorded_probability(v, matrices)
    np.testing.assert_allclose(p, recorded_probability(v, rates))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    one = recorded_probability(np.array([[[0.0], [1.0], [0.0]]]), matrices[:1])
    np.testing.assert_allclose(one[0, :, 0], matrices[0, 1])


def test_finite_log_score() -> None:
    v = np.array([[[1.0, 1.0, 0.3], [0.0, 0.0, 0.7]], [[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]]])
    p = v.mean(axis=0)
    kept = finite_log_score(p, v, has_noise=False)
    np.testing.assert_allclose(kept[:, 0], [2.5 / 3.0, 0.5 / 3.0])  # two votes of two
    np.testing.assert_allclose(kept[:, 1], [0.5, 0.5])
    np.testing.assert_array_equal(kept[:, 2], p[:, 2])
    noisy = finite_log_score(p, v, has_noise=True)
    np.testing.assert_array_equal(noisy[:, 1:], p[:, 1:])
    np.testing.assert_allclose(noisy[:, 0], [1.0, 0.0], atol=1e-11)
    assert np.isfinite(np.log(noisy)).all()
    np.testing.assert_allclose(noisy.sum(axis=0), 1.0)


def test_votes() -> None:
    two = votes(np.array([[1.0, -1.0], [2.0, 0.0], [-1.0, -3.0]]))
    np.testing.assert_array_equal(two, [[1, 2], [3, 0]])
    means = RNG.standard_normal((50, 3, 4))
    several = votes(means)
    assert several.shape == (4, 3)
    np.testing.assert_array_equal(several.sum(axis=1), 50)
    np.testing.assert_array_equal(several[:, 2], (means.argmax(axis=1) == 2).sum(axis=0))


def test_entropy_bits() -> None:
    p = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [1.0 / 3.0] * 3])
    np.testing.assert_allclose(entropy_bits(p), [1.0, 0.0, np.log2(3.0)], atol=1e-15)


@pytest.mark.parametrize("scale", [1e-300, 1e-8, 1.0, 1e8, 1e300])
def test_no_value_is_not_finite(scale: float) -> None:
    means = scale * norm.rvs(size=(4, 3, 6), random_state=RNG)
    for spread in (np.zeros(6), np.full(6, scale), np.full(6, 1.0)):
        for m in (means, means[:, 0]):
            v = class_probability(m, spread)
            assert np.isfinite(v).all()
            assert ((v >= 0.0) & (v <= 1.0)).all()
