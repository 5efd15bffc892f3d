"""BNK-15: noise that is contaminated or Student's t: enumeration, quadrature, the joint law.

One frequency that stays: three rows of fifteen kinds each, 3375 cases on a grid of the variance of
the noise, the shares of kinds and the function integrated out; Student's t by quadrature over
coefficients, scale and degrees of freedom. False alarm 1e-6.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from scipy import special, stats

from mercer.likelihoods import label_noise
from mercer.likelihoods.label_noise import N_KINDS
from mercer.spectral import model as spectral_model
from mercer.spectral.model import ContaminatedNoise, StudentNoise
from mercer.spectral.prediction import FunctionDraws, target_laws
from mercer.spectral.sampler import SpectralSampler, SpectralState
from support.contaminated import (
    FIRST_SIZE,
    drawn_shares,
    forget_the_sizes,
    forget_the_tails,
    log_prior_of_kinds,
    mean_shares,
)
from support.mixture_cases import BASES
from support.spectral_cases import (
    LINEAR_PRIOR,
    NOISE,
    RIDGE_PRIOR,
    draw_joint,
    drawn_coef,
    make_spectral,
    plain_design,
    redraw_targets,
)
from support.spectral_joint import Joint
from support.statistics import dkw_limit, few_first, largest_z, tiers, z_limit

X = np.array([[-1.0], [0.4], [1.5]])
Y = np.array([0.5, -0.3, 7.0])
RIDGE, BATCHES = 0.2, 50
LOG_VARIANCE = np.linspace(-4.0, 6.0, 121)


def _sampler(noise: str) -> SpectralSampler:
    """One frequency, which hardly moves."""
    return make_spectral(
        X, Y, has_linear_part=False, is_ridge_learned=False, step=1e-6, n_frequencies=1,
        ridge=RIDGE, noise=noise,
    )  # fmt: skip


def _start(sampler: SpectralSampler) -> tuple[np.random.Generator, SpectralState]:
    rng = np.random.default_rng(90)
    return rng, sampler.init(rng)


def _log_prior_of_variance() -> np.ndarray:
    """Density of the logarithm on the grid."""
    a, b = NOISE
    return -a * LOG_VARIANCE - b * np.exp(-LOG_VARIANCE)


def _contaminated(rows: list[int]) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
    """P(wrong), means of shares, E log s2 given some rows, and the mean of the function at all."""
    F = plain_design(_start(_sampler("contaminated"))[1].frequencies, X, False)
    n, kinds = len(rows), np.array(list(itertools.product(range(N_KINDS), repeat=len(rows))))
    log_prior = log_prior_of_kinds(kinds)
    logs, means = [], []
    for log_variance, of_variance in zip(LOG_VARIANCE, _log_prior_of_variance(), strict=True):
        s2 = math.exp(log_variance)
        K = s2 / RIDGE * F @ F.T
        D = s2 + label_noise.added_variances(s2)[kinds]
        C = np.broadcast_to(K[np.ix_(rows, rows)], (len(kinds), n, n)).copy()
        C[:, range(n), range(n)] += D
        solved = np.linalg.solve(C, np.tile(Y[rows][:, np.newaxis], (len(C), 1, 1)))[..., 0]
        logs.append(log_prior + of_variance - 0.5 * (solved @ Y[rows] + np.linalg.slogdet(C)[1]))
        means.append(solved @ K[rows])
    W = np.exp(np.array(logs) - np.max(logs))
    W /= W.sum()
    of_kinds = W.sum(axis=0)
    return (
        of_kinds @ (kinds >= FIRST_SIZE),
        of_kinds @ mean_shares(kinds),
        W.sum(axis=1) @ LOG_VARIANCE,
        np.einsum("gc,gci->i", W, np.array(means)),
    )


def _student() -> np.ndarray:
    """E log s2, E log df, and the mean of the function at all rows."""
    F = plain_design(_start(_sampler("student_t"))[1].frequencies, X, False)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    grid = np.stack(np.meshgrid(nodes, nodes), -1).reshape(-1, 2)
    log_nodes = np.log(np.outer(weights, weights).ravel())
    total = []
    for log_variance, of_variance in zip(LOG_VARIANCE, _log_prior_of_variance(), strict=True):
        scale = math.exp(0.5 * log_variance)
        f = scale / math.sqrt(RIDGE) * grid @ F.T
        for df in StudentNoise.degrees:
            logs = stats.t(df, scale=scale).logpdf(Y - f).sum(axis=1)
            total.append(np.column_stack([of_variance + log_nodes + logs, f]))
    found = np.array(total).reshape(len(LOG_VARIANCE), len(StudentNoise.degrees), len(grid), -1)
    W = np.exp(found[..., 0] - found[..., 0].max())
    W /= W.sum()
    means = np.einsum("vdg,vdgi->i", W, found[..., 1:])
    log_df = W.sum(axis=(0, 2)) @ np.log(StudentNoise.degrees)
    return np.r_[W.sum(axis=(1, 2)) @ LOG_VARIANCE, log_df, means]


def _truth(noise: str) -> np.ndarray:
    if noise == "student_t":
        return _student()
    wrong, shares, log_variance, means = _contaminated([0, 1, 2])
    return np.r_[log_variance, shares, means, wrong]


@pytest.fixture(scope="module")
def truths() -> dict[str, np.ndarray]:
    return {name: _truth(name) for name in ("contaminated", "student_t")}


def _states(noise: str, n_draws: int) -> list[SpectralState]:
    sampler = _sampler(noise)
    rng, state = _start(sampler)
    states = []
    for _ in range(n_draws + 100):
        state, _ = sampler.step(rng, state)
        states.append(state)
    return states[100:]


def _moments(noise: str, n_draws: int) -> np.ndarray:
    """The moments of each draw of a chain."""
    found = []
    for state in _states(noise, n_draws):
        f = plain_design(state.frequencies, X, False) @ state.coef.mean
        variance, parameter = state.coef.noise_variance, state.noise.parameter
        row = [math.log(variance), *f]
        if noise == "student_t":
            row.insert(1, math.log(parameter))
        else:
            drawn = plain_design(state.frequencies, X, False) @ drawn_coef(state)
            logs = label_noise.log_kinds(Y - drawn, variance, parameter)
            row[1:1] = drawn_shares(parameter[np.newaxis])[0]
            whole = special.logsumexp(logs, axis=1)
            row += list(np.exp(special.logsumexp(logs[:, FIRST_SIZE:], axis=1) - whole))
        found.append(row)
    return np.array(found)


LIMIT = z_limit(BATCHES, 15)


@pytest.mark.slow
@pytest.mark.parametrize("n_draws", [5000, 20_000])
@pytest.mark.parametrize("noise", ["contaminated", "student_t"])
def test_bnk_15_draws_have_the_moments_of_the_posterior(
    noise: str, n_draws: int, truths: dict[str, np.ndarray]
) -> None:
    assert largest_z(_moments(noise, n_draws), truths[noise], BATCHES) < LIMIT


@pytest.mark.slow
def test_bnk_15_each_target_by_the_others() -> None:
    """Weights of draws take a target out of what was learned from it; |error| < .1 std."""
    states = _states("contaminated", 6000)
    functions = FunctionDraws(
        np.stack([s.frequencies for s in states]),
        np.stack([s.coef.mean for s in states]),
        np.stack([s.coef.deviations for s in states]),
        np.sqrt([s.coef.noise_variance for s in states]),
        log_shares=np.array([s.noise.parameter for s in states]),
    )
    laws = target_laws(functions, X, Y, np.ones(3, dtype=bool), 10_000)
    np.testing.assert_allclose(laws.wrong, _contaminated([0, 1, 2])[0], atol=0.02)
    for i in range(3):
        others = [j for j in range(3) if j != i]
        assert abs(laws.mean[i] - _contaminated(others)[3][i]) < 0.1 * laws.std[i]


# The joint law of a sweep.

N_STEPS, N, M = 3, 10, 4
STATISTICS = 11
CASES = {
    "contaminated, linear part": ("contaminated", "full, 2 inputs", True, 0.5),
    "student_t, linear part": ("student_t", "diagonal, 2 inputs", True, 0.5),
    "contaminated, carried": ("contaminated", "diagonal, 1 input", False, 0.5),
    "student_t, carried": ("student_t", "full, 1 input", False, 0.0),
}
FIRST = ("student_t, linear part", "contaminated, carried")


@pytest.fixture
def wrong_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prior of the rate by which ten rows have wrong ones."""
    monkeypatch.setattr(label_noise, "N_WRONG", 3.0)
    monkeypatch.setattr(label_noise, "N_RIGHT", 4.0)


def _limit(n: int) -> float:
    return dkw_limit(n, STATISTICS * len(CASES))


def _tail(state: SpectralState, errors: np.ndarray) -> np.ndarray:
    """Probability of errors as large in size."""
    variance, parameter = state.coef.noise_variance, state.noise.parameter
    if not parameter.ndim:
        return 2.0 * special.stdtr(parameter, -np.abs(errors) / math.sqrt(variance))
    stds = np.sqrt(variance + label_noise.added_variances(variance))
    return 2.0 * special.ndtr(-np.abs(errors)[:, np.newaxis] / stds) @ np.exp(parameter)


def _statistics(
    rng: np.random.Generator, sampler: SpectralSampler, state: SpectralState
) -> dict[str, float]:
    """Values of distribution functions, uniform if the joint law is right."""
    rows, m2, variance = sampler.rows, 2 * M, state.coef.noise_variance
    beta = drawn_coef(state)
    p = _tail(state, rows.y - plain_design(state.frequencies, rows.X, rows.has_linear_part) @ beta)
    Z = state.mixture.assignment[0]
    deviation = (state.frequencies[0, 0] - state.mixture.means[Z, 0]) / (
        state.mixture.components.stds[Z, 0]
    )
    parameter = state.noise.parameter
    if parameter.ndim:
        rate = label_noise.rate_of(parameter)
        given = special.betainc(label_noise.N_WRONG, label_noise.N_RIGHT, rate)
        wide = special.betainc(
            label_noise.N_WIDE, label_noise.N_NARROW, special.expit(parameter[3] - parameter[2])
        )
    else:
        wide, place = None, int(np.argmin(np.abs(StudentNoise.degrees - parameter)))
        given = (place + rng.random()) / len(StudentNoise.degrees)
    found = {
        "frequency in its component": special.ndtr(deviation),
        "ridge": special.gammainc(RIDGE_PRIOR.shape, RIDGE_PRIOR.rate * state.ridge),
        "noise variance": special.gammaincc(NOISE[0], NOISE[1] / variance),
        "errors": special.chdtr(2 * N, -2.0 * np.log(p).sum()),
        "largest error": float((1.0 - p.min()) ** N),
        "coefficients": special.chdtr(m2, state.ridge * beta[:m2] @ beta[:m2] / variance),
        "parameter": given,
        "components": state.mixture.n_components,
    }
    if wide is not None:
        found["tails"] = wide
    slopes = beta[m2 + 1 :]
    if len(slopes):
        found["linear precision"] = special.gammainc(
            LINEAR_PRIOR.shape, LINEAR_PRIOR.rate * state.linear_precision
        )
        square = state.linear_precision * slopes @ slopes / variance
        found["slopes"] = special.chdtr(len(slopes), square)
    return {name: float(value) for name, value in found.items()}


def _distances(case: str, n: int, n_steps: int, seed: int = 91) -> dict[str, float]:
    noise, name, has_linear_part, global_share = CASES[case]
    rows = np.random.default_rng(40).standard_normal((N, BASES[name].n_inputs))
    sampler = make_spectral(
        rows, np.zeros(N), base=BASES[name], has_linear_part=has_linear_part,
        global_share=global_share, carries=case.endswith("carried"), n_frequencies=M, noise=noise,
    )  # fmt: skip
    rng = np.random.default_rng(seed)
    joint = Joint(draw_joint, redraw_targets, partial(_statistics, rng))
    return joint.distances(rng, sampler, n, n_steps)


@pytest.mark.usefixtures("wrong_rows")
@pytest.mark.parametrize("n", tiers(150, 2000))
@pytest.mark.parametrize(
    "case", few_first(CASES, "contaminated, carried", "student_t, linear part")
)
def test_bnk_15_joint(case: str, n: int) -> None:
    """False alarm 1e-6 over the 40 distances; detects 0.5, with more runs 0.14."""
    found = _distances(case, n, N_STEPS)
    assert max(found.values()) < _limit(n), found


def forget_the_pseudo_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong targets count a tenth, as they are."""
    weigher = ContaminatedNoise.weigher

    def mutant(self, noise_variance, parameter, rng):
        weigh = weigher(self, noise_variance, parameter, rng)

        def weigh_as_they_are(f, y):
            weights, _ = weigh(f, y)
            return weights, weights * y

        return weigh_as_they_are

    monkeypatch.setattr(ContaminatedNoise, "weigher", mutant)


def forget_the_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights come from their prior."""

    def mutant(self, noise_variance, parameter, rng):
        def weigh(f, y):
            weights = rng.gamma(0.5 * parameter, 2.0 / parameter, len(y))
            return weights, weights * y

        return weigh

    monkeypatch.setattr(StudentNoise, "weigher", mutant)


def forget_half_a_degree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights have the shape nu / 2: what the row itself says of its variance is left out."""
    weigher = StudentNoise.weigher

    def mutant(self, noise_variance, parameter, rng):
        weigh = weigher(self, noise_variance, parameter, rng)

        def wrong(f, y):
            weights, _ = weigh(f, y)
            weights = weights * rng.beta(0.5 * parameter, 0.5, len(y))
            return weights, weights * y

        return wrong

    monkeypatch.setattr(StudentNoise, "weigher", mutant)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [forget_the_sizes, forget_the_tails])
def test_bnk_15_sees_shares_that_do_not_learn(
    mutant: Callable[..., np.ndarray],
    truths: dict[str, np.ndarray],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spectral_model, "draw_shares", mutant)
    assert largest_z(_moments("contaminated", 5000), truths["contaminated"], BATCHES) > LIMIT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "noise"),
    [
        (forget_the_pseudo_targets, "contaminated"),
        (forget_the_errors, "student_t"),
        (forget_half_a_degree, "student_t"),
    ],
)
def test_bnk_15_sees(
    mutant: Callable[[pytest.MonkeyPatch], None],
    noise: str,
    truths: dict[str, np.ndarray],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutant(monkeypatch)
    assert largest_z(_moments(noise, 5000), truths[noise], BATCHES) > 1.2 * LIMIT


@pytest.mark.usefixtures("wrong_rows")
def test_bnk_15_joint_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_the_pseudo_targets(monkeypatch)
    found = _distances("contaminated, carried", 200, N_STEPS)
    assert max(found.values()) > 1.2 * _limit(200), found
