"""Targets of the first rows, until these say whether they are numbers or classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.cli.work.live.answering import Answers, Fields
from mercer.cli.work.live.cells import read_number
from mercer.cli.work.live.reporting import Reporter
from mercer.cli.work.live.rows import Example
from mercer.data.frame import Column, Frame, Origin
from mercer.data.infer import column_of_texts
from mercer.data.target import MAX_CLASSES, Target, Task, read_target
from mercer.data.wording import printable, quoted
from mercer.errors import DataError

__all__ = ["Undecided"]

#: Makes the answers for a target that was read.
Make = Callable[[Target], Answers]


@dataclass(frozen=True)
class _Cell:
    """A target as it stands there; ``problem`` says why it is no number."""

    text: str
    number: float = 0.0
    problem: str = ""


class Undecided:
    """Read targets that may be numbers or classes.

    Parameters
    ----------
    name : str
        Of the target.
    is_auto : bool
        Text, booleans or few distinct whole numbers are classes, as for a table. False: all are.
    make : callable
        Makes the answers for the task.
    """

    model: Any = None

    def __init__(self, name: str, *, is_auto: bool, make: Make) -> None:
        self._name = name
        self._is_auto = is_auto
        self._make = make

    @property
    def unknown(self) -> Fields:
        """Nothing is known."""
        return {"prediction": None}

    def target(self, cell: str, *, has_decimal_comma: bool) -> _Cell:
        """Keep a target as it stands there."""
        text = cell.strip()
        try:
            return _Cell(text, read_number(cell, has_decimal_comma=has_decimal_comma))
        except ValueError as error:
            return _Cell(text, problem=str(error))

    def shown(self, target: _Cell) -> Any:
        """Return a target as JSON has it: a number if it is one."""
        if target.problem:
            return target.text
        return int(target.number) if target.number.is_integer() else target.number

    def decide(
        self, examples: Sequence[Example], reporter: Reporter
    ) -> tuple[Answers, list[Example]]:
        """Decide by the first rows; a row is reported whose target is then of the wrong kind.

        Parameters
        ----------
        examples : sequence of Example
            With targets from `target`.
        reporter : Reporter

        Returns
        -------
        answers : Answers
        examples : list of Example
            The others, with targets as these answers take them.

        Raises
        ------
        DataError
            They are dates, or of one class only.
        """
        cells = [example.target for example in examples]
        is_text = self._is_text(cells)
        kept = [k for k, cell in enumerate(cells) if is_text or not cell.problem]
        if is_text:
            column = column_of_texts(self._name, [cell.text for cell in cells], is_text=False)
        else:
            column = Column(self._name, np.array([cells[k].number for k in kept]), "number")
        rows = np.array(kept, dtype=np.int64)
        frame = Frame((column,), reporter.source, Origin.of_file(reporter.source, rows))
        task: Task = "auto" if self._is_auto else "classification"
        target = read_target(frame, self._name, task, allow_one_class=True)
        if target.task == "classification" and len(set(target.values.tolist())) == 1:
            raise DataError(
                f"{printable(reporter.source)}: target {quoted(self._name)} has one class only, "
                f"{quoted(target.values[0])}, in the first {len(kept)} rows; wait for others with "
                "a longer --warmup, or use --task regression"
            )
        for k, cell in enumerate(cells):
            if cell.problem and not is_text:
                reporter.bad(examples[k].row, f"the target: {cell.problem}")
        values = target.values.tolist()
        decided = [replace(examples[k], target=v) for k, v in zip(kept, values, strict=True)]
        return self._make(target), decided

    def _is_text(self, cells: Sequence[_Cell]) -> bool:
        """Whether all are text; else a few that are no numbers are mistakes."""
        n_texts = sum(bool(cell.problem) for cell in cells)
        if n_texts == 0 or not self._is_auto:
            return n_texts > 0
        is_whole = all(cell.number.is_integer() for cell in cells)
        is_few = len({cell.text for cell in cells}) <= MAX_CLASSES
        return 2 * n_texts >= len(cells) or (is_whole and is_few)
