"""The first and the last section: what was fitted on what, and how to do it again."""

from __future__ import annotations

from typing import Any

from mercer.posterior.draws import Draws
from mercer.posterior.evaluation import Provenance
from mercer.report.section import Cell, NamedTable, Section
from mercer.report.words import count, duration, listing

__all__ = ["fit_section", "reproduce_section"]

_UNKNOWN = "The model does not record where its data came from or which command made it."


def fit_section(
    estimator: Any, description: tuple[str, ...], provenance: Provenance | None
) -> Section:
    """Build the section that says what was fitted on what."""
    draws = estimator.posterior_
    sampled = draws.size_words if draws.is_weighted else _chains_words(draws)
    classes = [str(label) for label in getattr(estimator, "classes_", ())]
    told = [("Classes", listing(classes))] if classes else []
    posterior = ("Posterior", sampled)
    facts = [*told, posterior]
    text = description
    if provenance is None:
        text = (*description, _UNKNOWN)
    else:
        inputs = f"{provenance.n_inputs}: {listing(provenance.input_names, most=20)}"
        facts = [
            ("Data", provenance.source),
            ("Target", provenance.target),
            *told,
            ("Rows", count(provenance.n_rows)),
            ("Inputs", inputs),
            posterior,
            ("Fitted", f"{provenance.created}, in {duration(provenance.seconds)}"),
        ]
        facts += [("Notes" if i == 0 else "", note) for i, note in enumerate(provenance.notes)]
    table = _pairs("The fit at a glance.", facts)
    return Section("fit", "What was fitted on what", text, tables=(table,))


def _chains_words(draws: Draws) -> str:
    if draws.n_chains == 1:
        return f"{count(draws.n_total)} draws of 1 chain"
    return f"{count(draws.n_total)} draws: {draws.n_chains} chains of {count(draws.n_draws)}"


def reproduce_section(estimator: Any, provenance: Provenance | None) -> Section:
    """Build the section with the command, the seed, the settings and the versions."""
    title = "How to reproduce this"
    settings = [(name, repr(value)) for name, value in sorted(estimator.get_params().items())]
    tables = [_pairs(f"Settings of {type(estimator).__name__}.", settings)]
    if provenance is None:
        return Section("reproduce", title, (_UNKNOWN,), tables=tuple(tables))
    text = (
        f"Run this in the folder it was run in before. With seed {provenance.seed}, the same data, "
        "the same versions and the same kind of machine, it gives the same numbers to the last "
        "bit; on another machine the draws may differ, and the conclusions should not.",
    )
    tables.append(_pairs("Versions it was made with.", list(provenance.versions)))
    return Section("reproduce", title, text, tables=tuple(tables), command=provenance.command)


def _pairs(caption: str, pairs: list[tuple[str, str]]) -> NamedTable:
    rows = tuple((Cell(name, name), Cell(value, value)) for name, value in pairs)
    return NamedTable(caption, ("", ""), rows, is_sortable=False)
