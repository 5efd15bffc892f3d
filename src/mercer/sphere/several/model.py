"""The posterior of C functions, of which the largest names the class, given noisy labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mercer.likelihoods.label_noise import Confusion, LabelNoise

__all__ = ["SeveralModel"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SeveralModel:
    """Density prod_c N(g_c; 0, I) exp(-cost of the wrong rows), g of shape (C, r).

    Row i is right if f_c = (L g_c)_i is largest for its label; a tie is an error. The g_c are not
    normalised: each by itself would be another model, and a common factor changes no class.

    Attributes
    ----------
    L : ndarray of shape (n, r)
        Rows of the feature space.
    labels : ndarray of shape (n,), int64
        0..C-1.
    noise : LabelNoise or Confusion
        Of C classes.
    """

    L: Array
    labels: NDArray[np.int64]
    noise: LabelNoise | Confusion

    @property
    def n_rows(self) -> int:
        """Number of rows n."""
        return len(self.L)

    @property
    def rank(self) -> int:
        """Dimension r of the feature space."""
        return int(self.L.shape[1])

    @property
    def n_classes(self) -> int:
        """Number of classes C."""
        return self.noise.n_classes

    @property
    def must_be_right(self) -> NDArray[np.bool_]:
        """Rows whose error has no probability, shape (n,)."""
        return self.noise.must_be_right

    @cached_property
    def gram(self) -> Array:
        """L L', (n, n)."""
        return np.asarray(self.L @ self.L.T, dtype=np.float64)

    @cached_property
    def wall_products(self) -> NDArray[np.int8]:
        """Inner products of the walls between classes: (C, C - 1, C - 1, n).

        A wall of row i between its label y and another class c is the contrast e_y - e_c. Slots
        number the other classes: slot s is class s below the label, class s + 1 from there on.
        Entry [y, t, s, i] is of slot t of a row labelled y with slot s of row i.
        """
        n_classes = self.n_classes
        slots = np.arange(n_classes - 1)
        other = slots + (slots >= np.arange(n_classes)[:, np.newaxis])
        identity = np.eye(n_classes)
        contrasts = identity[:, np.newaxis] - identity[other]  # (C, C - 1, C)
        products = np.einsum("ytk,xsk->ytsx", contrasts, contrasts).astype(np.int8)
        return np.ascontiguousarray(products[..., self.labels])

    def point(self, g: Array) -> Array:
        """[f_c; g_c] with f_c = L g_c for each class: (C, n + r)."""
        return np.concatenate([g @ self.L.T, g], axis=1)

    def is_wrong(self, f: Array) -> NDArray[np.bool_]:
        """Which rows are wrong at latent values of shape (..., C, n): shape (..., n)."""
        is_label = self.labels == np.arange(self.n_classes)[:, np.newaxis]
        own = np.where(is_label, f, -np.inf).max(axis=-2)
        best = np.where(is_label, -np.inf, f).max(axis=-2)
        return np.asarray(own <= best)

    def log_likelihood(self, f: Array) -> Array:
        """Log probability of the labels at latent values of shape (..., C, n), in nats."""
        if isinstance(self.noise, Confusion):
            return self.noise.log_likelihood(f.argmax(axis=-2))
        return np.asarray(self.noise.log_no_errors - self.noise.cost(self.is_wrong(f)))
