"""Small BaNK classifiers, and exact draws of them from their joint law with the labels."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy.special import expit, log_expit

from mercer.spectral.base_measure import BaseMeasure, DiagonalBase
from mercer.spectral.class_model import ClassState, ClassTuning, LogisticModel
from mercer.spectral.class_sampler import ClassChain, ClassSampler
from mercer.spectral.mixture import Mixture, Start
from mercer.spectral.model import GammaPrior, Probe
from mercer.spectral.rows import MemoryRows
from support.spectral_cases import CONCENTRATION, plain_design

RIDGE_PRIOR = GammaPrior(2.0, 40.0)  # functions of several logits: labels say much of them
LINEAR_PRIOR = GammaPrior(1.5, 1.0)
TRAJECTORY = 0.45  # step of trajectories: some are refused


def make_classes(
    X: np.ndarray,
    codes: np.ndarray,
    *,
    n_classes: int = 2,
    base: BaseMeasure | None = None,
    has_linear_part: bool = True,
    is_ridge_learned: bool = True,
    step: float = 0.5,
    global_share: float = 0.0,
    n_frequencies: int = 4,
    n_deviations: int = 1,
    ridge: float = 1.0,
    kind: type[ClassChain] = ClassSampler,
    n_leapfrog: int = 0,
    carries: bool = False,
) -> ClassChain:
    """A sampler with proper priors; codes are places of classes."""
    d = X.shape[1]
    base = base or DiagonalBase(np.full(d, 0.5), 0.2, 3.0)
    prior = RIDGE_PRIOR if is_ridge_learned else None
    return kind(
        rows=MemoryRows(X, codes, has_linear_part),
        n_sticks=n_classes - 1,
        model=LogisticModel(1 + d if has_linear_part else 0, prior, LINEAR_PRIOR, 0.5),
        mixture=Mixture(base, CONCENTRATION),
        start=Start(np.ones(d), (0.5, 1.0), ridge, 1.0),
        n_frequencies=n_frequencies,
        n_deviations=n_deviations,
        tuning=ClassTuning(step, global_share=global_share, trajectory=TRAJECTORY),
        probe=Probe(np.zeros((1, d)), X, has_linear_part),
        n_leapfrog=n_leapfrog,
        carries=carries,
    )


def problem(n: int, d: int, n_classes: int = 2, seed: int = 13) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal inputs, and places of classes by a curved function of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    f = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, -1] + 0.3 * rng.standard_normal(n)
    edges = np.quantile(f, np.arange(1, n_classes) / n_classes)
    return X, np.searchsorted(edges, f).astype(np.float64)


def draw_codes(rng: np.random.Generator, f: np.ndarray) -> np.ndarray:
    """Draw classes given the functions (K, n): stick after stick."""
    codes = np.full(f.shape[1], len(f), dtype=np.float64)
    for k in range(len(f) - 1, -1, -1):
        codes[rng.random(f.shape[1]) < expit(f[k])] = k
    return codes


def draw_joint(rng: np.random.Generator, sampler: ClassChain) -> tuple[ClassChain, ClassState]:
    """Draw state and labels from their joint law."""
    model, K = sampler.model, sampler.n_sticks
    mixture, W = sampler.mixture.draw_prior(rng, sampler.n_frequencies)
    ridge = np.full(K, sampler.start.ridge)
    if model.ridge_prior is not None:
        ridge = rng.gamma(model.ridge_prior.shape, size=K) / model.ridge_prior.rate
    linear = rng.gamma(model.linear_prior.shape, size=K) / model.linear_prior.rate
    precisions = np.stack(
        [model.prior_precisions(2 * len(W), a, b) for a, b in zip(ridge, linear, strict=True)]
    )
    coef = rng.standard_normal(precisions.shape) / np.sqrt(precisions)
    none = np.zeros((K, 1, coef.shape[1]))
    state = ClassState(W, coef, none, ridge, linear, mixture, math.nan)
    return redraw_labels(rng, sampler, state), state


def redraw_labels(rng: np.random.Generator, sampler: ClassChain, state: ClassState) -> ClassChain:
    """Draw new labels given the state, and put them into the sampler."""
    rows = sampler.rows
    assert isinstance(rows, MemoryRows)
    codes = draw_codes(rng, functions(sampler, state))
    return dataclasses.replace(sampler, rows=MemoryRows(rows.X, codes, rows.has_linear_part))


def functions(sampler: ClassChain, state: ClassState) -> np.ndarray:
    """The functions of a state at the rows, shape (K, n)."""
    rows = sampler.rows
    assert isinstance(rows, MemoryRows)
    return state.coef @ plain_design(state.frequencies, rows.X, rows.has_linear_part).T


def plain_log_likelihood(f: np.ndarray, codes: np.ndarray) -> float:
    """Log probability of places of classes given the functions (K, n)."""
    left, total = np.zeros(f.shape[1]), 0.0  # logarithms: functions of mutants overflow
    for k, each in enumerate(f):
        total += (left + log_expit(each))[codes == k].sum()
        left = left + log_expit(-each)
    return float(total + left[codes == len(f)].sum())
