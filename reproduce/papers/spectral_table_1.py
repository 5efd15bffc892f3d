"""Oliva et al., Table 1: mean squared errors of BaNK and its rivals, by five-fold cross-validation.

The folds are the same for all methods, every method chooses its settings on the training rows, and
the target is standardised by the training rows of each fold. As in the paper an asterisk marks the
lowest mean, and bold type what a paired t-test at 5 % does not tell from it. Beside the paper's
methods: BaNK with the paper's law of noise, and by the paper's own chain, gradient boosting, a GP
with a length scale for each input (up to 1500 training rows) and ridge regression on the inputs.

A run with ``--out`` keeps each cell (a method on a fold) in a folder beside the page, and goes on
from there; remove the folder to run all of them again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ttest_rel

from mercer.data.named import load_named
from reproduce.papers.reproduction import Claim, Reproduction, Settings, mean_and_error
from reproduce.papers.spectral_cells import Cell, run_cell, work
from reproduce.papers.spectral_folds import SETS, TableSet, is_at_hand
from reproduce.papers.spectral_methods import HOUR_A_SET, METHODS, NORMAL_NOISE, PAPER_CHAIN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["marked", "reproduce"]

Array = NDArray[np.float64]
# Of one data set: the cells of each method, fold by fold.
Row = Mapping[str, Sequence[Cell]]

_BANK, _BOOSTING = "BaNK", "gradient boosting"
_RIVALS = ("RKS", "MKL", "AlaC")
_LEVEL = 0.05
# Differences that agree to so many digits have no spread to test by.
_SAME = 1e-9
# An axis that is longer than this factor has ticks at powers of ten only.
_DECADES = 30.0
_QUICK = "a quick run judges nothing: few rows, two folds, small settings"


def reproduce(settings: Settings) -> Reproduction:
    """Run every cell, or read those that are done.

    Raises
    ------
    StorageError
        If none of the data sets is at hand.
    """
    if not any(is_at_hand(table_set.name) for table_set in SETS):
        load_named(SETS[0].name)  # says what to do
    names = {method.key: method.name for method in METHODS}
    rows: dict[str, dict[str, list[Cell]]] = {}
    for key in work(settings):
        row = rows.setdefault(key.name, {})
        row.setdefault(names[key.method], []).append(run_cell(key, settings))
    sets = [table_set for table_set in SETS if table_set.name in rows]
    flat = {f"{name}: {method}": cells for name in rows for method, cells in rows[name].items()}
    return Reproduction(
        name="spectral-table-1",
        title="Regression: mean squared errors, five folds",
        source="Oliva et al. (2016), Table 1",
        command="mercer reproduce spectral-table-1" + (" --quick" if settings.is_quick else ""),
        claims=_claims(sets, rows, settings.is_quick),
        measured={name: _values(cells, "mse") for name, cells in flat.items()},
        unit="mean squared error, standardised target",
        published={},
        notes=_notes(settings.is_quick),
        draw=lambda figure: _draw(figure, sets, rows),
        number=".3g",
        tables=(_errors_table(sets, rows), _coverage_table(sets, rows)),
        beside={
            "coverage of 90 % intervals": {
                name: _values(cells, "coverage") for name, cells in flat.items()
            },
            "seconds": {name: _values(cells, "seconds") for name, cells in flat.items()},
        },
    )


def _values(cells: Sequence[Cell], name: str) -> Array:
    return np.array([getattr(cell, name) for cell in cells])


def _errors_of(row: Row) -> dict[str, Array]:
    return {method: _values(cells, "mse") for method, cells in row.items()}


def _claims(sets: Sequence[TableSet], rows: Mapping[str, Row], is_quick: bool) -> tuple[Claim, ...]:
    claims = [_paper_claim(sets, rows)] if sets else []
    claims += [_target_claim(s, rows[s.name]) for s in sets if s.target is not None]
    claims += [_boosting_claim(s, rows[s.name]) for s in sets]
    if is_quick:
        claims = [Claim(c.claim, c.paper, c.ours, "not judged", _QUICK) for c in claims]
    absent = ", ".join(s.name for s in SETS if not is_at_hand(s.name))
    if absent:
        words = f"the same on {absent}"
        claims.append(Claim(words, "yes", "-", "not judged", "the files are not at hand"))
    return tuple(claims)


def _paper_claim(sets: Sequence[TableSet], rows: Mapping[str, Row]) -> Claim:
    """BaNK against the paper's rivals: at most one set may be lost."""
    lost = []
    for table_set in sets:
        errors = _errors_of(rows[table_set.name])
        lost += [
            f"{table_set.name} ({rival})"
            for rival in _RIVALS
            if rival in errors
            and errors[_BANK].mean() > errors[rival].mean()
            and not _is_level(errors[_BANK], errors[rival])
        ]
    n_lost = len({entry.partition(" ")[0] for entry in lost})
    return Claim(
        "BaNK is better than RKS, MKL and AlaC, or level, on nearly all data sets",
        "8 of 8",
        f"{len(sets) - n_lost} of {len(sets)}" + (f"; worse on {', '.join(lost)}" if lost else ""),
        "holds" if n_lost <= 1 else "fails",
        f"level: a paired t-test at {100 * _LEVEL:.0f} %; nearly all: all but one",
    )


def _target_claim(table_set: TableSet, row: Row) -> Claim:
    mean, error = mean_and_error(_errors_of(row)[_BANK])
    target = float(table_set.target or np.nan)
    return Claim(
        f"{table_set.name}: the error of BaNK is at most {target:.3g}",
        f"{table_set.published['BaNK'][0]:.3g}",
        f"{mean:.3g} +- {error:.2g}",
        "holds" if mean <= target else "fails",
        "a promise of mercer, not of the paper",
    )


def _boosting_claim(table_set: TableSet, row: Row) -> Claim:
    errors = _errors_of(row)
    gap, error = mean_and_error(errors[_BANK] - errors[_BOOSTING])
    return Claim(
        f"{table_set.name}: BaNK is no worse than gradient boosting",
        "-",
        f"{errors[_BANK].mean():.3g} against {errors[_BOOSTING].mean():.3g}, "
        f"difference {gap:+.2g} +- {error:.2g}",
        "holds" if gap <= error else "fails",
        "paired, within one standard error; a promise of mercer, not of the paper",
    )


def _is_level(errors: Array, lowest: Array) -> bool:
    """Whether a paired t-test leaves two methods together; equal errors are level."""
    differences = errors - lowest
    largest = float(np.abs(differences).max())
    if len(differences) < 2 or np.ptp(differences) <= _SAME * largest:
        return largest == 0.0
    return float(ttest_rel(errors, lowest).pvalue) >= _LEVEL


def marked(errors: Mapping[str, Array]) -> dict[str, str]:
    """Write means and standard errors: lowest with an asterisk, those level with it in bold."""
    lowest = min(errors, key=lambda method: float(errors[method].mean()))
    texts = {}
    for method, values in errors.items():
        mean, error = mean_and_error(values)
        text = f"{mean:.3g} ± {error:.2g}" + ("\\*" if method == lowest else "")
        is_bold = method == lowest or _is_level(values, errors[lowest])
        texts[method] = f"**{text}**" if is_bold else text
    return texts


def _errors_table(sets: Sequence[TableSet], rows: Mapping[str, Row]) -> str:
    names = [method.name for method in METHODS]
    published = ("RKS", "MKL", "AlaC", "BaNK")
    heads = ["data set", "rows", "inputs", *names, *(f"paper: {name}" for name in published)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for table_set in sets:
        row = rows[table_set.name]
        texts = marked(_errors_of(row))
        first = row[_BANK][0]
        cells = [table_set.name, str(first.n_train + first.n_test), str(first.n_inputs)]
        cells += [texts.get(name, "-") for name in names]
        cells += [f"{table_set.published[name][0]:.3g}" for name in published]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _coverage_table(sets: Sequence[TableSet], rows: Mapping[str, Row]) -> str:
    names = [method.name for method in METHODS]
    with_intervals = [_BANK, NORMAL_NOISE, PAPER_CHAIN, "GP, ARD"]
    heads = ["data set", *(f"coverage of 90 %: {name}" for name in with_intervals)]
    heads += [f"s a fold: {name}" for name in names]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for table_set in sets:
        row = rows[table_set.name]
        cells = [table_set.name]
        for name in with_intervals:
            cells.append(f"{_values(row[name], 'coverage').mean():.3f}" if name in row else "-")
        for name in names:
            cells.append(f"{_values(row[name], 'seconds').mean():.1f}" if name in row else "-")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _notes(is_quick: bool) -> tuple[str, ...]:
    seconds = "Seconds: linear algebra with one thread; they differ from run to run."
    if is_quick:
        return (seconds,)
    return (
        "RKS and MKL: 768 features, inputs standardised or as they are, whichever cross-validates "
        "better. Gradient boosting: scikit-learn's on histograms, up to 500 trees; their number, "
        "learning rate and leaves by three-fold cross-validation. Each on 10,000 training rows at "
        "most, coefficients and trees from all. AlaC: two or four components of 24 or 96 "
        "frequencies, chosen on 1000 rows, by the likelihood of 4000. BaNK: defaults, but one "
        "chain of 60 draws from 5000 training rows on; where the noise varies, rows "
        f'count less that have more. {NORMAL_NOISE}: the same, `noise="normal"`.',
        f"{PAPER_CHAIN}: `BaNKRegressor.paper()`, 384 frequencies and 150 sweeps, cut where a fold "
        f"would take more than {HOUR_A_SET:.0f} s, an hour a data set.",
        seconds,
    )


def _draw(figure: Figure, sets: Sequence[TableSet], rows: Mapping[str, Row]) -> None:
    """Draw a panel for each data set: errors of the folds, and the paper's, on a log scale."""
    from mercer.plot import repeats

    n_columns = 3
    n_lines = -(-len(sets) // n_columns)
    figure.set_size_inches(13.0, 3.0 * max(n_lines, 1))
    panels = figure.subplots(max(n_lines, 1), n_columns, squeeze=False).ravel()
    for axes, table_set in zip(panels, sets, strict=False):
        _draw_panel(axes, table_set, rows[table_set.name], repeats)
    for axes in panels[len(sets) :]:
        axes.set_axis_off()


def _draw_panel(axes: Axes, table_set: TableSet, row: Row, repeats: Callable[..., Axes]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator

    published = {name: figures[0] for name, figures in table_set.published.items()}
    repeats(_errors_of(row), published=published, ax=axes)
    axes.set_xscale("log")
    lowest, highest = axes.get_xlim()
    steps = (1.0,) if highest > _DECADES * lowest else (1.0, 2.0, 5.0)
    axes.xaxis.set_major_locator(LogLocator(subs=steps))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.minorticks_off()
    axes.set_title(table_set.name, loc="left")
    axes.set_xlabel("mean squared error")
