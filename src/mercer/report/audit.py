"""The part of a report that lists the rows whose label or value is probably wrong."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mercer import plot
from mercer.posterior.labels import Audit, TargetAudit, audit_of
from mercer.report.section import Cell, Figure, NamedTable, Section, count, number, percent, svg

_FEWEST, _MOST = 15, 50  # rows of the table
_MOST_DRAWN: Final = 1000  # rows that are not listed; more would be one blot


def errors_words(estimator: Any) -> str:
    """Say that a regressor allows for wrong values, if it does."""
    if not hasattr(estimator, "target_error_proba_"):
        return ""
    return (
        "Some values may be wrong, by errors of at least three times the noise: which ones was "
        f"drawn along ({percent(estimator.contamination_rate_)} of them on average), and the "
        "function was learned in spite of them. "
    )


def wrong_values(estimator: Any, audit: Audit | None) -> tuple[Section, ...]:
    """Return the section on wrong values, where there may be some.

    Without ``audit`` the list is that of 10 % expected false ones.
    """
    if audit is None and hasattr(estimator, "target_error_proba_"):
        audit = audit_of(estimator)
    return () if audit is None else (audit_section(audit),)


def audit_section(audit: Audit) -> Section:
    """Say how many rows are listed, and what that means; draw all, and name the first."""
    is_number = isinstance(audit, TargetAudit)
    noun = "value" if is_number else "label"
    n, k = len(audit.names), audit.n_listed
    listed = (
        f"The list of rows to check has {count(k)} of {count(n)}: the longest of which at most "
        f"{percent(audit.fdr, 0)} are expected to be right after all "
        f"(here {percent(audit.expected_fdr)})."
    )
    if k == 0:
        listed = (
            f"No row is listed: even of the most suspicious ones more than {percent(audit.fdr, 0)} "
            "would be expected to be right."
        )
        if (wider := audit.wider()) is not None:
            listed += f" With `--fdr {wider[0]:g}` the list has {count(wider[1])}."
        listed += f" Yet {audit.of_first()}: they are worth a look."
    text = (
        f"{listed} Over all rows {audit.p_wrong.sum():.1f} {noun}s are expected to be wrong; which "
        "ones is known only of those with a high probability.",
        f"A {noun} is suspicious where the other rows, by their inputs, would have it otherwise. "
        "That is a reason to look, not a proof: rare cases look like errors, too.",
    )
    figures = [
        Figure(
            svg(plot.label_errors, 3.4, audit.p_wrong, fdr=audit.fdr, noun=noun),
            f"Probability that the {noun} of a row is wrong, the largest first."
            + (" Shaded: the list." if k else ""),
            f"Sorted probabilities of wrong {noun}s; the largest is {percent(audit.p_wrong[0])}, "
            f"{count(k)} rows are listed.",
        )
    ]
    if isinstance(audit, TargetAudit):
        figures.append(_values_figure(audit))
    title = f"{noun.capitalize()}s that are probably wrong"
    caution = tuple(f"{words}." for words in (audit.caution(),) if words)
    return Section(
        "labels", title, text, figures=tuple(figures), tables=(_suspects(audit),), warnings=caution
    )


def _values_figure(audit: TargetAudit) -> Figure:
    shown = np.arange(min(len(audit.names), audit.n_listed + _MOST_DRAWN))
    given = (audit.recorded, audit.expected, audit.expected_std, audit.is_listed)
    return Figure(
        svg(plot.target_errors, 4.6, *(each[shown] for each in given)),
        "Each row as recorded, against what the other rows would have there, with two standard "
        "deviations of the listed ones. Listed rows in the warning colour.",
        "Recorded against expected values; listed rows are marked.",
    )


def _suspects(audit: Audit) -> NamedTable:
    names = audit.names.without_ids().columns()
    rows = []
    for i in range(audit.n_shown(max(_FEWEST, min(audit.n_listed, _MOST)))):
        is_listed = "yes" if i < audit.n_listed else "no"
        rows.append(
            (
                *(_name_cell(values[i]) for values in names.values()),
                *(_cell(name, value) for name, value in audit.cells(i).items()),
                Cell(is_listed, is_listed),
            )
        )
    caption = f"The {len(rows)} most suspicious rows. {audit.names.explanation}"
    return NamedTable(caption, (*names, *audit.cells(0), "listed"), tuple(rows), is_open=True)


def _cell(name: str, value: Any) -> Cell:
    """Show a text, a probability (called P(...)), or another number."""
    if not isinstance(value, float):
        return Cell(value, value)
    return Cell(percent(value) if name.startswith("P(") else number(value, 5), value)


def _name_cell(name: Any) -> Cell:
    """Show the number of a row, sorted as one, or its file."""
    return Cell(str(name), float(name) if isinstance(name, np.integer) else str(name))
