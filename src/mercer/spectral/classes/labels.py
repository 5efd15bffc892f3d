"""Classes as numbers: the order in which they are told apart.

**Sticks.** C classes are told apart by C - 1 functions f_1, .., f_{C-1} in order: is it the first
class, else is it the second, and so on:

    p(class k | x) = s(f_k(x)) prod_{l < k} (1 - s(f_l(x))),        s(f) = 1 / (1 + e^-f)

and the last class is what is left. Given the functions the likelihood is a product of logistic
ones, the l-th over the rows of the classes l, l + 1, .. only: with Polya-Gamma variables all
coefficients can be integrated out together, which those of a softmax cannot. Two classes are the
logistic model.

The most frequent class comes first: the rest has the fewest rows, and the rare classes, at the end,
are compared with each other. Of two classes the function is that of the second label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ClassCodes", "class_codes", "signs_of"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClassCodes:
    """Label -> place in the order of the sticks.

    Attributes
    ----------
    values : ndarray of shape (C,)
        The labels as numbers, ascending.
    order : ndarray of shape (C,), int
        Positions among ``values``, in the order in which classes are told apart.
    """

    values: Array
    order: NDArray[np.int64]

    def transform(self, y: Array) -> Array:
        """Return the place of each label, as float."""
        place = np.empty(len(self.order))
        place[self.order] = np.arange(len(self.order))
        coded: Array = place[np.searchsorted(self.values, y)]
        return coded


def class_codes(values: Array, counts: NDArray[np.int64]) -> ClassCodes:
    """Put classes in order, given how many rows each has."""
    if len(values) == 2:
        return ClassCodes(values, np.array([1, 0]))
    return ClassCodes(values, np.argsort(-counts, kind="stable"))


def signs_of(codes: Array, n_functions: int) -> Array:
    """1 or -1: whether a row belongs to the class that a function tells; 0 if it says nothing.

    Shape (K, n), from places of classes (n,).
    """
    k = np.arange(n_functions)[:, np.newaxis]
    return np.where(codes == k, 1.0, np.where(codes > k, -1.0, 0.0))
