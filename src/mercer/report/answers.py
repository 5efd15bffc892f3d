"""What a person asks of a model: which inputs decide."""

from __future__ import annotations

import math

import numpy as np

from mercer.estimation.inspection import Importance, Inspection
from mercer.report.figures import importance_svg
from mercer.report.section import Cell, Figure, NamedTable, Section, column, count, listing

_MOST_NAMED = 6


def answer_sections(inspection: Inspection | None) -> tuple[Section, ...]:
    """Return what was seen of rows and inputs; nothing where nobody looked."""
    if inspection is None or inspection.importance is None:
        return ()
    return (importance_section(inspection.importance),)


# What decides.


def importance_section(found: Importance) -> Section:
    """Build the section of permutation importance."""
    order = found.order
    is_sure = found.log_score > 2.0 * found.log_score_error
    sure = [found.names[j] for j in order if is_sure[j]]
    n_inputs = len(found.names)
    rest = n_inputs - len(sure)
    if sure:
        words = (
            f"{listing([f'“{name}”' for name in sure], _MOST_NAMED)} "
            f"{'decide' if len(sure) > 1 else 'decides'}"
        )
        others = f"; of the other {rest} none is seen to matter" if rest > 1 else ""
        words += (
            f": without {'any of them' if len(sure) > 1 else 'it'} predictions get worse{others}."
        )
    else:
        words = "Without any single input predictions get no worse than chance would make them."
    limits = f"Measured on {count(found.n_rows)} held-out rows, {found.n_repeats} times each"
    if found.n_left_out:
        limits += (
            f", of the {n_inputs} inputs that by themselves tell most of the target; "
            f"{found.n_left_out} more were not measured"
        )
    text = (
        words,
        "Each input in turn takes, in every row, its value from another held-out row: what it said "
        "of this row is lost, and the log score gets worse by as much as the model relied on it. "
        f"{limits}.",
        "Inputs that say nearly the same cover for one another: each of them then looks as if it "
        "did not matter, while all of them together may. And what decides in the model need not "
        "cause anything in the world.",
    )
    figure = Figure(
        importance_svg(found),
        "Points: log score lost without the input, a mean over rows. Bars: two standard errors to "
        "each side, each row compared with itself. Small points: single repeats. A bar that "
        "reaches zero may be chance.",
        "Importance of inputs, the greatest first: "
        f"{listing([found.names[j] for j in order], _MOST_NAMED)}.",
    )
    return Section(
        "importance", "What decides?", text, figures=(figure,), tables=(_importance_table(found),)
    )


def _importance_table(found: Importance) -> NamedTable:
    order, scale = found.order, 100.0 if found.is_classes else 1.0
    columns = [
        [float(x) for x in values[order]]
        for values in (
            found.log_score,
            found.log_score_error,
            np.ptp(found.repeats, axis=0),
            scale * found.error,
            scale * found.error_error,
        )
    ]
    texts = [column(values) for values in columns]
    rows = [
        (
            Cell(found.names[j], found.names[j]),
            *(
                Cell(text[i], values[i] if math.isfinite(values[i]) else "")
                for text, values in zip(texts, columns, strict=True)
            ),
        )
        for i, j in enumerate(order)
    ]
    error = "errors more, points" if found.is_classes else "squared error more"
    headings = ("input", "log score lost", "±", "range of repeats", error, "± ")
    caption = (
        "What is lost where the input is another row's: in log score, nats a row, and in "
        f"{'percentage points of rows that err' if found.is_classes else 'mean squared error'}. "
        "±: one standard error over rows, paired."
    )
    return NamedTable(caption, headings, tuple(rows))
