"""BNK-16: counts, negative binomial by Polya-Gamma: quadrature, and the joint law of a sweep.

One frequency that stays: both coefficients and the dispersion by quadrature, of small counts and of
large ones, with moves of all coefficients and with steps so short that they do not count. Then the
joint law of all that a sweep draws. False alarm 1e-6.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

from mercer.spectral import class_model, class_sampler
from mercer.spectral.class_model import ClassState, CountModel
from mercer.spectral.class_sampler import ClassChain
from mercer.spectral.rows import MemoryRows
from support import spectral_class_cases as class_cases
from support.mixture_cases import BASES
from support.spectral_cases import plain_design
from support.spectral_class_cases import LINEAR_PRIOR, RIDGE_PRIOR, functions, make_classes
from support.spectral_joint import Joint, n_reference
from support.statistics import (
    dkw_limit,
    few_first,
    largest_z,
    tiers,
    z_limit,
)

Mutant = Callable[[pytest.MonkeyPatch], None]

# Without the moves large counts would take far longer chains than these.
X = np.array([[-1.0], [0.4], [1.5], [0.1], [2.2]])
RIDGE, CENTRE, SPREAD, BATCHES = 0.3, 0.5, 1.0, 50
SMALL, LARGE = (0.0, 3.0, 1.0, 7.0, 0.0), (400.0, 3000.0, 100.0, 7000.0, 0.0)
CHAINS: dict[str, tuple[tuple[float, ...], float, float]] = {
    "small counts": (SMALL, 0.7, 0.9),
    "small counts, hardly any move": (SMALL, 0.7, 1e-9),
    "large counts": (LARGE, 6.0, 0.9),
}
N_COLUMNS = 2 + 2 * len(X)
LIMIT = z_limit(BATCHES, N_COLUMNS * len(CHAINS))


def _sampler(chain: str) -> ClassChain:
    """One frequency, which hardly moves."""
    y, offset, step = CHAINS[chain]
    sampler = make_classes(
        X, np.array(y), has_linear_part=False, is_ridge_learned=False, step=1e-6,
        n_frequencies=1, ridge=RIDGE,
    )  # fmt: skip
    tuning = replace(sampler.tuning, trajectory=step)
    law = CountModel(math.exp(CENTRE), offset, CENTRE, SPREAD)
    return replace(sampler, law=law, tuning=tuning)


def dispersion_of(state: ClassState) -> float:
    assert isinstance(state.law, CountModel)
    return state.law.dispersion


@functools.cache
def _truth(chain: str) -> np.ndarray:
    """First and second moments of log r and of the function at all rows, by quadrature."""
    y, offset, _ = CHAINS[chain]
    W = _sampler(chain).init(np.random.default_rng(90)).frequencies
    ends, log_r = np.linspace(-9.0, 9.0, 181), np.linspace(-5.5, 6.5, 81)
    beta = np.stack(np.meshgrid(ends, ends), axis=-1).reshape(-1, 2)
    f = beta @ plain_design(W, X, False).T
    logs = []
    for each in log_r:
        r, mean = math.exp(each), np.exp(f + offset)
        likelihood = stats.nbinom(r, r / (r + mean)).logpmf(y).sum(axis=1)
        prior = -0.5 * RIDGE * np.square(beta).sum(axis=1)
        logs.append(likelihood + prior - 0.5 * ((each - CENTRE) / SPREAD) ** 2)
    weights = np.exp(np.array(logs) - np.max(logs))
    weights /= weights.sum()
    of_r, of_f = weights.sum(axis=1), weights.sum(axis=0)
    return np.r_[of_r @ log_r, of_r @ log_r**2, of_f @ f, of_f @ f**2]


def _moments(chain: str, n_draws: int) -> np.ndarray:
    sampler, rng = _sampler(chain), np.random.default_rng(90)
    state, found = sampler.init(rng), []
    for _ in range(n_draws + 100):
        state, _ = sampler.step(rng, state)
        log_r, (f,) = math.log(dispersion_of(state)), functions(sampler, state)
        found.append(np.r_[log_r, log_r**2, f, f**2])
    return np.array(found[100:])


@pytest.mark.slow
@pytest.mark.parametrize("n_draws", [4000, 40_000])
@pytest.mark.parametrize("chain", CHAINS)
def test_bnk_16_draws_have_the_moments_of_the_posterior(chain: str, n_draws: int) -> None:
    assert largest_z(_moments(chain, n_draws), _truth(chain), BATCHES) < LIMIT


# The joint law of a sweep.

M, N, N_STEPS = 4, 12, 3
OFFSET = 0.8
STATISTICS = 12
# base, linear part, share of global proposals
CASES = {
    "linear part": ("diagonal, 2 inputs", True, 0.5),
    "full, no linear part": ("full, 1 input", False, 0.0),
}


def _make(case: str) -> ClassChain:
    name, has_linear_part, share = CASES[case]
    base = BASES[name]
    rows = 1.5 * np.random.default_rng(41).standard_normal((N, base.n_inputs))
    sampler = make_classes(
        rows, np.zeros(N), base=base, has_linear_part=has_linear_part, step=0.5,
        global_share=share, n_frequencies=M,
    )  # fmt: skip
    tuning = replace(sampler.tuning, trajectory=0.8)
    law = CountModel(math.exp(CENTRE), OFFSET, CENTRE, SPREAD)
    return replace(sampler, law=law, tuning=tuning)


def _draw_joint(rng: np.random.Generator, sampler: ClassChain) -> tuple[ClassChain, ClassState]:
    """Draw state and counts from their joint law."""
    _, state = class_cases.draw_joint(rng, sampler)
    law = CountModel(math.exp(CENTRE + SPREAD * rng.standard_normal()), OFFSET, CENTRE, SPREAD)
    state = replace(state, law=law)
    return _redraw_counts(rng, sampler, state), state


def _means(sampler: ClassChain, state: ClassState) -> np.ndarray:
    return np.exp(np.clip(functions(sampler, state)[0] + OFFSET, -500.0, 25.0))


def _redraw_counts(rng: np.random.Generator, sampler: ClassChain, state: ClassState) -> ClassChain:
    rows = sampler.rows
    assert isinstance(rows, MemoryRows)
    r = dispersion_of(state)
    rates = _means(sampler, state) * rng.gamma(r, 1.0 / r, N)
    y = rng.poisson(rates).astype(np.float64)
    return replace(sampler, rows=MemoryRows(rows.X, y, rows.has_linear_part))


TWO_SAMPLES = ("log likelihood", "alignment")


def _statistics(
    rng: np.random.Generator, sampler: ClassChain, state: ClassState
) -> dict[str, float]:
    """Values of distribution functions, uniform if the joint law is right; or to be compared."""
    rows, m2, r = sampler.rows, 2 * M, dispersion_of(state)
    assert isinstance(rows, MemoryRows)
    means, beta, Z = _means(sampler, state), state.coef[0], state.mixture.assignment[0]
    # As `stats.nbinom` has it, which takes a millisecond.
    p, y = r / (r + means), rows.y
    log_at = special.gammaln(r + y) - special.gammaln(y + 1.0) - special.gammaln(r)
    log_at += r * np.log(p) + special.xlog1py(y, -p)
    below = special.betainc(r, y + 1.0, p) - rng.random(N) * np.exp(log_at)
    deviation = (state.frequencies[0, 0] - state.mixture.means[Z, 0]) / (
        state.mixture.components.stds[Z, 0]
    )
    ridge = state.ridge[0]
    found = {
        "frequency in its component": special.ndtr(deviation),
        "ridge": special.gammainc(RIDGE_PRIOR.shape, RIDGE_PRIOR.rate * ridge),
        "coefficients": special.chdtr(m2, ridge * beta[:m2] @ beta[:m2]),
        "one coefficient": special.ndtr(math.sqrt(ridge) * beta[1]),
        "dispersion": special.ndtr((math.log(r) - CENTRE) / SPREAD),
        "a count": below[0],
        "largest count": below.max() ** N,
        "log likelihood": log_at.sum(),
        "alignment": np.log1p(rows.y) @ np.log(means),
        "components": state.mixture.n_components,
    }
    if rows.has_linear_part:
        linear, slopes = state.linear_precision[0], beta[m2 + 1 :]
        share = special.gammainc(LINEAR_PRIOR.shape, LINEAR_PRIOR.rate * linear)
        found["linear precision"] = share
        found["slopes"] = special.chdtr(len(slopes), linear * slopes @ slopes)
    return {name: float(value) for name, value in found.items()}


def _joint(rng: np.random.Generator) -> Joint:
    return Joint(
        _draw_joint,
        lambda rng, own, state: (_redraw_counts(rng, own, state), state),
        functools.partial(_statistics, rng),
    )


@functools.cache
def _reference(case: str, n: int) -> dict[str, np.ndarray]:
    """Statistics of n exact draws of state and counts, of those whose law is not known."""
    rng = np.random.default_rng(65)
    found = _joint(rng).reference(rng, _make(case), n)
    return {name: found[name] for name in TWO_SAMPLES}


def _distances(case: str, n: int, seed: int = 91) -> dict[str, float]:
    """Largest difference of distribution functions, for each statistic."""
    rng = np.random.default_rng(seed)
    found = _joint(rng).distances(rng, _make(case), n, N_STEPS, _reference(case, n_reference(n)))
    assert len(found) <= STATISTICS
    return found


def _limit(n: int) -> float:
    return dkw_limit(n, STATISTICS * len(CASES))


@pytest.mark.parametrize("n", tiers(150, 4000))
@pytest.mark.parametrize("case", few_first(CASES, "linear part"))
def test_bnk_16_joint(case: str, n: int) -> None:
    """False alarm 1e-6 over the 24 distances; detects 0.5, with more runs 0.1."""
    found = _distances(case, n)
    assert max(found.values()) < _limit(n), found


# What must be seen.


def forget_the_dispersion_in_the_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polya-Gamma variables of shape y, not y + r."""
    fill = class_model.fill_polya_gamma_of_shapes

    def mutant(rng, b, f, n, omega):
        fill(rng, np.maximum(np.floor(b - 1e-9), 1e-3), f, n, omega)

    monkeypatch.setattr(class_model, "fill_polya_gamma_of_shapes", mutant)


def forget_the_shift(monkeypatch: pytest.MonkeyPatch) -> None:
    """The logit is taken for the logarithm of the mean: log r is left out of pseudo-targets."""
    weigher = CountModel.weigher

    def mutant(self, rng):
        weigh = weigher(self, rng)
        shift = math.log(self.dispersion) - self.offset

        def wrong(f, y):
            omega, weighted = weigh(f, y)
            return omega, weighted - omega * shift

        return wrong

    monkeypatch.setattr(CountModel, "weigher", mutant)


def forget_the_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ratio of the move of all coefficients lacks the proposals."""
    monkeypatch.setattr(class_sampler, "_log_proposal", lambda *given: 0.0)


def take_every_move(monkeypatch: pytest.MonkeyPatch) -> None:
    """All moves of all coefficients are accepted."""
    monkeypatch.setattr(class_sampler.ClassSampler, "_log_posterior", lambda self, *given: 0.0)
    forget_the_way_back(monkeypatch)


def forget_the_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The density of the dispersion lacks Gamma(y + r) / Gamma(r)."""
    monkeypatch.setattr(class_model, "count_log_factor", lambda y, r: np.zeros_like(y))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "chain"),
    [
        (forget_the_dispersion_in_the_shape, "small counts, hardly any move"),
        (forget_the_shift, "small counts, hardly any move"),
        (forget_the_way_back, "large counts"),
        (take_every_move, "large counts"),
        (forget_the_factor, "small counts"),
    ],
)
def test_bnk_16_sees(mutant: Mutant, chain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = _truth(chain)
    mutant(monkeypatch)
    assert largest_z(_moments(chain, 4000), truth, BATCHES) > 1.2 * LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [forget_the_shift, forget_the_factor])
def test_bnk_16_joint_sees(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    _reference("linear part", n_reference(1000))
    mutant(monkeypatch)
    found = _distances("linear part", 1000)
    assert max(found.values()) > 1.2 * _limit(1000), found
