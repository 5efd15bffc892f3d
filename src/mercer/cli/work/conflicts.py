"""Rows with equal inputs and different labels: no classifier is right on both."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.cli.work.table import TrainingTable
from mercer.data.wording import printable, quoted
from mercer.errors import DataError

__all__ = ["conflicting_rows", "refuse_conflicts", "say_conflicts"]


def conflicting_rows(table: TrainingTable) -> tuple[int, int, int] | None:
    """Find the first row whose inputs an earlier one has with another label.

    Returns
    -------
    (earlier, later, n) or None
        Positions of the two, and how many rows share their inputs with one of another label.
    """
    _, same = np.unique(table.X, axis=0, return_inverse=True)
    same = same.reshape(-1)
    n_classes = len(table.classes)
    pairs = np.unique(same * n_classes + table.y) // n_classes
    is_mixed = np.bincount(pairs, minlength=len(same))[same] > 1
    if not is_mixed.any():
        return None
    first: dict[int, int] = {}
    for row in np.flatnonzero(is_mixed).tolist():
        earlier = first.setdefault(int(same[row]), row)
        if table.y[earlier] != table.y[row]:
            return earlier, row, int(is_mixed.sum())
    raise AssertionError("rows of one group with two labels hold a pair that differs")


def say_conflicts(table: TrainingTable) -> str:
    """Say which rows have equal inputs and different labels; empty if none have."""
    found = conflicting_rows(table)
    if found is None:
        return ""
    earlier, later, n = found
    return (
        f"{n} rows have the inputs of a row with another label, such as "
        f"{table.names.listed([earlier, later])}: there the inputs cannot tell which is wrong"
    )


def refuse_conflicts(table: TrainingTable, estimator: Any) -> None:
    """Refuse, before any work, labels that cannot all be right where the noise rate is 0.

    Raises
    ------
    DataError
        Naming two rows.
    """
    rate = estimator.get_params().get("noise_rate")
    if isinstance(rate, (tuple, str, bool)) or rate != 0:
        return
    found = conflicting_rows(table)
    if found is None:
        return
    earlier, later, _ = found
    labels = [quoted(table.classes[table.y[row]]) for row in (earlier, later)]
    raise DataError(
        f"{printable(table.source)}: {table.names.listed([earlier, later])} have equal inputs and "
        f"different labels, {labels[0]} and {labels[1]}; with noise_rate=0 every label must be "
        "right: correct one, or use noise_rate > 0"
    )
