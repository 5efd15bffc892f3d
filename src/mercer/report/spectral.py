"""The part of a report that is about kernel learning: the kernel, the inputs, the spectrum."""

from __future__ import annotations

import math
from typing import Any, Final, cast

import numpy as np

from mercer import plot
from mercer.data.files import listing
from mercer.posterior.draws import Table
from mercer.posterior.labels import Audit
from mercer.posterior.positive_laws import OF_LOGARITHMS, STUDENT, VARYING, WITH_ERRORS
from mercer.report.audit import errors_words, wrong_values
from mercer.report.section import (
    HOLDS_SUMMARIES,
    Cell,
    Figure,
    NamedTable,
    Section,
    count,
    curve_figures,
    noise_words,
    number,
    ordinal,
    percent,
    svg,
)
from mercer.spectral.model import COUNTS
from mercer.spectral.prediction import InputScales, input_scales, period_words

# The section of a report on the spectrum of a learned kernel: densities and groups of waves.

_MOST_DENSITIES: Final = 2
_MOST_COMPONENTS: Final = 5
_MOST_INPUTS: Final = 3
_SMALLEST_SHARE: Final = 0.02
_LONGEST_PERIOD: Final = 4.0  # standard deviations
_NO_PERIOD: Final = 1e300  # sorts behind all periods


def spectrum_section(estimator: Any, scales: InputScales) -> Section:
    """Build the section; of several inputs it shows those along which the kernel falls fastest."""
    names, order = estimator.feature_labels_, scales.order
    shown, is_warped = order[:_MOST_DENSITIES], estimator.standardizer_.is_warped
    text = [
        "Any curve can be put together from waves. The spectrum says how much there is of waves of "
        "each frequency: high near 0, the curve changes slowly; a hill further out is something "
        "that comes back, after the period that is written above it. A frequency of w radians per "
        "unit of an input comes back after 2π / w units.",
        "The waves come in groups, each with its typical frequency and a spread around it. The "
        f"table is of one draw of {count(estimator.posterior_.n_total)}, that which explains the "
        "data best; others may divide them otherwise. A group has a period along an input where "
        "its frequency is larger than its spread and the period not above four standard deviations "
        "of the input; elsewhere it is a slow bend, with a dash.",
    ]
    said = "; ".join(period_words(estimator))
    text.append(
        f"{said[0].upper()}{said[1:]}. The probability is the share of the draws whose curve has "
        "that period, and the interval holds nine in ten of these; what less than half of the "
        "draws have is no period here."
    )
    figures = tuple(
        Figure(
            svg(plot.spectral_density, 3.6, estimator, j),
            f"Density of the frequencies of {names[j]}. Line: mean over the draws. Band: 90 % of "
            "them. Negative frequencies, which mean the same, are as frequent."
            + (" In units around the middle of the data." * bool(is_warped[j])),
            f"Spectral density of {names[j]}, {ordinal(rank + 1)} of {len(order)} inputs by how "
            "fast the kernel falls.",
        )
        for rank, j in enumerate(shown)
    )
    table = _components_table(estimator, order[:_MOST_INPUTS])
    return Section("spectrum", "Spectrum", tuple(text), figures=figures, tables=(table,))


def _components_table(estimator: Any, shown: tuple[int, ...]) -> NamedTable:
    standardizer, names = estimator.standardizer_, estimator.feature_labels_
    # Of each input the longest period that the data could have seen come back; a warped one has
    # none in its own units.
    longest = _LONGEST_PERIOD * np.where(standardizer.is_warped, 0.0, standardizer.units)
    limits = {names[j]: float(longest[j]) for j in shown}
    rows = []
    for row in estimator.components_.rows:
        group, share, name, frequency, spread = cast(tuple[int, float, str, float, float], row)
        is_large = group == 1 or (group <= _MOST_COMPONENTS and share >= _SMALLEST_SHARE)
        if not is_large or name not in limits:
            continue
        size = abs(frequency)
        period = 2.0 * math.pi / size if size > spread else math.inf
        is_seen = period <= limits[name]
        rows.append(
            (
                Cell(str(group), float(group)),
                Cell(percent(share, 0), share),
                Cell(name, name),
                Cell(number(period) if is_seen else "–", period if is_seen else _NO_PERIOD),
                Cell(number(size), size),
                Cell(number(spread, 2), spread),
            )
        )
    is_part = len(limits) < len(estimator.feature_labels_)
    caption = (
        "Groups of waves, the largest first. Share: of all frequencies. Frequency and its spread "
        "(standard deviation): radians per unit of the input; the period, in its units."
        + (f" Of {count(len(estimator.feature_labels_))} inputs, those that matter most." * is_part)
    )
    columns = ("group", "share", "input", "period", "frequency", "spread")
    return NamedTable(caption, columns, tuple(rows))


TITLE: Final = "Regression with a learned kernel"
GLOSSARY: Final = (
    "log_evidence: logarithm of the probability that the frequencies of a draw give to the "
    "targets; log_likelihood, where the noise is not normal: that of its function and noise. "
    "noise_std: standard deviation of the noise, in those of the target; of Student's t its scale, "
    "with noise_df degrees of freedom; where it depends on the inputs its geometric mean, and "
    "noise_spread says how far the logarithm of its square goes from there. dispersion: r of "
    "counts. log_rate: logarithm of the share of wrong values; "
    "log_shares: of those of four widths of right ones and of eleven sizes of wrong ones. "
    "n_components: "
    "groups of frequencies. kernel[i]: the kernel at ten fixed differences of inputs, shorter and "
    "shorter. function[i]: the function at the i-th of twenty training rows (which need not be the "
    "i-th of the data); predictions are made of it, so these are what to look at where only "
    "predictions matter. Of several targets noise_std[k] and function[k,i] are those of the k-th."
)

_MOST_LISTED_INPUTS: Final = 30  # in the table
_FLAT: Final = 0.97  # a kernel that is above this on average up to one std hardly falls
_APART: Final = 1.05  # R-hat from which chains are said to differ


def describe(estimator: Any) -> tuple[str, ...]:
    """Say in plain words what the model is, and what its file holds."""
    draws = estimator.posterior_
    shape = "a straight part plus a curve" if estimator.linear_part else "a curve"
    return (
        f"{_FIRST_WORDS.get(estimator.noise_, _AROUND).format(shape)} {_output_words(estimator)}"
        "How alike "
        "the curve is at two rows depends on how far apart they are in their inputs, and the "
        "kernel says how. It is not chosen but learned, as a mixture of waves of any frequency. "
        f"Markov chain Monte Carlo drew {count(draws.n_total)} kernels and functions that are "
        "plausible given the data, and every prediction is an average over "
        f"{used_words(estimator)}.",
        _count_words(estimator)
        if estimator.noise_ == COUNTS
        else f"{errors_words(estimator)}{noise_words(estimator)}{_tail_words(estimator)}",
        _held_words(estimator),
    )


def _output_words(estimator: Any) -> str:
    if estimator.n_outputs_ == 1:
        return ""
    names = listing(estimator.output_names_)
    return (
        f"Each target, {names}, has a function and a noise of its own; the kernel is that of all. "
    )


_AROUND: Final = "The model is an unknown function of the inputs, {}, and noise around it."
_FIRST_WORDS: Final = {
    **dict.fromkeys(
        OF_LOGARITHMS,
        "Targets are above 0, and their logarithm is an unknown function of the inputs, {}, and "
        "noise around it.",
    ),
    COUNTS: "Targets are counts, and the logarithm of their mean is an unknown function of the "
    "inputs, {}.",
}


def _count_words(estimator: Any) -> str:
    low, high = np.quantile(estimator.posterior_.flat("dispersion"), (0.05, 0.95))
    return (
        "Around their mean counts have a negative binomial law, whose variance is mean + mean² / "
        f"r: r is between {number(low, 3)} and {number(high, 3)} (90 % of the draws). A rate that "
        "varies from row to row for reasons that the inputs do not tell does that, with a standard "
        f"deviation of {percent(float(high) ** -0.5, 0)} to {percent(float(low) ** -0.5, 0)} of "
        "itself; of a rate that does not vary counts are Poisson, and r is large. Log scores are "
        "of probabilities, and intervals of whole numbers hold their level or more."
    )


def _tail_words(estimator: Any) -> str:
    if estimator.noise_ == VARYING:
        low, high = np.exp(np.quantile(estimator.posterior_.flat("noise_spread"), (0.05, 0.95)) / 2)
        return (
            " That is its geometric mean over the rows: it depends on the inputs, and is larger or "
            f"smaller by a factor of about {number(low, 2)} to {number(high, 2)} (90 % of the "
            "draws; 1 if the noise is alike everywhere). Intervals are wide where it is large."
        )
    if estimator.noise_ != STUDENT:
        return ""
    low, high = np.quantile(estimator.posterior_.flat("noise_df"), (0.05, 0.95))
    return (
        f" It has the tails of Student's t law of {number(low, 2)} to {number(high, 2)} degrees of "
        "freedom (90 % of the draws): the fewer, the farther off are the targets that it allows."
    )


def _held_words(estimator: Any) -> str:
    held = "no training row"
    if estimator.noise_ in WITH_ERRORS:
        held = "the targets of the training rows, and nothing else of them"
    return f"A saved model file contains {held}. {HOLDS_SUMMARIES}"


def sections(estimator: Any, audit: Audit | None = None) -> tuple[Section, ...]:
    """Return the sections on wrong values, where there may be some, the kernel and its spectrum."""
    scales, wrong = input_scales(estimator), wrong_values(estimator, audit)
    if not scales.order:
        words = ("All inputs are constant: there is no kernel to learn.",)
        return (*wrong, Section("kernel", "The kernel that was learned", words))
    curves = () if hasattr(estimator, "classes_") else curve_figures(estimator)
    kernel = kernel_section(estimator, scales, curves)
    return (*wrong, kernel, spectrum_section(estimator, scales))


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
    several, n_rows = len(shown) > 1, -(-len(shown) // (2 if len(shown) == 4 else 3))
    first = names[order[0]]
    figures = [
        Figure(
            svg(plot.learned_kernel, 0.5 + 1.6 * n_rows if several else 3.6, estimator),
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
    shown = scales.order[:_MOST_LISTED_INPUTS]
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


# The part of a report that is about kernel learning for classes.

TITLE_OF_CLASSES: Final = "Classification with a learned kernel"
GLOSSARY_OF_CLASSES: Final = (
    "log_likelihood: logarithm of the probability that a draw gives to the labels of the training "
    "rows. n_components: groups of frequencies. kernel[i]: the kernel at ten fixed differences of "
    "inputs, shorter and shorter. function[k,i]: log odds at twenty of the training rows; "
    "predictions are made of them, so these are what to look at where only predictions matter. "
    "thresholds[k], of ordered classes: of the function, between the k-th class and those above it."
)


def describe_classes(estimator: Any) -> tuple[str, ...]:
    """Say in plain words what the model is, and what its file holds."""
    n_draws = count(estimator.posterior_.n_total)
    shape = "a straight part plus a curve" if estimator.linear_part else "a curve"
    order = [str(label) for label in estimator.class_order_]
    if estimator.ordered is not False:
        odds = (
            f"The {len(order)} classes have an order, {listing(order)}. For a row that is not "
            "below a class, the logarithm of the odds to be above it is a function of the inputs "
            f"less the threshold of the class: {_threshold_words(estimator)}. The function, the "
            "same for all classes, is unknown, "
        )
    elif len(order) == 2:
        odds = f"The logarithm of the odds of “{order[0]}” is an unknown function of the inputs, "
    else:
        odds = (
            f"The {len(order)} classes are told apart one after the other, the most frequent "
            f"first: is it {order[0]}, else is it {order[1]}, and so on. The logarithm of the odds "
            "of each such question is an unknown function of the inputs, "
        )
    return (
        f"{odds}{shape}. How alike the curve is at two rows depends on how far apart they are in "
        "their inputs, and the kernel says how. It is not chosen but learned, as a mixture of "
        f"waves of any frequency. Markov chain Monte Carlo drew {n_draws} kernels and functions "
        "that are plausible given the data, and every probability is an average over "
        f"{used_words(estimator)}.",
        f"A saved model file contains no training row. {HOLDS_SUMMARIES}",
    )


def _threshold_words(estimator: Any) -> str:
    ends = np.quantile(estimator.posterior_.flat("thresholds"), (0.05, 0.95), axis=0).T
    found = zip(estimator.class_order_, ends.tolist(), strict=False)
    words = [f"{number(low, 2)} to {number(high, 2)} of {label}" for label, (low, high) in found]
    return f"{listing(words)} (90 % of the draws)"
