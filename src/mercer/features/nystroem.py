"""Nystroem features: the covariance, projected on the span of a few rows, the landmarks.

**Map.** phi(x) = R' k(Z, x) with R R' = k(Z, Z)^-1 on the eigenvectors that are kept, so that
phi(x)'phi(x') = k(x, Z) k(Z, Z)^+ k(Z, x'): exact where x or x' is a landmark, and never above
k(x, x) on the diagonal.

**Symbols.** Z landmarks (m, d); R root_inverse (m, r).

**Cost.** O(m^3) once, then O(n m (d + r)) for n rows.

References: Williams & Seeger, Using the Nystroem method to speed up kernel machines (2001);
Arthur & Vassilvitskii, k-means++: the advantages of careful seeding (2007).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from mercer.errors import NumericalError, UsageError
from mercer.features.base import Array, FeatureMap, Features, stored_array
from mercer.kernels.base import Kernel

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
        return {
            "theta": self.theta,
            "landmarks": self.landmarks,
            "root_inverse": self.root_inverse,
        }

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
        return X.copy()
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
