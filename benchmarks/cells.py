"""Long scenarios cell by cell: what is measured is kept in a file, so that a stopped run goes on.

The file is one line of JSON for each cell, ``SCENARIO.jsonl`` in the folder named by the
environment variable ``MERCER_BENCH_CACHE`` (``python -m benchmarks SCENARIO --cache FOLDER``);
without it cells are kept in memory only. Delete the file when the code that is measured changes.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

__all__ = ["VARIABLE", "measured"]

VARIABLE = "MERCER_BENCH_CACHE"

Cell = tuple[Any, ...]


def measured(
    scenario: str, cells: Iterable[Cell], measure: Callable[..., list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Rows of all cells, in their order; those that are in the file are not measured again.

    Parameters
    ----------
    scenario : str
        Name of the file.
    cells : iterable of tuple
        Of strings and numbers.
    measure : callable
        (*cell) -> rows, that is dictionaries of strings and numbers.
    """
    folder = os.environ.get(VARIABLE)
    path = Path(folder) / f"{scenario}.jsonl" if folder else None
    known = _read(path)
    rows: list[dict[str, Any]] = []
    for cell in cells:
        key = json.dumps(cell)
        if key not in known:
            begin = time.perf_counter()
            known[key] = measure(*cell)
            line = {"cell": cell, "seconds": round(time.perf_counter() - begin, 2)}
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("a") as file:
                    file.write(json.dumps({**line, "rows": known[key]}) + "\n")
        rows += known[key]
    return rows


def _read(path: Path | None) -> dict[str, list[dict[str, Any]]]:
    """Rows by cell; a last line that was cut short is left out, and cut off."""
    if path is None or not path.exists():
        return {}
    text = path.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole)
    lines = [json.loads(line) for line in whole.splitlines()]
    return {json.dumps(line["cell"]): line["rows"] for line in lines}
