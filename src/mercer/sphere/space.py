"""The feature space of a model: where the training rows lie in it, and what it says of new rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mercer.sphere.covariance import Covariance
from mercer.sphere.design import Design, Spectrum, design_from_features, spectrum_of

__all__ = ["FeatureSpace", "KernelSpace", "Space"]

Array = NDArray[np.float64]

# Numbers in one block of new rows against training rows or draws.
_BLOCK_NUMBERS = 4_000_000
# Rows whose features are made at a time.
_BLOCK_ROWS = 16384


class Space(ABC):
    """Rows of training data as vectors, and latent values of new rows given a draw."""

    @abstractmethod
    def design(self) -> Design:
        """Rows of the feature space."""

    @abstractmethod
    def single_precision_rows(self) -> NDArray[np.float32]:
        """Rows of the feature space for many rows: half the memory."""

    @abstractmethod
    def some_rows(self, rows: NDArray[np.int64]) -> Array:
        """Rows of the feature space of some of the training rows alone."""

    @abstractmethod
    def coefficients(self, design: Design, g: Array) -> Array:
        """What a draw keeps of the vectors g of shape (..., r): shape (..., n_coefficients)."""

    @abstractmethod
    def latent(self, X: Array, coefficients: Array) -> tuple[Array, Array]:
        """Mean and spread of f at new rows given draws.

        Parameters
        ----------
        X : ndarray of shape (m, d)
        coefficients : ndarray of shape (k, n_coefficients)

        Returns
        -------
        mean : ndarray of shape (k, m)
            Of f(x) given the values at the training rows.
        spread : ndarray of shape (m,)
            Standard deviation of the part of f(x) outside the span of the training rows, the
            nugget included; the same for every draw, 0 for finite features.
        """

    @abstractmethod
    def outside(self, X: Array) -> Array:
        """Covariance of the parts of f outside the span at new rows, nugget aside: (m, m)."""


@dataclass(frozen=True)
class KernelSpace(Space):
    """The span of the training rows under a covariance, with a nugget on the diagonal.

    A draw keeps the dual coefficients alpha of f = (G + nugget I) alpha.

    Attributes
    ----------
    covariance : Covariance
    X : ndarray of shape (n, d)
        Training rows; a Gram matrix where the covariance is precomputed.
    nugget : float
        Variance of feature noise: overlap of the classes, as against wrong labels.
    """

    covariance: Covariance
    X: Array
    nugget: float

    @cached_property
    def spectrum(self) -> Spectrum:
        """Of the Gram matrix, without the nugget."""
        return spectrum_of(self.covariance.gram(self.X))

    @cached_property
    def dual(self) -> Array:
        """L (L'L)^-1: its products give the inverse of G + nugget I."""
        dual = self.design().dual
        assert dual is not None
        return dual

    def with_nugget(self, nugget: float) -> KernelSpace:
        """The same covariance with another nugget; the decomposition is shared."""
        space = KernelSpace(self.covariance, self.X, nugget)
        space.__dict__["spectrum"] = self.spectrum
        return space

    def design(self) -> Design:
        """Rows L with L L' = G + nugget I."""
        return self.spectrum.design(self.nugget)

    def single_precision_rows(self) -> NDArray[np.float32]:
        """The same, rounded."""
        return self.design().L.astype(np.float32)

    def some_rows(self, rows: NDArray[np.int64]) -> Array:
        """Rows of the smaller Gram matrix."""
        X = self.X[np.ix_(rows, rows)] if self.covariance.kernel is None else self.X[rows]
        return KernelSpace(self.covariance, X, self.nugget).design().L

    def coefficients(self, design: Design, g: Array) -> Array:
        """alpha = dual g."""
        assert design.dual is not None
        return np.asarray(g @ design.dual.T)

    def latent(self, X: Array, coefficients: Array) -> tuple[Array, Array]:
        """k(x, X) alpha, and the square root of k(x, x) + nugget - k' (G + nugget I)^-1 k."""
        means, spreads = [], []
        n_rows = max(1, _BLOCK_NUMBERS // max(len(self.X), len(coefficients)))
        for begin in range(0, len(X), n_rows):
            block = X[begin : begin + n_rows]
            k = self.covariance.cross(block, self.X)
            means.append(coefficients @ k.T)
            variance = self.covariance.diagonal(block)
            if variance is None:
                spreads.append(np.full(len(block), np.sqrt(self.nugget)))
                continue
            # |L^+ k|^2 = k' (G + nugget I)^-1 k, with L^+ = dual'.
            inside = k @ self.dual
            known = np.einsum("ij,ij->i", inside, inside)
            spreads.append(np.sqrt(np.maximum(variance + self.nugget - known, 0.0)))
        return np.concatenate(means, axis=1), np.concatenate(spreads)

    def outside(self, X: Array) -> Array:
        """C(X, X) - k (G + nugget I)^-1 k'; zero where the Gram matrix of X is not known."""
        if self.covariance.kernel is None:
            return np.zeros((len(X), len(X)))
        k = self.covariance.cross(X, self.X) @ self.dual
        return np.asarray(self.covariance.gram(X) - k @ k.T)


@dataclass(frozen=True)
class FeatureSpace(Space):
    """Finite features: a draw keeps one coefficient a feature, and nothing lies outside.

    Attributes
    ----------
    features : callable
        Maps rows (m, d) to features (m, r).
    X : ndarray of shape (n, d)
        Training rows.
    """

    features: Callable[[Array], Array]
    X: Array

    def design(self) -> Design:
        """The features of the training rows."""
        return design_from_features(self.features(self.X))

    def single_precision_rows(self) -> NDArray[np.float32]:
        """The features, block by block."""
        L: NDArray[np.float32] | None = None
        for begin in range(0, len(self.X), _BLOCK_ROWS):
            Phi = self.features(self.X[begin : begin + _BLOCK_ROWS].astype(np.float64))
            if L is None:
                L = np.empty((len(self.X), Phi.shape[1]), np.float32)
            L[begin : begin + len(Phi)] = Phi
        assert L is not None
        return L

    def some_rows(self, rows: NDArray[np.int64]) -> Array:
        """Their features."""
        return self.features(self.X[rows].astype(np.float64))

    def coefficients(self, design: Design, g: Array) -> Array:
        """The coordinates themselves."""
        return g

    def latent(self, X: Array, coefficients: Array) -> tuple[Array, Array]:
        """phi(x)'g, and no spread."""
        n_rows = max(1, _BLOCK_NUMBERS // max(coefficients.shape[1], len(coefficients)))
        blocks = []
        for begin in range(0, len(X), n_rows):
            Phi = self.features(X[begin : begin + n_rows])
            # Where models of other ranks are averaged too, rows are filled up with zeros.
            blocks.append(coefficients[:, : Phi.shape[1]] @ Phi.T)
        return np.concatenate(blocks, axis=1), np.zeros(len(X))

    def outside(self, X: Array) -> Array:
        """Nothing."""
        return np.zeros((len(X), len(X)))
