"""The likelihood of labels that are wrong at some rate: what errors cost, by groups of rows.

A classifier w is wrong on row i if its class there is not the recorded label y_i. With C classes
and rate q a wrong row has probability q / (C - 1), a right one 1 - q, eq. (3) of Graepel &
Herbrich for C = 2. So the posterior of w depends on data only through which rows are wrong, and
one more error costs log((C - 1)(1 - q)/q) nats. Where q is unknown with a Beta(a, b) prior on
[0, (C - 1)/C], it is integrated out, and the cost depends on the errors that are there already.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaln

__all__ = [
    "IMPOSSIBLE",
    "LabelNoise",
    "class_rates",
    "fixed_rate",
    "learned_class_rates",
    "learned_rate",
    "log_incomplete_beta",
    "row_rates",
]

Array = NDArray[np.float64]
Floats = NDArray[np.floating[Any]]

# Cost in nats of an error that cannot be: exp of minus this is 0 in double precision.
IMPOSSIBLE = 1e6


@dataclass(frozen=True)
class LabelNoise:
    """What errors cost in nats, and what they say of the rates.

    Attributes
    ----------
    group : ndarray of shape (n,), int64
        Group of each row: its recorded class where rates are per class, else 0.
    step : ndarray of shape (n_groups, n + 1)
        step[g, e]: cost of one more error in group g when it has e; never negative.
    row_cost : ndarray of shape (n,)
        Cost of an error in the row, on top of ``step``.
    log_no_errors : float
        Log probability of the labels when no row is wrong.
    rates : ndarray or None
        Known rates: one a group, or one a row; None where they are learned.
    prior : tuple of float or None
        a, b of the Beta prior of each group's rate, where they are learned.
    sizes : ndarray of shape (n_groups,)
        Rows of each group.
    n_classes : int
    """

    group: NDArray[np.int64]
    step: Array
    row_cost: Array
    log_no_errors: float
    rates: Array | None
    prior: tuple[float, float] | None
    sizes: NDArray[np.int64]
    n_classes: int

    @property
    def is_common(self) -> bool:
        """Whether one rate holds for all rows, so that the number of errors is sufficient."""
        return len(self.sizes) == 1 and not self.row_cost.any()

    @cached_property
    def must_be_right(self) -> NDArray[np.bool_]:
        """Rows whose error has no probability: shape (n,)."""
        return np.asarray(self.row_cost + self.step[self.group, 0] >= IMPOSSIBLE)

    def tempered(self, power: float) -> LabelNoise:
        """Costs of the likelihood to a power in [0, 1]; impossible errors stay impossible."""
        return LabelNoise(
            self.group,
            _tempered(self.step, power),
            _tempered(self.row_cost, power),
            power * self.log_no_errors,
            self.rates,
            self.prior,
            self.sizes,
            self.n_classes,
        )

    def errors_by_group(self, is_wrong: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Count wrong rows, shape (..., n), by group: shape (..., n_groups)."""
        if len(self.sizes) == 1:
            return np.asarray(np.count_nonzero(is_wrong, axis=-1))[..., np.newaxis]
        one_hot = self.group[:, np.newaxis] == np.arange(len(self.sizes))
        return np.asarray(is_wrong.astype(np.float64) @ one_hot).round().astype(np.int64)

    @cached_property
    def total(self) -> Array:
        """Cost of e errors in group g, without that of the rows: shape (n_groups, n + 1)."""
        start = np.zeros((len(self.sizes), 1))
        return np.concatenate([start, np.cumsum(self.step[:, :-1], axis=1)], axis=1)

    def cost(self, is_wrong: NDArray[np.bool_]) -> Array:
        """Cost in nats of the wrong rows, shape (..., n), against none wrong: shape (...)."""
        errors = self.errors_by_group(is_wrong)
        by_group = self.total[np.arange(len(self.sizes)), errors].sum(axis=-1)
        return np.asarray(by_group + is_wrong @ self.row_cost)

    def expected_rates(self, errors: NDArray[np.int64]) -> Array:
        """E[rate | errors] of each group: shape (..., n_groups); known rates are given back."""
        if self.prior is None:
            known = np.zeros(len(self.sizes)) if self.rates is None else self.rates
            per_group = known if len(known) == len(self.sizes) else np.full(1, known.mean())
            return np.broadcast_to(per_group, errors.shape).copy()
        a, b = self.prior[0] + errors, self.prior[1] + self.sizes - errors
        limit = (self.n_classes - 1) / self.n_classes
        log_ratio = log_incomplete_beta(a + 1.0, b, limit) - log_incomplete_beta(a, b, limit)
        return np.asarray(np.exp(log_ratio))

    def draw_rates(self, rng: np.random.Generator, errors: NDArray[np.int64]) -> Array:
        """Draw each group's rate given its errors, shape (..., n_groups), by bisection in logs."""
        if self.prior is None:
            return self.expected_rates(errors)
        a, b = self.prior[0] + errors, self.prior[1] + self.sizes - errors
        upper = np.full(errors.shape, (self.n_classes - 1) / self.n_classes)
        wanted = log_incomplete_beta(a, b, upper) + np.log1p(-rng.random(errors.shape))
        lower = np.zeros(errors.shape)
        for _ in range(60):
            middle = 0.5 * (lower + upper)
            is_below = log_incomplete_beta(a, b, middle) < wanted
            lower, upper = np.where(is_below, middle, lower), np.where(is_below, upper, middle)
        return np.asarray(0.5 * (lower + upper))


def fixed_rate(rate: float, n: int, n_classes: int = 2) -> LabelNoise:
    """One known rate in [0, (C - 1)/C] for n rows."""
    step = np.full((1, n + 1), _log_odds(np.array([rate]), n_classes)[0])
    return LabelNoise(
        np.zeros(n, np.int64), step, np.zeros(n), n * float(np.log1p(-rate)),
        np.array([rate]), None, np.array([n]), n_classes,
    )  # fmt: skip


def class_rates(rates: Array, labels: NDArray[np.int64]) -> LabelNoise:
    """Known rates of the rows recorded as each class: rates (C,), labels 0..C-1 of shape (n,)."""
    n_classes = len(rates)
    step = np.repeat(_log_odds(rates, n_classes)[:, None], len(labels) + 1, axis=1)
    sizes = np.bincount(labels, minlength=n_classes)
    return LabelNoise(
        labels.astype(np.int64), step, np.zeros(len(labels)), float(sizes @ np.log1p(-rates)),
        rates, None, sizes, n_classes,
    )  # fmt: skip


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
    prior: tuple[float, float], labels: NDArray[np.int64], n_classes: int
) -> LabelNoise:
    """One unknown rate for the rows recorded as each class, a priori independent."""
    n = len(labels)
    sizes = np.bincount(labels, minlength=n_classes)
    step = np.zeros((n_classes, n + 1))
    log_no_errors = 0.0
    for g, size in enumerate(sizes):
        log_weight = _log_weights(prior, int(size), n_classes)
        step[g, :size] = log_weight[:-1] - log_weight[1:]
        log_no_errors += float(log_weight[0])
    return LabelNoise(
        labels.astype(np.int64), step, np.zeros(n), log_no_errors, None, prior, sizes, n_classes
    )


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


def _tempered(cost: Array, power: float) -> Array:
    return np.where(cost >= IMPOSSIBLE, cost, power * cost)
