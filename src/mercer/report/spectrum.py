"""The section of a report on the spectrum of a learned kernel: densities and groups of waves."""

from __future__ import annotations

import math
from typing import Any, Final, cast

import numpy as np

from mercer.report.figures import spectral_density_svg
from mercer.report.section import Cell, Figure, NamedTable, Section
from mercer.report.words import count, number, ordinal, percent
from mercer.spectral.inputs import InputScales

__all__ = ["spectrum_section"]

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
    figures = tuple(
        Figure(
            spectral_density_svg(estimator, j),
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
    is_part = len(limits) < estimator.n_features_in_
    caption = (
        "Groups of waves, the largest first. Share: of all frequencies. Frequency and its spread "
        "(standard deviation): radians per unit of the input; the period, in its units."
        + (f" Of {count(estimator.n_features_in_)} inputs, those that matter most." * is_part)
    )
    columns = ("group", "share", "input", "period", "frequency", "spread")
    return NamedTable(caption, columns, tuple(rows))
