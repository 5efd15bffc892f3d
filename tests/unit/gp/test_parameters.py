"""Log parameters of kernels by name, their priors and starts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from mercer.errors import UsageError
from mercer.gp.hyperparameters import (
    FewParameters,
    Maximum,
    check_prior,
    class_parameters,
    class_thetas,
    few_that_decide,
    input_weights,
    kernel_prior,
    named_parameters,
    noise_prior,
    orders_of_alike,
    paper_start,
    parameter_labels,
    places_of_weights,
    prior_start,
    shapes_of_parameters,
    stacked_parameters,
    starts_of_few,
)
from mercer.gp.laplace import HyperparameterPosterior
from mercer.kernels.names import kernel_named
from mercer.kernels.stationary import SquaredExponentialARD

KERNELS = [
    "rbf", "linear", "isotropic(rbf)", "rbf + periodic*matern32", "spectral_mixture(2)",
    "rational_quadratic + constant",
]  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_names_and_back(name: str) -> None:
    kernel = kernel_named(name)
    theta = np.random.default_rng(0).standard_normal((7, kernel.n_parameters(3)))
    values = named_parameters(kernel, 3, theta)
    np.testing.assert_array_equal(stacked_parameters(kernel, values), theta)
    assert all(value.shape in ((7,), (7, 3)) for value in values.values())


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("is_shared", [False, True])
def test_names_of_several_classes_and_back(name: str, is_shared: bool) -> None:
    kernel = kernel_named(name)
    n_kernels = 1 if is_shared else 4
    thetas = np.random.default_rng(0).standard_normal((5, n_kernels, kernel.n_parameters(3)))
    draws = [class_parameters(kernel, 3, theta) for theta in thetas]
    values = {key: np.array([draw[key] for draw in draws]) for key in draws[0]}
    np.testing.assert_array_equal(class_thetas(kernel, n_kernels, values), thetas)
    shapes = shapes_of_parameters(kernel, 3, n_kernels)
    assert {key: value.shape[1:] for key, value in values.items()} == shapes
    labels = parameter_labels(kernel, ("a", "b", "c"), () if is_shared else ("w", "x", "y", "z"))
    assert {key: (len(label),) for key, label in labels.items()} == {
        key: shape for key, shape in shapes.items() if shape
    }


def test_weights_of_the_inputs() -> None:
    assert input_weights(kernel_named("rbf")) == "log_weight"
    assert input_weights(kernel_named("rbf + linear")) == "log_weight"
    assert input_weights(kernel_named("isotropic(rbf)")) is None
    assert input_weights(kernel_named("rbf + matern12")) is None
    np.testing.assert_array_equal(places_of_weights(kernel_named("rbf + linear"), 2), [0, 1, 1, 0])


def test_priors_by_kind() -> None:
    kernel = kernel_named("rbf + linear")
    wide = kernel_prior(2, "wide", kernel)
    np.testing.assert_allclose(wide.mean, [1.0, *[-1.0 - np.log(2.0)] * 2, 1.0])
    np.testing.assert_allclose(wide.std, [3.0, 3.0, 3.0, 3.0])
    several = kernel_prior(2, "wide", kernel, is_several=True)
    np.testing.assert_array_equal(several.mean, wide.mean)
    np.testing.assert_allclose(several.std, [3.0, 2.0, 2.0, 3.0])
    named = kernel_prior(2, {"weight": (-2.0, 0.5)}, kernel, is_several=True)
    np.testing.assert_allclose(named.std, [3.0, 0.5, 0.5, 3.0])
    own = kernel_prior(2, {"weight": (-2.0, 0.5)}, kernel)
    np.testing.assert_allclose(own.mean, [1.0, -2.0, -2.0, 1.0])
    np.testing.assert_allclose(own.std, [3.0, 0.5, 0.5, 3.0])
    np.testing.assert_array_equal(kernel_prior(2, "paper", kernel).mean, np.full(4, -3.0))
    assert noise_prior(2, {"noise": (-1, 2)}) == (-1.0, 2.0)
    assert noise_prior(2, "wide") == noise_prior(2, "paper") == (-3.0, 3.0)


def test_terms_that_are_alike_begin_apart() -> None:
    kernel = kernel_named("rbf + rbf")
    np.testing.assert_array_equal(paper_start(1, kernel), [0.0, -2.5, 0.0, -1.5])
    start = prior_start(1, kernel, kernel_prior(1, "wide", kernel))
    np.testing.assert_array_equal(start, [0.0, -1.5, 0.0, -0.5])
    np.testing.assert_array_equal(paper_start(2), [0.0, -2.0, -2.0])


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ("flat", '"wide", "paper" or a mapping'),
        (
            {"lengthscale": (0.0, 1.0)},
            "no parameter is a 'lengthscale'",
        ),
        ({"weight": (0.0, 0.0)}, "positive standard deviation"),
        ({"weight": 1.0}, "positive standard deviation"),
        ({"weight": (np.nan, 1.0)}, "finite mean"),
    ],
)
def test_refused_priors(prior: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_prior(prior)


@pytest.mark.parametrize(
    ("name", "n_orders"),
    [
        ("rbf + matern52", 1),
        ("rbf + rbf", 2),
        ("rbf * rbf", 2),
        ("linear + rbf + linear + rbf", 4),
        ("linear * linear", 1),
        ("(rbf + rbf) * periodic", 2),
        ("(rbf + rbf) * (rbf + rbf)", 8),
        ("rbf[0] + rbf[0] + rbf[1]", 2),
        ("spectral_mixture(4)", 24),
        ("spectral_mixture(6)", 24),
    ],
)
def test_orders_of_alike_terms_change_no_covariance_and_are_a_group(
    name: str, n_orders: int
) -> None:
    rng, kernel = np.random.default_rng(0), kernel_named(name)
    p = kernel.n_parameters(2)
    orders, X, theta = orders_of_alike(kernel, 2, p), rng.normal(size=(7, 2)), rng.normal(size=p)
    assert orders.shape == (n_orders, p)
    np.testing.assert_array_equal(orders[0], np.arange(p))
    K, prior = kernel.gram(theta, X), kernel_prior(2, kernel=kernel)
    for order in orders:
        np.testing.assert_allclose(kernel.gram(theta[order], X), K, rtol=1e-12)
        np.testing.assert_array_equal(prior.std[order], prior.std)
        products = [other[order].tolist() for other in orders]
        assert all(product in orders.tolist() for product in products)


def test_alike_terms_of_each_class_change_places_and_the_noise_stays() -> None:
    kernel = kernel_named("isotropic(rbf) + isotropic(rbf)")
    found = sorted(map(tuple, orders_of_alike(kernel, 2, 8)))
    first, second = (0, 1, 2, 3), (2, 3, 0, 1)
    pairs = [(*a, *(4 + i for i in b)) for a in (first, second) for b in (first, second)]
    assert found == sorted(pairs)
    assert set(map(tuple, orders_of_alike(kernel, 2, 5))) == {(*first, 4), (*second, 4)}


def test_searches_of_many_inputs_begin_where_few_decide() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 40))
    X[:, 5] = 1.0  # goes with nothing
    targets = np.array([[X[:, 7] + 0.1 * X[:, 3]], [X[:, 9] ** 2 + X[:, 20] * X[:, 30]]])
    kernel = kernel_named("isotropic(rbf) + rbf")
    start = prior_start(40, kernel, kernel_prior(40, "wide", kernel))
    few, more, pair = starts_of_few(X, targets, kernel, start)
    assert few.shape == more.shape == pair.shape == (2 * len(start),)
    assert (pair.reshape(2, -1)[1] != start)[[3 + 20, 3 + 30]].all()
    for theta, most in ((few, 4), (more, 16), (pair, 6)):
        for own, decides in zip(theta.reshape(2, -1), (7, 9), strict=True):
            has_weight = own != start
            assert not has_weight[:3].any()
            assert has_weight.sum() == most
            assert has_weight[3 + decides]
            assert not has_weight[3 + 5]
            np.testing.assert_allclose(own[has_weight], -1.0 - np.log(most))
    assert starts_of_few(X[:, :30], targets, kernel, start[: 3 + 30]) == ()
    assert starts_of_few(X, targets, kernel_named("isotropic(rbf)"), start[:2]) == ()


# The prior of hundreds of weights: a normal, or with a small share the weight of one of few.
D = 320
OWN_MEAN, OWN_STD = -1.0 - np.log(D) - 2.0 * np.log(D / 30.0), 3.0
FEW = stats.norm(-1.0 - np.log(4.0), 2.0)


def density_of_a_weight(x: float) -> float:
    own = stats.norm(OWN_MEAN, OWN_STD)
    return float((1.0 - 4.0 / D) * own.pdf(x) + 4.0 / D * FEW.pdf(x))


def test_of_hundreds_of_inputs_few_are_expected_to_decide() -> None:
    theta = np.random.default_rng(0).normal(OWN_MEAN, OWN_STD, D + 1)
    theta[:3] = 2.0, -1.0, 0.5
    prior, variance = kernel_prior(D), stats.norm(1.0, 3.0)
    expected = sum(np.log(density_of_a_weight(x)) for x in theta[1:])
    expected += variance.logpdf(theta[0])
    assert prior.log_density(theta) + prior.log_constant == pytest.approx(expected)
    for i, step in enumerate(1e-5 * np.eye(len(theta))[:4]):
        rise = prior.log_density(theta + step) - prior.log_density(theta - step)
        assert prior.gradient(theta)[i] == pytest.approx(rise / 2e-5, abs=1e-6)


def test_it_is_that_of_each_kernel_and_not_of_the_noise() -> None:
    prior = kernel_prior(D)
    theta = np.random.default_rng(0).normal(OWN_MEAN, OWN_STD, D + 1)
    twice = prior.tiled(2)
    assert twice.log_density(np.tile(theta, 2)) == pytest.approx(2.0 * prior.log_density(theta))
    more = prior.with_one_more(-3.0, 3.0)
    assert more.log_density(np.append(theta, -3.0)) == pytest.approx(prior.log_density(theta))
    assert more.gradient(np.append(theta, 0.0))[-1] == pytest.approx(-3.0 / 9.0)


@pytest.mark.parametrize(
    ("d", "choice", "has_few"),
    [
        (300, "wide", False), (301, "wide", True), (301, "paper", False),
        (301, {"weight": (-2.0, 3.0)}, False), (301, {"variance": (0.0, 1.0)}, True),
    ],
)  # fmt: skip
def test_few_are_expected_of_more_than_300_unless_weights_are_given(d, choice, has_few) -> None:
    assert (kernel_prior(d, choice).share is not None) == has_few
    assert kernel_prior(d, choice, kernel_named("isotropic(rbf)")).share is None


def test_few_parameters_have_the_density_of_all_given_that_they_are_of_few() -> None:
    """Values, gradients and what draws keep; the mutant leaves the prior as that of all."""
    rng = np.random.default_rng(0)
    X, kernel = rng.standard_normal((12, D)), SquaredExponentialARD()
    y = (X[:, 0] > 0.0).astype(float)
    model = HyperparameterPosterior(X, y, kernel, kernel_prior(D, "wide", kernel))
    theta = model.prior.mean.copy()
    theta[[1, 5]] = -1.0, -2.0  # inputs 0 and 4
    assert model.prior.may_be_of_few(theta).nonzero()[0].tolist() == [1, 5]
    few = FewParameters(model, theta, np.array([0, 1, 5]))
    law = stats.norm([1.0, FEW.mean(), FEW.mean()], [3.0, FEW.std(), FEW.std()])

    def expected(z: np.ndarray) -> float:
        whole = few.all_of(z)
        log_evidence = model.evaluate(whole).log_density - model.prior.log_density(whole)
        return float(log_evidence + law.logpdf(z).sum() - few.prior.log_constant)

    at = np.array([0.5, -1.3, -1.7])
    point = few.evaluate(at)
    assert point.log_density == pytest.approx(expected(at), abs=1e-9)
    for k, step in enumerate(1e-5 * np.eye(3)):
        slope = (expected(at + step) - expected(at - step)) / 2e-5
        assert point.gradient[k] == pytest.approx(slope, abs=1e-5)
    value, recorded = few.values(point, np.zeros((3, 12)), np.arange(2))(at + 0.1)
    assert value == pytest.approx(expected(at + 0.1), abs=1e-3)
    assert recorded["latent"].shape == (2,)
    weights = few.parameters(np.array([at, at + 1.0]))["log_weight"]
    np.testing.assert_array_equal(weights[:, 0], [at[1], at[1] + 1.0])
    np.testing.assert_array_equal(weights[:, 1], theta[2])
    assert (
        few_that_decide(
            HyperparameterPosterior(X, y, kernel, kernel_prior(D, "paper", kernel)),
            Maximum(point, None, True),
        )
        is None
    )


def test_those_that_decide_are_kept_of_every_maximum_that_counts() -> None:
    rng = np.random.default_rng(1)
    X, kernel = rng.standard_normal((40, D)), SquaredExponentialARD()
    y = (X[:, 0] + X[:, 3] > 0.0).astype(float)
    model = HyperparameterPosterior(X, y, kernel, kernel_prior(D, "wide", kernel))
    theta, other = model.prior.mean.copy(), model.prior.mean.copy()
    theta[[1, 4]] = other[7] = -1.0
    found = few_that_decide(
        model, Maximum(model.evaluate(theta), None, True, others=(model.evaluate(other),))
    )
    assert found is not None
    few, maximum = found
    is_near = model.evaluate(other).log_density > model.evaluate(theta).log_density - 10.0
    assert few.places.tolist() == [0, 1, 4, *([7] if is_near else [])]
    assert maximum.covariance is not None
    assert maximum.covariance.shape == (len(few.places),) * 2
