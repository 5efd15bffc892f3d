"""A report from a fitted estimator: which sections there are, in which order, and the headline."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, Final

import numpy as np
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape
from numpy.typing import NDArray

from mercer.data.frame import Inputs, TableFacts
from mercer.data.row_names import RowNames
from mercer.errors import UsageError
from mercer.estimation.cross_validate import Result
from mercer.estimation.inspection import (
    Inspection,
    effects_of,
    importance_of,
    permuted_losses,
    plan_look,
)
from mercer.estimation.tasks import known_rows, task_of
from mercer.plot.style import PALETTE
from mercer.posterior.container import write_atomically
from mercer.posterior.evaluation import NO_VERDICT, AnyEvaluation, Provenance
from mercer.posterior.labels import Audit, TargetAudit
from mercer.report import answers, basis, gp, spectral, sphere, stacking
from mercer.report.chains import (
    chains_section,
    diagnostics_section,
    fit_section,
    particles_section,
    reproduce_section,
)
from mercer.report.held_out import class_sections, class_tiles, number_sections, number_tiles
from mercer.report.section import Report, Section, Tile, count, percent


@dataclass(frozen=True)
class _Method:
    """What a report says about one method and no other."""

    title: str
    glossary: str
    describe: Callable[[Any], tuple[str, ...]]
    sections: Callable[[Any, Audit | None], tuple[Section, ...]]


_STACKING: Final = _Method(
    stacking.TITLE, stacking.GLOSSARY, stacking.describe, lambda model, _: stacking.sections(model)
)
_METHODS: Final = {
    "GPClassifier": _Method(
        gp.TITLE, gp.GLOSSARY, gp.describe, lambda model, _: gp.sections(model)
    ),
    "GPRegressor": _Method(
        gp.TITLE_OF_NUMBERS, gp.GLOSSARY_OF_NUMBERS, gp.describe_numbers, gp.number_sections
    ),
    "KernelGibbsClassifier": _Method(
        sphere.TITLE, sphere.GLOSSARY, sphere.describe, sphere.sections
    ),
    "SequentialKernelRegressor": _Method(
        basis.TITLE, basis.GLOSSARY, basis.describe, lambda model, _: basis.sections(model)
    ),
    "SequentialKernelClassifier": _Method(
        basis.TITLE_OF_CLASSES, basis.GLOSSARY_OF_CLASSES, basis.describe_classes,
        lambda model, _: basis.class_sections(model),
    ),
    "BaNKRegressor": _Method(
        spectral.TITLE, spectral.GLOSSARY, spectral.describe, spectral.sections
    ),
    "BaNKClassifier": _Method(
        spectral.TITLE_OF_CLASSES, spectral.GLOSSARY_OF_CLASSES, spectral.describe_classes,
        spectral.sections,
    ),
    "MercerClassifier": _STACKING,
    "MercerRegressor": _STACKING,
}  # fmt: skip
# Of each task the sections on held-out rows, of an evaluation or None, and the headline numbers.
_OfHeldOut = tuple[Callable[[Any], tuple[Section, ...]], Callable[[Any], tuple[Tile, ...]]]
_HELD_OUT: Final[dict[str, _OfHeldOut]] = {
    "classification": (class_sections, class_tiles),
    "regression": (number_sections, number_tiles),
}


def build_report(
    estimator: Any,
    *,
    evaluation: AnyEvaluation | None = None,
    provenance: Provenance | None,
    audit: Audit | None = None,
    next_step: tuple[str, str] | None = None,
    inspection: Inspection | None = None,
    outputs: Sequence[tuple[AnyEvaluation | None, Inspection | None]] = (),
) -> Report:
    """Put together the report of a fitted estimator; a `UsageError` if there is none for its kind.

    Without an evaluation the report says that there are no held-out scores, without a provenance
    that it is not known how the model came about. With an audit, its section comes
    first, and absent scores are no lack. ``next_step`` is words and the command after them, to run
    next; shown with the scores. ``inspection`` is what was seen of rows and inputs, and the steps
    that an audit proposes; None leaves out what needs it. ``outputs`` are, in the place of both, an
    evaluation and an inspection, or None, of each of several outputs, or of the only one.
    """
    if len(outputs) == 1:
        ((evaluation, inspection),) = outputs
    kind = type(estimator).__name__
    if kind not in _METHODS:
        raise UsageError(f"there is no report for {kind}, only for {', '.join(_METHODS)}")
    method, draws = _METHODS[kind], estimator.posterior_
    is_several = getattr(estimator, "n_outputs_", 1) > 1
    held_sections, held_tiles = _HELD_OUT["regression" if is_several else task_of(estimator).name]
    names = estimator.output_names_ if is_several and any(each for each, _ in outputs) else ()
    seen = list(outputs) if names else [(evaluation, inspection)]
    is_scored = audit is None or evaluation is not None
    steps = () if audit is None or inspection is None else inspection.steps
    of_method = method.sections(estimator, audit)
    draws_section = particles_section if draws.is_weighted else chains_section
    first, later = of_method[: audit is not None], of_method[audit is not None :]
    told = [(*held_sections(each), *answers.answer_sections(each, looked)) for each, looked in seen]
    if names:
        told = [_of_output(k, *each) for k, each in enumerate(zip(names, told, strict=True))]
    can_tell = bool(estimator.standardizer_.scale.any())
    if not can_tell:
        told = [_without_verdict(each) for each in told]
    sections = (
        *(_proposing(sum(told, ()), next_step) if is_scored else ()),
        *first,
        *((answers.steps_section(steps),) if steps else ()),
        fit_section(estimator, method.describe(estimator), provenance),
        *later,
        *((draws_section(estimator),) if draws.n_total > 1 else ()),
        diagnostics_section(estimator, method.glossary),
        reproduce_section(estimator, provenance),
    )
    title = method.title
    if audit is not None:
        title = f"Audit of {'values' if isinstance(audit, TargetAudit) else 'labels'}: {title}"
    if audit is not None:
        tiles = _audit_tiles(audit)
    elif names:
        firsts = [(name, held_tiles(own)[0]) for name, (own, _) in zip(names, seen, strict=True)]
        tiles = tuple(replace(each, label=f"{name}: {each.label}") for name, each in firsts)
    elif evaluation is not None:
        first_tile, *others = held_tiles(evaluation)
        if not can_tell:
            first_tile = replace(first_tile, note="no input varies", needs_attention=False)
        tiles = (first_tile, *others)
    else:
        tiles = (Tile("Held-out scores", "none", "see Scores", needs_attention=True),)
    return Report(title, _subtitle(provenance), (*tiles, _sampling_tile(estimator)), sections)


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
    look = plan_look(
        inputs, X, y, n_rows=len(y), n_classes=len(classes), entropy=0, model=estimator
    )
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
    n = getattr(estimator, "n_outputs_", 1)
    found: list[tuple[AnyEvaluation, Inspection]] = []
    if X is not None and n == 1:
        found = [_seen(estimator, X, y)]
    elif X is not None:
        columns = np.atleast_2d(np.asarray(y).T)
        if len(columns) != n:
            raise UsageError(f"y needs a column for each of {n} outputs")
        found = [_seen(estimator.output(k), X, own) for k, own in enumerate(columns)]
    write_report(path, render(build_report(estimator, provenance=None, outputs=found)))


def _seen(estimator: Any, X: Any, y: Any) -> tuple[AnyEvaluation, Inspection]:
    """Score rows that were given, and see which inputs decide."""
    task = task_of(estimator)
    rows, known, classes, positions = known_rows(estimator, X, y)
    held = task.answer(estimator, rows, known, float("nan"))
    result = Result(type(estimator).__name__, False, (held,), 0.0, task)
    evaluation = task.evaluate(f"{len(rows)} rows that were given", classes, [result])
    names = RowNames.positions(len(np.asarray(y))).take(positions)
    return evaluation, inspect_rows(estimator, rows, known, estimator._inputs(), names)


def _proposing(sections: tuple[Section, ...], step: tuple[str, str] | None) -> tuple[Section, ...]:
    """Let the section of the scores, the first, end with what to run next."""
    if step is None:
        return sections
    (scores, *others), (sentence, command) = sections, step
    return (replace(scores, text=(*scores.text, sentence), command=command), *others)


def _without_verdict(sections: tuple[Section, ...]) -> tuple[Section, ...]:
    """Let the section of the scores, the first, compare nothing: all inputs are constant."""
    scores, *others = sections
    return (replace(scores, text=(*scores.text[:1], f"Verdict: {NO_VERDICT}.")), *others)


def _subtitle(provenance: Provenance | None) -> str:
    if provenance is None:
        return ""
    rows, inputs = count(provenance.n_rows), count(provenance.n_inputs)
    words = f"{inputs} input{'s' * (inputs != '1')}"
    return f"{provenance.target} in {provenance.source} · {rows} rows · {words}"


def _sampling_tile(estimator: Any) -> Tile:
    n_warnings, draws = len(estimator.diagnostics_.warnings), estimator.posterior_
    is_population = draws.is_weighted and estimator.diagnostics_.n_evaluations is None
    unit = "particles" if is_population else "weighted draws" if draws.is_weighted else "draws"
    size = f"{count(draws.n_total)} {unit}"
    return Tile(
        "Sampling",
        "no warnings" if n_warnings == 0 else f"{n_warnings} warning{'s' * (n_warnings > 1)}",
        f"{draws.size_words if draws.n_total == 1 else size}, see Diagnostics",
        needs_attention=n_warnings > 0,
    )


def _audit_tiles(audit: Audit) -> tuple[Tile, ...]:
    listed = f"of {count(len(audit.names))}; {audit.of_first()}"
    if audit.n_listed:
        listed = f"of {count(len(audit.names))}"
        listed += f"; {percent(audit.expected_fdr)} of them expected to be right"
    noun = "Values" if isinstance(audit, TargetAudit) else "Labels"
    wrong = Tile(f"{noun} wrong", percent(float(audit.p_wrong.mean())), "of all rows, expected")
    return Tile("Rows to check", count(audit.n_listed), listed), wrong


def _of_output(k: int, name: str, sections: tuple[Section, ...]) -> tuple[Section, ...]:
    """Let sections be of one of several outputs, whose name they bear."""
    return tuple(
        replace(each, key=f"{each.key}-{k}", title=f"{name}: {each.title}") for each in sections
    )


# Matplotlib's SVG made fit for a page: ids of its own, the page's colours, any width.


def inline(svg: str, prefix: str, alt: str) -> Markup:
    """Return an SVG element, drawn by `mercer.plot.style.to_svg`, for a page.

    Colours of the plots' palette become CSS variables (``--plot-ink``), so that the page can change
    them in the dark; ids get ``prefix``, unique in the page, so that no two figures share one;
    size, style sheet and description of the file's maker go away. ``alt`` says what is to be seen.
    """
    svg = svg[svg.index("<svg") :]
    svg = re.sub(
        r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->", "", svg, flags=re.S
    )
    box = re.search(r'viewBox="([^"]*)"', svg)
    assert box is not None  # Matplotlib always writes one
    width = box[1].split()[2]
    head = (
        f'<svg role="img" aria-label="{escape(alt)}" viewBox="{box[1]}" '
        f'style="--natural-width: {width}px">'
    )
    svg = head + svg[svg.index(">") + 1 :]
    return Markup(re.sub(r"<[^>]+>", lambda tag: _fit_tag(tag[0], prefix), svg))


def _fit_tag(tag: str, prefix: str) -> str:
    """Change ids and colours inside one tag; text between tags, already escaped, is left alone."""
    tag = re.sub(r'\bid="', f'id="{prefix}-', tag)
    tag = tag.replace("url(#", f"url(#{prefix}-")
    tag = re.sub(r'(?:xlink:)?href="#', f'href="#{prefix}-', tag)
    for name, colour in PALETTE.items():
        tag = tag.replace(f": {colour}", f": var(--plot-{name}, {colour})")
    return tag


def render(report: Report) -> str:
    """Return the report as an HTML page.

    Everything is inside: styles, drawings (SVG) and a short script for sorting and copying. A
    policy in the page forbids all requests and every script but that one, and all words are
    escaped, so that a column called ``<script>`` does no harm.
    """
    here = files(__package__)
    style, script, template = (
        here.joinpath(name).read_text(encoding="utf-8")
        for name in ("style.css", "script.js", "template.html")
    )
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.from_string(template).render(
        report=report,
        style=Markup(style),
        script=Markup(script),
        script_digest=digest,
        inline=inline,
    )


# Writing a report: the whole file or none.


def write_report(path: str | os.PathLike[str], html: str) -> None:
    """Write a page from `render`; an existing file is replaced as a whole, or stays as it was."""
    # "replace": a lone surrogate from an undecodable file name becomes a question mark.
    write_atomically(path, (html.encode("utf-8", errors="replace"),))
