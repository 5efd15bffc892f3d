"""Oliva et al., Figure 4, panels of classification: error and time against N and against M.

As the panels of regression (`reproduce.papers.spectral_figure_4`), with one repeat of 40 sweeps at
each size, without trajectories: ten minutes at most. Sets whose files are not at hand are left out.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer.errors import MercerWarning
from reproduce.papers.kept import kept, parts_folder
from reproduce.papers.power_law import slope
from reproduce.papers.reproduction import Claim, Settings, judged
from reproduce.papers.spectral_class_folds import class_fold_of
from reproduce.papers.spectral_folds import is_at_hand

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CLASS_PANEL_SETS", "ClassCurves", "ClassRun", "class_claims", "class_curves"]

Array = NDArray[np.float64]

CLASS_PANEL_SETS = ("eeg", "shuttle")
_ROWS, _FREQUENCIES, _N_SWEEPS = (600, 1200, 2400, 4800, 9500), (24, 48, 96, 192, 384), 40
_QUICK_ROWS, _QUICK_FREQUENCIES, _QUICK_SWEEPS = (60, 120, 240), (6, 12, 24), 10
# Exponents that count as linear.
_LINEAR = (0.6, 1.2)
_NOTE_ON_M = "mercer integrates all coefficients out given Polya-Gamma variables, which takes M^2; "


@dataclass(frozen=True)
class ClassRun:
    """One fit: share of test rows that are wrong, and seconds."""

    error: float
    seconds: float


# Of one data set: runs by number of rows or of frequencies.
ClassCurve = Mapping[int, ClassRun]


@dataclass(frozen=True)
class ClassCurves:
    """Runs of every set: against rows, at the most frequencies, and against frequencies."""

    by_rows: Mapping[str, ClassCurve]
    by_frequencies: Mapping[str, ClassCurve]

    @property
    def is_empty(self) -> bool:
        """Whether no set was at hand."""
        return not self.by_rows

    def curves(self, symbol: str) -> Mapping[str, ClassCurve]:
        """Those against "N" or against "M"."""
        return self.by_rows if symbol == "N" else self.by_frequencies

    def flat(self) -> tuple[dict[str, Array], dict[str, Array]]:
        """Errors and seconds by a name for each point."""
        errors, seconds = {}, {}
        for symbol in ("N", "M"):
            for name, curve in self.curves(symbol).items():
                for size, run in curve.items():
                    errors[f"{name}, {symbol} = {size}"] = np.array([run.error])
                    seconds[f"{name}, {symbol} = {size}"] = np.array([run.seconds])
        return errors, seconds

    def draw(self, axes: Axes, symbol: str, what: str) -> None:
        """Draw errors or seconds of every set."""
        from mercer.plot.style import CHAIN_COLOURS

        curves = self.curves(symbol)
        for colour, (name, curve) in zip(CHAIN_COLOURS, curves.items(), strict=False):
            sizes, values = _values(curve, what)
            axes.plot(sizes, values, "--o", markersize=4, color=colour, label=name)
        axes.set_xscale("log")
        # An error may be 0.
        axes.set_yscale("log" if what == "seconds" else "linear")
        axes.minorticks_off()
        axes.set_xticks(sizes, [f"{size:.0f}" for size in sizes])
        axes.set_ylabel(what)


def class_curves(settings: Settings) -> ClassCurves:
    """Fit BaNK at every size, on every set that is at hand."""
    rows, frequencies = (
        (_QUICK_ROWS, _QUICK_FREQUENCIES) if settings.is_quick else (_ROWS, _FREQUENCIES)
    )
    names = [name for name in CLASS_PANEL_SETS if is_at_hand(name)]
    if not names:
        return ClassCurves({}, {})
    _load_loops()
    by_rows = {s: {n: _run(s, n, frequencies[-1], settings) for n in rows} for s in names}
    by_frequencies = {
        s: {m: _run(s, rows[-1], m, settings) if m < frequencies[-1] else by_rows[s][rows[-1]]
            for m in frequencies}
        for s in names
    }  # fmt: skip
    return ClassCurves(by_rows, by_frequencies)


def class_claims(curves: ClassCurves, settings: Settings) -> tuple[Claim, ...]:
    """Hold slopes and errors against the paper's."""
    if curves.is_empty:
        words, note = "the panels of classification", "the files are not at hand"
        return (Claim(words, "yes", "-", "not judged", note),)
    most_rows = {name: _values(curve, "error")[1] for name, curve in curves.by_rows.items()}
    return (
        _slope_claim(settings, "classes: time is linear in N at M = 384", curves.by_rows, ""),
        _slope_claim(settings, "classes: time is linear in M", curves.by_frequencies, _NOTE_ON_M),
        judged(
            settings,
            "classes: more rows, smaller error",
            "yes (by eye)",
            "; ".join(
                f"{name}: " + ", ".join(f"{value:.3g}" for value in values)
                for name, values in most_rows.items()
            ),
            all(values[-1] < values[0] for values in most_rows.values()),
            "the most rows and the fewest",
        ),
    )


def _slope_claim(
    settings: Settings, words: str, curves: Mapping[str, ClassCurve], note: str
) -> Claim:
    """The largest three sizes decide."""
    slopes = {}
    for name, curve in curves.items():
        sizes, seconds = _values(curve, "seconds")
        slopes[name] = slope(sizes[-3:], seconds[-3:])
    return judged(
        settings,
        words,
        "linear",
        "exponent " + ", ".join(f"{value:.2f} ({name})" for name, value in slopes.items()),
        all(_LINEAR[0] <= value <= _LINEAR[1] for value in slopes.values()),
        f"{note}three largest sizes; from {_LINEAR[0]} to {_LINEAR[1]}",
    )


def _values(curve: ClassCurve, what: str) -> tuple[Array, Array]:
    values = [getattr(run, what) for run in curve.values()]
    return np.array(list(curve), np.float64), np.array(values)


def _run(name: str, n_rows: int, n_frequencies: int, settings: Settings) -> ClassRun:
    """Fit on the first rows of one random order: the smaller subsets lie within the larger."""
    n_sweeps = _QUICK_SWEEPS if settings.is_quick else _N_SWEEPS

    def fit() -> dict[str, float]:
        settings.tell(f"{name}, rows {n_rows}, frequencies {n_frequencies}")
        fold = class_fold_of(name, 0, settings.is_quick)
        rows = np.random.default_rng(4).permutation(len(fold.y))[:n_rows]
        model = _unfitted(n_frequencies, n_sweeps)
        with warnings.catch_warnings(), threadpool_limits(limits=1, user_api="blas"):
            warnings.simplefilter("ignore", MercerWarning)
            begin = time.perf_counter()
            model.fit(fold.X[rows], fold.y[rows])
            seconds = time.perf_counter() - begin
        error = float(np.mean(model.predict(fold.X_test) != fold.y_test))
        return {"error": error, "seconds": seconds}

    stamp = {"set": name, "rows": n_rows, "frequencies": n_frequencies, "sweeps": n_sweeps}
    folder = parts_folder(settings, "spectral-figure-4")
    return ClassRun(**kept(folder, f"{name}-{n_rows}-{n_frequencies}", stamp, fit))


def _load_loops() -> None:
    """Fit something small first: loading compiled loops is not to be in the seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        x = np.linspace(-1.0, 1.0, 30)
        _unfitted(4, 4).fit(x[:, np.newaxis], (x > 0.0).astype(np.int64))


def _unfitted(n_frequencies: int, n_sweeps: int) -> Any:
    from mercer.spectral.classifier import BaNKClassifier

    return BaNKClassifier(
        n_frequencies=n_frequencies, n_draws=n_sweeps // 2, n_warmup=n_sweeps - n_sweeps // 2,
        n_leapfrog=0, n_chains=1, random_state=0, n_jobs=1, progress=False,
    )  # fmt: skip
