"""Rows for streams, the stand-in that learns them, and the command in a process of its own."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from support.class_fits import make_rows
from support.forked import Forked


def write_rows(path: Path, *, n: int = 120, seed: int = 5) -> Path:
    """Write two inputs of numbers, one of text, names of rows and a target."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=n), rng.uniform(size=n)
    kind = rng.integers(0, 2, size=n)
    y = 10.0 + 3.0 * a - b + kind + 0.2 * rng.normal(size=n)
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["name", "a", "b", "kind", "y"])
        for i in range(n):
            cells = [f"r{i}", f"{a[i]:.4f}", f"{b[i]:.4f}", ("red", "blue")[kind[i]], f"{y[i]:.4f}"]
            writer.writerow(cells)
    return path


def write_classes(path: Path, labels: Sequence[str], *, n: int = 90) -> Path:
    """Write two inputs, names of rows and a class, by the sector of a plane."""
    X, _ = make_rows(n, seed=5)
    angle = np.arctan2(X[:, 1] - 10.0, X[:, 0] - 10.0) + np.pi
    place = (angle / (2.0 * np.pi) * len(labels)).astype(int)
    rows = [f"r{i},{a:.4f},{b:.4f},{labels[place[i]]}\n" for i, (a, b) in enumerate(X)]
    path.write_text("name,a,b,kind\n" + "".join(rows))
    return path


def write_series(path: Path, *, n: int = 120) -> Path:
    """Write a noisy wave, in one column."""
    t = np.arange(n)
    y = np.sin(t / 4.0) + 0.05 * np.random.default_rng(2).normal(size=n)
    path.write_text("y\n" + "".join(f"{value:.5f}\n" for value in y))
    return path


def as_json_lines(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a CSV file as objects, numbers as such."""
    with open(path, newline="") as stream:
        return [
            {name: _value(cell) for name, cell in row.items()} for row in csv.DictReader(stream)
        ]


def json_lines(rows: Iterable[Any]) -> str:
    """Write objects, one a line."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def read_answers(text: str) -> list[dict[str, Any]]:
    """Read the answers of the command."""
    return [json.loads(line) for line in text.splitlines()]


def start(*words: object, stdout: Any = None) -> Forked:
    """Start the command with the stand-in, its streams piped and not buffered."""
    script = Path(__file__).with_name("run_stream.py")
    return Forked([str(script), "stream", *map(str, words)], stdout=stdout)


def _value(cell: str) -> Any:
    try:
        return float(cell)
    except ValueError:
        return cell
