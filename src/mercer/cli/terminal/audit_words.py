"""What `audit` and `query` say: the noise rate, the list, tables of rows."""

from __future__ import annotations

from collections.abc import Mapping
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
    """Say the noise rate, learned or given, and why it is one or one for each class."""
    found = noise_json(estimator)
    is_learned = found["is_learned"]
    why = "".join(f"; {note}" for note in estimator.notes_ if note.startswith("noise by evidence"))
    if "by_class" not in found:
        how = _how(found, is_learned=is_learned)
        return f"{_share(found)} of the labels are wrong ({how}){why}"
    parts = (
        f"{_share(rate)} of those that are {quoted(name)} ({_how(rate, is_learned=is_learned)})"
        for name, rate in found["by_class"].items()
    )
    return f"recorded wrong are {', '.join(parts)}{why}"


def _share(rate: Mapping[str, float]) -> str:
    return f"{100 * rate['mean']:.1f} %"


def _how(rate: Mapping[str, float], *, is_learned: bool) -> str:
    if not is_learned:
        return "given"
    low, high = 100 * rate["lower"], 100 * rate["upper"]
    return f"learned; 90 % interval {low:.1f} to {high:.1f} %"


def list_words(audit: LabelAudit) -> str:
    """Say how long the list is and what is expected of it."""
    n, k = len(audit.names), audit.n_listed
    if k == 0:
        return (
            f"no row of {n}: of any list more than {100 * audit.fdr:g} % would be expected to be "
            f"right (--fdr {audit.fdr:g})"
        )
    return (
        f"{k} row{'s' * (k > 1)} of {n}, of which {100 * audit.expected_fdr:.1f} % are expected to "
        f"be right after all (--fdr {audit.fdr:g} allows {100 * audit.fdr:g} %)"
    )


def suspects_table(audit: LabelAudit) -> Table:
    """Show the first rows, as far as they are suspicious; those of the list in full ink."""
    has_others = audit.n_classes > 2  # with two, the other label is right where this is wrong
    names = audit.names.columns()
    columns = [*names, "recorded", "suggested", "P(wrong)"]
    if has_others:
        columns.append("P(suggested)")
    table = plain_table(*(printable(name) for name in columns), "listed")
    for name, column in zip(columns, table.columns, strict=False):
        column.justify = "right" if name in ("row", "P(wrong)") else "left"
    for i in range(audit.n_shown(_N_SHOWN)):
        cells = [*(values[i] for values in names.values()), audit.recorded[i], audit.suggested[i]]
        cells.append(f"{audit.p_wrong[i]:.3f}")
        if has_others:
            cells.append(f"{audit.p_suggested[i]:.3f}")
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
