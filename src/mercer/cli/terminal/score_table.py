"""Tables of scores for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from mercer.data.wording import printable
from mercer.posterior.evaluation import AnyEvaluation, ModelScore, RegressionModelScore
from mercer.posterior.metrics import Metric

__all__ = ["digits3", "duration", "evaluation_table", "lowest", "plain_table", "shown", "spoken"]


def shown(metrics: Sequence[Metric], by: Metric | None = None) -> list[Metric]:
    """Return the metrics that a table has columns for, that which it is sorted by among them."""
    return [metric for metric in metrics if metric.is_shown or metric == by]


def digits3(value: float) -> str:
    """Write a number with three significant digits; a dash for nan.

    Examples
    --------
    >>> [digits3(x) for x in (0.12345, 0.0, 12.0, 3.1e-7)]
    ['0.123', '0', '12.0', '3.1e-07']
    """
    if not math.isfinite(value):
        return "-"
    if value == 0:
        return "0"
    if abs(value) < 1e-4 or abs(value) >= 1e6:
        return f"{value:.3g}"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def duration(seconds: float) -> str:
    """Write seconds: three digits, minutes above ten of them."""
    if not math.isfinite(seconds):
        return "-"
    if seconds < 600:
        return f"{seconds:.2f}" if seconds < 10 else f"{seconds:.0f}"
    return f"{seconds / 60:.0f} min"


def spoken(seconds: float) -> str:
    """Write a length of time with its unit, for a sentence.

    Examples
    --------
    >>> [spoken(t) for t in (2.446, 42.0, 960.0)]
    ['2.45 s', '42 s', '16 min']
    """
    words = duration(seconds)
    return words if words.endswith("min") else f"{words} s"


def plain_table(*columns: str, n_text: int = 1) -> Table:
    """Make an empty table: the first columns text, the others numbers."""
    table = Table(
        box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim"
    )
    for position, name in enumerate(columns):
        is_text = position < n_text
        table.add_column(
            name,
            justify="left" if is_text else "right",
            overflow="fold" if is_text else "ellipsis",
            no_wrap=not is_text,
        )
    return table


def evaluation_table(evaluation: AnyEvaluation) -> Table:
    """Show the scores of a model and its baselines, the best of each column in bold.

    Calibration has no winner: the class shares alone are always calibrated.
    """
    metrics = shown(evaluation.metrics)
    table = plain_table("held out", *(metric.heading for metric in metrics), "seconds")
    entries: tuple[ModelScore | RegressionModelScore, ...] = evaluation.entries
    values = [[metric.of(entry.scores) for metric in metrics] for entry in entries]
    best = lowest(values, metrics)
    for entry, row in zip(entries, values, strict=True):
        cells = [
            Text(text, style="bold" if text == winner else "")
            for text, winner in zip(map(digits3, row), best, strict=True)
        ]
        table.add_row(printable(entry.name), *cells, duration(entry.seconds))
    return table


def lowest(rows: Sequence[Sequence[float]], metrics: Sequence[Metric]) -> list[str]:
    """Return the lowest of each column as it is shown; "" for a column without a winner."""
    columns = zip(metrics, zip(*rows, strict=True), strict=True)
    return [digits3(min(column)) if metric.has_winner else "" for metric, column in columns]
