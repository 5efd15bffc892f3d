"""A stream that is a series: a row's target is predicted from earlier targets."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.work.live.answering import Foretold, Numbers, Said
from mercer.cli.work.live.learner import Learner
from mercer.cli.work.live.reporting import named
from mercer.cli.work.live.rows import Example, Row, present
from mercer.cli.work.live.state import StreamState
from mercer.data.wording import quoted

__all__ = ["SeriesStream", "lag_names"]

Array = NDArray[np.float64]
Answer = dict[str, Any]


def lag_names(target: str, n_lags: int, horizon: int) -> tuple[str, ...]:
    """Name the inputs that are earlier targets, by their distance from the one predicted.

    Examples
    --------
    >>> lag_names("y", 2, 3)
    ('y[t-3]', 'y[t-4]')
    """
    return tuple(f"{target}[t-{horizon + k}]" for k in range(n_lags))


@dataclass(frozen=True)
class _Origin:
    """What was known when a later row was predicted."""

    example: Example | None = None  # of this row, with the lags; its target comes later
    x: Array | None = None
    foretold: Foretold | None = None


class SeriesStream:
    """Answer rows in their order; the answer of a row predicts one that is ``horizon`` rows ahead.

    A row is met in three steps: what was foretold of it is scored; it is learned, with the inputs
    that were known ``horizon`` rows ago; the row so many rows ahead is foretold. A value that is
    missing breaks the series: rows that would need it are neither learned nor predicted.

    Parameters
    ----------
    learner : Learner
    numbers : Numbers
        Those of the learner.
    n_lags : int
    horizon : int
    state : StreamState, optional
        From a file.
    """

    def __init__(
        self,
        learner: Learner,
        numbers: Numbers,
        n_lags: int,
        horizon: int,
        state: StreamState | None = None,
    ) -> None:
        self._learner = learner
        self._numbers = numbers
        self._tally = learner.tally
        self._reporter = learner.reporter
        self._horizon = horizon
        self._past: deque[float | None] = deque(maxlen=n_lags)
        self._waiting: deque[_Origin] = deque(maxlen=horizon)
        if state is not None:
            self._past.extend(state.past)
            self._waiting.extend(_Origin(x=x) for x in state.waiting)
            if self._waiting and self._waiting[-1].x is not None:
                x = self._waiting[-1].x
                foretold = numbers.foretell(x[np.newaxis])
                self._waiting[-1] = _Origin(x=x, foretold=foretold)

    def take(self, rows: Sequence[Row]) -> Iterator[Answer]:
        """Answer rows."""
        return map(self._take, rows)

    def finish(self) -> None:
        """Learn what was held back."""
        if self._learner.held_rows:
            self._learner.begin()
            self._encode_waiting()

    def state(self) -> StreamState:
        """Return what a later stream needs beside the model."""
        return StreamState(
            n_lags=self._past.maxlen or 0,
            horizon=self._horizon,
            past=tuple(self._past),
            waiting=tuple(origin.x for origin in self._waiting),
        )

    def _take(self, row: Row) -> Answer:
        self._tally.n_rows += 1
        try:
            target = self._read(row)
        except ValueError as error:
            answer = self._reporter.bad(row, str(error))  # before anything changes: it may raise
            self._past.appendleft(None)
            self._waiting.append(_Origin())
            return answer
        said = Said({})
        if target is not None:
            said = self._learn(row, target)
        else:
            self._reporter.once(
                "a target is missing: rows that would need it are neither learned nor predicted"
            )
        self._past.appendleft(target)
        self._tally.last_row = row.number
        ahead = self._foretell(row)
        self._tally.add(said)
        fields = self._numbers.unknown if ahead.foretold is None else ahead.foretold.fields
        fields = dict(fields)
        n_centres = fields.pop("n_centres", None)
        return {
            **named(row),
            "for_row": row.number + self._horizon,
            **fields,
            "target": target,
            "score": said.score,
            "mean_score": self._tally.mean_score,
            "n_centres": n_centres,
        }

    def _read(self, row: Row) -> Any:
        """Read the target of a row; a ValueError says what is wrong with the row."""
        if row.problem:
            raise ValueError(row.problem)
        for name, cell in zip(self._learner.inputs, row.cells, strict=True):
            if present(cell) is None:
                raise ValueError(f"column {quoted(name)}: missing value")
        if self._learner.is_ready:
            _, problems = self._learner.encode([row], [(0.0,) * (self._past.maxlen or 0)])
            if problems:
                raise ValueError(problems[0])
        return self._learner.target(row)

    def _learn(self, row: Row, target: Any) -> Said:
        """Learn a row from what was known before it, and score what was foretold of it."""
        origin = self._waiting[0] if len(self._waiting) == self._horizon else _Origin()
        said = Said({}) if origin.foretold is None else origin.foretold.scored(target)
        if origin.x is not None:
            (words,) = self._learner.learn_encoded(origin.x[np.newaxis], [target])
            if words:
                self._reporter.bad(row, words)
        elif origin.example is not None:
            example = origin.example
            self._waiting.popleft()
            self._learner.hold(Example(example.row, target, example.lags))
            self._encode_waiting()
        return said

    def _foretell(self, row: Row) -> _Origin:
        """Predict the row that is so many rows ahead, if all that it needs is known.

        Its inputs wait for its target, in the place of those of the row in hand.
        """
        lags = tuple(value for value in self._past if value is not None)
        if len(lags) < (self._past.maxlen or 0):
            self._waiting.append(_Origin())
        elif not self._learner.is_ready:
            self._waiting.append(_Origin(Example(row, None, lags)))
        else:
            X, _ = self._learner.encode([row], [lags])
            self._waiting.append(_Origin(x=X[0]))  # whatever the prediction comes to
            self._waiting[-1] = _Origin(x=X[0], foretold=self._numbers.foretell(X))
        return self._waiting[-1]

    def _encode_waiting(self) -> None:
        """Encode the rows whose successors are not there yet, once that is possible."""
        if not self._learner.is_ready:
            return
        origins = list(self._waiting)
        self._waiting.clear()
        for origin in origins:
            example = origin.example
            if example is None:
                self._waiting.append(origin)
                continue
            X, problems = self._learner.encode([example.row], [example.lags])
            if problems:
                self._reporter.bad(example.row, problems[0])
            self._waiting.append(_Origin() if problems else _Origin(x=X[0]))
