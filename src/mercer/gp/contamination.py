"""Regression where some targets are wrong: a contaminated normal law of the noise.

**Target.** Each target is right, or wrong by an error of its own size,

    y_i = f(x_i) + e_i,    e_i ~ N(0, s2 + h(z_i)),    P(z_i = k) = p_k,

with the kinds z, what each adds to the noise, h, and the prior of their shares p of
`mercer.likelihoods.label_noise`: first the right ones. The function, a Gaussian process with an
intercept, is integrated out; the log parameters of kernel and noise, theta, have the priors of
`mercer.gp.fitting.RegressionSettings`.

**One step**

1. theta given z: now and then a proposal from a t law around the posterior of the rows that looked
   right at first, which ends what a chain began with. Then, of the parameters of the kernel, a
   short trajectory of Hamilton's dynamics, whose mass is from that posterior, too.
2. z_i given all other z, row by row: with C = K + v 11' + diag(s2 + h), A = C^-1 and a = A y, the
   target of row i has, given all others, the mean y_i - a_i / A_ii and the variance
   1 / A_ii - h(z_i) + h(k) for each k. Where z_i changes, C changes by d e_i e_i', and A by
   -d / (1 + d A_ii) of the product of its column i with itself.
3. The noise given the function. With the floor b of s2 as a part of the function, u drawn from its
   prior N(0, K + v 11' + b I), and w from N(0, diag(s2 + h - b)), the errors

       e = w + diag(s2 + h - b) A (y - u - w)

   are a draw given y and z. Given e, five times: s2 by a slice, the kinds summed out; z; p. Given
   z alone s2 hardly moves: a noise that is half as wide has kinds that are twice as wide.
4. p given z: Beta and Dirichlet laws.

The conditional law of z_i in step 2 gives the probability that target i is wrong (averaged over
draws it has less Monte Carlo error than counts of z_i) and, from the other rows alone, the value
that would be expected there.

**Cost.** O(n^3) a step: seven factors, five inverses, five products with derivatives of the kernel;
O(n^2) for each z_i that changes in step 2. A trajectory that is accepted ends with the inverse that
step 2 begins with, and step 3 computes no covariance of the kernel twice.

References
----------
.. [1] J. W. Tukey, A survey of sampling from contaminated distributions, 1960.
.. [2] S. Sundararajan and S. S. Keerthi, Predictive approaches for choosing hyperparameters in
   Gaussian processes, Neural Computation 13 (2001): the laws of rows left out.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NumericalError
from mercer.gp.fitting import FittedGP, RegressionSettings, fit_regression, kernel_labels
from mercer.gp.gaussian import (
    FunctionDraws,
    NoiseOfRows,
    RegressionPosterior,
    function_draws,
    noisy_factor,
)
from mercer.gp.hyperparameters import (
    SEARCHING,
    find_maximum,
    is_within_range,
    stacked_parameters,
)
from mercer.gp.loops import draw_kinds, kinds_of_errors, mirror
from mercer.likelihoods.label_noise import (
    ADDED_NOISE,
    ADDED_SQUARES,
    N_KINDS,
    SHARES,
    WIDTHS,
    added_variances,
    draw_shares,
    log_shares,
    rate_of,
    right_shares,
    shares_of,
    tied_rows,
    width_of,
)
from mercer.numerics.cholesky import (
    invert_factored,
    multiply_lower,
    one_blas_thread,
    symmetric_product,
)
from mercer.posterior.diagnostics import effective_size, flat_weights
from mercer.posterior.draws import Draws
from mercer.posterior.labels import TargetLaws
from mercer.sampling.driver import RunOptions, sample_long_enough
from mercer.sampling.hmc import HMC, HamiltonianTuning, mass_from_covariance
from mercer.sampling.importance import first_proposal
from mercer.sampling.metropolis import slice_step
from mercer.sampling.sampler import Sampler
from mercer.sampling.signals import check_stop

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

_N_OF_NOISE = 5  # draws of the noise given the function
_JUMPS = 0.25  # of the steps begin with a proposal of all of theta
# Of the trajectories: steps of about this over the fourth root of the number of parameters.
_N_LEAPFROG, _STEP, _JITTER = 4, 1.1, 0.2


# The sampler.


@dataclass(frozen=True)
class ContaminatedState:
    """Hyperparameters, kinds of errors, their rate, and what a draw keeps of them."""

    position: Array  # (p,), theta
    codes: Codes  # (n,), z
    shares: Array  # (15,), log p
    log_density: float  # of theta given z, up to a constant; nats
    log_evidence: float  # of the targets given theta and z
    dual_coef: Array  # (n,), C^-1 y
    wrong: Array  # (n,), P(target i is wrong | all other z, theta, y)
    means: Array  # (n,), of the function at each row, given all other targets
    bases: Array  # (n,), variance of a right target there


@dataclass(frozen=True)
class ContaminatedInfo:
    """What a diagnostician needs to know of one step."""

    acceptance_rate: float
    n_changed: int  # rows whose z is another


@dataclass(frozen=True)
class _Evaluated:
    log_density: float
    log_evidence: float
    dual_coef: Array
    L: Array


@dataclass(frozen=True)
class ContaminatedSampler(Sampler[ContaminatedState, ContaminatedInfo]):
    """The four blocks of the module's docstring.

    ``model`` is that of targets without errors; mean and covariance of theta are what the rows that
    looked right say; chains begin at ``codes`` (n,), and the mean of the function is recorded at
    ``rows`` (k,). The prior is cut off below ``least_log_noise``.
    """

    model: RegressionPosterior
    mean: Array
    covariance: Array
    codes: Codes
    rows: NDArray[np.int64]
    least_log_noise: float = -math.inf

    def init(self, rng: np.random.Generator) -> ContaminatedState:
        """Begin at a draw of theta where the density can be computed, with the first codes."""
        n = len(self.model.y)
        shares = log_shares((1.0 + np.count_nonzero(self.codes)) / (2.0 + n))
        theta = rng.multivariate_normal(self.mean, self.covariance, method="cholesky")
        found = self._evaluate(theta, self.codes)
        if found is None:
            theta, found = self.mean, self._evaluated(self.mean, self.codes)
        empty = np.zeros(n)
        return ContaminatedState(
            theta, self.codes, shares, found.log_density, found.log_evidence, found.dual_coef,
            empty, empty, empty,
        )  # fmt: skip

    def step(
        self, rng: np.random.Generator, state: ContaminatedState
    ) -> tuple[ContaminatedState, ContaminatedInfo]:
        """Draw hyperparameters, kinds and rate."""
        check_stop()
        before = state.codes
        state = self._jump(rng, state) if rng.random() < _JUMPS else state
        state, A, acceptance_rate = self._move(rng, state)
        state = self._draw_noise(rng, self._draw_codes(rng, state, A), A)
        changed = int(np.count_nonzero(state.codes != before))
        return state, ContaminatedInfo(acceptance_rate, changed)

    def record(self, state: ContaminatedState) -> Mapping[str, NDArray[np.float64]]:
        """Return parameters, codes, rate, and what the rows left out say of each target."""
        noise, added = self._noise(state.position)
        D = noise + added[state.codes]
        return {
            **self.model.parameters(state.position),
            "log_rate": np.log(rate_of(state.shares)),
            "log_shares": state.shares,
            "log_density": np.asarray(state.log_density),
            "log_evidence": np.asarray(state.log_evidence),
            "latent": (self.model.y - D * state.dual_coef)[self.rows],
            "dual_coef": state.dual_coef,
            "error_kind": state.codes.astype(np.float64),
            "wrong": state.wrong,
            "left_out_mean": state.means,
            "left_out_variance": state.bases + (width_of(state.shares) - 1.0) * noise,
        }

    def _draw_codes(
        self, rng: np.random.Generator, state: ContaminatedState, A: Array
    ) -> ContaminatedState:
        """Step 2, A brought up to date; what else belongs to theta and z is not."""
        mirror(A)
        a, codes = state.dual_coef.copy(), state.codes.copy()
        n, y = len(codes), self.model.y
        wrong, means, bases = np.empty(n), np.empty(n), np.empty(n)
        added = self._noise(state.position)[1]
        draw_kinds(
            A, a, y, codes, added, state.shares, len(WIDTHS), rng.random(n), wrong, means, bases
        )
        return replace(state, codes=codes, wrong=wrong, means=means, bases=bases)

    def _draw_noise(
        self, rng: np.random.Generator, state: ContaminatedState, A: Array
    ) -> ContaminatedState:
        """Steps 3 and 4, given A of theta and z."""
        model, theta, codes = self.model, state.position.copy(), state.codes.copy()
        shares, floor = state.shares, model.noise_floor(theta)
        errors = self._draw_errors(rng, state, A, floor)
        for uniforms in rng.random((_N_OF_NOISE, len(codes))):
            density = functools.partial(
                self._log_density_of_noise, theta, errors, floor, shares, uniforms, codes
            )
            log_noise = model.split(theta)[1]
            if model.log_noise_variance is None:
                log_noise = math.log(slice_step(rng, density, math.exp(log_noise), _NOWHERE))
            density(log_noise)
            shares = draw_shares(rng, np.bincount(codes, minlength=N_KINDS))
        K = model.workspace.take("gram", len(codes))  # as the errors left it
        found = self._evaluated(theta, codes, K)
        return _with(replace(state, shares=shares), theta, codes, found)

    def _log_density_of_noise(
        self,
        theta: Array,
        errors: Array,
        floor: float,
        shares: Array,
        uniforms: Array,
        codes: Codes,
        log_noise: float,
    ) -> float:
        """Log density of errors and noise; ``theta`` gets the noise, and ``codes`` are drawn."""
        model = self.model
        if model.log_noise_variance is None:
            theta[-1] = log_noise
        if not self._has_density(theta):
            return -math.inf
        noise = math.exp(log_noise)
        variances = noise + added_variances(noise + floor)
        density = float(kinds_of_errors(errors, variances, shares, uniforms, codes))
        return density + model.prior.at(slice(-1, None)).log_density(theta[-1:])

    def _draw_errors(
        self, rng: np.random.Generator, state: ContaminatedState, A: Array, floor: float
    ) -> Array:
        """Draw the errors given y and z, but for the part of the floor, shape (n,)."""
        model, n = self.model, len(state.codes)
        kernel_theta, log_noise = model.split(state.position)
        K = model.kernel.gram(kernel_theta, model.X, out=model.workspace.take("gram", n))
        scratch = model.workspace.take("prior", n)  # A is in the other one
        L = _factor_of_function(K, floor, scratch, model.intercept_variance)
        variances = math.exp(log_noise) + self._noise(state.position)[1][state.codes]
        u = multiply_lower(L, rng.standard_normal((n, 1)))[:, 0]
        w = np.sqrt(variances) * rng.standard_normal(n)
        return np.asarray(w + variances * (A @ (model.y - u - w)))

    def _move(
        self, rng: np.random.Generator, state: ContaminatedState
    ) -> tuple[ContaminatedState, Array, float]:
        """Take a trajectory; returns A, a triangle of it, and the acceptance rate, too."""
        (theta, log_noise), codes = self.model.split(state.position), state.codes
        rows, prior = _noise_of_kinds(codes), self.model.prior.at(slice(len(theta)))
        A = self.model.workspace.take("inverse", len(codes))
        target = replace(
            self.model, prior=prior, log_noise_variance=log_noise, noise_of_rows=rows, inverse=A
        )
        mass = mass_from_covariance(self.covariance[: len(theta), : len(theta)])
        size = _STEP * len(theta) ** -0.25 * rng.uniform(1.0 - _JITTER, 1.0 + _JITTER)
        tuning = HamiltonianTuning(size, mass)
        hmc = HMC(target, lambda rng: theta, lambda point: point.extra, tuning, _N_LEAPFROG)
        end, info = hmc.step(rng, hmc.init(rng))
        if info.is_accepted:
            position = np.append(end.point.position, state.position[len(theta) :])
            moved = replace(state, position=position, dual_coef=end.point.extra["dual_coef"])
            return moved, A, info.acceptance_rate
        found = self._evaluated(state.position, codes)
        return state, invert_factored(found.L).T, info.acceptance_rate

    def _jump(self, rng: np.random.Generator, state: ContaminatedState) -> ContaminatedState:
        """Propose theta from the t law."""
        proposal = first_proposal(self.mean, self.covariance)
        theta, log_uniform = proposal.draw(rng, 1)[0], math.log(1.0 - rng.random())
        before, after = proposal.log_density(np.stack([state.position, theta]))
        found = self._evaluate(theta, state.codes)
        if found is None:
            return state
        change = found.log_density - state.log_density + float(before - after)
        return _with(state, theta, state.codes, found) if log_uniform < change else state

    def _has_density(self, theta: Array) -> bool:
        """Whether the prior has density there."""
        return is_within_range(theta) and self.model.split(theta)[1] >= self.least_log_noise

    def _noise(self, theta: Array) -> tuple[float, Array]:
        """Variance of the noise with its floor, and h of every kind."""
        noise = self.model.noise_variance(theta)
        return noise, added_variances(noise)

    def _evaluated(self, theta: Array, codes: Codes, K: Array | None = None) -> _Evaluated:
        """Evaluate where the chain is."""
        found = self._evaluate(theta, codes, K)
        if found is None:
            raise NumericalError(_NOWHERE)
        return found

    def _evaluate(self, theta: Array, codes: Codes, K: Array | None = None) -> _Evaluated | None:
        """Log density of theta given z, and the factor, in scratch memory; None: no density."""
        if not self._has_density(theta):
            return None
        found = replace(self.model, noise_of_rows=_noise_of_kinds(codes)).factored(theta, K)
        if found is None or not math.isfinite(found[3]):
            return None
        _, L, a, evidence = found
        return _Evaluated(evidence + self.model.prior.log_density(theta), evidence, a, L)


def _noise_of_kinds(codes: Codes) -> NoiseOfRows:
    return NoiseOfRows(np.ones(len(codes)), 1.0 + ADDED_NOISE[codes], ADDED_SQUARES[codes])


_NOWHERE = "the evidence cannot be computed where the chain is"


def _factor_of_function(K: Array, floor: float, scratch: Array, intercept_variance: float) -> Array:
    """Factor of K + v 11' + floor I, the floor tenfold as long as rounding leaves it indefinite.

    Rows many length scales from the first, of many inputs, have errors beyond the floor.
    """
    for power in range(_MOST_TENFOLD):
        with suppress(NumericalError):
            return noisy_factor(K, floor * 10.0**power, scratch, intercept_variance)
    raise NumericalError(_NOWHERE)


_MOST_TENFOLD = 6  # floors that are tried, the last 1e5 times the first


def _with(
    state: ContaminatedState, theta: Array, codes: Codes, found: _Evaluated
) -> ContaminatedState:
    return replace(
        state, position=theta, codes=codes, log_density=found.log_density,
        log_evidence=found.log_evidence, dual_coef=found.dual_coef,
    )  # fmt: skip


# From rows to draws.

_ROUNDS, _SUSPICIOUS = 4, 4.0
_FEWEST_RIGHT = 0.5
_WARMUP, _DRAWS = 50, 5  # of each chain: at most, and a part of ``n_draws``
# How many times as long chains become: so many by the number of rows, and at most.
_ROWS_TIMES, _MOST_TIMES = 2500, 15
# By how much the log variance of the noise may be below that of a fit to rows that looked right,
# where targets are tied: half of its standard deviation.
_LESS_NOISE = math.log(4.0)


def look_right(
    X: Array, y: Array, settings: RegressionSettings, options: RunOptions
) -> NDArray[np.bool_]:
    """Which rows look right at first, (n,): no more than four robust deviations from the others.

    The function at the maximum of its hyperparameters given the rows that looked right before, a
    few rounds of this; deviations are in units of the middle one. Half of the rows are kept at
    least. All look right before the first round; or, where the middle deviation is then less than
    half of what it is else, the half that is nearest to the middle target: of errors on one side
    that are many, all rows would make noise. Not so where more than a quarter of the targets are
    equal, such as zeros: any function that is constant there leaves no deviation; and the commonest
    target, if it is more than a fifth of all, has no part in the middle deviation. Chains begin
    there, and propose around it.
    """
    at_maximum = replace(settings, common=replace(settings.common, inference="map"))
    once = replace(options, run=None, progress=False)
    names = tuple(str(j) for j in range(X.shape[1]))

    def settled(right: NDArray[np.bool_], n_halves: int) -> tuple[NDArray[np.bool_], float]:
        middle = math.inf
        for i in range(n_halves + _ROUNDS):
            draws = fit_regression(X[right], y[right], at_maximum, once, names).draws
            found = _right_by(draws, X, y, settings, right, is_half=i < n_halves)
            if found is None:
                break
            before, (right, middle) = right, found
            if i >= n_halves and (before == right).all():
                break
        return right, middle

    right, middle = settled(np.ones(len(y), bool), 0)
    distance = np.abs(y - np.median(y))
    if np.quantile(distance, 0.25) == 0.0:
        return right
    near, of_near = settled(distance <= np.median(distance), _ROUNDS)
    return near if of_near < 0.5 * middle else right


def _right_by(
    draws: Draws,
    X: Array,
    y: Array,
    settings: RegressionSettings,
    right: NDArray[np.bool_],
    *,
    is_half: bool,
) -> tuple[NDArray[np.bool_], float] | None:
    """Which rows look right, and the middle distance of a target from what others expect there."""
    kernel = settings.common.make_kernel()
    functions = function_draws(draws, X, kernel)  # of one draw
    K, noise = kernel.gram(functions.theta[0], X), float(functions.noise_variance[0])
    # A row that is not used has so much noise that it says nothing.
    D = np.where(right, noise, 1e6 * (noise + K.diagonal() + y**2))
    try:
        L = noisy_factor(K, D, np.empty_like(K), settings.intercept_variance)
        A = invert_factored(L)
    except NumericalError:
        return None
    diagonal = A.diagonal().copy()
    error = np.abs(symmetric_product(A, y) / diagonal)
    z = error / np.sqrt(np.maximum(1.0 / diagonal - D, 0.0) + noise)
    counts = ~tied_rows(y)
    limit = float(np.median(z[counts]))
    far = z > (limit if is_half else _SUSPICIOUS * max(limit / 0.6745, 1e-3))
    most = int(len(y) * (1.0 - _FEWEST_RIGHT))
    if far.sum() > most:
        far = z > np.sort(z)[len(y) - most - 1]
    return ~far, float(np.median(error[counts]))


def fit_contaminated(
    X: Array,
    y: Array,
    settings: RegressionSettings,
    options: RunOptions,
    names: tuple[str, ...],
    first: Draws,
    right: NDArray[np.bool_],
    rows: NDArray[np.int64],
) -> tuple[FittedGP, TargetLaws]:
    """Draw hyperparameters and kinds of errors; ``first`` are draws given the rows ``right``.

    Of each chain a fifth of ``n_draws`` is kept, after 50 steps at most, and chains become longer
    where their diagnostics warn.
    """
    model = settings.posterior(X, y)
    theta = stacked_parameters(model.kernel, {name: first.flat(name) for name in first.variables})
    if model.log_noise_variance is None:
        theta = np.column_stack([theta, first.flat("log_noise_variance")])
    mean, covariance = _law_at_first(X[right], y[right], settings, options, first, theta)
    # Where an error begins matters little: the kind that is the most frequent.
    codes = np.where(right, 0, len(WIDTHS) + int(np.argmax(SHARES))).astype(np.int64)
    is_floored = model.log_noise_variance is None and tied_rows(y).any()
    least = float(mean[-1]) - _LESS_NOISE if is_floored else -math.inf
    sampler = ContaminatedSampler(model, mean, covariance, codes, rows, least)
    shorter = replace(
        options,
        n_draws=max(-(-options.n_draws // _DRAWS), 2),
        n_warmup=min(options.n_warmup, _WARMUP),
        most_times=min(max(_ROWS_TIMES // len(y), 3), _MOST_TIMES),
    )
    labels = kernel_labels(model.kernel, names, "log_noise_variance", "log_rate", "latent")
    sampled, diagnostics = sample_long_enough(sampler, shorter, hope=_MOST_TIMES, labels=labels)
    draws, laws = _split(sampled.draws)
    return FittedGP(draws, diagnostics, sampled.notes), laws


def _law_at_first(
    X: Array,
    y: Array,
    settings: RegressionSettings,
    options: RunOptions,
    first: Draws,
    theta: Array,
) -> tuple[Array, Array]:
    """Mean and covariance of theta given the rows that looked right.

    Those of the draws; of few, as little time leaves, the curvature at the maximum, or the widths
    of the prior where there is no time for that either.
    """
    weights, p = flat_weights(first), theta.shape[1]
    if effective_size(first) >= 2.0 * (p + 1):
        covariance = np.atleast_2d(np.cov(theta, rowvar=False, aweights=weights))
        if np.isfinite(covariance).all():
            mean = np.average(theta, axis=0, weights=weights)
            return mean, covariance + 1e-6 * np.eye(p)
    model, best = settings.posterior(X, y), theta[np.argmax(first.flat("log_density"))]
    with one_blas_thread():
        deadline = options.deadline_before_chains(SEARCHING)
        maximum = find_maximum(model, with_covariance=True, deadline=deadline, starts=(best,))
    if maximum.covariance is None:
        return maximum.point.position, np.diag(model.prior.std**2)
    return maximum.point.position, maximum.covariance


_OF_ROWS = ("wrong", "left_out_mean", "left_out_variance")


def _split(draws: Draws) -> tuple[Draws, TargetLaws]:
    """Average what is said of each row, which need not be kept for each draw."""
    wrong, means, variances = (draws.flat(name) for name in _OF_ROWS)
    kept = {name: values for name, values in draws.variables.items() if name not in _OF_ROWS}
    std = np.sqrt(variances.mean(axis=0) + means.var(axis=0))
    return replace(draws, variables=kept), TargetLaws(wrong.mean(axis=0), means.mean(axis=0), std)


def with_errors(functions: FunctionDraws, draws: Draws) -> FunctionDraws:
    """Tell functions of draws which training targets each draw holds to be wrong, if it does."""
    if "error_kind" not in draws.variables:
        return functions
    shares, codes = shares_of(draws), draws.flat("error_kind").astype(np.int64)
    if "log_shares" not in draws.variables:  # of a file of kinds 0, and errors: no other right one
        codes = np.where(codes > 0, codes + len(WIDTHS) - 1, 0)
    noise = functions.noise_variance
    added = np.take_along_axis(added_variances(noise), codes, axis=1)
    kinds = noise[:, np.newaxis] * WIDTHS, right_shares(shares)
    return replace(functions, added_variance=added, kinds_of_noise=kinds)


def target_laws(functions: FunctionDraws, shares: Array, X: Array, y: Array) -> TargetLaws:
    """What draws of functions and shares (S, 15) say of targets y (m,) that they were not given.

    The probability is that given the target: draws count by the density that they give it.
    """
    chosen, weights = functions.of_spread, functions.weights
    weights = np.full(len(chosen), 1.0 / len(chosen)) if weights is None else weights
    means, variances = functions.moments(X)
    noise, shares = functions.noise_variance[chosen], shares[chosen]
    variance = (variances + noise)[..., np.newaxis] + added_variances(noise)
    log_joint = (
        shares
        + np.log(weights)[:, np.newaxis]
        - 0.5 * (np.log(variance) + ((y[:, np.newaxis] - means) ** 2)[..., np.newaxis] / variance)
    )
    joint = np.exp(log_joint - log_joint.max(axis=(1, 2), keepdims=True))
    wrong = joint[..., len(WIDTHS) :].sum(axis=(1, 2)) / joint.sum(axis=(1, 2))
    mean = means @ weights
    right = variances + noise * width_of(shares)
    spread = right @ weights + ((means - mean[:, np.newaxis]) ** 2) @ weights
    return TargetLaws(wrong, mean, np.sqrt(spread))
