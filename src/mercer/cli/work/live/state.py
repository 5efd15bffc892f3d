"""What a stream needs beside its model to go on: the past of a series, rows without target."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import ModelFileError
from mercer.estimation.model_file import Extra, Savable, TableModel, read_parts, write_model

__all__ = ["StreamState", "read_state", "write_stream_model"]

Array = NDArray[np.float64]
_NAME = "stream"  # in the file


@dataclass(frozen=True, eq=False)
class StreamState:
    """The end of a stream.

    Parameters
    ----------
    n_lags : int
        Inputs that are earlier targets; 0: the rows are no series.
    horizon : int
        So many rows ahead is predicted.
    past : tuple of float or None
        The last ``n_lags`` targets, the latest first.
    waiting : tuple of ndarray of shape (d,) or None
        The inputs of the last ``horizon`` rows, the oldest first; None where one is not known.
    later : tuple of (str, ndarray of shape (d,))
        Names and inputs of rows whose target has not come, the oldest first.
    """

    n_lags: int = 0
    horizon: int = 1
    past: tuple[float | None, ...] = ()
    waiting: tuple[Array | None, ...] = ()
    later: tuple[tuple[str, Array], ...] = ()


def write_stream_model(
    path: Path, estimator: Savable, table: TableModel, state: StreamState
) -> None:
    """Write a model file that `mercer.models.read_model` and `read_state` read.

    Where nothing is to be kept beside the model, it is the file of the model.

    Raises
    ------
    StorageError
        If it cannot be written; the old file is as it was.
    """
    extra = _extra_of(state) if state.n_lags or state.later else None
    write_model(path, estimator, table, extra)


def read_state(path: Path) -> StreamState:
    """Read what a stream has left in a model file; of another model, nothing.

    Raises
    ------
    ModelFileError
        It does not fit together.
    """
    manifest, arrays = read_parts(path)
    if _NAME not in manifest:
        return StreamState()
    try:
        return _state_from(manifest[_NAME], arrays[f"{_NAME}/rows"])
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path}: inconsistent state of a stream: {error}") from None


def _extra_of(state: StreamState) -> Extra:
    known = [x for x in state.waiting if x is not None]
    fields = {
        "n_lags": state.n_lags,
        "horizon": state.horizon,
        "past": list(state.past),
        "is_waiting": [x is not None for x in state.waiting],
        "names": [name for name, _ in state.later],
    }
    rows = [*known, *(x for _, x in state.later)]
    numbers = np.array(rows).reshape(len(rows), -1) if rows else np.empty((0, 0))
    return Extra(_NAME, fields, {"rows": numbers})


def _state_from(fields: Any, rows: NDArray[Any]) -> StreamState:
    n_lags, horizon, past = fields["n_lags"], fields["horizon"], fields["past"]
    is_waiting, names = fields["is_waiting"], fields["names"]
    n_waiting = sum(is_waiting)
    is_right = (
        all(type(value) is int and value >= 0 for value in (n_lags, horizon))
        and len(past) <= n_lags
        and all(value is None or np.isfinite(value) for value in past)
        and len(is_waiting) <= horizon
        and all(type(value) is bool for value in is_waiting)
        and all(isinstance(name, str) for name in names)
        and rows.dtype == np.float64
        and rows.ndim == 2
        and len(rows) == n_waiting + len(names)
        and np.isfinite(rows).all()
    )
    if not is_right:
        raise ValueError("its fields are not of the right kind, number or range")
    known = iter(rows)
    waiting = tuple(next(known) if is_known else None for is_known in is_waiting)
    later = tuple(zip(names, known, strict=True))
    return StreamState(n_lags, horizon, tuple(past), waiting, later)
