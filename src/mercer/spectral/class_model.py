"""BaNK for classes: labels as sticks, the state, the model of one function, passes over rows.

**Sticks.** C classes are told apart by C - 1 functions f_1, .., f_{C-1} in order: is it the first
class, else is it the second, and so on:

    p(class k | x) = s(f_k(x)) prod_{l < k} (1 - s(f_l(x))),        s(f) = 1 / (1 + e^-f)

and the last class is what is left. Given the functions the likelihood is a product of logistic
ones, the l-th over the rows of the classes l, l + 1, .. only: with Polya-Gamma variables all
coefficients can be integrated out together, which those of a softmax cannot. Two classes are the
logistic model.

The most frequent class comes first: the rest has the fewest rows, and the rare classes, at the end,
are compared with each other. Of two classes the function is that of the second label.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from mercer.features.device import Device
from mercer.features.products import fill_features
from mercer.likelihoods.polya_gamma import fill_polya_gamma
from mercer.numerics.cholesky import factorise
from mercer.numerics.sums import PairwiseSum
from mercer.spectral.mixture import MixtureState, ProposalTuning
from mercer.spectral.model import GammaPrior
from mercer.spectral.rows import RowSum, TrainingRows

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClassCodes:
    """Label -> place in the order of the sticks."""

    values: Array  # (C,), the labels as numbers, ascending
    order: NDArray[np.int64]  # positions among ``values``, as classes are told apart

    def transform(self, y: Array) -> Array:
        """Return the place of each label, as float."""
        place = np.empty(len(self.order))
        place[self.order] = np.arange(len(self.order))
        coded: Array = place[np.searchsorted(self.values, y)]
        return coded


def class_codes(values: Array, counts: NDArray[np.int64]) -> ClassCodes:
    """Put classes in order, given how many rows each has."""
    if len(values) == 2:
        return ClassCodes(values, np.array([1, 0]))
    return ClassCodes(values, np.argsort(-counts, kind="stable"))


def signs_of(codes: Array, n_functions: int) -> Array:
    """1 or -1: whether a row belongs to the class that a function tells; 0 if it says nothing.

    Shape (K, n), from places of classes (n,).
    """
    k = np.arange(n_functions)[:, np.newaxis]
    return np.where(codes == k, 1.0, np.where(codes > k, -1.0, 0.0))


# Logistic regression on Fourier features given Polya-Gamma variables, coefficients integrated out.
#
# **Model.** For the rows of one stick (`mercer.spectral.class_model`), t_i in {0, 1},
#
#     p(t_i = 1) = 1 / (1 + e^-f_i),   f = Phi beta + H gamma
#     beta ~ N(0, I / ridge)           features, shape (2 M,)
#     gamma ~ N(0, Lambda_H^-1)        linear part: an intercept, a precision for the inputs
#
# **Augmentation** [1]_. With kappa_i = t_i - 1/2 and omega_i ~ PG(1, 0),
#
#     p(t_i | f_i) = 1/2 E exp(kappa_i f_i - omega_i f_i^2 / 2),   omega_i | f_i ~ PG(1, f_i),
#
# so that given omega this is the regression of targets z_i = kappa_i / omega_i with noise of
# variance 1 / omega_i: F = [Phi, H], Lambda_n = F' Omega F + Lambda_0, m = F' Omega z = F' kappa
# (kappa is not multiplied by omega), beta ~ N(Lambda_n^-1 m, Lambda_n^-1), and
#
#     log p(t | W, omega) = -n log 2 + log|Lambda_0| / 2 - log|Lambda_n| / 2 + m' Lambda_n^-1 m / 2
#
# There is no noise variance to be integrated out: the ratio of eq. (12) is that of these, not that
# of normal-inverse-gamma evidences.
#
# References
# ----------
# .. [1] N. G. Polson, J. G. Scott and J. Windle, "Bayesian Inference for Logistic Models Using
#    Polya-Gamma Latent Variables", JASA 2013.


@dataclass(frozen=True)
class LogisticModel:
    """What is fixed of the regressions of all sticks, with p columns of H: intercept and inputs.

    Gamma priors are those of the precisions of the features' coefficients, None keeping it as
    it is, and of the inputs'. The intercept has a standard deviation of 10 logits: shares of
    classes are left to the data.
    """

    n_linear: int
    ridge_prior: GammaPrior | None
    linear_prior: GammaPrior
    intercept_precision: float = 1e-2

    def linear_precisions(self, linear_precision: float) -> Array:
        """Diagonal of Lambda_H, shape (p,)."""
        if self.n_linear == 0:
            return np.empty(0)
        return np.array([self.intercept_precision] + [linear_precision] * (self.n_linear - 1))

    def prior_precisions(self, n_features: int, ridge: float, linear_precision: float) -> Array:
        """Diagonal of Lambda_0, shape (2 M + p,)."""
        linear = self.linear_precisions(linear_precision)
        return np.concatenate([np.full(n_features, ridge), linear])

    def precisions_of_all(self, n_features: int, ridges: Array, linear_precisions: Array) -> Array:
        """Those of every function, shape (K, 2 M + p), from precisions of shape (K,)."""
        return np.stack(
            [
                self.prior_precisions(n_features, float(ridge), float(linear))
                for ridge, linear in zip(ridges, linear_precisions, strict=True)
            ]
        )


@dataclass(frozen=True, eq=False)
class LogisticCoefficients:
    """The law of the coefficients of one stick given frequencies, precisions and omega."""

    mean: Array  # (2 M + p,), Lambda_n^-1 m
    factor: Array  # lower Cholesky factor of Lambda_n, Fortran-ordered
    log_evidence: float  # log p(t | W, omega) + n log 2, in nats

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Draw n deviations beta - mean, shape (n, 2 M + p)."""
        z = rng.standard_normal((len(self.mean), n))
        deviations, _ = lapack.dtrtrs(self.factor, z, lower=1, trans=1)
        return np.asarray(deviations).T


def logistic_coefficients(gram: Array, prior_precisions: Array) -> LogisticCoefficients:
    """Solve the regression from [F, z]' Omega [F, z]; a `NumericalError` where F is collinear."""
    m = len(prior_precisions)
    inner = np.array(gram[:m, :m], order="F")
    inner[np.arange(m), np.arange(m)] += prior_precisions
    factor = factorise(inner)
    solved, _ = lapack.dtrtrs(factor, gram[:m, m], lower=1)
    mean, _ = lapack.dtrtrs(factor, solved, lower=1, trans=1)
    log_det_ratio = 2.0 * np.log(np.diag(factor)).sum() - np.log(prior_precisions).sum()
    evidence = 0.5 * float(solved @ solved) - 0.5 * float(log_det_ratio)
    if not math.isfinite(evidence):
        evidence = -math.inf
    return LogisticCoefficients(np.asarray(mean), factor, evidence)


# Where a chain of classes stands, and what its warm-up changes.


@dataclass(frozen=True)
class ClassState:
    """Where the chain stands; K functions."""

    frequencies: Array  # (M, d)
    mean: Array  # (K, 2 M + p), of the coefficients given frequencies and the last omega
    deviations: Array  # (K, k, 2 M + p), draws around it; the first is the chain's
    ridge: Array  # (K,)
    linear_precision: Array  # (K,)
    mixture: MixtureState
    log_likelihood: float  # nats
    is_start_cut: bool = False  # whether ``max_seconds`` ended the climb to the chain's start

    @property
    def coef(self) -> Array:
        """The coefficients, shape (K, 2 M + p)."""
        return self.mean + self.deviations[:, 0]


@dataclass(frozen=True)
class ClassTuning(ProposalTuning):
    """The step of the proposals, and that of the trajectories before sweeps."""

    trajectory: float = 0.1


# Passes over the rows for classes: weighted products of features, and log likelihoods.
#
# Of each block of rows the functions f = F beta are computed, Polya-Gamma variables omega | f
# drawn, and what the sweep needs is added up:
#
#     [Phi*, Phi, H, z]' Omega [Phi*, Phi, H, z],   z = kappa / omega
#
# for each stick over its own rows. omega is used and forgotten: never stored, never stale. Nothing
# is known from the sweep before, since the weights change: 16 n M^2 flops for each stick.
#
# Blocks are summed in pairs, pairs in fours and so on, in their order; each has its own stream of
# random numbers, so that whoever reads it draws the same omega.

# Rows whose features stand in memory at a time: what computes them stays in the cache.
_ROWS_AT_ONCE = 1024

# (functions, targets - 1/2) of some rows of a stick -> weights and weights times targets z.
Weigh = Callable[[Array, Array], tuple[Array, Array]]
# (index of a block) -> how its rows are weighed, stick after stick.
WeighOf = Callable[[int], Weigh]


@dataclass(frozen=True, eq=False)
class StickProducts:
    """Sums over the rows of one stick.

    ``gram`` is the weighted Gram matrix of [Phi, H, z]; ``among`` (2 M, 2 M) and ``across`` (2
    M, 2 M + p + 1) are weighted products of the proposed features, with each other and with
    those columns.
    """

    gram: Array
    among: Array
    across: Array


def polya_gamma(rng: np.random.Generator) -> Weigh:
    """Draw omega_i ~ PG(1, f_i); omega z is kappa."""

    def weigh(f: Array, kappa: Array) -> tuple[Array, Array]:
        omega = np.empty(len(f))
        fill_polya_gamma(rng, f, len(f), omega)
        return omega, kappa

    return weigh


def polya_gamma_of_blocks(rng: np.random.Generator) -> WeighOf:
    """Let each block draw its omega from a stream of its own; one draw of ``rng`` seeds all."""
    return functools.partial(_polya_gamma_of_block, int(rng.integers(2**63)))


def _polya_gamma_of_block(entropy: int, index: int) -> Weigh:
    return polya_gamma(np.random.Generator(np.random.PCG64([entropy, index])))


def weighted_products(
    rows: TrainingRows, proposed: Array, frequencies: Array, coef: Array, weigh_of: WeighOf
) -> tuple[StickProducts, ...]:
    """Sum the products of all sticks in one pass.

    Targets of the rows are places of classes, see `ClassCodes`. Proposed frequencies (M', d)
    may be none; ``coef`` (K, 2 M + p) are those of the functions that the weights depend on.
    What ``weigh_of`` returns is called for each stick in turn on some rows at a time, in order.
    """
    given = proposed, frequencies, coef, weigh_of
    make: Callable[[], RowSum] = functools.partial(_StickSums, *given)
    if rows.device is not None:
        make = functools.partial(_DeviceStickSums, *given, rows.device)
    return tuple(_split(total, 2 * len(proposed)) for total in rows.sums([make])[0])


class _Room:
    """Memory for the design of some rows and for phases, kept from one part of rows to the next."""

    def __init__(self) -> None:
        self._kept = np.empty((0, 0)), np.empty((0, 0))

    def of(self, n_columns: int, n_rows: int) -> tuple[Array, Array]:
        """Two arrays, of shapes (n_columns, n_rows) and (n_columns / 2, n_rows)."""
        if self._kept[0].shape != (n_columns, n_rows):
            self._kept = np.empty((n_columns, n_rows)), np.empty((n_columns // 2, n_rows))
        return self._kept


class _StickSums:
    """The products of all sticks, a sum each: see `weighted_products`."""

    def __init__(self, proposed: Array, frequencies: Array, coef: Array, weigh_of: WeighOf) -> None:
        self._proposed, self._frequencies, self._coef = proposed, frequencies, coef
        self._weigh_of, self._room = weigh_of, _Room()
        self._sums = [PairwiseSum() for _ in coef]

    def begin_term(self, index: int) -> None:
        """Weigh the next rows as those of this block."""
        self._weigh = self._weigh_of(index)

    def add(self, X: Array, columns: Array) -> None:
        """Add a block: the last of the columns holds the places of classes."""
        n_new, n_sticks = 2 * len(self._proposed), len(self._coef)
        order = n_new + self._coef.shape[1] + 1
        terms = [np.zeros((order, order), order="F") for _ in range(n_sticks)]
        for part, codes in parts(X, columns[-1]):
            room, phase = self._room.of(order, len(part))
            if n_new:
                fill_features(self._proposed, part, room[:n_new], phase[: len(self._proposed)])
            own = phase[: len(self._frequencies)]
            fill_design(len(columns) > 1, self._frequencies, part, room[n_new:-1], own)
            for k, term in enumerate(terms):
                own = room if n_sticks == 1 else room[:, codes >= k]
                _add(term, own, codes[codes >= k] == k, self._coef[k], self._weigh)
        for total, term in zip(self._sums, terms, strict=True):
            total.add(term)

    def sum(self) -> tuple[Array, ...]:
        """The sum of each stick."""
        return tuple(total.total() for total in self._sums)


class _DeviceStickSums:
    """The sums of `_StickSums`, whose features and products a device computes."""

    def __init__(
        self, proposed: Array, frequencies: Array, coef: Array, weigh_of: WeighOf, device: Device
    ) -> None:
        self._n_new, self._frequencies = 2 * len(proposed), (proposed, frequencies)
        self._coef, self._weigh_of, self._device = coef, weigh_of, device
        self._sums = [PairwiseSum() for _ in coef]

    def begin_term(self, index: int) -> None:
        """Weigh the next rows as those of this block."""
        self._weigh = self._weigh_of(index)

    def add(self, X: Array, columns: Array) -> None:
        """Add a block: the last of the columns holds the places of classes."""
        codes, n_sticks, device = columns[-1], len(self._coef), self._device
        F = device.design(self._frequencies, X, columns[:-1])
        f = device.get(F[:, self._n_new :] @ device.put(self._coef.T))
        roots, targets = np.zeros((2, n_sticks, len(X)))
        # Variables are drawn in the order of `_StickSums`, rows of other sticks weigh nothing.
        for rows in _slices(len(X)):
            for k in range(n_sticks):
                own = rows.start + np.flatnonzero(codes[rows] >= k)
                if len(own):
                    weights, weighted = self._weigh(f[own, k], (codes[own] == k) - 0.5)
                    roots[k, own] = np.sqrt(weights)
                    targets[k, own] = weighted / roots[k, own]
        for k, total in enumerate(self._sums):
            total.add(device.weighted_gram(F, roots[k], targets[k]))

    def sum(self) -> tuple[Array, ...]:
        """The sum of each stick."""
        return tuple(self._device.get(total.total()) for total in self._sums)


class _LogLikelihood:
    """Log probability of all labels, summed over blocks."""

    def __init__(self, frequencies: Array, coef: Array, device: Device | None) -> None:
        self._frequencies, self._coef, self._device = frequencies, coef, device
        self._room = _Room()
        self._sum = PairwiseSum()

    def begin_term(self, index: int) -> None:
        """Do nothing: blocks are terms."""

    def add(self, X: Array, columns: Array) -> None:
        """Add a block: the last of the columns holds the places of classes."""
        total, codes = 0.0, columns[-1]
        if self._device is not None:
            F = self._device.design((self._frequencies,), X, columns[:-1])
            f = self._device.get(F @ self._device.put(self._coef.T)).T
            total = float(_log_probabilities_of(f, codes).sum())
        else:
            for part in parts(X, codes):
                given = len(columns) > 1, self._frequencies, self._coef
                total += float(_log_probabilities(*given, *part, self._room).sum())
        self._sum.add(total)

    def sum(self) -> float:
        """Return the log likelihood."""
        return float(self._sum.total())


def log_likelihood(rows: TrainingRows, frequencies: Array, coef: Array) -> float:
    """Log probability of all labels, in nats: one pass, O(n M)."""
    make = functools.partial(_LogLikelihood, frequencies, coef, rows.device)
    return float(rows.sums([make])[0])


def log_probabilities(rows: TrainingRows, frequencies: Array, coef: Array) -> Array:
    """Log probability of each label, shape (n,), in nats."""
    return np.concatenate(
        [
            _log_probabilities(rows.has_linear_part, frequencies, coef, *part)
            for block in rows.blocks()
            for part in parts(*block)
        ]
    )


def parts(X: Array, y: Array, size: int = _ROWS_AT_ONCE) -> Iterator[tuple[Array, Array]]:
    """Cut a block of rows X (b, d), y (b,) into parts of so many rows."""
    for rows in _slices(len(X), size):
        yield X[rows], y[rows]


def _slices(n: int, size: int = _ROWS_AT_ONCE) -> Iterator[slice]:
    return (slice(begin, begin + size) for begin in range(0, n, size))


def _log_probabilities(
    has_linear_part: bool,
    frequencies: Array,
    coef: Array,
    X: Array,
    codes: Array,
    room: _Room | None = None,
) -> Array:
    F, phase = (room or _Room()).of(coef.shape[1], len(X))
    fill_design(has_linear_part, frequencies, X, F, phase[: len(frequencies)])
    return _log_probabilities_of(coef @ F, codes)


def _log_probabilities_of(f: Array, codes: Array) -> Array:
    """Log probability of each label, given the functions (K, n)."""
    sign = signs_of(codes, len(f))
    return np.asarray(-np.logaddexp(0.0, -sign * f).sum(axis=0, where=sign != 0.0))


def fill_design(
    has_linear_part: bool, frequencies: Array, X: Array, out: Array, phase: Array | None = None
) -> None:
    """Write [Phi, H] of some rows as rows, shape (2 M + p, b)."""
    m2 = 2 * len(frequencies)
    fill_features(frequencies, X, out[:m2], phase)
    if has_linear_part:
        out[m2] = 1.0
        out[m2 + 1 :] = X.T


def _add(task: Array, columns: Array, is_first: Array, coef: Array, weigh: Weigh) -> None:
    """Add some rows of one stick to the lower triangle of its products; changes the columns."""
    if columns.shape[1] == 0:
        return
    F = columns[-1 - len(coef) : -1]
    weights, weighted = weigh(coef @ F, is_first - 0.5)
    root = np.sqrt(weights)
    columns[:-1] *= root
    columns[-1] = weighted / root
    # Writes into the Fortran-ordered sum, in place.
    blas.dsyrk(1.0, columns.T, beta=1.0, c=task, trans=1, lower=1, overwrite_c=1)


def _split(total: Array, n_new: int) -> StickProducts:
    full = np.tril(total) + np.tril(total, -1).T
    return StickProducts(
        np.ascontiguousarray(full[n_new:, n_new:]),
        np.ascontiguousarray(full[:n_new, :n_new]),
        np.ascontiguousarray(full[:n_new, n_new:]),
    )
