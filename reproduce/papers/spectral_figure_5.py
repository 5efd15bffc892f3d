"""Oliva et al., Figure 5: times of all methods, with 384 frequencies.

One fit on the first fold of each set, of 2000 training rows at most, with one thread, at settings
that are given: what choosing them by cross-validation takes is not in the figure. BaNK has one
chain of 40 sweeps, by default and as the paper has it, RFO 100 steps, AlaC 60. The paper's machine,
its rows and its number of sweeps are not known, so that ratios are held against its words, not
seconds against its bars.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer.data.named import load_named
from mercer.errors import MercerWarning
from reproduce.papers.kept import kept, parts_folder
from reproduce.papers.reproduction import Claim, Reproduction, Settings, judged
from reproduce.papers.spectral_class_folds import CLASS_SETS, class_fold_of
from reproduce.papers.spectral_folds import SETS, fold_of, is_at_hand
from reproduce.papers.spectral_methods import PAPER_CHAIN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TIMED", "Timed", "reproduce"]

Array = NDArray[np.float64]
# Of one data set: seconds of each method.
Row = Mapping[str, float]

_BANK, _FIXED, _LEARNED = "BaNK", ("RKS", "MKL"), ("AlaC", "RFO")
_MOST_ROWS, _QUICK_ROWS = 2000, 100
_N_FREQUENCIES, _QUICK_FREQUENCIES = 384, 24
# A factor that counts as "comparable".
_COMPARABLE = 10.0
# Folds and rows that the only setting there is, is "chosen" on.
_N_FOLDS, _N_CHOICE_ROWS = 2, 40


@dataclass(frozen=True)
class Timed:
    """One method on sets of one task.

    Attributes
    ----------
    name : str
    make : callable
        (number of frequencies, is_quick) -> unfitted estimator.
    """

    name: str
    make: Callable[[int, bool], Any]


def _fixed(home: str, name: str) -> Callable[[int, bool], Any]:
    def make(n_frequencies: int, is_quick: bool) -> Any:
        from mercer import baselines

        return getattr(baselines, f"{name}{home}")(
            n_features=2 * n_frequencies, length_factors=(1.0,), penalties=(1e-2,),
            random_state=0, n_folds=_N_FOLDS,
        selection_rows=_N_CHOICE_ROWS,
        )  # fmt: skip

    return make


def _a_la_carte(n_frequencies: int, is_quick: bool) -> Any:
    from mercer.baselines.a_la_carte import AlaCarteRegressor

    return AlaCarteRegressor(
        components=(4,), frequencies_each=(n_frequencies // 4,), random_state=0,
        max_iter=5 if is_quick else 60, n_folds=_N_FOLDS,
        selection_rows=_N_CHOICE_ROWS,
    )  # fmt: skip


def _optimised(n_frequencies: int, is_quick: bool) -> Any:
    from mercer.baselines.rfo import RFOClassifier

    return RFOClassifier(
        n_features=2 * n_frequencies, components=(4,), penalties=(1.0,), random_state=0,
        steps=(5 if is_quick else 100,), n_folds=_N_FOLDS,
        selection_rows=_N_CHOICE_ROWS,
    )  # fmt: skip


def _bank(home: str, *, is_paper: bool = False) -> Callable[[int, bool], Any]:
    def make(n_frequencies: int, is_quick: bool) -> Any:
        import mercer

        n_draws = 5 if is_quick else 20
        estimator = getattr(mercer, f"BaNK{home}")
        return (estimator.paper() if is_paper else estimator()).set_params(
            n_frequencies=n_frequencies, n_draws=n_draws, n_warmup=n_draws, n_chains=1,
            random_state=0, n_jobs=1, progress=False,
        )  # fmt: skip

    return make


#: Methods of each task, in the order of the figure.
TIMED = {
    "Regressor": (
        Timed("RKS", _fixed("Regressor", "RKS")),
        Timed("MKL", _fixed("Regressor", "MKL")),
        Timed("AlaC", _a_la_carte),
        Timed(_BANK, _bank("Regressor")),
        Timed(PAPER_CHAIN, _bank("Regressor", is_paper=True)),
    ),
    "Classifier": (
        Timed("RKS", _fixed("Classifier", "RKS")),
        Timed("MKL", _fixed("Classifier", "MKL")),
        Timed("RFO", _optimised),
        Timed(_BANK, _bank("Classifier")),
        Timed(PAPER_CHAIN, _bank("Classifier", is_paper=True)),
    ),
}


def reproduce(settings: Settings) -> Reproduction:
    """Time every method on every set that is at hand.

    Raises
    ------
    StorageError
        If none of the data sets is at hand.
    """
    tasks = {s.name: "Regressor" for s in SETS} | {s.name: "Classifier" for s in CLASS_SETS}
    at_hand = {name: task for name, task in tasks.items() if is_at_hand(name)}
    if not at_hand:
        load_named(SETS[0].name)  # says what to do
    _load_loops()
    rows = {
        name: {timed.name: _seconds(name, task, timed, settings) for timed in TIMED[task]}
        for name, task in at_hand.items()
    }
    return Reproduction(
        name="spectral-figure-5",
        title="Times of all methods",
        source="Oliva et al. (2016), Figure 5 and section 4.4",
        command="mercer reproduce spectral-figure-5" + (" --quick" if settings.is_quick else ""),
        claims=_claims(settings, rows),
        measured={
            f"{name}: {method}": np.array([seconds])
            for name, row in rows.items()
            for method, seconds in row.items()
        },
        unit="seconds",
        published={},
        notes=(
            f"One fit on {_MOST_ROWS} training rows at most, with {_N_FREQUENCIES} frequencies and "
            "one thread, at given settings; 40 sweeps of BaNK and of the paper's chain, 60 steps "
            "of AlaC, 100 of RFO.",
        ),
        draw=lambda figure: _draw(figure, rows),
        number=".3g",
        tables=(_table(rows),),
    )


def _seconds(name: str, task: str, timed: Timed, settings: Settings) -> float:
    def run() -> dict[str, float]:
        settings.tell(f"{name}, {timed.name}")
        is_quick = settings.is_quick
        take = fold_of if task == "Regressor" else class_fold_of
        fold: Any = take(name, 0, is_quick)
        n_rows = _QUICK_ROWS if is_quick else _MOST_ROWS
        rows = np.random.default_rng(5).permutation(len(fold.y))[:n_rows]
        model = timed.make(_QUICK_FREQUENCIES if is_quick else _N_FREQUENCIES, is_quick)
        return {"seconds": _time(model, fold.X[rows], fold.y[rows])}

    stamp = {"set": name, "method": timed.name}
    folder = parts_folder(settings, "spectral-figure-5")
    return float(kept(folder, f"{name}-{timed.name}", stamp, run)["seconds"])


def _time(model: Any, X: Array, y: Array) -> float:
    with warnings.catch_warnings(), threadpool_limits(limits=1, user_api="blas"):
        # Constant columns, chains that are short on purpose.
        warnings.simplefilter("ignore", MercerWarning)
        begin = time.perf_counter()
        model.fit(X, y)
        return time.perf_counter() - begin


def _load_loops() -> None:
    """Fit something small first: loading compiled loops is not to be in the seconds."""
    x = np.linspace(-1.0, 1.0, 40)
    for methods in TIMED.values():
        for timed in methods:
            _time(timed.make(12, True), x[:, np.newaxis], (x > 0.0).astype(np.int64))


def _claims(settings: Settings, rows: Mapping[str, Row]) -> tuple[Claim, ...]:
    fixed = {name: max(row[other] for other in _FIXED) for name, row in rows.items()}
    ratios = {
        f"{name} ({other})": row[_BANK] / row[other]
        for name, row in rows.items()
        for other in _LEARNED
        if other in row
    }
    slower = [name for name, row in rows.items() if fixed[name] >= row[_BANK]]
    far = [key for key, ratio in ratios.items() if ratio > _COMPARABLE]
    return (
        judged(
            settings,
            "RKS and MKL, whose frequencies are fixed, are fast",
            "yes (by eye)",
            f"faster than BaNK on {len(rows) - len(slower)} of {len(rows)} sets",
            not slower,
        ),
        judged(
            settings,
            "the time of BaNK is comparable to that of methods that learn frequencies",
            "yes (by eye)",
            "times theirs: " + ", ".join(f"{value:.2g} on {key}" for key, value in ratios.items()),
            not far,
            f"{_COMPARABLE:.0f} times as much at most, on every set",
        ),
    )


def _table(rows: Mapping[str, Row]) -> str:
    names = (*_FIXED, *_LEARNED, _BANK, PAPER_CHAIN)
    heads = ["data set", *(f"s: {name}" for name in names)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, row in rows.items():
        cells = [format(row[method], ".3g") if method in row else "-" for method in names]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return "\n".join(lines)


def _draw(figure: Figure, rows: Mapping[str, Row]) -> None:
    """Draw seconds of each method on a log scale, set by set."""
    from mercer.plot.style import CHAIN_COLOURS, FONT_SIZE, dress

    figure.set_size_inches(9.0, 4.0)
    axes = figure.subplots()
    dress(axes)
    names = (*_FIXED, *_LEARNED, _BANK, PAPER_CHAIN)
    markers = "osD^vP"
    for k, method in enumerate(names):
        points = [(i, row[method]) for i, row in enumerate(rows.values()) if method in row]
        if points:
            colour = CHAIN_COLOURS[k % len(CHAIN_COLOURS)]
            axes.plot(*zip(*points, strict=True), markers[k], color=colour, label=method)
    axes.set_yscale("log")
    axes.set_xticks(range(len(rows)), list(rows), rotation=30, ha="right")
    axes.set_ylabel("seconds")
    axes.legend(fontsize=FONT_SIZE - 1, frameon=False)
