"""The feature space of a model: where the training rows lie in it, and what it says of new rows."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from mercer.data.source import Make, RowSource, Work
from mercer.errors import DataError
from mercer.estimation.standardize import Standardizer
from mercer.features.maps import FeatureMap, NystroemMap
from mercer.kernels.base import Kernel
from mercer.kernels.linear import Linear
from mercer.likelihoods.label_noise import walls_of

if TYPE_CHECKING:
    from mercer.data.dask import HeldArrays

# The covariance of a classifier: a kernel by name, object, callable or matrix, plus a constant.
#
# The scale makes the mean variance of the training rows 1, so that the nugget and the constant
# mean the same for every kernel. The constant is what an intercept with a unit normal prior adds.

Array = NDArray[np.float64]
Callable2 = Callable[[Array, Array], Any]

# Pairs of rows that the median distance is taken from: a subset of the rows has so many.
_MEDIAN_ROWS = 1000
_NO_VARIANCE = -700.0  # log variance of a part of a kernel that is left out


@dataclass(frozen=True)
class Covariance:
    """C(x, z) = kernel(x, z) / scale + constant.

    A kernel that is a callable takes two matrices of rows and returns the matrix of all pairs;
    it is None where Gram matrices take the place of rows. ``theta`` are the log parameters of a
    Kernel.
    """

    kernel: Kernel | Callable2 | None
    theta: Array
    scale: float
    constant: float

    def gram(self, X: Array) -> Array:
        """All pairs of rows of X: shape (n, n)."""
        K = self.kernel.gram(self.theta, X) if isinstance(self.kernel, Kernel) else self._raw(X, X)
        return np.asarray(K / self.scale + self.constant)

    def cross(self, X: Array, Z: Array) -> Array:
        """Rows of X with those of Z: shape (n, m)."""
        if isinstance(self.kernel, Kernel):
            K = self.kernel.cross_gram(self.theta, X, Z)
        else:
            K = self._raw(X, Z)
        return np.asarray(K / self.scale + self.constant)

    def diagonal(self, X: Array) -> Array | None:
        """Variances of rows, shape (n,); None for a Gram matrix of new rows, which has none."""
        if self.kernel is None:
            return None
        if isinstance(self.kernel, Kernel):
            raw = self.kernel.diagonal(self.theta, X)
        elif hasattr(self.kernel, "diag"):  # as the kernels of scikit-learn
            raw = np.asarray(self.kernel.diag(X), dtype=np.float64)
        else:
            raw = np.array([self._raw(x[np.newaxis], x[np.newaxis])[0, 0] for x in X])
        return np.asarray(raw / self.scale + self.constant)

    def _raw(self, X: Array, Z: Array) -> Array:
        if self.kernel is None:
            return X
        assert callable(self.kernel)
        K = np.asarray(self.kernel(X, Z), dtype=np.float64)
        if K.shape != (len(X), len(Z)):
            raise DataError(
                f"the kernel returned shape {K.shape} for {len(X)} and {len(Z)} rows; a callable "
                "takes two matrices of rows and returns the matrix of all pairs"
            )
        return K


def fit_covariance(
    kernel: Kernel | Callable2, lengthscale: float | None, X: Array, constant: float
) -> Covariance:
    """Scale a kernel so that the training rows X have mean variance 1.

    Only a Kernel that has one takes a lengthscale, in units of X; ``constant`` is the variance
    of the intercept. A `DataError` where no row has a variance above 0.
    """
    theta = np.empty(0)
    if isinstance(kernel, Kernel):
        theta = kernel_parameters(kernel, lengthscale, X)
    plain = Covariance(kernel, theta, 1.0, 0.0)
    variances = plain.diagonal(X)
    assert variances is not None
    scale = float(np.mean(variances))
    if not (np.isfinite(scale) and scale > 0.0):
        if constant > 0.0 and scale == 0.0:
            return Covariance(kernel, theta, 1.0, constant)
        raise DataError(f"the kernel gives the rows a mean variance of {scale}: it must be above 0")
    return Covariance(kernel, theta, scale, constant)


def kernel_parameters(kernel: Kernel, lengthscale: float | None, X: Array | StoredInputs) -> Array:
    """Log parameters: one length scale for all inputs; parts of a sum with equal mean variances."""
    n_inputs = X.shape[1]
    kinds = np.repeat(
        [one.kind for one in kernel.parameters()],
        [one.size(n_inputs) for one in kernel.parameters()],
    )
    theta = np.zeros(len(kinds))
    if lengthscale is not None:
        theta[kinds == "weight"] = -2.0 * np.log(lengthscale)
    variances = np.flatnonzero(kinds == "variance")
    parts = np.ones(len(variances))
    for k in range(len(parts) if len(parts) > 1 else 0):
        alone = theta.copy()
        alone[np.delete(variances, k)] = _NO_VARIANCE
        variances_of = functools.partial(_variances, kernel, alone)
        parts[k] = np.concatenate(each_of(X, variances_of)).mean()
    theta[variances] = -np.log(np.where(parts > 0.0, parts, 1.0))
    return theta


def _variances(kernel: Kernel, theta: Array, _first: int, blocks: Iterator[Array]) -> Array:
    return np.concatenate([kernel.diagonal(theta, block) for block in blocks])


def precomputed(G: Array) -> Covariance:
    """Take rows of a Gram matrix in the place of inputs; a `DataError` where it is none."""
    if G.ndim != 2 or G.shape[0] != G.shape[1]:
        raise DataError(f"a precomputed Gram matrix is square; got shape {G.shape}")
    if not np.allclose(G, G.T, rtol=1e-6, atol=1e-8 * np.abs(G).max()):
        raise DataError("a precomputed Gram matrix is symmetric; this one is not")
    scale = float(np.mean(np.diagonal(G)))
    if not scale > 0.0:
        raise DataError(f"the Gram matrix has a mean diagonal of {scale}: it must be above 0")
    return Covariance(None, np.empty(0), scale, 0.0)


def median_distance(X: Array | StoredInputs) -> float:
    """Median of the distances between rows, evenly spaced ones where there are many; 1 if 0."""
    positions = np.linspace(0, len(X) - 1, min(len(X), _MEDIAN_ROWS)).round().astype(int)
    distances = pdist(X[positions])
    distances = distances[distances > 0.0]
    return float(np.median(distances)) if len(distances) else 1.0


# Finite features of a classifier: the inputs themselves, or a map of them, plus a constant.

# Rows that the scale is taken from.
_SCALE_ROWS = 16384


@dataclass(frozen=True)
class FiniteFeatures:
    """phi(x) = [map(x) / sqrt(scale), sqrt(constant)].

    ``map`` is None for the inputs themselves, a linear classifier; ``scale`` is the mean
    squared norm of the mapped training rows; ``constant`` the variance of the intercept, 0 for
    none. A linear classifier without one has 1 as its last feature for rows that are zero: else
    f would be 0 there for each draw, and every label of such a row wrong.

    Where it ``has_residual`` f has also what the map, Nystroem's, lacks of its kernel: for training
    rows a noise of each row by itself [1]_. Without it a rough function is taken to be known where
    landmarks are few, and labels beyond the features' reach to be wrong.

    References
    ----------
    .. [1] Naish-Guzman & Holden (2007), The generalized FITC approximation, NeurIPS.
    """

    map: FeatureMap | None
    scale: float
    constant: float
    has_residual: bool = False

    def __call__(self, X: Array) -> Array:
        """Features of the rows of X: shape (m, r)."""
        Phi = X if self.map is None else self.map.features(X)
        Phi = Phi / np.sqrt(self.scale)
        if self.constant > 0.0:
            Phi = np.column_stack([Phi, np.full(len(Phi), np.sqrt(self.constant))])
        elif self.map is None:
            Phi = np.column_stack([Phi, ~Phi.any(axis=1)])
        return np.ascontiguousarray(Phi)

    @classmethod
    def fitted(
        cls,
        feature_map: FeatureMap | None,
        X: Array | StoredInputs,
        constant: float,
        *,
        has_residual: bool = False,
    ) -> FiniteFeatures:
        """Scale to the training rows X: their mean variance becomes 1, the constant aside.

        Of many rows some, evenly spaced, are enough.
        """
        some = X[:: max(1, len(X) // _SCALE_ROWS)].astype(np.float64)
        if has_residual and isinstance(feature_map, NystroemMap):
            scale = float(feature_map.kernel.diagonal(feature_map.theta, some).mean())
        else:
            Phi = some if feature_map is None else feature_map.features(some)
            scale = float(np.einsum("ij,ij->", Phi, Phi) / len(Phi))
        return cls(feature_map, scale if scale > 0.0 else 1.0, constant, has_residual)

    @property
    def _whole(self) -> Covariance | None:
        """The covariance of f, where that has what the map lacks of it."""
        if not (self.has_residual and isinstance(self.map, NystroemMap)):
            return None
        return Covariance(self.map.kernel, self.map.theta, self.scale, self.constant)

    def outside(self, X: Array) -> Array:
        """Covariance of what f has besides the features at the rows of X: (m, m)."""
        if self._whole is None:
            return np.zeros((len(X), len(X)))
        Phi = self(X)
        return np.asarray(self._whole.gram(X) - Phi @ Phi.T)

    def residual(self, X: Array, Phi: Array) -> Array:
        """Variance (m,) of that, for rows X with features Phi (m, r)."""
        variances = None if self._whole is None else self._whole.diagonal(X)
        if variances is None:
            return np.zeros(len(X))
        return np.asarray(np.maximum(variances - np.einsum("ij,ij->i", Phi, Phi), 0.0))


# Rows of the feature space: from a Gram matrix, or as they are.
#
# With G = L L', L of shape (n, r), a classifier w = sum_i alpha_i phi(x_i) has the coordinates
# g = L' alpha, and f = L g. The null space of G is dropped: r is the rank of G.

# Eigenvalues below this share of the largest are rounding errors of the Gram matrix; so are rows
# of the feature space below it, which are zero then.
_NULL = 1e-10
# A negative eigenvalue beyond this share of the largest is no rounding error.
_INDEFINITE = 1e-8
# Eigenvectors tell rows whose directions differ by less apart by rounding alone.
_SAME_DIRECTION = 1e-8


@dataclass(frozen=True)
class Design:
    """Rows L (n, r) of the feature space, f = L g, and the way back to expansion coefficients.

    alpha = dual g, so that f(x) = k(x, X) alpha; None where the features are at hand.
    """

    L: Array
    dual: Array | None


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues and eigenvectors of a Gram matrix, for any nugget on its diagonal."""

    eigenvalues: Array
    vectors: Array

    def design(self, nugget: float = 0.0) -> Design:
        """Rows of the feature space of G + nugget I; cost O(n r)."""
        values = self.eigenvalues + nugget
        is_kept = values > _NULL * values.max()
        root, V = np.sqrt(values[is_kept]), self.vectors[:, is_kept]
        longest = np.abs(V * root).max(axis=1, keepdims=True, initial=0.0)
        V = V * (longest > _NULL * root.max(initial=0.0))
        L = np.ascontiguousarray(V * root)
        walls = walls_of(L, np.zeros(len(L), dtype=bool), _SAME_DIRECTION)
        if not walls.are_rows:  # what is the same shall be so to the last digit
            L = L[walls.first[walls.into]] * walls.scale[:, np.newaxis]
        is_zero = ~L.any(axis=1)
        if is_zero.any():  # a direction of their own: else no label of theirs could be right
            return Design(np.column_stack([L, is_zero]), np.column_stack([V / root, is_zero]))
        return Design(L, np.ascontiguousarray(V / root))


def spectrum_of(G: Array) -> Spectrum:
    """Decompose a Gram matrix, O(n^3); where it is indefinite a `DataError` says by how much."""
    values, vectors = np.linalg.eigh(0.5 * (G + G.T))
    largest = max(float(values[-1]), 0.0)
    if values[0] < -_INDEFINITE * max(largest, np.finfo(float).tiny):
        raise DataError(
            f"the Gram matrix is indefinite: its smallest eigenvalue is {values[0]:.3g}, its "
            f"largest {values[-1]:.3g}; a kernel must be positive semi-definite"
        )
    # In descending order: the first coordinates are the principal components of the kernel.
    return Spectrum(np.maximum(values[::-1], 0.0), np.ascontiguousarray(vectors[:, ::-1]))


def design_from_features(Phi: Array) -> Design:
    """Take finite features of shape (n, r) as they are."""
    return Design(np.ascontiguousarray(Phi, dtype=np.float64), None)


# Numbers in one block of new rows against training rows or draws.
_BLOCK_NUMBERS = 4_000_000
# Principal components that together are below this share of the nugget may be taken for a part of
# it, or below this share of the mean variance where there is none.
_LEFT_OUT, _LEAST_LEFT_OUT = 0.01, 1e-6
# Rows whose features are made at a time.
_BLOCK_ROWS = 16384
# Numbers of rows on a disk that are looked at together (64 MiB), and columns at least.
_CELLS, _COLUMNS = 2**23, 8


@dataclass(frozen=True, eq=False)
class StoredInputs:
    """Standardised inputs of rows on a disk, looked at as an array of them would be.

    The last column of ``rows`` is the target. What has a row for each of them is written into
    ``folder``.
    """

    rows: RowSource
    standardizer: Standardizer
    folder: Path

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and inputs."""
        return self.rows.n_rows, self.rows.n_columns - 1

    def __len__(self) -> int:
        return self.rows.n_rows

    def __getitem__(self, chosen: slice | NDArray[np.int64]) -> Array:
        """Read some rows, whose positions ascend."""
        positions = np.arange(len(self))[chosen]
        return self.standardizer.transform(self.rows.take(positions)[:, :-1])

    def each(self, work: Work) -> list[Any]:
        """Let a function look at all rows: see `RowSource.each`."""
        return self.rows.each(
            functools.partial(_standardized, self.standardizer, work), _BLOCK_ROWS
        )

    def kept(self, make: Make, width: int) -> Any:
        """Keep what a function makes of all rows: see `RowSource.keep`."""
        make = functools.partial(_standardized, self.standardizer, make)
        return self.rows.keep(make, width, self.folder)


def _standardized(
    standardizer: Standardizer, work: Work, first: int, blocks: Iterator[Array]
) -> Any:
    return work(first, (standardizer.transform(block[:, :-1]) for block in blocks))


def some_columns(rows: RowSource) -> Iterator[Array]:
    """Read all rows, some columns at a time, but for the last one, the target.

    Without sums of contents, which are of all columns: files are still checked for changes.
    """
    d, width = rows.n_columns - 1, max(_COLUMNS, _CELLS // rows.n_rows)
    plain, ends = replace(rows, checksums=()), [*range(width, d - 1, width), d]
    for first, last in zip([0, *ends], ends, strict=False):
        some = plain.select(rows.names[first:last])
        yield np.concatenate(some.each(_all_of, _BLOCK_ROWS))


def _all_of(_position: int, blocks: Iterator[Array]) -> Array:
    return np.concatenate(list(blocks))


def extremes(rows: RowSource) -> Array:
    """Smallest and largest value of each column but the last one, shape (2, d): one pass."""
    found = np.array(rows.each(_extremes_of, _BLOCK_ROWS))
    return np.stack([found[:, 0].min(axis=0), found[:, 1].max(axis=0)])


def _extremes_of(_position: int, blocks: Iterator[Array]) -> Array:
    each = [(block.min(axis=0)[:-1], block.max(axis=0)[:-1]) for block in blocks]
    lowest, highest = zip(*each, strict=True)
    return np.stack([np.min(lowest, axis=0), np.max(highest, axis=0)])


def each_of(rows: NDArray[Any] | StoredInputs | HeldArrays, work: Work) -> list[Any]:
    """Let a function look at all rows, some at a time; where workers hold them, at parts of them.

    ``work`` takes the position of the first row and blocks of rows.
    """
    if not isinstance(rows, np.ndarray):
        return rows.each(work)
    begins = range(0, len(rows), _BLOCK_ROWS)
    return [work(0, (rows[begin : begin + _BLOCK_ROWS] for begin in begins))]


def _of_features(
    features: Callable[[Array], Array], work: Work, first: int, blocks: Iterator[Array]
) -> Any:
    double = (features(block.astype(np.float64)) for block in blocks)
    return work(first, (Phi.astype(np.float32) for Phi in double))


def _filled(n: int, make: Make, first: int, blocks: Iterator[Array]) -> NDArray[np.float32]:
    """Put the n rows that a function makes into one array."""
    L, begin = np.empty((n, 0), np.float32), 0
    for block in make(first, blocks):
        L = L if begin else np.empty((n, block.shape[1]), np.float32)
        L[begin : begin + len(block)] = block
        begin += len(block)
    return L


class Space(ABC):
    """Rows of training data as vectors, and latent values of new rows given a draw."""

    @abstractmethod
    def design(self) -> Design:
        """Rows of the feature space."""

    X: Array | StoredInputs
    nugget: float

    @abstractmethod
    def each(self, work: Work) -> list[Any]:
        """Let a function look at the rows of the feature space in single precision: `each_of`."""

    def kept(self, make: Make) -> Any:
        """Rows of the feature space in single precision, made anew by a function, as an array."""
        (L,) = self.each(functools.partial(_filled, len(self.X), make))
        return L

    @abstractmethod
    def smooth_rows(self) -> tuple[Array, Array]:
        """Rows (n, r) of fewer columns, and the variance (n,) that each has besides them."""

    @abstractmethod
    def among(self, rows: NDArray[np.int64]) -> Space:
        """The space that some of the training rows alone would have."""

    @abstractmethod
    def coefficients(self, design: Design, g: Array) -> Array:
        """What a draw keeps of the vectors g of shape (..., r): shape (..., n_coefficients)."""

    @abstractmethod
    def latent(self, X: Array, coefficients: Array) -> tuple[Array, Array]:
        """Mean and spread of f at new rows (m, d) given draws (k, n_coefficients).

        The mean (k, m) is that of f(x) given the values at the training rows; the spread
        (m,) the standard deviation of the part of f(x) outside their span, the nugget
        included: the same for every draw, 0 for finite features.
        """

    @abstractmethod
    def outside(self, X: Array) -> Array:
        """Covariance of the parts of f outside the span at new rows, nugget aside: (m, m)."""


@dataclass(frozen=True)
class KernelSpace(Space):
    """The span of the training rows under a covariance, with a nugget on the diagonal.

    A draw keeps the dual coefficients alpha of f = (G + nugget I) alpha. X is a Gram matrix
    where the covariance is precomputed. The nugget is the variance of feature noise: overlap of
    the classes, as against wrong labels. ``plain`` is the same without one, whose decomposition
    this one uses.
    """

    covariance: Covariance
    X: Array
    nugget: float
    plain: KernelSpace | None = field(default=None, repr=False, compare=False)

    @cached_property
    def spectrum(self) -> Spectrum:
        """Of the Gram matrix, without the nugget; made when it is asked for, once for all."""
        if self.plain is not None:
            return self.plain.spectrum
        return spectrum_of(self.covariance.gram(self.X))

    @cached_property
    def dual(self) -> Array:
        """L (L'L)^-1: its products give the inverse of G + nugget I."""
        dual = self.design().dual
        assert dual is not None
        return dual

    @cached_property
    def _common_variance(self) -> float | None:
        """What rows of a Gram matrix have on its diagonal, new ones too; None if they differ."""
        diagonal = self.X.diagonal() / self.covariance.scale
        return float(diagonal[0]) if np.ptp(diagonal) <= _INDEFINITE * diagonal[0] else None

    def with_nugget(self, nugget: float) -> KernelSpace:
        """The same covariance with another nugget; the decomposition is shared."""
        return KernelSpace(self.covariance, self.X, nugget, self.plain or self)

    def design(self) -> Design:
        """Rows L with L L' = G + nugget I."""
        return self.spectrum.design(self.nugget)

    def each(self, work: Work) -> list[Any]:
        """The same, rounded."""
        return each_of(self.design().L.astype(np.float32), work)

    def smooth_rows(self) -> tuple[Array, Array]:
        """Principal components of the Gram matrix; the nugget and the others are left out."""
        values = self.spectrum.eigenvalues
        left_out = np.cumsum(values[::-1])[::-1] / len(values)  # by the k-th and those after it
        is_kept = left_out > max(_LEFT_OUT * self.nugget, _LEAST_LEFT_OUT * values.mean())
        V = self.spectrum.vectors
        L = np.ascontiguousarray(V[:, is_kept] * np.sqrt(values[is_kept]))
        return L, self.nugget + V[:, ~is_kept] ** 2 @ values[~is_kept]

    def among(self, rows: NDArray[np.int64]) -> KernelSpace:
        """That of the smaller Gram matrix."""
        X = self.X[np.ix_(rows, rows)] if self.covariance.kernel is None else self.X[rows]
        return KernelSpace(self.covariance, X, self.nugget)

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
            if variance is None and self._common_variance is not None:
                variance = np.full(len(block), self._common_variance)
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
    """Finite features: a draw keeps one coefficient a feature.

    ``features`` maps rows (m, d) to features (m, r); X holds the training rows. A nugget, noise of
    each row besides, and what the features lack are for an approximation that integrates them out:
    `design` has neither.
    """

    features: FiniteFeatures
    X: Array | StoredInputs
    nugget: float = 0.0

    def design(self) -> Design:
        """The features of the training rows."""
        return design_from_features(self.features(self.X[:]))

    def each(self, work: Work) -> list[Any]:
        """The features, rounded."""
        return each_of(self.X, functools.partial(_of_features, self.features, work))

    def kept(self, make: Make) -> Any:
        """Where the inputs are: in memory, in a file, or on the workers that share them."""
        if isinstance(self.X, StoredInputs):
            width = self.features(np.zeros((1, self.X.shape[1]))).shape[1]
            return self.X.kept(functools.partial(_of_features, self.features, make), width)
        return super().kept(make)

    def smooth_rows(self) -> tuple[Array, Array]:
        """The features, and besides them the nugget and what they lack."""
        L = self.design().L
        return L, self.nugget + self.features.residual(self.X[:].astype(np.float64), L)

    def among(self, rows: NDArray[np.int64]) -> FeatureSpace:
        """The same features of fewer rows."""
        return replace(self, X=self.X[rows].astype(np.float64))

    def coefficients(self, design: Design, g: Array) -> Array:
        """The coordinates themselves."""
        return g

    def latent(self, X: Array, coefficients: Array) -> tuple[Array, Array]:
        """phi(x)'g, and the spread of the nugget and of what the features lack."""
        n_rows = max(1, _BLOCK_NUMBERS // max(coefficients.shape[1], len(coefficients)))
        means, spreads = [], []
        for begin in range(0, len(X), n_rows):
            block = X[begin : begin + n_rows]
            # Where models of other ranks are averaged too, rows are filled up with zeros; old files
            # have no coefficient for rows that are zero.
            Phi = self.features(block)[:, : coefficients.shape[1]]
            means.append(coefficients[:, : Phi.shape[1]] @ Phi.T)
            spreads.append(np.sqrt(self.nugget + self.features.residual(block, Phi)))
        return np.concatenate(means, axis=1), np.concatenate(spreads)

    def outside(self, X: Array) -> Array:
        """What features lack, if that is part of f."""
        return self.features.outside(X)


# What the arguments of the estimator say of the space.

AUTO, LEARN, MEDIAN, PRECOMPUTED = "auto", "learn", "median", "precomputed"
# Learned nuggets, of a row's mean variance.
_NUGGETS = (0.0, 0.1, 0.4, 1.5)
#: With one matrix of n x n numbers for the Gram matrix and a few more for its decomposition.
LARGEST_EXACT = 5000


@dataclass(frozen=True)
class SpaceArguments:
    """The arguments of the estimator that decide the feature space."""

    kernel: Any
    lengthscale: Any
    nugget: Any
    rank: int | None
    approximation: str
    fit_intercept: bool
    is_propagated: bool = False  # by which a nugget needs no features of its own

    @property
    def is_precomputed(self) -> bool:
        """Whether Gram matrices take the place of inputs."""
        return isinstance(self.kernel, str) and self.kernel == PRECOMPUTED

    @property
    def is_callable(self) -> bool:
        """Whether the kernel is a function of the user's, with scales of its own."""
        return not isinstance(self.kernel, str | Kernel)

    @property
    def is_linear(self) -> bool:
        """Whether the kernel has as many features as inputs, and no nugget makes it full."""
        is_linear = self.kernel == "linear" or isinstance(self.kernel, Linear)
        return is_linear and (self.is_propagated or self.nugget == LEARN or self.nugget == 0.0)

    @property
    def is_finite(self) -> bool:
        """Whether features are as many as a rank, or the inputs of a linear kernel, says."""
        return self.rank is not None or self.is_linear

    @property
    def nuggets(self) -> tuple[float, ...]:
        """Those that are compared."""
        return _NUGGETS if self.nugget == LEARN else (float(self.nugget),)

    def refuse_many(self, n: int) -> None:
        """Raise a `DataError` for more rows than an n x n matrix should have."""
        if n > LARGEST_EXACT and not self.is_finite:
            raise DataError(
                f"{n} rows need matrices of {8e-9 * n**2:.1f} GB each; set rank=512 (or "
                "another number of features), or kernel='linear'"
            )

    @property
    def may_have_rank(self) -> bool:
        """Whether the kernel has features, as many as a rank says."""
        is_named = isinstance(self.kernel, str) and self.kernel not in (AUTO, PRECOMPUTED)
        return is_named or isinstance(self.kernel, Kernel)
