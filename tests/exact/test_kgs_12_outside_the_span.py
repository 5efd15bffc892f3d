"""KGS-12: the part of f outside the span of the training rows belongs to P(f > 0)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from mercer.likelihoods.label_noise import fixed_rate
from mercer.sphere.prediction import class_probability, votes
from mercer.sphere.sampler import signed_rows
from mercer.sphere.space import Covariance, KernelSpace
from support.sphere_cases import exact_draws, orthant_probability
from support.statistics import FALSE_ALARM

LABELS, RATE, COUNT = np.array([1, 0]), 0.05, 100_000
# Of two training rows and a new one: the first three inputs of a kernel that is this table.
G = np.array([[1.0, 0.35, -0.2], [0.35, 1.0, 0.6], [-0.2, 0.6, 1.0]])


def table(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return G[np.ix_(X[:, 0].astype(int), Z[:, 0].astype(int))]


def simulated() -> tuple[float, float]:
    """P(f_2 > 0 | labels) and its standard error: (f_0, f_1, f_2) drawn together and weighed."""
    rng = np.random.default_rng(51)
    f = rng.standard_normal((COUNT, 3)) @ np.linalg.cholesky(G).T
    weight = np.where(f[:, :2] * [1.0, -1.0] > 0.0, 1.0 - RATE, RATE).prod(axis=1)
    is_positive = f[:, 2] > 0.0
    p = (weight @ is_positive) / weight.sum()
    return p, float(np.sqrt(weight**2 @ (is_positive - p) ** 2) / weight.sum())


def by_orthants() -> float:
    """The same from eight orthants."""
    total = np.zeros(2)
    for s in np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T:
        likelihood = np.where(s[:2] * [1, -1] > 0, 1.0 - RATE, RATE).prod()
        p = likelihood * orthant_probability(G * np.outer(s, s))
        total += [p * (s[2] > 0), p]
    return float(total[0] / total[1])


def span_and_full() -> tuple[float, float, float]:
    """Share of votes of the span alone; mean of P(f > 0 | draw) and its standard error."""
    X = np.array([[0.0], [1.0]])
    space = KernelSpace(Covariance(table, np.empty(0), 1.0, 0.0), X, 0.0)
    design, rng = space.design(), np.random.default_rng(52)
    g = exact_draws(rng, signed_rows(design.L, LABELS), fixed_rate(RATE, 2), COUNT)
    means, spread = space.latent(np.array([[2.0]]), space.coefficients(design, g))
    known = G[2, :2] @ np.linalg.solve(G[:2, :2], G[:2, 2])
    assert spread[0] == pytest.approx(np.sqrt(1.0 - known), rel=1e-10)
    p = class_probability(means, spread)[:, 1, 0]
    return votes(means)[0, 1] / COUNT, float(p.mean()), float(p.std() / np.sqrt(COUNT))


def z_of(p: float, error: float) -> float:
    """Against the simulation."""
    truth, own = simulated()
    return abs(p - truth) / np.hypot(own, error)


def test_kgs_12_probability_by_simulation() -> None:
    """Two independent standard errors: false alarm 1e-6 at 4.9."""
    _, p, error = span_and_full()
    assert z_of(p, error) < norm.isf(0.5 * FALSE_ALARM)
    assert abs(p - by_orthants()) < norm.isf(0.5 * FALSE_ALARM) * error
    assert error < 0.002


def test_kgs_12_sees_the_span_alone() -> None:
    """The vote of the span is far off: it is another quantity."""
    vote, p, _ = span_and_full()
    assert abs(vote - p) > 0.05
    assert z_of(vote, np.sqrt(0.25 / COUNT)) > 20.0
