"""Half of a table: the methods on one data set, their table, the published figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reproduce.papers.gp_cells import Figures, Method, Repeat, column, run_method
from reproduce.papers.gp_rivals import has_r
from reproduce.papers.reproduction import Claim, Settings, mean_and_error

__all__ = ["Part", "Rows", "figures_table", "log_score_notes", "run_methods"]

Array = NDArray[np.float64]
# Counts of errors come out whole.
_DIGITS = 9
#: Of each method by its name, repeat by repeat.
Rows = Mapping[str, Sequence[Figures]]


@dataclass(frozen=True)
class Part:
    """What one data set says.

    Attributes
    ----------
    title : str
    unit : str
        Of the errors.
    scale : float
        What an error rate is multiplied by.
    rows : mapping of method to sequence of Figures
    claims : tuple of Claim
    published : mapping of method to float
        In the unit.
    not_run : mapping of method to float
        Published figures of methods that cannot be run, or not everywhere; the table leaves out
        those of methods that are in ``rows``.
    """

    title: str
    unit: str
    scale: float
    rows: Rows
    claims: tuple[Claim, ...] = ()
    published: Mapping[str, float] = field(default_factory=dict)
    not_run: Mapping[str, float] = field(default_factory=dict)

    @property
    def errors(self) -> dict[str, Array]:
        """Errors of each method, repeat by repeat, in the unit."""
        return {
            name: np.round(self.scale * column(figures, "error_rate"), _DIGITS)
            for name, figures in self.rows.items()
        }


def run_methods(
    table: str,
    data: str,
    methods: Sequence[Method],
    repeats: Sequence[Repeat],
    settings: Settings,
) -> dict[str, list[Figures]]:
    """Run the methods on every repeat, or read what was found before.

    Methods that are not random are run once on splits that come again; those of R are left out
    where it is missing.
    """
    rows = {}
    for method in methods:
        if settings.is_quick and not method.is_in_quick:
            continue
        if method.needs_r and not has_r():
            settings.tell(f"{method.name} is left out: no Rscript with the package earth")
            continue
        seen: list[Figures] = []
        for k, repeat in enumerate(repeats):
            if k > 0 and repeat.splits is repeats[0].splits and not method.is_random:
                break
            seen.append(run_method(table, data, method, repeat, settings))
        rows[method.name] = seen
    return rows


def figures_table(part: Part, *, number: str, has_seconds: bool = False) -> str:
    """Tabulate methods: errors, log score, seconds; beside them the published figures.

    Parameters
    ----------
    number : str
        Format of errors.
    has_seconds : bool
        Whether there is a column of CPU seconds a repeat.
    """
    heads = ["method", part.unit, "repeats", "log score"]
    heads += ["CPU s a repeat"] if has_seconds else []
    heads += ["published"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, errors in part.errors.items():
        figures = part.rows[name]
        cells = [name, _cell(errors, number), str(len(errors))]
        cells += [_cell(column(figures, "log_score"), ".3f")]
        cells += [f"{column(figures, 'cpu_seconds').mean():.3g}"] if has_seconds else []
        published = part.published.get(name, part.not_run.get(name))
        cells += ["-" if published is None else f"{published:g}"]
        lines.append("| " + " | ".join(cells) + " |")
    for name, figure in part.not_run.items():
        if name in part.rows:
            continue
        cells = [name, "not run", *["-"] * (len(heads) - 3), f"{figure:g}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(values: Array, number: str) -> str:
    mean, error = mean_and_error(values)
    return format(mean, number) + (f" ± {error:.2g}" if len(values) > 1 else "")


def log_score_notes(rows: Rows) -> tuple[str, ...]:
    """Return a line for each method."""
    notes = []
    for name, figures in rows.items():
        values = column(figures, "log_score")
        mean, error = mean_and_error(values)
        spread = f" +- {error:.3f}" if len(values) > 1 else ""
        notes.append(f"Log score of {name}: {mean:.4f}{spread}.")
    return tuple(notes)
