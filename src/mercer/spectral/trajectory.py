"""BaNK for classes: trajectories of all coordinates together, and the climb to a start.

A sweep moves a frequency at a time, and components only as far as their members let them; the
posterior of the kernel is crossed slowly. One trajectory of hybrid Monte Carlo
(`mercer.sampling.hmc`) moves

    W and (mu, Sigma)   in the coordinates of `mercer.spectral.trajectory`
    beta_k, gamma_k     times the roots of their prior precisions

given the partition, ridges and precisions, under the logistic likelihood itself: no variables are
added to it. The masses are one plus about what n rows of balanced classes would say of a coordinate
by itself: too large for functions that few rows speak of, which then move slowly. The paper has
nothing of the kind.

**Cost** of a trajectory: O(n M (d + C - 1)) for each of its steps, with full covariances O(M d^2)
more; a sweep costs O((C - 1) n M^2).
"""

from __future__ import annotations

import functools
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize

from mercer.errors import UsageError
from mercer.features.device import Device, Layout
from mercer.features.products import fill_design, parts
from mercer.numerics.sums import PairwiseSum, plus
from mercer.sampling.hmc import travel
from mercer.sampling.signals import is_late
from mercer.spectral.base_measure import (
    BaseMeasure,
    Components,
    DiagonalBase,
    DiagonalComponents,
    FullComponents,
    Labels,
)
from mercer.spectral.class_model import CLASSES, ClassState, Law, LogisticModel, functions_at_rows
from mercer.spectral.loops import pull_of_phases
from mercer.spectral.mixture import Mixture, MixtureState
from mercer.spectral.rows import MemoryRows, TrainingRows, some_positions

# Frequencies and components in coordinates whose prior is standard normal, or nearly.
#
# Given the partition, W_j = mu_Zj + L_Zj u_j and mu_k = L_k m_k / sqrt(kappa0), where L_k L_k' is
# Sigma_k: u and m are standard normal, and a component that moves takes its members with it. That
# is what Gibbs steps of (mu, Sigma) given hundreds of members cannot do. Of a diagonal base
# measure s_kl = log Sigma_kl - log(t_l / nu0) moves as well, of density
#
#     log p(s) = -nu0 / 2 (s + e^-s) + const;
#
# standard normal it is not, but of about that width: what is missing is `Coordinates.log_density`.
# Of a full one Sigma stays.

Array = NDArray[np.float64]
Pull = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Coordinates(ABC):
    """A chart of all frequencies (M, d) and their K components, given what does not move."""

    assignment: Labels  # Z, (M,)
    n_components: int
    kappa0: float  # prior precision of a component's mean, in units of its own precision
    variances: Array  # (M, d) or (1, d), about those of the frequencies; of nothing that moves

    @abstractmethod
    def position(self, W: Array, components: Components) -> Array:
        """Coordinates of frequencies (M, d) and components, shape (p,)."""

    @abstractmethod
    def components(self, theta: Array) -> Components:
        """(mu, Sigma) of all components."""

    @abstractmethod
    def at(self, theta: Array) -> tuple[Array, float, Pull]:
        """W (M, d), the log density of the prior over a standard normal one, and what pulls back.

        That turns a gradient in W of something else into that of the log density and it (p,).
        """

    @abstractmethod
    def precisions(self, information: float) -> Array:
        """How firmly each coordinate is held, beyond a standard normal law: shape (p,).

        For masses, which need the size only: factors were found by trial. ``information``
        is the precision that a likelihood gives to an entry of W by itself.
        """

    def _split(self, theta: Array) -> tuple[Array, Array, Array]:
        """Parts u (M, d), m (K, d), and s (K, d), or none if it stays."""
        rows, end = theta.reshape(-1, self.variances.shape[1]), len(self.assignment)
        return rows[:end], rows[end : end + self.n_components], rows[end + self.n_components :]

    @functools.cached_property
    def _is_member(self) -> Array:
        """1 or 0, shape (K, M)."""
        return np.equal(self.assignment, np.arange(self.n_components)[:, np.newaxis]).astype(float)

    def _sums(self, values: Array) -> Array:
        """Sum values (M, d) over the members of each component, shape (K, d)."""
        return np.asarray(self._is_member @ values)

    def _precisions_of_members(self, information: float) -> tuple[Array, Array]:
        """Those of u, and their sums over the members of each component."""
        of_members = information * np.broadcast_to(
            self.variances, (len(self.assignment), self.variances.shape[1])
        )
        return of_members, self._sums(of_members)


@dataclass(frozen=True, eq=False)
class _Diagonal(Coordinates):
    nu0: float
    scale: Array

    def position(self, W: Array, components: Components) -> Array:
        stds, root = components.stds, np.sqrt(self.kappa0)
        u = (W - components.means[self.assignment]) / stds[self.assignment]
        s = 2.0 * np.log(stds) - np.log(self.scale / self.nu0)
        return np.concatenate([u.ravel(), (root * components.means / stds).ravel(), s.ravel()])

    def components(self, theta: Array) -> Components:
        _, m, s = self._split(theta)
        stds = self._stds(s)
        return DiagonalComponents(stds * m / np.sqrt(self.kappa0), stds**2)

    def at(self, theta: Array) -> tuple[Array, float, Pull]:
        u, m, s = self._split(theta)
        stds, root, half, inverse = self._stds(s), np.sqrt(self.kappa0), 0.5 * self.nu0, np.exp(-s)
        of_members = stds[self.assignment]
        W = (stds * m / root)[self.assignment] + of_members * u

        def pull(gradient: Array) -> Array:
            of_u = gradient * of_members
            of_s = s - half * (1.0 - inverse) + 0.5 * self._sums(gradient * W)
            return np.concatenate([of_u, self._sums(of_u) / root, of_s]).ravel()

        return W, float((0.5 * s**2 - half * (s + inverse)).sum()), pull

    def precisions(self, information: float) -> Array:
        of_u, summed = self._precisions_of_members(information)
        of_m, of_s = summed / (2.0 * self.kappa0), summed / 8.0 + 0.5 * self.nu0 - 1.0
        return np.concatenate([of_u.ravel(), of_m.ravel(), np.maximum(of_s, 0.0).ravel()])

    def _stds(self, s: Array) -> Array:
        return np.asarray(self._first_std * np.exp(0.5 * s))

    @functools.cached_property
    def _first_std(self) -> Array:
        return np.sqrt(self.scale / self.nu0)


@dataclass(frozen=True, eq=False)
class _Full(Coordinates):
    factors: Array

    def position(self, W: Array, components: Components) -> Array:
        u = np.linalg.solve(
            self.factors[self.assignment], (W - components.means[self.assignment])[:, :, np.newaxis]
        )
        m = np.linalg.solve(self.factors, components.means[:, :, np.newaxis])
        return np.concatenate([u.ravel(), np.sqrt(self.kappa0) * m.ravel()])

    def components(self, theta: Array) -> Components:
        _, m, _ = self._split(theta)
        means = np.einsum("kab,kb->ka", self.factors, m) / np.sqrt(self.kappa0)
        return FullComponents(means, self.factors)

    def at(self, theta: Array) -> tuple[Array, float, Pull]:
        u, m, _ = self._split(theta)
        factors, root = self.factors[self.assignment], np.sqrt(self.kappa0)

        def pull(gradient: Array) -> Array:
            of_u = np.einsum("jab,ja->jb", factors, gradient)
            return np.concatenate([of_u, self._sums(of_u) / root]).ravel()

        return np.einsum("jab,jb->ja", factors, u + m[self.assignment] / root), 0.0, pull

    def precisions(self, information: float) -> Array:
        of_u, summed = self._precisions_of_members(information)
        return np.concatenate([of_u.ravel(), (summed / (2.0 * self.kappa0)).ravel()])


def coordinates_of(base: BaseMeasure[Components], state: MixtureState) -> Coordinates:
    """Make the chart for a state of the mixture, whose components move and whose rest stays."""
    common = (state.assignment, state.n_components, base.kappa0)
    components = state.components
    if isinstance(base, DiagonalBase):
        return _Diagonal(*common, state.scale[np.newaxis], base.nu0, state.scale)
    if isinstance(components, FullComponents):
        variances = components.stds[state.assignment] ** 2
        return _Full(*common, variances, components.factors)
    raise UsageError(f"no coordinates for components of {type(base).__name__}")


# The log likelihood of all labels and its gradient in frequencies and coefficients: one pass.
#
# With functions f_k = F beta_k, F = [Phi, H], signs s = 1 for rows of the class that function k
# tells and -1 for the other rows of its stick, and residuals r_k = s / (1 + e^{s f_k}),
#
#     d / dbeta_k = F'r_k
#     d / dW_j    = sum_i x_i sum_k r_ki (beta_k,sin_j C_ij - beta_k,cos_j S_ij)
#
# where C_ij and S_ij are the scaled cosine and sine of frequency j at row i. O(n M (K + d)).

# Rows whose features stand in memory at a time: they are read three times, from the cache.
_ROWS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class LikelihoodGradient:
    """Log likelihood in nats, and its gradient in frequencies (M, d) and in coef (K, 2 M + p)."""

    value: float
    frequencies: Array
    coef: Array


def likelihood_gradient(
    rows: TrainingRows, frequencies: Array, coef: Array, law: Law = CLASSES
) -> LikelihoodGradient:
    """Evaluate at frequencies (M, d) and coefficients (K, 2 M + p)."""
    if rows.device is not None:
        make = functools.partial(_DeviceGradient, frequencies, coef, law, rows.device)
        return LikelihoodGradient(*rows.sums([make])[0])
    value, m2 = 0.0, 2 * len(frequencies)
    by_frequencies, by_coef = np.zeros_like(frequencies), np.zeros_like(coef)
    room = np.empty(coef.shape[1] * _ROWS_AT_ONCE)
    for X, codes in (part for block in rows.blocks() for part in parts(*block, _ROWS_AT_ONCE)):
        F = room[: coef.shape[1] * len(X)].reshape(coef.shape[1], len(X))
        fill_design(rows.has_linear_part, frequencies, X, F)
        of_part, residual = law.slope(coef @ F, codes)
        value += of_part
        by_coef += residual @ F.T
        pull = np.empty((len(frequencies), len(X)))
        pull_of_phases(F[:m2], residual, coef, pull)
        by_frequencies += pull @ X
    return LikelihoodGradient(value, by_frequencies, by_coef)


class _DeviceGradient:
    """The sums of `likelihood_gradient`, whose features and products a device computes."""

    def __init__(self, frequencies: Array, coef: Array, law: Law, device: Device) -> None:
        m = len(frequencies)
        self._layout = Layout((m,), coef.shape[1] - 2 * m)
        self._law, self._device = law, device
        self._given = device.put(frequencies), device.put(self._layout.to_device(coef))
        self._sum = PairwiseSum(plus)

    def begin_term(self, index: int) -> None:
        """Go on: `add` takes whole terms."""

    def add(self, X: Any, columns: Any) -> None:
        """Add a block: the last of the columns holds the targets."""
        device, (W, coef), m = self._device, self._given, self._given[0].shape[0]
        F = device.design([W], X, columns[:-1, :].T)
        value, residual = self._law.slope(device.get(coef @ F.T), device.get(columns[-1, :]))
        pulls = device.put(residual)
        order, scale = self._layout.order
        by_coef = device.get(pulls @ F)[:, order] * scale
        pull = F[:, :m] * (pulls.T @ coef[:, m : 2 * m]) - F[:, m : 2 * m] * (pulls.T @ coef[:, :m])
        self._sum.add((value, device.get(pull.T @ X), by_coef))

    def sum(self) -> Any:
        """The log likelihood and its gradients."""
        return self._sum.total()


# Variance of a label at even odds: what a row says of its logit.
_OF_A_ROW = 0.25


def move_together(
    rng: np.random.Generator,
    rows: TrainingRows,
    model: LogisticModel,
    mixture: Mixture,
    state: ClassState,
    step_size: float,
    n_leapfrog: int,
) -> tuple[ClassState, float]:
    """Take one trajectory; return the new state and the probability of its end."""
    chart = coordinates_of(mixture.base.with_scale(state.mixture.scale), state.mixture)
    shape, m2 = state.mean.shape, 2 * len(state.frequencies)
    precisions = model.precisions_of_all(m2, state.ridge, state.linear_precision)
    roots = np.sqrt(precisions)
    start = chart.position(state.frequencies, state.mixture.components)
    size = len(start)

    def coef(theta: Array) -> Array:
        return np.asarray(theta[size:].reshape(shape) / roots)

    def potential(theta: Array) -> tuple[float, Array]:
        W, prior, pull = chart.at(theta[:size])
        found = likelihood_gradient(rows, W, coef(theta), state.law)
        gradient = np.concatenate([pull(found.frequencies), (found.coef / roots).ravel()])
        return prior + found.value, gradient

    position = np.append(start, state.coef * roots)
    rates = _rates(chart, precisions, rows.n_rows, m2)
    end = travel(rng, potential, position, rates, step_size, n_leapfrog)
    if not end.is_accepted:
        return state, end.acceptance_rate
    moved, own = end.position, end.position[:size]
    new = replace(
        state,
        frequencies=chart.at(own)[0],
        mean=coef(moved),
        deviations=np.zeros_like(state.deviations),
        mixture=replace(state.mixture, components=chart.components(own)),
    )
    return new, end.acceptance_rate


def _rates(chart: Coordinates, precisions: Array, n_rows: int, n_features: int) -> Array:
    """Roots of the inverse masses of all coordinates, shape (p,)."""
    information = _OF_A_ROW * n_rows
    of_coef = information / precisions
    of_coef[:, :n_features] /= n_features
    of_frequency = 2.0 * information / n_features * float((1.0 / precisions[:, 0]).sum())
    return np.asarray(1.0 / np.sqrt(1.0 + np.append(chart.precisions(of_frequency), of_coef)))


# Where chains of many rows start: steps up the posterior of frequencies and coefficients.
#
# Sweeps accept a frequency at a time and take hundreds of passes to where the posterior of ten
# thousand rows concentrates; L-BFGS moves all frequencies and coefficients together, at a cost of
# O(n M d) a step. It climbs
#
#     log p(y | W, beta) - 1/2 sum_jl (W_jl / s_jl)^2 - 1/2 sum_k beta_k' Lambda_0 beta_k
#
# on nine tenths of some rows, s_jl the scales that the frequencies were drawn with, and stops
# where the likelihood of the last tenth is past its peak by more than one standard error: of noisy
# labels the top of the posterior is no place from which a chain finds back to where its mass is.
# Each chain climbs from frequencies of its own, so that chains that agree say something. Only the
# start depends on this, not the law of the draws.

#: With fewer rows the sweeps find the way to where the posterior is by themselves.
FEWEST_ROWS = 3000
_MOST_ROWS = 50_000
_HELD_OUT = 10  # one row of so many
_MOST_STEPS, _STEPS_A_LOOK, _PATIENCE = 400, 5, 50
_MEMORY = 20  # steps that L-BFGS remembers


@dataclass(frozen=True, eq=False)
class Ascent:
    """Rows to climb on, rows that say when to stop, and the precisions of the coefficients."""

    fitted: MemoryRows
    held_out: MemoryRows
    precisions: Array  # (2 M + p,), diagonal of Lambda_0, the same for all functions
    seconds: float | None = None  # after which a climb ends with its step

    def climb(
        self, frequencies: Array, scales: Array, n_functions: int, law: Law = CLASSES
    ) -> tuple[Array, Array, bool]:
        """Climb from frequencies (M, d) and zeros to frequencies and coefficients (K, 2 M + p).

        Also returned is whether the climb was cut short by its ``seconds``. ``scales`` (M,
        d) are the standard deviations that the frequencies were drawn with.
        """
        size, roots = frequencies.size, np.sqrt(self.precisions)

        def split(theta: Array) -> tuple[Array, Array]:
            W = theta[:size].reshape(frequencies.shape) * scales
            return W, theta[size:].reshape(n_functions, -1) / roots

        def loss(theta: Array) -> tuple[float, Array]:
            found = likelihood_gradient(self.fitted, *split(theta), law)
            parts = (found.frequencies * scales).ravel(), (found.coef / roots).ravel()
            return 0.5 * float(theta @ theta) - found.value, theta - np.concatenate(parts)

        def judge(theta: Array) -> Array:
            return law.log_mass(*functions_at_rows(self.held_out, *split(theta)))

        start = np.concatenate([(frequencies / scales).ravel(), np.zeros(n_functions * len(roots))])
        deadline = None if self.seconds is None else time.monotonic() + self.seconds
        peak, is_cut = _Peak(start, judge(start)), False

        def step(intermediate_result: OptimizeResult) -> None:
            nonlocal is_cut
            peak.step(intermediate_result.x, judge)
            if is_late(deadline):
                is_cut = True
                peak.look(intermediate_result.x, judge(intermediate_result.x))
                raise StopIteration

        options = {"maxiter": _MOST_STEPS, "maxcor": _MEMORY}
        minimize(loss, start, jac=True, method="L-BFGS-B", callback=step, options=options)
        return (*split(peak.position), is_cut)


def prepare_ascent(
    rng: np.random.Generator, rows: TrainingRows, precisions: Array, seconds: float | None = None
) -> Ascent | None:
    """Choose the rows to climb on, for so many seconds at most; None where they are too few."""
    if rows.n_rows < FEWEST_ROWS:
        return None
    X, codes = rows.take(some_positions(rng, rows.n_rows, _MOST_ROWS))
    is_held_out = np.zeros(len(X), dtype=bool)
    is_held_out[rng.choice(len(X), len(X) // _HELD_OUT, replace=False)] = True
    fitted, held_out = (
        MemoryRows(X[chosen], codes[chosen], rows.has_linear_part, rows.device)
        for chosen in (~is_held_out, is_held_out)
    )
    return Ascent(fitted, held_out, precisions, seconds)


@dataclass(eq=False)
class _Peak:
    """The last position that is about as good as the best, as what is held out judges them."""

    position: Array
    best: Array  # log probabilities of what is held out, at the best position
    n_steps: int = 0
    step_of_position: int = 0

    def step(self, position: Array, judge: Callable[[Array], Array]) -> None:
        """Take note of a position; raises StopIteration where it is time to stop."""
        self.n_steps += 1
        if self.n_steps % _STEPS_A_LOOK == 0:
            self.look(position, judge(position))
        if self.n_steps - self.step_of_position >= _PATIENCE:
            raise StopIteration

    def look(self, position: Array, logs: Array) -> None:
        """Compare with the best position, and take this one if it is about as good."""
        if logs.sum() > self.best.sum():
            self.best = logs
        lost = self.best - logs
        if lost.sum() <= math.sqrt(len(lost)) * lost.std():
            self.position, self.step_of_position = position.copy(), self.n_steps
