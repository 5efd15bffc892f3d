"""What the draws of several models say together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from mercer.features.maps import draw_fourier
from mercer.kernels.names import kernel_named
from mercer.posterior.labels import entropy_bits
from mercer.sphere import prediction as module
from mercer.sphere.prediction import (
    PosteriorSample,
    class_probability,
    recorded_probability,
)
from mercer.sphere.selection import Candidate
from mercer.sphere.space import FeatureSpace, FiniteFeatures, KernelSpace, fit_covariance

RNG = np.random.default_rng(1)
X, Z = RNG.standard_normal((8, 2)), RNG.standard_normal((5, 2))
RBF = kernel_named("rbf")


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Every test draws the same, whatever ran before it."""
    RNG.bit_generator.state = np.random.default_rng(2).bit_generator.state


def kernel_model(lengthscale: float, nugget: float) -> Candidate:
    space = KernelSpace(fit_covariance(RBF, lengthscale, X, 1.0), X, nugget)
    return Candidate("rbf", lengthscale, nugget, space)


def cloud_of(
    models: tuple[Candidate, ...], shape=(), count: int = 12, rate: float = 0.1
) -> PosteriorSample:
    """Draws from the prior, of the models in turn; ``shape`` (C,) for several classes."""
    model = np.arange(count) % len(models)
    designs = [one.space.design() for one in models]
    g = [RNG.standard_normal((*shape, designs[j].L.shape[1])) for j in model]
    coefficients = [
        models[j].space.coefficients(designs[j], each) for j, each in zip(model, g, strict=True)
    ]
    width = max(each.shape[-1] for each in coefficients)
    filled = [np.pad(c, [(0, 0)] * len(shape) + [(0, width - c.shape[-1])]) for c in coefficients]
    length = np.array([np.linalg.norm(each) for each in g])
    return PosteriorSample(models, model, np.array(filled), length, np.full((count, 1), rate))


TWO = (kernel_model(1.0, 0.0), kernel_model(0.5, 0.4))


@pytest.mark.parametrize("shape", [(), (3,)])
def test_latent_values_draw_by_draw(shape) -> None:
    cloud = cloud_of(TWO, shape)
    assert cloud.n_classes == (3 if shape else 2)
    means, spreads = cloud.latent(Z)
    assert means.shape == (12, *shape, 5)
    assert spreads.shape == (2, 5)
    for k in range(12):
        space = TWO[k % 2].space
        alpha = np.atleast_2d(cloud.coefficients[k])
        mean, spread = space.latent(Z, alpha)
        np.testing.assert_allclose(means[k].reshape(-1, 5), mean)
        np.testing.assert_array_equal(spreads[k % 2], spread)
    p = cloud.class_probability(Z)
    assert p.shape == (12, cloud.n_classes, 5)
    np.testing.assert_array_equal(p[1::2], class_probability(means[1::2], spreads[1]))


def test_models_of_several_ranks() -> None:
    """Coefficients of the smaller one are filled up with zeros."""
    mapped = draw_fourier(np.random.default_rng(3), kernel_named("rbf"), np.zeros(3), 2, 1)
    wide = FeatureSpace(FiniteFeatures.fitted(None, X, 1.0), X)
    narrow = FeatureSpace(FiniteFeatures.fitted(mapped, X, 0.0), X)
    cloud = cloud_of((Candidate("a", None, 0.0, wide), Candidate("b", None, 0.0, narrow)))
    means, spreads = cloud.latent(Z)
    np.testing.assert_allclose(means[1], narrow.features(Z) @ cloud.coefficients[1, :2])
    np.testing.assert_array_equal(spreads, 0.0)


@pytest.mark.parametrize("shape", [(), (3,)])
def test_the_bayes_point_is_the_mean_of_unit_classifiers(shape) -> None:
    cloud = cloud_of(TWO, shape)
    means, _ = cloud.latent(Z)
    unit = means / cloud.length.reshape(-1, *[1] * (means.ndim - 1))
    values = cloud.bayes_point_values(Z)
    assert values.shape == (*shape, 5)
    np.testing.assert_allclose(values, unit.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("rate", [0.0, 0.1])
def test_information_without_a_nugget(rate: float) -> None:
    """H(q + (1 - 2q) v) - H(q), section 4; v with the part outside the span."""
    cloud = cloud_of(TWO[:1], rate=rate, count=40)
    v = cloud.class_probability(Z).mean(axis=0)
    p = rate + (1.0 - 2.0 * rate) * v
    expected = entropy_bits(p.T) - entropy_bits(np.array([rate, 1.0 - rate]))
    np.testing.assert_allclose(cloud.information(Z), expected, atol=1e-12)


def simulated_noise(means, spread, nugget: float, rates, count: int = 3000) -> np.ndarray:
    """Entropy of a recorded label given f without its nugget, the part outside drawn."""
    wide, total = np.sqrt(spread**2 - nugget), 0.0
    own = np.full_like(spread, np.sqrt(nugget))
    for _ in range(count):
        f = means + wide * RNG.standard_normal((*means.shape[:-1], 1))
        p = recorded_probability(class_probability(f, own), rates)
        total = total + entropy_bits(np.moveaxis(p, 1, -1)).mean(axis=0)
    return total / count


@pytest.mark.parametrize("shape", [(), (3,)])
def test_information_under_a_nugget_by_simulation(shape) -> None:
    """What a label says of the classifier, less what the nugget takes; 0.03 bits."""
    cloud = cloud_of(TWO[1:], shape, count=60)
    means, spreads = cloud.latent(Z)
    p = recorded_probability(cloud.class_probability(Z), cloud.rates).mean(axis=0)
    noise = simulated_noise(means, spreads[0], 0.4, cloud.rates, 300)
    np.testing.assert_allclose(cloud.information(Z), entropy_bits(p.T) - noise, atol=0.03)


def test_far_from_all_rows_a_label_says_something() -> None:
    """The classifier is unknown there, and the nugget small."""
    far = np.full((1, 2), 50.0)
    for shape in ((), (3,)):
        near = cloud_of((kernel_model(1.0, 0.05),), shape, count=60)
        assert near.information(far)[0] > 0.2


def test_information_is_of_each_row_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    cloud = cloud_of(TWO, (3,))
    whole = cloud.information(Z)
    one_by_one = np.concatenate([cloud.information(z[np.newaxis]) for z in Z])
    np.testing.assert_allclose(one_by_one, whole, atol=1e-12)
    monkeypatch.setattr(module, "_BLOCK_NUMBERS", 12 * 3 * 2)
    assert cloud.blocks(5) == [slice(0, 2), slice(2, 4), slice(4, 6)]


def test_two_models_share_by_draws() -> None:
    cloud = cloud_of(TWO, rate=0.0, count=9)
    means, spreads = cloud.latent(Z)
    v = np.where(
        (cloud.model == 0)[:, np.newaxis], ndtr(means / spreads[0]), ndtr(means / spreads[1])
    )
    np.testing.assert_allclose(cloud.class_probability(Z)[:, 1], v, atol=1e-12)


@pytest.mark.parametrize("shape", [(), (3,)])
def test_drawn_functions_average_to_the_probabilities(shape) -> None:
    """Of one draw under a nugget, drawn 4000 times outside the span too; five deviations."""
    cloud = cloud_of(TWO[1:], shape, count=1)
    many = replace(
        cloud,
        model=np.repeat(cloud.model, 4000),
        coefficients=np.repeat(cloud.coefficients, 4000, axis=0),
        rates=np.repeat(cloud.rates, 4000, axis=0),
    )
    drawn = many.drawn_probability(Z, np.random.default_rng(5))
    expected = recorded_probability(cloud.class_probability(Z), cloud.rates)[0]
    error = drawn.std(axis=0) / np.sqrt(4000)
    assert (error > 1e-4).any(), "rows outside the span are open"
    np.testing.assert_array_less(np.abs(drawn.mean(axis=0) - expected), 5.0 * error + 1e-6)


def test_drawn_functions_far_from_all_rows_are_of_the_prior() -> None:
    """Certain without a nugget; two rows agree with P = 1/2 + arcsin(rho) / pi: orthants."""
    cloud = cloud_of(TWO[:1], count=4000, rate=0.0)
    far = np.array([[50.0, 0.0], [50.8, 0.0]])
    chosen = cloud.drawn_probability(far, np.random.default_rng(6))[:, 1]
    assert set(np.unique(chosen)) == {0.0, 1.0}
    C = TWO[0].space.covariance.gram(far)
    rho = C[0, 1] / np.sqrt(C[0, 0] * C[1, 1])
    assert 0.3 < rho < 0.95
    agree = (chosen[:, 0] == chosen[:, 1]).mean()
    p = 0.5 + np.arcsin(rho) / np.pi
    assert abs(agree - p) < 5.0 * np.sqrt(p * (1.0 - p) / 4000)
