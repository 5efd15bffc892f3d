"""Small BaNK regressions, exact draws of them, and plain twins of what the package computes."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy import stats

from mercer.likelihoods import label_noise
from mercer.spectral.base_measure import BaseMeasure, DiagonalBase, ScalePrior
from mercer.spectral.mixture import Mixture, Start
from mercer.spectral.model import NOISES, GammaPrior, Probe, RegressionModel, StudentNoise
from mercer.spectral.rows import MemoryRows
from mercer.spectral.sampler import (
    CoefDraw,
    NoiseState,
    ProposalTuning,
    SpectralSampler,
    SpectralState,
)

CONCENTRATION = 1.3
# Proper enough for moments, and targets that say much: the function has about a hundred times the
# variance of the noise.
NOISE = (3.0, 3.0)
RIDGE_PRIOR = GammaPrior(2.0, 200.0)
# Wide, and of slopes that the targets say little of: a stale draw of them shows.
LINEAR_PRIOR = GammaPrior(0.7, 0.02)


def make_model(n: int, n_linear: int, *, is_ridge_learned: bool = True) -> RegressionModel:
    """A regression of n rows with proper priors."""
    prior = RIDGE_PRIOR if is_ridge_learned else None
    return RegressionModel(n, n_linear, *NOISE, prior, LINEAR_PRIOR)


def make_spectral(
    X: np.ndarray,
    y: np.ndarray,
    *,
    base: BaseMeasure | None = None,
    scale_prior: ScalePrior | None = None,
    has_linear_part: bool = True,
    is_ridge_learned: bool = True,
    is_symmetric: bool = True,
    step: float = 0.5,
    global_share: float = 0.0,
    carries: bool = False,
    n_frequencies: int = 4,
    n_deviations: int = 1,
    ridge: float = 1.0,
    noise: str = "normal",
) -> SpectralSampler:
    """A sampler with proper priors."""
    n, d = X.shape
    base = base or DiagonalBase(np.full(d, 0.5), 0.2, 3.0)
    return SpectralSampler(
        rows=MemoryRows(X, y, has_linear_part),
        model=make_model(n, 1 + d if has_linear_part else 0, is_ridge_learned=is_ridge_learned),
        mixture=Mixture(base, CONCENTRATION, scale_prior=scale_prior, is_symmetric=is_symmetric),
        start=Start(np.ones(d), (0.5, 1.0), ridge, 1.0),
        n_frequencies=n_frequencies,
        n_deviations=n_deviations,
        tuning=ProposalTuning(step, global_share=global_share),
        probe=Probe(np.zeros((1, d)), X, has_linear_part),
        carries=carries,
        noise=NOISES[noise],
    )


def problem(n: int, d: int, seed: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal inputs and noisy targets of a curved function of them, both of order one."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(1.5 * X[:, 0]) + 0.5 * X[:, -1] + 0.3 * rng.standard_normal(n)


def plain_design(W: np.ndarray, X: np.ndarray, has_linear_part: bool) -> np.ndarray:
    """[Phi, H] of shape (n, 2 M + p), a cosine and a sine a frequency, frequency by frequency."""
    columns = []
    for w in W:
        columns += [np.cos(X @ w) / math.sqrt(len(W)), np.sin(X @ w) / math.sqrt(len(W))]
    if has_linear_part:
        columns += [np.ones(len(X)), *X.T]
    return np.column_stack(columns)


def marginal_shape(
    model: RegressionModel, F: np.ndarray, prior_precisions: np.ndarray
) -> np.ndarray:
    """Shape b_0 / a_0 (I + F L_0^-1 F') of the t law of the targets, of 2 a_0 degrees."""
    cover = np.eye(len(F)) + (F / prior_precisions) @ F.T
    return np.asarray(model.noise_rate / model.noise_shape * cover)


def marginal_law(model: RegressionModel, F: np.ndarray, prior_precisions: np.ndarray):
    """The law of the targets, coefficients and noise integrated out."""
    shape = marginal_shape(model, F, prior_precisions)
    return stats.multivariate_t(np.zeros(len(F)), shape, df=2.0 * model.noise_shape)


def draw_joint(
    rng: np.random.Generator, sampler: SpectralSampler
) -> tuple[SpectralSampler, SpectralState]:
    """Draw state and targets from their joint law."""
    model = sampler.model
    mixture, W = sampler.mixture.draw_prior(rng, sampler.n_frequencies)
    ridge, prior = sampler.start.ridge, model.ridge_prior
    if prior is not None:
        ridge = rng.gamma(prior.shape) / prior.rate
    linear_precision = rng.gamma(model.linear_prior.shape) / model.linear_prior.rate
    noise_variance = model.noise_rate / rng.gamma(model.noise_shape)
    precisions = model.prior_precisions(2 * len(W), ridge, linear_precision)
    beta = rng.standard_normal(len(precisions)) * np.sqrt(noise_variance / precisions)
    coef = CoefDraw(beta, np.zeros((1, len(beta))), noise_variance, math.nan)
    unset = np.empty((0, 0))
    n_rows = sampler.rows.n_rows
    state = SpectralState(
        W, unset, float(ridge), float(linear_precision), mixture, coef, n_rows,
        draw_parameter(rng, sampler),
    )  # fmt: skip
    return redraw_targets(rng, sampler, state)


def redraw_targets(
    rng: np.random.Generator, sampler: SpectralSampler, state: SpectralState
) -> tuple[SpectralSampler, SpectralState]:
    """Draw new targets given the state, and put them into sampler and state."""
    rows = sampler.rows
    assert isinstance(rows, MemoryRows)
    F = plain_design(state.frequencies, rows.X, rows.has_linear_part)
    y = F @ drawn_coef(state) + draw_errors(rng, state, len(F))
    columns = np.column_stack([F, y])
    sampler = dataclasses.replace(sampler, rows=MemoryRows(rows.X, y, rows.has_linear_part))
    state = dataclasses.replace(state, gram=columns.T @ columns)
    if sampler.noise is not None:
        state = sampler._heard(rng, sampler.noise, state, state.noise.parameter)
    return sampler, state


def draw_errors(rng: np.random.Generator, state: SpectralState, n: int) -> np.ndarray:
    """Errors of n targets by their definition."""
    variance, normals = state.coef.noise_variance, rng.standard_normal(n)
    parameter = state.noise.parameter
    if not parameter.size:
        return normals * math.sqrt(variance)
    if parameter.ndim:  # shares of kinds
        shares = np.exp(parameter)
        kinds = rng.choice(len(shares), n, p=shares / shares.sum())
        return normals * np.sqrt(variance + label_noise.added_variances(variance)[kinds])
    return normals * np.sqrt(variance * parameter / rng.chisquare(parameter, n))


def draw_parameter(rng: np.random.Generator, sampler: SpectralSampler) -> NoiseState:
    """The parameter of the noise from its prior."""
    if sampler.noise is None:
        return NoiseState()
    if isinstance(sampler.noise, StudentNoise):
        return NoiseState(np.asarray(rng.choice(StudentNoise.degrees)))
    rate = rng.beta(label_noise.N_WRONG, label_noise.N_RIGHT)
    wide = max(rng.beta(label_noise.N_WIDE, label_noise.N_NARROW), 1e-12)
    sizes = np.maximum(rng.dirichlet(label_noise.N_SIZES * label_noise.SHARES), 1e-300)
    return NoiseState(label_noise.log_shares(rate, wide, np.log(sizes)))


def drawn_coef(state: SpectralState) -> np.ndarray:
    """The draw of the coefficients that goes with the precisions of the state."""
    return state.coef.mean + state.coef.deviations[0]
