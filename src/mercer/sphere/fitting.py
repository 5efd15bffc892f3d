"""From candidates and labels to draws of classifiers, averaged over models by evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer.likelihoods.label_noise import LabelNoise
from mercer.posterior.diagnostics import Diagnostics, diagnose
from mercer.posterior.draws import Draws
from mercer.random import stream
from mercer.sampling.driver import Labels, RunOptions, Sampled, sample
from mercer.sphere.adaptation import SphereAdaptation, first_moves
from mercer.sphere.design import Design
from mercer.sphere.model import SphereModel, signed_rows
from mercer.sphere.moves import default_moves
from mercer.sphere.sampler import SphereSampler
from mercer.sphere.selection import Candidate, Compared, compare, shares
from mercer.sphere.space import Space
from mercer.sphere.start import make_start

__all__ = ["FittedSphere", "Problem", "fit_sphere"]

Array = NDArray[np.float64]

_MONITORED_ROWS = 20


@dataclass(frozen=True)
class Problem:
    """What is to be learned.

    Attributes
    ----------
    candidates : tuple of Candidate
    labels : ndarray of shape (n,), int64
        0..C-1.
    noise : LabelNoise
        Costs that the draws are taken under.
    noise_of : callable or None
        Costs that candidates are compared under, for a number of rows; None for no comparison
        and no evidence: a single candidate with too many rows.
    sampler : str
        "auto", or one move.
    """

    candidates: tuple[Candidate, ...]
    labels: NDArray[np.int64]
    noise: LabelNoise
    noise_of: Callable[[int], LabelNoise] | None
    sampler: str


@dataclass(frozen=True)
class FittedSphere:
    """What a fit leaves behind: ``models`` are those that gave draws, in the order of "model"."""

    draws: Draws
    diagnostics: Diagnostics
    notes: tuple[str, ...]
    compared: tuple[Compared, ...]
    models: tuple[Candidate, ...]


@dataclass(frozen=True)
class _Recorder:
    """Name the parts of a classifier that a draw keeps."""

    space: Space
    design: Design
    lengths: Array  # of the rows of the feature space
    rows: NDArray[np.int64]  # the monitored ones

    def __call__(self, f: Array, g: Array) -> Mapping[str, NDArray[Any]]:
        """Return coefficients, their length, errors, and margins as cosines."""
        length = np.linalg.norm(g)
        return {
            "coefficients": self.space.coefficients(self.design, g),
            "length": np.asarray(length),
            "is_wrong": f <= 0.0,
            "margin": f[self.rows] / (length * self.lengths[self.rows]),
        }


def fit_sphere(problem: Problem, options: RunOptions) -> FittedSphere:
    """Compare the candidates, then draw classifiers from each in proportion to its evidence."""
    with threadpool_limits(limits=1, user_api="blas"):
        compared, models, weights = _compare(problem, options)
    n = len(problem.labels)
    rows = stream(options.entropy, "rows").choice(n, min(n, _MONITORED_ROWS), replace=False)
    counts = _allot(weights, options.n_draws)
    runs = [
        _sample(problem, candidate, np.sort(rows), replace(options, n_draws=count, first_chain=k))
        for k, (candidate, count) in enumerate(zip(models, counts, strict=True))
    ]
    draws = _joined([run.draws for run in runs], problem.noise, options.entropy)
    lengths = tuple(run.draws.n_draws for run in runs)
    notes = tuple(dict.fromkeys(note for run in runs for note in run.notes))
    return FittedSphere(draws, diagnose(draws, lengths), notes, compared, tuple(models))


def _compare(
    problem: Problem, options: RunOptions
) -> tuple[tuple[Compared, ...], list[Candidate], Array]:
    if problem.noise_of is None:
        return (), list(problem.candidates), np.ones(1)
    compared = compare(
        problem.candidates, problem.labels, problem.noise_of, options.entropy, options.deadline
    )
    weights = shares(compared)
    models = [one.candidate for one, w in zip(compared, weights, strict=True) if w > 0.0]
    return compared, models, weights[weights > 0.0]


def _allot(weights: Array, n_draws: int) -> list[int]:
    """Split the draws of a chain by weight: at least one each, all of them in the end."""
    counts = np.maximum(np.round(weights * n_draws).astype(int), 1)
    counts[0] = max(counts[0] + n_draws - counts.sum(), 1)
    return [int(count) for count in counts]


def _sample(
    problem: Problem, candidate: Candidate, rows: NDArray[np.int64], options: RunOptions
) -> Sampled:
    """Draw classifiers from one model; its chains are numbered after those of the ones before."""
    options = replace(options, first_chain=options.first_chain * options.n_chains)
    with threadpool_limits(limits=1, user_api="blas"):
        design = candidate.space.design()
        model = SphereModel(signed_rows(design.L, problem.labels), problem.noise)
        names: tuple[str, ...] = (problem.sampler,)
        if problem.sampler == "auto":
            names = default_moves(model.rank, _n_trajectories(model.n_rows))
        recorder = _Recorder(candidate.space, design, _lengths(design.L), rows)
        sampler = SphereSampler(model, first_moves(names, model), make_start(model), recorder)
    labels = Labels({"margin": tuple(f"row {row}" for row in rows)}, ("margin",))
    return sample(sampler, options, adaptation=SphereAdaptation(options.n_warmup), labels=labels)


def _n_trajectories(n: int) -> int:
    """Trajectories of one draw: so many that a draw takes some milliseconds at most."""
    return int(np.clip(8000 // n, 2, 16))


def _lengths(L: Array) -> Array:
    lengths = np.linalg.norm(L, axis=1)
    return np.where(lengths > 0.0, lengths, 1.0)


def _joined(parts: Sequence[Draws], noise: LabelNoise, entropy: int) -> Draws:
    """Put the draws of the models after one another, with what they say of the noise."""
    longest = max(part.variables["coefficients"].shape[-1] for part in parts)
    variables = {
        name: np.concatenate([_filled(part.variables[name], name, longest) for part in parts], 1)
        for name in parts[0].variables
    }
    stats = {
        name: np.concatenate([part.stats[name] for part in parts], axis=1)
        for name in parts[0].stats
    }
    shape = variables["length"].shape
    model = np.repeat(np.arange(len(parts)), [part.n_draws for part in parts])
    errors = noise.errors_by_group(variables["is_wrong"])
    variables |= {
        "model": np.broadcast_to(model, shape).copy(),
        "n_errors": errors.sum(axis=-1).astype(np.float64),
        "noise_rate": noise.draw_rates(stream(entropy, "rates"), errors),
        "log_likelihood": noise.log_no_errors - noise.cost(variables["is_wrong"]),
    }
    monitored = ("n_errors", "noise_rate", "margin") if noise.prior else ("n_errors", "margin")
    return Draws(variables, stats, dict(parts[0].labels), monitored)


def _filled(values: NDArray[Any], name: str, length: int) -> NDArray[Any]:
    """Fill coefficients up with zeros to a common length."""
    if name != "coefficients":
        return values
    widths = [(0, 0)] * (values.ndim - 1) + [(0, length - values.shape[-1])]
    return np.pad(values, widths)
