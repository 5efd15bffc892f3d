"""BNK-5: the accept loop of a sweep against recomputing every candidate from scratch."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from mercer.spectral import sampler as halving
from mercer.spectral.sampler import Decisions, decide
from support.spectral_cases import make_spectral, plain_design, problem

SHAPE, RATE = 1.0, 0.05


@dataclasses.dataclass(frozen=True)
class Sweep:
    """All products of one sweep: columns 4 j .. 4 j + 3, then linear columns, then targets."""

    products: np.ndarray
    log_uniform: np.ndarray
    shape: float
    ridge: float
    linear_precisions: np.ndarray

    @property
    def m(self) -> int:
        return len(self.log_uniform)

    def joint(self) -> np.ndarray:
        """What the accept loop is given: the linear part eliminated, the ridge added."""
        m4 = 4 * self.m
        outer = [*range(m4), len(self.products) - 1]
        inner = np.arange(m4, len(self.products) - 1)
        P = self.products
        A = P[np.ix_(inner, inner)] + np.diag(self.linear_precisions)
        across = P[np.ix_(inner, outer)]
        joint = P[np.ix_(outer, outer)] - across.T @ np.linalg.solve(A, across)
        joint[np.arange(m4), np.arange(m4)] += self.ridge
        joint[np.triu_indices(m4 + 1, 1)] = np.nan  # never looked at
        return np.asfortranarray(joint)

    def log_density(self, first: np.ndarray) -> float:
        """Evidence up to a constant; ``first`` (M,) are the columns of the cosines."""
        m4 = 4 * self.m
        columns = np.r_[np.ravel([first, first + 1], "F"), m4 : len(self.products) - 1]
        prior = np.r_[np.full(2 * self.m, self.ridge), self.linear_precisions]
        A = self.products[np.ix_(columns, columns)] + np.diag(prior)
        b, square = self.products[columns, -1], self.products[-1, -1]
        L = np.linalg.cholesky(A)
        w = solve_triangular(L, b, lower=True)
        rate = RATE + 0.5 * (square - w @ w)
        return -self.shape * math.log(rate) - float(np.log(np.diag(L)).sum())

    def from_scratch(self) -> Decisions:
        """One frequency after the other, with a factorisation for each candidate."""
        first = 4 * np.arange(self.m)
        here = self.log_density(first)
        is_accepted, log_ratio = np.zeros(self.m, dtype=bool), np.empty(self.m)
        for j in range(self.m):
            candidate = first.copy()
            candidate[j] += 2
            there = self.log_density(candidate)
            log_ratio[j] = there - here
            if self.log_uniform[j] < log_ratio[j]:
                is_accepted[j], first, here = True, candidate, there
        return Decisions(is_accepted, log_ratio)

    def decided(self) -> Decisions:
        return decide(self.joint(), self.log_uniform, self.shape, RATE)


def make(
    m: int, n: int, has_linear_part: bool, W=None, proposed=None, ridge: float = 0.05
) -> Sweep:
    X, y = problem(n, 3)
    rng = np.random.default_rng(m)
    W = rng.standard_normal((m, 3)) if W is None else W
    proposed = W + 0.5 * rng.standard_normal((m, 3)) if proposed is None else proposed
    both = [plain_design(V, X, False).reshape(n, m, 2) for V in (W, proposed)]
    F = np.concatenate(both, axis=2).reshape(n, 4 * m)
    H = np.column_stack([np.ones(n), X]) if has_linear_part else np.empty((n, 0))
    C = np.column_stack([F, H, y])
    linear_precisions = np.array([1e-4, 1.0, 1.0, 1.0]) if has_linear_part else np.empty(0)
    log_uniform = np.log(rng.random(m))
    return Sweep(C.T @ C, log_uniform, SHAPE + 0.5 * n, ridge, linear_precisions)


def check(sweep: Sweep, tolerance: float) -> Decisions:
    mine, plain = sweep.decided(), sweep.from_scratch()
    np.testing.assert_array_equal(mine.is_accepted, plain.is_accepted)
    np.testing.assert_allclose(mine.log_ratio, plain.log_ratio, rtol=0.0, atol=tolerance)
    return mine


@pytest.mark.parametrize("has_linear_part", [False, True])
@pytest.mark.parametrize("m", [1, 2, 3, 12, 23, 24, 25, 37, 64])
def test_bnk_5_decisions(m: int, has_linear_part: bool) -> None:
    """Ratios to 1e-10 nats; also fewer rows than features."""
    for n in (5, 60, 400):
        decisions = check(make(m, n, has_linear_part), 1e-10)
    if m > 10:
        assert 0 < decisions.is_accepted.sum() < m


@pytest.mark.slow
def test_bnk_5_decisions_384() -> None:
    check(make(384, 1500, True), 1e-9)


@pytest.mark.parametrize("m", [1, 12, 30])
def test_bnk_5_a_proposal_that_is_no_other(m: int) -> None:
    """W* = W: the ratio is 1, and every such proposal is accepted."""
    W = np.random.default_rng(1).standard_normal((m, 3))
    decisions = check(make(m, 60, True, W, W), 1e-10)
    np.testing.assert_allclose(decisions.log_ratio, 0.0, atol=1e-10)
    assert decisions.is_accepted.all()


@pytest.mark.parametrize("m", [2, 14, 30])
def test_bnk_5_equal_frequencies(m: int) -> None:
    """Current ones equal, proposals equal, a proposal equal to another frequency, and W* = -W."""
    rng = np.random.default_rng(2)
    W, proposed = rng.standard_normal((2, m, 3))
    W[-1], proposed[-1] = W[0], proposed[0]
    check(make(m, 60, True, W, proposed), 1e-10)
    check(make(m, 60, False, W, W[::-1]), 1e-10)
    opposite = check(make(m, 60, True, W, -W), 1e-10)
    np.testing.assert_allclose(opposite.log_ratio, 0.0, atol=1e-10)


def test_bnk_5_no_frequency_at_all() -> None:
    """Of w = 0 the sine vanishes: the ridge alone keeps the matrix positive definite."""
    W = np.random.default_rng(3).standard_normal((20, 3))
    zero = np.zeros_like(W)
    check(make(20, 60, False, W, zero), 1e-8)
    check(make(20, 60, False, zero, W), 1e-8)


def exchange_cosines_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trap B4: a change of rank 2, the proposed cosine beside the current sine."""
    decide_few = halving.decide_few

    def mutant(joint, *rest):
        place = np.arange(len(joint))
        place[3:-1:4] -= 2  # the proposed sines
        whole = np.tril(joint) + np.tril(joint, -1).T
        decide_few(np.asfortranarray(whole[np.ix_(place, place)]), *rest)

    monkeypatch.setattr(halving, "decide_few", mutant)


def test_b4_half_an_exchange_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange_cosines_only(monkeypatch)
    sweep = make(6, 60, True)
    difference = sweep.decided().log_ratio[0] - sweep.from_scratch().log_ratio[0]
    assert abs(difference) > 1e-3


@pytest.mark.parametrize("has_linear_part", [False, True])
def test_bnk_5_products_do_not_drift(has_linear_part: bool) -> None:
    """After 10 000 exchanges the products are those of the frequencies."""
    X, y = problem(50, 2)
    sampler = make_spectral(X, y, has_linear_part=has_linear_part, n_frequencies=20, step=0.1)
    rng = np.random.default_rng(4)
    state, n_exchanged = sampler.init(rng), 0.0
    while n_exchanged < 10_000:
        state, info = sampler.step(rng, state)
        n_exchanged += info.acceptance_rate * 20
    expected = sampler.rows.gram(state.frequencies)
    np.testing.assert_allclose(state.gram, expected, rtol=0.0, atol=1e-8)
    F = np.column_stack([plain_design(state.frequencies, X, has_linear_part), y])
    np.testing.assert_allclose(state.gram, F.T @ F, rtol=0.0, atol=1e-8)
