"""SMC-2: the quadrature over unknown variances is finer than any test asks for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate

from support.basis_cases import make_filter, plain_design, problem
from support.basis_enumeration import Enumerated
from support.basis_runs import CASES, case


@pytest.mark.parametrize("name", CASES)
def test_smc_2_halving(name: str) -> None:
    """Half as many nodes again move the log evidence by less than 1e-8."""
    filter_, X, y = case(name)
    design = plain_design(filter_, X)
    coarse = Enumerated(filter_, design, y)
    fine = Enumerated(filter_, design, y, 180, 180)
    assert abs(fine.log_evidence - coarse.log_evidence) < 1e-8
    np.testing.assert_allclose(fine.probability, coarse.probability, atol=1e-8)
    np.testing.assert_allclose(coarse.probability.sum(), 1.0, rtol=1e-12)


def test_smc_2_all_subsets_of_eight() -> None:
    """256 subsets at two levels."""
    X, y = problem(8)
    filter_ = make_filter(largest=8)
    design = plain_design(filter_, X)
    coarse, fine = Enumerated(filter_, design, y), Enumerated(filter_, design, y, 180)
    assert abs(fine.log_evidence - coarse.log_evidence) < 1e-8


def test_smc_2_adaptive_quadrature() -> None:
    """One set, by the library's adaptive rule over the scale itself."""
    X, y = problem(4)
    filter_ = make_filter(largest=1, lengthscales=(0.7,))
    exact = Enumerated(filter_, plain_design(filter_, X), y)

    b = filter_.prior.scale_rate
    constant = 0.5 * np.log(b / np.pi)

    def density(u: float) -> float:
        g = np.exp(u)
        prior = -0.5 * u - b / g + constant
        likelihood = exact.log_likelihood_of(0, 1, g.reshape(1, 1), np.ones(1))[0, 0]
        return float(np.exp(prior + likelihood + 10.0))

    low, high = np.log(1e-6), np.log(1e6)
    value, _ = integrate.quad(density, low, high, epsabs=1e-14, epsrel=1e-12, limit=200)
    kept, _ = integrate.quad(
        lambda u: float(np.exp(-0.5 * u - b * np.exp(-u) + constant)), low, high
    )
    own = np.log(np.exp(exact.log_joint[0, 1]).sum()) - exact.log_prior[1]
    assert abs(np.log(value / kept) - 10.0 - own) < 1e-9


def log_marginal_densities(log_scales: np.ndarray, shape: float, rate: float) -> np.ndarray:
    """p(y | scale) times the inverse gamma density of its logarithm; one centre, noise 1."""
    X, y = problem(4)
    k = np.exp(-0.5 * (X[:, 0] - X[0, 0]) ** 2)
    square = k @ k
    scale = np.exp(log_scales)
    quadratic = y @ y - scale * (k @ y) ** 2 / (1.0 + scale * square)
    likelihood = -0.5 * (np.log1p(scale * square) + quadratic)
    return likelihood - shape * log_scales - rate / scale


def mass_below(lowest: float, shape: float, rate: float) -> float:
    """Integral of the unnormalised posterior of the log scale from ``lowest`` to 20."""
    u = np.linspace(lowest, 20.0, 40_001)
    return float(np.trapezoid(np.exp(log_marginal_densities(u, shape, rate)), u))


def test_the_printed_priors_have_no_posterior() -> None:
    """Section 4.1: with a = b = 0 each doubling of the range adds as much as the range is long."""
    lows = (-40.0, -80.0, -160.0)
    printed = np.array([mass_below(low, 0.0, 0.0) for low in lows])
    growth = np.diff(printed) / np.array([40.0, 80.0])
    assert growth[0] == pytest.approx(growth[1], rel=1e-3)
    assert growth[0] > 0.01
    proper = np.array([mass_below(low, 1.0, 1.0) for low in lows])
    np.testing.assert_allclose(proper, proper[0], rtol=1e-6)
