"""The likelihood of labels that are wrong at some rate: what errors cost, by groups of rows.

A classifier w is wrong on row i if its class there is not the recorded label y_i. With C classes
and rate q a wrong row has probability q / (C - 1), a right one 1 - q, eq. (3) of Graepel &
Herbrich for C = 2. So the posterior of w depends on data only through which rows are wrong, and
one more error costs log((C - 1)(1 - q)/q) nats. Where q is unknown with a Beta(a, b) prior on
[0, (C - 1)/C], it is integrated out, and the cost depends on the errors that are there already.

Rates by class belong to the *true* class c, the one that the classifier says: T[c, y] is
P(recorded y | class c), and its rows sum to one. (Rates of the recorded class would not be a law of
the labels: p(0) + p(1) is 1.2 or 0.8 at rates .1 and .3, and a classifier that says one class
everywhere would pay next to nothing.) With two classes a row recorded y that is wrong costs
log((1 - q_y) / q_c), c the other class. Unknown, with independent Beta(a, b) priors on [0, 1/2]
integrated out, the labels have the probability

    B(a + e_0, b + n_1 - e_1) B(a + e_1, b + n_0 - e_0) / B(a, b)^2,   B incomplete, to 1/2,

with e_y wrong rows of the n_y recorded as y: a table over two counts. With more classes the rows of
T have Dirichlet priors, cut off where the diagonal is not largest: see `Confusion`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaln, gammainc, gammaincinv, gammaln

Array = NDArray[np.float64]
Floats = NDArray[np.floating[Any]]

# Cost in nats of an error that cannot be: exp of minus this is 0 in double precision.
IMPOSSIBLE = 1e6

# Draws of a row of a confusion matrix that are tried at a time.
_N_PROPOSALS = 20
# Rate of wrong labels of each class that a chain starts at, where it is learned.
_FIRST_RATE = 0.1


@dataclass(frozen=True)
class LabelNoise:
    """What errors cost in nats, and what they say of the rates."""

    #: (n,), recorded class of each row where rates per class are learned, else 0
    group: NDArray[np.int64]
    #: (n_groups, n + 1): step[g, e] is the cost of one more error in group g when it has e; never
    #: negative. Where rates of two classes are learned, (1, n_0 + 1, n_1 + 1): step[0, e_0, e_1] is
    #: the cost of all errors, of which that of one more is a difference, which may be negative;
    #: without entries where nobody moves from one number to the next.
    step: Array
    row_cost: Array  # (n,), cost of an error in the row, on top of `step`
    log_no_errors: float  # log probability of the labels when no row is wrong
    rates: Array | None  # known ones: one, one a class, or one a row; None where they are learned
    prior: tuple[float, float] | None  # a, b of the Beta prior of each rate, where they are learned
    sizes: NDArray[np.int64]  # (n_groups,), rows of each group
    n_classes: int
    is_by_class: bool = False  # there is a rate for each class
    labels: NDArray[np.int64] | None = None  # (n,), where there are known rates of two classes
    #: (m + 1, n_groups), ``jumps`` where m rows stand for several each: `merged`
    merged_jumps: NDArray[np.int64] | None = None

    @property
    def is_common(self) -> bool:
        """Whether one rate holds for all rows, so that the number of errors is sufficient."""
        return len(self.sizes) == 1 and self.merged_jumps is None and not self.row_cost.any()

    @cached_property
    def jumps(self) -> NDArray[np.int64]:
        """What each row adds to the errors by group as it becomes wrong; last, all but these."""
        if self.merged_jumps is not None:
            return self.merged_jumps
        one_hot = np.append(self.group, -1)[:, np.newaxis] == np.arange(len(self.sizes))
        return np.asarray(one_hot, np.int64)

    def merged(self, into: NDArray[np.int64], is_opposite: NDArray[np.bool_]) -> LabelNoise:
        """Return the costs of fewer rows: row i is wrong if ``into[i]`` is, or if that is right."""
        sign, own = np.where(is_opposite, -1, 1), self.jumps[:-1]
        jumps = np.zeros((int(into.max()) + 2, len(self.sizes)), np.int64)
        np.add.at(jumps, into, sign[:, np.newaxis] * own)
        jumps[-1] = own[is_opposite].sum(axis=0)
        return replace(
            self,
            row_cost=np.bincount(into, sign * self.row_cost).astype(np.float64),
            log_no_errors=self.log_no_errors - float(self.row_cost[is_opposite].sum()),
            merged_jumps=jumps,
        )

    def among(self, rows: NDArray[np.int64], least: float = 0.0) -> LabelNoise:
        """Return the known rates of classes or rows for some of the rows, ``least`` at least."""
        assert self.rates is not None
        if self.labels is not None:
            return class_rates(np.maximum(self.rates, least), self.labels[rows])
        return row_rates(np.maximum(self.rates[rows], least), self.n_classes)

    def rates_of_rows(self, rates: Array) -> tuple[Array, Array]:
        """Probabilities that a label is wrong where it is of the true class, and where it is not.

        That a row of its recorded class was recorded as the other, and that one of the other class
        was recorded as this: (n,) each, of one rate, one a row, or one for each of two classes.
        """
        if not self.is_by_class:
            return np.resize(rates, len(self.group)), np.resize(rates, len(self.group))
        label = self.group if self.labels is None else self.labels
        return rates[label], rates[1 - label]

    @cached_property
    def must_be_right(self) -> NDArray[np.bool_]:
        """Rows whose error has no probability: shape (n,)."""
        first = 0.0 if self.step.ndim == 3 else self.jumps[:-1] @ self.step[:, 0]
        return np.asarray(self.row_cost + first >= 0.5 * IMPOSSIBLE)

    def errors_by_group(self, is_wrong: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Count wrong rows, shape (..., n), by group: shape (..., n_groups)."""
        if len(self.sizes) == 1 and self.merged_jumps is None:
            return np.asarray(np.count_nonzero(is_wrong, axis=-1))[..., np.newaxis]
        errors = is_wrong.astype(np.float64) @ self.jumps[:-1] + self.jumps[-1]
        return np.asarray(errors).round().astype(np.int64)

    @cached_property
    def total(self) -> Array:
        """Cost of e errors in group g, without that of the rows: (n_groups, n + 1, 1), or ``step``.

        It has three axes, so that loops are compiled for one type.
        """
        if self.step.ndim == 3:
            return self.step
        start = np.zeros((len(self.sizes), 1))
        total = np.concatenate([start, np.cumsum(self.step[:, :-1], axis=1)], axis=1)
        return total[..., np.newaxis]

    def cost(self, is_wrong: NDArray[np.bool_]) -> Array:
        """Cost in nats of the wrong rows, shape (..., n), against none wrong: shape (...)."""
        by_group = self.cost_of_counts(self.errors_by_group(is_wrong))
        return np.asarray(by_group + is_wrong @ self.row_cost)

    def cost_of_counts(self, errors: NDArray[np.int64]) -> Array:
        """Cost in nats of errors by group, (..., n_groups), without that of the rows."""
        if self.step.size == 0:
            assert self.prior is not None
            return self.log_no_errors - _log_weight(self.prior, self.sizes, errors)
        if self.step.ndim == 3:
            return np.asarray(self.step[0, errors[..., 0], errors[..., 1]])
        return np.asarray(self.total[np.arange(len(self.sizes)), errors, 0].sum(axis=-1))

    def expected_rates(self, errors: NDArray[np.int64]) -> Array:
        """E[rate | errors] from errors by group, (..., n_groups); known rates are given back.

        The result is (..., 1), or (..., C) where there is a rate for each class.
        """
        if self.prior is None:
            known = np.zeros(1) if self.rates is None else self.rates
            given = known if self.is_by_class else np.full(1, known.mean())
            return np.broadcast_to(given, (*errors.shape[:-1], len(given))).copy()
        a, b = self._posterior(errors)
        limit = (self.n_classes - 1) / self.n_classes
        log_ratio = log_incomplete_beta(a + 1.0, b, limit) - log_incomplete_beta(a, b, limit)
        return np.asarray(np.exp(log_ratio))

    def draw_rates(self, rng: np.random.Generator, errors: NDArray[np.int64]) -> Array:
        """Draw rates given errors by group, as `expected_rates`, by bisection in logs."""
        if self.prior is None:
            return self.expected_rates(errors)
        a, b = self._posterior(errors)
        upper = np.full(errors.shape, (self.n_classes - 1) / self.n_classes)
        wanted = log_incomplete_beta(a, b, upper) + np.log1p(-rng.random(errors.shape))
        lower = np.zeros(errors.shape)
        for _ in range(60):
            middle = 0.5 * (lower + upper)
            is_below = log_incomplete_beta(a, b, middle) < wanted
            lower, upper = np.where(is_below, middle, lower), np.where(is_below, upper, middle)
        return np.asarray(0.5 * (lower + upper))

    def _posterior(self, errors: NDArray[np.int64]) -> tuple[Array, Array]:
        """a, b of each rate given errors: wrong and right rows among those said to be its class."""
        assert self.prior is not None
        wrong = errors[..., ::-1] if self.is_by_class else errors
        a, b = self.prior[0] + wrong, self.prior[1] + self.sizes - errors
        return np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)


@dataclass(frozen=True)
class Confusion:
    """Labels of several classes, each recorded as another at a rate of its own."""

    labels: NDArray[np.int64]  # (n,), as recorded, 0..C-1
    matrix: Array  # (C, C), P(recorded y | class c), known, or where a chain starts
    #: (C, C), Dirichlet parameters of each row, cut off where the diagonal is not the largest entry
    #: of its row; None where the matrix is known.
    prior: Array | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes C."""
        return len(self.matrix)

    @property
    def must_be_right(self) -> NDArray[np.bool_]:
        """Rows that not every class can have been recorded as: shape (n,)."""
        return np.asarray((self.matrix == 0.0).any(axis=0)[self.labels])

    def counts(self, chosen: NDArray[Any]) -> NDArray[np.int64]:
        """Rows said to be c and recorded y, for classes ``chosen`` (..., n): shape (..., C, C)."""
        n_classes = self.n_classes
        pair = chosen.astype(np.int64) * n_classes + self.labels
        flat = pair.reshape(-1, pair.shape[-1])
        each = [np.bincount(row, minlength=n_classes**2) for row in flat]
        return np.array(each).reshape(*chosen.shape[:-1], n_classes, n_classes)

    def log_likelihood(self, chosen: NDArray[Any]) -> Array:
        """Log probability of the labels given the classifier's classes (..., n), in nats.

        An unknown matrix is integrated out.
        """
        counts = self.counts(chosen)
        if self.prior is None:
            return np.asarray(-(counts * self.penalty(self.matrix)).sum(axis=(-2, -1)))
        after = self.prior + counts
        log_ratio = _log_dirichlet(after) - _log_dirichlet(self.prior)
        log_kept = _log_diagonal_largest(after) - _log_diagonal_largest(self.prior)
        return np.asarray((log_ratio + log_kept).sum(axis=-1))

    def draw(self, rng: np.random.Generator, chosen: NDArray[np.int64], matrix: Array) -> Array:
        """Draw the matrix given the classes; a row that no proposal suits stays as it is.

        Proposals come from the Dirichlet law without the cut, which are accepted within it: a
        Metropolis step that leaves the posterior as it is.
        """
        if self.prior is None:
            return matrix
        after, drawn = self.prior + self.counts(chosen), matrix.copy()
        for c in range(self.n_classes):
            proposals = rng.dirichlet(after[c], _N_PROPOSALS)
            is_kept = proposals[:, c] >= proposals.max(axis=1)
            if is_kept.any():
                drawn[c] = proposals[np.argmax(is_kept)]
        return drawn

    @staticmethod
    def penalty(matrix: Array) -> Array:
        """Cost in nats of a row recorded y that is said to be c: -log matrix, (C, C)."""
        with np.errstate(divide="ignore"):
            return np.minimum(-np.log(matrix), IMPOSSIBLE)


def fixed_rate(rate: float, n: int, n_classes: int = 2) -> LabelNoise:
    """One known rate in [0, (C - 1)/C] for n rows."""
    step = np.full((1, n + 1), _log_odds(np.array([rate]), n_classes)[0])
    return LabelNoise(
        np.zeros(n, np.int64), step, np.zeros(n), n * float(np.log1p(-rate)),
        np.array([rate]), None, np.array([n]), n_classes,
    )  # fmt: skip


def class_rates(rates: Array, labels: NDArray[np.int64]) -> LabelNoise:
    """Known rates of two classes, P(recorded as the other | class): shape (2,), labels 0 and 1."""
    n = len(labels)
    with np.errstate(divide="ignore"):
        cost = np.minimum(np.log1p(-rates) - np.log(rates[::-1]), IMPOSSIBLE)[labels]
    return LabelNoise(
        np.zeros(n, np.int64), np.zeros((1, n + 1)), cost, float(np.log1p(-rates)[labels].sum()),
        rates, None, np.array([n]), 2, is_by_class=True, labels=labels,
    )  # fmt: skip


def confusion_of_rates(rates: Array) -> Array:
    """P(recorded y | class c) where a label that is wrong is any other with the same probability.

    Rates (C,) of the true classes; the matrix is (C, C).
    """
    n_classes = len(rates)
    matrix = np.repeat(rates[:, np.newaxis] / (n_classes - 1), n_classes, axis=1)
    np.fill_diagonal(matrix, 1.0 - rates)
    return matrix


def learned_confusion(prior: tuple[float, float], labels: NDArray[np.int64], n: int) -> Confusion:
    """Unknown matrix of n classes: a priori 1 - matrix[c, c] is Beta(a, b), but for the cut."""
    a, b = prior
    parameters = np.full((n, n), a / (n - 1))
    np.fill_diagonal(parameters, b)
    return Confusion(labels, confusion_of_rates(np.full(n, _FIRST_RATE)), parameters)


def row_rates(rates: Array, n_classes: int = 2) -> LabelNoise:
    """One known rate for each row, 0 for rows known to be right: shape (n,)."""
    n = len(rates)
    return LabelNoise(
        np.zeros(n, np.int64), np.zeros((1, n + 1)), _log_odds(rates, n_classes),
        float(np.log1p(-rates).sum()), rates, None, np.array([n]), n_classes,
    )  # fmt: skip


def learned_rate(prior: tuple[float, float], n: int, n_classes: int = 2) -> LabelNoise:
    """One unknown rate, integrated out: Beta(a, b) on [0, (C - 1)/C]."""
    log_weight = _log_weights(prior, n, n_classes)
    step = np.append(log_weight[:-1] - log_weight[1:], 0.0)[np.newaxis]
    return LabelNoise(
        np.zeros(n, np.int64), step, np.zeros(n), float(log_weight[0]),
        None, prior, np.array([n]), n_classes,
    )  # fmt: skip


def learned_class_rates(
    prior: tuple[float, float], labels: NDArray[np.int64], *, has_table: bool = True
) -> LabelNoise:
    """One unknown rate for each of two true classes, a priori independent, integrated out.

    A table of all pairs of numbers of errors is n_0 n_1 numbers; without one there are no chains.
    """
    sizes = np.bincount(labels, minlength=2)
    if has_table:
        # log_weight[e_0, e_1]: of e_0 wrong rows recorded 0, which are said to be 1, and of e_1.
        of_one = _log_beta_table(prior, int(sizes[0]), int(sizes[1]))[:, ::-1]
        of_zero = _log_beta_table(prior, int(sizes[1]), int(sizes[0]))[:, ::-1].T
        log_weight = _of_both(prior, of_one, of_zero)
        no_errors, step = log_weight[0, 0], (log_weight[0, 0] - log_weight)[np.newaxis]
    else:
        no_errors, step = _log_weight(prior, sizes, np.zeros(2, np.int64)), np.empty((1, 0, 0))
    return LabelNoise(
        labels.astype(np.int64), step, np.zeros(len(labels)), float(no_errors), None, prior, sizes,
        2, is_by_class=True,
    )  # fmt: skip


def _log_weight(prior: tuple[float, float], sizes: NDArray[np.int64], errors: Any) -> Array:
    """Log probability of errors (..., 2) of rows recorded as each of two classes."""
    (a, b), right = prior, sizes - errors
    of_one = log_incomplete_beta(a + errors[..., 0], b + right[..., 1], 0.5)
    of_zero = log_incomplete_beta(a + errors[..., 1], b + right[..., 0], 0.5)
    return _of_both(prior, of_one, of_zero)


def _of_both(prior: tuple[float, float], of_one: Array, of_zero: Array) -> Array:
    """Log probability of errors from the logs of two incomplete beta functions."""
    alone = log_incomplete_beta(np.array([prior[0]]), np.array([prior[1]]), 0.5)[0]
    return np.asarray(of_one + of_zero - 2.0 * alone)


def _log_beta_table(prior: tuple[float, float], n_wrong: int, n_right: int) -> Array:
    """Log of B(a + e, b + r), incomplete to 1/2, for e to n_wrong and r to n_right.

    a B(a, b) = 2^-(a + b) + (a + b) B(a + 1, b), from the largest e down: sums of positive terms.
    """
    b = prior[1] + np.arange(n_right + 1.0)
    table = np.empty((n_wrong + 1, n_right + 1))
    table[-1] = log_incomplete_beta(np.full(n_right + 1, prior[0] + n_wrong), b, 0.5)
    for e in range(n_wrong - 1, -1, -1):
        a = prior[0] + e
        table[e] = np.logaddexp(-(a + b) * np.log(2.0), np.log(a + b) + table[e + 1]) - np.log(a)
    return table


def _log_dirichlet(a: Array) -> Array:
    """Log of the normalising constant of Dirichlet laws, parameters (..., C)."""
    return np.asarray(gammaln(a).sum(axis=-1) - gammaln(a.sum(axis=-1)))


def _log_diagonal_largest(a: Array) -> Array:
    """Log of P(entry c is the largest in row c) of Dirichlet rows a (..., C, C): shape (..., C).

    Entries are gamma variables over their sum: the probability that others are below a quantile of
    entry c, averaged over it by the trapezoid rule in the logit of the quantile.
    """
    n_classes, x = a.shape[-1], np.linspace(-42.0, 42.0, 1001)
    u, weight = 1.0 / (1.0 + np.exp(-x)), (x[1] - x[0]) / (2.0 + np.exp(x) + np.exp(-x))
    result = np.empty(a.shape[:-1])
    for c in range(n_classes):
        t = gammaincinv(a[..., c, c, np.newaxis], u)
        below = weight
        for y in range(n_classes):
            if y != c:
                below = below * gammainc(a[..., c, y, np.newaxis], t)
        result[..., c] = np.log(np.maximum(below.sum(axis=-1), 1e-300))
    return result


def log_incomplete_beta(a: Floats, b: Floats, x: Floats | float) -> Array:
    """Log of the integral of t^(a-1) (1-t)^(b-1) over [0, x], also where it underflows."""
    a, b, limit = np.broadcast_arrays(a, b, np.asarray(x))
    share = betainc(a, b, limit)
    is_tail = share < 1e-250
    with np.errstate(divide="ignore"):
        result = np.log(share) + betaln(a, b)
    if is_tail.any():
        a, b, limit = a[is_tail], b[is_tail], limit[is_tail]
        with np.errstate(divide="ignore"):
            power = a * np.log(limit) + b * np.log1p(-limit)
        result[is_tail] = power - np.log(a) + np.log(_tail_series(a, b, limit))
    return np.asarray(result)


def _tail_series(a: Floats, b: Floats, x: Floats) -> Array:
    """2F1(a + b, 1; a + 1; x): far in the tail its terms fall from the first one on."""
    term = np.ones(x.shape)
    total = np.ones(x.shape)
    k = 0
    while term.max() > 1e-17 * total.max():
        term = term * x * (a + b + k) / (a + 1.0 + k)
        total += term
        k += 1
    return total


def _log_weights(prior: tuple[float, float], n: int, n_classes: int) -> Array:
    """log E[(q/(C-1))^e (1-q)^(n-e)] over the prior of q, for e = 0..n."""
    a, b = prior
    limit = (n_classes - 1) / n_classes
    e = np.arange(n + 1.0)
    total = log_incomplete_beta(np.array([a]), np.array([b]), limit)[0]
    log_each = log_incomplete_beta(a + e, b + n - e, limit)
    return np.asarray(log_each - total - e * np.log(n_classes - 1.0))


def _log_odds(rates: Array, n_classes: int) -> Array:
    """Cost of an error at known rates; `IMPOSSIBLE` at rate 0."""
    with np.errstate(divide="ignore"):
        odds = np.log((n_classes - 1) * (1.0 - rates)) - np.log(rates)
    return np.asarray(np.clip(odds, 0.0, IMPOSSIBLE))


# Rows that can be wrong or right together only.


@dataclass(frozen=True)
class Walls:
    """Rows of one direction, as equal inputs have: their latent values change sign together."""

    first: NDArray[np.int64]  # (m,), ascending: the row that stands for each wall
    into: NDArray[np.int64]  # (n,), the wall of each row
    scale: Array  # (n,), latent value of each row over that of the one that stands for it

    @property
    def are_rows(self) -> bool:
        """Whether there is one for each row."""
        return len(self.first) == len(self.into)

    def rows(self, f: Array) -> Array:
        """Latent values of all rows (..., n) from those of the walls (..., m)."""
        return f if self.are_rows else f[..., self.into] * self.scale


def walls_of(L: Array, is_certain: NDArray[np.bool_], tolerance: float) -> Walls:
    """Find the rows of L that are parallel, or opposite; a certain row stands for the others.

    Unit rows that are close on a fixed line, and then by all entries, are the same. A row that is
    zero is one by itself.
    """
    n, length = len(L), np.linalg.norm(L, axis=1)
    place = L @ np.cos(np.arange(L.shape[1])) / np.where(length > 0.0, length, 1.0)
    signed = np.where(place < 0.0, -1.0, 1.0) * length
    order = np.argsort(np.abs(place), kind="stable")
    is_near = np.diff(np.abs(place[order])) <= tolerance * math.sqrt(L.shape[1])
    a, b = order[:-1][is_near], order[1:][is_near]
    both = (length[a] > 0.0) & (length[b] > 0.0)
    gap = L[a[both]] / signed[a[both], np.newaxis] - L[b[both]] / signed[b[both], np.newaxis]
    is_same = np.zeros(max(n - 1, 0), dtype=bool)
    is_same[np.flatnonzero(is_near)[both]] = np.abs(gap).max(axis=1, initial=0.0) <= tolerance
    begins = np.append(True, ~is_same)
    preferred = np.minimum.reduceat((np.arange(n) - n * is_certain)[order], np.flatnonzero(begins))
    standing = np.empty(n, np.int64)
    standing[order] = preferred[np.cumsum(begins) - 1] % n
    first, into = np.unique(standing, return_inverse=True)
    scale = np.divide(signed, signed[standing], out=np.ones(n), where=length > 0.0)
    return Walls(first, into, scale)


# Numbers that are wrong: a contaminated law of the errors e of targets, of kinds z,
#
#     e ~ N(0, c_z s2 + t_z^2) .
#
# Right targets are of the kinds 0 to 3, with t = 0 and c = 4^z: their noise is normal, or has
# heavier tails. One that is of kind z at least is of a higher one with probability q ~ Beta(.3, 3).
#
# The others are wrong, with probability r ~ Beta(1, 19): c = 10, an error is three times the noise
# at least, and t is a power of four from 1/4 to 2.6e5, in standard deviations of the target. The
# shares w of these sizes have a Dirichlet law. Before an error is seen they are in proportion to
# t^3 / (1 + t^2)^2: of a size as the targets', or ever larger; and they count as two errors.

WIDTHS = 4.0 ** np.arange(4)
N_WIDE, N_NARROW = 0.3, 3.0
SIZES = 4.0 ** np.arange(-1, 10)
SHARES = SIZES**3 / (1.0 + SIZES**2) ** 2 / (SIZES**3 / (1.0 + SIZES**2) ** 2).sum()
N_SIZES = 2.0
N_KINDS = len(WIDTHS) + len(SIZES)
LEAST_ERROR = 9.0  # in variances of the noise
# What each kind has beside the noise: so many variances of it, and the square of a size.
ADDED_NOISE = np.concatenate([WIDTHS - 1.0, np.full(len(SIZES), LEAST_ERROR)])
ADDED_SQUARES = np.concatenate([np.zeros(len(WIDTHS)), SIZES**2])
N_WRONG, N_RIGHT = 1.0, 19.0  # of the prior of the rate: a twentieth
# Standardised targets are cut here: the largest size of an error is a quarter of it, and the
# variance of a row left out is a difference that loses digits with the square of that size.
FARTHEST = 1e6
_LEAST_SHARE = 1e-12
_TIED = 0.2


def tied_rows(y: Array) -> NDArray[np.bool_]:
    """Which of the targets (n,) are the commonest one, such as 0; none if they are a fifth or less.

    They say nothing of the noise: a function that is constant there would have none, and all the
    others would be wrong.
    """
    values, which, counts = np.unique(y, return_inverse=True, return_counts=True)
    is_many = counts.max() > _TIED * len(y) and len(values) > 1
    return np.asarray((which == np.argmax(counts)) & is_many)


def added_variances(noise_variance: float | Array) -> Array:
    """What errors of each kind have beside the noise: (..., 15) for variances of it (...)."""
    noise = np.asarray(noise_variance)[..., np.newaxis]
    return np.asarray(noise * ADDED_NOISE + ADDED_SQUARES)


def log_shares(rate: float | Array, wide: float = 0.05, log_sizes: Array | None = None) -> Array:
    """Log probability of every kind, (..., 15), for rates r (...), q and the logarithms of w."""
    rate, above = np.asarray(rate)[..., np.newaxis], np.arange(len(WIDTHS))
    right = above * math.log(wide) + np.where(above < len(WIDTHS) - 1, math.log1p(-wide), 0.0)
    wrong = np.log(SHARES) if log_sizes is None else log_sizes
    return np.concatenate([np.log1p(-rate) + right, np.log(rate) + wrong], axis=-1)


def draw_shares(rng: np.random.Generator, counts: NDArray[Any]) -> Array:
    """Draw the log probability of every kind, given how many targets are of each, both (15,)."""
    right, wrong = counts[: len(WIDTHS)], counts[len(WIDTHS) :]
    of_rate = N_WRONG + wrong.sum(), N_RIGHT + right.sum()
    of_width = N_WIDE + right @ np.arange(len(WIDTHS)), N_NARROW + right[:-1].sum()
    rate, wide = np.clip(
        [rng.beta(*of_rate), rng.beta(*of_width)], _LEAST_SHARE, 1.0 - _LEAST_SHARE
    )
    # Logs of gamma variables of small shape: those of a shape higher by 1, times u^(1 / shape).
    shape = N_SIZES * SHARES + wrong
    logs = np.log(rng.standard_gamma(shape + 1.0)) + np.log1p(-rng.random(len(shape))) / shape
    return log_shares(rate, wide, logs - np.logaddexp.reduce(logs))


def shares_of(draws: Any) -> Array:
    """Log probabilities of kinds of draws, (S, 15); files of older versions have the rate alone."""
    if "log_shares" in draws.variables:
        return np.asarray(draws.flat("log_shares"))
    return log_shares(np.exp(draws.flat("log_rate")), _LEAST_SHARE)


def rate_of(log_shares: Array) -> Array:
    """Probability that a target is wrong, (...), of log probabilities of kinds (..., 15)."""
    return np.asarray(np.exp(log_shares[..., len(WIDTHS) :]).sum(axis=-1))


def right_shares(log_shares: Array) -> Array:
    """Share of each width among right targets, (..., 4), of log probabilities of kinds."""
    right = np.exp(log_shares[..., : len(WIDTHS)])
    return np.asarray(right / right.sum(axis=-1, keepdims=True))


def width_of(log_shares: Array) -> Array:
    """Variance of right targets in those of the noise, (...): the mean of c over their kinds."""
    return np.asarray(right_shares(log_shares) @ WIDTHS)


def log_kinds(errors: Array, noise_variance: float | Array, log_shares: Array) -> Array:
    """Log joint density of errors (...) and their kinds, (..., 15), in nats.

    Variances of the noise, and shares (15,), are those of all, or one for each of the last axis of
    the errors.
    """
    variance = np.asarray(noise_variance)[..., np.newaxis] + added_variances(noise_variance)
    squares = np.square(errors)[..., np.newaxis] / variance
    return np.asarray(log_shares - 0.5 * np.log(2.0 * np.pi * variance) - 0.5 * squares)
