"""Graepel & Herbrich, Figure 1: the log posterior on the sphere of R^3, 10 and 1000 rows, q = 0.2.

**What counts as a mode.** The surface is a staircase: with any wrong label it has local maxima of
the size of a cell, tens of thousands for 1000 rows. All cells are enumerated, and a local maximum
is counted if the surface as plotted, in nats per row, falls by at least 0.05 on every way from it
to a better one: a twelfth of the height of the paper's plot. One error is 0.139 of 10 rows, so
that every local maximum counts, and 0.0014 of 1000 rows. Modes at w and at -w are two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mercer.sphere.sampler import signed_rows
from reproduce.papers.reproduction import Claim, Reproduction, Settings, mean_and_error
from reproduce.papers.sphere_modes import cells_of, find_modes
from reproduce.papers.sphere_problems import TRUE_CLASSIFIER, on_sphere, sphere_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["reproduce"]

Array = NDArray[np.float64]

_RATE = 0.2
_FEW, _MANY = 10, 1000
# Depth of a mode that counts, in nats per row.
_VISIBLE = 0.05
# From the true classifier to the best cell, in degrees.
_NEAR = 10.0


@dataclass(frozen=True)
class _Surface:
    """The posterior of one data set.

    Attributes
    ----------
    S : ndarray of shape (n, 3)
        Rows, labels multiplied in.
    n_local, n_modes : int
        Local maxima, and those that count.
    modes : ndarray of shape (n_modes, 3)
        Unit vectors inside their cells, the highest first.
    second_depth : float
        Of the deepest local maximum after the highest, in nats per row; 0 if there is none.
    gap : float
        By how much that one is lower than the highest, in nats per row.
    angle : float
        From the highest to the true classifier, in degrees.
    """

    S: Array
    n_local: int
    n_modes: int
    modes: Array
    second_depth: float
    gap: float
    angle: float


def reproduce(settings: Settings) -> Reproduction:
    """Enumerate the cells of several data sets of each size."""
    counts = {_FEW: 10, _MANY: 1} if settings.is_quick else {_FEW: 100, _MANY: 10}
    surfaces: dict[int, list[_Surface]] = {}
    for n, n_sets in counts.items():
        for seed in range(n_sets):
            if seed % (_MANY // n) == 0:
                settings.tell(f"{n} rows, data set {seed + 1} of {n_sets}")
            surfaces.setdefault(n, []).append(_surface(n, seed))
    few, many = surfaces[_FEW], surfaces[_MANY]
    n_local_clean = [_surface(_FEW, seed, 0.0).n_local for seed in range(counts[_FEW])]
    return Reproduction(
        name="sphere-figure-1",
        title=f"Modes of the posterior on the sphere, noise rate {_RATE}",
        source="Graepel & Herbrich (2001), Figure 1",
        command="mercer reproduce sphere-figure-1" + (" --quick" if settings.is_quick else ""),
        claims=_claims(few, many, n_local_clean),
        measured={f"n = {n}": np.array([s.n_modes for s in surfaces[n]], float) for n in counts},
        unit="modes",
        published={},
        notes=_notes(few, many),
        draw=lambda figure: _draw(figure, {_FEW: few[0], _MANY: many[0]}),
    )


def _surface(n: int, seed: int, rate: float = _RATE) -> _Surface:
    """Labels are wrong at ``rate``; the posterior assumes the paper's rate."""
    rng = np.random.default_rng(seed)
    S = signed_rows(*sphere_rows(rng, n, rate))
    cells = cells_of(rng, S)
    found = find_modes(cells)
    depths = found.depth * _nats_per_row(n)
    n_modes = int(np.count_nonzero(depths >= _VISIBLE))
    modes = np.array([cells.centre(cell) for cell in found.cell[:n_modes]])
    is_single = len(depths) == 1
    errors = cells.errors[found.cell]
    return _Surface(
        S=S,
        n_local=len(depths),
        n_modes=n_modes,
        modes=modes,
        second_depth=0.0 if is_single else float(depths[1]),
        gap=0.0 if is_single else float(errors[1] - errors[0]) * _nats_per_row(n),
        angle=float(np.degrees(np.arccos(np.clip(modes[0] @ TRUE_CLASSIFIER, -1.0, 1.0)))),
    )


def _nats_per_row(n: int) -> float:
    """By how much an error lowers the log posterior, divided by n."""
    return float(np.log((1.0 - _RATE) / _RATE) / n)


def _claims(
    few: list[_Surface], many: list[_Surface], n_local_clean: list[int]
) -> tuple[Claim, ...]:
    n_several = sum(surface.n_modes > 1 for surface in few)
    n_single = sum(surface.n_modes == 1 for surface in many)
    mean, error = mean_and_error(np.array([surface.n_modes for surface in few], float))
    angles = np.array([surface.angle for surface in many])
    n_near = int(np.count_nonzero(angles <= _NEAR))
    return (
        Claim(
            f"several modes for n = {_FEW}",
            "yes (one data set)",
            f"in {n_several} of {len(few)} data sets; {mean:.1f} +- {error:.1f} modes",
            "holds" if n_several > len(few) / 2 else "fails",
        ),
        Claim(
            "they are due to the label noise: one mode without it",
            "yes",
            f"in {n_local_clean.count(1)} of {len(few)} data sets, same rows",
            "holds" if n_local_clean.count(1) == len(few) else "fails",
        ),
        Claim(
            f"one mode for n = {_MANY}",
            "yes (one data set)",
            f"in {n_single} of {len(many)} data sets",
            "holds" if n_single == len(many) else "fails",
            f"at the scale of the plot: modes at least {_VISIBLE} nats per row deep",
        ),
        Claim(
            f"for n = {_MANY} the maximum is near the true classifier",
            "seen in the plot",
            f"within {_NEAR:.0f} degrees in {n_near} of {len(many)} data sets; "
            f"{angles.mean():.1f} degrees on average, {angles.max():.1f} at most",
            "holds" if n_near > len(many) / 2 else "fails",
        ),
    )


def _notes(few: list[_Surface], many: list[_Surface]) -> tuple[str, ...]:
    local = np.array([surface.n_local for surface in many])
    return (
        f"Local maxima of the size of a cell, n = {_MANY}: {local.min()} to {local.max()}; the "
        f"deepest but one is {max(s.second_depth for s in many):.3f} nats per row deep and lies "
        f"at least {min(s.gap for s in many):.2f} nats per row below the maximum.",
        f"One error is {_nats_per_row(_FEW):.3f} nats per row for n = {_FEW}, "
        f"{_nats_per_row(_MANY):.4f} for n = {_MANY}; for n = {_FEW} the maximum is "
        f"{np.mean([surface.angle for surface in few]):.0f} degrees from the true classifier "
        "on average.",
    )


def _draw(figure: Figure, surfaces: dict[int, _Surface]) -> None:
    """One panel each: log posterior per row over latitude and longitude."""
    from mercer.plot.style import FONT_SIZE, PALETTE

    figure.set_size_inches(9.0, 3.6)
    latitude, longitude = np.linspace(0.0, 2.0 * np.pi, 361), np.linspace(0.0, np.pi, 181)
    for axes, (n, surface) in zip(figure.subplots(1, 2), surfaces.items(), strict=True):
        values = _log_posterior(surface.S, longitude, latitude)
        image = axes.pcolormesh(latitude, longitude, values, cmap="viridis", rasterized=True)
        figure.colorbar(image, ax=axes, label="log posterior, nats per row")
        lat = np.mod(np.arctan2(surface.modes[:, 1], surface.modes[:, 0]), 2.0 * np.pi)
        axes.plot(
            lat, np.arccos(surface.modes[:, 2]), "o", markersize=6, markerfacecolor="none",
            markeredgecolor=PALETTE["series-2"], markeredgewidth=1.6, label="modes",
        )  # fmt: skip
        axes.plot(np.pi, np.pi / 2, "+", markersize=11, color=PALETTE["ink"], label="true w")
        count = "1 mode" if surface.n_modes == 1 else f"{surface.n_modes} modes"
        axes.set_title(f"n = {n}: {count}", fontsize=FONT_SIZE)
        axes.set_xlabel("latitude")
        axes.set_ylabel("longitude")
        axes.legend(loc="lower left", fontsize=FONT_SIZE - 2, framealpha=0.8)


def _log_posterior(S: Array, longitude: Array, latitude: Array) -> Array:
    """Log likelihood divided by n, on the grid: shape (n_longitude, n_latitude)."""
    errors = np.stack([
        np.count_nonzero(on_sphere(lon, latitude) @ S.T <= 0.0, axis=1)
        for lon in longitude[:, np.newaxis]
    ])  # fmt: skip
    return np.asarray(np.log1p(-_RATE) - errors * _nats_per_row(len(S)))
