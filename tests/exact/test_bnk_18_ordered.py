"""BNK-18: ordered classes, by thresholds of one function: quadrature, and the joint law of a sweep.

One frequency that stays: coefficients and thresholds by quadrature, where thresholds hold the
level and where the function does. Then the joint law of all that a sweep draws, also with a
trajectory before it. False alarm 1e-6.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from mercer.spectral import class_model
from mercer.spectral.class_model import CLASSES, ClassState, OrderedLaw
from mercer.spectral.class_sampler import ClassChain
from mercer.spectral.model import GammaPrior
from mercer.spectral.rows import MemoryRows
from support import spectral_class_cases as class_cases
from support.mixture_cases import BASES
from support.spectral_cases import plain_design
from support.spectral_class_cases import (
    LINEAR_PRIOR,
    RIDGE_PRIOR,
    draw_codes,
    functions,
    make_classes,
    plain_log_likelihood,
)
from support.spectral_joint import Joint, n_reference
from support.statistics import dkw_limit, few_first, largest_z, tiers, z_limit

Mutant = Callable[[pytest.MonkeyPatch], None]

X = np.array([[-1.0], [0.4], [1.5], [0.1], [2.2], [-0.3]])
Y = np.array([0.0, 1.0, 2.0, 2.0, 1.0, 2.0])
N_THRESHOLDS, PRECISION, RIDGE, BATCHES = 2, 0.3, 0.3, 50
# whether there is a linear part
CHAINS = {"level in the thresholds": False, "level in the function": True}
N_COLUMNS = 2 * (N_THRESHOLDS + len(X))
LIMIT = z_limit(BATCHES, N_COLUMNS * len(CHAINS))


def _ordered(sampler: ClassChain, law: OrderedLaw) -> ClassChain:
    model = replace(sampler.model, intercept_precision=law.level_precision)
    return replace(sampler, model=model, law=law)


def _sampler(chain: str) -> ClassChain:
    """One frequency, which hardly moves, and a precision of 1 of the slope."""
    has_level = CHAINS[chain]
    sampler = make_classes(
        X, Y, has_linear_part=has_level, is_ridge_learned=False, step=1e-6, n_frequencies=1,
        ridge=RIDGE,
    )  # fmt: skip
    model = replace(sampler.model, linear_prior=GammaPrior(1e8, 1e8))
    law = OrderedLaw(np.zeros(N_THRESHOLDS), has_level, PRECISION)
    return _ordered(replace(sampler, model=model), law)


@functools.cache
def _truth(chain: str) -> np.ndarray:
    """First and second moments of thresholds and function at all rows, by Gauss and Hermite."""
    has_level = CHAINS[chain]
    W = _sampler(chain).init(np.random.default_rng(90)).frequencies
    F = plain_design(W, X, has_level)
    of_t = 1.0 / math.sqrt(PRECISION)
    stds = [RIDGE**-0.5] * 2 + [of_t / math.sqrt(2.0), 1.0, of_t / math.sqrt(2.0)] * has_level
    stds += [of_t] * N_THRESHOLDS * (not has_level)
    nodes, weights = np.polynomial.hermite_e.hermegauss(22 if has_level else 30)
    grid = np.stack(np.meshgrid(*[nodes * s for s in stds], indexing="ij"), -1)
    grid = grid.reshape(-1, len(stds))
    prior = functools.reduce(np.multiply.outer, [weights] * len(stds)).ravel()
    f, theta = grid[:, : F.shape[1]] @ F.T, grid[:, F.shape[1] :]
    if has_level:
        theta = np.concatenate([theta, -theta], axis=1)
    likelihood = np.ones(len(grid))
    for i, y in enumerate(Y):
        for k in range(min(int(y) + 1, N_THRESHOLDS)):
            likelihood *= special.expit((1.0 if y == k else -1.0) * (theta[:, k] - f[:, i]))
    p = prior * likelihood / (prior @ likelihood)
    return np.concatenate([p @ theta, p @ theta**2, p @ f, p @ f**2])


def _law(state: ClassState) -> OrderedLaw:
    assert isinstance(state.law, OrderedLaw)
    return state.law


def _moments(chain: str, n_draws: int) -> np.ndarray:
    sampler, rng = _sampler(chain), np.random.default_rng(90)
    state, found = sampler.init(rng), []
    for _ in range(n_draws + 100):
        state, _ = sampler.step(rng, state)
        theta, (f,) = _law(state).thresholds, functions(sampler, state)
        found.append(np.r_[theta, theta**2, f, f**2])
    return np.array(found[100:])


@pytest.mark.slow
@pytest.mark.parametrize("n_draws", [4000, 40_000])
@pytest.mark.parametrize("chain", CHAINS)
def test_bnk_18_draws_have_the_moments_of_the_posterior(chain: str, n_draws: int) -> None:
    assert largest_z(_moments(chain, n_draws), _truth(chain), BATCHES) < LIMIT


def test_bnk_18_the_law_is_that_of_sticks_whose_functions_differ_by_constants() -> None:
    """Masses, slope and curvature; of two classes they are those of the logistic model."""
    rng = np.random.default_rng(3)
    f, y = rng.standard_normal((1, 40)), rng.integers(4, size=40).astype(np.float64)
    law = OrderedLaw(np.array([-1.0, 0.2, 0.8]), True)
    sticks = law.thresholds[:, np.newaxis] - f
    masses = law.masses(f)
    np.testing.assert_allclose(masses.sum(axis=0), 1.0)
    given = masses[y.astype(int), np.arange(40)]
    np.testing.assert_allclose(law.log_mass(f, y), np.log(given), rtol=1e-12)
    assert plain_log_likelihood(sticks, y) == pytest.approx(np.log(given).sum())
    value, slope = law.slope(f, y)
    assert value == pytest.approx(np.log(given).sum())
    ends = (law.log_mass(f + h, y) for h in (-2e-3, -1e-3, 1e-3, 2e-3))
    a, b, c, d = ends
    np.testing.assert_allclose(slope[0], (a - 8.0 * b + 8.0 * c - d) / 0.012, rtol=1e-8)
    weights, weighted = law.curvature(0)(f[0], y)
    np.testing.assert_allclose(weighted, weights * f[0] + slope[0], rtol=1e-12)
    one, both = OrderedLaw(np.zeros(1), True), np.minimum(y, 1.0)
    np.testing.assert_allclose(one.log_mass(f, both), CLASSES.log_mass(f, 1.0 - both))


# The joint law of a sweep.

M, N, N_STEPS = 4, 12, 3
STATISTICS = 14
# base, linear part, share of global proposals, steps of trajectories
CASES = {
    "linear part": ("diagonal, 2 inputs", True, 0.5, 0),
    "trajectories": ("diagonal, 2 inputs", True, 0.5, 3),
    "full, no linear part": ("full, 1 input", False, 0.0, 0),
}


def _make(case: str) -> ClassChain:
    name, has_level, share, n_leapfrog = CASES[case]
    base = BASES[name]
    rows = 1.5 * np.random.default_rng(41).standard_normal((N, base.n_inputs))
    sampler = make_classes(
        rows, np.zeros(N), base=base, has_linear_part=has_level, step=0.5,
        global_share=share, n_frequencies=M, n_leapfrog=n_leapfrog,
    )  # fmt: skip
    return _ordered(sampler, OrderedLaw(np.zeros(3), has_level, PRECISION))


def _draw_joint(rng: np.random.Generator, sampler: ClassChain) -> tuple[ClassChain, ClassState]:
    """Draw state and labels from their joint law."""
    _, state = class_cases.draw_joint(rng, sampler)
    theta = rng.standard_normal(3) / math.sqrt(PRECISION)
    has_level = sampler.rows.has_linear_part
    state = replace(state, law=OrderedLaw(theta - has_level * theta.mean(), has_level, PRECISION))
    return _redraw(rng, sampler, state), state


def _redraw(rng: np.random.Generator, sampler: ClassChain, state: ClassState) -> ClassChain:
    rows = sampler.rows
    assert isinstance(rows, MemoryRows)
    codes = draw_codes(rng, _law(state).thresholds[:, np.newaxis] - functions(sampler, state))
    return replace(sampler, rows=MemoryRows(rows.X, codes, rows.has_linear_part))


TWO_SAMPLES = ("log likelihood", "alignment", "highest class", "components")


def _statistics(sampler: ClassChain, state: ClassState) -> dict[str, float]:
    """Values of distribution functions, uniform if the joint law is right; or to be compared."""
    rows, m2, beta = sampler.rows, 2 * M, state.coef[0]
    assert isinstance(rows, MemoryRows)
    Z, theta, f = state.mixture.assignment[0], _law(state).thresholds, functions(sampler, state)
    deviation = (state.frequencies[0, 0] - state.mixture.means[Z, 0]) / (
        state.mixture.components.stds[Z, 0]
    )
    ridge = state.ridge[0]
    t = theta - (beta[m2] if rows.has_linear_part else 0.0)
    found = {
        "frequency in its component": special.ndtr(deviation),
        "ridge": special.gammainc(RIDGE_PRIOR.shape, RIDGE_PRIOR.rate * ridge),
        "coefficients": special.chdtr(m2, ridge * beta[:m2] @ beta[:m2]),
        "one coefficient": special.ndtr(math.sqrt(ridge) * beta[1]),
        "first threshold": special.ndtr(math.sqrt(PRECISION) * t[0]),
        "last threshold": special.ndtr(math.sqrt(PRECISION) * t[2]),
        "thresholds": special.chdtr(3, PRECISION * t @ t),
        "log likelihood": plain_log_likelihood(theta[:, np.newaxis] - f, rows.y),
        "alignment": rows.y @ f[0],
        "highest class": rows.y.max() + 0.1 * rows.y[0],
        "components": state.mixture.n_components,
    }
    if rows.has_linear_part:
        linear, slopes = state.linear_precision[0], beta[m2 + 1 :]
        share = special.gammainc(LINEAR_PRIOR.shape, LINEAR_PRIOR.rate * linear)
        found["linear precision"] = share
        found["slopes"] = special.chdtr(len(slopes), linear * slopes @ slopes)
        assert abs(theta.sum()) < 5e-7
    return {name: float(value) for name, value in found.items()}


JOINT = Joint(_draw_joint, lambda rng, own, state: (_redraw(rng, own, state), state), _statistics)


@functools.cache
def _reference(case: str, n: int) -> dict[str, np.ndarray]:
    """Statistics of n exact draws of state and labels, of those whose law is not known."""
    found = JOINT.reference(np.random.default_rng(65), _make(case), n)
    return {name: found[name] for name in TWO_SAMPLES}


def _distances(case: str, n: int, seed: int = 91) -> dict[str, float]:
    """Largest difference of distribution functions, for each statistic."""
    rng = np.random.default_rng(seed)
    found = JOINT.distances(rng, _make(case), n, N_STEPS, _reference(case, n_reference(n)))
    assert len(found) <= STATISTICS
    return found


def _limit(n: int) -> float:
    return dkw_limit(n, STATISTICS * len(CASES))


@pytest.mark.parametrize("n", tiers(150, 4000))
@pytest.mark.parametrize("case", few_first(CASES, "linear part"))
def test_bnk_18_joint(case: str, n: int) -> None:
    """False alarm 1e-6 over the 42 distances; detects 0.5, with more runs 0.1."""
    found = _distances(case, n)
    assert max(found.values()) < _limit(n), found


# What must be seen.


def forget_the_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pseudo-targets are those of functions without thresholds."""
    together = OrderedLaw._together

    def mutant(self, weigh):
        zero = replace(self, thresholds=0.0 * self.thresholds)
        whole, part = together(self, weigh), together(zero, weigh)
        return lambda f, y: (whole(f, y)[0], part(f, y)[1])

    monkeypatch.setattr(OrderedLaw, "_together", mutant)


def ask_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows below a threshold are asked about the next ones too."""

    def tasks(self, targets, n_functions):
        for k in range(n_functions):
            yield None, np.where(targets == k, 0.5, -0.5)

    monkeypatch.setattr(class_model.ClassLaw, "tasks", tasks)


def count_the_level_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thresholds keep the level that the function takes."""
    draw = OrderedLaw.draw

    def mutant(self, rng, rows, state, precisions):
        new = draw(self, rng, rows, state, precisions)
        return replace(new, law=replace(new.law, thresholds=new.law.thresholds - new.coef[0, 2]))

    monkeypatch.setattr(OrderedLaw, "draw", mutant)


def forget_the_number_of_coefficients(monkeypatch: pytest.MonkeyPatch) -> None:
    """The density of the scale lacks its Jacobian."""
    step = class_model.slice_step

    def mutant(rng, density, value, nowhere):
        if value != 1.0:
            return step(rng, density, value, nowhere)
        return step(rng, lambda x: density(x) - 4.0 * x, value, nowhere)

    monkeypatch.setattr(class_model, "slice_step", mutant)


def forget_the_prior_of_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """The intercept has hardly any prior."""
    flat = property(lambda self: 1e-3 * self.precision)
    monkeypatch.setattr(OrderedLaw, "level_precision", flat)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "chain"),
    [
        (forget_the_thresholds, "level in the thresholds"),
        (ask_all_rows, "level in the function"),
        (count_the_level_twice, "level in the function"),
        (forget_the_number_of_coefficients, "level in the thresholds"),
        (forget_the_prior_of_the_level, "level in the function"),
    ],
)
def test_bnk_18_sees(mutant: Mutant, chain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = _truth(chain)
    mutant(monkeypatch)
    assert largest_z(_moments(chain, 8000), truth, BATCHES) > 1.2 * LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [ask_all_rows, forget_the_number_of_coefficients])
def test_bnk_18_joint_sees(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    _reference("linear part", n_reference(2000))
    mutant(monkeypatch)
    found = _distances("linear part", 2000)
    assert max(found.values()) > 1.2 * _limit(2000), found
