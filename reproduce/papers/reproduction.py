"""What a reproduction reports: claims with verdicts, the figures behind them, and one plot."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mercer.posterior.container import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Claim",
    "Reproduction",
    "Settings",
    "is_clearly_below_zero",
    "judged",
    "mean_and_error",
    "unjudged",
    "write_reproduction",
]

Array = NDArray[np.float64]

# A mean that is this many standard errors below zero is not noise.
_CLEAR = 2.0
_QUICK = "a quick run judges nothing: few repeats, small settings"


@dataclass(frozen=True)
class Settings:
    """How a reproduction is run.

    Attributes
    ----------
    is_quick : bool
        Fewer repeats: the same code, wider errors.
    n_jobs : int or None
        Chains at a time.
    tell : callable
        Told one line about each stage.
    folder : Path or None
        Where a long reproduction keeps what is done, and finds it when it is run again.
    """

    is_quick: bool = False
    n_jobs: int | None = None
    tell: Callable[[str], None] = field(default=lambda line: None)
    folder: Path | None = None


@dataclass(frozen=True)
class Claim:
    """One statement of the paper, or of mercer about it, held against what was seen.

    The verdict is "holds", "fails", or "not judged" with the reason in ``note``.
    """

    claim: str
    paper: str
    ours: str
    verdict: str
    note: str = ""


@dataclass(frozen=True)
class Reproduction:
    """The outcome of one name of ``mercer reproduce``.

    Attributes
    ----------
    name, title, source, command : str
    claims : tuple of Claim
    measured : mapping of method to ndarray
        One number a repeat: what the plot shows and the CSV file holds.
    unit : str
        Of ``measured``.
    published : mapping of method to float
        The paper's figures in the same unit.
    notes : tuple of str
    draw : callable or None
        Draws the picture on an empty figure, whose size it may set; None for one dot a repeat.
    number : str
        How means and errors are written: a format.
    tables : tuple of str
        Further tables of the page, in Markdown.
    beside : mapping of unit to mapping of method to ndarray
        Further columns of the CSV file: other figures of the same repeats, nan where there is none.
    """

    name: str
    title: str
    source: str
    command: str
    claims: tuple[Claim, ...]
    measured: Mapping[str, Array]
    unit: str
    published: Mapping[str, float]
    notes: tuple[str, ...] = ()
    draw: Callable[[Figure], None] | None = None
    number: str = ".2f"
    tables: tuple[str, ...] = ()
    beside: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)

    def to_markdown(self) -> str:
        """Return the page: title, table of claims, further tables, notes."""
        lines = [f"# {self.title}", "", f"Source: {self.source}. Made by `{self.command}`.", ""]
        lines += ["| claim | paper | ours | verdict |", "|---|---|---|---|"]
        for claim in self.claims:
            verdict = f"{claim.verdict} ({claim.note})" if claim.note else claim.verdict
            lines.append(f"| {claim.claim} | {claim.paper} | {claim.ours} | {verdict} |")
        lines += ["", f"| method | {self.unit}, mean | standard error | repeats |"]
        lines.append("|---|---|---|---|")
        for method, values in self.measured.items():
            mean, error = mean_and_error(values)
            spread = "-" if len(values) < 2 else format(error, self.number)
            shown = format(mean, self.number)
            lines.append(f"| {method} | {shown} | {spread} | {len(values)} |")
        for table in self.tables:
            lines += ["", table]
        lines += ["", *self.notes]
        return "\n".join(lines) + "\n"

    def to_csv(self) -> str:
        """Return one row a method and repeat."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["method", "repeat", self.unit, *self.beside])
        for method, values in self.measured.items():
            others = [column[method] for column in self.beside.values()]
            for repeat, row in enumerate(zip(values, *others, strict=True)):
                cells = ["" if np.isnan(value) else f"{value:.10g}" for value in row]
                writer.writerow([method, repeat, *cells])
        return text.getvalue()


def judged(
    settings: Settings, words: str, paper: str, ours: str, is_met: bool, note: str = ""
) -> Claim:
    """Return a claim with its verdict; a quick run has none."""
    if settings.is_quick:
        return Claim(words, paper, ours, "not judged", _QUICK)
    return Claim(words, paper, ours, "holds" if is_met else "fails", note)


def unjudged(reproduction: Reproduction) -> Reproduction:
    """Return the outcome of a quick run, every verdict that it came with taken back."""
    claims = tuple(
        claim
        if claim.verdict == "not judged"
        else replace(claim, verdict="not judged", note=_QUICK)
        for claim in reproduction.claims
    )
    return replace(reproduction, claims=claims)


def mean_and_error(values: Array) -> tuple[float, float]:
    """Mean and its standard error; 0 for a single value."""
    error = 0.0 if len(values) < 2 else float(np.std(values, ddof=1) / np.sqrt(len(values)))
    return float(np.mean(values)), error


def is_clearly_below_zero(differences: Array) -> bool:
    """Whether the mean is more than two standard errors below 0; one repeat is never clear."""
    mean, error = mean_and_error(differences)
    return len(differences) > 1 and mean + _CLEAR * error < 0.0


def write_reproduction(reproduction: Reproduction, folder: Path) -> tuple[Path, ...]:
    """Write NAME.csv, NAME.md and NAME.png into ``folder``; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        ".csv": reproduction.to_csv().encode(),
        ".md": reproduction.to_markdown().encode(),
        ".png": _picture(reproduction),
    }
    paths = []
    for suffix, data in content.items():
        path = folder / f"{reproduction.name}{suffix}"
        write_atomically(path, [data])
        paths.append(path)
    return tuple(paths)


def _picture(reproduction: Reproduction) -> bytes:
    from mercer.plot import repeats
    from mercer.plot.style import bare_figure

    figure = bare_figure(7.0, 1.4 + 0.42 * len(reproduction.measured))
    if reproduction.draw is not None:
        reproduction.draw(figure)
    else:
        axes = figure.subplots()
        repeats(reproduction.measured, published=reproduction.published, ax=axes)
        axes.set_xlabel(reproduction.unit)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=150, facecolor="white")
    return picture.getvalue()
