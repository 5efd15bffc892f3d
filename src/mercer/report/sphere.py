"""The part of a report that is about the kernel Gibbs sampler: noise, models, suspicious labels."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mercer import plot
from mercer.data.files import listing
from mercer.errors import UsageError
from mercer.posterior.labels import Audit, audit_of
from mercer.report.audit import audit_section
from mercer.report.section import (
    HOLDS_SUMMARIES,
    Figure,
    Section,
    count,
    from_table,
    percent,
    svg,
)

TITLE: Final = "Kernel Gibbs classifier"
GLOSSARY: Final = (
    "n_errors: rows whose label a drawn classifier contradicts. noise_rate: share of wrong labels. "
    "margin: how far, as a cosine, some of the training rows lie on the right side of a drawn "
    "classifier; below 0 it contradicts their label. Rows are numbered as in the list of labels."
)

_BY_EVIDENCE: Final = "noise by evidence"  # how the note on one rate or one a class begins
_MOST_DRAWN: Final = 2000  # rows: more points would be one blot


def describe(estimator: Any) -> tuple[str, ...]:
    """Say in plain words what the model is, and what its file holds."""
    draws = estimator.posterior_
    symmetry = (
        "If more than half of the labels were wrong, nothing in the data could tell: the opposite "
        "labels and the opposite boundary explain the data as well.",
    )
    return (
        "The model is a boundary between the classes, straight in the feature space of a kernel, "
        "and labels that are each wrong with some probability, wherever the row lies. Markov "
        f"chain Monte Carlo drew {count(draws.n_total)} boundaries that are plausible given the "
        "labels, and every probability is an average over them: where they disagree, the model "
        "is unsure.",
        f"{_file_words(estimator)} {HOLDS_SUMMARIES} It has the numbers and labels of suspicious "
        "rows"
        f"{'; with two inputs also a drawing of the rows' if _drawable(estimator) else ''}.",
        *(symmetry if len(estimator.classes_) == 2 else ()),
    )


def sections(estimator: Any, audit: Audit | None) -> tuple[Section, ...]:
    """Return the sections on suspicious labels, the noise rate, the models compared, boundaries.

    Without ``audit`` the list is that of 10 % expected false ones.
    """
    if audit is None and hasattr(estimator, "label_proba_"):
        audit = audit_of(estimator)
    found = [] if audit is None else [audit_section(audit)]
    found += [_noise_section(estimator), _models_section(estimator)]
    if _drawable(estimator):
        found.append(_boundaries_section(estimator))
    return tuple(found)


def _noise_section(estimator: Any) -> Section:
    title = "How many labels are wrong?"
    curve = estimator.evidence_curve_
    why = [f"{note.capitalize()}." for note in estimator.notes_ if note.startswith(_BY_EVIDENCE)]
    text = " ".join([_rate_words(estimator), *why])
    if curve is None or not len(curve.noise_rates):
        return Section("noise", title, (text, _no_curve_words(estimator)))
    peak = percent(curve.noise_rates[int(np.argmax(curve.log_evidence))])
    rate = estimator.noise_rate_
    marked = rate if _is_learned(estimator) else None
    paragraphs = (
        text,
        "The curve shows how well each rate explains the labels with the best of the models "
        f"below, averaged over all boundaries. It is highest at {peak}. "
        "Two rates that are one nat apart differ by a factor of 2.7 in plausibility.",
    )
    figure = Figure(
        svg(plot.evidence_curve, 3.6, curve, noise_rate=marked),
        "Log evidence of noise rates, and a band of two standard errors of its estimate"
        f"{'; dashed: the posterior mean of the rate' if marked is not None else ''}.",
        f"Evidence curve over noise rates with its maximum at {peak}.",
    )
    return Section("noise", title, paragraphs, figures=(figure,))


def _no_curve_words(estimator: Any) -> str:
    """Say why the evidence of noise rates is not drawn."""
    if len(estimator.classes_) > 2:
        return (
            "There is no curve of evidence over noise rates: with more than two classes the models "
            "are compared by each class against the others, which weighs models and not rates."
        )
    if not estimator.compared_.rows:
        return (
            "There is no curve of evidence: with so many rows the one model that was given was not "
            "weighed."
        )
    return (
        "There is no curve of evidence: no rate that is the same for all rows has a known evidence "
        "here (rates differ between rows or classes, or no draw was without errors)."
    )


def _is_learned(estimator: Any) -> bool:
    return isinstance(estimator.get_params()["noise_rate"], str)


def _rate_words(estimator: Any) -> str:
    draws = estimator.posterior_.flat("noise_rate")
    low, high = np.quantile(draws, (0.05, 0.95), axis=0)
    mean = draws.mean(axis=0)
    names = [""] if len(mean) == 1 else [f" of the rows that are “{c}”" for c in estimator.classes_]
    parts = []
    for k, name in enumerate(names):
        part = f"{percent(mean[k])}{name}"
        if _is_learned(estimator):
            part += f" (90 % interval {percent(low[k])} to {percent(high[k])})"
        parts.append(part)
    how = "learned from the data" if _is_learned(estimator) else "given, not learned"
    words = f"The share of labels that are wrong, {how}: {listing(parts)}."
    if not _is_learned(estimator) or not hasattr(estimator, "label_error_proba_"):
        return words
    expected = percent(float(estimator.label_error_proba_.mean()))
    return f"{words} Further labels would have these rates; of the rows here {expected} are wrong."


def _models_section(estimator: Any) -> Section:
    title = "Which models were compared"
    compared = estimator.compared_
    if not compared.rows:
        return Section("models", title, ("One model was given; nothing was compared.",))
    n_used = sum(1 for share in compared.column("share") if share)
    if len(compared.rows) == 1:
        words = "One model was given; its evidence is here for comparison with other runs."
    else:
        words = (
            f"{len(compared.rows)} models were compared by their evidence, the probability that "
            f"they give to the labels; the draws come from {n_used} of them, in proportion to it: "
            "those with 95 % of the probability, or the six most probable. "
            "Hopeless ones were dropped after a short run, so their figures are rough. The "
            "lengthscale is in units of the standardised (and weighed) inputs; the nugget is "
            "feature noise: how much the classes overlap, wrong labels aside."
        )
    table = from_table(
        "The models, the best first. Evidence in nats, with its standard error.",
        compared,
        headings={
            "log_evidence": "log evidence",
            "standard_error": "± s.e.",
            "n_rows": "rows",
            "share": "share of the draws",
        },
        decimals={
            "share": 2,
            "probability": 2,
            "log_evidence": 1,
            "standard_error": 1,
            "nugget": 1,
        },
    )
    return Section("models", title, (words,), tables=(table,))


def _boundaries_section(estimator: Any) -> Section:
    rows = _raw_rows(estimator)
    ringed = estimator.label_error_proba_ > 0.5
    n_ringed = int(ringed.sum())
    text = (
        "Each line is where one of 50 drawn classifiers changes its mind. Where the lines bundle, "
        "the data decide; where they fan out, they do not.",
    )
    figure = Figure(
        svg(plot.boundaries, 4.8, estimator, rows, estimator.recorded_, ringed=ringed),
        "Rows by their recorded label, and 50 sampled boundaries. Ringed: labels that are wrong "
        "more likely than not.",
        f"Sampled decision boundaries over {len(rows)} rows; {n_ringed} labels are ringed.",
    )
    return Section("boundaries", "Sampled boundaries", text, figures=(figure,))


def _training_rows(estimator: Any) -> NDArray[np.float64] | None:
    """Standardised training rows, where the model has them."""
    space = estimator._sample.models[0].space
    rows: NDArray[np.float64] = space.X
    return rows if len(rows) else None


def _file_words(estimator: Any) -> str:
    try:
        parts = estimator._to_parts()
    except UsageError:
        return "A model with a kernel of your own cannot be saved to a file."
    if not parts.holds_rows:
        labels = ", but the labels of all" if parts.holds_targets else ""
        return f"A saved model file contains no training row{labels}."
    return (
        "A saved model file contains training rows, which predictions need: share it as you would "
        "share the data."
    )


def _drawable(estimator: Any) -> bool:
    """Whether the training rows can be drawn: two inputs and classes, and not too many rows."""
    is_plane = len(estimator.feature_labels_) == 2 and len(estimator.classes_) == 2
    if not is_plane or estimator.kernel == "precomputed":
        return False
    rows = _training_rows(estimator)
    return rows is not None and len(rows) == len(estimator.recorded_) <= _MOST_DRAWN


def _raw_rows(estimator: Any) -> NDArray[np.float64]:
    """Training rows in the units of the inputs."""
    rows = _training_rows(estimator)
    assert rows is not None
    return np.asarray(estimator.standardizer_.inverse(rows))
