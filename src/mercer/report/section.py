"""What a report is made of, before it becomes HTML: sections of words, figures and tables."""

from __future__ import annotations

import inspect
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from mercer import plot
from mercer.plot.style import bare_figure, to_svg
from mercer.posterior.draws import Cell as Value
from mercer.posterior.draws import Table
from mercer.posterior.evaluation import digits
from mercer.posterior.positive_laws import OF_LOGARITHMS, noise_of

# Numbers, durations and lists in words.

_LARGE: Final = 1e15  # larger numbers are not written in full


def count(value: int) -> str:
    """Return a whole number in full, in groups of three.

    >>> count(12345) == "12\u202f345"
    True
    """
    return f"{value:,}".replace(",", "\u202f")


def column(values: Sequence[float | None], decimals: int | None = None) -> list[str]:
    """Return the numbers of one column with the same number of decimals.

    Without ``decimals`` the median gets three significant digits, within four decimals; what
    would then be shown as zero keeps one digit, and what is 1e15 or more as many as tell the
    numbers apart. A dash stands for None and for what is not finite.

    >>> column([0.195, 0.0073, None]), column([12.0, 3.0]), column([0.5, -1e-7])
    (['0.195', '0.007', '–'], ['12', '3'], ['0.500', '−1e-07'])
    >>> column([1.2e15, 1.2005e15])
    ['1.2e+15', '1.2005e+15']
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    if decimals is None:
        decimals = _decimals(known)
    large = {value for value in known if abs(value) >= _LARGE}
    n_digits = (n for n in range(3, 18) if len({f"{x:.{n}g}" for x in large}) == len(large))
    least = next(n_digits)
    return [_fixed(value, decimals, least) for value in values]


def _decimals(values: Sequence[float]) -> int:
    if all(float(value).is_integer() for value in values):
        return 0
    size = statistics.median(abs(value) for value in values)
    return 4 if size == 0 else min(4, max(0, 2 - math.floor(math.log10(size))))


def _fixed(value: float | None, decimals: int, n_digits: int) -> str:
    if value is None or not math.isfinite(value):
        return "–"
    text = f"{value:,.{decimals}f}".replace(",", "\u202f")
    if abs(value) >= _LARGE or 0 < abs(value) < 0.5 * 10**-decimals:
        text = f"{value:.{n_digits if abs(value) >= _LARGE else 1}g}"
    return text.replace("-", "−", 1) if text.startswith("-") else text


def number(value: float | None, n_digits: int = 3) -> str:
    """Return a number of any size with so many significant digits; whole digits are all kept.

    >>> [number(x) for x in (0.12345, -2.0, -0.5, 2.3e-7, None)]
    ['0.123', '−2.00', '−0.500', '2.30e−07', '–']
    >>> number(1234.56) == "1\u202f235"
    True
    """
    if value is None or not math.isfinite(value):
        return "–"
    whole, point, rest = digits(value, n_digits).partition(".")
    grouped = whole if "e" in whole else f"{int(whole):,}".replace(",", "\u202f")
    sign = "-" if value < 0 and not grouped.startswith("-") else ""  # of -0.5
    return f"{sign}{grouped}{point}{rest}".replace("-", "−")


def percent(share: float, digits: int = 1) -> str:
    """Return a share in per cent.

    >>> percent(0.2048) == "20.5\u00a0%"
    True
    """
    return f"{100 * share:.{digits}f}\u00a0%"


def duration(seconds: float) -> str:
    """Return a length of time.

    >>> [duration(t).replace("\u00a0", " ") for t in (0.02, 12.31, 125, 4000)]
    ['under 0.1 s', '12.3 s', '2 min 5 s', '1 h 7 min']
    """
    if seconds < 0.1:
        return "under\u00a00.1\u00a0s"
    if seconds < 59.95:
        return f"{seconds:.1f}\u00a0s"
    if seconds < 3599.5:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes}\u00a0min {rest}\u00a0s"
    hours, rest = divmod(round(seconds / 60), 60)
    return f"{hours}\u00a0h {rest}\u00a0min"


def ordinal(position: int) -> str:
    """Return a place in words.

    >>> ordinal(1), ordinal(3), ordinal(11)
    ('first', 'third', '11th')
    """
    names = ("first", "second", "third", "fourth", "fifth", "sixth")
    return names[position - 1] if position <= len(names) else f"{position}th"


# Inches, at 72 points each: 360 pixels, the width of a phone; the page enlarges them on a desk.
_WIDTH: Final = 5.0


def svg(draw: Callable[..., Any], height: float, *given: Any, **how: Any) -> str:
    """Draw a plot of `mercer.plot`, as wide as a page and so many inches high; return its SVG."""
    fig = bare_figure(_WIDTH, height)
    is_whole = "fig" in inspect.signature(draw).parameters
    draw(*given, **how, **({"fig": fig} if is_whole else {"ax": fig.subplots()}))
    return to_svg(fig)


@dataclass(frozen=True)
class Figure:
    """A drawing (SVG), the words below it, and the words for those who cannot see it."""

    svg: str
    caption: str
    alt: str


@dataclass(frozen=True)
class Cell:
    """One cell of a table: what is shown, and the number or text by which the column is sorted."""

    text: str
    sort: float | str
    is_best: bool = False


@dataclass(frozen=True)
class NamedTable:
    """A table with a caption."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    is_sortable: bool = True
    is_open: bool = False  # a list to go through: shown unfolded, and narrow on a narrow screen


@dataclass(frozen=True)
class Threshold:
    """What the reader's costs decide: from which probability a row is called the second class.

    ``counts`` are rows of the first and of the second class, by probability in steps of 1/1000.
    """

    classes: tuple[str, str]
    counts: tuple[tuple[int, ...], tuple[int, ...]]  # 1001 each


@dataclass(frozen=True)
class Section:
    """One section of a report."""

    key: str  # its anchor in the page: lower-case letters and hyphens
    title: str
    text: tuple[str, ...]  # paragraphs in plain words
    warnings: tuple[str, ...] = ()  # shown set off, before the figures
    points: tuple[str, ...] = ()  # a list after the paragraphs
    figures: tuple[Figure, ...] = ()
    tables: tuple[NamedTable, ...] = ()
    command: str = ""  # shown as something to type, with a button that copies it; empty for none
    steps: tuple[tuple[str, str], ...] = ()  # sentences, each with a command after it
    threshold: Threshold | None = None  # shown with sliders, by the page's script


@dataclass(frozen=True)
class Tile:
    """A headline number at the top of the report, with one line that says how to take it."""

    label: str
    value: str
    note: str
    needs_attention: bool = False


@dataclass(frozen=True)
class Report:
    """A whole report, ready to be rendered."""

    title: str
    subtitle: str
    tiles: tuple[Tile, ...]
    sections: tuple[Section, ...]


def from_table(
    caption: str,
    source: Table,
    *,
    headings: Mapping[str, str] | None = None,
    decimals: Mapping[str, int] | None = None,
) -> NamedTable:
    """Return a table of the posterior with a caption.

    ``headings`` are other words for columns, ``decimals`` those of columns where the default will
    not do.
    """
    columns = [_cells(source.column(name), (decimals or {}).get(name)) for name in source.columns]
    shown = tuple((headings or {}).get(name, name) for name in source.columns)
    return NamedTable(caption, shown, tuple(zip(*columns, strict=True)))


def _cells(values: tuple[Value, ...], decimals: int | None) -> list[Cell]:
    numbers = [value for value in values if not isinstance(value, str)]
    if len(numbers) < len(values):
        return [Cell(str(value), str(value)) for value in values]
    texts = column(numbers, decimals)
    keys = ("" if value is None else float(value) for value in numbers)
    return [Cell(text, key) for text, key in zip(texts, keys, strict=True)]


#: What a person who gets a report can read of the data in it.
HOLDS_SUMMARIES: Final = (
    "This report holds summaries; of held-out rows, where there are any, drawings, and where it "
    "lists some of them, their numbers, targets and predictions; of inputs that it describes, "
    "extremes and the commonest levels."
)

# What the reports of all regressors share: the noise in words, the curve along one input.


def noise_words(estimator: Any) -> str:
    """Say how large the noise of a fitted regressor is; of several outputs that of each."""
    if getattr(estimator, "n_outputs_", 1) > 1:
        names = estimator.output_names_
        return " ".join(f"{name}: {noise_words(estimator.output(name))}" for name in names)
    noise = estimator.noise_std_
    share = min(1.0, (noise / estimator.target_scale_) ** 2)
    if noise_of(estimator) in OF_LOGARITHMS:
        return (
            "Noise is a factor, whose logarithm has a standard deviation of "
            f"{number(noise)}: two targets in three are between {number(math.exp(-noise))} and "
            f"{number(math.exp(noise))} times what is typical of their inputs. About "
            f"{percent(share, 0 if share > 0.02 else 1)} of the variance of the target's logarithm "
            "is noise, or due to what the inputs do not tell."
        )
    return (
        f"The noise has a standard deviation of {number(noise)}, in units of the target: about "
        f"{percent(share, 0 if share > 0.02 else 1)} of the target's variance is noise, or due to "
        "what the inputs do not tell."
    )


def curve_figures(estimator: Any) -> tuple[Figure, ...]:
    """Draw the prediction along the input of a fitted regressor; nothing where it has several."""
    if len(estimator.feature_labels_) != 1:
        return ()
    middle = np.linspace(-2.0, 2.0, 9)[:, np.newaxis]
    with np.errstate(invalid="ignore", divide="ignore"):  # a warp may end before two
        drawn = estimator.standardizer_.inverse(middle)
    ends = np.array([np.nanmin(drawn), np.nanmax(drawn)])
    if not np.isfinite(ends).all() or ends[0] == ends[1]:
        return ()
    name, found = estimator.feature_labels_[0], []
    for output in getattr(estimator, "output_names_", ()) or ("",):
        one, of = (estimator.output(output), f" of {output}") if output else (estimator, "")
        drawing = Figure(
            svg(plot.predicted_band, 3.6, one, ends),
            f"The prediction{of}, up to two standard deviations from the middle of the input; its "
            "ends may lie beyond the data. Band: 90 % interval of a new observation.",
            f"Prediction{of} against {name} with its 90 % interval.",
        )
        found.append(drawing)
    return tuple(found)
