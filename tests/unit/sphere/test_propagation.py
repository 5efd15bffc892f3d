"""Evidence by expectation propagation: beside closed forms, tempered runs and differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logit

from mercer.kernels.names import kernel_named
from mercer.likelihoods.label_noise import (
    LabelNoise,
    class_rates,
    fixed_rate,
    learned_class_rates,
    learned_rate,
    row_rates,
)
from mercer.sphere.evidence import Sites, _Labels, approximate_evidence
from mercer.sphere.sampler import signed_rows
from mercer.sphere.space import KernelSpace, fit_covariance
from mercer.sphere.tempering import Tempering, climb_errors, measure_noise

RNG = np.random.default_rng(1)
N = 60
X = RNG.uniform(-2.0, 2.0, (N, 2))
RING = ((X**2).sum(axis=1) > 2.0).astype(np.int64)
RING[:9] = 1 - RING[:9]  # wrong labels: sites of negative precision
NOISES = {
    "fixed": fixed_rate(0.1, N),
    "learned": learned_rate((1.0, 1.0), N),
    "learned per class": learned_class_rates((1.0, 1.0), RING),
    "per class": class_rates(np.array([0.02, 0.3]), RING),
    "per row": row_rates(np.linspace(0.05, 0.5, N)),
}


def space(nugget: float) -> KernelSpace:
    return KernelSpace(fit_covariance(kernel_named("rbf"), 1.5, X, 1.0), X, nugget)


def of_ring(nugget: float, noise: LabelNoise, start=None):
    L, variance = space(nugget).smooth_rows()
    return approximate_evidence(signed_rows(L, RING), variance, noise, start)


@pytest.mark.parametrize("rate", [1e-4, 0.1, 0.45])
def test_independent_rows(rate: float) -> None:
    """Each label has probability 1/2, whatever the rate."""
    rows = np.diag([0.5, 1.0, 2.0])
    found = approximate_evidence(rows, np.array([0.0, 1.0, 0.1]), fixed_rate(rate, 3))
    assert found.log_evidence == pytest.approx(-3.0 * np.log(2.0), abs=1e-3)
    assert found.is_settled


def test_independent_rows_at_rates_that_differ() -> None:
    """Half of the classifiers are right on each: known rates of classes, and of rows."""
    rows, labels = np.diag([0.5, 1.0, 2.0, 1.0]), np.array([0, 1, 1, 0])
    by_class, by_row = np.array([0.05, 0.3]), np.array([0.01, 0.2, 0.5, 0.1])
    own, other = by_class[labels], by_class[1 - labels]
    exact = np.log(0.5 * (1.0 - own + other)).sum()
    found = approximate_evidence(rows, np.full(4, 0.1), class_rates(by_class, labels))
    assert found.log_evidence == pytest.approx(exact, abs=1e-3)
    found = approximate_evidence(rows, np.full(4, 0.1), row_rates(by_row))
    assert found.log_evidence == pytest.approx(-4.0 * np.log(2.0), abs=1e-3)


@pytest.mark.parametrize("correlation", [-0.9, 0.0, 0.6, 1.0])
@pytest.mark.parametrize("variance", [0.0, 0.7])
def test_two_rows(correlation: float, variance: float) -> None:
    """An orthant, whose probability is known, and rate q: within .1 nats, with a nugget .01."""
    rows, q = np.array([[1.0, 0.0], [correlation, np.sqrt(1.0 - correlation**2)]]), 0.1
    same = 0.5 + np.arcsin(correlation / (1.0 + variance)) / np.pi
    exact = 0.5 * ((1.0 - 2.0 * q * (1.0 - q)) * same + 2.0 * q * (1.0 - q) * (1.0 - same))
    found = approximate_evidence(rows, np.full(2, variance), fixed_rate(q, 2))
    assert found.log_evidence == pytest.approx(np.log(exact), abs=0.01 if variance else 0.1)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize("nugget", [0.0, 0.4])
def test_beside_a_tempered_run(kind: str, nugget: float) -> None:
    """Within half a nat and four standard errors."""
    noise, rows = NOISES[kind], signed_rows(space(nugget).design().L, RING)
    if not noise.is_common:
        value, error = measure_noise(np.random.default_rng(2), rows, noise, Tempering(20, 400))
    else:
        run = climb_errors(np.random.default_rng(2), rows, Tempering(20, 400))
        value, error = run.law().log_evidence(noise)
    found = of_ring(nugget, noise)
    assert found.is_settled
    assert abs(found.log_evidence - value) < 0.5 + 4.0 * error


def test_rates_are_those_of_the_labels() -> None:
    """None of the inside are wrong, two in five of the outside: evidence tells."""
    rng = np.random.default_rng(2)
    inputs = rng.uniform(-2.0, 2.0, (150, 2))
    ring = ((inputs**2).sum(axis=1) > 2.0).astype(np.int64)
    labels = np.where(rng.random(150) < 0.4 * ring, 0, ring)
    covariance = fit_covariance(kernel_named("rbf"), 1.5, inputs, 1.0)
    L, variance = KernelSpace(covariance, inputs, 0.0).smooth_rows()
    rows = signed_rows(L, labels)
    one = approximate_evidence(rows, variance, learned_rate((1.0, 1.0), 150))
    noise = learned_class_rates((1.0, 1.0), labels)
    found = approximate_evidence(rows, variance, noise, one)
    np.testing.assert_allclose(found.rates, [0.0, 0.4], atol=0.1)
    assert found.log_evidence > one.log_evidence + 5.0


@pytest.mark.parametrize("lengthscale", [6.0, 12.0])
def test_low_rank_does_not_fall_to_what_has_learned_nothing(lengthscale: float) -> None:
    """Inputs that are nearly the same, no nugget, one label in ten wrong: 150 log 2 is 104 nats."""
    rng = np.random.default_rng(4)
    size, own = rng.standard_normal((150, 1)), rng.standard_normal((150, 5))
    inputs, clear = size + 0.1 * own, own[:, 0] > own[:, 1]
    labels = np.where(rng.random(150) < 0.1, ~clear, clear).astype(np.int64)
    covariance = fit_covariance(kernel_named("rbf"), lengthscale, inputs, 1.0)
    L, variance = KernelSpace(covariance, inputs, 0.0).smooth_rows()
    found = approximate_evidence(signed_rows(L, labels), variance, learned_rate((1.0, 1.0), 150))
    assert found.rates[0] == pytest.approx(0.1, abs=0.03)
    assert found.log_evidence > -80.0


@pytest.mark.parametrize("rate", [1e-3, 0.005, 0.02])
def test_sites_without_a_nugget_at_low_rates(rate: float) -> None:
    """Classes that overlap: sites ran away to log probabilities of 1e10 where steps stayed long."""
    rng = np.random.default_rng(3)
    inputs = rng.standard_normal((120, 2))
    labels = (rng.random(120) < 1.0 / (1.0 + np.exp(-2.0 * inputs[:, 0]))).astype(np.int64)
    for lengthscale in (0.41, 0.83, 1.6):
        covariance = fit_covariance(kernel_named("rbf"), lengthscale, inputs, 1.0)
        L, variance = KernelSpace(covariance, inputs, 0.0).smooth_rows()
        found = approximate_evidence(signed_rows(L, labels), variance, fixed_rate(rate, 120))
        assert found.is_settled
        assert found.log_evidence < 0.0


def test_a_start_changes_nothing() -> None:
    plain = of_ring(0.4, NOISES["learned"])
    again = of_ring(0.4, NOISES["learned"], of_ring(0.0, NOISES["learned"]))
    assert again.log_evidence == pytest.approx(plain.log_evidence, abs=0.05)


@pytest.mark.parametrize("kind", ["learned", "learned per class"])
def test_gradient_in_the_rates(kind: str) -> None:
    """That of log Z at rest, against differences of it."""
    L, variance = space(0.4).smooth_rows()
    labels = _Labels(signed_rows(L, RING), variance, NOISES[kind])
    n_rates = 2 if kind == "learned per class" else 1
    at, nothing = logit(np.array([0.3, 0.2])[:n_rates]), Sites(np.zeros(N), np.zeros(N))
    gradient = labels.settle(nothing, at, 1e-9).gradient
    for k in range(n_rates):
        shift = 1e-3 * (np.arange(n_rates) == k)
        ends = [labels.settle(nothing, at + sign * shift, 1e-9).log_z for sign in (1.0, -1.0)]
        assert gradient[k] == pytest.approx((ends[0] - ends[1]) / 2e-3, abs=1e-3)


def test_sites_that_no_gaussian_has() -> None:
    """Precisions so negative that P is not positive definite are raised until it is."""
    L, variance = space(0.0).smooth_rows()
    labels = _Labels(signed_rows(L, RING), variance, NOISES["fixed"])
    sites, marginal, _, _ = labels._gaussian(Sites(np.full(N, -50.0), np.zeros(N)))
    assert (sites.precision > -50.0).all()
    assert (marginal > 0.0).all()
