"""From candidates and labels to draws of classifiers, averaged over models by evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer.data.row_names import RowNames
from mercer.likelihoods.label_noise import LabelNoise
from mercer.posterior.diagnostics import Diagnostics, diagnose
from mercer.posterior.draws import Draws
from mercer.random import stream
from mercer.sampling.driver import Labels, RunOptions, Sampled, sample
from mercer.sampling.progress import tell
from mercer.sphere.chains import LARGEST_WHOLE, make_chains
from mercer.sphere.compilation import compile_loops
from mercer.sphere.label_proba import label_proba
from mercer.sphere.selection import Candidate, Compared, compare, shares

__all__ = ["FittedSphere", "Problem", "fit_sphere"]

Array = NDArray[np.float64]

_MONITORED_ROWS = 20
# Where there are too many rows for a ladder on all of them, models are compared on so many.
_COMPARED_ROWS = 2000


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
        "auto", "tempered", or one move.
    names : RowNames or None
        What the rows are called; None for their positions.
    """

    candidates: tuple[Candidate, ...]
    labels: NDArray[np.int64]
    noise: LabelNoise
    noise_of: Callable[[int], LabelNoise] | None
    sampler: str
    names: RowNames | None = None


@dataclass(frozen=True)
class FittedSphere:
    """What a fit leaves behind.

    ``models`` are those that gave draws, in the order of "model"; ``label_proba`` is P(class) of
    the training rows, (n, C).
    """

    draws: Draws
    label_proba: Array
    diagnostics: Diagnostics
    notes: tuple[str, ...]
    compared: tuple[Compared, ...]
    models: tuple[Candidate, ...]


def fit_sphere(problem: Problem, options: RunOptions) -> FittedSphere:
    """Compare the candidates, then draw classifiers from each in proportion to its evidence."""
    compile_loops(
        lambda line: tell(line, options.progress), problem.noise.n_classes, problem.sampler
    )
    with threadpool_limits(limits=1, user_api="blas"):
        compared, models, weights = _compare(problem, options)
    n = len(problem.labels)
    rows = stream(options.entropy, "rows").choice(n, min(n, _MONITORED_ROWS), replace=False)
    counts = _allot(weights, options.n_draws)
    runs: list[Sampled] = []
    for candidate, count in zip(models, counts, strict=True):
        own = replace(options, n_draws=count, first_chain=len(runs) * options.n_chains)
        runs.append(_sample(problem, candidate, np.sort(rows), own))
    draws = _joined([run.draws for run in runs], problem.noise, options.entropy)
    lengths = tuple(run.draws.n_draws for run in runs)
    notes = tuple(dict.fromkeys(note for run in runs for note in run.notes))
    p = label_proba(draws, models[0].space, problem.labels, problem.noise.n_classes)
    return FittedSphere(draws, p, diagnose(draws, lengths), notes, compared, tuple(models))


def _compare(
    problem: Problem, options: RunOptions
) -> tuple[tuple[Compared, ...], list[Candidate], Array]:
    if problem.noise_of is None:
        return (), list(problem.candidates), np.ones(1)
    n, rows = len(problem.labels), None
    if n > LARGEST_WHOLE:
        rows = np.sort(stream(options.entropy, "rows", 3).choice(n, _COMPARED_ROWS, replace=False))
    compared = compare(
        problem.candidates, problem.labels, problem.noise_of, options.entropy, options.deadline,
        rows,
    )  # fmt: skip
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
    """Draw classifiers from one model."""
    with threadpool_limits(limits=1, user_api="blas"):
        chains = make_chains(
            candidate.space, problem.labels, problem.noise, problem.sampler, rows, options.n_warmup
        )
    names = RowNames.positions(len(problem.labels)) if problem.names is None else problem.names
    labels = Labels({"margin": tuple(names.short(row) for row in rows)}, ("margin",))
    return sample(chains.sampler, options, adaptation=chains.adaptation, labels=labels)


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
    if "is_wrong" in variables:
        errors = noise.errors_by_group(variables["is_wrong"])
        cost = noise.cost(variables["is_wrong"])
    else:  # many rows, under one rate
        errors = variables["n_errors"][..., np.newaxis].astype(np.int64)
        cost = noise.total[0, errors[..., 0]]
    variables |= {
        "model": np.broadcast_to(model, shape).copy(),
        "n_errors": errors.sum(axis=-1).astype(np.float64),
        "noise_rate": noise.draw_rates(stream(entropy, "rates"), errors),
        "log_likelihood": noise.log_no_errors - cost,
    }
    monitored = ("n_errors", "noise_rate", "margin") if noise.prior else ("n_errors", "margin")
    return Draws(variables, stats, dict(parts[0].labels), monitored)


def _filled(values: NDArray[Any], name: str, length: int) -> NDArray[Any]:
    """Fill coefficients up with zeros to a common length."""
    if name != "coefficients":
        return values
    widths = [(0, 0)] * (values.ndim - 1) + [(0, length - values.shape[-1])]
    return np.pad(values, widths)
