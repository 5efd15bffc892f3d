"""The cloud of classifiers of a fit: draws with the models that they came from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from mercer.posterior.draws import Draws
from mercer.sphere.predict import class_probability, entropy_bits, recorded_probability
from mercer.sphere.selection import Candidate

__all__ = ["Cloud"]

Array = NDArray[np.float64]

# Nodes over the part of f outside the span, for what a label says under a nugget: of two classes,
# and for each draw of several.
_N_NODES, _N_NODES_OF_SEVERAL = 8, 4
# Draws and rows taken together in a sum over draws.
_BLOCK_NUMBERS = 4_000_000


@dataclass(frozen=True)
class Cloud:
    """Draws of classifiers.

    Attributes
    ----------
    models : tuple of Candidate
    model : ndarray of shape (k,), int
        Which of them each draw came from.
    coefficients : ndarray of shape (k, p), or (k, C, p) for several classes
        As `Space.coefficients` gives them.
    length : ndarray of shape (k,)
        |g|: coefficients / length belong to a classifier of unit length.
    rates : ndarray of shape (k, 1), (k, C) or (k, C, C)
        Noise rates: one, by class, or P(recorded y | class c).
    """

    models: tuple[Candidate, ...]
    model: NDArray[np.int64]
    coefficients: Array
    length: Array
    rates: Array

    @classmethod
    def of(cls, models: tuple[Candidate, ...], draws: Draws) -> Cloud:
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
        means, spreads = self.latent(X)
        v = np.empty((len(self.model), self.n_classes, len(X)))
        for j in range(len(self.models)):
            mine = self.model == j
            v[mine] = class_probability(means[mine], spreads[j])
        return v

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
