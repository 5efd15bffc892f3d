"""A stream of rows that stand for themselves: each is predicted, then learned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.work.live.answering import Said
from mercer.cli.work.live.learner import Learner
from mercer.cli.work.live.remembered import Remembered
from mercer.cli.work.live.reporting import named
from mercer.cli.work.live.rows import Example, Row, present
from mercer.cli.work.live.state import StreamState
from mercer.data.wording import quoted

__all__ = ["RowStream"]

Array = NDArray[np.float64]
Answer = dict[str, Any]
_Waiting = tuple[Row, Array, Any]  # with its inputs and its target


class RowStream:
    """Answer rows in their order; rows whose target comes later are remembered by their names.

    Parameters
    ----------
    learner : Learner
    state : StreamState, optional
        From a file.
    """

    def __init__(self, learner: Learner, state: StreamState | None = None) -> None:
        self._learner = learner
        self._tally = learner.tally
        self._reporter = learner.reporter
        self._early: Remembered[Row] = (
            Remembered()
        )  # rows without target, until they can be encoded
        self._later: Remembered[Array] = Remembered()  # the same, encoded
        for name, x in () if state is None else state.later:
            self._later.add(name, x)

    def take(self, rows: Sequence[Row]) -> Iterator[Answer]:
        """Answer rows; the answers do not depend on how rows are put together."""
        for answer in self._take(rows):
            self._tally.n_rows += 1
            yield answer

    def _take(self, rows: Sequence[Row]) -> Iterator[Answer]:
        for position, row in enumerate(rows):
            if self._learner.is_ready:
                yield from self._take_ready(rows[position:])
                return
            yield self._take_early(row)

    def finish(self) -> None:
        """Learn what was held back."""
        if self._learner.held_rows:
            self._learner.begin()
            self._encode_early()

    def state(self) -> StreamState:
        """Return what a later stream needs beside the model."""
        return StreamState(later=tuple(self._later.items()))

    def _take_early(self, row: Row) -> Answer:
        """Answer a row before anything can be predicted."""
        learner = self._learner
        try:
            target = self._target(row)
        except ValueError as error:
            return self._reporter.bad(row, str(error))
        if row.is_late:
            earlier = self._early.pop(row.id)
            if earlier is None:
                return self._reporter.bad(row, _unknown(row))
            learner.hold(Example(earlier, target))
            self._encode_early()
            return {**named(row), "learned": True}
        for name, cell in zip(self._learner.inputs, row.cells, strict=True):
            if present(cell) is None:
                return self._reporter.bad(row, f"column {quoted(name)}: missing value")
        if learner.warmup == 0:
            learner.begin([row])
            return next(self._take_ready([row]))
        self._tally.last_row = row.number
        answer = self._answer(row, target, Said(learner.answers.unknown))
        if target is None:
            self._early.add(row.id, row)
        else:
            self._early.pop(row.id)
            learner.hold(Example(row, target))
            self._encode_early()
        return answer

    def _encode_early(self) -> None:
        """Encode the rows without target, once that is possible."""
        if not self._learner.is_ready or not len(self._early):
            return
        names, rows = zip(*self._early.items(), strict=True)
        X, problems = self._learner.encode(rows)
        for position, name in enumerate(names):
            if position in problems:
                self._reporter.bad(rows[position], problems[position])
            else:
                self._later.add(name, X[position])
        self._early = Remembered()

    def _take_ready(self, rows: Sequence[Row]) -> Iterator[Answer]:
        """Answer rows that can be predicted, as many at once as follow each other."""
        whole = [k for k, row in enumerate(rows) if not row.problem and not row.is_late]
        X, unusable = self._learner.encode([rows[k] for k in whole])
        places = {k: position for position, k in enumerate(whole)}
        waiting: list[_Waiting] = []
        for k, row in enumerate(rows):
            try:
                target = self._target(row)
                if k in places and places[k] in unusable:
                    raise ValueError(unusable[places[k]])
            except ValueError as error:
                yield from self._ahead(waiting)
                yield self._reporter.bad(row, str(error))
                continue
            if row.is_late:
                yield from self._ahead(waiting)
                yield self._learn_late(row, target)
                continue
            x = X[places[k]]
            waiting.append((row, x, target))
            if target is None:
                self._later.add(row.id, x)
            else:
                self._later.pop(row.id)
        yield from self._ahead(waiting)

    def _ahead(self, waiting: list[_Waiting]) -> Iterator[Answer]:
        """Predict rows, then learn them; none is waiting then."""
        examples = list(waiting)
        waiting.clear()
        if not examples:
            return
        X, y = np.array([x for _, x, _ in examples]), [target for _, _, target in examples]
        n_before = self._learner.n_rows_of_model
        try:
            all_said = self._learner.ahead(X, y)
        except BaseException:
            learned = [row.number for row, _, target in examples if target is not None]
            n_learned = self._learner.n_rows_of_model - n_before
            self._tally.last_row = max([self._tally.last_row, *learned[:n_learned]])
            raise
        # Of rows after one that ends the stream nothing is said.
        for (row, _, target), said in zip(examples, all_said, strict=False):
            if isinstance(said, str):
                yield self._reporter.bad(row, said)
            else:
                self._tally.last_row = row.number
                yield self._answer(row, target, said)

    def _learn_late(self, row: Row, target: Any) -> Answer:
        """Learn an earlier row, now that its target is there."""
        x = self._later.pop(row.id)
        if x is None:
            return self._reporter.bad(row, _unknown(row))
        (words,) = self._learner.learn_encoded(x[np.newaxis], [target])
        if words:
            return self._reporter.bad(row, words)
        self._tally.last_row = row.number
        return {**named(row), "learned": True}

    def _target(self, row: Row) -> Any:
        """Read the target of a row; a ValueError says what is wrong with the row."""
        if row.problem:
            raise ValueError(row.problem)
        target = self._learner.target(row)
        if row.is_late and target is None:
            raise ValueError("brings no input and no target")
        return target

    def _answer(self, row: Row, target: Any, said: Said) -> Answer:
        self._tally.add(said)
        fields = dict(said.fields)
        n_centres = fields.pop("n_centres", None)
        shown = None if target is None else self._learner.answers.shown(target)
        scores = {"target": shown, "score": said.score, "mean_score": self._tally.mean_score}
        return {**named(row), **fields, **scores, "n_centres": n_centres}


def _unknown(row: Row) -> str:
    return (
        f"no row {quoted(row.id)} without a target was there before (rows are remembered by the "
        "column that --id names)"
    )
