"""BNK-8: joint moves of one frequency and its coefficients, from exact draws (trap B1).

Frequency and coefficients are drawn from their prior and kept with the probability of the labels:
exact draws of the posterior. After a few sweeps they must have that law still. Long chains do not
see the ratio that the paper prints: it makes them stay where they are.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_expit

from mercer.spectral import class_sampler as joint_sampler
from mercer.spectral.base_measure import DiagonalBase, DiagonalComponents
from mercer.spectral.class_model import signs_of
from mercer.spectral.class_sampler import JointSampler
from mercer.spectral.mixture import MixtureState
from support.spectral_class_cases import make_classes
from support.spectral_joint_moves import move_plain
from support.statistics import FALSE_ALARM, tiers

N, RIDGE, STD = {2: 12, 3: 4}, 0.1, 1.3  # rows for so many classes
N_SWEEPS, N_REFERENCE = 4, 5  # so many exact draws to compare each with
X = 1.5 * np.random.default_rng(15).standard_normal((12, 1))
WAVE = np.sin(1.4 * X[:, 0] + 0.6)
CODES = {2: (WAVE < 0.0).astype(float), 3: 1.0 + np.sign(np.round(WAVE[: N[3]]))}
CASES = [(2, 1.0), (2, 0.6), (3, 1.0)]
N_STATISTICS = 4 + 4 + 7


@functools.cache
def exact(n_classes: int, n_draws: int) -> np.ndarray:
    """Draws (S, 1 + 2 K) of frequency and coefficients."""
    rng, K, kept, n = np.random.default_rng(16), n_classes - 1, [], 0
    codes, x = CODES[n_classes], X[: N[n_classes], 0]
    while n < n_draws:
        W = STD * rng.standard_normal(100_000)
        beta = rng.standard_normal((len(W), K, 2)) / math.sqrt(RIDGE)
        phase, log_p = np.outer(W, x), np.zeros(len(W))
        for k in range(K):
            f = beta[:, k, :1] * np.cos(phase) + beta[:, k, 1:] * np.sin(phase)
            sign = np.where(codes == k, 1.0, -1.0)[codes >= k]
            log_p += log_expit(sign * f[:, codes >= k]).sum(axis=1)
        chosen = np.log(rng.random(len(W))) < log_p
        kept.append(np.column_stack([W[chosen], beta[chosen].reshape(-1, 2 * K)]))
        n += len(kept[-1])
    return np.concatenate(kept)[:n_draws]


def statistics(draws: np.ndarray) -> np.ndarray:
    """Columns that are compared: those drawn, and the length of each pair of coefficients."""
    pairs = draws[:, 1:].reshape(len(draws), -1, 2)
    return np.column_stack([draws, np.linalg.norm(pairs, axis=2)])


def distance(n_classes: int, step: float, n_draws: int) -> float:
    """Largest two-sample distance after some sweeps, as that of one sample."""
    base = DiagonalBase(np.array([1.0]), 1.0, 3.0)
    own_X = X[: N[n_classes]]
    sampler = make_classes(
        own_X, CODES[n_classes], n_classes=n_classes, base=base, has_linear_part=False,
        is_ridge_learned=False, step=step, n_frequencies=1, ridge=RIDGE, kind=JointSampler,
    )  # fmt: skip
    assert isinstance(sampler, JointSampler)
    # The component is given: proposals from the whole mixture would bring others.
    tuning = dataclasses.replace(sampler.tuning, global_share=0.0)
    sampler = dataclasses.replace(sampler, tuning=tuning)
    rng, K = np.random.default_rng(17), n_classes - 1
    draws = exact(n_classes, (1 + N_REFERENCE) * n_draws)
    state = sampler.init(rng)
    components = DiagonalComponents(np.zeros((1, 1)), np.full((1, 1), STD**2))
    mixture = MixtureState(np.zeros(1, dtype=np.int64), components, np.ones(1), 1.0)
    sign, after = signs_of(CODES[n_classes], K), np.empty((n_draws, 1 + 2 * K))
    for i, start in enumerate(draws[:n_draws]):
        W, coef = start[:1, np.newaxis], start[1:].reshape(K, 2).copy()
        own = dataclasses.replace(state, frequencies=W, mixture=mixture)
        f = coef @ np.stack([np.cos(W[0, 0] * own_X[:, 0]), np.sin(W[0, 0] * own_X[:, 0])])
        for _ in range(N_SWEEPS):
            _, W, _ = sampler._sweep(rng, own, own_X, sign, coef, f)
            own = dataclasses.replace(own, frequencies=W)
        after[i] = np.r_[W[0], coef.ravel()]
    pairs = zip(statistics(after).T, statistics(draws[n_draws:]).T, strict=True)
    worst = max(float(stats.ks_2samp(a, b).statistic) for a, b in pairs)
    return worst / (1.0 + math.sqrt(1.0 / N_REFERENCE))


def limit(n_draws: int) -> float:
    """False alarm 1e-6 over all columns of the three cases."""
    return math.sqrt(math.log(4.0 * N_STATISTICS / FALSE_ALARM) / (2.0 * n_draws))


@pytest.mark.parametrize("n_draws", tiers(1_500, 8_000))
@pytest.mark.parametrize(
    ("n_classes", "step"),
    [*(pytest.param(*case, marks=pytest.mark.slow) for case in CASES[:2]), CASES[2]],
)
def test_bnk_8_one_move(n_classes: int, step: float, n_draws: int) -> None:
    """False alarm 1e-6 over all columns of the three cases."""
    assert distance(n_classes, step, n_draws) < limit(n_draws)


def ratio_as_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lap(beta* | W) stands where Lap(beta | W) belongs."""
    mutant = functools.partial(move_plain, is_printed=True)
    monkeypatch.setattr(joint_sampler, "move_jointly", mutant)


@pytest.mark.slow
def test_bnk_8_one_move_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    ratio_as_printed(monkeypatch)
    assert distance(2, 1.0, 3_000) > 1.2 * limit(3_000)
