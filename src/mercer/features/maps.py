"""Finite feature maps, block by block: what one can do, random Fourier features, Nystroem's."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import eigh

from mercer.errors import NumericalError, UsageError
from mercer.kernels.base import Kernel
from mercer.kernels.stationary import MaternARD, SquaredExponentialARD

Array = NDArray[np.float64]
Features = NDArray[np.floating[Any]]

# Two megabytes of doubles: a block and what computes it stay in the cache.
_BLOCK_ENTRIES = 2**18


class FeatureMap(ABC):
    """A map of rows to finitely many features, whose products are (nearly) a covariance.

    Implementations are frozen dataclasses of arrays; once made, they draw nothing.
    """

    @property
    @abstractmethod
    def n_inputs(self) -> int:
        """Number d of columns that a row has."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number m of features of a row."""

    @abstractmethod
    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Named arrays that hold the map in a file; ``from_arrays`` of the class reads them."""

    @abstractmethod
    def _fill(self, X: Array, out: Features) -> None:
        """Write the features of one block of rows."""

    def features(
        self, X: Array, out: Features | None = None, dtype: DTypeLike = np.float64
    ) -> Features:
        """Map the rows of X (n, d) to (n, m), into ``out`` where given.

        Beyond the result, memory is a few blocks of two megabytes, however many rows there are.
        Single precision is that of the result: what precedes it is computed in double precision
        wherever digits could be lost.
        """
        if X.ndim != 2 or X.shape[1] != self.n_inputs:
            raise UsageError(f"rows of {self.n_inputs} columns are wanted; got shape {X.shape}")
        if out is None:
            out = np.empty((len(X), self.n_features), dtype)
        if out.shape != (len(X), self.n_features) or out.dtype not in (np.float32, np.float64):
            raise UsageError(
                f"features are float32 or float64 of shape {(len(X), self.n_features)}; "
                f"got {out.dtype} of shape {out.shape}"
            )
        n_rows = max(_BLOCK_ENTRIES // max(self.n_features, self.n_inputs), 1)
        for begin in range(0, len(X), n_rows):
            rows = slice(begin, begin + n_rows)
            self._fill(X[rows], out[rows])
        return out


def stored_array(arrays: Mapping[str, NDArray[Any]], name: str, ndim: int) -> Array:
    """Return an array of a file, once it is known to be finite doubles of ``ndim`` axes.

    A KeyError or ValueError where it is not; the reader of the file names it.
    """
    values = arrays[name]
    is_right = values.dtype == np.float64 and values.ndim == ndim and np.isfinite(values).all()
    if not is_right:
        raise ValueError(f"{name} of a feature map: wrong shape, type or values")
    return values


# Random Fourier features of the stationary kernels.


@dataclass(frozen=True, eq=False)
class FourierMap(FeatureMap):
    """Cosines and sines of the phases x'omega, scaled to the variance v0.

    A common offset of all rows turns the features, and costs as many digits of the phase as it has
    more than the differences: centre the inputs. For float32, whole turns are taken off the phase
    in double precision, and cosines and sines of single precision are right to 4e-7, in a tenth of
    the time or less.
    """

    frequencies: Array  # (d, F), in radians per unit of the input
    log_variance: float  # log v0

    @property
    def n_inputs(self) -> int:
        """Length of a frequency."""
        return int(self.frequencies.shape[0])

    @property
    def n_features(self) -> int:
        """A cosine and a sine for each frequency."""
        return 2 * int(self.frequencies.shape[1])

    def _fill(self, X: Array, out: Features) -> None:
        n_frequencies = self.frequencies.shape[1]
        phase: Features = X @ self.frequencies
        if out.dtype == np.float32:
            phase *= 0.5 / np.pi
            phase -= np.rint(phase)
            phase = phase.astype(np.float32)
            phase *= np.float32(2.0 * np.pi)
        np.cos(phase, out=out[:, :n_frequencies])
        np.sin(phase, out=out[:, n_frequencies:])
        out *= math.exp(0.5 * self.log_variance) / math.sqrt(n_frequencies)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Frequencies and variance: the kernel is not needed any more."""
        return {"frequencies": self.frequencies, "log_variance": np.array(self.log_variance)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> FourierMap:
        """Put together what `to_arrays` took apart; a KeyError or ValueError if it does not fit."""
        frequencies = stored_array(arrays, "frequencies", 2)
        if frequencies.size == 0:
            raise ValueError("a Fourier map needs frequencies")
        return cls(frequencies, float(stored_array(arrays, "log_variance", 0)))


def draw_fourier(
    rng: np.random.Generator, kernel: Kernel, theta: Array, n_inputs: int, n_frequencies: int
) -> FourierMap:
    """Draw F frequencies, half the number of features, from the spectral density of a kernel.

    The kernel is squared exponential or Matérn, with theta = log(v0, w_1, .., w_d) and d inputs.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = SquaredExponentialARD()
    >>> phi = draw_fourier(np.random.default_rng(0), kernel, np.zeros(3), 2, 100)
    >>> phi.features(np.ones((5, 2)), dtype=np.float32).shape
    (5, 200)
    """
    if not isinstance(kernel, (SquaredExponentialARD, MaternARD)):
        raise UsageError(f"{kernel!r} has no Fourier features: it is not stationary")
    if n_frequencies < 1 or n_inputs < 1 or len(theta) != kernel.n_parameters(n_inputs):
        raise UsageError(
            f"{n_frequencies} frequencies of {n_inputs} inputs with {len(theta)} parameters"
        )
    frequencies = rng.standard_normal((n_inputs, n_frequencies))
    if isinstance(kernel, MaternARD):
        frequencies /= _t_divisors(rng, 2.0 * kernel.smoothness, n_frequencies)
    frequencies *= np.exp(0.5 * theta[1:])[:, np.newaxis]
    return FourierMap(frequencies, float(theta[0]))


def _t_divisors(rng: np.random.Generator, degrees: float, n: int) -> Array:
    """Draws of sqrt(chi2_degrees / degrees): a normal vector over one of them is multivariate t."""
    return np.asarray(np.sqrt(rng.chisquare(degrees, n) / degrees))


# Nystroem features: the covariance, projected on the span of a few rows, the landmarks.

METHODS = ("uniform", "kmeans++")

# Relative to the largest eigenvalue of k(Z, Z). Rounding leaves m 10^-16 or so of noise, and
# what is dropped is m 10^-10 of the largest variance at most.
_CUT_OFF = 1e-10

# Rows among which "kmeans++" draws: bounds its time (seconds for 512 landmarks) and its memory.
_POOL = 20_000
_POOL_PER_LANDMARK = 10


@dataclass(frozen=True, eq=False)
class NystroemMap(FeatureMap):
    """phi(x) = root_inverse' k(Z, x)."""

    kernel: Kernel
    theta: Array  # (p,), log parameters of the kernel
    landmarks: Array  # (m, d)
    #: (m, r), eigenvectors of k(Z, Z) over the roots of their eigenvalues, the largest first
    root_inverse: Array

    @property
    def n_inputs(self) -> int:
        """Columns of a landmark."""
        return int(self.landmarks.shape[1])

    @property
    def n_features(self) -> int:
        """Eigenvectors that are kept."""
        return int(self.root_inverse.shape[1])

    def _fill(self, X: Array, out: Features) -> None:
        # In double precision also for float32: entries of root_inverse reach 10^5 and cancel.
        out[:] = self.kernel.cross_gram(self.theta, X, self.landmarks) @ self.root_inverse

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All but the kernel, which is stored by its name."""
        return {"theta": self.theta, "landmarks": self.landmarks, "root_inverse": self.root_inverse}

    @classmethod
    def from_arrays(cls, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> NystroemMap:
        """Put together what `to_arrays` took apart; a KeyError or ValueError if it does not fit."""
        theta = stored_array(arrays, "theta", 1)
        landmarks = stored_array(arrays, "landmarks", 2)
        root_inverse = stored_array(arrays, "root_inverse", 2)
        n_parameters = kernel.n_parameters(landmarks.shape[1])
        if len(theta) != n_parameters or len(root_inverse) != len(landmarks):
            raise ValueError("the arrays of a Nystroem map do not fit together")
        if landmarks.size == 0 or not 1 <= root_inverse.shape[1] <= len(landmarks):
            raise ValueError("a Nystroem map needs landmarks, and at most one feature for each")
        return cls(kernel, theta, landmarks, root_inverse)


def fit_nystroem(
    rng: np.random.Generator,
    X: Array,
    kernel: Kernel,
    theta: Array,
    n_landmarks: int,
    method: str = "uniform",
) -> NystroemMap:
    """Draw landmarks among the rows of X and return their map.

    Parameters and errors as `choose_landmarks` and `nystroem_map`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels.names import kernel_named
    >>> X = np.linspace(-2.0, 2.0, 50)[:, np.newaxis]
    >>> phi = fit_nystroem(np.random.default_rng(0), X, kernel_named("rbf"), np.zeros(2), 10)
    >>> phi.features(X).shape
    (50, 10)
    """
    return nystroem_map(kernel, theta, choose_landmarks(rng, X, kernel, theta, n_landmarks, method))


def nystroem_map(kernel: Kernel, theta: Array, landmarks: Array) -> NystroemMap:
    """Return the map of given landmarks (m, d), one of which at least has a variance above 0."""
    root_inverse = _inverse_root(kernel.gram(theta, landmarks))
    return NystroemMap(kernel, theta, landmarks, root_inverse)


def _inverse_root(K: Array) -> Array:
    """R of shape (m, r) with R R' = K^-1 on the eigenvectors above the cut-off; K is overwritten.

    In the order of falling eigenvalues.
    """
    try:
        values, vectors = eigh(K, overwrite_a=True)
    except ValueError as error:
        raise NumericalError(
            f"covariances of the landmarks have no eigenvalues: {error}"
        ) from error
    if not values[-1] > 0.0:
        raise NumericalError("the covariances of all landmarks are zero: there is no feature")
    kept = np.flatnonzero(values > _CUT_OFF * values[-1])[::-1]
    return np.ascontiguousarray(vectors[:, kept] / np.sqrt(values[kept]))


def choose_landmarks(
    rng: np.random.Generator,
    X: Array,
    kernel: Kernel,
    theta: Array,
    n_landmarks: int,
    method: str = "uniform",
) -> Array:
    """Draw ``n_landmarks`` distinct rows of X (n, d), in their order; all where there are no more.

    "kmeans++" draws each landmark with probability proportional to its squared distance in the
    feature space, k(x, x) - 2 k(x, z) + k(z, z), from the nearest one before it, among at most 20
    000 rows, or ten for each landmark, drawn uniformly. It stops early where every one of them
    repeats a landmark.
    """
    if n_landmarks < 1 or len(X) == 0:
        raise UsageError(f"at least one landmark and one row are needed; got {n_landmarks}")
    if method not in METHODS:
        raise UsageError(f"no method {method!r}; there is: {', '.join(METHODS)}")
    if n_landmarks >= len(X):
        return np.array(X[:])
    if method == "uniform":
        chosen = rng.choice(len(X), n_landmarks, replace=False)
    else:
        size = max(_POOL, _POOL_PER_LANDMARK * n_landmarks)
        pool = np.arange(len(X)) if size >= len(X) else rng.choice(len(X), size, replace=False)
        chosen = pool[_seed(rng, X[pool], kernel, theta, n_landmarks)]
    return np.asarray(X[np.sort(chosen)])


def _seed(
    rng: np.random.Generator, X: Array, kernel: Kernel, theta: Array, n_landmarks: int
) -> NDArray[np.int64]:
    """Indices of k-means++ in the feature space of the kernel."""
    variance = kernel.diagonal(theta, X)
    nearest = np.full(len(X), np.inf)
    chosen = [int(rng.integers(len(X)))]
    while True:
        last = chosen[-1]
        products = kernel.cross_gram(theta, X, X[last : last + 1])[:, 0]
        distance = np.maximum(variance - 2.0 * products + variance[last], 0.0)
        np.minimum(nearest, distance, out=nearest)
        nearest[last] = 0.0  # also where rounding says otherwise: no row is drawn twice
        largest = nearest.max()
        if len(chosen) == n_landmarks or largest == 0.0:
            return np.array(chosen)
        total = np.cumsum(nearest / largest)
        place = np.searchsorted(total, rng.random() * total[-1], side="right")
        chosen.append(min(int(place), len(X) - 1))
