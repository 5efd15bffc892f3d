"""Oliva et al., Figure 4: error and time against N and against M; classes in their own module.

Rows N are subsets of the training rows of one fold, at M = 384 frequencies; frequencies M are 24
to 384, at a fixed number of rows. Every run has the same number of sweeps, one chain and one
thread, so that seconds are those of the sweeps; the paper's machine and number of sweeps are not
known. Slopes are those of least squares on log-log scales. Panels of classification
(`reproduce.papers.spectral_figure_4_classes`) have one repeat and 40 sweeps, for sets at hand.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer.data.named import load_named
from mercer.errors import MercerWarning
from reproduce.papers.kept import kept, parts_folder
from reproduce.papers.power_law import slope
from reproduce.papers.reproduction import Claim, Reproduction, Settings
from reproduce.papers.spectral_figure_4_classes import ClassCurves, class_claims, class_curves
from reproduce.papers.spectral_folds import Fold, fold_of, is_at_hand

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["reproduce", "slope"]

Array = NDArray[np.float64]

_SETS = ("naval", "bike")
_ROWS, _MOST_FREQUENCIES = (600, 1200, 2400, 4800, 9500), 384
_FREQUENCIES, _FIXED_ROWS = (24, 48, 96, 192, 384), 9500
_QUICK_ROWS, _QUICK_FREQUENCIES, _QUICK_FIXED_ROWS = (80, 160, 320), (12, 24, 48), 320
# Slopes that count as linear in N, and as quadratic in M: the parts that do not grow like that
# (M^3 for N, M for M) are in the times as well.
_LINEAR, _QUADRATIC = (0.6, 1.2), (1.4, 2.4)


@dataclass(frozen=True)
class _Plan:
    """What is run: rows at the most frequencies, and frequencies at the most rows."""

    rows: tuple[int, ...]
    frequencies: tuple[int, ...]
    fixed_rows: int
    n_repeats: int
    n_sweeps: int


@dataclass(frozen=True)
class _Run:
    """One fit."""

    mse: float
    seconds: float


# Of one data set: runs of every repeat, by number of rows or of frequencies.
Curve = Mapping[int, list[_Run]]


def reproduce(settings: Settings) -> Reproduction:
    """Fit BaNK at every size, and fit slopes.

    Raises
    ------
    StorageError
        If a data set is not at hand.
    """
    plan = _Plan(_ROWS, _FREQUENCIES, _FIXED_ROWS, 3, 80)
    if settings.is_quick:
        plan = _Plan(_QUICK_ROWS, _QUICK_FREQUENCIES, _QUICK_FIXED_ROWS, 1, 10)
    most = plan.frequencies[-1]
    for name in _SETS:
        if not is_at_hand(name):
            load_named(name)  # says what to do
    by_rows = {s: {n: _runs(s, n, most, plan, settings) for n in plan.rows} for s in _SETS}
    by_frequencies = {
        s: {m: _runs(s, plan.fixed_rows, m, plan, settings) for m in plan.frequencies}
        for s in _SETS
    }
    classes = class_curves(settings)
    measured, seconds = _flat(by_rows, by_frequencies)
    class_measured, class_seconds = classes.flat()
    return Reproduction(
        name="spectral-figure-4",
        title="Error and time against rows and frequencies",
        source="Oliva et al. (2016), Figure 4 and section 4.4",
        command="mercer reproduce spectral-figure-4" + (" --quick" if settings.is_quick else ""),
        claims=(
            *_claims(by_rows, by_frequencies, settings.is_quick),
            *class_claims(classes, settings),
        ),
        measured={**measured, **class_measured},
        unit="mean squared error, standardised target; of classes, share of errors",
        published={},
        notes=(
            f"One chain of {plan.n_sweeps} sweeps, one thread; seconds are of the whole fit, and "
            "differ from run to run.",
            "Which data sets the paper's panels show cannot be told from its text.",
        ),
        draw=lambda figure: _draw(figure, by_rows, by_frequencies, classes),
        number=".3g",
        beside={"seconds": {**seconds, **class_seconds}},
    )


def _runs(
    name: str, n_rows: int, n_frequencies: int, plan: _Plan, settings: Settings
) -> list[_Run]:
    """Repeats have their own split, their own rows and their own seed."""
    folder = parts_folder(settings, "spectral-figure-4")
    runs = []
    for repeat in range(plan.n_repeats):
        size = {"rows": n_rows, "frequencies": n_frequencies, "repeat": repeat}

        def run(size: dict[str, int] = size) -> dict[str, float]:
            settings.tell(f"{name}, " + ", ".join(f"{what} {n}" for what, n in size.items()))
            return _fit(fold_of(name, size["repeat"], settings.is_quick), size, plan.n_sweeps)

        key = f"{name}-{n_rows}-{n_frequencies}-{repeat}"
        runs.append(_Run(**kept(folder, key, {"set": name, **size}, run)))
    return runs


def _fit(fold: Fold, size: Mapping[str, int], n_sweeps: int) -> dict[str, float]:
    _load_loops()
    rng = np.random.default_rng([size["repeat"], 4])
    # The first rows of one random order: the smaller subsets lie within the larger ones.
    rows = rng.permutation(len(fold.y))[: size["rows"]]
    model = _unfitted(size["frequencies"], n_sweeps, size["repeat"])
    with warnings.catch_warnings(), threadpool_limits(limits=1, user_api="blas"):
        warnings.simplefilter("ignore", MercerWarning)
        begin = time.perf_counter()
        model.fit(fold.X[rows], fold.y[rows])
        seconds = time.perf_counter() - begin
    mse = float(np.mean((model.predict(fold.X_test) - fold.y_test) ** 2))
    return {"mse": mse, "seconds": seconds}


@cache
def _load_loops() -> None:
    """Fit something small first: loading compiled loops is not to be in the seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        x = np.linspace(-1.0, 1.0, 30)
        _unfitted(4, 4, 0).fit(x[:, np.newaxis], x**2)


def _unfitted(n_frequencies: int, n_sweeps: int, seed: int) -> Any:
    from mercer.spectral.estimator import BaNKRegressor

    return BaNKRegressor(
        n_frequencies=n_frequencies, n_draws=n_sweeps // 2, n_warmup=n_sweeps - n_sweeps // 2,
        n_chains=1, random_state=seed, n_jobs=1, progress=False,
    )  # fmt: skip


def _flat(
    by_rows: Mapping[str, Curve], by_frequencies: Mapping[str, Curve]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Errors and seconds by a name for each point of the figure."""
    errors, seconds = {}, {}
    for symbol, curves in (("N", by_rows), ("M", by_frequencies)):
        for name, curve in curves.items():
            for size, runs in curve.items():
                key = f"{name}, {symbol} = {size}"
                errors[key] = np.array([run.mse for run in runs])
                seconds[key] = np.array([run.seconds for run in runs])
    return errors, seconds


def _means(curve: Curve, what: str) -> tuple[Array, Array]:
    """Sizes, and means over repeats."""
    means = [np.mean([getattr(run, what) for run in runs]) for runs in curve.values()]
    return np.array(list(curve), np.float64), np.array(means)


def _claims(
    by_rows: Mapping[str, Curve], by_frequencies: Mapping[str, Curve], is_quick: bool
) -> tuple[Claim, ...]:
    claims = [
        _slope_claim("time is linear in N at M = 384", "linear", by_rows, _LINEAR),
        _slope_claim("time is quadratic in M", "quadratic", by_frequencies, _QUADRATIC),
        _falling_claim(by_rows),
        _diminishing_claim(by_frequencies),
    ]
    if is_quick:
        note = "a quick run judges nothing: few rows, few frequencies"
        claims = [Claim(c.claim, c.paper, c.ours, "not judged", note) for c in claims]
    return tuple(claims)


def _slope_claim(
    words: str, paper: str, curves: Mapping[str, Curve], limits: tuple[float, float]
) -> Claim:
    """The largest three sizes decide: below, the parts that do not grow are in the way."""
    slopes = {}
    for name, curve in curves.items():
        sizes, seconds = _means(curve, "seconds")
        slopes[name] = slope(sizes[-3:], seconds[-3:])
    is_met = all(limits[0] <= value <= limits[1] for value in slopes.values())
    return Claim(
        words,
        paper,
        "exponent " + ", ".join(f"{value:.2f} ({name})" for name, value in slopes.items()),
        "holds" if is_met else "fails",
        f"three largest sizes; from {limits[0]} to {limits[1]}",
    )


def _falling_claim(curves: Mapping[str, Curve]) -> Claim:
    means = {name: _means(curve, "mse")[1] for name, curve in curves.items()}
    return Claim(
        "more rows, smaller error",
        "yes (by eye)",
        "; ".join(f"{name}: {_listed(values)}" for name, values in means.items()),
        "holds" if all(values[-1] < values[0] for values in means.values()) else "fails",
        "the most rows and the fewest",
    )


def _diminishing_claim(curves: Mapping[str, Curve]) -> Claim:
    """The first doubling of M takes off more of the error than the last one does."""
    means = {name: _means(curve, "mse")[1] for name, curve in curves.items()}
    is_met = all(
        values[-1] < values[0] and values[0] - values[1] > values[-2] - values[-1]
        for values in means.values()
    )
    return Claim(
        "more frequencies, smaller error, with diminishing returns",
        "yes (by eye)",
        "; ".join(f"{name}: {_listed(values)}" for name, values in means.items()),
        "holds" if is_met else "fails",
        "the first doubling takes off more than the last",
    )


def _listed(values: Array) -> str:
    return ", ".join(f"{value:.3g}" for value in values)


def _draw(
    figure: Figure,
    by_rows: Mapping[str, Curve],
    by_frequencies: Mapping[str, Curve],
    classes: ClassCurves,
) -> None:
    """Draw error and time, against rows and against frequencies; classes below."""
    from mercer.plot.style import FONT_SIZE, dress

    n_lines = 1 + (not classes.is_empty)
    figure.set_size_inches(13.0, 3.6 * n_lines)
    panels = figure.subplots(n_lines, 4, squeeze=False)
    places = (("N", "mse"), ("N", "seconds"), ("M", "mse"), ("M", "seconds"))
    for axes, (symbol, what) in zip(panels[0], places, strict=True):
        dress(axes)
        _draw_panel(axes, by_rows if symbol == "N" else by_frequencies, what)
        axes.set_ylabel("mean squared error" if what == "mse" else "seconds")
    for axes, (symbol, what) in zip(panels[1:].ravel(), places, strict=False):
        dress(axes)
        classes.draw(axes, symbol, "error" if what == "mse" else "seconds")
    for axes, (symbol, _) in zip(panels.ravel(), places * n_lines, strict=True):
        axes.set_xlabel("rows N" if symbol == "N" else "frequencies M")
    for axes in panels[:, 0]:
        axes.legend(fontsize=FONT_SIZE - 1, frameon=False)


def _draw_panel(axes: Axes, curves: Mapping[str, Curve], what: str) -> None:
    from mercer.plot.style import CHAIN_COLOURS

    for colour, (name, curve) in zip(CHAIN_COLOURS, curves.items(), strict=False):
        sizes, means = _means(curve, what)
        axes.plot(sizes, means, "-o", markersize=4, color=colour, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.minorticks_off()
    axes.set_xticks(sizes, [f"{size:.0f}" for size in sizes])
