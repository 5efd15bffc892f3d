"""One row of a stream, and which of its columns are what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mercer.data.encoding import no_column
from mercer.data.frame import refuse_twins
from mercer.data.infer import MISSING, parse_number
from mercer.data.wording import nearest, printable, quoted
from mercer.errors import DataError, UsageError

__all__ = [
    "MAX_ID", "Example", "Parser", "Row", "Wanted", "check_names", "choose_inputs", "listed",
    "present",
]  # fmt: skip

#: Longest name of a row, in characters.
MAX_ID = 100

Id = str | int | float | bool | None


@dataclass(frozen=True)
class Row:
    """One row, as it was read.

    Parameters
    ----------
    number : int
        Of the row; the first is 1.
    line : int
        The line on which it stands.
    cells : tuple of str
        Of the inputs, in the order in which they were first seen.
    target : str or None
        None where it is missing.
    id : str, number or None
        What the row is called.
    is_late : bool
        It brings nothing but the target of an earlier row.
    problem : str
        Why it cannot be used; empty where it can.
    """

    number: int
    line: int
    cells: tuple[str, ...] = ()
    target: str | None = None
    id: Id = None
    is_late: bool = False
    problem: str = ""


@dataclass(frozen=True)
class Example:
    """A row whose target is known."""

    row: Row
    target: Any
    lags: tuple[float, ...] = ()


class Parser(Protocol):
    """What turns lines into rows."""

    inputs: tuple[str, ...]
    has_decimal_comma: bool

    def rows(self, lines: Any) -> list[Row]:
        """Read rows."""
        ...


@dataclass(frozen=True)
class Wanted:
    """What the command line says of columns.

    Parameters
    ----------
    source : str
        Of the rows, for messages.
    target : str
        Column to predict.
    id_column : str or None
        Column that names the rows.
    drop : tuple of str
        Columns to leave out; each may be several, separated by commas.
    needed : tuple of str or None
        The inputs of a model that was loaded; None: all other columns.
    is_series : bool
        The past of the target is an input, so that there need be no other.
    """

    source: str
    target: str
    id_column: str | None
    drop: tuple[str, ...]
    needed: tuple[str, ...] | None
    is_series: bool

    def __post_init__(self) -> None:
        if self.id_column == self.target:
            raise UsageError("the target cannot be --id")
        if self.target in self.drop:
            raise UsageError(f"--drop {quoted(self.target)} is the target")


def check_names(names: Sequence[str], source: str) -> None:
    """Refuse a header that is none.

    Raises
    ------
    DataError
        A name is empty or there twice, or all are numbers.
    """
    where = f"{printable(source)}, line 1"
    is_numbers = all(parse_number(name) is not None for name in names)
    if is_numbers and not all(name.isdecimal() for name in names):
        raise DataError(
            f"{where}: holds numbers ({quoted(names[0])}, ...); write a header line with the names "
            "of the columns above it"
        )
    for position, name in enumerate(names, start=1):
        if not name:
            raise DataError(f"{where}: column {position} has no name; name it in the header")
    refuse_twins(source, names)


def choose_inputs(
    names: Sequence[str], wanted: Wanted, *, has_target: bool = True
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Choose the columns that the model learns from.

    Parameters
    ----------
    names : sequence of str
        All columns.
    wanted : Wanted
    has_target : bool
        The target must be among them.

    Returns
    -------
    inputs, ignored : tuple of str

    Raises
    ------
    DataError
        A column is missing (the nearest is named), or no input is left.
    """
    named = [wanted.target] if has_target else []
    named += [] if wanted.id_column is None else [wanted.id_column]
    dropped: list[str] = []
    for entry in wanted.drop:
        parts = [entry] if entry in names else [part.strip() for part in entry.split(",")]
        dropped += [part for part in parts if part]
    for name in (*named, *dropped):
        if name not in names:
            raise DataError(
                f"{printable(wanted.source)}: there is no column {quoted(name)}"
                f"{nearest(name, names) or '; the columns are ' + listed(names)}"
            )
    if wanted.target in dropped:
        raise UsageError(f"--drop {quoted(wanted.target)} is the target")
    special = {wanted.target, wanted.id_column, *dropped}
    others = tuple(name for name in names if name not in special)
    if wanted.needed is not None:
        for name in wanted.needed:
            if name not in others:
                raise no_column(wanted.source, name, others)
        ignored = tuple(name for name in others if name not in wanted.needed)
        return wanted.needed, ignored
    if not others and not wanted.is_series:
        raise DataError(
            f"{printable(wanted.source)}: there is no column left to learn from, found 0 "
            "feature(s); --lags learns from the past of the target"
        )
    return others, ()


def present(cell: str) -> str | None:
    """Return a cell without the blanks around it; None where it is missing."""
    text = cell.strip()
    return None if text in MISSING else text


def listed(names: Sequence[str]) -> str:
    """List names, ten at most."""
    return ", ".join(quoted(name) for name in names[:10]) + (", ..." if len(names) > 10 else "")
