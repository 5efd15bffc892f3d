"""The model file of a stream: written at intervals and at the end, always whole."""

from __future__ import annotations

import datetime
import shlex
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import click

from mercer.cli.work.live.learner import Learner
from mercer.cli.work.live.rows import Row
from mercer.cli.work.live.state import StreamState, write_stream_model
from mercer.cli.work.provenance import versions
from mercer.data.infer import parse_number
from mercer.data.wording import quoted
from mercer.errors import UsageError
from mercer.estimation.model_file import TableModel
from mercer.posterior.evaluation import Provenance

__all__ = ["Interval", "Keeper", "Stream", "read_interval"]

_SECONDS = 60.0


class Interval(NamedTuple):
    """Between two files: at most so many seconds, and so many rows; None: any number of rows."""

    seconds: float = _SECONDS
    rows: int | None = None


def read_interval(text: str) -> Interval:
    """Read "500" as rows and "20s" as seconds.

    Raises
    ------
    UsageError
        It is neither.

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


class Stream(Protocol):
    """Rows that stand for themselves, or a series."""

    def take(self, rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
        """Answer rows."""
        ...

    def finish(self) -> None:
        """Learn what was held back."""
        ...

    def state(self) -> StreamState:
        """Return what a later stream needs beside the model."""
        ...


@dataclass
class Keeper:
    """Write the model when it is time.

    Parameters
    ----------
    path : Path or None
        Where to; None: nowhere.
    every : Interval
        Between two files.
    target : str
        Column that is predicted.
    seed : int
    learner : Learner
    stream : Stream
    clock : callable
        Returns seconds.
    """

    path: Path | None
    every: Interval
    target: str
    seed: int
    learner: Learner
    stream: Stream
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
        model, encoder = self.learner.answers.model, self.learner.encoder
        if self.path is None or encoder is None or not getattr(model, "n_rows_seen_", 0):
            return False
        provenance = Provenance(
            source=self.learner.reporter.source,
            target=self.target,
            n_rows=int(model.n_rows_seen_),
            n_inputs=len(encoder.feature_names),
            input_names=encoder.feature_names,
            notes=(*encoder.notes, "learned row by row"),
            command=shlex.join(["mercer", *(click.get_current_context().find_root().obj or ())]),
            seed=self.seed,
            seconds=self.clock() - self._started,
            created=datetime.date.today().isoformat(),
            versions=versions(),
        )
        table = TableModel(encoder, self.target, None, provenance)
        write_stream_model(self.path, model, table, self.stream.state())
        self._n_written = self.learner.tally.n_rows
        self._last = self.clock()
        return True
