"""Tables in Markdown."""

from __future__ import annotations

from typing import Any

__all__ = ["page_lines", "table"]


def table(header: list[str], rows: list[list[Any]]) -> list[str]:
    """Return the lines of a table."""
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return lines + [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]


def page_lines(reproduction: dict[str, Any]) -> list[str]:
    """Return the lines of a reproduction: claims, then its further tables and its notes."""
    rows = []
    for claim in reproduction["claims"]:
        verdict = claim["verdict"] + (f" ({claim['note']})" if claim["note"] else "")
        rows.append([claim["claim"], claim["paper"], claim["ours"], verdict])
    lines = table(["claim", "paper", "ours", "verdict"], rows)
    for further in reproduction["tables"]:
        lines += ["", *further]
    for note in reproduction["notes"]:
        lines += ["", note]
    return lines
