"""Tables of scores for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from mercer.data.wording import printable
from mercer.posterior.evaluation import Evaluation
from mercer.posterior.scores import Scores

__all__ = ["METRICS", "columns_of", "digits3", "duration", "evaluation_table", "plain_table"]

#: Scores by the name of `Scores`, and what tables call them.
METRICS = {
    "error_rate": "error",
    "log_score": "log score",
    "brier_score": "Brier",
    "calibration_error": "calibration",
}


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


def evaluation_table(evaluation: Evaluation) -> Table:
    """Show the scores of a model and its baselines, the best of each column in bold.

    Calibration has no winner: the class shares alone are always calibrated.
    """
    table = plain_table("held out", *METRICS.values(), "seconds")
    texts = [columns_of(entry.scores) for entry in evaluation.entries]
    best = lowest(
        [[getattr(entry.scores, name) for name in METRICS] for entry in evaluation.entries]
    )
    for entry, row in zip(evaluation.entries, texts, strict=True):
        cells = [
            Text(text, style="bold" if text == winner else "")
            for text, winner in zip(row, best, strict=True)
        ]
        table.add_row(printable(entry.name), *cells, duration(entry.seconds))
    return table


def columns_of(scores: Scores) -> list[str]:
    """Write the scores of one row of a table."""
    return [digits3(getattr(scores, name)) for name in METRICS]


def lowest(rows: Sequence[Sequence[float]]) -> list[str]:
    """Return the lowest of each column as it is shown; none for calibration, the last."""
    *judged, _ = [digits3(min(column)) for column in zip(*rows, strict=True)]
    return [*judged, ""]
