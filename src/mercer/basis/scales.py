"""Scales of inputs and target, and how a stream learns them from its first rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.basis.arrays import Array
from mercer.errors import MercerWarning, UsageError
from mercer.estimation.standardize import Standardizer, fit_standardizer, identity
from mercer.estimation.target_scale import TargetScale, scale_target

__all__ = ["GivenScales", "Scales", "leaving_columns"]

# A column that goes further than this from its centre, in scales, is pointed out.
_FAR = 10.0


@dataclass(frozen=True, eq=False)
class Scales:
    """How a row is standardised."""

    standardizer: Standardizer
    target: TargetScale


@dataclass(frozen=True, eq=False)
class GivenScales:
    """What the user said of the scales, and how the rest is learned.

    Attributes
    ----------
    method : str or bool
        Of `mercer.estimation.standardize`.
    input_scale : ndarray of shape (d,) or () or None
        Standard deviations of the inputs, known beforehand.
    target : TargetScale or None
    is_robust : bool
        The target's scale is learned without what lies beyond ten interquartile ranges.
    """

    method: Any
    input_scale: NDArray[np.float64] | None
    target: TargetScale | None
    is_robust: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether no row is needed."""
        return self.target is not None and (self.input_scale is not None or self.method is False)

    def check_width(self, d: int) -> None:
        """Refuse scales of another number of inputs than d.

        Raises
        ------
        UsageError
        """
        if self.input_scale is not None and self.input_scale.shape not in ((), (d,)):
            raise UsageError(
                f"input_scale must be a number or one for each of {d} inputs; got shape "
                f"{self.input_scale.shape}"
            )

    def of_table(self, X: Array, y: Array, names: tuple[str, ...]) -> Scales:
        """Learn what is not given from all rows (n, d) of a table."""
        standardizer = self._given(X.shape[1]) or fit_standardizer(X, self.method, names)
        return Scales(standardizer, self.target or scale_target(self._regular(y)))

    def of_first_rows(self, X: Array, y: Array, names: tuple[str, ...]) -> Scales:
        """Learn from the first rows of a stream: a column that was constant so far may change."""
        d = X.shape[1]
        standardizer, target = self._given(d), self.target
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MercerWarning)
            if standardizer is None:
                learned = fit_standardizer(X, self.method, names) if len(X) else identity(d)
                scale = np.where(learned.scale == 0.0, 1.0, learned.scale)
                standardizer = replace(learned, scale=scale)
            if target is None:
                target = scale_target(self._regular(y)) if len(y) else TargetScale(0.0, 1.0)
        return Scales(standardizer, target)

    def _regular(self, y: Array) -> Array:
        """Leave out targets beyond ten interquartile ranges from the median, if some differ."""
        lower, median, upper = np.percentile(y, [25.0, 50.0, 75.0])
        is_regular = np.abs(y - median) <= _FAR * (upper - lower)
        is_used = self.is_robust and upper > lower
        return y[is_regular] if is_used else y

    def _given(self, d: int) -> Standardizer | None:
        if self.input_scale is None:
            return None
        return replace(identity(d), scale=np.broadcast_to(self.input_scale, (d,)).copy())


def leaving_columns(Z: Array, z: Array, names: tuple[str, ...]) -> list[str]:
    """Name the columns of standardised rows, and the target, that leave ten scales."""
    far = [names[j] for j in np.flatnonzero(np.abs(Z).max(axis=0, initial=0.0) > _FAR)]
    return far + (["the target"] if np.abs(z).max(initial=0.0) > _FAR else [])
