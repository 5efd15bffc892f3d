"""KGS-11: unknown rates integrated out, their draws, and the audit's leave-one-out identity."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.likelihoods import label_noise
from mercer.likelihoods.label_noise import fixed_rate, learned_class_rates, learned_rate
from support.sphere_cases import (
    RateGrid,
    error_law,
    noisy_gram,
    pattern_posterior,
    patterns,
    signed,
)
from support.statistics import dkw_distance, dkw_limit

PRIORS = [(1.0, 1.0), (1.0, 9.0), (0.5, 2.0), (3.0, 1.5)]


def weight_error(prior: tuple[float, float], n: int, n_classes: int, grid: RateGrid) -> float:
    """Largest error in nats of the weight of e = 0..n errors, from steps and ``log_no_errors``."""
    noise = learned_rate(prior, n, n_classes)
    is_wrong = np.tri(n + 1, n, -1, dtype=bool)  # row e has e errors
    log_weight = noise.log_no_errors - noise.cost(is_wrong)
    return max(abs(log_weight[e] - grid.log_weight(e, n)) for e in range(n + 1))


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("prior", PRIORS)
def test_kgs_11_rate_integrated_out(prior: tuple[float, float], n_classes: int) -> None:
    grid = RateGrid.of(prior, n_classes)
    assert weight_error(prior, 12, n_classes, grid) < 1e-9


def test_kgs_11_sees_another_prior() -> None:
    assert weight_error((1.0, 3.0), 12, 2, RateGrid.of((1.0, 1.0))) > 0.1


def test_kgs_11_sees_a_prior_that_is_not_truncated(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = label_noise.log_incomplete_beta
    monkeypatch.setattr(label_noise, "log_incomplete_beta", lambda a, b, x: whole(a, b, 1.0))
    assert weight_error((1.0, 3.0), 12, 2, RateGrid.of((1.0, 3.0))) > 0.1


@pytest.mark.parametrize("n_classes", [2, 4])
def test_kgs_11_expected_rates(n_classes: int) -> None:
    prior, n = (1.5, 4.0), 60
    grid, noise = RateGrid.of(prior, n_classes), learned_rate(prior, n, n_classes)
    for e in (0, 1, 20, 59, 60):
        expected = noise.expected_rates(np.array([e]))[0]
        assert expected == pytest.approx(grid.posterior(e, n) @ grid.q, rel=1e-9)


def rate_distance(noise, e: int, n: int, prior: tuple[float, float]) -> float:
    """DKW distance of 20 000 draws of the rate, given e errors, to the grid's posterior."""
    grid = RateGrid.of(prior, noise.n_classes)
    cumulative = np.cumsum(grid.posterior(e, n))
    draws = noise.draw_rates(np.random.default_rng(4), np.full((20_000, 1), e))[:, 0]
    assert ((draws > 0.0) & (draws <= (noise.n_classes - 1) / noise.n_classes)).all()
    return dkw_distance(draws, lambda q: np.interp(q, grid.q, cumulative))


# With 2000 rows and 1990 errors the mass below 1/2 is about e^-1300: an inverse distribution
# function that is not in logarithms has nothing to invert.
CASES = [(0, 10, 2), (3, 10, 2), (10, 10, 2), (600, 1000, 2), (1990, 2000, 2), (700, 1000, 3)]


def test_kgs_11_draws_of_the_rate() -> None:
    """False alarm 1e-6 over the family."""
    prior = (1.0, 3.0)
    for e, n, n_classes in CASES:
        distance = rate_distance(learned_rate(prior, n, n_classes), e, n, prior)
        assert distance < dkw_limit(20_000, len(CASES))


def test_kgs_11_draws_see_one_error_left_out() -> None:
    prior = (1.0, 3.0)
    assert rate_distance(learned_rate(prior, 10), 2, 10, (2.0, 3.0)) > 2.0 * dkw_limit(20_000, 6)


def test_kgs_11_evidence_with_the_rate_integrated_out() -> None:
    """Of a whole problem: enumeration with omega(e) against quadrature of Z(q) over the prior."""
    G, prior = signed(*noisy_gram(5)), (1.0, 3.0)
    grid, e, law = RateGrid.of(prior, size=4001), np.arange(6), error_law(G)
    log_z = [np.log(law @ (q**e * (1.0 - q) ** (5 - e))) for q in grid.q]
    assert pattern_posterior(G, learned_rate(prior, 5))[1] == pytest.approx(
        np.logaddexp.reduce(grid.log_prior + log_z), abs=1e-9
    )


def test_kgs_11_rates_per_class() -> None:
    """Two groups are a priori independent: the weight is a product of integrals."""
    labels, prior = np.array([0, 1, 1, 0, 1, 1]), (1.0, 3.0)
    noise, grid = learned_class_rates(prior, labels, 2), RateGrid.of(prior)
    for is_wrong in patterns(6):
        errors = noise.errors_by_group(is_wrong)
        np.testing.assert_array_equal(errors, [is_wrong[labels == c].sum() for c in (0, 1)])
        expected = grid.log_weight(errors[0], 2) + grid.log_weight(errors[1], 4)
        assert noise.log_no_errors - noise.cost(is_wrong) == pytest.approx(expected, abs=1e-9)


def audit_error(G: np.ndarray, y: np.ndarray, q: float, used: float) -> float:
    """Largest error over rows of p(1 - q)/(p(1 - q) + (1 - p)q), the leave-one-out probability.

    p is the posterior probability that label i is wrong; the leave-one-out one is that of
    y_i f_i <= 0 given the labels of all other rows. ``used`` is the rate of the fit behind p.
    """
    n, worst = len(y), 0.0
    is_wrong = patterns(n)
    p = pattern_posterior(signed(G, y), fixed_rate(used, n))[0] @ is_wrong
    for i in range(n):
        others = np.full(n, q)
        others[i] = 0.5  # the label says nothing
        left_out = (
            pattern_posterior(signed(G, y), label_noise.row_rates(others))[0] @ is_wrong[:, i]
        )
        identity = p[i] * (1.0 - q) / (p[i] * (1.0 - q) + (1.0 - p[i]) * q)
        worst = max(worst, abs(left_out - identity))
    return worst


def test_kgs_11_leave_one_out_identity() -> None:
    assert audit_error(*noisy_gram(5), 0.15, 0.15) < 1e-10


def test_kgs_11_identity_sees_another_rate() -> None:
    assert audit_error(*noisy_gram(5), 0.15, 0.1) > 0.01
