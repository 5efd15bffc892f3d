"""The fit of a report: what was fitted, whether chains or particles agree, diagnostics."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mercer import plot
from mercer.data.files import listing
from mercer.posterior.diagnostics import Diagnostics
from mercer.posterior.draws import Draws
from mercer.posterior.evaluation import Provenance, is_warning
from mercer.report.section import (
    Cell,
    Figure,
    NamedTable,
    Section,
    count,
    duration,
    from_table,
    percent,
    svg,
)

# The first and the last section: what was fitted on what, and how to do it again.

_UNKNOWN = "The model does not record where its data came from or which command made it."


def fit_section(
    estimator: Any, description: tuple[str, ...], provenance: Provenance | None
) -> Section:
    """Build the section that says what was fitted on what."""
    draws = estimator.posterior_
    is_run = not draws.is_weighted and draws.n_total > 1
    sampled = _chains_words(draws) if is_run else draws.size_words
    classes = [str(label) for label in getattr(estimator, "classes_", ())]
    told = [("Classes", listing(classes))] if classes else []
    posterior = ("Posterior", sampled)
    title = "What was fitted on what"
    if provenance is None:
        table = _pairs("The fit at a glance.", [*told, posterior])
        return Section("fit", title, (*description, _UNKNOWN), tables=(table,))
    facts = [
        ("Data", provenance.source),
        ("Target", provenance.target),
        *told,
        ("Rows", count(provenance.n_rows)),
        ("Inputs", f"{provenance.n_inputs}: {listing(provenance.input_names, most=20)}"),
        posterior,
        ("Fitted", f"{provenance.created}, in {duration(provenance.seconds)}"),
    ]
    notes = [note for note in provenance.notes if not is_warning(note)]
    facts += [("Notes" if i == 0 else "", note) for i, note in enumerate(notes)]
    table, warnings = _pairs("The fit at a glance.", facts), filter(is_warning, provenance.notes)
    return Section("fit", title, description, tables=(table,), warnings=tuple(warnings))


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


# The section of a report on a population of weighted particles, in the place of chains.

_N_SHOWN: Final = 6  # panels


def particles_section(estimator: Any) -> Section:
    """Build the section: what is known of each monitored quantity, as the weights have it."""
    draws, diagnostics = estimator.posterior_, estimator.diagnostics_
    names = [each for name in draws.monitored for each in draws.entry_names(name)][:_N_SHOWN]
    if diagnostics.n_evaluations is not None:
        return _importance_section(draws, diagnostics, names)
    text = (
        f"The posterior is held by {count(draws.n_total)} particles: each is a set of centres with "
        "a length scale, and has a weight. The drawings show how probable each value is.",
        "Rows are learned one after the other. Particles that predicted a row well gain weight; "
        "when few carry most of it, the light ones are replaced by copies of the heavy ones, and "
        "all are moved.",
    )
    words = "Probability of each value, as the weights of the particles have it."
    return Section("chains", "Particles", text, figures=(_bars_figure(draws, names, words),))


def _bars_figure(draws: Draws, names: list[str], words: str) -> Figure:
    drawing = svg(plot.particles, 0.4 + 1.9 * -(-len(names) // 3), draws, names)
    return Figure(drawing, words, f"Bars of {', '.join(names)}.")


def _importance_section(draws: Draws, diagnostics: Diagnostics, names: list[str]) -> Section:
    text = [
        f"The posterior was evaluated at {count(diagnostics.n_evaluations or 0)} settings, drawn "
        "from a broad law around the most probable one; each has a weight: how much more probable "
        "it is than that law has it. The drawings show how probable each value is.",
        f"The weighted settings are worth {diagnostics.effective_size or 0:.0f} equal ones. "
        "Pareto's k-hat says how heavy the tail of the weights is: below 0.7 averages can be "
        "trusted"
        + (f"; here it is {diagnostics.k_hat:.2f}." if diagnostics.k_hat is not None else "."),
    ]
    if diagnostics.prediction_error is not None:  # a file of before says nothing of it
        text.append(
            "With other random numbers predictions at training rows would change by about "
            f"{diagnostics.prediction_error:.2g} (their Monte Carlo standard error), at most by "
            f"about {diagnostics.largest_prediction_error:.2g}."
        )
    figure = _bars_figure(draws, names, "Probability of each value, as the weights have it.")
    return Section("chains", "Weighted draws", tuple(text), figures=(figure,))


def weights_text(diagnostics: Diagnostics) -> tuple[str, ...]:
    """Say in words what the diagnostics of weighted particles mean."""
    none = (
        "No problem was found. (No check can prove that the draws have found all of the posterior.)"
    )
    return (
        _found(diagnostics, none),
        "The effective sample size (ESS) is how many draws of equal weight these are worth. "
        "The Monte Carlo standard error (mcse) is how far a mean may be off because there are "
        "finitely many.",
    )


_TITLE: Final = "Trace and rank plots"
_HEADINGS: Final = {
    "name": "quantity",
    "ess_bulk": "ESS (bulk)",
    "ess_tail": "ESS (tail)",
    "rhat": "R-hat",
    "rhat_limit": "its limit",
}


def chains_section(estimator: Any) -> Section:
    """Build the section of trace and rank plots, of the quantities that mix worst."""
    draws: Draws = estimator.posterior_
    names = _slowest(estimator.diagnostics_, draws)
    if not names:
        other = "What was monitored is not among the draws that the model holds: see Diagnostics."
        return Section("chains", _TITLE, (other,))
    n_chains, length = draws.n_chains, count(draws.n_draws)
    shown = (
        f"Shown are the {len(names)} monitored quantities with the fewest effective draws: where "
        "these look well, the others do. Healthy chains wander quickly around one level, on top "
        "of each other."
    )
    if len(np.unique(draws.variables.get("model", np.zeros(1)))) > 1:
        shown += (
            " The draws of a chain come from several models, one after the other: where one ends, "
            "the level may step."
        )
    trace = Figure(
        svg(plot.trace, 0.6 + 0.85 * len(names), draws, names),
        "Trace: the value of each quantity, draw after draw; one colour a chain.",
        f"Trace plots of {', '.join(names)}; chains: {n_chains}.",
    )
    if n_chains == 1:
        text = (
            f"One chain of {length} draws. {shown}",
            "A rank plot compares chains with each other; of a single chain there is none. Two "
            "chains or more are needed to see whether they agree.",
        )
        return Section("chains", _TITLE, text, figures=(trace,))
    ranks = Figure(
        svg(plot.ranks, 0.6 + 0.85 * len(names), draws, names),
        "Ranks: how often each chain visits low and high values. Grey: the range of chance, "
        "for draws that are independent.",
        f"Rank histograms of {', '.join(names)}; chains: {n_chains}.",
    )
    text = (
        f"{n_chains} chains of {length} draws each. {shown}",
        "Chains that agree take high and low ranks equally often: every line of the rank plot "
        "stays level, mostly within the grey range of chance.",
    )
    return Section("chains", _TITLE, text, figures=(trace, ranks))


def _slowest(diagnostics: Diagnostics, draws: Draws) -> list[str]:
    """Return the drawn names with the smallest bulk ESS (none counts as smallest), worst first."""
    pairs = zip(diagnostics.table.column("ess_bulk"), diagnostics.table.column("name"), strict=True)
    drawn = {entry for name in draws.variables for entry in draws.entry_names(name)}
    worst_first = sorted(pairs, key=lambda pair: -1.0 if pair[0] is None else float(pair[0]))
    names = [str(name) for _, name in worst_first]
    return [name for name in names if name in drawn][:_N_SHOWN]


def diagnostics_section(estimator: Any, glossary: str) -> Section:
    """Build the section of the diagnostics; the glossary says what the quantities are."""
    diagnostics: Diagnostics = estimator.diagnostics_
    if not diagnostics.table.rows:
        point = (
            "Nothing was sampled: the search for the most probable setting has "
            + ("not converged." if diagnostics.warnings else "converged."),
        )
        return Section("diagnostics", "Diagnostics", point, warnings=diagnostics.warnings)
    is_weighted = estimator.posterior_.is_weighted
    text = weights_text(diagnostics) if is_weighted else _chains_text(diagnostics)
    table = from_table(
        f"All monitored quantities. {glossary}",
        diagnostics.table,
        headings=_HEADINGS,
        decimals={"ess_bulk": 0, "ess_tail": 0, "rhat": 3, "rhat_limit": 3},
    )
    return Section(
        "diagnostics",
        "Diagnostics",
        text,
        warnings=diagnostics.warnings,
        points=() if is_weighted else _points(diagnostics),
        tables=(table,),
    )


def _chains_text(diagnostics: Diagnostics) -> tuple[str, ...]:
    none = (
        "No problem was found: the chains agree with each other, and there are enough draws "
        "for the numbers in this report. (No check can prove that chains have found all of "
        "the posterior.)"
    )
    return (
        _found(diagnostics, none),
        "R-hat compares the chains with each other: it is 1 when they agree. Its limit is wider "
        "the fewer independent draws there are; chains that agree pass any of the limits in at "
        "most 1 % of all fits. The effective sample size (ESS) is how many independent draws these "
        "are worth: bulk for means, tail for the ends of intervals; 400 is wanted, or a quarter of "
        "the draws where they are few. The Monte Carlo standard error (mcse) is how far a mean may "
        "be off because there are finitely many draws.",
    )


def _found(diagnostics: Diagnostics, none: str) -> str:
    """Say how many problems there are; ``none`` where there are none."""
    if diagnostics.is_converged:
        return none
    n_found = len(diagnostics.warnings)
    noun = "problem was" if n_found == 1 else "problems were"
    return f"{n_found} {noun} found. Until solved, take the numbers of this report as provisional."


def _points(diagnostics: Diagnostics) -> tuple[str, ...]:
    points = []
    if diagnostics.max_rhat is not None:
        points.append(f"largest R-hat: {diagnostics.max_rhat:.3f}")
    if diagnostics.min_ess is not None:
        points.append(f"smallest effective sample size: {count(round(diagnostics.min_ess))}")
    if diagnostics.acceptance_rate is not None:
        points.append(f"proposals accepted: {percent(diagnostics.acceptance_rate, 0)}")
    if diagnostics.has_trajectories:
        points.append(f"divergent trajectories after warm-up: {diagnostics.n_divergent}")
    if diagnostics.bfmi:
        points.append(
            f"energy (BFMI, above 0.3 is wanted): {min(diagnostics.bfmi):.2f} in the worst chain"
        )
    return tuple(points)
