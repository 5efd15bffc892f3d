"""GPR-5: targets that are wrong, by chains, against enumeration of their kinds and quadrature.

Four rows, fifteen kinds each: 50625 cases on a grid of the variances of function and noise, the
shares of kinds integrated out in closed form. False alarm 1e-6 (thirteen moments, 50 batches: |t| <
6.3).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from mercer.gp import contamination, loops
from mercer.gp.contamination import ContaminatedSampler, target_laws
from mercer.gp.fitting import GPSettings, RegressionSettings
from mercer.gp.gaussian import (
    FunctionDraws,
    RegressionPosterior,
    whole_noise_variance,
)
from mercer.gp.regressor import _law_of
from mercer.likelihoods import label_noise
from mercer.likelihoods.label_noise import N_KINDS, added_variances
from mercer.sampling.driver import RunOptions, sample
from support.contaminated import (
    FIRST_SIZE,
    drawn_shares,
    forget_the_sizes,
    forget_the_tails,
    log_prior_of_kinds,
    mean_shares,
    with_one_normal,
)
from support.statistics import dkw_distance, dkw_limit, largest_z, tiers, z_limit

X = np.array([[-1.0], [0.2], [0.5], [1.3]])
Y = np.array([-0.4, 0.3, 2.5, 0.9])
N, SPREAD, BATCHES = len(Y), 0.7, 50
# The variances of function and noise are learned; the length scale is all but known.
PRIOR = {"variance": (0.0, SPREAD), "weight": (0.0, 1e-4), "noise": (-3.0, SPREAD)}


def _model() -> RegressionPosterior:
    settings = GPSettings("importance", PRIOR, None, None, "rbf")
    return RegressionSettings(settings, None).posterior(X, Y)


def _covariances(model: RegressionPosterior, theta: np.ndarray, codes: np.ndarray) -> np.ndarray:
    K = model.kernel.gram(theta[:-1], model.X)
    noise = float(whole_noise_variance(np.asarray(K.diagonal().mean()), theta[-1]))
    C = np.broadcast_to(K + model.intercept_variance, (len(codes), *K.shape)).copy()
    C[:, range(len(K)), range(len(K))] += noise + added_variances(noise)[codes]
    return C


@pytest.fixture(scope="module")
def truth() -> np.ndarray:
    """P(wrong) of each row, three shares, two log variances, and C^-1 y, by brute force."""
    model = _model()
    codes = np.array(list(itertools.product(range(N_KINDS), repeat=N)))
    log_prior = log_prior_of_kinds(codes)
    grid = np.linspace(-3.5, 3.5, 9) * SPREAD
    points = np.array([(v, 0.0, -3.0 + w) for v in grid for w in grid])
    log_joint, total = np.empty((len(points), len(codes))), np.zeros((len(codes), N))
    dual_coefs = []
    for g, theta in enumerate(points):
        C = _covariances(model, theta, codes)
        a = np.linalg.solve(C, np.tile(Y[:, np.newaxis], (len(C), 1, 1)))[..., 0]
        log_density = -0.5 * a @ Y - 0.5 * np.linalg.slogdet(C)[1]
        log_joint[g] = log_prior + log_density + model.prior.log_density(theta)
        dual_coefs.append(a.astype(np.float32))
    W = np.exp(log_joint - log_joint.max())
    W /= W.sum()
    for weights, a in zip(W, dual_coefs, strict=True):
        total += weights[:, np.newaxis] * a
    of_codes = W.sum(axis=0)
    return np.r_[
        of_codes @ (codes >= FIRST_SIZE),
        of_codes @ mean_shares(codes),
        W.sum(axis=1) @ points[:, [0, 2]],
        total.sum(axis=0),
    ]


def _moments(n_draws: int) -> np.ndarray:
    """The same of each draw of one chain, (n_draws, 13)."""
    model = _model()
    sampler = ContaminatedSampler(
        model, model.prior.mean, np.diag(model.prior.std**2), np.zeros(N, np.int64), np.arange(N)
    )
    draws = sample(sampler, RunOptions(n_draws, 100, 1, 1, 7, progress=False)).draws
    return np.column_stack(
        [
            draws.flat("error_kind") >= FIRST_SIZE,
            drawn_shares(draws.flat("log_shares")),
            draws.flat("log_signal_variance"),
            draws.flat("log_noise_variance"),
            draws.flat("dual_coef"),
        ]
    )


LIMIT = z_limit(BATCHES, 13)


@pytest.mark.parametrize("n_draws", tiers(800, 60_000))
def test_gpr_5_draws_have_the_moments_of_the_posterior(truth: np.ndarray, n_draws: int) -> None:
    assert largest_z(_moments(n_draws), truth, BATCHES) < LIMIT


def test_gpr_5_sees_targets_that_speak_for_themselves(
    truth: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is judged by a function that leans towards it."""

    def leaning(A: np.ndarray, a: np.ndarray, y: np.ndarray, *others: np.ndarray) -> float:
        loops.draw_kinds(A, 0.5 * a, y, *others)
        a[:] = A @ y

    monkeypatch.setattr(contamination, "draw_kinds", leaning)
    assert largest_z(_moments(4000), truth, BATCHES) > LIMIT


def test_gpr_5_sees_errors_about_the_mean_of_the_function(
    truth: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function of step 2 is not drawn: the noise comes out too small."""

    class Calm:
        """What draws 0 for every normal number."""

        def standard_normal(self, shape: object) -> np.ndarray:
            return np.zeros(shape)

    draw = ContaminatedSampler._draw_errors

    def mutant(self: ContaminatedSampler, rng: object, *rest: object) -> np.ndarray:
        return draw(self, Calm(), *rest)

    monkeypatch.setattr(ContaminatedSampler, "_draw_errors", mutant)
    assert largest_z(_moments(4000), truth, BATCHES) > LIMIT


def test_gpr_5_sees_a_noise_that_ignores_its_prior(
    truth: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    density = ContaminatedSampler._log_density_of_noise

    def mutant(self: ContaminatedSampler, theta: np.ndarray, *rest: object) -> float:
        found = density(self, theta, *rest)
        return found - self.model.prior.log_density(theta)

    monkeypatch.setattr(ContaminatedSampler, "_log_density_of_noise", mutant)
    assert largest_z(_moments(4000), truth, BATCHES) > LIMIT


@pytest.mark.parametrize("mutant", [forget_the_sizes, forget_the_tails])
def test_gpr_5_sees_shares_that_do_not_learn(
    mutant: Callable[..., np.ndarray], truth: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contamination, "draw_shares", mutant)
    assert largest_z(_moments(4000), truth, BATCHES) > LIMIT


@pytest.mark.slow
def test_gpr_5_sees_another_size_of_errors(
    truth: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_noise, "LEAST_ERROR", 100.0)
    assert largest_z(_moments(4000), truth, BATCHES) > LIMIT


def test_gpr_5_the_loop_follows_the_definition() -> None:
    """Each code from the law of its row left out, solved anew, by the same uniform numbers."""
    rng, model = np.random.default_rng(3), _model()
    added = added_variances(0.05)
    log_shares = label_noise.log_shares(0.2)
    codes = rng.integers(0, 8, N)  # small errors: no digits are lost
    K = model.kernel.gram(np.zeros(2), X) + model.intercept_variance + 0.05 * np.eye(N)

    def inverse(of: np.ndarray) -> np.ndarray:
        return np.linalg.inv(K + np.diag(added[of]))

    A, uniforms = inverse(codes), rng.random(N)
    got, a = codes.copy(), A @ Y
    wrong, means, bases = np.empty(N), np.empty(N), np.empty(N)
    others = FIRST_SIZE, uniforms, wrong, means, bases
    loops.draw_kinds(A, a, Y, got, added, log_shares, *others)
    wanted = codes.copy()
    for i in range(N):
        others = np.arange(N) != i
        C = (K + np.diag(added[wanted]))[np.ix_(others, others)]
        k = K[i, others]
        mean = k @ np.linalg.solve(C, Y[others])
        base = K[i, i] - k @ np.linalg.solve(C, k)
        variance = base + added
        log_joint = log_shares - 0.5 * np.log(variance) - 0.5 * (Y[i] - mean) ** 2 / variance
        p = np.exp(log_joint - log_joint.max())
        p /= p.sum()
        assert (means[i], bases[i], wrong[i]) == pytest.approx((mean, base, p[FIRST_SIZE:].sum()))
        wanted[i] = min(int(np.searchsorted(np.cumsum(p), uniforms[i])), N_KINDS - 1)
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_allclose(A, inverse(wanted), rtol=1e-8)
    np.testing.assert_allclose(a, inverse(wanted) @ Y, rtol=1e-8)


def test_gpr_5_a_new_target_is_judged_as_if_it_had_been_one_of_the_rows() -> None:
    """Given draws without it, weighed by what they say of it: the same as by the joint law."""
    model, rng = _model(), np.random.default_rng(5)
    theta = np.column_stack([rng.normal(0.0, 0.5, 6), np.zeros(6)])
    shares, noise = label_noise.log_shares(rng.uniform(0.05, 0.4, 6), 0.2), np.full(6, 0.05)
    coefs = []
    for each in theta:
        K = model.kernel.gram(each, X) + model.intercept_variance + 0.05 * np.eye(N)
        coefs.append(np.linalg.solve(K, Y))
    functions = FunctionDraws(
        X, model.kernel, theta, noise, np.array(coefs), model.intercept_variance
    )
    at, value = np.array([[0.0]]), 1.4
    laws = target_laws(functions, shares, at, np.array([value]))
    means, variances = (each[0] for each in functions.moments(at))
    whole = variances[:, np.newaxis] + 0.05 + added_variances(0.05)
    density = np.exp(-0.5 * (value - means)[:, np.newaxis] ** 2 / whole) / np.sqrt(whole)
    joint = density * np.exp(shares)
    width = 0.8 + 0.2 * (0.8 * 4.0 + 0.2 * (0.8 * 16.0 + 0.2 * 64.0))
    assert laws.wrong[0] == pytest.approx(joint[:, FIRST_SIZE:].sum() / joint.sum())
    assert laws.mean[0] == pytest.approx(means.mean())
    assert laws.std[0] == pytest.approx(np.sqrt((variances + 0.05 * width).mean() + means.var()))


def _with_kinds(n: int) -> FunctionDraws:
    """Draws of functions of four rows, with noise that is wide in one of three."""
    model, rng = _model(), np.random.default_rng(6)
    theta, noise = np.column_stack([rng.normal(0.0, 0.5, n), np.zeros(n)]), np.full(n, 0.05)
    added = 0.05 * rng.integers(0, 3, (n, N))
    coefs = []
    for each, more in zip(theta, added, strict=True):
        K = model.kernel.gram(each, X) + model.intercept_variance + np.diag(0.05 + more)
        coefs.append(np.linalg.solve(K, Y))
    shares = rng.dirichlet([6.0, 1.0, 1.0, 1.0], n)
    return FunctionDraws(
        X, model.kernel, theta, noise, np.array(coefs), model.intercept_variance,
        added_variance=added, kinds_of_noise=(np.outer(noise, 4.0 ** np.arange(4)), shares),
    )  # fmt: skip


def test_gpr_5_new_targets_have_the_law_that_is_summed_over_kinds() -> None:
    """By means and covariances solved anew; false alarm 1e-6 over both rows of what is drawn."""
    functions, new, n = _with_kinds(3), np.array([[0.0], [2.0]]), 20_000
    law, at = _law_of(functions, *functions.moments(new)), np.array([0.9, -1.1])
    parts = np.zeros(2)
    for theta, a, added, shares in zip(
        functions.theta, functions.dual_coef, functions.added_variance,
        functions.kinds_of_noise[1],
        strict=True,
    ):  # fmt: skip
        intercept = functions.intercept_variance
        K = functions.kernel.gram(theta, np.vstack([X, new])) + intercept
        C = K[:N, :N] + np.diag(0.05 + added)
        np.testing.assert_allclose(np.linalg.solve(C, Y), a, rtol=1e-9)
        std2 = np.diag(K[N:, N:] - K[N:, :N] @ np.linalg.solve(C, K[:N, N:]))
        for k, share in enumerate(shares):
            parts += share / 3.0 * stats.norm(K[N:, :N] @ a, np.sqrt(std2 + 0.05 * 4.0**k)).pdf(at)
    np.testing.assert_allclose(law.log_density(at), np.log(parts), rtol=1e-8)
    drawn = functions.sample(np.random.default_rng(7), new, n)
    for i in range(2):
        row = replace(law, locations=np.tile(law.locations[i], (n, 1)), scales=law.scales[i])
        assert dkw_distance(drawn[:, i], row.cdf) < dkw_limit(n, 2)
        mutant = with_one_normal(row)
        assert dkw_distance(drawn[:, i], mutant.cdf) > dkw_limit(n, 2)
