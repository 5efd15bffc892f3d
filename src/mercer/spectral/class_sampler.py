"""Samplers of BaNK for classes: Polya-Gamma sweeps, and the paper's joint proposals."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NumericalError
from mercer.features.device import Device
from mercer.features.products import fill_features
from mercer.sampling.sampler import Adaptation, Sampler
from mercer.spectral.class_model import (
    CLASSES,
    ClassState,
    ClassTuning,
    Law,
    LogisticCoefficients,
    LogisticModel,
    functions_at_rows,
    log_likelihood,
    log_posterior,
    logistic_coefficients,
    maximise,
    newton,
    signs_of,
)
from mercer.spectral.loops import move_jointly
from mercer.spectral.missing import MissingInputs
from mercer.spectral.mixture import Mixture, MixtureState, Start
from mercer.spectral.model import (
    RIDGE_LIMITS,
    GammaPrior,
    Probe,
    RidgeDensity,
    design,
    draw_ridge,
    lowest_ridge,
    one_of,
    reduce_products,
)
from mercer.spectral.rows import (
    MemoryRows,
    Say,
    TrainingRows,
    Weigh,
    WeighOf,
    WeightedProducts,
    function_sums,
    of_blocks,
    weighted_products,
)
from mercer.spectral.sampler import (
    TARGET_ACCEPTANCE,
    Given,
    LearnedStep,
    SpectralInfo,
    carry,
    choose,
    decide_together,
    device_of,
    join,
    propose_all,
    take_sweeps,
)
from mercer.spectral.trajectory import Ascent, move_together

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TrajectoryInfo(SpectralInfo):
    """What a sweep after a trajectory says: how probable the trajectory's end was, and its step.

    Of counts those of the move of all coefficients.
    """

    trajectory_acceptance: float
    trajectory_step: float


@dataclass(frozen=True, eq=False)
class ClassChain(Sampler[ClassState, SpectralInfo]):
    """What the samplers of classes share: state, start, record, and the steps of the mixture.

    Fields not named here are as in `mercer.spectral.sampler.SpectralSampler`.
    """

    rows: TrainingRows  # their targets are places of classes, see `ClassCodes`
    n_sticks: int  # K, the number of classes less one
    model: LogisticModel
    mixture: Mixture
    start: Start
    n_frequencies: int
    n_deviations: int
    tuning: ClassTuning
    probe: Probe
    ascent: Ascent | None = None  # steps up the posterior that the first step begins with
    n_leapfrog: int = 0  # steps of the trajectory that each sweep begins with; 0 for none
    law: Law = CLASSES  # of the targets, with its parameters where chains start
    missing: MissingInputs | None = None  # inputs that are drawn along, of rows in memory
    carries: bool = False  # whether components move with all their members as well

    def init(self, rng: np.random.Generator) -> ClassState:
        """Draw frequencies at the scales of the start; all functions are 0."""
        if self.missing is not None:
            inputs = self.missing.init(rng, self.rows)
            filled = replace(self, rows=self.missing.filled(self.rows, inputs), missing=None)
            return replace(filled.init(rng), inputs=inputs)
        W, Z = self.start.frequencies(rng, self.n_frequencies)
        K, n_coef = self.n_sticks, 2 * len(W) + self.model.n_linear
        mean = np.zeros((K, n_coef))
        return ClassState(
            frequencies=W,
            mean=mean,
            deviations=np.zeros((K, self.n_deviations, n_coef)),
            ridge=np.full(K, self.start.ridge),
            linear_precision=np.full(K, self.start.linear_precision),
            mixture=self.mixture.init(rng, W, Z),
            log_likelihood=log_likelihood(self.rows, W, mean, self.law),
            law=self.law,
        )

    def step(self, rng: np.random.Generator, state: ClassState) -> tuple[ClassState, SpectralInfo]:
        """Take the sweeps of a step."""
        return take_sweeps(self._take_filled, rng, state, self.tuning.n_sweeps)

    def _take_filled(
        self, rng: np.random.Generator, state: ClassState
    ) -> tuple[ClassState, SpectralInfo]:
        """Take one sweep; then, where inputs are missing, see `mercer.spectral.missing`."""
        if self.missing is None:
            return self.take_sweep(rng, state)
        rows = self.missing.filled(self.rows, state.inputs)
        new, info = replace(self, rows=rows, missing=None).take_sweep(rng, state)
        W, coef, linear = new.frequencies, new.coef, rows.has_linear_part
        inputs = self.missing.step(
            rng, rows, lambda X, y: new.law.log_mass(coef @ design(W, X, linear), y)
        )
        density = log_likelihood(self.missing.filled(rows, inputs), W, coef, new.law)
        new = replace(new, inputs=inputs, log_likelihood=density)
        return new, replace(info, log_density=density)

    @abstractmethod
    def take_sweep(
        self, rng: np.random.Generator, state: ClassState
    ) -> tuple[ClassState, SpectralInfo]:
        """Take one sweep over rows without gaps."""

    def before_sweep(
        self, rng: np.random.Generator, state: ClassState
    ) -> tuple[ClassState, float | None]:
        """Climb, if it is the first step; draw what the law has of its own; move all there is.

        Returns the state, and the acceptance probability of the trajectory, or of the move of all
        coefficients, or None.
        """
        if not state.coef.any():
            state = self._at_maximum(state) if self.law.is_firm else self._climb(rng, state)
        state = state.law.draw(rng, self.rows, state, self._precisions(state))
        if self.law.is_firm:
            return self._move_coefficients(rng, state)
        if self.n_leapfrog == 0:
            return state, None
        return move_together(
            rng, self.rows, self.model, self.mixture, state, self.tuning.trajectory, self.n_leapfrog
        )

    @property
    def is_moved(self) -> bool:
        """Whether something goes before sweeps whose step can be tuned."""
        return self.n_leapfrog > 0 or self.law.is_firm

    def info(
        self, accepted: tuple[float, float], trajectory: float | None, log_density: float
    ) -> SpectralInfo:
        """Report of a step: shares of accepted proposals and trajectories, log likelihood."""
        local, elsewhere = accepted
        common = (local, self.tuning.step, log_density, elsewhere)
        if trajectory is None:
            return SpectralInfo(*common)
        return TrajectoryInfo(*common, trajectory, self.tuning.trajectory)

    def record(self, state: ClassState) -> Mapping[str, NDArray[Any]]:
        """Frequencies, law of the coefficients, partition, and what is monitored."""
        mixture = state.mixture
        found: dict[str, NDArray[Any]] = {
            "log_likelihood": np.array(state.log_likelihood),
            "n_components": np.array(mixture.n_components),
            "kernel": self.probe.kernel(state.frequencies),
            "function": self.probe.function(state.frequencies, state.coef),
            "ridge_precision": state.ridge,
            "linear_precision": state.linear_precision,
            "concentration": np.array(mixture.concentration),
            "base_scale": mixture.scale,
            "assignment": mixture.assignment,
            "frequencies": state.frequencies,
            "coef_mean": state.mean,
            "coef_deviation": state.deviations,
        }
        if self.missing is not None:
            found |= state.inputs.law
        return state.law.recorded(found)

    def _climb(self, rng: np.random.Generator, state: ClassState) -> ClassState:
        """Climb, where there is a way, from the start, which alone has functions that are 0.

        As a part of a step it can be stopped like one, and a resumed chain does not do it again.
        """
        if self.ascent is None:
            return state
        m = self.n_frequencies
        scales = self.start.scales_of(m)
        W, mean, is_cut = self.ascent.climb(state.frequencies, scales, self.n_sticks, self.law)
        mixture = self.mixture.init(rng, W, self.start.places(m))
        return replace(state, frequencies=W, mean=mean, mixture=mixture, is_start_cut=is_cut)

    def _move_coefficients(
        self, rng: np.random.Generator, state: ClassState
    ) -> tuple[ClassState, float]:
        """Move all coefficients under the likelihood itself: Metropolis and Hastings."""
        step, log_uniform = self.tuning.trajectory, math.log(1.0 - rng.random())
        here = self._newton(state, state.coef)
        proposed = _towards(here, state.coef[0], step) + step * here.draw(rng, 1)[0]
        try:
            there = self._newton(state, proposed[np.newaxis])
        except NumericalError:
            return state, 0.0
        ratio = self._log_posterior(state, proposed[np.newaxis])
        ratio -= self._log_posterior(state, state.coef)
        ratio += _log_proposal(there, proposed, state.coef[0], step)
        ratio -= _log_proposal(here, state.coef[0], proposed, step)
        accepted = math.exp(min(ratio, 0.0)) if math.isfinite(ratio) else 0.0
        if not log_uniform < ratio:
            return state, accepted
        none = np.zeros_like(state.deviations)
        return replace(state, mean=proposed[np.newaxis], deviations=none), accepted

    def _at_maximum(self, state: ClassState) -> ClassState:
        """Take coefficients of the highest density."""
        given = state.frequencies, state.coef, state.law, self._precisions(state), self.rows
        return replace(state, mean=maximise(*given))

    def _newton(self, state: ClassState, coef: Array) -> LogisticCoefficients:
        """Return the normal law around one Newton step from coefficients (1, 2 M + p)."""
        given = state.frequencies, coef, state.law, self._precisions(state), self.rows
        return newton(*given)[0]

    def _log_posterior(self, state: ClassState, coef: Array) -> float:
        """Log density of coefficients (K, 2 M + p) given all else but omega, plus a constant."""
        given = self.rows, state.frequencies, coef, state.law, self._precisions(state)
        return log_posterior(*given)

    def _precisions(self, state: ClassState) -> Array:
        n_features = 2 * len(state.frequencies)
        return self.model.precisions_of_all(n_features, state.ridge, state.linear_precision)

    def _linear(self, precision: float) -> Array:
        return self.model.linear_precisions(float(precision))

    def _draw_linear_precision(self, rng: np.random.Generator, coef: Array, old: float) -> float:
        """Draw the precision of the linear part of one function given its coefficients."""
        if self.model.n_linear <= 1:
            return old
        prior, slopes = self.model.linear_prior, coef[2 * self.n_frequencies + 1 :]
        rate = prior.rate + 0.5 * float(slopes @ slopes)
        return float(rng.gamma(prior.shape + 0.5 * len(slopes)) / rate)

    def _turn(self, rng: np.random.Generator, state: ClassState) -> ClassState:
        """The mixture; a frequency that changes its sign takes the sign of its sines with it."""
        mixture, signs = self.mixture.step(rng, state.mixture, state.frequencies)
        factors = np.ones(state.mean.shape[1])
        factors[1 : 2 * len(signs) : 2] = signs
        return replace(
            state,
            frequencies=signs[:, np.newaxis] * state.frequencies,
            mean=state.mean * factors,
            deviations=state.deviations * factors,
            mixture=mixture,
        )


def logistic_ridge_density(
    gram: Array,
    linear_precisions: Array,
    prior: GammaPrior,
    n_rows: int,
    device: Device | None = None,
) -> RidgeDensity:
    """Prepare the density of one stick's ridge from [Phi, H, z]' Omega [Phi, H, z].

    Omega are Polya-Gamma variables, that are given; coefficients are integrated out. Those of
    large counts weigh more than rows do, and leave more of rounding.
    """
    reduced = reduce_products(gram, linear_precisions, device=device)
    total = float(gram.diagonal()[: len(gram) - 1 - len(linear_precisions)].sum())
    return RidgeDensity(*reduced, None, 0.0, prior, lowest_ridge(max(n_rows, total)))


class WeighedOnce:
    """Weights that one pass over few rows in memory gives, the same in each further pass.

    Functions that later passes have say nothing: where these were known is not asked again.
    """

    def __init__(self, weigh_of: WeighOf) -> None:
        self._weigh_of = weigh_of
        self._weighed: dict[int, list[tuple[Array, Array]]] = {}

    def __call__(self, index: int) -> Weigh:
        """Weigh the rows of a block: as before, if it was there before."""
        if index in self._weighed:
            said = iter(self._weighed[index])
            return lambda f, y: next(said)
        kept, weigh = self._weighed.setdefault(index, []), self._weigh_of(index)

        def weigh_and_keep(f: Array, y: Array) -> tuple[Array, Array]:
            kept.append(weigh(f, y))
            return kept[-1]

        return weigh_and_keep


# Warm-up of chains of classes: the step of the proposals, and that of the trajectories.

_TARGET_OF_TRAJECTORIES = 0.8
_REFUSALS = 3.0  # left by what is proposed anew together, if each were decided alone


@dataclass(frozen=True)
class LearnedSteps:
    """Where both searches stand."""

    proposals: LearnedStep
    trajectory: LearnedStep


@dataclass(frozen=True)
class ClassAdaptation(Adaptation):
    """Search for the steps of what the chain has; proposals from the prior have none."""

    has_steps: bool

    def init(self, sampler: Any) -> LearnedSteps:
        """Begin at the sampler's own steps."""
        tuning = sampler.tuning
        return LearnedSteps(LearnedStep.first(tuning.step), LearnedStep.first(tuning.trajectory))

    def update(
        self, learned: LearnedSteps, sampler: Any, state: Any, info: Any
    ) -> tuple[LearnedSteps, Any]:
        """Move both steps by what the last sweep accepted."""
        proposals, trajectory = learned.proposals, learned.trajectory
        if self.has_steps:
            excess, refused = info.acceptance_rate - TARGET_ACCEPTANCE, 1.0 - info.global_acceptance
            proposals = proposals.after(excess, refused)
        if sampler.is_moved:
            trajectory = trajectory.after(info.trajectory_acceptance - _TARGET_OF_TRAJECTORIES)
        tuning = replace(sampler.tuning, step=proposals.step, trajectory=trajectory.step)
        return LearnedSteps(proposals, trajectory), self.with_tuning(sampler, tuning)

    def finish(self, learned: LearnedSteps, sampler: Any) -> Any:
        """Keep the averages of the searches."""
        n_anew = (
            learned.proposals.n_anew(sampler.n_frequencies, _REFUSALS) if sampler.carries else 0
        )
        tuning = replace(
            sampler.tuning,
            step=learned.proposals.average,
            trajectory=learned.trajectory.average,
            n_anew=n_anew,
        )
        return self.with_tuning(sampler, tuning)


# BaNK for classes: Polya-Gamma variables, then the sweep of the regression that they make.
#
# **Target** p(W, beta, ridge, Z, mu, Sigma, ... | y): one set of frequencies W_j ~ N(mu_Zj,
# Sigma_Zj) under a Dirichlet-process mixture, with coefficients beta_k, gamma_k, a ridge and a
# precision of the linear part for each of the C - 1 functions that tell classes apart
# (`mercer.spectral.class_model`).
#
# **One step** (a sweep; `mercer.spectral.trajectory` says what may go before it)
#
# 0. The size of one function with its ridge and the precision of its linear part.
# 1. Proposals for all frequencies given Z, mu, Sigma, local and global ones.
# 2. One pass over the rows: omega | beta, W, and products weighted by it.
# 3. Each frequency in its turn, accepted by the ratio of evidences given omega, beta integrated
#    out; those of the functions multiply.
# 4. Where rows are few, components with their members, a scale, many anew, as with numbers, given
#    the same omega: two or three more passes.
# 5. The ridges, beta integrated out.
# 6. beta given W and omega.
# 7. The precisions of the linear parts given beta.
# 8. Z with the signs of the frequencies, (mu, Sigma), base scale, concentration.
#
# omega is drawn anew in each sweep, before W moves, and does not outlive it; beta is drawn after
# the last change of W.
#
# **Symbols** (paper -> code): W -> ``frequencies``, beta -> ``coef``.
#
# **Deviations.** The paper proposes (W_j, beta_j) jointly with a Laplace law of beta_j, eqs. (14)
# and (15): that is `mercer.spectral.class_sampler`; here beta is integrated out exactly, all of it
# at once. The ridge is drawn; a linear part; several classes.
#
# **Cost** of a step: (C - 1) (16 n M^2 flops and O(M^3)), fewer rows for later functions; with 4
# up to (C - 1) (40 n M^2 and O(K M^3)), K components.
#
# References
# ----------
# .. [1] Oliva et al., Bayesian nonparametric kernel-learning (AISTATS 2016), section 3.3.2.


# (new, old frequencies) -> weighted products of all functions, by one pass.
ProductsOf = Callable[[Array, Array], tuple[WeightedProducts, ...]]


@dataclass(frozen=True, eq=False)
class ClassSampler(ClassChain):
    """Sweeps over all frequencies with Polya-Gamma variables; attributes are those of the base."""

    @property
    def _device(self) -> Device | None:
        return device_of(self.rows, self.n_frequencies)

    def take_sweep(
        self, rng: np.random.Generator, state: ClassState
    ) -> tuple[ClassState, SpectralInfo]:
        """Take one sweep."""
        state, trajectory = self.before_sweep(rng, state)
        state = self._resize(rng, state)
        mixture, W, grams, accepted, products_of = self._sweep(rng, state)
        if self.carries:
            mixture, W, grams = self._carry(rng, state, mixture, W, grams, products_of)
        new = self._complete(rng, replace(state, mixture=mixture), W, grams)
        new = self._turn(rng, new)
        density = log_likelihood(self.rows, new.frequencies, new.coef, new.law)
        new = replace(new, log_likelihood=density)
        return new, self.info(accepted, trajectory, density)

    def _resize(self, rng: np.random.Generator, state: ClassState) -> ClassState:
        """Step 0: one of some sizes for one function, its precisions with it.

        Not of counts, whose coefficients have all moved under the likelihood itself.
        """
        prior, model = self.model.ridge_prior, self.model
        if prior is None or state.law.is_firm:
            return state
        k, place = rng.integers(self.n_sticks), rng.integers(_N_SIZES)
        sizes = np.exp(rng.choice(_SPACINGS) * (np.arange(_N_SIZES) - place))
        coef, at = state.coef, 2 * len(state.frequencies)
        level = coef[k, at : at + 1].sum()  # none without a linear part
        say_of = functools.partial(_hearer_of_sizes, state.law, sizes, int(k), float(level))
        logs = function_sums(self.rows, state.frequencies, coef, say_of)
        ridges, precisions = state.ridge[k] / sizes**2, state.linear_precision[k] / sizes**2
        logs = logs + _log_density_of_log(prior, ridges)
        if model.n_linear > 1:
            logs += _log_density_of_log(model.linear_prior, precisions)
        is_in = (ridges >= lowest_ridge(self.rows.n_rows)) & (ridges <= RIDGE_LIMITS[1])
        size = one_of(rng, sizes, np.where(is_in, logs, -np.inf))
        coef[k] *= size
        coef[k, at : at + 1] = level
        ridge, linear = state.ridge.copy(), state.linear_precision.copy()
        ridge[k] /= size**2
        linear[k] /= size**2 if model.n_linear > 1 else 1.0
        none = np.zeros_like(state.deviations)
        return replace(state, mean=coef, deviations=none, ridge=ridge, linear_precision=linear)

    def _weighed(self, rng: np.random.Generator, state: ClassState) -> ProductsOf:
        """Have omega drawn in the first pass, which has the frequencies of the state."""
        weigh_of = of_blocks(rng, state.law.weigher)
        weigh_of = WeighedOnce(weigh_of) if self.carries else weigh_of
        coef, tasks = state.coef, state.law.tasks
        return lambda new, old: weighted_products(self.rows, new, old, coef, weigh_of, tasks)

    def _sweep(
        self, rng: np.random.Generator, state: ClassState
    ) -> tuple[MixtureState, Array, tuple[Array, ...], tuple[float, float], ProductsOf]:
        """Steps 1 to 3: mixture, frequencies, their products, what was accepted; what weighs so."""
        W = state.frequencies
        proposed = propose_all(rng, self.mixture, state.mixture, W, self.tuning)
        log_uniform = np.log(rng.random(len(W)))
        products_of = self._weighed(rng, state)
        products = products_of(proposed.frequencies, W)
        if self._device is None:
            products = tuple(each.here() for each in products)
        joints = tuple(
            join(each.gram, each, float(ridge), self._linear(precision))
            for each, ridge, precision in zip(
                products, state.ridge, state.linear_precision, strict=True
            )
        )
        is_accepted = decide_together(joints, log_uniform).is_accepted
        grams = tuple(choose(each.gram, each, is_accepted) for each in products)
        mixture, W = proposed.decided(state.mixture, W, is_accepted)
        return mixture, W, grams, proposed.rates(is_accepted), products_of

    def _carry(
        self,
        rng: np.random.Generator,
        state: ClassState,
        mixture: MixtureState,
        W: Array,
        grams: tuple[Array, ...],
        products_of: ProductsOf,
    ) -> tuple[MixtureState, Array, tuple[Array, ...]]:
        """Step 4."""
        given = Given(
            self.model,
            list(self._precisions(state)),
            lambda new, old: tuple(each.here() for each in products_of(new, old)),
            lambda moved: tuple(each.here().gram for each in products_of(moved[:0], moved)),
        )
        return carry(rng, self.mixture, given, mixture, W, grams, self.tuning.n_anew)

    def _complete(
        self, rng: np.random.Generator, state: ClassState, W: Array, grams: tuple[Array, ...]
    ) -> ClassState:
        """Steps 5 to 7: draw ridges, coefficients and precisions of the linear parts."""
        mean, deviations = np.empty_like(state.mean), np.empty_like(state.deviations)
        ridges, precisions = state.ridge.copy(), state.linear_precision.copy()
        model = self.model
        for k, gram in enumerate(grams):
            if model.ridge_prior is not None:
                linear, n = self._linear(precisions[k]), self.rows.n_rows
                density = logistic_ridge_density(gram, linear, model.ridge_prior, n, self._device)
                ridges[k] = draw_ridge(rng, density, density.lifted(float(ridges[k])))
            diagonal = model.prior_precisions(2 * len(W), ridges[k], precisions[k])
            law = logistic_coefficients(gram, diagonal, self._device)
            mean[k], deviations[k] = law.mean, law.draw(rng, self.n_deviations)
            coef = mean[k] + deviations[k, 0]
            precisions[k] = self._draw_linear_precision(rng, coef, float(precisions[k]))
        return replace(
            state,
            frequencies=W,
            mean=mean,
            deviations=deviations,
            ridge=ridges,
            linear_precision=precisions,
        )


# The size of a function. Given omega and its ridge a function hardly changes its size, given the
# function its ridge hardly does: the two would crawl together. Coefficients but the level times c
# and their precisions over c^2 are as probable under their normal prior, volume counted, so that
# likelihood and priors of log precisions alone decide between sizes c: one of sixteen in geometric
# progression, of which c = 1 has any place with the same probability. omega is integrated out.

_N_SIZES, _SPACINGS = 16, (0.05, 0.2)


def _hearer_of_sizes(law: Law, sizes: Array, k: int, level: float, index: int) -> Say:
    """Say the log probability of targets where function k, but for its level, has each size."""

    def say(f: Array, y: Array) -> Array:
        scaled = np.tile(f, len(sizes))
        scaled[k] = (level + np.outer(sizes, f[k] - level)).ravel()
        logs = law.log_mass(scaled, np.tile(y, len(sizes))).reshape(len(sizes), -1)
        return np.asarray(logs.sum(axis=1))

    return say


def _log_density_of_log(prior: GammaPrior, values: Array) -> Array:
    """Log density of the logarithm of gamma variables, up to a constant."""
    return np.asarray(prior.shape * np.log(values) - prior.rate * values)


# The move of all coefficients of counts. Where the mean is far from r, Polya-Gamma variables hold
# the function much firmer than counts do: by (mean - r) / (2 log(mean / r)) in place of
# r mean / (r + mean). Given them alone, functions of large or of nearly Poisson counts would hardly
# move. From beta the move proposes
#
#     m + sqrt(1 - s^2) (beta - m) + s e,   e ~ N(0, Lambda^-1),
#
# with m one Newton step from beta and Lambda the curvature there: Gamerman's proposal [1]_ for
# s = 1, and always accepted if the posterior is normal.
#
# References
# ----------
# .. [1] D. Gamerman, "Sampling from the posterior distribution in generalized linear mixed models",
#    Statistics and Computing 7 (1997).


def _towards(law: LogisticCoefficients, coef: Array, step: float) -> Array:
    return np.asarray(law.mean + math.sqrt(max(1.0 - step * step, 0.0)) * (coef - law.mean))


def _log_proposal(law: LogisticCoefficients, coef: Array, proposed: Array, step: float) -> float:
    """Log density of the proposal from ``coef``, of which ``law`` is; a constant left out."""
    lower = np.tril(law.factor)
    z = lower.T @ (proposed - _towards(law, coef, step)) / step
    return float(np.log(lower.diagonal()).sum() - 0.5 * z @ z)


# BaNK for classes as the paper has it: each frequency moves together with its own coefficients.
#
# **Target** p(W, beta, ridge, Z, mu, Sigma, ... | y), as in `mercer.spectral.class_sampler`.
#
# **One step** (a sweep; `mercer.spectral.trajectory` says what may go before it)
#
# 1. Proposals W* for all frequencies given Z, mu, Sigma; each depends on its own W_j at most.
# 2. For each frequency in its turn, f being what all others make of the functions: its coefficients
#    beta_j* ~ Lap(. | W_j*), a normal law around the mode of their posterior, and both accepted by
#
#        p(y | W*, beta*) p(beta*) Lap(beta_j | W_j) / (p(y | W, beta) p(beta) Lap(beta_j* | W_j*))
#
#    eqs. (14), (15). The search for either mode starts at 0, so that Lap depends on nothing that
#    changes with the decision. Several functions share W_j: the product over them decides.
# 3. The coefficients of the linear parts, by Polya-Gamma variables.
# 4. The ridges and the precisions of the linear parts given the coefficients.
# 5. Z with the signs of the frequencies, (mu, Sigma), base scale, concentration.
#
# **Symbols** (paper -> code): W -> ``frequencies``, beta -> ``coef``.
#
# **Deviations.** The paper prints Lap(beta_j* | W_j) in the numerator: the chain would have another
# law. The ridge is drawn; a linear part; several classes.
#
# **Cost** of a step: O((C - 1) n M d). All rows must be in memory.
#
# References
# ----------
# .. [1] Oliva et al., Bayesian nonparametric kernel-learning (AISTATS 2016), section 3.3.2.

# Numbers of one table of features that are in memory at a time: 8 MiB.
_MOST_NUMBERS = 2**20


@dataclass(frozen=True, eq=False)
class JointSampler(ClassChain):
    """Sweeps over frequencies with their coefficients; attributes are those of the base."""

    def take_sweep(
        self, rng: np.random.Generator, state: ClassState
    ) -> tuple[ClassState, SpectralInfo]:
        """Take one sweep."""
        state, trajectory = self.before_sweep(rng, state)
        X, coef = _in_memory(self.rows), state.coef
        f, codes = functions_at_rows(self.rows, state.frequencies, coef)
        sign = signs_of(codes, self.n_sticks)
        mixture, W, accepted = self._sweep(rng, state, X, sign, coef, f)
        if self.model.n_linear > 0:
            self._move_linear(rng, state, X, sign, coef, f)
        new = self._complete(rng, replace(state, mixture=mixture), W, coef)
        new = self._turn(rng, new)
        density = CLASSES.slope(f, codes)[0]
        new = replace(new, log_likelihood=density)
        return new, self.info(accepted, trajectory, density)

    def _sweep(
        self,
        rng: np.random.Generator,
        state: ClassState,
        X: Array,
        sign: Array,
        coef: Array,
        f: Array,
    ) -> tuple[MixtureState, Array, tuple[float, float]]:
        """Steps 1 and 2: mixture, frequencies, what was accepted; changes ``coef`` and ``f``."""
        W, m = state.frequencies, len(state.frequencies)
        proposals = propose_all(rng, self.mixture, state.mixture, W, self.tuning)
        proposed = proposals.frequencies
        log_uniform = np.log(rng.random(m))
        normals = rng.standard_normal((m, self.n_sticks, 2))
        is_accepted, log_ratio = np.zeros(m, dtype=bool), np.empty(m)
        for part in _parts(m, len(X)):
            own = slice(2 * part.start, 2 * part.stop)
            moved = np.ascontiguousarray(coef[:, own])
            move_jointly(
                _features(W[part], X, m), _features(proposed[part], X, m), sign, moved,
                state.ridge, normals[part], log_uniform[part], f,
                is_accepted[part], log_ratio[part],
            )  # fmt: skip
            coef[:, own] = moved
        mixture, W = proposals.decided(state.mixture, W, is_accepted)
        return mixture, W, proposals.rates(is_accepted)

    def _move_linear(
        self,
        rng: np.random.Generator,
        state: ClassState,
        X: Array,
        sign: Array,
        coef: Array,
        f: Array,
    ) -> None:
        """Step 3; changes ``coef`` and ``f``."""
        p = self.model.n_linear
        H = np.concatenate([np.ones((1, len(X))), X.T])
        for k in range(self.n_sticks):
            is_in, linear = sign[k] != 0.0, coef[k, -p:] @ H
            H_in = H[:, is_in]
            omega, kappa = CLASSES.weigher(rng)(f[k, is_in], 0.5 * sign[k, is_in])
            weighted = H_in * omega
            target = kappa - omega * (f[k, is_in] - linear[is_in])
            gram = np.column_stack([weighted @ H_in.T, H_in @ target])
            law = logistic_coefficients(gram, self._linear(state.linear_precision[k]))
            coef[k, -p:] = law.mean + law.draw(rng, 1)[0]
            f[k] += coef[k, -p:] @ H - linear

    def _complete(
        self, rng: np.random.Generator, state: ClassState, W: Array, coef: Array
    ) -> ClassState:
        """Step 4: precisions given the coefficients."""
        ridges, precisions = state.ridge.copy(), state.linear_precision.copy()
        prior, n_features = self.model.ridge_prior, 2 * len(W)
        for k, each in enumerate(coef):
            if prior is not None:
                own = each[:n_features]
                ridges[k] = rng.gamma(prior.shape + len(W)) / (prior.rate + 0.5 * float(own @ own))
            precisions[k] = self._draw_linear_precision(rng, each, float(precisions[k]))
        return replace(
            state,
            frequencies=W,
            mean=coef,
            deviations=np.zeros((self.n_sticks, 1, coef.shape[1])),
            ridge=ridges,
            linear_precision=precisions,
        )


def _in_memory(rows: TrainingRows) -> Array:
    if isinstance(rows, MemoryRows):
        return rows.X
    return np.concatenate([X for X, _ in rows.blocks()])


def _parts(n_frequencies: int, n_rows: int) -> list[slice]:
    """Frequencies whose features are in memory at a time."""
    size = max(_MOST_NUMBERS // (2 * n_rows), 1)
    starts = range(0, n_frequencies, size)
    return [slice(begin, min(begin + size, n_frequencies)) for begin in starts]


def _features(W: Array, X: Array, n_frequencies: int) -> Array:
    """Features of some of the frequencies, shape (2 m, n)."""
    out = np.empty((2 * len(W), len(X)))
    fill_features(W, X, out)
    out *= math.sqrt(len(W) / n_frequencies)
    return out
