"""What drawn classifiers say of new rows, and of their own: probabilities and information."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from mercer.numerics.cholesky import covariance_root
from mercer.posterior.draws import Draws
from mercer.posterior.labels import entropy_bits
from mercer.sphere.several_loops import largest_of_normals
from mercer.sphere.space import Space

if TYPE_CHECKING:
    from mercer.sphere.selection import Candidate

Array = NDArray[np.float64]

# What a posterior sample of classifiers says of new rows: probabilities, votes, information.
#
# Latent values of new rows come as means given each draw and a spread that is the same for every
# draw: the part of f outside the span of the training rows, and the nugget. With them the class of
# a row is certain given a draw, or has the probability Phi(mean / spread).

# A spread below this share of the row's largest mean is rounding.
_NO_SPREAD = 1e-7
# A probability is kept this far from 0 and 1, so that a log score is finite.
_SMALLEST_PROBA = 1e-12


def class_probability(means: Array, spread: Array) -> Array:
    """P(class | draw) of each row, (k, C, m): sums to one over classes; ties share.

    ``means`` is that of f: (k, m) of the second of two classes against the first, or (k, C, m);
    ``spread`` (m,) the standard deviation of f given the draw.
    """
    if means.ndim == 2:
        p = _above_zero(means, spread)
        return np.stack([1.0 - p, p], axis=1)
    is_largest = means == means.max(axis=1, keepdims=True)
    p = is_largest / is_largest.sum(axis=1, keepdims=True)
    wide = np.flatnonzero(spread > _NO_SPREAD * np.abs(means).max(axis=(0, 1), initial=0.0))
    if len(wide):
        z = np.ascontiguousarray(means[:, :, wide] / spread[wide])
        of_wide = np.empty_like(z)
        largest_of_normals(z, of_wide)
        p[:, :, wide] = of_wide
    return np.asarray(p)


def _above_zero(means: Array, spread: Array) -> Array:
    is_wide = spread > _NO_SPREAD * np.abs(means).max(axis=0, initial=0.0)
    certain = 0.5 * (1.0 + np.sign(means))
    return np.where(is_wide, ndtr(means / np.where(is_wide, spread, 1.0)), certain)


def recorded_probability(v: Array, rates: Array) -> Array:
    """P(recorded label | draw) from P(class | draw), (k, C, m), and the noise rates of the draws.

    Rates are (k, 1), one for all: (1 - q) v + q (1 - v)/(C - 1); (k, C), one for each class, a
    wrong label being any other; or (k, C, C), P(recorded y | class c) itself.
    """
    n_classes = v.shape[1]
    if rates.ndim == 3:
        return np.asarray(np.einsum("kcm,kcy->kym", v, rates))
    if rates.shape[1] == 1:
        q = rates[:, :, np.newaxis]
        return np.asarray((1.0 - q) * v + q * (1.0 - v) / (n_classes - 1))
    q = rates[:, :, np.newaxis]
    wrong = q * v / (n_classes - 1)  # of each class, as each other
    return np.asarray((1.0 - q) * v + wrong.sum(axis=1, keepdims=True) - wrong)


def finite_log_score(p: Array, v: Array, *, has_noise: bool) -> Array:
    """Keep averaged probabilities p (C, m) of draws v (k, C, m) from being 0 or 1.

    Without noise, and where every draw is certain, k votes of n are (k + 1/C)/(n + 1).
    """
    n, n_classes = len(v), v.shape[1]
    kept = np.clip(p, _SMALLEST_PROBA, 1.0 - _SMALLEST_PROBA)
    if has_noise:
        return kept
    is_certain = ((v == 0.0) | (v == 1.0)).all(axis=(0, 1))
    return np.where(is_certain, (n * p + 1.0 / n_classes) / (n + 1.0), kept)


def votes(means: Array) -> NDArray[np.int64]:
    """Count the draws whose own classifier chooses each class: (m, C), eq. (4) before its sign.

    The part of f outside the span of the training rows is left out, as in the paper.
    """
    if means.ndim == 2:
        chosen, n_classes = (means > 0.0).astype(np.int64), 2
    else:
        chosen, n_classes = means.argmax(axis=1), means.shape[1]
    return np.stack([(chosen == c).sum(axis=0) for c in range(n_classes)], axis=1)


# The posterior sample of a fit: classifiers with the models that they came from.

# Nodes over the part of f outside the span, for what a label says under a nugget: of two classes,
# and for each draw of several.
_N_NODES, _N_NODES_OF_SEVERAL = 8, 4
# Draws and rows taken together in a sum over draws.
_BLOCK_NUMBERS = 4_000_000


@dataclass(frozen=True)
class PosteriorSample:
    """Posterior sample of k classifiers from some models.

    ``coefficients`` (k, p), or (k, C, p) for several classes, are those of
    `Space.coefficients`; divided by ``length``, |g|, they belong to a classifier of unit
    length. ``model`` says which of ``models`` each draw came from. Noise ``rates`` are (k, 1),
    by class (k, C), or P(recorded y | class c), (k, C, C).
    """

    models: tuple[Candidate, ...]
    model: NDArray[np.int64]
    coefficients: Array
    length: Array
    rates: Array

    @classmethod
    def of(cls, models: tuple[Candidate, ...], draws: Draws) -> PosteriorSample:
        """From draws that have all of it."""
        has_matrix = "confusion" in draws.variables
        return cls(
            models, draws.flat("model"), draws.flat("coefficients"), draws.flat("length"),
            draws.flat("confusion" if has_matrix else "noise_rate"),
        )  # fmt: skip

    @property
    def n_classes(self) -> int:
        """Number of classes C."""
        return 2 if self.coefficients.ndim == 2 else self.coefficients.shape[1]

    @property
    def has_noise(self) -> bool:
        """Whether some label may be wrong."""
        if self.rates.ndim == 3:
            return bool((self.rates != np.eye(self.n_classes)).any())
        return bool(self.rates.any())

    def latent(self, X: Array) -> tuple[Array, Array]:
        """f at new rows given each draw: mean (k, [C,] m), and spread (n_models, m)."""
        k, m = len(self.model), len(X)
        shape = (k, m) if self.n_classes == 2 else (k, self.n_classes, m)
        means, spreads = np.empty(shape), np.empty((len(self.models), m))
        for j, one in enumerate(self.models):
            mine = self.model == j
            flat = self.coefficients[mine].reshape(-1, self.coefficients.shape[-1])
            mean, spreads[j] = one.space.latent(X, flat)
            means[mine] = mean.reshape(-1, *shape[1:])
        return means, spreads

    def class_probability(self, X: Array) -> Array:
        """P(class | draw) of each row: shape (k, C, m)."""
        return self._class_probability(*self.latent(X))

    def _class_probability(self, means: Array, spreads: Array) -> Array:
        v = np.empty((len(self.model), self.n_classes, means.shape[-1]))
        for j in range(len(self.models)):
            mine = self.model == j
            v[mine] = class_probability(means[mine], spreads[j])
        return v

    def drawn_probability(self, X: Array, rng: np.random.Generator) -> Array:
        """P(recorded label | drawn function) at rows, (k, C, m): f outside the span is drawn too.

        What overlaps by the nugget stays a probability; without one a function is certain.
        """
        means, spreads = self.latent(X)
        for j, one in enumerate(self.models):
            mine = self.model == j
            outside = one.space.outside(X)
            spreads[j] = np.sqrt(np.maximum(spreads[j] ** 2 - outside.diagonal(), 0.0))
            shape = means[mine].shape
            means[mine] += rng.standard_normal(shape) @ covariance_root(outside).T
        return recorded_probability(self._class_probability(means, spreads), self.rates)

    def information(self, X: Array) -> Array:
        """Bits that the recorded label of each row is expected to say of the classifier.

        H(mean p) - mean H(p | classifier), p the probabilities of the recorded label: for one
        known rate q, two classes and no nugget H(q + (1 - 2q) v) - H(q); for q = 0 the paper's
        H(v), section 4.
        """
        means, spreads = self.latent(X)
        recorded, noise = np.zeros((self.n_classes, len(X))), np.zeros(len(X))
        for j, one in enumerate(self.models):
            mine = self.model == j
            share, rates = mine.mean(), self.rates[mine]
            v = class_probability(means[mine], spreads[j])
            recorded += share * recorded_probability(v, rates).mean(axis=0)
            noise += share * self._entropy_of_noise(means[mine], spreads[j], one.nugget, rates)
        return np.maximum(entropy_bits(recorded.T) - noise, 0.0)

    @staticmethod
    def _entropy_of_noise(means: Array, spread: Array, nugget: float, rates: Array) -> Array:
        """Mean entropy of a recorded label given the whole classifier, outside the span too."""
        own = np.sqrt(np.full_like(spread, nugget))
        wide = np.sqrt(np.maximum(spread**2 - nugget, 0.0))
        total = np.zeros(len(spread))
        n_dimensions = 1 if means.ndim == 2 else means.shape[1]
        for node, weight in zip(*_normal_nodes(len(means), n_dimensions), strict=True):
            shift = (node[..., np.newaxis] * wide).reshape(-1, *means.shape[1:])
            p = recorded_probability(class_probability(means + shift, own), rates)
            total += weight * entropy_bits(np.moveaxis(p, 1, -1)).mean(axis=0)
        return total

    def blocks(self, n_rows: int) -> list[slice]:
        """Split rows so that draws times classes times rows stay small."""
        size = max(1, _BLOCK_NUMBERS // (len(self.model) * self.n_classes))
        return [slice(begin, begin + size) for begin in range(0, n_rows, size)]

    @cached_property
    def bayes_point(self) -> Array:
        """Mean of the unit classifiers, one row a model, so that their sum is it; eq. (5)."""
        unit = self.coefficients / self.length.reshape(-1, *[1] * (self.coefficients.ndim - 1))
        means = [unit[self.model == j].sum(axis=0) for j in range(len(self.models))]
        return np.asarray(np.stack(means) / len(self.model))

    def bayes_point_values(self, X: Array) -> Array:
        """f of the Bayes point at new rows: shape (m,) or (C, m)."""
        values = np.zeros((1 if self.n_classes == 2 else self.n_classes, len(X)))
        for one, centre in zip(self.models, self.bayes_point, strict=True):
            values += one.space.latent(X, centre.reshape(-1, centre.shape[-1]))[0]
        return values[0] if self.n_classes == 2 else values


def _normal_nodes(n_draws: int, n_dimensions: int) -> tuple[Array, Array]:
    """Nodes of N(0, I) and weights (k,): Gauss and Hermite's, or others for each draw.

    Shape (k, 1, 1), or (k, n_draws, d): then a lattice of so many points as there are in all.
    """
    if n_dimensions == 1:
        nodes, weights = np.polynomial.hermite_e.hermegauss(_N_NODES)
        return nodes.reshape(-1, 1, 1), weights / weights.sum()
    # Roberts' sequence: powers of the root of x^(d + 1) = x + 1, modulo 1.
    root = 2.0
    for _ in range(60):
        root = (1.0 + root) ** (1.0 / (n_dimensions + 1.0))
    steps = root ** -np.arange(1.0, n_dimensions + 1.0)
    index = np.arange(1.0, _N_NODES_OF_SEVERAL * n_draws + 1.0)
    uniform = np.mod(0.5 + steps * index[:, np.newaxis], 1.0)
    nodes = ndtri(uniform).reshape(n_draws, _N_NODES_OF_SEVERAL, n_dimensions).swapaxes(0, 1)
    return nodes, np.full(_N_NODES_OF_SEVERAL, 1.0 / _N_NODES_OF_SEVERAL)


# P(class) of the training rows, their recorded labels taken into account.

# Rows whose |mean f| is above so many standard deviations are on that side in every draw.
_N_SD = 8.0


def label_proba(
    draws: Draws,
    spaces: Sequence[Space],
    labels: NDArray[np.int64],
    n_classes: int,
    known: Array | None = None,
) -> Array:
    """Average over draws the class that each classifier gives to a training row: (n, C).

    The draws have "is_wrong", and for several classes "chosen"; for many rows neither, but
    coefficients of the finite features of ``spaces``, one for each "model". Labels are as recorded,
    0..C-1. What is ``known`` without the noise of draws is P(the label is wrong), (n,), of two
    classes, and of several the result, (n, C).
    """
    if known is not None and known.ndim == 2:
        return known
    if "chosen" in draws.variables:
        chosen = draws.flat("chosen")
        return np.stack([(chosen == c).mean(axis=0) for c in range(n_classes)], axis=1)
    if known is None and "is_wrong" in draws.variables:
        known = draws.flat("is_wrong").mean(axis=0)
    if known is not None:
        p = np.where(labels == 1, 1.0 - known, known)
    else:
        model, g, p = draws.flat("model"), draws.flat("coefficients"), np.zeros(len(labels))
        for j in np.unique(model):
            own = model == j
            of_rows = spaces[j].each(functools.partial(_second_class, g[own]))
            p += np.mean(own) * np.concatenate(of_rows)
    return np.column_stack([1.0 - p, p])


def _second_class(g: Array, _first: int, rows: Iterator[NDArray[np.float32]]) -> Array:
    """Share of draws with f > 0; rows far from the boundary are decided by their mean."""
    begin = next(rows)
    g = g[:, : begin.shape[1]]  # filled up where other models have more features
    mean, deviations = g.mean(axis=0), g - g.mean(axis=0)
    widths = np.linalg.cholesky(
        deviations.T @ deviations / len(g) + 1e-12 * np.eye(g.shape[1]) * np.mean(deviations**2)
    ).astype(np.float32)
    centre, shares = mean.astype(np.float32), []
    for block in itertools.chain([begin], rows):
        f = block @ centre
        sd = np.sqrt(((block @ widths) ** 2).sum(axis=1))
        own = (f > 0.0).astype(np.float64)
        near = np.flatnonzero(np.abs(f) < _N_SD * sd)
        own[near] = ((block[near].astype(np.float64) @ g.T) > 0.0).mean(axis=1)
        shares.append(own)
    return np.concatenate(shares)
