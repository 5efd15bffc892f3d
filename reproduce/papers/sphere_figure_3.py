"""Graepel & Herbrich, Figure 3: 50 decision boundaries at noise rates 0, 0.1 and 0.2.

76 rows in the plane and the kernel exp(-|x - x'|^2 / 2). The paper's rows are not published; ours
have labels without noise, since q = 0 needs classes that a classifier separates. The figure is
judged by eye in the paper; here by how often two draws differ in the class of a row: the mean over
pairs, of the training rows and of a grid over the rectangle.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.names import kernel_named
from mercer.sphere.space import spectrum_of
from reproduce.papers.reproduction import (
    Claim,
    Reproduction,
    Settings,
    is_clearly_below_zero,
    mean_and_error,
)
from reproduce.papers.sphere_draws import draw_classifiers, mean_disagreement, model_of
from reproduce.papers.sphere_problems import plane_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["reproduce"]

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]

_N_ROWS, _N_DRAWS = 76, 50
_RATES = (0.0, 0.1, 0.2)
# Steps of the chain to a draw: neighbouring draws are to be all but independent.
_THIN = 5
# log variance 0, and log weights 0 of both inputs: exp(-|x - x'|^2 / 2).
_THETA = np.zeros(3)
_SIDE = (np.linspace(-2.6, 1.1, 75), np.linspace(-2.6, 3.6, 120))
_TRAIN, _GRID = "training rows", "grid"


@dataclass(frozen=True)
class _Cloud:
    """One data set with 50 classifiers at each rate: values at its rows and on the grid."""

    X: Array
    labels: IntArray
    at_rows: tuple[Array, ...]
    on_grid: tuple[Array, ...]


def reproduce(settings: Settings) -> Reproduction:
    """Draw 50 classifiers at each rate, for several data sets."""
    n_sets = 5 if settings.is_quick else 50
    clouds = []
    for seed in range(n_sets):
        if seed % 10 == 0:
            settings.tell(f"data set {seed + 1} of {n_sets}")
        clouds.append(_cloud(seed))
    percent = {
        (where, rate): np.array([100.0 * mean_disagreement(f[k]) for f in values])
        for where, values in (
            (_TRAIN, [cloud.at_rows for cloud in clouds]),
            (_GRID, [cloud.on_grid for cloud in clouds]),
        )
        for k, rate in enumerate(_RATES)
    }
    return Reproduction(
        name="sphere-figure-3",
        title=f"Diversity of {_N_DRAWS} draws, {_N_ROWS} rows in the plane",
        source="Graepel & Herbrich (2001), Figure 3",
        command="mercer reproduce sphere-figure-3" + (" --quick" if settings.is_quick else ""),
        claims=tuple(_claim(percent, where) for where in (_TRAIN, _GRID)),
        measured={f"{where}, q = {rate:.1f}": v for (where, rate), v in percent.items()},
        unit="disagreement of two draws, %",
        published={},
        notes=("At q = 0 every draw is right on all training rows: no two differ there.",),
        draw=lambda figure: _draw(figure, clouds[0]),
    )


def _cloud(seed: int) -> _Cloud:
    rng = np.random.default_rng(seed)
    X, labels = plane_rows(rng, _N_ROWS)
    kernel = kernel_named("rbf")
    design = spectrum_of(kernel.gram(_THETA, X)).design()
    grid = np.stack(np.meshgrid(*_SIDE), axis=-1).reshape(-1, 2)
    assert design.dual is not None
    to_grid = kernel.cross_gram(_THETA, grid, X) @ design.dual
    draws = [
        draw_classifiers(rng, model_of(design.L, labels, rate), _N_DRAWS, thin=_THIN)
        for rate in _RATES
    ]
    return _Cloud(
        X, labels, tuple(g @ design.L.T for g in draws), tuple(g @ to_grid.T for g in draws)
    )


def _claim(percent: dict[tuple[str, float], Array], where: str) -> Claim:
    by_rate = [percent[where, rate] for rate in _RATES]
    rises = [is_clearly_below_zero(low - high) for low, high in itertools.pairwise(by_rate)]
    means = [mean_and_error(values) for values in by_rate]
    return Claim(
        f"diversity of the draws rises with q: {where}",
        "yes (by eye)",
        "; ".join(
            f"q = {rate:.1f}: {mean:.1f} +- {error:.1f} %"
            for rate, (mean, error) in zip(_RATES, means, strict=True)
        ),
        "holds" if all(rises) else "fails",
        f"same {len(by_rate[0])} data sets, each step up above two standard errors",
    )


def _draw(figure: Figure, cloud: _Cloud) -> None:
    """One panel for each rate."""
    figure.set_size_inches(9.0, 4.6)
    panels = figure.subplots(1, len(_RATES), sharex=True, sharey=True)
    for axes, rate, values in zip(panels, _RATES, cloud.on_grid, strict=True):
        _boundaries(axes, cloud, values)
        axes.set_title(f"q = {rate:.1f}", fontsize=10.5)


def _boundaries(axes: Axes, cloud: _Cloud, values: Array) -> None:
    from mercer.plot.style import PALETTE

    for f in values.reshape(-1, len(_SIDE[1]), len(_SIDE[0])):
        axes.contour(*_SIDE, f, levels=[0.0], colors=[PALETTE["muted"]], linewidths=0.6, alpha=0.6)
    for label, marker, colour in ((0, "o", "series-1"), (1, "x", "series-2")):
        rows = cloud.X[cloud.labels == label]
        axes.plot(
            rows[:, 0], rows[:, 1], marker, markersize=5, markerfacecolor="none",
            markeredgewidth=1.3, color=PALETTE[colour],
        )  # fmt: skip
    axes.set_aspect("equal")
