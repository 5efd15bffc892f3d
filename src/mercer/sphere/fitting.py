"""From candidates and labels to draws of classifiers, averaged over models by evidence."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer.data.row_names import RowNames
from mercer.likelihoods.label_noise import Confusion, LabelNoise
from mercer.posterior.diagnostics import Diagnostics, diagnose
from mercer.posterior.draws import Draws
from mercer.random import stream
from mercer.sampling.driver import Labels, RunOptions, Sampled, sample
from mercer.sampling.progress import tell
from mercer.sphere.chains import LARGEST_WHOLE, make_chains
from mercer.sphere.compilation import compile_loops
from mercer.sphere.label_proba import label_proba
from mercer.sphere.selection import (
    WORTH_A_RATE,
    Candidate,
    Compared,
    compare,
    evidence_of_noise,
    is_by_class_better,
    shares,
    under_rates_by_class,
)

__all__ = ["FittedSphere", "Problem", "fit_sphere"]

Array = NDArray[np.float64]

_MONITORED_ROWS = 20
# Where there are too many rows for a ladder on all of them, models are compared on so many.
_COMPARED_ROWS = 2000
# Share of the time allowed that the comparison of models may take.
_COMPARING = 0.5


@dataclass(frozen=True)
class Problem:
    """What is to be learned.

    Attributes
    ----------
    candidates : tuple of Candidate
    labels : ndarray of shape (n,), int64
        0..C-1.
    noise : LabelNoise or Confusion
        Costs that the draws are taken under.
    noise_of : callable or None
        Costs that candidates are compared under, for a number of rows; None for no comparison
        and no evidence: a single candidate with too many rows.
    sampler : str
        "auto", "tempered", or one move.
    names : RowNames or None
        What the rows are called; None for their positions.
    by_class : LabelNoise or None
        Rates for each of two classes, that one rate is compared with by evidence and that are
        taken where they explain the labels better; or ``noise`` itself.
    """

    candidates: tuple[Candidate, ...]
    labels: NDArray[np.int64]
    noise: LabelNoise | Confusion
    noise_of: Callable[[int], LabelNoise] | None
    sampler: str
    names: RowNames | None = None
    by_class: LabelNoise | None = None


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
        choice = _choose(problem, options)
    n, models = len(problem.labels), choice.models
    problem = replace(problem, noise=choice.noise)
    rows = stream(options.entropy, "rows").choice(n, min(n, _MONITORED_ROWS), replace=False)
    counts = _allot(choice.weights, options.n_draws)
    runs: list[Sampled] = []
    for candidate, count in zip(models, counts, strict=True):
        own = replace(
            options,
            n_draws=count,
            first_chain=len(runs) * options.n_chains,
            deadline=_part_of_time(options.deadline, count / sum(counts[len(runs) :])),
        )
        runs.append(_sample(problem, candidate, np.sort(rows), own))
    draws = _joined([run.draws for run in runs], problem.noise, options.entropy)
    lengths = tuple(run.draws.n_draws for run in runs)
    said = dict.fromkeys(note for run in runs for note in run.notes)
    p = label_proba(draws, models[0].space, problem.labels, problem.noise.n_classes)
    return FittedSphere(
        draws, p, diagnose(draws, lengths), (*said, *choice.notes), choice.compared, tuple(models)
    )  # fmt: skip


@dataclass(frozen=True)
class _Choice:
    """What the comparison has left: models with their shares, the noise, and what to say of it."""

    compared: tuple[Compared, ...]
    models: list[Candidate]
    weights: Array
    noise: LabelNoise | Confusion
    notes: tuple[str, ...]


def _choose(problem: Problem, options: RunOptions) -> _Choice:
    candidates, noise = problem.candidates, problem.noise
    if problem.noise_of is None:
        return _Choice((), list(candidates), np.ones(1), noise, ())
    n, rows = len(problem.labels), None
    if n > LARGEST_WHOLE:
        rows = np.sort(stream(options.entropy, "rows", 3).choice(n, _COMPARED_ROWS, replace=False))
    # A run that is resumed must find the same models, however long it has been given.
    deadline = None if options.run is not None else _part_of_time(options.deadline, _COMPARING)
    compared = compare(
        candidates, problem.labels, problem.noise_of, options.entropy,
        deadline, rows, problem.by_class,
    )  # fmt: skip
    notes = _say_what_time_cut(compared, len(candidates))
    if not compared:
        return _Choice((), [candidates[len(candidates) // 2]], np.ones(1), noise, notes)
    by_class, evidence = problem.by_class, evidence_of_noise(compared)
    if evidence is not None and by_class is not None:
        if noise is not by_class:
            is_better = is_by_class_better(compared)
            noise, notes = by_class if is_better else noise, (*notes, _say_noise(*evidence))
        if noise is by_class:
            compared = under_rates_by_class(compared)
    weights = shares(compared)
    models = [one.candidate for one, w in zip(compared, weights, strict=True) if w > 0.0]
    return _Choice(compared, models, weights[weights > 0.0], noise, notes)


def _say_noise(one: float, two: float) -> str:
    words = ("a rate for each class", "one rate") if two > one else ("one rate", "one a class")
    taken = "" if two <= one or two > one + WORTH_A_RATE else ": too little, so one rate is taken"
    return (
        f"noise by evidence: {words[0]} explains the labels better than {words[1]}, "
        f"by {abs(two - one):.1f} nats{taken}"
    )


def _part_of_time(deadline: float | None, share: float) -> float | None:
    """When a share of the time that is left has passed."""
    if deadline is None:
        return None
    now = time.monotonic()
    return now + share * (deadline - now)


def _say_what_time_cut(compared: tuple[Compared, ...], n_candidates: int) -> tuple[str, ...]:
    if any(one.is_final for one in compared) and len(compared) == n_candidates:
        return ()
    what = f"{len(compared)} of {n_candidates} models were measured before max_seconds cut it short"
    if not compared:
        what += "; the one in the middle of the grid was taken"
    elif not any(one.is_final for one in compared):
        what += "; the best of a short run was taken"
    return (f"models compared by evidence: {what}",)


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


def _joined(parts: Sequence[Draws], noise: LabelNoise | Confusion, entropy: int) -> Draws:
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
    variables |= {
        "model": np.broadcast_to(model, shape).copy(),
        **_of_noise(variables, noise, entropy),
    }
    is_learned = noise.prior is not None
    monitored = ("n_errors", "noise_rate", "margin") if is_learned else ("n_errors", "margin")
    return Draws(variables, stats, dict(parts[0].labels), monitored)


def _of_noise(
    variables: dict[str, NDArray[Any]], noise: LabelNoise | Confusion, entropy: int
) -> dict[str, NDArray[Any]]:
    """Errors, rates and log likelihood of draws."""
    if isinstance(noise, Confusion):
        return {
            "n_errors": variables["is_wrong"].sum(axis=-1).astype(np.float64),
            "noise_rate": 1.0 - np.diagonal(variables["confusion"], axis1=-2, axis2=-1),
            "log_likelihood": noise.log_likelihood(variables["chosen"]),
        }
    if "is_wrong" in variables:
        errors = noise.errors_by_group(variables["is_wrong"])
        cost = noise.cost(variables["is_wrong"])
    else:  # many rows, under one rate
        errors = variables["n_errors"][..., np.newaxis].astype(np.int64)
        cost = noise.cost_of_counts(errors)
    return {
        "n_errors": errors.sum(axis=-1).astype(np.float64),
        "noise_rate": noise.draw_rates(stream(entropy, "rates"), errors),
        "log_likelihood": noise.log_no_errors - cost,
    }


def _filled(values: NDArray[Any], name: str, length: int) -> NDArray[Any]:
    """Fill coefficients up with zeros to a common length."""
    if name != "coefficients":
        return values
    widths = [(0, 0)] * (values.ndim - 1) + [(0, length - values.shape[-1])]
    return np.pad(values, widths)
