"""What `audit` and `query` say: the noise rate, the list, tables of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from mercer.cli.terminal.score_table import digits3, plain_table
from mercer.data.wording import printable, quoted
from mercer.posterior.label_errors import LabelAudit

__all__ = ["list_words", "noise_json", "noise_words", "rows_table", "suspects_table"]

_N_SHOWN = 15
_LONGEST = 24  # letters of a label or a name in a table


def noise_json(estimator: Any) -> dict[str, Any]:
    """Return mean and 90 % interval of the noise rate, for each class where rates are by class."""
    draws = estimator.posterior_.flat("noise_rate")
    low, high = np.quantile(draws, (0.05, 0.95), axis=0)
    rates = [
        {"mean": float(mean), "lower": float(a), "upper": float(b)}
        for mean, a, b in zip(draws.mean(axis=0), low, high, strict=True)
    ]
    is_learned = isinstance(estimator.noise_rate, str)
    if len(rates) == 1:
        return {"is_learned": is_learned, **rates[0]}
    names = [str(label) for label in estimator.classes_.tolist()]
    return {"is_learned": is_learned, "by_class": dict(zip(names, rates, strict=True))}


def noise_words(estimator: Any) -> str:
    """Say the noise rate, learned or given."""
    found = noise_json(estimator)
    is_learned = found["is_learned"]
    how = "learned" if is_learned else "given"
    if "by_class" not in found:
        return f"{_rate(found, is_learned=is_learned)} of the labels are wrong, {how}"
    parts = (
        f"{_rate(rate, is_learned=is_learned)} of those recorded {quoted(name)}"
        for name, rate in found["by_class"].items()
    )
    return f"{', '.join(parts)} are wrong, {how}"


def _rate(rate: Mapping[str, float], *, is_learned: bool) -> str:
    words = f"{100 * rate['mean']:.1f} %"
    if is_learned:
        words += f" (90 % interval {100 * rate['lower']:.1f} % to {100 * rate['upper']:.1f} %)"
    return words


def list_words(audit: LabelAudit) -> str:
    """Say how long the list is and what is expected of it."""
    n, k = len(audit.row), audit.n_listed
    if k == 0:
        return (
            f"no row of {n}: of any list more than {100 * audit.fdr:g} % would be expected to be "
            "right (--fdr)"
        )
    return (
        f"{k} row{'s' * (k > 1)} of {n}, the most for which at most {100 * audit.fdr:g} % are "
        f"expected to be right after all (--fdr); expected here: {100 * audit.expected_fdr:.1f} %"
    )


def suspects_table(audit: LabelAudit, ids: Sequence[Any] | None, id_column: str | None) -> Table:
    """Show the first rows, those of the list in full ink."""
    has_classes = not np.array_equal(audit.p_wrong, audit.p_suggested)
    columns = ["row", *([id_column] if id_column else []), "recorded", "suggested", "P(wrong)"]
    if has_classes:
        columns.append("P(suggested)")
    table = plain_table(*(printable(name) for name in columns), "listed")
    n_text = 3 if id_column is None else 4
    for position in range(1, n_text):
        table.columns[position].justify = "left"
    for i in range(min(_N_SHOWN, len(audit.row))):
        named = [] if ids is None else [ids[i]]
        cells = [audit.row[i], *named, audit.recorded[i], audit.suggested[i]]
        cells.append(digits3(float(audit.p_wrong[i])))
        if has_classes:
            cells.append(digits3(float(audit.p_suggested[i])))
        is_listed = i < audit.n_listed
        texts = [Text(_short(cell)) for cell in (*cells, "yes" if is_listed else "no")]
        table.add_row(*texts, style="" if is_listed else "dim")
    return table


def rows_table(columns: Mapping[str, Any], n_text: int) -> Table:
    """Show named columns, the first ones text."""
    table = plain_table(*(printable(name) for name in columns), n_text=n_text)
    for row in zip(*(values.tolist() for values in columns.values()), strict=True):
        table.add_row(*(Text(_short(digits3(c) if isinstance(c, float) else c)) for c in row))
    return table


def _short(cell: object) -> str:
    words = printable(str(cell))
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"
