"""Rows of a stream of JSON: an object on each line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from mercer.cli.work.live.lines import Line
from mercer.cli.work.live.rows import MAX_ID, Row, Wanted, choose_inputs, listed, present
from mercer.data.wording import quoted
from mercer.errors import DataError

__all__ = ["JsonRows"]

_LITERALLY = {
    "id",
    "target",
}  # of a row that brings a target later, whatever the columns are called


class JsonRows:
    """Turn lines into rows; the first object with an input says which inputs there are.

    Parameters
    ----------
    wanted : Wanted
    tell : callable
        Is told, once, of keys that are not used.

    Attributes
    ----------
    inputs : tuple of str
        The keys that `Row.cells` holds.
    """

    has_decimal_comma = False

    def __init__(self, wanted: Wanted, tell: Callable[[str], None]) -> None:
        self.inputs: tuple[str, ...] = wanted.needed or ()
        self._wanted = wanted
        self._tell = tell
        self._id = wanted.id_column
        self._is_chosen = wanted.needed is not None
        self._expected = set(self.inputs)
        self._not_inputs = {wanted.target, self._id, *wanted.drop}
        self._not_inputs |= {part.strip() for entry in wanted.drop for part in entry.split(",")}
        self._n_rows = 0

    def rows(self, lines: Iterable[Line]) -> list[Row]:
        """Read rows; blank lines are none."""
        return [self._row(line) for line in lines if line.problem or line.text.strip()]

    def _row(self, line: Line) -> Row:
        self._n_rows += 1
        if line.problem:
            return Row(self._n_rows, line.number, problem=line.problem)
        try:
            return self._read(line, _parse(line.text))
        except DataError:
            raise
        except (ValueError, RecursionError) as error:
            return Row(self._n_rows, line.number, problem=_reason(error))

    def _read(self, line: Line, fields: dict[str, Any]) -> Row:
        wanted = self._wanted
        names = set(fields)
        is_late = not wanted.is_series and (
            names == {wanted.target, self._id}
            or (names == _LITERALLY and names.isdisjoint(self._expected))
        )
        if is_late:
            is_own = wanted.target in names
            target = fields[wanted.target if is_own else "target"]
            name = _name(fields[str(self._id) if is_own else "id"])
            return Row(self._n_rows, line.number, (), _cell(wanted.target, target), name, True)
        if not self._is_chosen:
            self._choose(fields)
        if names - self._expected - self._not_inputs:
            self._tell_of(names - self._expected - self._not_inputs)
        missing = [name for name in self.inputs if name not in fields]
        if self._id is not None and self._id not in fields:
            missing.append(self._id)
        if missing:
            raise ValueError(f"there is no key {quoted(missing[0])}")
        cells = tuple([_cell(name, fields[name]) or "" for name in self.inputs])
        target = _cell(wanted.target, fields.get(wanted.target))
        name = None if self._id is None else _name(fields[self._id])
        return Row(self._n_rows, line.number, cells, target, name)

    def _choose(self, fields: dict[str, Any]) -> None:
        """Let an object say which inputs there are."""
        self.inputs, _ = choose_inputs(list(fields), self._wanted, has_target=False)
        self._expected = set(self.inputs)
        self._is_chosen = True

    def _tell_of(self, names: set[str]) -> None:
        self._tell(f"keys that the model does not use: {listed(sorted(names))}")
        self._not_inputs |= names


def _parse(text: str) -> dict[str, Any]:
    fields = json.loads(text.removeprefix("\ufeff"), parse_constant=_refuse_constant)
    if not isinstance(fields, dict):
        raise ValueError("is JSON, but no object with names and values")
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number that JSON has")


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"is not JSON ({error.msg}, column {error.colno})"
    return "is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _cell(name: str, value: Any) -> str | None:
    """Write a value as a cell of a table has it; None where it is missing."""
    if isinstance(value, str):
        return present(value)
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    raise ValueError(f"column {quoted(name)}: neither a number nor text")


def _name(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        raise ValueError("the name of the row is neither a number nor text")
    if len(str(value)) > MAX_ID:
        raise ValueError(f"the name of the row is longer than {MAX_ID} characters")
    return value
