"""The joint test of a whole sweep over classes: see `support.spectral_joint`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy import special

from mercer.spectral.base_measure import BaseMeasure, FullBase, ScalePrior
from mercer.spectral.class_model import ClassState
from mercer.spectral.class_sampler import ClassChain, ClassSampler
from support.mixture_cases import BASES
from support.spectral_cases import plain_design
from support.spectral_class_cases import (
    LINEAR_PRIOR,
    RIDGE_PRIOR,
    draw_joint,
    functions,
    make_classes,
    plain_log_likelihood,
    redraw_labels,
)
from support.spectral_joint import Joint, _one_frequency, n_reference
from support.statistics import dkw_limit

M, N = 4, 12
# base, linear part, step of the proposals (1 draws them from the prior), share of global ones,
# classes
CASES: dict[str, tuple[str, bool, float, float, int]] = {
    "two classes, pcn, linear part": ("diagonal, 2 inputs", True, 0.5, 0.0, 2),
    "two classes, prior": ("diagonal, 1 input", False, 1.0, 0.0, 2),
    "three classes, full, pcn": ("full, 1 input", False, 0.5, 0.0, 3),
    "three classes, prior, linear part": ("full, 2 inputs", True, 1.0, 0.0, 3),
    "two classes, learned scale": ("diagonal, 2 inputs", False, 0.7, 0.0, 2),
    "two classes, half global": ("diagonal, 1 input", False, 0.5, 0.5, 2),
}
_SCALE_SHAPE = 2.0
MOST_STATISTICS = 19
TWO_SAMPLES = {"log likelihood", "alignment 0", "alignment 1", "projected 0", "projected 1"}


def make(
    case: str, kind: type[ClassChain] = ClassSampler, n_leapfrog: int = 0, n_anew: int | None = None
) -> ClassChain:
    """The sampler of a case; its labels are still to be drawn. With ``n_anew`` it carries."""
    name, has_linear_part, step, global_share, n_classes = CASES[case]
    base = BASES[name]
    X = 1.5 * np.random.default_rng(41).standard_normal((N, base.n_inputs))
    sampler = make_classes(
        X,
        np.zeros(N),
        n_classes=n_classes,
        base=base,
        has_linear_part=has_linear_part,
        step=step,
        global_share=global_share,
        n_frequencies=M,
        kind=kind,
        n_leapfrog=n_leapfrog,
        carries=n_anew is not None,
    )
    if n_anew is not None:
        sampler = replace(sampler, tuning=replace(sampler.tuning, n_anew=n_anew))
    if "learned" not in case:
        return sampler
    prior = ScalePrior(_SCALE_SHAPE, base.scale)
    return replace(sampler, mixture=replace(sampler.mixture, scale_prior=prior))


def limit(n: int, n_cases: int = len(CASES)) -> float:
    """False alarm 1e-6 over all statistics of all cases."""
    return dkw_limit(n, MOST_STATISTICS * n_cases)


Step = Callable[[ClassChain, np.random.Generator, ClassState], ClassState]


def sweep(sampler: ClassChain, rng: np.random.Generator, state: ClassState) -> ClassState:
    """A whole step of a chain."""
    return sampler.step(rng, state)[0]


def only_carries(sampler: ClassChain, rng: np.random.Generator, state: ClassState) -> ClassState:
    """The state after moves of many frequencies together, and coefficients given these."""
    assert isinstance(sampler, ClassSampler)
    products_of, W = sampler._weighed(rng, state), state.frequencies
    grams = tuple(each.gram for each in products_of(W[:0], W))
    mixture = state.mixture
    mixture, W, grams = sampler._carry(rng, state, mixture, W, grams, products_of)
    return sampler._complete(rng, replace(state, mixture=mixture), W, grams)


def distances(
    case: str,
    n: int,
    n_steps: int,
    seed: int = 64,
    kind: type[ClassChain] = ClassSampler,
    *,
    step: Step = sweep,
    n_leapfrog: int = 0,
    n_anew: int | None = None,
) -> dict[str, float]:
    """Largest difference of distribution functions, for each statistic."""
    rng, sampler = np.random.default_rng(seed), make(case, kind, n_leapfrog, n_anew)
    joint = replace(JOINT, take=lambda rng, own, state: step(own, rng, state))
    reference = prior_statistics(case, n_reference(n))
    found = joint.distances(rng, sampler, n, n_steps, reference)
    assert len(found) <= MOST_STATISTICS
    return found


def statistics(sampler: ClassChain, state: ClassState) -> dict[str, float]:
    """Values of distribution functions at one draw, or what is compared with draws of the prior."""
    rows, m2, W = sampler.rows, 2 * M, state.frequencies
    base, Z = sampler.mixture.base, state.mixture.assignment[0]
    deviation = (W[0, 0] - state.mixture.means[Z, 0]) / state.mixture.components.stds[Z, 0]
    f, coef = functions(sampler, state), state.coef
    F = plain_design(W, rows.X, rows.has_linear_part)
    base = base.with_scale(state.mixture.scale)
    found = {
        "frequency": _one_frequency(base, W[0, 0]),
        "frequency in its component": special.ndtr(deviation),
        "components": state.mixture.n_components,
        "log likelihood": plain_log_likelihood(f, rows.y),
    }
    degrees, scale = spread_law(base)
    variance = state.mixture.components.stds[Z, 0] ** 2
    found["spread of its component"] = special.gammaincc(0.5 * degrees, 0.5 * scale / variance)
    prior = sampler.mixture.scale_prior
    if prior is not None:
        scaled = prior.shape / prior.mean[0] * state.mixture.scale[0]
        found["base scale"] = special.gammainc(prior.shape, scaled)
    for k in range(sampler.n_sticks):
        is_in = rows.y >= k
        kappa = (rows.y[is_in] == k) - 0.5
        found[f"alignment {k}"] = kappa @ f[k, is_in]
        found[f"projected {k}"] = kappa @ F[is_in, 1] + 1e-9 * coef[k, 0]  # no ties
        ridge, linear = state.ridge[k], state.linear_precision[k]
        found[f"ridge {k}"] = special.gammainc(RIDGE_PRIOR.shape, RIDGE_PRIOR.rate * ridge)
        found[f"coefficients {k}"] = special.chdtr(m2, ridge * coef[k, :m2] @ coef[k, :m2])
        found[f"one coefficient {k}"] = special.ndtr(math.sqrt(ridge) * coef[k, 1])
        if rows.has_linear_part:
            share = special.gammainc(LINEAR_PRIOR.shape, LINEAR_PRIOR.rate * linear)
            found[f"linear precision {k}"] = share
            slopes = coef[k, m2 + 1 :]
            found[f"slopes {k}"] = special.chdtr(len(slopes), linear * slopes @ slopes)
    return {name: float(value) for name, value in found.items()}


def spread_law(base: BaseMeasure) -> tuple[float, float]:
    """Degrees of freedom and scale of the variance of the first input: inverse gamma."""
    if isinstance(base, FullBase):
        return base.nu0 - base.n_inputs + 1.0, float(base.scale[0] * base.psi[0, 0])
    return base.nu0, float(base.scale[0])


JOINT = Joint(
    draw_joint, lambda rng, own, state: (redraw_labels(rng, own, state), state), statistics
)


@functools.cache
def prior_statistics(case: str, n: int) -> dict[str, np.ndarray]:
    """Statistics of n exact draws of state and labels, of those whose law is not known."""
    found = JOINT.reference(np.random.default_rng(65), make(case), n)
    return {name: values for name, values in found.items() if name in TWO_SAMPLES}
