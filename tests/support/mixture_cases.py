"""Partitions, posteriors of them by enumeration, and small mixtures of frequencies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from scipy.special import digamma, gammaln
from scipy.stats import multivariate_t, t

from mercer.spectral.base_measure import BaseMeasure, DiagonalBase, FullBase, ScalePrior

CONCENTRATION = 1.3

BASES: dict[str, BaseMeasure] = {
    "diagonal, 1 input": DiagonalBase(np.array([0.5]), 0.2, 3.0),
    "diagonal, 2 inputs": DiagonalBase(np.array([0.5, 0.2]), 0.2, 3.0),
    "full, 1 input": FullBase(np.array([[0.4]]), 0.2, 4.0),
    "full, 2 inputs": FullBase(np.array([[0.5, 0.2], [0.2, 0.3]]), 0.2, 4.5, np.array([0.8])),
}


def frequencies(n: int, d: int, seed: int = 1) -> np.ndarray:
    """Two loose groups."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) * 0.5 + np.where(np.arange(n) % 2, 1.2, -0.3)[:, None]


def partitions(n: int) -> Iterator[tuple[int, ...]]:
    """All partitions of n, parts numbered in the order of their first members."""

    def extend(labels: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(labels) == n:
            yield labels
            return
        for k in range(max(labels) + 2):
            yield from extend((*labels, k))

    yield from extend((0,))


def canonical(assignment: np.ndarray) -> tuple[int, ...]:
    """Parts renumbered in the order of their first members."""
    seen: dict[int, int] = {}
    return tuple(seen.setdefault(int(k), len(seen)) for k in assignment)


def seating_log_probability(labels: tuple[int, ...], concentration: float) -> float:
    """One frequency after the other: m_k / (i + alpha), or alpha / (i + alpha)."""
    total = 0.0
    for i, k in enumerate(labels):
        members = labels[:i].count(k)
        total += np.log((members or concentration) / (i + concentration))
    return total


def log_marginal(base: BaseMeasure, W: np.ndarray) -> float:
    """Log density of frequencies W (m, d) that share one component: each given those before it.

    What is known of (mu, Sigma) turns from (kappa, nu, mean, Psi) into that with one frequency
    more; a frequency then follows t(mean, (1 + 1/kappa) Psi / degrees), input by input for a
    diagonal base.
    """
    is_full = isinstance(base, FullBase)
    total, kappa, nu, mean = 0.0, base.kappa0, base.nu0, np.zeros(base.n_inputs)
    psi = base.scale[0] * base.psi if is_full else np.diag(base.scale)
    degrees = 1.0 - base.n_inputs if is_full else 0.0
    for w in W:
        shape = (1.0 + 1.0 / kappa) / (nu + degrees) * psi
        if is_full:
            total += multivariate_t(mean, shape, nu + degrees).logpdf(w)
        else:
            total += t(nu, mean, np.sqrt(shape.diagonal())).logpdf(w).sum()
        apart = w - mean
        square = np.outer(apart, apart) if is_full else np.diag(apart**2)
        psi = psi + kappa / (kappa + 1.0) * square
        mean = mean + apart / (kappa + 1.0)
        kappa, nu = kappa + 1.0, nu + 1.0
    return float(total)


def partition_posterior(
    base: BaseMeasure, W: np.ndarray, concentration: float
) -> dict[tuple[int, ...], float]:
    """p(Z | W) for every partition."""
    marginals: dict[tuple[int, ...], float] = {}

    def marginal(members: tuple[int, ...]) -> float:
        if members not in marginals:
            marginals[members] = log_marginal(base, W[list(members)])
        return marginals[members]

    logs = {}
    for labels in partitions(len(W)):
        groups = [
            tuple(i for i, own in enumerate(labels) if own == k) for k in range(max(labels) + 1)
        ]
        prior = seating_log_probability(labels, concentration)
        logs[labels] = prior + sum(marginal(group) for group in groups)
    return _normalised(logs)


def signed_posterior(base: BaseMeasure, W: np.ndarray, concentration: float) -> dict:
    """p(Z, s | W up to signs) for every partition and all signs: keys (labels, signs)."""
    logs = {}
    for signs in itertools.product((1, -1), repeat=len(W)):
        turned = np.array(signs)[:, np.newaxis] * W
        for labels in partitions(len(W)):
            groups = [np.array(labels) == k for k in range(max(labels) + 1)]
            prior = seating_log_probability(labels, concentration)
            logs[labels, signs] = prior + sum(log_marginal(base, turned[g]) for g in groups)
    return _normalised(logs)


def _normalised(logs: dict) -> dict:
    values = np.array(list(logs.values()))
    p = np.exp(values - values.max())
    return dict(zip(logs, p / p.sum(), strict=True))


class ShiftedBeta:
    """A generator whose beta draws have a first parameter smaller by one."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.random, self.gamma = rng.random, rng.gamma
        self.beta = lambda a, b: rng.beta(a - 1.0, b)


def halve_the_count(monkeypatch) -> None:
    """Half of the degrees of freedom of the components are forgotten when a scale is drawn."""
    draw = ScalePrior.draw_posterior
    monkeypatch.setattr(
        ScalePrior,
        "draw_posterior",
        lambda self, rng, half_count, half_sum: draw(self, rng, 0.5 * half_count, half_sum),
    )


def log_partition_probability(counts: np.ndarray, concentration: float) -> float:
    """Log probability of one partition, given the sizes (K,) of its parts.

    alpha^K prod_k (m_k - 1)! Gamma(alpha) / Gamma(alpha + M).
    """
    n = float(np.sum(counts))
    normaliser = gammaln(concentration) - gammaln(concentration + n)
    return float(len(counts) * math.log(concentration) + gammaln(counts).sum() + normaliser)


def expected_components(n_frequencies: int, concentration: float) -> float:
    """Mean number of parts, sum over i < M of alpha / (alpha + i)."""
    return float(concentration * (digamma(concentration + n_frequencies) - digamma(concentration)))
