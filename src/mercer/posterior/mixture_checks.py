"""What predictive laws that are mixtures refuse."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import DataError

__all__ = ["check_components", "one_value_per_row"]

Array = NDArray[np.float64]


def check_components(locations: Array, scales: Array, centre: Array | None) -> None:
    """Refuse components of mixtures for m rows that are no laws of a place and a scale.

    Parameters
    ----------
    locations : ndarray of shape (m, C)
    scales : ndarray of shape (C,) or (m, C)
    centre : ndarray of shape (m,), optional

    Raises
    ------
    DataError
        When shapes do not fit, a value is not finite, or a scale is not positive.
    """
    shape = locations.shape
    is_right = len(shape) == 2 and shape[1] > 0 and scales.shape in (shape[1:], shape)
    if not is_right or (centre is not None and centre.shape != shape[:1]):
        raise DataError(
            f"need locations of shape (m, C), scales of (C,) or (m, C) and a centre of (m,), "
            f"got {shape}, {scales.shape} and {None if centre is None else centre.shape}"
        )
    is_finite = np.isfinite(locations).all() and np.isfinite(scales).all()
    if not is_finite or np.any(scales <= 0):
        raise DataError("locations must be finite, and scales finite and positive")


def one_value_per_row(y: ArrayLike, n_rows: int) -> Array:
    """Return the values as an array of shape (n_rows,).

    Parameters
    ----------
    y : array-like of shape (n_rows,)
    n_rows : int

    Returns
    -------
    ndarray of shape (n_rows,)

    Raises
    ------
    DataError
        When there are more or fewer, or one is not finite.
    """
    values = np.asarray(y, dtype=np.float64)
    if values.shape != (n_rows,) or not np.isfinite(values).all():
        raise DataError(
            f"need one finite value for each of {n_rows} rows, got shape {values.shape}"
        )
    return values
