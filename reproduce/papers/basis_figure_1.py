"""Vermaak, Godsill & Doucet, Figure 1: error against the number of particles, and a typical fit.

Left: mean error over 25 sets of the sinc data for N from 10 to 1000 particles. Right: the fit of
the set whose error at N = 250 is the median, with its 90 % band.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reproduce.papers.basis_answer import LEVEL, Answer, Method, Problem
from reproduce.papers.basis_methods import make_model, sequential
from reproduce.papers.basis_runs import Figures, column, run_methods
from reproduce.papers.basis_sinc import sinc, sinc_set
from reproduce.papers.reproduction import Claim, Reproduction, Settings, judged, mean_and_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ENOUGH", "gain_claim", "reproduce", "sizes_of"]

Array = NDArray[np.float64]

_SIZES = (10, 25, 50, 100, 250, 500, 1000)
_N_SETS, _QUICK_SETS, _QUICK_SIZES = 25, 2, (10, 25)
#: Particles beyond which the paper finds no significant gain.
ENOUGH = 250
_NAMES = {"paper": "paper's settings", "default": "mercer, default"}
_KINDS = tuple(_NAMES)


def sizes_of(settings: Settings) -> tuple[int, ...]:
    """Numbers of particles."""
    return _QUICK_SIZES if settings.is_quick else _SIZES


def reproduce(settings: Settings) -> Reproduction:
    """Run both settings at every number of particles on every set."""
    errors = {
        f"{_NAMES[kind]}, N = {n}": _errors(kind, n, settings)
        for kind in _KINDS
        for n in sizes_of(settings)
    }
    middle = ENOUGH if ENOUGH in sizes_of(settings) else sizes_of(settings)[-1]
    at_middle = errors[f"{_NAMES['paper']}, N = {middle}"]
    typical = int(np.argsort(at_middle)[len(at_middle) // 2])
    first = errors[f"{_NAMES['paper']}, N = {sizes_of(settings)[0]}"]
    return Reproduction(
        name="basis-figure-1",
        title="Error against the number of particles, and a typical fit",
        source="Vermaak, Godsill & Doucet (2003), Figure 1",
        command="mercer reproduce basis-figure-1" + (" --quick" if settings.is_quick else ""),
        claims=(_fall_claim(first, at_middle, settings), gain_claim(settings)),
        measured=errors,
        unit="test error",
        published={},
        notes=(
            f"The fit shown is of set {typical + 1}, error {at_middle[typical]:.4f}, the median; "
            "the paper's example has 0.0309 with 6.18 kernels.",
        ),
        number=".4f",
        tables=(_table(errors, settings),),
        draw=lambda figure: _draw(figure, errors, typical, settings),
    )


def gain_claim(settings: Settings) -> Claim:
    """More than 250 particles gain nothing significant, same sets."""
    sizes = sizes_of(settings)
    n = ENOUGH if ENOUGH in sizes else sizes[0]
    few, many = (_errors("paper", each, settings) for each in (n, sizes[-1]))
    gain, error = mean_and_error(few - many)
    return judged(
        settings, f"no significant decrease beyond N = {ENOUGH}", "yes (by eye)",
        f"N = {sizes[-1]}: {many.mean():.4f} against {few.mean():.4f}, gain {gain:.4f} +- "
        f"{error:.4f}",
        gain <= max(2.0 * error, 0.05 * float(few.mean())),
        "paired; significant: above two standard errors and 5 % of the error",
    )  # fmt: skip


def _fall_claim(first: Array, later: Array, settings: Settings) -> Claim:
    gain, error = mean_and_error(first - later)
    sizes = sizes_of(settings)
    return judged(
        settings, "the error decreases with the number of particles", "yes (by eye)",
        f"N = {sizes[0]}: {first.mean():.4f}, N = {ENOUGH}: {later.mean():.4f}, gain {gain:.4f} "
        f"+- {error:.4f}",
        gain > 2.0 * error, "paired, above two standard errors",
    )  # fmt: skip


def _errors(kind: str, n_particles: int, settings: Settings) -> Array:
    """Error of each set."""
    n_sets = _QUICK_SETS if settings.is_quick else _N_SETS

    def run(problem: Problem, seed: int, is_quick: bool) -> Answer:
        model = make_model(is_paper=kind == "paper", random_state=seed, n_particles=n_particles)
        return sequential(model, problem)

    method = Method(f"{kind}-{n_particles}", f"{_NAMES[kind]}, N = {n_particles}", run)
    problems = [sinc_set(seed) for seed in range(n_sets)]
    found: dict[str, list[Figures]] = run_methods("sinc", [method], problems, settings)
    return np.sqrt(column(found[method.name], "error"))


def _table(errors: dict[str, Array], settings: Settings) -> str:
    heads = ["particles N", *_NAMES.values()]
    lines = [heads, ["---"] * len(heads)]
    for n in sizes_of(settings):
        means = [mean_and_error(errors[f"{name}, N = {n}"]) for name in _NAMES.values()]
        lines.append([str(n), *(f"{mean:.4f} ± {error:.2g}" for mean, error in means)])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _draw(figure: Figure, errors: dict[str, Array], typical: int, settings: Settings) -> None:
    from mercer.plot.style import dress

    figure.set_size_inches(11.0, 4.0)
    left, right = figure.subplots(1, 2)
    dress(left)
    dress(right)
    _draw_errors(left, errors, settings)
    _draw_fit(right, typical)


def _draw_errors(axes: Axes, errors: dict[str, Array], settings: Settings) -> None:
    from mercer.plot.style import CHAIN_COLOURS, FONT_SIZE

    sizes = sizes_of(settings)
    for colour, kind in zip(CHAIN_COLOURS, _KINDS, strict=False):
        values = [mean_and_error(errors[f"{_NAMES[kind]}, N = {n}"]) for n in sizes]
        means, bars = np.array(values).T
        axes.errorbar(sizes, means, bars, marker="o", capsize=3, color=colour, label=_NAMES[kind])
    axes.set_xscale("log")
    axes.set_ylim(0.0, None)
    axes.set_xlabel("particles N")
    axes.set_ylabel("test error, mean over sets")
    axes.legend(fontsize=FONT_SIZE - 2, frameon=False)


def _draw_fit(axes: Axes, typical: int) -> None:
    from mercer.plot.style import FONT_SIZE, PALETTE

    data = sinc_set(typical)
    model = make_model(is_paper=True, random_state=typical).fit(data.X, data.y)
    x = data.X_test[:, 0]
    axes.fill_between(
        x, *model.latent_interval(data.X_test, LEVEL), color=PALETTE["series-1"], alpha=0.2,
        linewidth=0, label="90 % band of the curve",
    )  # fmt: skip
    axes.plot(x, model.predict(data.X_test), color=PALETTE["series-1"], label="posterior mean")
    axes.plot(x, sinc(x), "--", color=PALETTE["series-2"], label="sin(x) / x")
    axes.plot(data.X[:, 0], data.y, ".", color=PALETTE["muted"], label="rows")
    axes.set_xlabel("x")
    axes.set_ylabel("y")
    axes.legend(fontsize=FONT_SIZE - 2, frameon=False)
