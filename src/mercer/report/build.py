"""A report from a fitted estimator: which sections there are, in which order, and the headline."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mercer.data.frame import TableFacts
from mercer.data.row_names import RowNames
from mercer.errors import UsageError
from mercer.estimation.cross_validate import Result
from mercer.estimation.inspection import (
    Inputs,
    Inspection,
    effects_of,
    importance_of,
    permuted_losses,
    plan_look,
)
from mercer.estimation.tasks import known_rows, task_of
from mercer.posterior.evaluation import AnyEvaluation, Provenance
from mercer.posterior.label_errors import Audit, TargetAudit
from mercer.report import (
    answers,
    basis,
    gp,
    spectral,
    sphere,
    stacking,
)
from mercer.report.chains import (
    chains_section,
    diagnostics_section,
    fit_section,
    particles_section,
    reproduce_section,
)
from mercer.report.held_out import class_sections, class_tiles, number_sections, number_tiles
from mercer.report.html import render, write_report
from mercer.report.section import Report, Section, Tile, count, percent


@dataclass(frozen=True)
class _Method:
    """What a report says about one method and no other."""

    title: str
    glossary: str
    describe: Callable[[Any], tuple[str, ...]]
    sections: Callable[[Any, Audit | None], tuple[Section, ...]]


_METHODS: Final = {
    "GPClassifier": _Method(
        gp.TITLE, gp.GLOSSARY, gp.describe, lambda model, _: gp.sections(model)
    ),
    "GPRegressor": _Method(
        gp.TITLE_OF_NUMBERS,
        gp.GLOSSARY_OF_NUMBERS,
        gp.describe_numbers,
        gp.number_sections,
    ),
    "KernelGibbsClassifier": _Method(
        sphere.TITLE, sphere.GLOSSARY, sphere.describe, sphere.sections
    ),
    "SequentialKernelRegressor": _Method(
        basis.TITLE, basis.GLOSSARY, basis.describe, lambda model, _: basis.sections(model)
    ),
    "SequentialKernelClassifier": _Method(
        basis.TITLE_OF_CLASSES,
        basis.GLOSSARY_OF_CLASSES,
        basis.describe_classes,
        lambda model, _: basis.class_sections(model),
    ),
    "BaNKRegressor": _Method(
        spectral.TITLE,
        spectral.GLOSSARY,
        spectral.describe,
        lambda model, _: spectral.sections(model),
    ),
    "BaNKClassifier": _Method(
        spectral.TITLE_OF_CLASSES,
        spectral.GLOSSARY_OF_CLASSES,
        spectral.describe_classes,
        lambda model, _: spectral.class_sections(model),
    ),
    **{
        name: _Method(
            stacking.TITLE,
            stacking.GLOSSARY,
            stacking.describe,
            lambda model, _: stacking.sections(model),
        )
        for name in ("MercerClassifier", "MercerRegressor")
    },
}


@dataclass(frozen=True)
class _HeldOut:
    """What a report says of held-out rows of one task."""

    sections: Callable[[Any], tuple[Section, ...]]  # of an evaluation, or None
    tiles: Callable[[Any], tuple[Tile, ...]]  # of an evaluation


_HELD_OUT: Final = {
    "classification": _HeldOut(class_sections, class_tiles),
    "regression": _HeldOut(number_sections, number_tiles),
}


def build_report(
    estimator: Any,
    *,
    evaluation: AnyEvaluation | None,
    provenance: Provenance | None,
    audit: Audit | None = None,
    next_step: tuple[str, str] = ("", ""),
    inspection: Inspection | None = None,
) -> Report:
    """Put together the report of a fitted estimator; a `UsageError` if there is none for its kind.

    Without an evaluation the report says that there are no held-out scores, without a provenance
    that it is not known how the model came about. With an audit, its section comes
    first, and absent scores are no lack. ``next_step`` is words and the command after them, to run
    next; shown with the scores. ``inspection`` is what was seen of rows and inputs; None leaves out
    what needs it.
    """
    kind = type(estimator).__name__
    if kind not in _METHODS:
        raise UsageError(f"there is no report for {kind}, only for {', '.join(_METHODS)}")
    method, draws = _METHODS[kind], estimator.posterior_
    held_out = _HELD_OUT[task_of(estimator).name]
    is_scored = audit is None or evaluation is not None
    sections = (
        *(_proposing(held_out.sections(evaluation), next_step) if is_scored else ()),
        *(answers.answer_sections(evaluation, inspection) if is_scored else ()),
        fit_section(estimator, method.describe(estimator), provenance),
        *method.sections(estimator, audit),
        particles_section(estimator) if draws.is_weighted else chains_section(estimator),
        diagnostics_section(estimator, method.glossary),
        reproduce_section(estimator, provenance),
    )
    title = method.title
    if audit is not None:
        title = f"Audit of {'values' if isinstance(audit, TargetAudit) else 'labels'}: {title}"
    if audit is None:
        tiles = _tiles(estimator, evaluation, held_out.tiles)
    else:
        tiles = _audit_tiles(estimator, audit)
    return Report(title, _subtitle(provenance), tiles, sections)


def inspect_rows(
    estimator: Any,
    X: NDArray[np.float64],
    y: NDArray[Any],
    inputs: Inputs,
    names: RowNames,
    table: TableFacts | None = None,
) -> Inspection:
    """See which inputs decide on rows (m, d) with targets (m,) as `Task.encode` has them.

    Fewer than two rows show nothing.
    """
    if len(y) < 2:
        return Inspection(names)
    task = task_of(estimator)
    classes = tuple(estimator.classes_.tolist()) if task.is_stratified else ()
    look = plan_look(inputs, X, y, n_rows=len(y), n_classes=len(classes), entropy=0)
    increases = permuted_losses(estimator, X, y, look)
    importance = importance_of(look, [increases], is_classes=task.is_stratified)
    order = importance.order.tolist()
    effects = effects_of(estimator, X, look.inputs, order=order, classes=classes)
    return Inspection(names, importance, effects, table)


def save_report(estimator: Any, path: str | os.PathLike[str], X: Any = None, y: Any = None) -> None:
    """Write the report of a fitted estimator, scored on held-out rows if there are any.

    ``X`` is an array or frame (m, d), ``y`` (m,) its targets; rows with a label that was not in
    training are left out. A `UsageError` where only one of them is given, or no label is known.
    """
    if (X is None) != (y is None):
        raise UsageError("give both X_test and y_test, or neither")
    evaluation, inspection = None, None
    if X is not None:
        task = task_of(estimator)
        rows, known, classes, positions = known_rows(estimator, X, y)
        held = task.answer(estimator, rows, known, float("nan"))
        result = Result(type(estimator).__name__, False, (held,), 0.0, task)
        evaluation = task.evaluate(f"{len(rows)} rows that were given", classes, [result])
        names = RowNames.positions(len(np.asarray(y))).take(positions)
        inspection = inspect_rows(estimator, rows, known, estimator._inputs(), names)
    built = build_report(estimator, evaluation=evaluation, provenance=None, inspection=inspection)
    write_report(Path(path), render(built))


def _proposing(sections: tuple[Section, ...], step: tuple[str, str]) -> tuple[Section, ...]:
    """Let the section of the scores, the first, end with what to run next."""
    scores, *others = sections
    sentence, command = step
    if not command:
        return sections
    return (replace(scores, text=(*scores.text, sentence), command=command), *others)


def _subtitle(provenance: Provenance | None) -> str:
    if provenance is None:
        return ""
    rows, inputs = count(provenance.n_rows), count(provenance.n_inputs)
    return f"{provenance.target} in {provenance.source} · {rows} rows · {inputs} inputs"


def _sampling_tile(estimator: Any) -> Tile:
    n_warnings, draws = len(estimator.diagnostics_.warnings), estimator.posterior_
    is_population = draws.is_weighted and estimator.diagnostics_.n_evaluations is None
    unit = "particles" if is_population else "weighted draws" if draws.is_weighted else "draws"
    return Tile(
        "Sampling",
        "no warnings" if n_warnings == 0 else f"{n_warnings} warning{'s' * (n_warnings > 1)}",
        f"{count(draws.n_total)} {unit}, see Diagnostics",
        needs_attention=n_warnings > 0,
    )


def _audit_tiles(estimator: Any, audit: Audit) -> tuple[Tile, ...]:
    listed = f"of {count(len(audit.names))}"
    if audit.n_listed:
        listed += f"; {percent(audit.expected_fdr)} of them expected to be right"
    noun = "Values" if isinstance(audit, TargetAudit) else "Labels"
    wrong = Tile(f"{noun} wrong", percent(float(audit.p_wrong.mean())), "of all rows, expected")
    tiles = (Tile("Rows to check", count(audit.n_listed), listed), wrong)
    return (*tiles, _sampling_tile(estimator))


def _tiles(
    estimator: Any, evaluation: AnyEvaluation | None, tiles: Callable[[Any], tuple[Tile, ...]]
) -> tuple[Tile, ...]:
    sampling = _sampling_tile(estimator)
    if evaluation is None:
        return (Tile("Held-out scores", "none", "see Scores", needs_attention=True), sampling)
    return (*tiles(evaluation), sampling)
