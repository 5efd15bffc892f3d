"""Tables in Markdown."""

from __future__ import annotations

from typing import Any

__all__ = ["table"]


def table(header: list[str], rows: list[list[Any]]) -> list[str]:
    """Return the lines of a table."""
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return lines + [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
