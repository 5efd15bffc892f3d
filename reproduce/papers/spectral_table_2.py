"""Oliva et al., Table 2: errors of BaNK and its rivals on two classes, five-fold cross-validation.

The folds are the same for all methods, and every method chooses its settings on the training rows.
As in the paper an asterisk marks the lowest error, and bold type what McNemar's test at 5 %, over
the test rows of all folds, does not tell from it. Beside the paper's methods: gradient boosting,
support vectors with calibrated probabilities (up to 50,000 training rows), logistic regression.

A run with ``--out`` keeps each cell (a method on a fold) in a folder beside the page, and goes on
from there; remove the folder to run all of them again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mercer.data.named import load_named
from reproduce.papers.mcnemar import mcnemar
from reproduce.papers.reproduction import Claim, Reproduction, Settings, judged, mean_and_error
from reproduce.papers.spectral_class_cells import ClassCell, class_work, run_class_cell
from reproduce.papers.spectral_class_folds import CLASS_SETS, ClassSet
from reproduce.papers.spectral_class_methods import CLASS_METHODS, MAX_SECONDS
from reproduce.papers.spectral_folds import is_at_hand
from reproduce.papers.spectral_methods import HOUR_A_SET, PAPER_CHAIN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["class_marked", "reproduce"]

Array = NDArray[np.float64]
# Of one data set: the cells of each method, fold by fold.
Row = Mapping[str, Sequence[ClassCell]]

_BANK = "BaNK"
_PAPERS = ("RKS", "MKL", "RFO")
_TOOLS = ("gradient boosting", "calibrated SVC")
_LEVEL = 0.05


def reproduce(settings: Settings) -> Reproduction:
    """Run every cell, or read those that are done.

    Raises
    ------
    StorageError
        If none of the data sets is at hand.
    """
    if not any(is_at_hand(class_set.name) for class_set in CLASS_SETS):
        load_named(CLASS_SETS[0].name)  # says what to do
    names = {method.key: method.name for method in CLASS_METHODS}
    rows: dict[str, dict[str, list[ClassCell]]] = {}
    for key in class_work(settings):
        row = rows.setdefault(key.name, {})
        row.setdefault(names[key.method], []).append(run_class_cell(key, settings))
    sets = [class_set for class_set in CLASS_SETS if class_set.name in rows]
    flat = {f"{name}: {method}": cells for name in rows for method, cells in rows[name].items()}
    return Reproduction(
        name="spectral-table-2",
        title="Classification: errors, five folds",
        source="Oliva et al. (2016), Table 2",
        command="mercer reproduce spectral-table-2" + (" --quick" if settings.is_quick else ""),
        claims=_claims(settings, sets, rows),
        measured={name: _values(cells, "error") for name, cells in flat.items()},
        unit="share of test rows that are wrong",
        published={},
        notes=_notes(settings.is_quick),
        draw=lambda figure: _draw(figure, sets, rows),
        number=".3g",
        tables=(_errors_table(sets, rows), _losses_table(sets, rows)),
        beside={
            "log loss": {name: _values(cells, "log_loss") for name, cells in flat.items()},
            "seconds": {name: _values(cells, "seconds") for name, cells in flat.items()},
        },
    )


def _values(cells: Sequence[ClassCell], name: str) -> Array:
    return np.array([getattr(cell, name) for cell in cells])


def _is_wrong(cells: Sequence[ClassCell]) -> NDArray[np.bool_]:
    """Which test rows are wrong, fold after fold."""
    parts = []
    for cell in cells:
        part = np.zeros(cell.n_test, dtype=bool)
        part[list(cell.wrong)] = True
        parts.append(part)
    return np.concatenate(parts)


def _is_level(first: Sequence[ClassCell], second: Sequence[ClassCell]) -> bool:
    return mcnemar(_is_wrong(first), _is_wrong(second)) >= _LEVEL


def _mean(cells: Sequence[ClassCell]) -> float:
    return float(_values(cells, "error").mean())


def _claims(
    settings: Settings, sets: Sequence[ClassSet], rows: Mapping[str, Row]
) -> tuple[Claim, ...]:
    claims = [_paper_claim(settings, sets, rows)] if sets else []
    claims += [_target_claim(settings, s, rows[s.name]) for s in sets if s.target is not None]
    claims += [
        _tool_claim(settings, s, rows[s.name], tool)
        for s in sets
        for tool in _TOOLS
        if tool in rows[s.name]
    ]
    absent = ", ".join(s.name for s in CLASS_SETS if not is_at_hand(s.name))
    if absent:
        words = f"the same on {absent}"
        claims.append(Claim(words, "yes", "-", "not judged", "the files are not at hand"))
    return tuple(claims)


def _paper_claim(settings: Settings, sets: Sequence[ClassSet], rows: Mapping[str, Row]) -> Claim:
    """BaNK against the paper's rivals: no set may be lost."""
    lost = [
        f"{s.name} ({rival})"
        for s in sets
        for rival in _PAPERS
        if _mean(rows[s.name][_BANK]) > _mean(rows[s.name][rival])
        and not _is_level(rows[s.name][_BANK], rows[s.name][rival])
    ]
    n_lost = len({entry.partition(" ")[0] for entry in lost})
    return judged(
        settings,
        "BaNK is better than RKS, MKL and RFO, or as good",
        "6 of 6",
        f"{len(sets) - n_lost} of {len(sets)}" + (f"; worse on {', '.join(lost)}" if lost else ""),
        not lost,
        f"as good: McNemar's test at {100 * _LEVEL:.0f} %",
    )


def _target_claim(settings: Settings, class_set: ClassSet, row: Row) -> Claim:
    mean, error = mean_and_error(_values(row[_BANK], "error"))
    target = float(class_set.target or np.nan)
    return judged(
        settings,
        f"{class_set.name}: the error of BaNK is at most {target:.3g}",
        f"{class_set.published[_BANK][0]:.3g}",
        f"{mean:.3g} +- {error:.2g}",
        mean <= target,
        "a promise of mercer, not of the paper",
    )


def _tool_claim(settings: Settings, class_set: ClassSet, row: Row, tool: str) -> Claim:
    ours, theirs = _values(row[_BANK], "error"), _values(row[tool], "error")
    gap, error = mean_and_error(ours - theirs)
    return judged(
        settings,
        f"{class_set.name}: BaNK is no worse than {tool}",
        "-",
        f"{ours.mean():.3g} against {theirs.mean():.3g}, difference {gap:+.2g} +- {error:.2g}",
        gap <= error,
        "paired, within one standard error; a promise of mercer, not of the paper",
    )


def class_marked(row: Row) -> dict[str, str]:
    """Write means and standard errors: lowest with an asterisk, those level with it in bold."""
    lowest = min(row, key=lambda method: _mean(row[method]))
    texts = {}
    for method, cells in row.items():
        mean, error = mean_and_error(_values(cells, "error"))
        text = f"{mean:.3g} ± {error:.2g}" + ("\\*" if method == lowest else "")
        is_bold = method == lowest or _is_level(cells, row[lowest])
        texts[method] = f"**{text}**" if is_bold else text
    return texts


def _errors_table(sets: Sequence[ClassSet], rows: Mapping[str, Row]) -> str:
    names = [method.name for method in CLASS_METHODS]
    published = (*_PAPERS, _BANK)
    heads = ["data set", "rows", "inputs", *names, *(f"paper: {name}" for name in published)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for class_set in sets:
        texts = class_marked(rows[class_set.name])
        first = rows[class_set.name][_BANK][0]
        cells = [class_set.name, str(first.n_train + first.n_test), str(first.n_inputs)]
        cells += [texts.get(name, "-") for name in names]
        cells += [f"{class_set.published[name][0]:.3g}" for name in published]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _losses_table(sets: Sequence[ClassSet], rows: Mapping[str, Row]) -> str:
    names = [method.name for method in CLASS_METHODS]
    heads = ["data set", *(f"log loss: {name}" for name in names)]
    heads += [f"s a fold: {name}" for name in names]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for class_set in sets:
        row = rows[class_set.name]
        cells = [class_set.name]
        for what, number in (("log_loss", ".3g"), ("seconds", ".1f")):
            means = {name: _values(row[name], what).mean() for name in names if name in row}
            cells += [format(means[name], number) if name in means else "-" for name in names]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _notes(is_quick: bool) -> tuple[str, ...]:
    seconds = "Seconds: linear algebra with one thread; they differ from run to run."
    if is_quick:
        return (seconds,)
    return (
        "RKS and MKL: 768 features, inputs standardised or as they are, whichever cross-validates "
        "better; settings on 2000 training rows at most. RFO: 768 features, settings on 1000 rows. "
        "Support vectors: robust scaling, settings on 2000 rows; gradient boosting: scikit-learn's "
        "on histograms, settings on 10,000. Coefficients and trees from all rows. BaNK: defaults, "
        "but from 5000 training rows on eight chains of 10 + 10 sweeps, from 20,000 four."
        f" BaNK and RFO stop after {MAX_SECONDS:.0f} s a fold.",
        f"{PAPER_CHAIN}: `BaNKClassifier.paper()`, joint moves of 384 frequencies, 150 sweeps, cut "
        f"where a fold would take more than {HOUR_A_SET:.0f} s, an hour a data set.",
        seconds,
    )


def _draw(figure: Figure, sets: Sequence[ClassSet], rows: Mapping[str, Row]) -> None:
    """Draw a panel for each data set: errors of the folds, and the paper's."""
    from mercer.plot import repeats

    n_columns = 2
    n_lines = max(-(-len(sets) // n_columns), 1)
    figure.set_size_inches(11.0, 3.2 * n_lines)
    panels = figure.subplots(n_lines, n_columns, squeeze=False).ravel()
    for axes, class_set in zip(panels, sets, strict=False):
        errors = {name: _values(cells, "error") for name, cells in rows[class_set.name].items()}
        published = {name: figures[0] for name, figures in class_set.published.items()}
        repeats(errors, published=published, ax=axes)
        axes.set_title(class_set.name, loc="left")
        axes.set_xlabel("share of test rows that are wrong")
    for axes in panels[len(sets) :]:
        axes.set_axis_off()
