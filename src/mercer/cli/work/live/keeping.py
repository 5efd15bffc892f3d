"""The model file of a stream: written at intervals and at the end, always whole."""

from __future__ import annotations

import datetime
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import click

from mercer.cli.work.live.learner import Learner
from mercer.cli.work.live.rows import Row
from mercer.cli.work.live.state import StreamState, write_stream_model
from mercer.cli.work.provenance import versions
from mercer.estimation.model_file import TableModel
from mercer.posterior.evaluation import Provenance

__all__ = ["Keeper", "Stream"]


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
    every : float
        Seconds between two files.
    target : str
        Column that is predicted.
    seed : int
    learner : Learner
    stream : Stream
    clock : callable
        Returns seconds.
    """

    path: Path | None
    every: float
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
        return max(0.0, self._last + self.every - self.clock())

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
