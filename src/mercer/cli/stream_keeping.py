"""What a stream keeps: its state beside the model, and when it is saved.

What a stream needs beside its model to go on: the past of a series, rows without target.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.cli.outputs import make_provenance
from mercer.data.files import quoted
from mercer.data.frame import parse_number
from mercer.errors import ModelFileError, UsageError
from mercer.estimation.model_file import Extra, Savable, TableModel, read_parts, write_model
from mercer.posterior.schema import Array as Rows
from mercer.posterior.schema import Fields, Flag, ListOf, Maybe, Number, Text, Whole

if TYPE_CHECKING:
    from mercer.cli.stream_model import Learner

Array = NDArray[np.float64]
_NAME = "stream"  # in the file


@dataclass(frozen=True, eq=False)
class StreamState:
    """The end of a stream: a series where ``n_lags`` inputs are earlier targets.

    ``past`` are the last of these, the latest first; ``waiting`` the inputs of the last ``horizon``
    rows, the oldest first, None where one is not known; ``foretold`` what was said of these, but of
    the last, of which the model itself says it; ``later`` names and inputs of rows whose target has
    not come, the oldest first.
    """

    n_lags: int = 0
    horizon: int = 1
    past: tuple[float | None, ...] = ()
    waiting: tuple[Array | None, ...] = ()
    later: tuple[tuple[str, Array], ...] = ()
    foretold: tuple[Array | None, ...] = ()


def write_stream_model(
    path: Path, estimator: Savable, table: TableModel, state: StreamState
) -> None:
    """Write a model file that `mercer.models.read_model` and `read_state` read.

    Where nothing is to be kept beside the model, it is the file of the model.
    """
    known = [x for x in state.waiting if x is not None]
    fields = {
        "n_lags": state.n_lags,
        "horizon": state.horizon,
        "past": list(state.past),
        "is_waiting": [x is not None for x in state.waiting],
        "names": [name for name, _ in state.later],
        "is_foretold": [x is not None for x in state.foretold],
    }
    rows = _stacked([*known, *(x for _, x in state.later)])
    foretold = _stacked([x for x in state.foretold if x is not None])
    arrays = {"rows": rows, "foretold": foretold}
    extra = Extra(_NAME, fields, arrays) if state.n_lags or state.later else None
    write_model(path, estimator, table, extra)


def _stacked(rows: list[Array]) -> Array:
    return np.array(rows).reshape(len(rows), -1) if rows else np.empty((0, 0))


def read_state(path: Path) -> StreamState:
    """Read what a stream has left in a model file; of another model, nothing."""
    manifest, arrays = read_parts(path)
    if _NAME not in manifest:
        return StreamState()
    try:
        none = np.empty((0, 0))  # of an older file
        foretold = arrays.get(f"{_NAME}/foretold", none)
        return _state_from(manifest[_NAME], arrays[f"{_NAME}/rows"], foretold)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path}: inconsistent state of a stream: {error}") from None


_STATE = Fields(
    {
        "n_lags": Whole(),
        "horizon": Whole(),
        "past": ListOf(Maybe(Number())),
        "is_waiting": ListOf(Flag()),
        "names": ListOf(Text()),
        "is_foretold": ListOf(Flag()),
    },
    optional=frozenset({"is_foretold"}),
)


def _state_from(fields: Any, rows: NDArray[Any], foretold: NDArray[Any]) -> StreamState:
    _STATE.check(fields, _NAME, {})
    past, is_waiting, names = (fields[name] for name in ("past", "is_waiting", "names"))
    Rows(("n", "d")).check(rows, f"{_NAME}/rows", {"n": sum(is_waiting) + len(names)})
    is_foretold = fields.get("is_foretold", [])
    Rows(("k", "p"), most=np.inf).check(foretold, f"{_NAME}/foretold", {"k": sum(is_foretold)})
    if len(past) > fields["n_lags"] or len(is_waiting) > fields["horizon"]:
        raise ValueError("it holds more than a series can need")
    if len(is_foretold) > max(len(is_waiting) - 1, 0):
        raise ValueError("it holds more than was foretold")
    known = iter(rows)
    waiting = tuple(next(known) if is_known else None for is_known in is_waiting)
    later = tuple(zip(names, known, strict=True))
    said = iter(foretold)
    earlier = tuple(next(said) if is_known else None for is_known in is_foretold)
    return StreamState(fields["n_lags"], fields["horizon"], tuple(past), waiting, later, earlier)


# The model file of a stream: written at intervals and at the end, always whole.

_SECONDS = 60.0


class Interval(NamedTuple):
    """Between two files: at most so many seconds, and so many rows; None: any number of rows."""

    seconds: float = _SECONDS
    rows: int | None = None


def read_interval(text: str) -> Interval:
    """Read "500" as rows and "20s" as seconds.

    Examples
    --------
    >>> read_interval("500"), read_interval("0.5s")
    (Interval(seconds=60.0, rows=500), Interval(seconds=0.5, rows=None))
    """
    words = text.strip()
    if words.isdecimal() and int(words) > 0:
        return Interval(rows=int(words))
    seconds = parse_number(words.removesuffix("s")) if words.endswith("s") else None
    if seconds is None or not 0.0 < seconds < threading.TIMEOUT_MAX:
        raise UsageError(
            f"--save-every {quoted(text)}: must be a number of rows, such as 500, or of seconds "
            "with an s, such as 20s"
        )
    return Interval(seconds=seconds)


@dataclass
class Keeper:
    """Write the model to a path (None: nowhere) when it is time."""

    path: Path | None
    every: Interval
    target: str
    seed: int
    learner: Learner
    state: Callable[[], StreamState]  # of the stream, beside the model
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._started = self._last = self.clock()
        self._n_written = 0

    @property
    def seconds_left(self) -> float | None:
        """Seconds to the next file; None: there is nothing to write."""
        if self.path is None or not self._is_behind:
            return None
        if self.n_rows_left == 0:
            return 0.0
        return max(0.0, self._last + self.every.seconds - self.clock())

    @property
    def n_rows_left(self) -> int | None:
        """Rows to the next file; None: any number, or there is nothing to write to."""
        if self.path is None or self.every.rows is None:
            return None
        return max(0, self._n_written + self.every.rows - self.learner.tally.n_rows)

    @property
    def _is_behind(self) -> bool:
        return self.learner.is_ready and self.learner.tally.n_rows > self._n_written

    def tick(self) -> None:
        """Write the file if it is time."""
        if self.seconds_left == 0.0:
            self.save()

    def save(self) -> bool:
        """Write the file; False if there is none to write, or nothing was ever learned."""
        model, encoder = self.learner.predictor.model, self.learner.encoder
        if self.path is None or encoder is None or not getattr(model, "n_rows_seen_", 0):
            return False
        provenance = make_provenance(
            self.learner.reporter.source,
            encoder.feature_names,
            target=self.target,
            n_rows=int(model.n_rows_seen_),
            seed=self.seed,
            seconds=self.clock() - self._started,
            notes=(*encoder.notes, "learned row by row"),
        )
        table = TableModel(encoder, self.target, None, provenance)
        write_stream_model(self.path, model, table, self.state())
        self._n_written = self.learner.tally.n_rows
        self._last = self.clock()
        return True
