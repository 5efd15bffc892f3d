"""The joint test of a whole sweep: exact draws, sweeps with new targets, and exact laws again.

From an exact draw of state and targets, a few times (step, new targets given the state) and one
more step leave the joint law as it is. After the last step no targets are drawn: a state that does
not fit its targets is then seen. Replicates are independent, and each statistic has a law that is
known: what is compared are values of its distribution function.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from mercer.spectral import sampler as spectral_sampler
from mercer.spectral.base_measure import DiagonalBase, ScalePrior
from mercer.spectral.model import coefficients
from mercer.spectral.sampler import SpectralSampler, SpectralState
from support.mixture_cases import BASES, partitions, seating_log_probability
from support.spectral_cases import (
    CONCENTRATION,
    LINEAR_PRIOR,
    NOISE,
    RIDGE_PRIOR,
    draw_joint,
    drawn_coef,
    make_spectral,
    marginal_shape,
    plain_design,
    redraw_targets,
)
from support.statistics import dkw_distance, dkw_limit

M, N = 4, 10
# base, linear part, step of the proposals (1 draws them from the prior), share of global ones
CASES: dict[str, tuple[str, bool, float, float]] = {
    "diagonal, pcn, linear part": ("diagonal, 2 inputs", True, 0.5, 0.0),
    "diagonal, prior": ("diagonal, 1 input", False, 1.0, 0.0),
    "full, pcn": ("full, 1 input", False, 0.5, 0.0),
    "full, prior, linear part": ("full, 2 inputs", True, 1.0, 0.0),
    "diagonal, all global": ("diagonal, 1 input", False, 0.5, 1.0),
    "full, half global, linear part": ("full, 2 inputs", True, 0.5, 0.5),
    "diagonal, half global, scale drawn": ("diagonal, 1 input", False, 0.5, 0.5),
    "full, half global, scale drawn": ("full, 2 inputs", False, 0.5, 0.5),
}
SCALE_PRIOR = ScalePrior(2.0, np.array([0.6]))
N_STATISTICS = 12


def make(case: str) -> SpectralSampler:
    """The sampler of a case; its targets are still to be drawn."""
    name, has_linear_part, step, global_share = CASES[case]
    base = BASES[name]
    X = np.random.default_rng(40).standard_normal((N, base.n_inputs))
    return make_spectral(
        X, np.zeros(N), base=base,
        scale_prior=SCALE_PRIOR if case.endswith("scale drawn") else None,
        has_linear_part=has_linear_part, step=step,
        global_share=global_share, carries=global_share == 0.5, n_frequencies=M,
    )  # fmt: skip


def limit(n: int) -> float:
    """False alarm 1e-6 over all statistics of all cases; the last one compares two samples."""
    return dkw_limit(n, N_STATISTICS * len(CASES))


def one_sweep(
    rng: np.random.Generator, sampler: SpectralSampler, state: SpectralState
) -> SpectralState:
    """The state after a step."""
    return sampler.step(rng, state)[0]


def sweeps(n: int) -> Callable[..., SpectralState]:
    """The state after so many steps."""

    def take(
        rng: np.random.Generator, sampler: SpectralSampler, state: SpectralState
    ) -> SpectralState:
        for _ in range(n):
            state = one_sweep(rng, sampler, state)
        return state

    return take


def only_carries(
    rng: np.random.Generator,
    sampler: SpectralSampler,
    state: SpectralState,
    n_times: int = 10,
    n_anew: int = 0,
) -> SpectralState:
    """The state after the moves that take members along, a few times, and nothing else between.

    After each of them so many frequencies are proposed anew together.
    """
    sampler = replace(sampler, tuning=replace(sampler.tuning, n_anew=n_anew))
    mixture, W, gram = state.mixture, state.frequencies, state.gram
    for _ in range(n_times):
        mixture, W, gram = sampler._carry(rng, state, mixture, W, gram, sampler.rows)
    return sampler._complete(rng, W, gram, state.ridge, state.linear_precision, mixture)


def decide_by_the_prior(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: components move whatever the targets say."""

    def accept_all(log_evidence, log_uniform):
        took = np.ones(len(log_uniform), dtype=bool)
        return took, log_evidence(took)

    monkeypatch.setattr(spectral_sampler, "decide_groups", accept_all)


@dataclass(frozen=True)
class Joint:
    """The joint law of state and targets of a model, and what is looked at in it.

    ``draw`` (rng, sampler) returns a sampler with exact targets and their state, ``redraw``
    (rng, sampler, state) the two with new targets, ``statistics`` (sampler, state) values of
    distribution functions by name, ``take`` (rng, sampler, state) the state after a step.
    """

    draw: Callable[..., Any]
    redraw: Callable[..., Any]
    statistics: Callable[..., dict[str, float]]
    take: Callable[..., Any] = one_sweep

    def reference(self, rng: np.random.Generator, sampler: Any, n: int) -> dict[str, np.ndarray]:
        """Statistics of n exact draws."""
        return _by_name([self.statistics(*self.draw(rng, sampler)) for _ in range(n)])

    def replicates(
        self, rng: np.random.Generator, sampler: Any, n: int, n_steps: int
    ) -> dict[str, np.ndarray]:
        """Statistics after some steps from each of n exact draws, with new targets between."""
        rows = []
        for _ in range(n):
            own, state = self.draw(rng, sampler)
            for i in range(n_steps):
                if i > 0:
                    own, state = self.redraw(rng, own, state)
                state = self.take(rng, own, state)
            rows.append(self.statistics(own, state))
        return _by_name(rows)

    def distances(
        self,
        rng: np.random.Generator,
        sampler: Any,
        n: int,
        n_steps: int,
        reference: Mapping[str, np.ndarray] = MappingProxyType({}),
    ) -> dict[str, float]:
        """Largest difference of distribution functions: from a reference, or from what is known."""
        found = self.replicates(rng, sampler, n, n_steps)
        return {name: law_distance(name, u, reference.get(name)) for name, u in found.items()}


def _by_name(rows: list[dict[str, float]]) -> dict[str, np.ndarray]:
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def distances(
    case: str, n: int, n_steps: int, seed: int = 61, take: Callable[..., SpectralState] = one_sweep
) -> dict[str, float]:
    """Largest difference of distribution functions, for each statistic."""
    rng = np.random.default_rng(seed)
    reference = {"log evidence": prior_evidence(case, n_reference(n))}
    joint = Joint(draw_joint, redraw_targets, statistics, take)
    result = joint.distances(rng, make(case), n, n_steps, reference)
    assert len(result) == N_STATISTICS or not CASES[case][1]
    return result


def n_reference(n: int) -> int:
    """So many exact draws to compare n with: with few of them the others decide the error."""
    return 800 if n <= 200 else 4000


def law_distance(name: str, values: np.ndarray, reference: np.ndarray | None = None) -> float:
    """Largest difference of distribution functions: from that of the reference, or what is known.

    The number of components has its own law; all else is uniform.
    """
    n = len(values)
    if name == "components":
        law = component_law()
        shares = np.bincount(values.astype(int), minlength=len(law)) / n
        return float(np.abs(np.cumsum(law - shares)).max())
    if reference is None:
        return dkw_distance(values, stats.uniform.cdf)
    # The reference has its own error; both limits together are the limit of the difference.
    two_samples = stats.ks_2samp(values, reference).statistic
    return float(two_samples) / (1.0 + math.sqrt(n / len(reference)))


def statistics(sampler: SpectralSampler, state: SpectralState) -> dict[str, float]:
    """Values of distribution functions at one draw, uniform if the joint law is right."""
    model, rows, m2 = sampler.model, sampler.rows, 2 * M
    W, beta, variance = state.frequencies, drawn_coef(state), state.coef.noise_variance
    F = plain_design(W, rows.X, rows.has_linear_part)
    residual, slopes = rows.y - F @ beta, beta[m2 + 1 :]
    precisions = model.prior_precisions(m2, state.ridge, state.linear_precision)
    shape = marginal_shape(model, F, precisions)
    fit = float(rows.y @ np.linalg.solve(shape, rows.y)) / N
    base = sampler.mixture.base.with_scale(state.mixture.scale)
    Z = state.mixture.assignment[0]
    deviation = (W[0, 0] - state.mixture.means[Z, 0]) / state.mixture.components.stds[Z, 0]
    found = {
        "frequency": _one_frequency(base, W[0, 0]),
        "frequency in its component": special.ndtr(deviation),
        "ridge": special.gammainc(RIDGE_PRIOR.shape, RIDGE_PRIOR.rate * state.ridge),
        "noise variance": special.gammaincc(NOISE[0], NOISE[1] / variance),
        "residuals": special.chdtr(N, residual @ residual / variance),
        "coefficients": special.chdtr(m2, state.ridge * beta[:m2] @ beta[:m2] / variance),
        "all targets": special.fdtr(N, 2.0 * NOISE[0], fit),
        "products": _projected(F[:, 1], rows.y, shape),
        "components": state.mixture.n_components,
        "log evidence": state.coef.log_evidence,
    }
    if sampler.mixture.scale_prior is not None:
        shape, mean = SCALE_PRIOR.shape, SCALE_PRIOR.mean[0]
        found["scale"] = special.gammainc(shape, shape / mean * state.mixture.scale[0])
    if len(slopes):
        found["linear precision"] = special.gammainc(
            LINEAR_PRIOR.shape, LINEAR_PRIOR.rate * state.linear_precision
        )
        square = state.linear_precision * slopes @ slopes / variance
        found["slopes"] = special.chdtr(len(slopes), square)
    return {name: float(value) for name, value in found.items()}


def _projected(column: np.ndarray, y: np.ndarray, shape: np.ndarray) -> float:
    """Of one entry of Phi'y given the frequencies: t of 2 a_0 degrees of freedom."""
    return float(special.stdtr(2.0 * NOISE[0], column @ y / math.sqrt(column @ shape @ column)))


def _one_frequency(base, value: float) -> float:
    """Of the first input of a frequency, all components being unknown."""
    if isinstance(base, DiagonalBase):
        degrees, square = base.nu0, base.scale[0]
    else:
        degrees, square = base.nu0 - base.n_inputs + 1.0, base.scale[0] * base.psi[0, 0]
    scale = math.sqrt(square * (1.0 + 1.0 / base.kappa0) / degrees)
    return float(special.stdtr(degrees, value / scale))


def component_law() -> np.ndarray:
    """p(K) for K = 0, .., M, over all partitions."""
    law = np.zeros(M + 1)
    for labels in partitions(M):
        law[max(labels) + 1] += np.exp(seating_log_probability(labels, CONCENTRATION))
    return law


@functools.cache
def prior_evidence(case: str, n: int) -> np.ndarray:
    """That of the sampler of a case."""
    return evidence_of_draws(draw_joint, np.random.default_rng(62), make(case), n)


def evidence_of_draws(
    draw: Callable[..., Any], rng: np.random.Generator, sampler: SpectralSampler, n: int
) -> np.ndarray:
    """Log evidence of n sets of targets from their joint law with the state."""
    found = []
    for _ in range(n):
        own, state = draw(rng, sampler)
        precisions = own.model.prior_precisions(2 * M, state.ridge, state.linear_precision)
        found.append(coefficients(own.model, state.gram, precisions).log_evidence)
    return np.array(found)
