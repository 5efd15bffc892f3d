"""KGS-1: probabilities of sign patterns, and evidences from them: the oracles of all KGS tests."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mercer.likelihoods.label_noise import fixed_rate
from support.sphere_cases import (
    Arcs,
    equicorrelated_error_law,
    equicorrelated_gram,
    equicorrelated_log_z,
    equicorrelated_log_z_by_quadrature,
    error_law,
    exact_draws,
    noises,
    noisy_gram,
    noisy_rows,
    orthant_probability,
    pattern_number,
    pattern_posterior,
    pattern_probabilities,
    pattern_probabilities_by_cdf,
    patterns,
    powered,
    signed,
)


def evidence(G: np.ndarray, q: float) -> float:
    """Z(q), the sum over patterns of P q^e (1 - q)^(n - e)."""
    e, n = patterns(len(G)).sum(axis=1), len(G)
    return float(pattern_probabilities(G) @ (q**e * (1.0 - q) ** (n - e)))


def arcsine_error(used: np.ndarray, G: np.ndarray) -> float:
    """Largest error of the patterns of ``used`` against the arcsines of G, n = 2 or 3."""
    scale = np.sqrt(G.diagonal())
    n, worst = len(G), 0.0
    for k, is_wrong in enumerate(patterns(n)):
        s = np.where(is_wrong, -1.0, 1.0)
        R = G / np.outer(scale, scale) * np.outer(s, s)
        angles = sum(math.asin(R[i, j]) for i in range(n) for j in range(i))
        exact = {2: 1 / 4 + angles / (2 * math.pi), 3: 1 / 8 + angles / (4 * math.pi)}[n]
        worst = max(worst, abs(pattern_probabilities(used)[k] - exact))
    return worst


@pytest.mark.parametrize("n", [2, 3])
def test_kgs_1_two_and_three_rows_by_arcsines(n: int) -> None:
    G = signed(*noisy_gram(n))
    assert arcsine_error(G, G) < 1e-12


def test_kgs_1_sees_labels_left_out() -> None:
    G, _ = noisy_gram(3)
    assert arcsine_error(G, signed(G, np.array([1.0, 1.0, -1.0]))) > 0.1


@pytest.mark.parametrize("n", [4, 5, 6])
def test_kgs_1_patterns_of_rank_two_are_arcs(n: int) -> None:
    """Up to six rows in the plane: Plackett's integral against lengths of arcs, to 1e-7."""
    L = noisy_rows(n, 2)
    arcs = Arcs.of(L, fixed_rate(0.5, n))
    by_arcs = np.bincount(arcs.is_wrong @ 2 ** np.arange(n), arcs.mass, minlength=2**n)
    np.testing.assert_allclose(pattern_probabilities(L @ L.T), by_arcs, atol=1e-7, rtol=0.0)


@pytest.mark.parametrize("n", [4, 5, 6])
def test_kgs_1_patterns_against_scipy(n: int) -> None:
    """The quasi-random function is asked for 1e-5; the integral moves by 1e-7 with its order."""
    G = signed(*noisy_gram(n))
    np.testing.assert_allclose(
        pattern_probabilities(G), pattern_probabilities_by_cdf(G), atol=1e-4, rtol=0.0
    )
    scale = np.sqrt(G.diagonal())
    R = G / np.outer(scale, scale)
    assert orthant_probability(R, 24) == pytest.approx(orthant_probability(R, 32), abs=1e-7)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_kgs_1_evidence_at_one_half(n: int) -> None:
    G = signed(*noisy_gram(n))
    assert evidence(G, 0.5) == pytest.approx(0.5**n, rel=1e-12)
    for q in (0.0, 0.1, 0.5):
        log_evidence = pattern_posterior(G, fixed_rate(q, n))[1]
        assert log_evidence == pytest.approx(math.log(evidence(G, q)), abs=1e-12)


def test_kgs_1_sees_a_halved_cost() -> None:
    G, halved = signed(*noisy_gram(5)), powered(fixed_rate(0.1, 5), 0.5)
    assert abs(math.log(evidence(G, 0.1)) - pattern_posterior(G, halved)[1]) > 0.1


def test_kgs_1_equicorrelated_rows() -> None:
    for n in (2, 5, 6):
        G = equicorrelated_gram(n)
        np.testing.assert_allclose(error_law(G), equicorrelated_error_law(n), atol=1e-12)
    for n in (1, 6, 100, 1000):
        for eta in (0.0, 1e-3, 0.5, 3.0, 9.0, 40.0):
            exact = equicorrelated_log_z(eta, n)
            assert exact == pytest.approx(equicorrelated_log_z_by_quadrature(eta, n), abs=1e-7)


@pytest.mark.parametrize("kind", noises(6))
def test_kgs_1_arcs_for_every_noise(kind: str) -> None:
    L, noise = noisy_rows(6, 2), noises(6)[kind]
    arcs = Arcs.of(L, noise)
    posterior, log_evidence = pattern_posterior(L @ L.T, noise)
    by_arcs = np.bincount(arcs.is_wrong @ 2 ** np.arange(6), arcs.mass, minlength=64)
    np.testing.assert_allclose(by_arcs, posterior, atol=1e-7)
    assert arcs.log_evidence == pytest.approx(log_evidence, abs=1e-7)


def chi_square(L: np.ndarray, drawn_from: np.ndarray, noise) -> tuple[float, int]:
    """Statistic of 20 000 rejection draws against the enumerated posterior, and its freedom."""
    count = 20_000
    g = exact_draws(np.random.default_rng(3), drawn_from, noise, count)
    seen = np.bincount(pattern_number(g @ L.T), minlength=2 ** len(L))
    expected = count * pattern_posterior(L @ L.T, noise)[0]
    is_large = expected >= 20.0
    pooled = np.append(expected[is_large], expected[~is_large].sum())
    observed = np.append(seen[is_large], seen[~is_large].sum())
    return float(((observed - pooled) ** 2 / np.maximum(pooled, 1e-9)).sum()), int(is_large.sum())


def test_kgs_1_exact_draws() -> None:
    """False alarm 1e-6."""
    from scipy.stats import chi2

    L, noise = noisy_rows(4, 3), noises(4)["learned per class"]
    statistic, freedom = chi_square(L, L, noise)
    assert statistic < chi2.isf(1e-6, freedom)
    # Mutant: the last label turned round for the draws.
    mutant, freedom = chi_square(L, np.diag([1.0, 1.0, 1.0, -1.0]) @ L, noise)
    assert mutant > 2.0 * chi2.isf(1e-6, freedom)
