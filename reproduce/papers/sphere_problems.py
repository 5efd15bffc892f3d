"""The paper's toy problems, as far as it says what they are, and two more for its claims.

Rows on the sphere (figures 1 and 4): longitude pi Beta(5, 5), latitude 2 pi Beta(0.1, 0.1), classes
of the classifier at longitude pi/2 and latitude pi, then labels turned over at some rate. A point
at (longitude, latitude) is (sin lon cos lat, sin lon sin lat, cos lon).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer

__all__ = [
    "PROBLEMS",
    "TRUE_CLASSIFIER",
    "Split",
    "on_sphere",
    "plane_rows",
    "sphere_rows",
    "split_of",
]

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: At longitude pi/2 and latitude pi.
TRUE_CLASSIFIER: Array = np.array([-1.0, 0.0, 0.0])
_LOWER, _UPPER = np.array([-2.5, -2.5]), np.array([1.0, 3.5])


@dataclass(frozen=True)
class Split:
    """Training rows with labels of which some are wrong, and test rows with true labels."""

    X: Array
    labels: IntArray
    X_test: Array
    labels_test: IntArray


def on_sphere(longitude: Array, latitude: Array) -> Array:
    """Points of R^3 at angles in radians: shape (..., 3)."""
    around = np.sin(longitude)
    parts = [around * np.cos(latitude), around * np.sin(latitude), np.cos(longitude)]
    return np.stack(np.broadcast_arrays(*parts), axis=-1)


def sphere_rows(
    rng: np.random.Generator, n: int, rate: float, classifier: Array = TRUE_CLASSIFIER
) -> tuple[Array, IntArray]:
    """Rows (n, 3) of length 1, and labels of which a share of about ``rate`` is wrong."""
    X = on_sphere(np.pi * rng.beta(5.0, 5.0, n), 2.0 * np.pi * rng.beta(0.1, 0.1, n))
    labels = (X @ classifier > 0.0).astype(np.int64)
    return X, turned(rng, labels, rate)


def plane_rows(rng: np.random.Generator, n: int) -> tuple[Array, IntArray]:
    """Rows (n, 2), uniform on a rectangle, and their classes on either side of a sine wave.

    The rectangle is about that of the axes of figure 3; its rows are not published.
    """
    X = rng.uniform(_LOWER, _UPPER, (n, 2))
    return X, (X[:, 0] + 0.75 + 0.8 * np.sin(1.5 * X[:, 1]) > 0.0).astype(np.int64)


def breast_cancer_rows(rng: np.random.Generator, n: int) -> tuple[Array, IntArray]:
    """n of the 569 rows (n, 30), in random order, standardised."""
    X, y = load_breast_cancer(return_X_y=True)
    chosen = rng.permutation(len(y))[:n]
    X = X[chosen]
    return (X - X.mean(axis=0)) / X.std(axis=0), y[chosen].astype(np.int64)


#: Rows of a generator and a number of rows.
PROBLEMS: Mapping[str, Callable[[np.random.Generator, int], tuple[Array, IntArray]]] = {
    "plane": plane_rows,
    "breast cancer": breast_cancer_rows,
}


def split_of(problem: str, seed: int, n_train: int, n_test: int, rate: float) -> Split:
    """Rows of one of `PROBLEMS`; training labels are turned over at ``rate``."""
    rng = np.random.default_rng(seed)
    X, labels = PROBLEMS[problem](rng, n_train + n_test)
    noisy = turned(rng, labels[:n_train], rate)
    return Split(X[:n_train], noisy, X[n_train:], labels[n_train:])


def turned(rng: np.random.Generator, labels: IntArray, rate: float) -> IntArray:
    """Labels 0 or 1, each turned over with probability ``rate``."""
    return np.where(rng.random(len(labels)) < rate, 1 - labels, labels)
