"""The part of a report that is about kernel learning: the kernel, the inputs, the spectrum."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mercer.posterior.table import Table
from mercer.report.figures import kernel_svg
from mercer.report.regressors import curve_figures, noise_words
from mercer.report.section import Cell, Figure, NamedTable, Section
from mercer.report.spectrum import spectrum_section
from mercer.report.words import count, listing, number
from mercer.spectral.inputs import InputScales, input_scales

__all__ = ["GLOSSARY", "TITLE", "describe", "kernel_section", "sections", "used_words"]

TITLE: Final = "Regression with a learned kernel"
GLOSSARY: Final = (
    "log_evidence: logarithm of the probability that the frequencies of a draw give to the "
    "targets. noise_std: standard deviation of the noise, in those of the target. n_components: "
    "groups of frequencies. kernel[i]: the kernel at ten fixed differences of inputs, shorter and "
    "shorter. function[i]: the function at the i-th of twenty training rows (which need not be the "
    "i-th of the data); predictions are made of it, so these are what to look at where only "
    "predictions matter."
)

_MOST_INPUTS: Final = 30  # in the table
_FLAT: Final = 0.97  # a kernel that is above this on average up to one std hardly falls
_APART: Final = 1.05  # R-hat from which chains are said to differ


def describe(estimator: Any) -> tuple[str, ...]:
    """Say in plain words what the model is, and what its file holds."""
    draws = estimator.posterior_
    shape = "a straight part plus a curve" if estimator.linear_part else "a curve"
    return (
        f"The model is an unknown function of the inputs, {shape}, and noise around it. How alike "
        "the curve is at two rows depends on how far apart they are in their inputs, and the "
        "kernel says how. It is not chosen but learned, as a mixture of waves of any frequency. "
        f"Markov chain Monte Carlo drew {count(draws.n_total)} kernels and functions that are "
        "plausible given the data, and every prediction is an average over "
        f"{used_words(estimator)}.",
        noise_words(estimator),
        "A saved model file contains no training row. This report holds summaries; of held-out "
        "rows, where there are any, drawings.",
    )


def sections(estimator: Any) -> tuple[Section, ...]:
    """Return the sections on the kernel and on its spectrum."""
    scales = input_scales(estimator)
    if not scales.order:
        words = ("All inputs are constant: there is no kernel to learn.",)
        return (Section("kernel", "The kernel that was learned", words),)
    kernel = kernel_section(estimator, scales, curve_figures(estimator))
    return kernel, spectrum_section(estimator, scales)


def used_words(estimator: Any) -> str:
    """Say what predictions are averaged over: the draws, or how many of them."""
    n_used = len(estimator._functions.mean)
    return "them" if n_used == estimator.posterior_.n_total else f"{n_used} of them"


def kernel_section(
    estimator: Any, scales: InputScales, drawings: tuple[Figure, ...] = ()
) -> Section:
    """Build the section on the kernel and on which inputs matter; further drawings come last."""
    order, names = scales.order, estimator.feature_labels_
    shown = order[:9]
    text = [
        "The kernel is 1 for two rows with equal inputs: the curve has the same value at both. "
        "Near the dashed line at 0, its value at one row says nothing of that at the other; below, "
        "they tend to opposite sides. A kernel that falls and rises again has found something that "
        "comes back.",
        *_matter_words(estimator, scales),
        *_warp_words(estimator, shown),
        *_subset_words(estimator),
        *_chain_words(estimator),
    ]
    several = len(shown) > 1
    first = names[order[0]]
    figures = [
        Figure(
            kernel_svg(estimator, len(shown)),
            "Kernel against the difference of two rows in "
            + ("one input, the others being equal" if several else first)
            + ". Line: mean over the draws. Band: 90 % of them.",
            f"Learned kernel along {listing([names[j] for j in shown])}.",
        )
    ]
    figures += drawings
    tables = (_inputs_table(estimator, scales),) if several else ()
    title = "The kernel that was learned"
    return Section("kernel", title, tuple(text), figures=tuple(figures), tables=tables)


def _matter_words(estimator: Any, scales: InputScales) -> tuple[str, ...]:
    names, units, order = estimator.feature_labels_, estimator.standardizer_.units, scales.order
    first = order[0]
    mean, lower, upper = (number(value, 2) for value in _levels(scales)[:, first])
    unit = f"one standard deviation ({number(units[first])})"
    if len(order) == 1:
        fastest = f"For two rows that are up to {unit} of {names[first]} apart"
    else:
        fastest = (
            f"It falls fastest along {names[first]}: for two rows that differ in it by up to "
            f"{unit}, and in nothing else,"
        )
    text = [f"{fastest} it is {mean} on average (90 % of the draws: {lower} to {upper})."]
    flat = [j for j in order if _levels(scales)[0, j] > _FLAT]
    if flat and len(order) > 1:
        text[0] += f" It hardly falls along {listing([names[j] for j in flat])}."
    if len(order) > 1:
        text.append(
            "Inputs along which it falls fast bend the curve; along the others the curve hardly "
            "changes"
            + (", and the straight part may still be steep" if estimator.linear_part else "")
            + ". A wide band says that the data do not tell. Nothing here says that an input is a "
            "cause."
        )
    return tuple(text)


def _levels(scales: InputScales) -> np.ndarray[Any, Any]:
    """Kernel up to one standard deviation along each input: mean, 5 %, 95 %, as rows: (3, d)."""
    levels = 1.0 - scales.falls
    return np.stack([levels.mean(axis=0), *np.quantile(levels, (0.05, 0.95), axis=0)])


def _warp_words(estimator: Any, shown: tuple[int, ...]) -> tuple[str, ...]:
    standardizer = estimator.standardizer_
    warped = [estimator.feature_labels_[j] for j in shown if standardizer.is_warped[j]]
    if not warped:
        return ()
    return (
        f"Skewed inputs, here {listing(warped)}, are bent before use, so that differences count "
        "more where values are dense: a difference as it is given here holds in the middle of the "
        "data, and is another one far from it.",
    )


def _subset_words(estimator: Any) -> tuple[str, ...]:
    """What learning the spectrum on some of the rows changed: the last of the notes."""
    limit = estimator.kernel_rows
    if limit is None or estimator.n_training_rows_ <= limit:
        return ()
    note = estimator.notes_[-1]
    return (
        f"{note[0].upper()}{note[1:]}. The bands say what the {count(limit)} rows tell of the "
        "kernel.",
    )


def _chain_words(estimator: Any) -> tuple[str, ...]:
    of_kernel, of_function = (_largest_rhat(estimator, name) for name in ("kernel", "function"))
    if of_kernel is None or of_function is None or of_kernel <= _APART:
        return ()
    agree = of_function <= _APART
    return (
        f"The chains do not agree on the kernel (R-hat up to {of_kernel:.2f}), so its bands are "
        "rough, and too narrow if anything. "
        + (
            f"They do agree on the function (R-hat up to {of_function:.2f}): different kernels "
            "explain these data with the same curve, and predictions near the data hardly suffer."
            if agree
            else f"Nor do they quite agree on the function (R-hat up to {of_function:.2f}): longer "
            "chains are worth their time."
        ),
    )


def _largest_rhat(estimator: Any, name: str) -> float | None:
    table: Table = estimator.diagnostics_.table
    pairs = zip(table.column("name"), table.column("rhat"), strict=True)
    found = [
        float(rhat)
        for entry, rhat in pairs
        if str(entry).startswith(f"{name}[") and isinstance(rhat, (int, float))
    ]
    return max(found, default=None)


def _inputs_table(estimator: Any, scales: InputScales) -> NamedTable:
    names, units = estimator.feature_labels_, estimator.standardizer_.units
    shown = scales.order[:_MOST_INPUTS]
    levels, sizes = _levels(scales), scales.frequency_scales.mean(axis=0)
    rows = [
        (
            Cell(names[j], names[j]),
            Cell(number(units[j]), float(units[j])),
            *(Cell(f"{level:.2f}".replace("-", "−"), float(level)) for level in levels[:, j]),
            Cell(number(sizes[j], 2), float(sizes[j])),
        )
        for j in shown
    ]
    is_part = len(shown) < len(scales.order)
    caption = (
        "The kernel for two rows that differ in one input by up to one standard deviation, on "
        "average; the standard deviation is in units of the input. Frequency scale: the size of "
        "the frequencies (root mean square) in radians per standard deviation, so that inputs can "
        "be compared." + f" The first {len(shown)} of {len(scales.order)}." * is_part
    )
    columns = ("input", "one std", "kernel", "5 %", "95 %", "frequency scale")
    return NamedTable(caption, columns, tuple(rows))
