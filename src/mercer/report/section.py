"""What a report is made of, before it becomes HTML: sections of words, figures and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mercer.posterior.table import Cell as Value
from mercer.posterior.table import Table
from mercer.report.words import column

__all__ = ["Cell", "Figure", "NamedTable", "Report", "Section", "Tile", "from_table"]


@dataclass(frozen=True)
class Figure:
    """A drawing (SVG), the words below it, and the words for those who cannot see it."""

    svg: str
    caption: str
    alt: str


@dataclass(frozen=True)
class Cell:
    """One cell of a table: what is shown, and the number or text by which the column is sorted."""

    text: str
    sort: float | str
    is_best: bool = False


@dataclass(frozen=True)
class NamedTable:
    """A table with a caption."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    is_sortable: bool = True


@dataclass(frozen=True)
class Section:
    """One section of a report.

    Attributes
    ----------
    key : str
        Its anchor in the page: lower-case letters and hyphens.
    title : str
    text : tuple of str
        Paragraphs in plain words.
    warnings : tuple of str
        Shown set off, before the figures.
    points : tuple of str
        A list after the paragraphs.
    figures, tables : tuple
    command : str
        Shown as something to type, with a button that copies it; empty for none.
    """

    key: str
    title: str
    text: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[NamedTable, ...] = ()
    command: str = ""


@dataclass(frozen=True)
class Tile:
    """A headline number at the top of the report, with one line that says how to take it."""

    label: str
    value: str
    note: str
    needs_attention: bool = False


@dataclass(frozen=True)
class Report:
    """A whole report, ready to be rendered."""

    title: str
    subtitle: str
    tiles: tuple[Tile, ...]
    sections: tuple[Section, ...]


def from_table(
    caption: str,
    source: Table,
    *,
    headings: Mapping[str, str] | None = None,
    decimals: Mapping[str, int] | None = None,
) -> NamedTable:
    """Return a table of the posterior with a caption.

    Parameters
    ----------
    caption : str
    source : Table
    headings : mapping of str to str, optional
        Other words for columns.
    decimals : mapping of str to int, optional
        Decimals to show in a column of numbers, where the default will not do.
    """
    columns = [_cells(source.column(name), (decimals or {}).get(name)) for name in source.columns]
    shown = tuple((headings or {}).get(name, name) for name in source.columns)
    return NamedTable(caption, shown, tuple(zip(*columns, strict=True)))


def _cells(values: tuple[Value, ...], decimals: int | None) -> list[Cell]:
    numbers = [value for value in values if not isinstance(value, str)]
    if len(numbers) < len(values):
        return [Cell(str(value), str(value)) for value in values]
    texts = column(numbers, decimals)
    keys = ("" if value is None else float(value) for value in numbers)
    return [Cell(text, key) for text, key in zip(texts, keys, strict=True)]
