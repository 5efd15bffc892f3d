"""Contaminated noise: what is known of its shares in closed form; a table with wrong targets."""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, gammaln

from mercer.likelihoods import label_noise
from mercer.likelihoods.label_noise import N_KINDS, SIZES, WIDTHS
from mercer.posterior.predictive import StudentMixture

Array = np.ndarray
FIRST_SIZE = len(WIDTHS)  # the first kind that is wrong


def table(n: int, seed: int = 0, largest: float = 3.0) -> tuple[Array, Array, Array, Array]:
    """Rows, targets, which of these are wrong (by 1 to ``largest``), and the function."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, 2))
    f = np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1]
    y = f + 0.1 * rng.standard_normal(n)
    wrong = np.zeros(n, bool)
    wrong[rng.choice(n, n // 12, replace=False)] = True
    y[wrong] += rng.choice([-1.0, 1.0], wrong.sum()) * rng.uniform(1.0, largest, wrong.sum())
    return X, y, wrong, f


def _beta_laws(codes: Array) -> tuple[Array, Array]:
    """Parameters of the laws of r and q given kinds (C, n), (4, C), and counts of sizes (C, 11)."""
    counts = (codes[..., np.newaxis] == np.arange(N_KINDS)).sum(axis=1)
    right, wrong = counts[:, :FIRST_SIZE], counts[:, FIRST_SIZE:]
    above = right @ np.arange(FIRST_SIZE)
    laws = np.array(
        [
            label_noise.N_WRONG + wrong.sum(axis=1),
            label_noise.N_RIGHT + right.sum(axis=1),
            label_noise.N_WIDE + above,
            label_noise.N_NARROW + right[:, :-1].sum(axis=1),
        ]
    )
    return laws, wrong


def log_prior_of_kinds(codes: Array) -> Array:
    """Log probability of kinds (C, n), (C,), up to a constant: the shares are integrated out."""
    (a, b, wide, narrow), wrong = _beta_laws(codes)
    prior = label_noise.N_SIZES * label_noise.SHARES
    of_sizes = (gammaln(prior + wrong) - gammaln(prior)).sum(axis=1)
    of_sizes -= gammaln(label_noise.N_SIZES + wrong.sum(axis=1))
    return betaln(a, b) + betaln(wide, narrow) + of_sizes


def mean_shares(codes: Array) -> Array:
    """Mean given kinds (C, n) of the rate, the shares of kind 1 and of the size 1, (C, 3)."""
    (a, b, wide, narrow), wrong = _beta_laws(codes)
    rate, both = a / (a + b), wide + narrow
    first_wide = wide * narrow / (both * (both + 1.0))  # E q (1 - q)
    place = int(np.flatnonzero(SIZES == 1.0)[0])
    of_size = (label_noise.N_SIZES * label_noise.SHARES[place] + wrong[:, place]) / (
        label_noise.N_SIZES + wrong.sum(axis=1)
    )
    return np.column_stack([rate, (1.0 - rate) * first_wide, rate * of_size])


def drawn_shares(log_shares: Array) -> Array:
    """The same of drawn shares (S, 15), (S, 3)."""
    place = FIRST_SIZE + int(np.flatnonzero(SIZES == 1.0)[0])
    shares = np.exp(log_shares)
    return np.column_stack([shares[:, FIRST_SIZE:].sum(axis=1), shares[:, 1], shares[:, place]])


def forget_the_sizes(rng: np.random.Generator, counts: Array) -> Array:
    """A mutant of `draw_shares`: all errors are taken for ones of the most frequent size."""
    other = counts.copy()
    other[FIRST_SIZE:] = 0
    other[FIRST_SIZE + int(np.argmax(label_noise.SHARES))] = counts[FIRST_SIZE:].sum()
    return label_noise.draw_shares(rng, other)


def forget_the_tails(rng: np.random.Generator, counts: Array) -> Array:
    """A mutant of `draw_shares`: all right targets are taken for ones of the first kind."""
    other = counts.copy()
    other[1:FIRST_SIZE] = 0
    other[0] = counts[:FIRST_SIZE].sum()
    return label_noise.draw_shares(rng, other)


def with_one_normal(law: StudentMixture) -> StudentMixture:
    """A mutant: in place of the kinds of each function one normal law of the same variance."""
    shares = law.weights.reshape(-1, law.n_kinds)
    weights = shares.sum(axis=1)
    scales = np.broadcast_to(law.scales, law.locations.shape)
    squares = np.square(scales).reshape(len(scales), -1, law.n_kinds)
    stds = np.sqrt((squares * shares).sum(axis=2) / weights)
    return StudentMixture(law.locations[:, :: law.n_kinds], stds, weights, np.inf)


def zeros_then_a_line(n: int) -> tuple[Array, Array, Array, Array]:
    """Rows, targets that are 0 and then a line with noise, which are wrong, and the function."""
    rng = np.random.default_rng(0)
    x = np.linspace(0.0, 1.0, n)
    f = np.maximum(0.0, 5.0 * (x - 0.55))
    y = np.where(f > 0.0, f + 0.1 * rng.standard_normal(n), 0.0)
    wrong = np.zeros(n, bool)
    wrong[rng.choice(n, n // 15, replace=False)] = True
    y[wrong] += rng.uniform(0.8, 2.0, wrong.sum())
    return x[:, np.newaxis], y, wrong, f


def far_and_right(n: int, seed: int) -> tuple[Array, Array]:
    """Rows, and targets that are right, whose noise is four times as wide in one of seven."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, 2))
    wide = np.where(rng.random(n) < 0.15, 0.4, 0.1)
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1] + wide * rng.standard_normal(n)


def coverage(law: StudentMixture, y: Array) -> Array:
    """Shares of targets within the central intervals of 50, 80, 90 and 99 %."""
    ends = [law.interval(level) for level in (0.5, 0.8, 0.9, 0.99)]
    return np.array([np.mean((lower <= y) & (y <= upper)) for lower, upper in ends])
