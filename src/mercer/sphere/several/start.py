"""Where a chain of several classes starts: anywhere, or where no certain row is wrong."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array

from mercer.errors import DataError, RowsError
from mercer.likelihoods.label_noise import Confusion
from mercer.sphere.several.compiled import perceptron
from mercer.sphere.several.model import SeveralModel
from mercer.sphere.start import REMEDY

__all__ = ["PriorStart", "SeparatingStart", "make_several_start", "separating_functions"]

Array = NDArray[np.float64]

# Multiplications and epochs that the perceptron may spend before the linear program is asked.
_PERCEPTRON_WORK, _MOST_EPOCHS = 2e8, 1000
# Leads below this, for rows and functions of unit length, are rounding.
_SMALLEST_LEAD = 1e-10


@dataclass(frozen=True)
class PriorStart:
    """A draw from the prior."""

    n_classes: int
    rank: int

    def __call__(self, rng: np.random.Generator) -> Array:
        """Draw g_c ~ N(0, I_r) for each class."""
        return rng.standard_normal((self.n_classes, self.rank))


@dataclass(frozen=True)
class SeparatingStart:
    """Functions that are right where they must be, with the length of a draw from the prior."""

    functions: Array

    def __call__(self, rng: np.random.Generator) -> Array:
        """Draw the length."""
        length = np.sqrt(rng.chisquare(self.functions.size))
        return np.asarray(self.functions * (length / np.linalg.norm(self.functions)))


def make_several_start(model: SeveralModel) -> PriorStart | SeparatingStart:
    """Choose the start that the costs of the model ask for.

    Raises
    ------
    DataError
        If some rows must be right and no functions are right on all of them (trap K3).
    """
    rows = np.flatnonzero(model.must_be_right)
    if len(rows) == 0:
        return PriorStart(model.n_classes, model.rank)
    try:
        functions = separating_functions(model.L[rows], model.labels[rows], model.n_classes, rows)
    except DataError:
        other = _one_class_for_all(model, rows)
        if other is None:
            raise
        functions = other
    return SeparatingStart(functions)


def _one_class_for_all(model: SeveralModel, rows: NDArray[np.int64]) -> Array | None:
    """Functions by which all rows belong to one class that may be recorded as any, if it can be."""
    if not isinstance(model.noise, Confusion):
        return None
    for c in np.flatnonzero((model.noise.matrix > 0.0).all(axis=1)):
        try:
            labels = np.full(len(rows), c)
            return separating_functions(model.L[rows], labels, model.n_classes, rows)
        except DataError:
            continue
    return None


def separating_functions(
    L: Array, labels: NDArray[np.int64], n_classes: int, rows: NDArray[np.int64]
) -> Array:
    """Find g (C, r) whose largest function is that of the label on each row of L.

    By least squares, which is enough where the rank is that of the rows; else by a perceptron, a
    while; else by a linear program, which decides.

    Parameters
    ----------
    L : ndarray of shape (m, r)
    labels : ndarray of shape (m,)
    n_classes : int
    rows : ndarray of shape (m,)
        Positions of the rows in the data, for the message.
    """
    lengths = np.linalg.norm(L, axis=1)
    if (lengths == 0.0).any():
        raise _inseparable(L, labels, rows)
    unit = np.ascontiguousarray(L / lengths[:, np.newaxis])
    targets = (labels[:, np.newaxis] == np.arange(n_classes)).astype(np.float64)
    g = np.ascontiguousarray(np.linalg.lstsq(unit, targets, rcond=None)[0].T)
    if _separates(g, unit, labels):
        return g
    n_epochs = min(_MOST_EPOCHS, 1 + int(_PERCEPTRON_WORK / (unit.size * n_classes)))
    if perceptron(unit, labels, g, n_epochs) and _separates(g, unit, labels):
        return g
    solution = _linear_program(unit, labels, n_classes)
    if solution is None or not _separates(solution, unit, labels):
        raise _inseparable(L, labels, rows)
    return solution


def _separates(g: Array, L: Array, labels: NDArray[np.int64]) -> bool:
    f = g @ L.T
    own = f[labels, np.arange(len(L))]
    f[labels, np.arange(len(L))] = -np.inf
    lengths = np.linalg.norm(g, axis=1).max() * np.linalg.norm(L, axis=1)
    return bool((own - f.max(axis=0) > _SMALLEST_LEAD * lengths).all())


def _linear_program(L: Array, labels: NDArray[np.int64], n_classes: int) -> Array | None:
    """Solve f_y - f_c >= 1 for all rows and all classes c other than the label y."""
    r = L.shape[1]
    row, other = np.nonzero(labels[:, np.newaxis] != np.arange(n_classes))
    values = np.concatenate([-L[row], L[row]], axis=1)  # -f_y + f_c <= -1
    columns = np.concatenate(
        [labels[row, np.newaxis] * r + np.arange(r), other[:, np.newaxis] * r + np.arange(r)],
        axis=1,
    )
    ends = 2 * r * np.arange(len(row) + 1)
    A = csr_array((values.ravel(), columns.ravel(), ends), shape=(len(row), n_classes * r))
    result = linprog(np.zeros(n_classes * r), A_ub=A, b_ub=-np.ones(len(row)), bounds=(None, None))
    return np.asarray(result.x).reshape(n_classes, r) if result.success else None


def _inseparable(L: Array, labels: NDArray[np.int64], rows: NDArray[np.int64]) -> DataError:
    """Name two rows that are equal and have different labels, if there are any."""
    scale = np.abs(L).max()
    order = np.lexsort((labels, L @ np.cos(np.arange(L.shape[1]))))
    for a, b in itertools.pairwise(order):
        is_equal = np.allclose(L[a], L[b], rtol=0.0, atol=1e-9 * scale)
        if is_equal and labels[a] != labels[b]:
            first, second = sorted((int(rows[a]), int(rows[b])))
            return RowsError([first, second], f" have equal inputs and different labels: {REMEDY}")
    return DataError(f"no classifier separates the classes: {REMEDY}")
