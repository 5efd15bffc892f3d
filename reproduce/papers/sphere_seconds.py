"""Section 6: the cost, and sampling schemes that trade accuracy for speed.

Matern kernel of smoothness 3/2, rows in the plane, a tenth of the labels turned over. The exact
answer is the share of classifiers that vote for a class at each test row, from a long run of HMC;
the distance of a chain is the root mean square over test rows between it and the share among the
later half of the chain's draws so far. Seconds are those of the processor, warm-up and set-up of
features counted, compilation not.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mercer.features.maps import fit_nystroem
from mercer.kernels.names import kernel_named
from mercer.sphere.sampler import (
    SphereAdaptation,
    SphereModel,
    SphereSampler,
    first_moves,
    make_start,
)
from mercer.sphere.space import median_distance
from reproduce.papers.reproduction import Claim, Settings
from reproduce.papers.sphere_draws import model_of
from reproduce.papers.sphere_part import Part, space_of
from reproduce.papers.sphere_problems import Split, split_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["part"]

Array = NDArray[np.float64]

_RATE, _KERNEL, _N_TEST, _N_WARMUP = 0.1, "matern32", 300, 100
_CIRCLE, _LINES, _HMC = "great circle", "lines", "HMC"
_MOVES = {_CIRCLE: ("great_circle",), _LINES: ("lines",), _HMC: ("hmc",)}
_LANDMARKS = (20, 100)
_N_TIMES = 7
_TICKS = (0.003, 0.01, 0.03, 0.1, 0.3)


@dataclass(frozen=True)
class _Size:
    """Rows, draws of the exact answer, seconds of a chain, chains."""

    n_rows: int
    n_reference: int
    seconds: float
    n_chains: int


@dataclass(frozen=True)
class _Method:
    """A chain over a model, whose vectors g vote by the sign of ``to_test`` g."""

    model: SphereModel
    moves: tuple[str, ...]
    to_test: Array
    set_up: float


def part(settings: Settings) -> Part:
    """Distances of every method at times spaced evenly on a log scale."""
    size = _Size(200, 1500, 0.4, 2) if settings.is_quick else _Size(1000, 4000, 4.0, 3)
    split = split_of("plane", 0, size.n_rows, _N_TEST, _RATE)
    methods = {**_exact(split), **_low_rank(split)}
    for method in methods.values():
        _run(method, np.random.default_rng(0), n_steps=2)  # compiles
    settings.tell(f"error against seconds: the exact answer, {size.n_rows} rows")
    _, votes = _run(methods[_HMC], np.random.default_rng([0, 6]), n_steps=size.n_reference)
    exact = votes[size.n_reference // 8 :].mean(axis=0)
    times = np.geomspace(size.seconds / 64.0, size.seconds, _N_TIMES)
    distances = {}
    for name, method in methods.items():
        settings.tell(f"error against seconds: {name}")
        distances[name] = np.array([
            _distances(method, np.random.default_rng([chain, 7]), times, exact)
            for chain in range(size.n_chains)
        ])  # fmt: skip
    return Part(
        _claims(distances, times),
        (lambda axes: _draw(axes, distances, times),),
        notes=_notes(distances, times, size),
    )


def _exact(split: Split) -> dict[str, _Method]:
    start = time.process_time()
    space = space_of(_KERNEL, 1.0, split.X, 1.0)
    design = space.design()
    assert design.dual is not None
    to_test = space.covariance.cross(split.X_test, split.X) @ design.dual
    model, set_up = model_of(design.L, split.labels, _RATE), time.process_time() - start
    return {name: _Method(model, moves, to_test, set_up) for name, moves in _MOVES.items()}


def _low_rank(split: Split) -> dict[str, _Method]:
    """HMC over Nystroem features and an offset."""
    theta = np.array([0.0, *[-2.0 * np.log(median_distance(split.X))] * split.X.shape[1]])
    methods = {}
    for n_landmarks in _LANDMARKS:
        start, rng = time.process_time(), np.random.default_rng([n_landmarks, 8])
        features = fit_nystroem(rng, split.X, kernel_named(_KERNEL), theta, n_landmarks, "kmeans++")
        rows, test = (
            np.column_stack([features.features(X), np.ones(len(X))])
            for X in (split.X, split.X_test)
        )
        model, set_up = model_of(rows, split.labels, _RATE), time.process_time() - start
        methods[f"{_HMC}, {n_landmarks} landmarks"] = _Method(model, _MOVES[_HMC], test, set_up)
    return methods


def _run(
    method: _Method,
    rng: np.random.Generator,
    *,
    n_steps: int | None = None,
    seconds: float = np.inf,
) -> tuple[Array, NDArray[np.bool_]]:
    """Votes of the draws so far, (n_steps, n_test), and the seconds that each took to come."""
    start = time.process_time() - method.set_up
    model = method.model
    sampler = SphereSampler(model, first_moves(method.moves, model), make_start(model), _nothing)
    adaptation = SphereAdaptation(_N_WARMUP)
    learned, state = adaptation.init(sampler), sampler.init(rng)
    times = [method.set_up]
    votes: list[NDArray[np.bool_]] = []
    while len(votes) != n_steps and times[-1] < seconds:
        state, info = sampler.step(rng, state)
        if len(votes) < _N_WARMUP:
            learned, sampler = adaptation.update(learned, sampler, state, info)
        votes.append(method.to_test @ state.point[model.n_rows :] > 0.0)
        times.append(time.process_time() - start)
    return np.array(times[1:]), np.array(votes)


def _nothing(f: Array, g: Array) -> Mapping[str, Array]:
    return {}


def _distances(method: _Method, rng: np.random.Generator, times: Array, exact: Array) -> Array:
    """From the exact answer at each time; that of no votes at all, 1/2, before the first draw."""
    came, votes = _run(method, rng, seconds=float(times[-1]))
    distances = []
    for seconds in times:
        n_draws = int(np.searchsorted(came, seconds))
        kept = votes[n_draws // 2 : n_draws]
        share = kept.mean(axis=0) if len(kept) else np.full(len(exact), 0.5)
        distances.append(np.sqrt(np.mean((share - exact) ** 2)))
    return np.array(distances)


def _claims(distances: dict[str, Array], times: Array) -> tuple[Claim, ...]:
    means = {name: values.mean(axis=0) for name, values in distances.items()}
    low_rank = means[f"{_HMC}, {_LANDMARKS[-1]} landmarks"]
    is_trade = low_rank[0] < means[_HMC][0] and low_rank[-1] > means[_HMC][-1]
    return (
        Claim(
            f"HMC is nearer to the exact answer than the paper's step after {times[-1]:.1f} s",
            "-",
            f"{means[_HMC][-1]:.3f} against {means[_CIRCLE][-1]:.3f}",
            "holds" if distances[_HMC][:, -1].max() < distances[_CIRCLE][:, -1].min() else "fails",
            "a promise of mercer, not of the paper; every chain",
        ),
        Claim(
            "a scheme that trades accuracy for speed",
            "future work",
            f"{_LANDMARKS[-1]} landmarks: {low_rank[0]:.3f} against {means[_HMC][0]:.3f} of the "
            f"full rank after {times[0]:.2f} s, {low_rank[-1]:.3f} against {means[_HMC][-1]:.3f} "
            f"after {times[-1]:.1f} s",
            "holds" if is_trade else "fails",
            "nearer at first, farther in the end; the full rank begins with a decomposition of an "
            "n x n matrix",
        ),
    )


def _notes(distances: dict[str, Array], times: Array, size: _Size) -> tuple[str, ...]:
    picked = [0, _N_TIMES // 3, 2 * _N_TIMES // 3, _N_TIMES - 1]
    seconds = ", ".join(f"{times[k]:.2g}" for k in picked)
    listed = "; ".join(
        f"{name} " + ", ".join(f"{values[:, k].mean():.3f}" for k in picked)
        for name, values in distances.items()
    )
    return (
        f"Distance from the exact answer after {seconds} s, {size.n_rows} rows, mean of "
        f"{size.n_chains} chains: {listed}. Times differ from run to run.",
    )


def _draw(axes: Axes, distances: dict[str, Array], times: Array) -> None:
    from mercer.plot.style import CHAIN_COLOURS, FONT_SIZE

    for colour, (name, values) in zip(CHAIN_COLOURS, distances.items(), strict=False):
        axes.plot(times, values.mean(axis=0), "-o", markersize=3, color=colour, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.minorticks_off()
    axes.set_xticks(times[::2], [f"{seconds:.2g}" for seconds in times[::2]])
    axes.set_yticks(_TICKS, [str(tick) for tick in _TICKS])
    axes.set_xlabel("seconds of the processor")
    axes.set_ylabel("distance from the exact answer")
    axes.set_title("error against seconds", fontsize=FONT_SIZE)
    axes.legend(fontsize=FONT_SIZE - 3, frameon=False, loc="lower left")
