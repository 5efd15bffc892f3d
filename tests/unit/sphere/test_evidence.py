"""Evidence of every noise rate from the errors of a ladder of rungs."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.likelihoods.label_noise import (
    class_rates,
    fixed_rate,
    learned_rate,
    row_rates,
)
from mercer.sphere import tempering as mbar
from mercer.sphere.tempering import error_costs, error_law, log_evidence_of, place_rungs
from support.sphere_cases import (
    RateGrid,
    equicorrelated_error_law,
    equicorrelated_log_z,
    error_ladder,
    noisy_gram,
    pattern_posterior,
    patterns,
    signed,
)
from support.statistics import few_first, largest_z, z_limit

N = 60
ETAS = np.array([0.0, 0.05, 0.15, 0.5, 1.7, 9.0])
RATES = np.array([0.0, 0.001, 0.05, 0.2, 0.4])


def linear_costs(etas: np.ndarray, n: int = N) -> np.ndarray:
    return etas[:, None] * np.arange(n + 1.0)


def exact_log_evidence(rate: float, n: int = N) -> float:
    """All labels +1, G = (I + 11')/2: every number of errors is equally likely."""
    if rate == 0.0:
        return float(-np.log(n + 1.0))
    return n * np.log1p(-rate) + equicorrelated_log_z(np.log((1.0 - rate) / rate), n)


def estimates(
    n_runs: int, n_sweeps: int, correlation: float, etas_told: np.ndarray = ETAS
) -> tuple[np.ndarray, np.ndarray]:
    """Log evidence of the rates and its standard error for many ladders: (n_runs, n_rates)."""
    rng = np.random.default_rng(5)
    law = equicorrelated_error_law(N)
    both = []
    for _ in range(n_runs):
        errors = error_ladder(rng, law, linear_costs(ETAS), n_sweeps, correlation)
        curve = error_law(errors, linear_costs(etas_told)).curve(RATES)
        both.append((curve.log_evidence, curve.standard_error))
    return np.array([b[0] for b in both]), np.array([b[1] for b in both])


TRUTH = np.array([exact_log_evidence(q) for q in RATES])


def test_log_evidence_of_every_rate() -> None:
    """The mean of 60 ladders, false alarm 1e-6 over the rates."""
    values, _ = estimates(60, 1000, 0.0)
    assert largest_z(values, TRUTH, 60) < z_limit(60, len(RATES))
    # Mutant: half the cost of an error told to the estimator.
    halved, _ = estimates(60, 1000, 0.0, 0.5 * ETAS)
    assert largest_z(halved, TRUTH, 60) > 2.0 * z_limit(60, len(RATES))


def rms_of_errors(correlation: float) -> np.ndarray:
    """Root mean square over 400 ladders of error over standard error, for each rate."""
    values, standard_error = estimates(400, 300, correlation)
    return np.sqrt(np.square((values - TRUTH) / standard_error).mean(axis=0))


@pytest.mark.parametrize("correlation", few_first([0.0, 0.5, 0.8, 0.9], 0.8))
def test_standard_errors_are_honest(correlation: float) -> None:
    """The mean square of 400 is known to 0.09: beyond five of these either way."""
    rms = rms_of_errors(correlation)
    assert (rms > 0.7).all()
    assert (rms < 1.25).all()


def test_standard_errors_see_blocks_taken_for_independent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mbar, "_variance_of_sum", lambda x: float(x @ x))
    assert (rms_of_errors(0.9) > 1.4).all()


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_labels_without_information(n_classes: int) -> None:
    """At q = (C - 1)/C the labels are C^-n whatever was drawn, and there is no error."""
    errors = error_ladder(
        np.random.default_rng(1), equicorrelated_error_law(N), linear_costs(ETAS), 50
    )
    law = error_law(errors, linear_costs(ETAS))
    largest = (n_classes - 1) / n_classes
    value, standard_error = law.log_evidence(fixed_rate(largest, N, n_classes))
    assert value == pytest.approx(-N * np.log(n_classes), rel=1e-13)
    assert standard_error < 1e-12
    assert law.curve(np.array([largest]), n_classes).log_evidence[0] == value


def test_learned_rate_is_the_curve_integrated() -> None:
    errors = error_ladder(
        np.random.default_rng(2), equicorrelated_error_law(N), linear_costs(ETAS), 50
    )
    law, grid = error_law(errors, linear_costs(ETAS)), RateGrid.of((1.0, 3.0), size=801)
    integral = np.logaddexp.reduce(grid.log_prior + law.curve(grid.q).log_evidence)
    assert law.log_evidence(learned_rate((1.0, 3.0), N))[0] == pytest.approx(integral, abs=1e-9)


def test_law_of_the_errors() -> None:
    law_of = equicorrelated_error_law(N)
    errors = error_ladder(np.random.default_rng(3), law_of, linear_costs(ETAS), 20_000)
    law = error_law(errors, linear_costs(ETAS))
    assert np.exp(law.log_prior).sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_array_equal(law.support, np.arange(N + 1))
    np.testing.assert_allclose(law.log_prior, np.log(law_of), atol=0.6)


def test_rungs_with_different_numbers_of_draws() -> None:
    errors = error_ladder(
        np.random.default_rng(4), equicorrelated_error_law(N), linear_costs(ETAS), 4000
    )
    whole = error_law(errors, linear_costs(ETAS))
    as_list = error_law(list(errors.T), linear_costs(ETAS))
    np.testing.assert_array_equal(whole.log_prior, as_list.log_prior)
    parts = [errors[: 4000 - 600 * k, k] for k in range(len(ETAS))]
    value, standard_error = error_law(parts, linear_costs(ETAS)).log_evidence(fixed_rate(0.05, N))
    assert abs(value - exact_log_evidence(0.05)) < 6.0 * standard_error
    assert standard_error < 0.1


def test_costs_of_a_learned_rate_on_the_rungs() -> None:
    """Rungs may be powers of any common noise; the target then is the last of them."""
    noise, powers = learned_rate((1.0, 9.0), N), np.array([0.0, 0.05, 0.15, 0.4, 1.0])
    rung_costs = powers[:, None] * error_costs(noise)
    errors = error_ladder(np.random.default_rng(6), equicorrelated_error_law(N), rung_costs, 4000)
    exact = np.logaddexp.reduce(-np.log(N + 1.0) - error_costs(noise))
    value, standard_error = error_law(errors, rung_costs).log_evidence(noise)
    assert abs(value - noise.log_no_errors - exact) < 6.0 * standard_error
    # The same draws one by one.
    cost = error_costs(noise)[errors]
    one_by_one = log_evidence_of(cost, cost[:, :, None] * powers)
    assert one_by_one[0] == pytest.approx(value - noise.log_no_errors, abs=1e-9)
    assert one_by_one[1] == pytest.approx(standard_error, rel=1e-6)


GENERAL = {
    "per class": class_rates(np.array([0.05, 0.3]), np.array([0, 1, 1, 0, 1])),
    "clean rows": row_rates(np.array([0.0, 0.1, 0.2, 0.1, 0.0])),
}


def general_estimates(kind: str, told: float = 1.0) -> tuple[np.ndarray, float]:
    """Log evidences (40, 1) of ladders of five rows, and the exact one, by enumeration."""
    noise, powers = GENERAL[kind], np.array([0.0, 0.2, 0.5, 1.0])
    G, rng = signed(*noisy_gram(5)), np.random.default_rng(7)
    cost = noise.cost(patterns(5))
    law = pattern_posterior(G, row_rates(np.full(5, 0.5)))[0]
    values = []
    for _ in range(40):
        drawn = cost[error_ladder(rng, law, powers[:, None] * cost, 500)]
        value, _, _ = log_evidence_of(told * drawn, told * drawn[:, :, None] * powers)
        values.append([value + noise.log_no_errors])
    return np.array(values), pattern_posterior(G, noise)[1]


@pytest.mark.parametrize("kind", GENERAL)
def test_noise_that_is_not_common(kind: str) -> None:
    """The mean of 40 ladders against enumeration, false alarm 1e-6; impossible costs included."""
    values, exact = general_estimates(kind)
    assert largest_z(values, np.array([exact]), 40) < z_limit(40, 1)
    if kind == "per class":
        mutant, _ = general_estimates(kind, 0.5)
        assert largest_z(mutant, np.array([exact]), 40) > 2.0 * z_limit(40, 1)


def test_no_draw_without_errors() -> None:
    """Then q = 0 has no estimate; rates above it have."""
    etas = ETAS[:-2]
    errors = 1 + error_ladder(
        np.random.default_rng(8), equicorrelated_error_law(N - 1), linear_costs(etas, N - 1), 100
    )
    law = error_law(errors, linear_costs(etas))
    assert np.isnan(law.log_evidence(fixed_rate(0.0, N))).all()
    curve = law.curve(np.array([0.0, 0.001, 0.3]))
    np.testing.assert_array_equal(curve.noise_rates, [0.001, 0.3])
    assert np.isfinite(curve.log_evidence).all()
    assert np.isfinite(curve.standard_error).all()
    assert len(law.curve(np.array([0.0])).noise_rates) == 0


def test_rungs_that_do_not_overlap() -> None:
    """No standard error then, and only the value that needs no ladder."""
    rng = np.random.default_rng(9)
    errors = np.column_stack([rng.integers(40, 60, 100), rng.integers(0, 3, 100)])
    law = error_law(errors, linear_costs(np.array([0.0, 9.0])))
    assert not law.is_connected
    assert law.log_evidence(fixed_rate(0.1, N))[1] == np.inf
    np.testing.assert_array_equal(law.curve(np.array([0.1, 0.5])).noise_rates, [0.5])


def test_many_rows_few_errors() -> None:
    """Memory and time go with the numbers of errors that were seen, not with the rows squared."""
    n = 100_000
    rng = np.random.default_rng(10)
    etas = np.array([0.0, 1e-5, 1e-4])
    errors = rng.integers(0, 50, (200, 3)) * 1000
    law = error_law(errors, linear_costs(etas, n))
    assert law.influence.shape == (40, len(law.support))
    assert np.isfinite(law.log_evidence(fixed_rate(0.3, n))).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda law: law.log_evidence(fixed_rate(0.1, N + 1)), "as many rows"),
        (lambda law: law.log_evidence(row_rates(np.full(N, 0.1))), "common to all rows"),
        (lambda law: error_law(np.ones((9, 2), int), np.ones((2, 3))), "first rung is the prior"),
        (lambda law: error_law(np.ones((9, 3), int), np.zeros((2, 3))), "one cost for each rung"),
        (lambda law: error_law(np.ones((7, 2), int), np.zeros((2, 3))), "8 draws or more"),
        (lambda law: log_evidence_of(np.ones((9, 2)), np.ones((9, 2, 2))), "must be the prior"),
        (lambda law: place_rungs(np.array([0.1, 1.0]), np.ones((9, 2))), "rise from 0"),
        (lambda law: place_rungs(np.array([0.0, 1.0, 1.0]), np.ones((9, 3))), "rise from 0"),
    ],
)
def test_wrong_calls(call, message: str) -> None:
    law = error_law(np.tile([[30], [29]], (4, 2)), np.zeros((2, N + 1)))
    with pytest.raises(ValueError, match=message):
        call(law)


# --- placing rungs -------------------------------------------------------------------------------

PILOT = np.array([0.0, 0.1, 0.3, 0.7, 1.2, 2.0, 3.0, 4.5, 6.5, 9.0])


def independent_rows(n: int, etas: np.ndarray, n_sweeps: int) -> np.ndarray:
    """Errors of n independent rows, each wrong with probability 1/(1 + e^eta)."""
    return np.random.default_rng(11).binomial(n, 1.0 / (1.0 + np.exp(etas)), (n_sweeps, len(etas)))


def lengths(n: int, etas: np.ndarray) -> np.ndarray:
    """Exact thermodynamic length of each interval: int sqrt(n p (1 - p)) d eta.

    With p = 1/(1 + e^eta) it is 2 sqrt(n) times the difference of arctan(e^(eta/2)).
    """
    return np.diff(2.0 * np.sqrt(n) * np.arctan(np.exp(0.5 * etas)))


def test_rungs_at_equal_lengths() -> None:
    etas = place_rungs(PILOT, independent_rows(100, PILOT, 400), step=1.2)
    assert etas[0] == 0.0
    assert etas[-1] == PILOT[-1]
    steps = lengths(100, etas)
    assert steps.max() < 1.4
    assert steps.min() > 0.8
    # Mutant: as many rungs at equal steps of eta.
    assert lengths(100, np.linspace(0.0, 9.0, len(etas))).max() > 2.5


def test_rungs_from_a_short_pilot() -> None:
    steps = lengths(100, place_rungs(PILOT, independent_rows(100, PILOT, 16)))
    assert steps.max() < 2.4


def test_number_of_rungs() -> None:
    assert len(place_rungs(PILOT, independent_rows(2, PILOT, 100))) == 6
    assert len(place_rungs(PILOT, independent_rows(100_000, PILOT, 100))) == 40
    few = place_rungs(PILOT, independent_rows(300, PILOT, 100), step=2.0)
    many = place_rungs(PILOT, independent_rows(300, PILOT, 100), step=1.0)
    assert len(many) == pytest.approx(2 * len(few), abs=2)


@pytest.mark.parametrize("errors", [np.zeros((20, 10)), np.full((20, 10), 7.0)])
def test_rungs_where_nothing_moves(errors: np.ndarray) -> None:
    etas = place_rungs(PILOT, errors)
    assert len(etas) == 6
    assert (np.diff(etas) > 0.0).all()


def test_a_jump_between_two_pilot_rungs_gets_rungs() -> None:
    """The fall of the mean tells of it where neither end of the interval does."""
    etas = np.array([0.0, 1.0, 2.0])
    rng = np.random.default_rng(12)
    errors = np.column_stack([rng.normal(m, 5.0, 500) for m in (500.0, 400.0, 395.0)])
    placed = place_rungs(etas, errors)
    assert np.count_nonzero(placed <= 1.0) > 1.5 * np.count_nonzero(placed >= 1.0)
