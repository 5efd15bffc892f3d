"""From candidates and labels to draws of classifiers: chains, probabilities of labels, results."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.row_names import RowNames
from mercer.errors import UsageError
from mercer.kernels.names import kernel_named
from mercer.likelihoods.label_noise import (
    Confusion,
    LabelNoise,
    Walls,
    fixed_rate,
    learned_class_rates,
    learned_confusion,
)
from mercer.numerics.cholesky import one_blas_thread
from mercer.numerics.compilation import compile_first
from mercer.posterior.diagnostics import Diagnostics, diagnose
from mercer.posterior.draws import Draws, Table, finite_or_none
from mercer.random import stream
from mercer.sampling.driver import Labels, RunOptions, Sampled, sample
from mercer.sampling.progress import tell, waiting
from mercer.sampling.sampler import Adaptation, Sampler
from mercer.sampling.signals import part_of_time
from mercer.sphere.prediction import label_proba
from mercer.sphere.propagation import (
    RESTLESS,
    Approximation,
    NormalLaw,
    approximate_posterior,
    leads,
)
from mercer.sphere.sampler import (
    NormalSampler,
    PriorStart,
    SphereAdaptation,
    SphereModel,
    SphereSampler,
    default_moves,
    first_moves,
    make_start,
    merged,
    signed_rows,
)
from mercer.sphere.screened import (
    LinearStart,
    ScreenedAdaptation,
    ScreenedSampler,
    first_screening,
    idle_columns,
    signed_in_single_precision,
    some_rows,
)
from mercer.sphere.selection import (
    Candidate,
    Compared,
    compare,
    over_both_noises,
    probabilities,
    probabilities_by_noise,
    say_restless,
    shares,
    under_rates_by_class,
    what_is_known,
)
from mercer.sphere.several import (
    SeveralAdaptation,
    SeveralModel,
    SeveralSampler,
    cycles_a_step,
    make_several_start,
)
from mercer.sphere.several import default_moves as default_several_moves
from mercer.sphere.several import first_moves as first_several_moves
from mercer.sphere.several_loops import largest_of_normals, perceptron
from mercer.sphere.space import Design, Space
from mercer.sphere.tempering import EvidenceCurve, TemperedSampler, keep_nothing

# The sampler of a model, by the number of classes and rows, and what a draw of it keeps.

Array = NDArray[np.float64]

# More rows of finite features than this are screened; there is no table of all of them.
LARGEST_WHOLE = 5000
# Rows times trajectories of one draw.
_ROWS_A_DRAW = 4000
# Each of several models warms up for its share of the steps, but for so many at least.
_FEWEST_WARMUP = 30
# Steps that tune the chains of many rows where time is short: the active rows have settled then.
_HASTY_WARMUP = 60
_HASTY = "for max_seconds one model gives draws, after {} steps of warm-up"
# Trajectories of a step of the screened sampler.
_SCREENED_TRAJECTORIES = 16
_APPROXIMATE = (
    "draws are of the normal law of expectation propagation, an approximation; sampler='auto' "
    "takes chains"
)
RATE_OF_MANY = (
    f"above {LARGEST_WHOLE} rows noise_rate must be one number above 0, or 'learn'; "
    "sampler='propagation' takes any"
)
# Powers of the likelihood where rungs are asked for.
_POWERS = tuple(np.linspace(0.0, 1.0, 8).tolist())


@dataclass(frozen=True)
class Chains:
    """A sampler with its warm-up."""

    sampler: Sampler[Any, Any]
    adaptation: Adaptation | None


def check_sampler(sampler: str, noise: LabelNoise | Confusion) -> None:
    """Refuse a sampler that does not go with the number of classes or of rows."""
    if isinstance(noise, Confusion) and sampler in ("hmc", "propagation"):
        raise UsageError(
            f"sampler={sampler!r} with more than two classes needs one noise rate, or one a row; "
            "use 'auto' or 'lines'"
        )
    if noise.n_classes > 2 and sampler not in ("auto", "hmc", "lines", "propagation"):
        own = "'auto', 'hmc', 'lines' or 'propagation'"
        raise UsageError(f"sampler={sampler!r} is for two classes; use {own}")
    if isinstance(noise, Confusion) or noise.n_classes > 2 or sampler == "propagation":
        return
    if len(noise.group) <= LARGEST_WHOLE:
        return
    if sampler not in ("auto", "hmc"):
        own = "'auto', 'hmc' or 'propagation'"
        raise UsageError(f"sampler={sampler!r} needs at most {LARGEST_WHOLE} rows; use {own}")
    if not noise.is_common or noise.must_be_right.any():
        raise UsageError(RATE_OF_MANY)


def make_chains(
    space: Space,
    labels: NDArray[np.int64],
    noise: LabelNoise | Confusion,
    sampler: str,
    rows: NDArray[np.int64],
    n_warmup: int,
    found: Approximation | None = None,
) -> Chains:
    """Make the sampler of one model for labels 0..C-1.

    ``sampler`` is "auto", "tempered", "propagation", whose mode may be ``found``, or one move; the
    margins of ``rows`` (k,) are monitored.
    """
    if sampler == "propagation" and isinstance(noise, LabelNoise):
        return _normal(space, labels, noise, rows, found)
    if isinstance(noise, Confusion) or noise.n_classes > 2:
        return _several(space, labels, noise, sampler, rows, n_warmup)
    if len(labels) > LARGEST_WHOLE:
        return _screened(space, labels, noise, rows, n_warmup)
    design = space.design()
    full = SphereModel(signed_rows(design.L, labels), noise)
    start, (model, walls) = make_start(full), merged(full)
    recorder = _Recorder(space, design, _lengths(design.L), rows, walls=walls)
    if sampler == "tempered":
        moves = first_moves(default_moves(model.rank), model)
        tempered = TemperedSampler(model, _POWERS, moves, start, recorder)
        return Chains(tempered, None)
    names: tuple[str, ...] = (sampler,)
    if sampler == "auto":
        names = default_moves(model.rank, _n_trajectories(model))
    chain = SphereSampler(model, first_moves(names, model), start, recorder)
    return Chains(chain, SphereAdaptation(n_warmup))


@dataclass(frozen=True)
class _Recorder:
    """Name the parts of a classifier that a draw keeps; of several classes ``labels`` are given."""

    space: Space
    design: Design
    lengths: Array  # of the rows of the feature space
    rows: NDArray[np.int64]  # the monitored ones
    labels: NDArray[np.int64] | None = None
    walls: Walls | None = None  # of two classes: what f has a value for

    def __call__(
        self, f: Array, g: Array, is_wrong: NDArray[np.bool_] | None = None
    ) -> Mapping[str, NDArray[Any]]:
        """Return coefficients, their length, errors, and margins as cosines.

        Of several classes the margin is the lead of the label. Which are wrong may be known.
        """
        length = np.linalg.norm(g)
        chosen: dict[str, NDArray[Any]] = {}
        f = f if self.walls is None else self.walls.rows(f)
        if self.labels is not None:
            f, others = leads(f, self.labels)
        is_wrong = f <= 0.0 if is_wrong is None else is_wrong
        if self.labels is not None:
            classes = np.where(is_wrong, others.argmax(axis=0), self.labels)
            chosen = {"chosen": classes.astype(np.int16)}
        return {
            "coefficients": self.space.coefficients(self.design, g),
            "length": np.asarray(length),
            "is_wrong": is_wrong,
            **chosen,
            "margin": f[self.rows] / (length * self.lengths[self.rows]),
        }


def _n_trajectories(model: SphereModel) -> int:
    """Trajectories of one draw.

    One makes a nearly independent draw where no row may be wrong; the number of wrong rows, with
    the rate that is learned from it, moves more slowly. A draw takes some milliseconds at most.
    """
    if model.noise.must_be_right.all():
        return 1
    return int(np.clip(_ROWS_A_DRAW // model.n_rows, 2, 8))


def _lengths(L: NDArray[np.floating[Any]]) -> Array:
    lengths = np.sqrt(np.einsum("ij,ij->i", L, L)).astype(np.float64)
    return np.where(lengths > 0.0, lengths, 1.0)


def _several(
    space: Space,
    labels: NDArray[np.int64],
    noise: LabelNoise | Confusion,
    sampler: str,
    rows: NDArray[np.int64],
    n_warmup: int,
) -> Chains:
    design = space.design()
    model = SeveralModel(design.L, labels, noise)
    names = {"auto": default_several_moves(model), "lines": ("lines", "ellipse"), "hmc": ("hmc",)}
    moves = first_several_moves(model, names[sampler])
    recorder = _Recorder(space, design, _lengths(design.L), rows, labels)
    n_cycles = cycles_a_step(model, moves.names)
    chain = SeveralSampler(model, moves, make_several_start(model), recorder, n_cycles)
    return Chains(chain, SeveralAdaptation(n_warmup))


def _screened(
    space: Space,
    labels: NDArray[np.int64],
    noise: LabelNoise,
    rows: NDArray[np.int64],
    n_warmup: int,
) -> Chains:
    L = signed_in_single_precision(space, labels)
    monitored, start = some_rows(L, rows), LinearStart(L)
    guess = start(np.random.default_rng(0))
    chain = ScreenedSampler(
        L, noise, first_screening(L, guess), _SCREENED_TRAJECTORIES, start,
        _ScreenedRecorder(monitored.astype(np.float64), _lengths(monitored)), idle_columns(L),
    )  # fmt: skip
    return Chains(chain, ScreenedAdaptation(n_warmup))


def _normal(
    space: Space,
    labels: NDArray[np.int64],
    noise: LabelNoise,
    rows: NDArray[np.int64],
    found: Approximation | None,
) -> Chains:
    L, variance = space.smooth_rows()
    nugget, several, dual = space.nugget, None if noise.n_classes == 2 else labels, None
    if several is None:
        L = signed_rows(L, labels)
    weights, laws = approximate_posterior(L, variance, noise, several, found)
    if len(labels) > LARGEST_WHOLE:
        of_rows = None if several is None else several[rows]
        recorder: Any = _ScreenedRecorder(L[rows], _lengths(L[rows]), of_rows)
        record = functools.partial(_many, recorder, noise)
    else:
        design = space.design()
        recorder = _Recorder(space, design, _lengths(design.L), rows, several)
        record, dual = recorder, design.dual
    signs = np.where((labels == 1) | (noise.n_classes > 2), 1.0, -1.0)
    lift = functools.partial(_of_whole_space, dual, None if nugget == 0.0 else signs)
    # Of several classes and finite features nothing of f is kept.
    own = nugget if dual is not None else variance if several is None else 0.0
    return Chains(NormalSampler(L, own, weights, laws, lift, record), None)


def _of_whole_space(dual: Array | None, signs: Array | None, f: Array, g: Array) -> Array:
    """What all of f says; without noise of rows, and of finite features, g are its coordinates."""
    if dual is not None and signs is not None:
        return np.asarray((f * signs) @ dual)
    more = 0 if dual is None else dual.shape[1] - g.shape[-1]
    return np.pad(g, [(0, 0)] * (g.ndim - 1) + [(0, more)])


def _many(
    recorder: _ScreenedRecorder, noise: LabelNoise, _f: Array, g: Array, is_wrong: NDArray[np.bool_]
) -> Mapping[str, NDArray[Any]]:
    """Of errors their numbers by group, and what they cost."""
    errors = noise.errors_by_group(is_wrong).astype(np.float64)
    said = noise.log_no_errors - noise.cost(is_wrong)
    return {**recorder(0, g), "n_errors": errors, "log_likelihood": said}


@dataclass(frozen=True)
class _ScreenedRecorder:
    """What a draw of many rows keeps: too many to say of each whether it is wrong."""

    L: Array  # of the monitored rows
    lengths: Array
    labels: NDArray[np.int64] | None = None  # of several classes

    def __call__(self, n_errors: int, g: Array) -> Mapping[str, NDArray[Any]]:
        """Return coefficients, their length, the number of errors, and margins as cosines."""
        length = np.asarray(np.linalg.norm(g))
        f = self.L @ g if self.labels is None else leads(g @ self.L.T, self.labels)[0]
        said = {"coefficients": g, "length": length, "n_errors": np.asarray(float(n_errors))}
        return {**said, "margin": f / (length * self.lengths)}


_MONITORED_ROWS = 20
# Where there are too many rows for a tempered run on all of them, models are compared on so many.
_COMPARED_ROWS = 2000
_ONE_RATE = (
    f"one noise rate for all rows: above {LARGEST_WHOLE} a rate for each class is not learned: "
    "a fit of some of the rows tells whether they differ"
)
# Share of the time allowed that the comparison of models may take.
_COMPARING = 0.5


@dataclass(frozen=True)
class Problem:
    """Candidates, labels 0..C-1 and costs of errors: what is to be learned.

    Draws are taken under ``noise``; candidates are compared under ``noise_of(rows)`` for some
    of the rows, None for no comparison (a single candidate with too many rows). ``by_class`` has
    rates for each of two classes, over which and one rate draws are averaged, or is ``noise``
    itself. ``sampler`` is "auto", "tempered", "propagation" or one move; ``names`` None for
    positions.
    """

    candidates: tuple[Candidate, ...]
    labels: NDArray[np.int64]
    noise: LabelNoise | Confusion
    noise_of: Callable[[NDArray[np.int64]], LabelNoise] | None
    sampler: str
    names: RowNames | None = None
    by_class: LabelNoise | None = None
    known: Array | None = None  # of a fit to these rows and a few more: `what_is_known`
    found: Approximation | None = None  # of one candidate: what propagation came to

    @property
    def is_approximate(self) -> bool:
        """Whether expectation propagation takes the place of chains."""
        return self.sampler == "propagation"


@dataclass(frozen=True)
class FittedSphere:
    """What a fit leaves behind.

    ``models`` are those that gave draws, in the order of "model"; ``label_proba`` is P(class) of
    the training rows, (n, C). ``probability`` is that of each compared model, ``left_out`` that of
    all models and noises without draws.
    """

    draws: Draws
    label_proba: Array
    diagnostics: Diagnostics
    notes: tuple[str, ...]
    compared: tuple[Compared, ...]
    models: tuple[Candidate, ...]
    probability: Array
    left_out: float
    left: Array | None = None  # for fits to most of these rows: `what_is_known`


def fit_sphere(problem: Problem, options: RunOptions) -> FittedSphere:
    """Compare the candidates, then draw classifiers from each in proportion to its evidence."""
    compile_loops(
        lambda line: tell(line, options.progress), problem.noise.n_classes, problem.sampler
    )
    said = f"comparing {len(problem.candidates)} models by their evidence"
    with one_blas_thread(), waiting(said, options.progress):
        choice = _choose(problem, options)
    n = len(problem.labels)
    if problem.known is not None:
        options = replace(options, n_warmup=min(options.n_warmup, _FEWEST_WARMUP))
    elif _is_hasty(problem, options):
        options = replace(options, n_warmup=min(options.n_warmup, _HASTY_WARMUP))
        choice = replace(choice, notes=(*choice.notes, _HASTY.format(options.n_warmup)))
    if problem.is_approximate:
        options = replace(options, n_warmup=0)
        choice = replace(choice, notes=(*choice.notes, _APPROXIMATE))
    rows = stream(options.entropy, "rows").choice(n, min(n, _MONITORED_ROWS), replace=False)
    counts = _allot(choice.weights[choice.weights > 0.0], options.n_draws)
    runs, known = list[Sampled](), list[Array]()
    for (candidate, noise, found), count in zip(choice.models, counts, strict=True):
        own = replace(
            options,
            n_draws=count,
            n_warmup=_part_of_warmup(options.n_warmup, count / options.n_draws),
            first_chain=len(runs) * options.n_chains,
            part=f"{len(runs) + 1}/{len(counts)}" if len(counts) > 1 else "",
            deadline=part_of_time(options.deadline, count / sum(counts[len(runs) :])),
        )
        one = replace(problem, noise=noise, found=found)
        run, sampler = _sample(one, candidate, np.sort(rows), own)
        runs.append(run)
        if isinstance(sampler, NormalSampler):
            known.append(count / sum(counts) * sampler.about_labels)
            if not all(isinstance(law, NormalLaw) or law.is_settled for law in sampler.laws):
                choice = replace(choice, notes=(*choice.notes, RESTLESS))
    draws, models = _joined([run.draws for run in runs], choice.models, options.entropy)
    notes = dict.fromkeys(note for run in runs for note in run.notes)
    spaces = [one.space for one in models]
    about = np.sum(known, axis=0) if known else None
    p = label_proba(draws, spaces, problem.labels, problem.noise.n_classes, about)
    return FittedSphere(
        draws, p, diagnose(draws), (*notes, *choice.notes), choice.compared, models,
        choice.probability.sum(axis=1), float(choice.probability[choice.weights == 0.0].sum()),
        choice.left,
    )  # fmt: skip


def _is_hasty(problem: Problem, options: RunOptions) -> bool:
    """Whether many rows have a time limit: not where a run that goes on must be the same."""
    has_many = len(problem.labels) > LARGEST_WHOLE and not problem.is_approximate
    return has_many and options.deadline is not None and options.run is None


_Model = tuple[Candidate, LabelNoise | Confusion, Approximation | None]


@dataclass(frozen=True)
class _Choice:
    """What the comparison has left: models, each with a noise, and what to say.

    Probabilities and shares of draws, (k, 2), are of models under one noise and rates by class.
    """

    compared: tuple[Compared, ...]
    models: list[_Model]
    probability: Array
    weights: Array
    notes: tuple[str, ...]
    left: Array | None = None


# Probability and shares where nothing was compared.
_ALONE = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0]])


def _choose(problem: Problem, options: RunOptions) -> _Choice:
    candidates, noise = problem.candidates, problem.noise
    n, rows = len(problem.labels), None
    is_one_rate = isinstance(noise, LabelNoise) and noise.prior is not None
    has_one = is_one_rate and n > LARGEST_WHOLE and not problem.is_approximate
    common = (_ONE_RATE,) if has_one else ()
    if problem.noise_of is None:
        return _Choice((), [(candidates[0], noise, None)], *_ALONE, common)
    if n > LARGEST_WHOLE:
        rows = np.sort(stream(options.entropy, "rows", 3).choice(n, _COMPARED_ROWS, replace=False))
    compared = compare(
        candidates, problem.labels, problem.noise_of, options.entropy,
        options.deadline_before_chains(_COMPARING), rows, problem.by_class, problem.known,
        has_runs=not problem.is_approximate,
    )  # fmt: skip
    left = what_is_known(candidates, compared)
    n_left_out = 0 if problem.known is None else np.isnan(problem.known[:, 0]).sum()
    notes = (*_say_what_time_cut(compared, len(candidates) - n_left_out), *common)
    if not compared:
        return _Choice((), [(candidates[len(candidates) // 2], noise, None)], *_ALONE, notes)
    by_class = problem.by_class
    if by_class is None:
        p = np.column_stack([probabilities(compared), np.zeros(len(compared))])
    elif noise is by_class:
        compared = under_rates_by_class(compared)
        p = np.column_stack([np.zeros(len(compared)), probabilities(compared)])
    else:
        compared = over_both_noises(compared)
        p = probabilities_by_noise(compared)
    most = 1 if _is_hasty(problem, options) else options.n_draws
    weights = shares(p, stream(options.entropy, "models"), most)
    if by_class is not None and noise is not by_class:
        notes = (*notes, _say_noise(*weights.sum(axis=0)), *say_restless(compared))
    models: list[_Model] = [
        (one.candidate, (noise, by_class or noise)[k], (*one.found, None, None)[k])
        for one, k in ((compared[j], k) for j, k in np.argwhere(weights > 0.0))
    ]
    return _Choice(compared, models, p, weights, notes, left)


def _say_noise(one: float, two: float) -> str:
    both = {"one rate": one, "a rate for each class": two}
    said = [f"{rates} ({p:.0%} of the draws)" for rates, p in both.items() if p > 0.0]
    return f"noise by evidence: {' and '.join(said)}"


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


def _part_of_warmup(n_warmup: int, share: float) -> int:
    """Steps that tune the chains of a model with that share of the draws."""
    return max(math.ceil(share * n_warmup), min(n_warmup, _FEWEST_WARMUP))


def _sample(
    problem: Problem, candidate: Candidate, rows: NDArray[np.int64], options: RunOptions
) -> tuple[Sampled, Sampler[Any, Any]]:
    """Draw classifiers from one model; also give what drew them."""
    with one_blas_thread():
        chains = make_chains(
            candidate.space, problem.labels, problem.noise, problem.sampler, rows,
            options.n_warmup, problem.found,
        )  # fmt: skip
    names = RowNames.positions(len(problem.labels)) if problem.names is None else problem.names
    labels = Labels({"margin": tuple(names.short(row) for row in rows)}, ("margin",))
    drawn = sample(chains.sampler, options, adaptation=chains.adaptation, labels=labels)
    return drawn, chains.sampler


def _joined(
    parts: Sequence[Draws], models: Sequence[_Model], entropy: int
) -> tuple[Draws, tuple[Candidate, ...]]:
    """Put the draws of the models after one another, with what they say of the noise.

    Also the candidates that "model" counts. Where some draws have a rate for each class, others
    have their one rate twice. Where chains of a model were out of time in its warm-up, all models
    have as many fewer.
    """
    n_chains = min(part.n_chains for part in parts)
    parts = [part.first_chains(n_chains) for part in parts]
    longest = max(part.variables["coefficients"].shape[-1] for part in parts)
    rng = stream(entropy, "rates")
    said = [
        _of_noise(part.variables, noise, rng)
        for part, (_, noise, _) in zip(parts, models, strict=True)
    ]
    n_rates = max(each["noise_rate"].shape[-1] for each in said)
    for each in said:
        rates = each["noise_rate"]
        each["noise_rate"] = np.broadcast_to(rates, (*rates.shape[:-1], n_rates)).copy()
    variables = {
        name: np.concatenate([_filled(part.variables[name], name, longest) for part in parts], 1)
        for name in parts[0].variables
        if name not in said[0]
    }
    stats = {
        name: np.concatenate([part.stats[name] for part in parts], axis=1)
        for name in parts[0].stats
    }
    candidates = list({id(candidate): candidate for candidate, *_ in models}.values())
    number = {id(candidate): j for j, candidate in enumerate(candidates)}
    lengths = tuple(part.n_draws for part in parts)
    model = np.repeat([number[id(candidate)] for candidate, *_ in models], lengths)
    variables |= {
        "model": np.broadcast_to(model, variables["length"].shape).copy(),
        **{name: np.concatenate([each[name] for each in said], axis=1) for name in said[0]},
    }
    is_learned = models[0][1].prior is not None
    monitored = ("n_errors", "noise_rate", "margin") if is_learned else ("n_errors", "margin")
    segments = lengths if len(lengths) > 1 else ()
    draws = Draws(variables, stats, dict(parts[0].labels), monitored, segments=segments)
    return draws, tuple(candidates)


def _of_noise(
    variables: Mapping[str, NDArray[Any]], noise: LabelNoise | Confusion, rng: np.random.Generator
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
        log_likelihood = noise.log_no_errors - noise.cost(variables["is_wrong"])
    elif "log_likelihood" in variables:  # many rows without chains
        errors = variables["n_errors"].astype(np.int64)
        log_likelihood = variables["log_likelihood"]
    else:  # many rows, under one rate
        errors = variables["n_errors"][..., np.newaxis].astype(np.int64)
        log_likelihood = noise.log_no_errors - noise.cost_of_counts(errors)
    return {
        "n_errors": errors.sum(axis=-1).astype(np.float64),
        "noise_rate": noise.draw_rates(rng, errors),
        "log_likelihood": log_likelihood,
    }


def _filled(values: NDArray[Any], name: str, length: int) -> NDArray[Any]:
    """Fill coefficients up with zeros to a common length."""
    if name != "coefficients":
        return values
    widths = [(0, 0)] * (values.ndim - 1) + [(0, length - values.shape[-1])]
    return np.pad(values, widths)


# What a fit compared and what came of it: a table, a sentence, the evidence of noise rates.

# Probability left out that a note mentions.
_WORTH_SAYING = 0.005
# Models whose shares of wrong labels differ by more are worth a warning.
_RATES_DIFFER = 0.03

CURVE_RATES = np.concatenate([[0.001, 0.002, 0.005], np.linspace(0.01, 0.5, 50)])

COMPARED = (
    "kernel", "lengthscale", "nugget", "log_evidence", "standard_error", "n_rows", "share",
    "probability",
)  # fmt: skip


def comparison_table(fitted: FittedSphere) -> Table:
    """One row for each model that was compared, the best first.

    Share is of the draws; the posterior probability is that of equal prior ones, 0 of those that
    were dropped.
    """
    model = fitted.draws.flat("model")
    share = {id(m): float(np.mean(model == j)) for j, m in enumerate(fitted.models)}
    rows = []
    for one, p in zip(fitted.compared, fitted.probability, strict=False):
        c = one.candidate
        rows.append(
            (c.kernel, c.lengthscale, c.nugget, finite_or_none(one.log_evidence),
             finite_or_none(one.standard_error), one.n_rows, share.get(id(c), 0.0),
             float(p))
        )  # fmt: skip
    return Table(COMPARED, tuple(rows))


def say_comparison(fitted: FittedSphere) -> tuple[str, ...]:
    """Say in a sentence what was compared and what the draws come from."""
    if len(fitted.compared) < 2:
        return ()
    model = fitted.draws.flat("model")
    share = np.array([np.mean(model == j) for j in range(len(fitted.models))])
    parts = []
    for j in np.argsort(-share, kind="stable"):
        one = fitted.models[j]
        scale = "" if one.lengthscale is None else f" lengthscale {one.lengthscale:.3g}"
        parts.append(f"{one.kernel}{scale} nugget {one.nugget:.3g} ({share[j]:.0%} of the draws)")
    said = f"by evidence, of {len(fitted.compared)} models: {', '.join(parts)}"
    if fitted.left_out >= _WORTH_SAYING:
        said += f"; others, with {fitted.left_out:.0%} of the probability, give none"
    return (said, *_say_where_rates_differ(fitted, model))


def _say_where_rates_differ(fitted: FittedSphere, model: NDArray[Any]) -> tuple[str, ...]:
    """Warn where the nugget, which takes overlap, decides how many labels are said to be wrong."""
    if "is_wrong" not in fitted.draws.variables:
        return ()
    share = fitted.draws.flat("is_wrong").mean(axis=1)
    by_nugget = {
        nugget: float(share[np.isin(model, used)].mean())
        for nugget in sorted({one.nugget for one in fitted.models})
        if (used := [j for j, one in enumerate(fitted.models) if one.nugget == nugget])
    }
    high = max(by_nugget, key=lambda nugget: by_nugget[nugget])
    low = min(by_nugget, key=lambda nugget: by_nugget[nugget])
    if by_nugget[high] - by_nugget[low] < _RATES_DIFFER:
        return ()
    return (
        "overlap and wrong labels are hard to tell apart here: "
        f"{by_nugget[high]:.0%} of the labels are wrong with nugget {high:.3g}, "
        f"{by_nugget[low]:.0%} with nugget {low:.3g}; a noise_rate or a nugget that is known helps",
    )


def evidence_curve(fitted: FittedSphere) -> EvidenceCurve | None:
    """Evidence of noise rates for the best model; None where there is no law of errors."""
    if not fitted.compared or fitted.compared[0].law is None:
        return None
    return fitted.compared[0].law.curve(CURVE_RATES)


def mean_rates(rates: Array, classes: NDArray[Any]) -> float | dict[Any, float]:
    """Posterior mean of the noise rate, by true class where the draws (k, C[, C]) of it are."""
    means = rates.mean(axis=0)
    if means.ndim == 2:
        means = 1.0 - means.diagonal()
    if len(means) == 1:
        return float(means[0])
    return dict(zip(classes.tolist(), means.tolist(), strict=True))


# Compiling the loops, before the user waits for them unawares.


def compile_loops(tell: Callable[[str], None], n_classes: int = 2, sampler: str = "auto") -> None:
    """Compile or do nothing; ``tell`` is told a line first if there is something to compile.

    Loops of several classes and of the great circle are compiled where they are needed.
    """
    if sampler == "propagation":
        return
    more = [compile_several] * (n_classes > 2) + [compile_circle] * (sampler == "great_circle")
    compile_first(tell, compile_now, *more)


def compile_now() -> None:
    """Take a pass of trajectory and lines on a tiny problem."""
    X = np.random.default_rng(0).standard_normal((6, 2))
    kernel_named("rbf").gram(np.zeros(3), X)
    _pass(("hmc", "lines"))


def compile_circle() -> None:
    """Take a great circle on a tiny problem."""
    _pass(("great_circle",))


def compile_several() -> None:
    """Take a step of several classes on a tiny problem, at one rate and at a matrix of rates."""
    rng = np.random.default_rng(0)
    X, labels = rng.standard_normal((6, 2)), np.array([0, 1, 2, 0, 1, 2])
    for noise in (fixed_rate(0.2, 6, 3), learned_confusion((1.0, 1.0), labels, 3)):
        model = SeveralModel(X, labels, noise)
        moves = first_several_moves(model, default_several_moves(model))
        SeveralSampler(model, moves, make_several_start(model), keep_nothing).init(rng)
    perceptron(X, labels, X[:3].copy(), 1)
    largest_of_normals(np.zeros((1, 3, 1)), np.empty((1, 3, 1)))


def _pass(names: tuple[str, ...]) -> None:
    """At one known rate, and at two that are learned: their costs are arrays of another shape."""
    rng, labels = np.random.default_rng(0), np.array([0, 1, 0, 1, 0, 1])
    L = rng.standard_normal((6, 2))
    for noise in (fixed_rate(0.2, 6), learned_class_rates((1.0, 1.0), labels)):
        model = SphereModel(L, noise)
        drawn = model.extended(rng.standard_normal((len(names), 2)))
        moves, point = first_moves(names, model), model.point(rng.standard_normal(2))
        moves.apply(rng, model, model.noise, point, drawn)
        if "hmc" in names:
            TemperedSampler(model, (0.0, 1.0), moves, PriorStart((2,)), keep_nothing).init(rng)
