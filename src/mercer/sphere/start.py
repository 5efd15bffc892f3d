"""Where a chain starts: anywhere if every label may be wrong, else where no certain row is."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from mercer.errors import DataError, RowsError
from mercer.sphere.model import SphereModel

__all__ = ["REMEDY", "PriorStart", "SeparatingStart", "make_start", "separating_point"]

Array = NDArray[np.float64]

# Cosines below this are rounding: equal inputs with different labels would pass for separated.
_SMALLEST_COSINE = 1e-10

REMEDY = "with noise_rate=0 every label must be right; use noise_rate > 0"


@dataclass(frozen=True)
class PriorStart:
    """A draw from the prior."""

    rank: int

    def __call__(self, rng: np.random.Generator) -> Array:
        """Draw g ~ N(0, I_r)."""
        return rng.standard_normal(self.rank)


@dataclass(frozen=True)
class SeparatingStart:
    """A direction that is right where it must be, with the length of a draw from the prior."""

    direction: Array

    def __call__(self, rng: np.random.Generator) -> Array:
        """Draw the length."""
        length = np.sqrt(rng.chisquare(len(self.direction)))
        return np.asarray(self.direction * length)


def make_start(model: SphereModel) -> PriorStart | SeparatingStart:
    """Choose the start that the costs of the model ask for.

    Raises
    ------
    DataError
        If some rows must be right and no classifier is right on all of them (trap K3).
    """
    is_certain = model.noise.must_be_right
    if not is_certain.any():
        return PriorStart(model.rank)
    return SeparatingStart(separating_point(model.L[is_certain], np.flatnonzero(is_certain)))


def separating_point(L: Array, rows: NDArray[np.int64]) -> Array:
    """Find u with |u| = 1 and L u > 0, by least squares or a linear program.

    Parameters
    ----------
    L : ndarray of shape (m, r)
        Rows, labels multiplied in.
    rows : ndarray of shape (m,)
        Their positions in the data, for the message.
    """
    lengths = np.linalg.norm(L, axis=1)
    is_zero = lengths == 0.0
    if is_zero.any():
        row = int(rows[is_zero.argmax()])
        raise RowsError([row], f" is zero in the feature space, so always wrong: {REMEDY}")
    unit = L / lengths[:, np.newaxis]
    g = np.linalg.lstsq(unit, np.ones(len(L)), rcond=None)[0]
    if not _separates(g, unit):
        result = linprog(
            np.zeros(L.shape[1]), A_ub=-unit, b_ub=-np.ones(len(L)), bounds=(None, None)
        )
        if not result.success or not _separates(result.x, unit):
            raise _inseparable(unit, rows)
        g = result.x
    return np.asarray(g / np.linalg.norm(g))


def _separates(g: Array, unit: Array) -> bool:
    return bool((unit @ g > _SMALLEST_COSINE * np.linalg.norm(g)).all())


def _inseparable(unit: Array, rows: NDArray[np.int64]) -> DataError:
    """Name two rows that are opposite, labels multiplied in, if there are any."""
    order = np.argsort(np.abs(unit @ np.cos(np.arange(unit.shape[1]))))
    for a, b in itertools.pairwise(order):
        if np.allclose(unit[a], -unit[b], rtol=0.0, atol=1e-9):
            first, second = sorted((int(rows[a]), int(rows[b])))
            return RowsError(
                [first, second],
                f" contradict each other, as equal inputs with different labels do: {REMEDY}",
            )
    return DataError(f"no classifier separates the classes: {REMEDY}")
