from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from mercer.errors import NumericalError
from mercer.spectral.model import (
    RIDGE_LIMITS,
    GammaPrior,
    RegressionModel,
    RidgeDensity,
    coefficients,
    design,
    draw_ridge,
    lowest_ridge,
    ridge_density,
)
from mercer.spectral.rows import MemoryRows
from support.spectral_cases import plain_design, problem
from support.statistics import FALSE_ALARM

PRIOR = GammaPrior(1.3, 0.4)
LINEAR_PRECISION = 2.0
CASES = [  # rows, inputs, frequencies, linear part
    (5, 1, 1, False),
    (5, 1, 1, True),
    (6, 2, 10, False),
    (6, 2, 10, True),
    (80, 3, 12, True),
]


def regression(n: int, d: int, m: int, has_linear_part: bool):
    """Model, products and frequencies."""
    X, y = problem(n, d)
    W = np.random.default_rng(2).standard_normal((m, d))
    n_linear = 1 + d if has_linear_part else 0
    model = RegressionModel(n, n_linear, 1.0, 1e-2, PRIOR, GammaPrior(1.0, 1.0))
    return model, MemoryRows(X, y, has_linear_part).gram(W), W


def by_evidence(model: RegressionModel, gram: np.ndarray, m: int, log_ridge: float) -> float:
    """Evidence and prior of the ridge, times the ridge: the density of its logarithm."""
    ridge = math.exp(log_ridge)
    prior = model.prior_precisions(2 * m, ridge, LINEAR_PRECISION)
    evidence = coefficients(model, gram, prior).log_evidence
    return evidence + stats.gamma.logpdf(ridge, PRIOR.shape, scale=1.0 / PRIOR.rate) + log_ridge


@pytest.mark.parametrize("case", CASES)
def test_density_is_evidence_and_prior(case: tuple) -> None:
    model, gram, W = regression(*case)
    density = ridge_density(model, gram, LINEAR_PRECISION)
    x = np.log([1e-5, 1e-3, 0.1, 1.0, 30.0, 1e4])
    mine = np.array([density(each) for each in x])
    plain = np.array([by_evidence(model, gram, len(W), each) for each in x])
    np.testing.assert_allclose(np.diff(mine), np.diff(plain), rtol=1e-9, atol=1e-9)


def test_a_density_without_its_jacobian_is_seen() -> None:
    """Mutant: the density of the ridge in place of that of its logarithm."""
    model, gram, W = regression(80, 3, 12, True)
    density = ridge_density(model, gram, LINEAR_PRECISION)
    mine = [density(x) - x for x in (0.0, 2.0)]
    plain = [by_evidence(model, gram, len(W), x) for x in (0.0, 2.0)]
    assert abs(mine[1] - mine[0] - plain[1] + plain[0]) > 1.0


@pytest.mark.parametrize("n", [6, 300])
def test_at_a_ridge_of_1e_10(n: int) -> None:
    """Against the singular values of the features: with few rows Phi'Phi is singular."""
    model, gram, W = regression(n, 2, 5, False)
    density = ridge_density(model, gram, LINEAR_PRECISION)
    X, y = problem(n, 2)
    U, s, _ = np.linalg.svd(plain_design(W, X, False), full_matrices=True)
    rotated = U.T @ y

    def exact(x: float) -> float:
        ridge, squares = math.exp(x), np.zeros(n)
        squares[: len(s)] = s**2
        log_det = np.log1p(squares / ridge).sum()
        rate = model.noise_rate + 0.5 * np.sum(rotated**2 / (1.0 + squares / ridge))
        evidence = -0.5 * log_det - model.posterior_shape * math.log(rate)
        return evidence + PRIOR.shape * x - PRIOR.rate * ridge

    low = math.log(1e-10)
    found, expected = density(low) - density(0.0), exact(low) - exact(0.0)
    assert found == pytest.approx(expected, abs=1e-4)


def test_the_prior_is_cut_off() -> None:
    model, gram, _ = regression(80, 3, 12, True)
    density = ridge_density(model, gram, LINEAR_PRECISION)
    for limit, inside in zip(np.log(RIDGE_LIMITS), (0.1, -0.1), strict=True):
        assert density(limit - inside) == -math.inf
        assert math.isfinite(density(limit + inside))


@pytest.mark.parametrize("has_linear_part", [False, True])
def test_many_rows_of_a_smooth_function_without_noise(has_linear_part: bool) -> None:
    """Rounding makes products of 40 000 rows indefinite below the least ridge."""
    n, rng = 40_000, np.random.default_rng(0)
    X = rng.standard_normal((n, 1))
    W = rng.standard_normal((48, 1))
    F = design(W, X, has_linear_part)
    bordered = np.vstack([F, np.exp(0.5 * X[:, 0]) - 1.0])
    model = RegressionModel(n, 2 if has_linear_part else 0, 1.0, 1e-9, PRIOR, PRIOR)
    gram = bordered @ bordered.T
    density, least = ridge_density(model, gram, 1.0), model.lifted(1e-12)
    assert math.isfinite(density(math.log(least)))
    coefficients(model, gram, model.prior_precisions(96, 1e-12, 1.0))
    drawn = [draw_ridge(rng, density, least) for _ in range(20)]
    assert min(drawn) >= lowest_ridge(n)
    unsafe = replace(density, lowest=1e-12)  # mutant: as few rows allow
    assert not all(math.isfinite(unsafe(math.log(r))) for r in np.geomspace(1e-12, 1e-11, 20))
    with pytest.raises(NumericalError, match="collinear to working precision at ridge 1e-12"):
        draw_ridge(rng, density, 1e-12)


def test_a_fixed_ridge_has_no_density() -> None:
    _, gram, _ = regression(5, 1, 1, False)
    model = RegressionModel(5, 0, 1.0, 1.0, None, PRIOR)
    with pytest.raises(ValueError, match="fixed"):
        ridge_density(model, gram, 1.0)


def test_a_linear_part_that_is_collinear() -> None:
    """Two equal inputs and no precision of their coefficients."""
    X = np.repeat(np.arange(5.0)[:, np.newaxis], 2, axis=1)
    model = RegressionModel(5, 3, 1.0, 1.0, PRIOR, PRIOR)
    gram = MemoryRows(X, X[:, 0], True).gram(np.ones((1, 2)))
    with pytest.raises(NumericalError):
        ridge_density(model, gram, -1e-4)


def bimodal(x: float) -> float:
    """A skew density of log ridge with two modes that slices of width 1 reach from each other."""
    return float(np.logaddexp(-0.5 * (x / 0.4) ** 2, -0.7 - np.expm1(x - 2.2) + 2.0 * (x - 2.2)))


def of_a_regression() -> RidgeDensity:
    model, gram, _ = regression(6, 2, 10, True)
    return ridge_density(model, gram, LINEAR_PRECISION)


N_RUNS, N_CELLS = 10_000, 16
LIMIT = float(stats.chi2.isf(FALSE_ALARM / 2.0, N_CELLS - 1))


def chi_square(density, rng, take_step=draw_ridge) -> float:
    """One step from exact draws by a fine grid of distribution function, in cells."""
    x = np.linspace(-12.0, 12.0, 6001)
    logs = np.array([density(each) for each in x])
    p = np.exp(logs - logs.max())
    total = np.concatenate([[0.0], np.cumsum(0.5 * (p[1:] + p[:-1]))])
    total /= total[-1]
    start = np.interp(rng.random(N_RUNS), total, x)
    new = [math.log(take_step(rng, density, math.exp(each))) for each in start]
    cells = np.minimum((np.interp(new, x, total) * N_CELLS).astype(int), N_CELLS - 1)
    counts = np.bincount(cells, minlength=N_CELLS)
    expected = N_RUNS / N_CELLS
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("make", [lambda: bimodal, of_a_regression], ids=["bimodal", "regression"])
def test_slices_leave_the_density_invariant(make) -> None:
    """False alarm 1e-6; detects cells that are off by a tenth."""
    assert chi_square(make(), np.random.default_rng(3)) < LIMIT


class LowEndAtTheState:
    """A generator by which the slice begins at the state, and steps out to the other side only."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng, self._n_calls = rng, 0

    def integers(self, n: int) -> int:
        return 0

    def random(self) -> float:
        self._n_calls += 1
        return 0.0 if self._n_calls == 2 else self._rng.random()


def test_slices_that_lie_to_one_side_are_seen() -> None:
    """Mutant: the first slice is not placed at random."""
    found = chi_square(
        bimodal,
        np.random.default_rng(3),
        lambda rng, density, ridge: draw_ridge(LowEndAtTheState(rng), density, ridge),
    )
    assert found > 1.5 * LIMIT
