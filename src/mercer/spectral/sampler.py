"""BaNK for regression: Gibbs and Metropolis steps over frequencies and their mixture.

**Target** p(W, Z, mu, Sigma, ridge, ... | y): frequencies W_j ~ N(mu_Zj, Sigma_Zj) under a
Dirichlet-process mixture, and the regression of `mercer.spectral.model`.

**One step** (a sweep, or several where frequencies are few)

0. Where the noise is a mixture of normals, see `mercer.spectral.model`: its parameter given the
   errors; then weights and pseudo-targets of the rows, which hold for the rest of the sweep.

1. Proposals for all frequencies given Z, mu, Sigma: local ones, and global ones of (Z_j, W_j).
2. One pass over the rows: products of proposed and current features.
3. Each frequency in its turn, accepted by the ratio of evidences, eqs. (9) to (12), beta and s2
   integrated out.
4. Where rows are few: components with their members, each component in its turn, then the scale of
   one input with all frequencies: by the evidence as well, two more passes. Where single
   ones are hardly ever refused, half of all or more anew at once, and what the mixture has of them.
5. The ridge, beta and s2 integrated out.
6. s2, then beta.
7. The precision of the linear part given beta and s2.
8. Z with the signs of the frequencies, (mu, Sigma), base scale, concentration: eq. (8) and
   section 3.2.
9. Where inputs are missing, see `mercer.spectral.missing`: their law, then them, given beta and s2.

Whatever uses beta or s2 comes after the last change of W: a stale beta in 7 would break the law.

**Symbols** (paper -> code): W -> ``frequencies``, beta -> ``coef``, Lambda_0 -> ``ridge``,
sigma_eps -> ``noise_variance``, Phi'Phi -> part of ``gram``.

**Deviations.** The ridge is drawn, not 1/2, unless it is given; a linear part; global proposals
and 4, but not with proposals from the prior as in the paper; in 3 products are computed once a
sweep and not by low-rank updates, which changes no decision.

**Cost** of a sweep: 12 n M^2 flops and O(M^3); with 4, 28 n M^2 and O(K M^3), K components.

References
----------
.. [1] Oliva et al., Bayesian nonparametric kernel-learning (AISTATS 2016).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from mercer.errors import NumericalError
from mercer.features.device import Device
from mercer.features.products import Products
from mercer.numerics.cholesky import factorise
from mercer.sampling.sampler import Adaptation, Sampler
from mercer.spectral.base_measure import Components
from mercer.spectral.loops import assemble, decide_few, decide_few_together, gather, select
from mercer.spectral.missing import InputState, MissingInputs, normal_log_likelihood
from mercer.spectral.mixture import (
    Mixture,
    MixtureState,
    ProposalTuning,
    Start,
    Whole,
    decide_groups,
    without_gaps,
)
from mercer.spectral.model import (
    Evidence,
    FirstFunction,
    Probe,
    RegressionModel,
    ScaleMixture,
    coefficients,
    design,
    draw_ridge,
    evidence_of_choice,
    evidence_of_products,
    ridge_density,
)
from mercer.spectral.rows import (
    TrainingRows,
    WeighedRows,
    WeightedProducts,
    function_sums,
    of_blocks,
)

# Proposals of frequencies, all drawn at the start of a sweep, and their tuning.
#
# Each depends on its own frequency at most and leaves its conditional prior N(mu_Zj, Sigma_Zj)
# invariant, so that only the evidence decides:
#
#     "prior"   W* = mu + noise                                   the paper, section 3.3
#     "pcn"     W* = mu + rho (W - mu) + sqrt(1 - rho^2) noise    preconditioned Crank-Nicolson
#
# with noise ~ N(0, Sigma). The step sqrt(1 - rho^2) is tuned in warm-up; 1 is the prior.
#
# Those are local: the component stays. Given the Dirichlet process G itself, drawn from its law
# given Z, mu and Sigma, the pairs (Z_j, W_j) are independent draws from G. So a pair (Z_j*, W_j*)
# drawn from G, whatever the state, is a proposal that the evidence alone decides as well, and may
# take a frequency into any other component or a new one. In a sweep some frequencies, chosen at
# random, have such a global proposal and the others a local one, G and all else given; then G is
# forgotten. The longer the local step, the less a local proposal finds that a global one does not:
# the more are global, up to nine in ten.

Array = NDArray[np.float64]

#: Of proposals of frequencies.
TARGET_ACCEPTANCE = 0.3
_SMALLEST_STEP = 1e-6
# Share of the frequencies that have a global proposal, for local steps of 0 and of 1.
_GLOBAL_SHARES = (0.5, 0.9)
_FIRST_STEPS = 5  # of warm-up, without weight in the average: the way in


def propose(
    rng: np.random.Generator,
    mixture: Mixture,
    state: MixtureState,
    frequencies: Array,
    tuning: ProposalTuning,
) -> Array:
    """Propose a new value for every frequency within its component, shape (M, d)."""
    centre = mixture.centre(state)
    rho = math.sqrt(max(1.0 - tuning.step**2, 0.0))
    return centre + rho * (frequencies - centre) + tuning.step * mixture.draw_noise(rng, state)


def global_share(step: float) -> float:
    """Share of the frequencies that have a global proposal where local ones have this step."""
    fewest, most = _GLOBAL_SHARES
    return fewest + (most - fewest) * step


@dataclass(frozen=True, eq=False)
class Proposals:
    """What a sweep proposes: (Z_j*, W_j*) for each frequency."""

    frequencies: Array  # (M, d)
    assignment: NDArray[np.int64]  # (M,), places in ``components``
    components: Components  # those of the state, then those that global proposals bring
    is_global: NDArray[np.bool_]  # (M,)

    def decided(
        self, state: MixtureState, frequencies: Array, is_accepted: NDArray[np.bool_]
    ) -> tuple[MixtureState, Array]:
        """Return the mixture, without components that nobody is left in, and the frequencies."""
        W = np.where(is_accepted[:, np.newaxis], self.frequencies, frequencies)
        Z = np.where(is_accepted, self.assignment, state.assignment)
        kept, Z = without_gaps(Z)
        return replace(state, assignment=Z, components=self.components.chosen(kept)), W

    def rates(self, is_accepted: NDArray[np.bool_]) -> tuple[float, float]:
        """Shares of the local and of the global proposals that were accepted; of none, of all."""
        parts = is_accepted[~self.is_global], is_accepted[self.is_global]
        local, elsewhere = (float(np.mean(part if len(part) else is_accepted)) for part in parts)
        return local, elsewhere


def propose_all(
    rng: np.random.Generator,
    mixture: Mixture,
    state: MixtureState,
    frequencies: Array,
    tuning: ProposalTuning,
) -> Proposals:
    """Propose for every frequency: for some, drawn at random, from the whole mixture."""
    proposed = propose(rng, mixture, state, frequencies, tuning)
    m = len(frequencies)
    is_global = np.zeros(m, dtype=bool)
    if tuning.global_share == 0.0:
        return Proposals(proposed, state.assignment, state.components, is_global)
    n = int(tuning.global_share * m + rng.random())
    is_global[rng.permutation(m)[:n]] = True
    Z = state.assignment.copy()
    Z[is_global], components, proposed[is_global] = mixture.draw_pairs(rng, state, n)
    return Proposals(proposed, Z, components, is_global)


@dataclass(frozen=True)
class LearnedStep:
    """Where Robbins & Monro's search for a step of at most 1 stands."""

    n_seen: int
    log_step: float
    log_average: float
    refused: float = 1.0  # average share of global proposals

    @classmethod
    def first(cls, step: float) -> LearnedStep:
        """Begin at a step."""
        return cls(0, math.log(step), math.log(step))

    def after(self, excess: float, refused: float = 1.0) -> LearnedStep:
        """Move by how much more than wanted was accepted."""
        n = self.n_seen + 1
        log_step = self.log_step + 2.0 / math.sqrt(n) * excess
        log_step = min(max(log_step, math.log(_SMALLEST_STEP)), 0.0)
        share = 1.0 if n <= _FIRST_STEPS else (n - _FIRST_STEPS) ** -0.6
        before = 1.0 - share
        average = share * log_step + before * self.log_average
        return LearnedStep(n, log_step, average, share * refused + before * self.refused)

    def n_anew(self, m: int, refusals: float = 1.0) -> int:
        """How many of m to propose anew together: as leave so many refusals, if half or more."""
        n = int(m / max(1.0, m * self.refused / refusals))
        return n if 2 * n >= m else 0

    @property
    def step(self) -> float:
        """The step to try next."""
        return math.exp(self.log_step)

    @property
    def average(self) -> float:
        """The step to keep."""
        return math.exp(self.log_average)


@dataclass(frozen=True)
class StepAdaptation(Adaptation):
    """Robbins & Monro's search for the step that is accepted 3 times in 10.

    More rows are looked at after some warm-up sweeps: one number for each of ``few``. A step has
    one sweep in warm-up, ``n_sweeps`` after it. As many frequencies as leave one refusal are then
    proposed anew together, if they are half of all or more; if all, half the sweeps are enough.
    The first ``n_kept`` sweeps leave the parameter of the noise.
    """

    more_rows_after: tuple[int, ...] = ()
    n_sweeps: int = 1
    n_kept: int = 0

    def init(self, sampler: Any) -> LearnedStep:
        """Begin at the sampler's own step."""
        return LearnedStep.first(sampler.tuning.step)

    def update(
        self, learned: LearnedStep, sampler: Any, state: Any, info: Any
    ) -> tuple[LearnedStep, Any]:
        """Move the step by what the last sweep accepted."""
        refused = 1.0 - info.global_acceptance
        learned = learned.after(info.acceptance_rate - TARGET_ACCEPTANCE, refused)
        level = sum(learned.n_seen >= end for end in self.more_rows_after)
        is_kept = learned.n_seen < self.n_kept
        return learned, self._tuned(sampler, learned.step, level, is_noise_kept=is_kept)

    def finish(self, learned: LearnedStep, sampler: Any) -> Any:
        """Keep the average of the search, and look at all rows."""
        level, m = len(self.more_rows_after), sampler.n_frequencies
        n_anew = learned.n_anew(m)
        n_sweeps = -(-self.n_sweeps // 2) if n_anew == m else self.n_sweeps
        return self._tuned(sampler, learned.average, level, n_sweeps=n_sweeps, n_anew=n_anew)

    def _tuned(self, sampler: Any, step: float, level: int, **more: Any) -> Any:
        return self.with_tuning(sampler, ProposalTuning(step, level, global_share(step), **more))


# The accept loop of one sweep: every frequency in its turn, from products computed once.
#
# **Task.** Frequency j is replaced by its proposal with probability min(1, p(y | W*) / p(y | W)),
# all others as they stand at its turn: new ones before it, old ones after it (eqs. (9), (10)). All
# inner products of current features, proposed features and targets are known.
#
# **Recursive halving.** To decide the first half, the current columns of the second half are
# eliminated (a Schur complement); to decide the second half, the columns just chosen in the first.
# Each half goes on in the same way, down to one frequency: a 5 x 5 matrix whose entries give the
# ratio of evidences. Nothing is updated, so nothing drifts; O(M^3) in all, nearly all of it in
# triangular solves and products of matrices.
#
# The decisions are those of the single-site chain, exactly.

# Frequencies that one compiled call decides: below, calls of BLAS cost more than they save.
_FEW = 24
# As many leave the device, on which steps as small as theirs take as long as large ones.
_FEW_ON_DEVICE = 96


@dataclass(frozen=True, eq=False)
class Decisions:
    """What became of the proposals: both ndarrays of shape (M,)."""

    is_accepted: NDArray[np.bool_]
    log_ratio: Array


# Decides a few frequencies: all products, logarithms of uniform variables, what is to be written.
_Few = Callable[[tuple[Array, ...], Array, Decisions], None]


def join(gram: Array, products: Products, ridge: float, linear_precisions: Array) -> Any:
    """Lay out all products for `decide`, what is always in the model eliminated.

    Arguments are those of `mercer.spectral.loops.assemble`, and the prior precisions (p,) of
    the coefficients of the linear columns. Returns the lower triangle (4 M + q, 4 M + q) for q
    outputs, Fortran-ordered; a `DeviceMatrix` where the products are on a device.
    """
    among, across, p = products.among, products.across, len(linear_precisions)
    if products.device is not None:
        return products.device.joint(gram, among, across, ridge, linear_precisions)
    n_outputs = len(gram) - len(among) - p
    width = 2 * len(among) + n_outputs
    joint = np.empty((width, width), order="F")
    linear = np.empty((p, width), order="F")
    assemble(gram, among, across, ridge, p, joint, linear)
    if p == 0:
        return joint
    of_linear = slice(len(among), len(among) + p)
    inner = np.array(gram[of_linear, of_linear], order="F")
    inner[np.arange(p), np.arange(p)] += linear_precisions
    solved = blas.dtrsm(1.0, factorise(inner), linear, lower=1, overwrite_b=1)
    reduced: Array = blas.dsyrk(-1.0, solved, beta=1.0, c=joint, trans=1, lower=1, overwrite_c=1)
    return reduced


def choose(gram: Array, products: Products, is_accepted: NDArray[np.bool_]) -> Array:
    """Return the products of what was chosen: `mercer.spectral.loops.select`, where they are."""
    given = gram, products.among, products.across, is_accepted
    return np.asarray(
        select(*given) if products.device is None else products.device.selected(*given)
    )


def decide(joint: Any, log_uniform: Array, shape: float, rate: float) -> Decisions:
    """Accept or reject each proposal in its turn.

    ``joint`` (4 M + q, 4 M + q) holds products, Fortran-ordered, lower triangle; columns 4 j, 4
    j + 1 are the current features of frequency j, 4 j + 2, 4 j + 3 the proposed ones, the ridge
    on the diagonal of both; the last rows belong to the q outputs. What is always in the model
    has been eliminated. ``shape`` and ``rate`` are a_n = a_0 + n / 2 and b_0 of the noise
    variance of each. A `NumericalError` where the current features are collinear to working
    precision.
    """

    def few(joints: tuple[Array, ...], log_uniform: Array, found: Decisions) -> None:
        decide_few(joints[0], log_uniform, shape, rate, found.is_accepted, found.log_ratio)

    return _all_of((joint,), log_uniform, few)


def decide_together(joints: tuple[Array, ...], log_uniform: Array) -> Decisions:
    """Decide each proposal for several regressions at once: their log ratios add.

    The regressions, a ``joint`` of `decide` each, have the same frequencies and targets of
    their own, and noise of variance 1.
    """

    def few(joints: tuple[Array, ...], log_uniform: Array, found: Decisions) -> None:
        stack = np.array(joints, order="C")  # one layout: the loop calls itself
        decide_few_together(stack, log_uniform, found.is_accepted, found.log_ratio)

    return _all_of(joints, log_uniform, few)


def _all_of(joints: tuple[Array, ...], log_uniform: Array, few: _Few) -> Decisions:
    m = len(log_uniform)
    decisions = Decisions(np.zeros(m, dtype=bool), np.empty(m))
    _decide(joints, log_uniform, few, decisions)
    if np.isnan(decisions.log_ratio).any():
        raise NumericalError(
            "the features are collinear to working precision: the ridge is too low"
        )
    return decisions


def _decide(joints: tuple[Array, ...], log_uniform: Array, few: _Few, decisions: Decisions) -> None:
    m = len(log_uniform)
    is_accepted, log_ratio = decisions.is_accepted, decisions.log_ratio
    if m <= max(_FEW, _FEW_ON_DEVICE):
        joints = tuple(each if isinstance(each, np.ndarray) else each.get() for each in joints)
    if m <= _FEW:
        few(joints, log_uniform, decisions)
        return
    h = m // 2
    for half, other in ((slice(0, h), slice(h, m)), (slice(h, m), slice(0, h))):
        schurs = tuple(_eliminate(joint, other, is_accepted[other], half) for joint in joints)
        _decide(schurs, log_uniform[half], few, Decisions(is_accepted[half], log_ratio[half]))


def _eliminate(joint: Any, other: slice, is_accepted: NDArray[np.bool_], half: slice) -> Any:
    """Return the Schur complement of one half, the other one standing as it does now."""
    first = 4 * np.arange(other.start, other.stop) + 2 * is_accepted
    gone = (first[:, np.newaxis] + np.arange(2)).ravel()
    if not isinstance(joint, np.ndarray):
        outputs = np.arange(4 * max(half.stop, other.stop), len(joint))
        own = np.arange(4 * half.start, 4 * half.stop)
        return joint.schur(gone, np.concatenate([own, outputs]))
    k, g = len(joint) - 4 * len(is_accepted), len(gone)  # the outputs are kept
    kept = np.empty((k, k), order="F")
    among = np.empty((g, g), order="F")
    across = np.empty((k, g), order="F")
    gather(joint, gone, 4 * half.start, kept, among, across)
    factor = factorise(among)
    solved = blas.dtrsm(1.0, factor, across, side=1, lower=1, trans_a=1, overwrite_b=1)
    schur: Array = blas.dsyrk(-1.0, solved, beta=1.0, c=kept, lower=1, overwrite_c=1)
    return schur


def device_of(rows: TrainingRows, n_frequencies: int) -> Device | None:
    """The device of the rows, if matrices of so many frequencies are worth the way there."""
    return rows.device if n_frequencies > _FEW_ON_DEVICE else None


@dataclass(frozen=True, eq=False)
class Given:
    """What moves of many frequencies are decided by: regressions on all, whose evidences add."""

    model: Evidence
    precisions: Sequence[Array]  # of the coefficients of each regression, (2 M + p,)
    products: Callable[[Array, Array], tuple[Any, ...]]  # of new and old frequencies: one pass
    grams: Callable[[Array], tuple[Array, ...]]  # of frequencies: one pass

    def evidence(self, grams: tuple[Array, ...]) -> float:
        """Log evidence in nats from the products of all regressions."""
        given = zip(grams, self.precisions, strict=True)
        return sum(evidence_of_products(self.model, *each) for each in given)


def carry(
    rng: np.random.Generator,
    prior: Mixture,
    given: Given,
    mixture: MixtureState,
    W: Array,
    grams: tuple[Array, ...],
    n_anew: int,
) -> tuple[MixtureState, Array, tuple[Array, ...]]:
    """Move components, then a scale, that take their members along; then ``n_anew`` anew.

    Frequencies W (M, d) have the products ``grams``; returned are mixture, frequencies, products.
    """
    carried = prior.propose_components(rng, mixture, W)
    products, Z = given.products(carried.frequencies, W), mixture.assignment
    of_all = list(zip(grams, products, given.precisions, strict=True))

    def log_evidence(is_accepted: NDArray[np.bool_]) -> float:
        took = is_accepted[Z]
        return sum(
            evidence_of_choice(given.model, gram, each, took, precisions)
            for gram, each, precisions in of_all
        )

    log_uniform = np.log(rng.random(mixture.n_components))
    is_accepted, now = decide_groups(log_evidence, log_uniform)
    grams = tuple(choose(gram, each, is_accepted[Z]) for gram, each, _ in of_all)
    mixture, W = carried.decided(mixture, W, is_accepted)
    proposals: list[Callable[..., Whole]] = []
    if prior.scale_prior is not None:
        proposals.append(prior.propose_scale)
    if n_anew > 0:
        proposals.append(functools.partial(prior.propose_anew, n=n_anew))
    for propose_whole in proposals:
        new, moved, log_ratio = propose_whole(rng, mixture, W)
        others = given.grams(moved)
        then = given.evidence(others)
        if math.log(1.0 - rng.random()) < then - now + log_ratio:
            mixture, W, grams, now = new, moved, others, then
    return mixture, W, grams


@dataclass(frozen=True)
class CoefDraw:
    """The law of the coefficients given all else, and k draws from it."""

    mean: Array  # mu_n, (2 M + p,); of this and the next q outputs are a first axis
    deviations: Array  # (k, 2 M + p), draws of beta - mu_n; mu_n - deviation is a draw as well
    noise_variance: Any  # s2: a float, or (q,)
    log_evidence: float  # log p(y | W, ridge, linear precision), in nats


@dataclass(frozen=True)
class NoiseState:
    """Parameter of noise that is a mixture of normals, and what the rows say of the next one."""

    parameter: Array = field(default_factory=lambda: np.empty(0))
    said: Array = field(default_factory=lambda: np.empty(0))  # empty where no row was asked
    log_likelihood: float = math.nan  # of all targets given function and noise, in nats


@dataclass(frozen=True)
class SpectralState:
    """Where the chain stands."""

    frequencies: Array  # (M, d)
    gram: Array  # [Phi, H, Y]'[Phi, H, Y] of these frequencies; weighted, if the noise is a mixture
    ridge: float
    linear_precision: float
    mixture: MixtureState
    coef: CoefDraw
    n_rows: int  # rows that ``gram`` is a sum over
    noise: NoiseState = field(default_factory=NoiseState)  # empty of normal noise
    inputs: InputState = field(default_factory=InputState)  # empty unless missing ones are drawn


@dataclass(frozen=True)
class SpectralInfo:
    """What a diagnostician needs: shares of accepted proposals, their step, evidence in nats."""

    acceptance_rate: float  # of local proposals
    step_size: float
    log_density: float
    global_acceptance: float  # of global ones


# What gives products of features: rows as they are, or weighed.
AnyRows = TrainingRows | WeighedRows


def _log_density(state: SpectralState) -> tuple[str, float]:
    """Name and value, in nats, of how well the state explains the targets."""
    if not len(state.noise.said):
        return "log_evidence", state.coef.log_evidence
    return "log_likelihood", state.noise.log_likelihood


def take_sweeps(
    sweep: Callable[[np.random.Generator, Any], tuple[Any, Any]],
    rng: np.random.Generator,
    state: Any,
    n_sweeps: int,
) -> tuple[Any, Any]:
    """Take so many sweeps; shares of accepted proposals are those of all of them."""
    infos: list[Any] = []
    for _ in range(n_sweeps):
        state, info = sweep(rng, state)
        infos.append(info)
    rates = [(i.acceptance_rate, i.global_acceptance) for i in infos]
    local, elsewhere = np.mean(rates, axis=0).tolist()
    return state, replace(infos[-1], acceptance_rate=local, global_acceptance=elsewhere)


@dataclass(frozen=True, eq=False)
class SpectralSampler(Sampler[SpectralState, SpectralInfo]):
    """Sweeps over all M frequencies, then over what their law depends on."""

    rows: TrainingRows
    model: RegressionModel
    mixture: Mixture
    start: Start
    n_frequencies: int
    n_deviations: int  # draws of the coefficients that each kept draw stores
    tuning: ProposalTuning
    probe: Probe  # where kernel and function are recorded for the diagnostics
    carries: bool = False  # whether components move with all their members as well
    few: tuple[TrainingRows, ...] = ()  # parts of the rows, larger and larger, for warm-up
    noise: ScaleMixture | None = None  # None: normal
    missing: MissingInputs | None = None  # inputs that are drawn along, of normal noise
    first: FirstFunction | None = None  # what far targets are first told by

    @property
    def rows_now(self) -> TrainingRows:
        """The rows that a step looks at: all of them once warm-up is over."""
        return (*self.few, self.rows)[self.tuning.level]

    @property
    def _device(self) -> Device | None:
        """Where matrices of a sweep are taken apart."""
        return device_of(self.rows_now, self.n_frequencies)

    def _rows_with(self, inputs: InputState) -> TrainingRows:
        """Those rows, with what the chain holds of missing inputs."""
        if self.missing is None:
            return self.rows_now
        return self.missing.filled(self.rows_now, inputs)

    @property
    def model_now(self) -> RegressionModel:
        """The regression on those rows."""
        return replace(self.model, n_rows=self.rows_now.n_rows)

    def _model_of(self, gram: Array) -> RegressionModel:
        """The regression with these products, of rows that may have weights."""
        if self.noise is None:
            return self.model_now
        weight = float(gram.diagonal()[: 2 * self.n_frequencies].sum())
        return replace(self.model_now, weight=weight)

    def init(self, rng: np.random.Generator) -> SpectralState:
        """Draw frequencies at the scales of the start, one component for each of its factors.

        Where the noise has far errors, targets far from the first function have little weight.
        """
        start = self.start
        W, Z = start.frequencies(rng, self.n_frequencies)
        mixture = self.mixture.init(rng, W, Z)
        inputs = InputState() if self.missing is None else self.missing.init(rng, self.rows_now)
        rows: AnyRows = self._rows_with(inputs)
        if self.noise is not None and self.first is not None:
            by, law = self.first, self.noise
            rows = self._weighed(rng, law, by.frequencies, by.coef, by.noise_std**2, law.first)
        new = self._complete(rng, W, rows.gram(W), start.ridge, start.linear_precision, mixture)
        if self.noise is not None:
            return self._heard(rng, self.noise, new, self.noise.first)
        return replace(new, inputs=inputs)

    def step(
        self, rng: np.random.Generator, state: SpectralState
    ) -> tuple[SpectralState, SpectralInfo]:
        """Take the sweeps of a step."""
        return take_sweeps(self._take_sweep, rng, state, self.tuning.n_sweeps)

    def _take_sweep(
        self, rng: np.random.Generator, state: SpectralState
    ) -> tuple[SpectralState, SpectralInfo]:
        rows: AnyRows = self._rows_with(state.inputs)
        noise, parameter = self.noise, np.empty(0)
        if noise is not None:
            state, parameter, rows = self._draw_noise(rng, noise, state)
        elif state.n_rows != self.rows_now.n_rows:
            gram = self.rows_now.gram(state.frequencies)
            state = replace(state, gram=gram, n_rows=self.rows_now.n_rows)
        mixture, W, gram, accepted = self._sweep(rng, state, rows)
        if self.carries:
            mixture, W, gram = self._carry(rng, state, mixture, W, gram, rows)
        model, ridge = self._model_of(gram), state.ridge
        if model.ridge_prior is not None:
            density = ridge_density(model, gram, state.linear_precision, self._device)
            ridge = draw_ridge(rng, density, density.lifted(ridge))
        new = self._complete(rng, W, gram, ridge, state.linear_precision, mixture)
        new = self._turn(rng, new)
        if noise is not None:
            new = self._heard(rng, noise, new, parameter)
        if self.missing is not None:
            new = self._draw_missing(rng, self.missing, new, rows)
        local, elsewhere = accepted
        return new, SpectralInfo(local, self.tuning.step, _log_density(new)[1], elsewhere)

    def record(self, state: SpectralState) -> Mapping[str, NDArray[Any]]:
        """Frequencies, law of the coefficients, noise, partition, and what is monitored."""
        coef, mixture = state.coef, state.mixture
        name, log_density = _log_density(state)
        found = {
            name: np.array(log_density),
            "noise_std": np.asarray(np.sqrt(coef.noise_variance)),
            "n_components": np.array(mixture.n_components),
            "kernel": self.probe.kernel(state.frequencies),
            "function": self.probe.function(
                state.frequencies, coef.mean + coef.deviations[..., 0, :]
            ),
            "ridge_precision": np.array(state.ridge),
            "linear_precision": np.array(state.linear_precision),
            "concentration": np.array(mixture.concentration),
            "base_scale": mixture.scale,
            "assignment": mixture.assignment,
            "frequencies": state.frequencies,
            "coef_mean": coef.mean,
            "coef_deviation": coef.deviations,
        }
        if self.noise is not None:
            found |= self.noise.recorded(state.noise.parameter)
        if self.missing is not None:
            found |= state.inputs.law
        return found

    def _draw_missing(
        self, rng: np.random.Generator, missing: MissingInputs, state: SpectralState, rows: Any
    ) -> SpectralState:
        """Step 9: inputs of rows with gaps, given a function and its noise; new products."""
        coef, W, linear = state.coef, state.frequencies, rows.has_linear_part
        beta = coef.mean + coef.deviations[..., 0, :]
        hear = normal_log_likelihood(
            lambda X: np.asarray(beta @ design(W, X, linear)), coef.noise_variance
        )
        inputs = missing.step(rng, rows, hear)
        return replace(state, inputs=inputs, gram=self._rows_with(inputs).gram(W))

    def _draw_noise(
        self, rng: np.random.Generator, noise: ScaleMixture, state: SpectralState
    ) -> tuple[SpectralState, Array, WeighedRows]:
        """Step 0: the parameter, and how rows are weighed; of other rows they are heard first."""
        parameter = state.noise.parameter
        if state.n_rows != self.rows_now.n_rows:
            state = self._heard(rng, noise, state, parameter)
        if not self.tuning.is_noise_kept:
            hear = functools.partial(self._hear, rng, noise, state)
            parameter = noise.draw(rng, state.noise.said, parameter, hear)
        coef, variance = state.coef.mean + state.coef.deviations[0], state.coef.noise_variance
        rows = self._weighed(rng, noise, state.frequencies, coef, variance, parameter)
        return state, parameter, rows

    def _weighed(
        self,
        rng: np.random.Generator,
        noise: ScaleMixture,
        W: Array,
        coef: Array,
        noise_variance: float,
        parameter: Array,
    ) -> WeighedRows:
        make = functools.partial(noise.weigher, noise_variance, parameter)
        known = noise.known_by(W, coef, parameter)
        return WeighedRows(self.rows_now, *known, of_blocks(rng, make))

    def _heard(
        self, rng: np.random.Generator, noise: ScaleMixture, state: SpectralState, parameter: Array
    ) -> SpectralState:
        """Put what the rows say of the noise around the function into the state."""
        said = self._hear(rng, noise, state, parameter)
        heard = NoiseState(parameter, said, noise.log_likelihood(said, parameter))
        return replace(state, noise=heard, n_rows=self.rows_now.n_rows)

    def _hear(
        self, rng: np.random.Generator, noise: ScaleMixture, state: SpectralState, parameter: Array
    ) -> Array:
        """Ask the rows; one pass, O(n M)."""
        make = functools.partial(noise.hearer, state.coef.noise_variance, parameter)
        coef = (state.coef.mean + state.coef.deviations[0])[np.newaxis]
        say_of = of_blocks(rng, make)
        said = function_sums(self.rows_now, state.frequencies, coef, say_of, noise.beside)
        return np.asarray(said)

    def _sweep(
        self, rng: np.random.Generator, state: SpectralState, rows: AnyRows
    ) -> tuple[MixtureState, Array, Array, tuple[float, float]]:
        """Steps 1 to 3: mixture, frequencies, their products, and what was accepted."""
        W = state.frequencies
        proposed = propose_all(rng, self.mixture, state.mixture, W, self.tuning)
        log_uniform = np.log(rng.random(len(W)))
        products = rows.products(proposed.frequencies, W)
        products = products if self._device is not None else products.here()
        gram = products.gram if isinstance(products, WeightedProducts) else state.gram
        model = self._model_of(gram)
        precisions = model.linear_precisions(state.linear_precision)
        ridge = model.lifted(state.ridge)
        joint = join(gram, products, ridge, precisions)
        is_accepted = decide(
            joint, log_uniform, model.posterior_shape, model.noise_rate
        ).is_accepted
        gram = choose(gram, products, is_accepted)
        mixture, W = proposed.decided(state.mixture, W, is_accepted)
        return mixture, W, gram, proposed.rates(is_accepted)

    def _carry(
        self,
        rng: np.random.Generator,
        state: SpectralState,
        mixture: MixtureState,
        W: Array,
        gram: Array,
        rows: AnyRows,
    ) -> tuple[MixtureState, Array, Array]:
        """Step 4."""
        model = self._model_of(gram)
        precisions = model.prior_precisions(2 * len(W), state.ridge, state.linear_precision)
        given = Given(
            model,
            (precisions,),
            lambda new, old: (rows.products(new, old).here(),),
            lambda moved: (rows.gram(moved),),
        )
        mixture, W, grams = carry(rng, self.mixture, given, mixture, W, (gram,), self.tuning.n_anew)
        return mixture, W, grams[0]

    def _complete(
        self,
        rng: np.random.Generator,
        W: Array,
        gram: Array,
        ridge: float,
        linear_precision: float,
        mixture: MixtureState,
    ) -> SpectralState:
        """Steps 6 and 7: draw noise, coefficients and the precision of the linear part."""
        model, n_features = self._model_of(gram), 2 * len(W)
        precisions = model.prior_precisions(n_features, ridge, linear_precision)
        law = coefficients(model, gram, precisions, self._device)
        noise_variance, deviations = law.draw(rng, model.posterior_shape, self.n_deviations)
        draw = CoefDraw(law.mean, deviations, noise_variance, law.log_evidence)
        if model.n_linear > 1:
            slopes = (law.mean + deviations[..., 0, :])[..., n_features + 1 :]
            prior = model.linear_prior
            squares = np.vecdot(slopes, slopes)
            rate = prior.rate + float(np.sum(0.5 * squares / noise_variance))
            linear_precision = rng.gamma(prior.shape + 0.5 * slopes.size) / rate
        return SpectralState(
            W, gram, ridge, float(linear_precision), mixture, draw, self.rows_now.n_rows
        )

    def _turn(self, rng: np.random.Generator, state: SpectralState) -> SpectralState:
        """Step 8; a frequency that changes its sign takes the sign of its sine with it."""
        mixture, signs = self.mixture.step(rng, state.mixture, state.frequencies)
        factors = np.ones(len(state.gram))
        factors[1 : 2 * len(signs) : 2] = signs
        coef, of_coef = state.coef, factors[: state.coef.mean.shape[-1]]
        turned = CoefDraw(
            coef.mean * of_coef, coef.deviations * of_coef, coef.noise_variance, coef.log_evidence
        )
        return replace(
            state,
            frequencies=signs[:, np.newaxis] * state.frequencies,
            gram=state.gram * np.outer(factors, factors),
            mixture=mixture,
            coef=turned,
        )
