"""BaNK from standardised rows to results: chains, coefficients from all rows, training."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
from joblib import delayed
from numpy.typing import NDArray

from mercer.errors import UsageError
from mercer.estimation.run import run_options
from mercer.estimation.standardize import Standardizer, scale_target
from mercer.features.device import within_memory
from mercer.features.products import fill_features
from mercer.likelihoods import polya_gamma as polya_gamma_loops
from mercer.likelihoods.label_noise import FARTHEST, tied_rows
from mercer.numerics.cholesky import one_blas_thread
from mercer.numerics.compilation import compile_first
from mercer.posterior.diagnostics import Diagnostics
from mercer.posterior.draws import Draws
from mercer.posterior.labels import TargetLaws
from mercer.posterior.positive_laws import (
    NOT_POSITIVE,
    OF_LOGARITHMS,
    STUDENT,
    WITH_ERRORS,
)
from mercer.random import stream
from mercer.sampling.driver import (
    Labels,
    RunOptions,
    count_workers,
    in_processes,
    sample_long_enough,
)
from mercer.sampling.progress import tell
from mercer.sampling.signals import is_late
from mercer.spectral import loops
from mercer.spectral.base_measure import DiagonalBase
from mercer.spectral.loops import move_jointly, pull_of_phases
from mercer.spectral.missing import MissingInputs, fill_at_random
from mercer.spectral.mixture import Mixture, ProposalTuning
from mercer.spectral.model import (
    Probe,
    RegressionModel,
    Scales,
    StudentNoise,
    coefficients,
    log_variances,
)
from mercer.spectral.prediction import (
    DRAWS_THAT_JUDGE,
    FunctionDraws,
    function_draws,
    spread,
    target_laws,
)
from mercer.spectral.rows import (
    LateError,
    MemoryRows,
    RowsWithout,
    Table,
    TargetTransform,
    TrainingRows,
    check_table,
    some_positions,
)
from mercer.spectral.sampler import (
    SpectralSampler,
    StepAdaptation,
    decide,
    decide_together,
    global_share,
)
from mercer.spectral.settings import (
    MANY_ROWS,
    MOST_OF_FEW_ROWS,
    ROWS_OF_WARP,
    SpectralSettings,
    choose_standardizer,
    find_waves,
)

Array = NDArray[np.float64]
Positions = NDArray[np.int64]
Blocks = Iterator[tuple[Array, Array]]  # inputs and targets

ROWS_OF_START = 2000
FIRST_STEP = 0.5
GLOBAL_SHARE = 0.5  # of the frequencies of classes: from the whole mixture, if steps are tuned
_PROBE_ROWS, _PROBE_LAGS = 20, 10
_MONITORED = ("log_evidence", "noise_std", "n_components", "kernel", "function")
# Warm-up first looks at an eighth of the rows, then a quarter, then a half, for this share of its
# sweeps in equal parts; not at fewer rows than these, nor at more than fit into memory easily.
_PARTS, _SHARE_OF_FEW = (8, 4, 2), 0.7
_FEWEST_ROWS, _MOST_ROWS_IN_MEMORY = 1500, 200_000
_SHORTEST_WARMUP = 20
# Shares of the time left that the choice of warps and the search for the start may take.
TIME_OF_WARPS, TIME_OF_START = 0.25, 0.25
CUT_START = (
    "search for where chains start cut short by max_seconds: they start at the best point so far"
)


@dataclass(frozen=True)
class FittedSpectral:
    """What a fit leaves behind; ``start`` says where chains started."""

    start: Scales
    draws: Draws
    diagnostics: Diagnostics
    notes: tuple[str, ...]


def fit_spectral(
    rows: TrainingRows, settings: SpectralSettings, options: RunOptions
) -> FittedSpectral:
    """Draw frequencies and coefficients given standardised rows."""
    compile_loops(lambda line: tell(line, options.progress))
    with one_blas_thread():
        rng = stream(options.entropy, "rows")
        X, y = rows.take(some_positions(rng, rows.n_rows, ROWS_OF_START))
        deadline = options.deadline_before_chains(TIME_OF_START)
        right, first, found = settings.search(options.entropy, X, y, deadline)
        if first is not None and tied_rows(y).any():
            settings = replace(settings, known_noise=first.noise_std**2)
        if settings.is_scale_learned:
            X_right, y_right = X[right], y[right]
            model, rng = settings.model(*X_right.shape), stream(options.entropy, "scales", 3)
            waves = find_waves(rng, X_right, y_right, model, found)
            found = settings.with_waves(rng, replace(found, waves=waves), X_right, y_right)
        settings = resolve(settings, settings.log_evidence, rows, X, found, options)
    few, more_rows_after = few_rows(rows, settings.proposals, options)
    sampler, noise = make_sampler(rows, X, found, settings, few), settings.noise_law
    if noise is not None:
        noise = noise.placed(stream(options.entropy, "scales", 5), found.scales, X)
        sampler = replace(sampler, first=first, noise=noise)
    is_tuned = settings.proposals == "pcn" and options.n_warmup > 0
    n_kept = int(noise.waits * options.n_warmup) if is_tuned and noise is not None else 0
    adaptation = StepAdaptation(more_rows_after, settings.n_sweeps, n_kept) if is_tuned else None
    n_sweeps = 1 if is_tuned else settings.n_sweeps
    tuning = replace(sampler.tuning, n_sweeps=n_sweeps, is_noise_kept=n_kept > 0)
    monitored: tuple[str, ...] = _MONITORED
    if noise is not None:
        monitored = ("log_likelihood", *_MONITORED[1:], noise.name)
    sampled, diagnostics = sample_long_enough(
        replace(sampler, tuning=tuning),
        affordable(options, settings, rows.n_rows),
        adaptation=adaptation,
        labels=Labels({}, monitored),
    )
    notes = (CUT_START, *sampled.notes) if found.is_cut else sampled.notes
    draws = sampled.draws
    if "noise_coef" in draws.variables:
        ends = {"noise_range": noise_range(rows, draws)}
        draws = replace(draws, variables={**draws.variables, **ends})
    return FittedSpectral(found, draws, diagnostics, notes)


def resolve(
    settings: SpectralSettings,
    log_evidence: Callable[[Array, Array, Array, float | None], float],
    rows: TrainingRows,
    X: Array,
    found: Scales,
    options: RunOptions,
    share: float = math.inf,
) -> SpectralSettings:
    """Settle the number of frequencies: what rows like X (n, d) resolve and have use for."""
    entropy, deadline = options.entropy, options.deadline_before_chains(TIME_OF_START)
    resolved = settings.resolved(stream(entropy, "scales", 2), found, X)
    if settings.rows_to_resolve < MANY_ROWS:
        return resolved
    chosen = some_positions(stream(entropy, "rows", 5), rows.n_rows, MANY_ROWS)
    X_many, y = rows.take(chosen)

    def evidence(W: Array) -> float:
        return log_evidence(W, X_many, y, deadline)

    given = found, resolved.n_frequencies, len(y), evidence, share, deadline
    return settings.reduced(settings.n_worth(stream(entropy, "scales", 6), *given))


def affordable(options: RunOptions, settings: SpectralSettings, n_rows: int) -> RunOptions:
    """Have chains of many rows no longer than they are, if a draw is dearer than with fewer."""
    cost = n_rows * settings.n_frequencies**2 * settings.n_sweeps
    is_dear = n_rows >= MANY_ROWS and cost > MANY_ROWS * MOST_OF_FEW_ROWS**2
    return replace(options, most_times=1) if is_dear else options


def noise_range(rows: TrainingRows, draws: Draws) -> Array:
    """Least and most log variance of heteroscedastic noise of each draw among rows, (..., 2)."""
    ends = functools.partial(
        _noise_ends, draws.flat("noise_frequencies")[0], draws.variables["noise_coef"]
    )
    with one_blas_thread():
        return np.asarray(rows.total(ends, plus=np.minimum) * (1.0, -1.0))


def _noise_ends(V: Array, coef: Array, position: int, blocks: Blocks) -> Array:
    logs = (log_variances(V, coef, X) for X, _ in blocks)
    ends = [np.stack([g.min(axis=-1), -g.max(axis=-1)], axis=-1) for g in logs]
    return np.asarray(np.min(ends, axis=0))


def few_rows(
    rows: TrainingRows, proposals: str, options: RunOptions
) -> tuple[tuple[TrainingRows, ...], tuple[int, ...]]:
    """Take the parts of the rows that warm-up looks at first, and say until which sweep."""
    sizes = [rows.n_rows // part for part in _PARTS]
    sizes = [n for n in sizes if _FEWEST_ROWS <= n <= _MOST_ROWS_IN_MEMORY]
    is_long = proposals == "pcn" and options.n_warmup >= _SHORTEST_WARMUP
    if not is_long or rows.is_missing is not None:
        sizes = []
    few: list[TrainingRows] = []
    for k, n in enumerate(sizes):
        chosen = some_positions(stream(options.entropy, "rows", 10 + k), rows.n_rows, n)
        few.append(MemoryRows(*rows.take(chosen), rows.has_linear_part, rows.device))
    each = int(_SHARE_OF_FEW * options.n_warmup / max(len(few), 1))
    return tuple(few), tuple(each * (k + 1) for k in range(len(few)))


def make_sampler(
    rows: TrainingRows,
    some_rows: Array,
    found: Scales,
    settings: SpectralSettings,
    few: tuple[TrainingRows, ...] = (),
) -> SpectralSampler:
    """Put the sampler together; it looks at the function at some of ``some_rows``."""
    d = rows.n_inputs
    is_tuned = settings.proposals == "pcn"
    return SpectralSampler(
        rows=rows,
        model=settings.model(rows.n_rows, d, rows.n_outputs),
        mixture=settings.mixture(found),
        start=settings.start(found),
        n_frequencies=settings.n_frequencies,
        n_deviations=settings.n_deviations,
        tuning=ProposalTuning(
            FIRST_STEP if is_tuned else 1.0,
            global_share=global_share(FIRST_STEP) if is_tuned else 0.0,
        ),
        probe=make_probe(some_rows, settings.linear_part),
        carries=is_tuned and rows.n_rows < MANY_ROWS,
        few=few,
        noise=settings.noise_law,
        missing=missing_of(rows),
    )


def missing_of(rows: TrainingRows) -> MissingInputs | None:
    """Return the moves that draw what is missing among the inputs; None where nothing is."""
    return None if rows.is_missing is None else MissingInputs(rows.is_missing)


def make_probe(X: Array, has_linear_part: bool) -> Probe:
    """Look at the function at rows, and at the kernel at differences between rows.

    The differences are those of neighbours in the order of the rows, made shorter and shorter: at
    those of ordinary pairs a kernel of many inputs is all but 0.
    """
    n = len(X)
    first = np.arange(_PROBE_LAGS) % n
    shrink = 2.0 ** (-0.4 * np.arange(_PROBE_LAGS))
    lags = (X[first] - X[(first + n // 2) % n]) * shrink[:, np.newaxis]
    return Probe(lags, X[: min(n, _PROBE_ROWS)], has_linear_part)


# Coefficients from all rows, where the spectrum was learned on some of them.
#
# For a few kept draws the products of their features with each other and with the targets are
# summed over all rows, in one pass over the data; given frequencies and precisions of a draw, the
# law of its coefficients and noise is then exact. Some rows outside the subset are left out of the
# sums at first, so that both sets of coefficients can be scored on rows that neither has seen;
# then they are added.


_CHECK_ROWS = 5000
N_DEVIATIONS = 64  # draws of the coefficients for each of the few completed draws


@dataclass(frozen=True, eq=False)
class _Task:
    """One draw to complete: its frequencies, precisions and random stream."""

    frequencies: Array
    ridge: float
    linear_precision: float
    index: int


def complete(
    rows: TrainingRows,
    subset: Positions,
    draws: Draws,
    settings: SpectralSettings,
    *,
    full_draws: int,
    entropy: int,
    n_jobs: int | None,
    deadline: float | None = None,
) -> tuple[FunctionDraws, str] | None:
    """Learn the coefficients of a few draws from all rows; None where time ends before that.

    ``subset`` are the positions, ascending, of the rows that the draws come from;
    ``full_draws`` of them, evenly over all chains, are learned in ``n_jobs`` processes, each of
    which reads the rows for its share. The ``deadline``, of `time.monotonic`, is looked at
    before each block of rows. The note says what the coefficients from all rows changed.
    """
    chosen = spread(draws.n_total, full_draws)
    check = check_rows(rows.n_rows, subset, entropy)
    tasks = [
        _Task(
            draws.flat("frequencies")[i],
            float(draws.flat("ridge_precision")[i]),
            float(draws.flat("linear_precision")[i]),
            int(i),
        )
        for i in chosen
    ]
    grams = _grams(rows, tasks, check, n_jobs, deadline)
    if grams is None:
        return None
    model = settings.model(rows.n_rows, rows.n_inputs, rows.n_outputs)
    X, y = rows.take(check)
    before = _functions(replace(model, n_rows=rows.n_rows - len(check)), tasks, grams, entropy)
    held = MemoryRows(X, y, rows.has_linear_part, rows.device)
    whole = [gram + held.gram(task.frequencies) for gram, task in zip(grams, tasks, strict=True)]
    after = _functions(model, tasks, whole, entropy)
    note = _words(function_draws(draws), before, X, y, len(subset), rows.n_rows)
    return after, note


def check_rows(n_rows: int, subset: Positions, entropy: int) -> Positions:
    """Rows outside the subset, at most a tenth of all, ascending.

    Drawn by rejection: no array as long as there are rows.
    """
    n = min(_CHECK_ROWS, n_rows - len(subset), -(-n_rows // 10))
    rng = stream(entropy, "rows", 2)
    found = np.empty(0, dtype=np.int64)
    while len(found) < n:
        drawn = rng.integers(n_rows, size=4 * n)
        at = np.minimum(np.searchsorted(subset, drawn), len(subset) - 1)
        found = np.unique(np.concatenate([found, drawn[subset[at] != drawn]]))
    return np.sort(rng.permutation(found)[:n])


def _grams(
    rows: TrainingRows,
    tasks: list[_Task],
    check: Positions,
    n_jobs: int | None,
    deadline: float | None,
) -> list[Array] | None:
    """Sum the products of each draw over all rows but some; None where time ends before that."""
    n_workers = min(count_workers(n_jobs), len(tasks))
    shares = [tasks[i::n_workers] for i in range(n_workers)]
    run = functools.partial(_one_pass, RowsWithout(rows, check), deadline)
    parts = in_processes(n_workers, [delayed(run)(share) for share in shares])
    whole = [part for part in parts if part is not None]
    if len(whole) < len(parts):
        return None
    by_draw = {
        task.index: gram
        for share, grams in zip(shares, whole, strict=True)
        for task, gram in zip(share, grams, strict=True)
    }
    return [by_draw[task.index] for task in tasks]


def _one_pass(rows: TrainingRows, deadline: float | None, tasks: list[_Task]) -> list[Array] | None:
    """Read the rows once for several draws; the order of the sums does not depend on the others."""
    with one_blas_thread(), suppress(LateError):
        return rows.grams([task.frequencies for task in tasks], deadline)
    return None


def _functions(
    model: RegressionModel, tasks: list[_Task], grams: list[Array], entropy: int
) -> FunctionDraws:
    """Draw noise and coefficients of each draw."""
    means, deviations, noise = [], [], []
    for task, gram in zip(tasks, grams, strict=True):
        rng = stream(entropy, "coefficients", task.index)
        n_features = 2 * len(task.frequencies)
        prior = model.prior_precisions(n_features, task.ridge, task.linear_precision)
        law = coefficients(model, gram, prior)
        variance, drawn = law.draw(rng, model.posterior_shape, N_DEVIATIONS)
        means.append(law.mean)
        deviations.append(drawn)
        noise.append(np.sqrt(variance))
    frequencies = np.stack([task.frequencies for task in tasks])
    return FunctionDraws(frequencies, np.stack(means), np.stack(deviations), np.array(noise))


def _words(
    subset: FunctionDraws, whole: FunctionDraws, X: Array, y: Array, n_subset: int, n_rows: int
) -> str:
    before, after = (float(np.mean((f.expected(X) - y) ** 2)) for f in (subset, whole))
    return (
        f"the spectrum was learned on {n_subset} of {n_rows} rows, the coefficients of "
        f"{len(whole.mean)} draws on all: mean squared error {before:.4g} became {after:.4g} "
        f"(standardised target, {len(y)} rows held out for this)"
    )


# What a fit of BaNK leaves behind: what the estimator shows and what its file holds.


Functions = TypeVar("Functions")


@dataclass(frozen=True, eq=False)
class SpectralResult(ABC, Generic[Functions]):
    """A fit of numbers or classes."""

    feature_labels: tuple[str, ...]
    standardizer: Standardizer
    n_rows: int  # training rows
    start_scales: NDArray[np.float64]  # (d,), scales of the frequencies where chains started
    draws: Draws
    diagnostics: Diagnostics
    notes: tuple[str, ...]
    mixture: Mixture  # prior of the frequencies
    functions: Functions  # all draws, or a few with coefficients from all rows

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of the estimator by name."""
        return {
            "feature_labels_": self.feature_labels,
            "standardizer_": self.standardizer,
            "n_training_rows_": self.n_rows,
            "start_scales_": self.start_scales,
            "posterior_": self.draws,
            "diagnostics_": self.diagnostics,
            "notes_": self.notes,
            "n_frequencies_": int(self.draws.variables["frequencies"].shape[2]),
            "_functions": self.functions,
            **self._own_attributes(),
        }

    @abstractmethod
    def _own_attributes(self) -> dict[str, Any]:
        """Those that numbers or classes alone have."""


@dataclass(frozen=True, eq=False)
class Result(SpectralResult[FunctionDraws]):
    """A fit of numbers, with mean and standard deviation of the training targets.

    Of contaminated noise also the targets as they were given, what is said of them, and positions
    of their rows. Of several outputs both are (q,).
    """

    noise: str
    target_centre: Any
    target_scale: Any
    judged: tuple[Array, TargetLaws, Positions] | None = None

    def _own_attributes(self) -> dict[str, Any]:
        found = {"target_centre_": self.target_centre, "target_scale_": self.target_scale}
        found |= {"n_outputs_": np.size(self.target_scale), "noise_": self.noise}
        if self.functions.is_of_counts:
            return {**found, "dispersion_": float(self.draws.flat("dispersion").mean())}
        return {**found, "noise_std_": self.functions.mean_noise_std * self.target_scale}


# From the arguments of `fit` to a result: check, standardise, sample, complete.

# Rows from which the standardisation is learned, where all rows are on a disk and more than these.
_ROWS_OF_SCALES = 200_000
_ALL_FROM_SOME = "all was learned from {} of {} rows (kernel_rows), with noise that is not normal"
_LEAST_DEGREES = StudentNoise.degrees[0]
_HEAVY = (
    "degrees of freedom are as few as they may be ({}): where far targets are errors, "
    'noise="contaminated" is the better law'
)
# Standardised noise of one output over that of another, from which one ridge suits neither.
_UNLIKE = 5.0
_APART = (
    "the noise of some outputs is {:.0f} times that of others, beside their spread: these have one "
    "ratio of function to noise, and each by itself may be learned better"
)
_TOO_MANY = (
    'missing="posterior" draws inputs of all rows, and there are {} for kernel_rows of {}: raise '
    'it, or fill gaps in with TableEncoder(missing="indicator")'
)
_LATE = (
    "out of time before the pass over all rows was done (max_seconds): all was learned from {} "
    "of {} rows"
)


def right_targets(
    table: Table, is_right: Callable[[Array], NDArray[np.bool_]], words: str
) -> Array:
    """Return all targets; a `DataError` names the place of the first that the noise has not."""
    y = table.targets(np.arange(table.n_rows))
    right = is_right(y)
    if not right.all():
        row = int(np.argmin(right))
        raise table.refusal(row, f": the target is {y[row]:g}, and {words}")
    return y


def fit_result(model: Any, X: Any, y: Any, started: float) -> Result:
    """Fit an estimator whose arguments have been checked; sets what scikit-learn's checks set."""
    table = check_table(model, X, y)
    settings = model._settings(table.n_rows)
    options = run_options(model, table.digest(), started)
    law, said = model._suiting_noise(table, settings, options)
    settings = replace(settings, noise=law)
    if model.noise in OF_LOGARITHMS:  # what was chosen has been looked at
        right_targets(table, lambda y: y > 0.0, NOT_POSITIVE)
    target, shared = learn_spectrum(
        model,
        table,
        settings,
        options,
        has_linear_part=settings.linear_part,
        learn_target=functools.partial(
            scale_target,
            is_robust=settings.has_far_errors,
            farthest=FARTHEST if settings.noise in WITH_ERRORS else math.inf,
            n_others=max(table.n_rows - (model.kernel_rows or _ROWS_OF_SCALES), 0),
            is_log=settings.noise in OF_LOGARITHMS,
        ),
        sample_rows=fit_spectral,
        functions_of=function_draws,
        complete_draws=complete if settings.noise_law is None else None,
        draws_missing=model.missing == "posterior",
    )
    judged, draws = None, shared["draws"]
    shared["notes"] = (*said, *shared["notes"])
    if settings.noise == STUDENT and (draws.flat("noise_df") <= _LEAST_DEGREES).mean() > 0.5:
        shared["notes"] = (*shared["notes"], _HEAVY.format(_LEAST_DEGREES))
    noise = shared["functions"].mean_noise_std
    if (unlike := np.max(noise) / np.min(noise)) > _UNLIKE:
        shared["notes"] = (*shared["notes"], _APART.format(unlike))
    if settings.noise in WITH_ERRORS:
        rows = table.rows(shared["standardizer"], target, settings.linear_part)
        where, laws = _judged(rows, model.kernel_rows, shared, options)
        judged = table.targets(where), laws, where
    centre, scale = target.centre, target.scale
    return Result(**shared, noise=law, target_centre=centre, target_scale=scale, judged=judged)


# Draws times rows to judge: more rows are judged by fewer draws, late ones by the fewest.
_MOST_JUDGED, _FEWEST_DRAWS = 20_000_000, 20
_HASTY = "out of time (max_seconds): {} rows were judged by {} draws only"


#: Rows that are not in memory are named as wrong up to this many: the most probable.
_MOST_NAMED = 1_000_000
_NAMED = "of {} rows those {} are named whose targets are the most probably wrong"


# Positions of rows, ascending, and (3, m), as of `TargetLaws`, what is said of their targets.
_Judgements = tuple[Positions, Array]


def _likeliest(most: int, judged: _Judgements, later: _Judgements) -> _Judgements:
    """Put together, and keep as many at most as are the likeliest to be wrong."""
    rows, laws = np.append(judged[0], later[0]), np.hstack([judged[1], later[1]])
    if len(rows) <= most:
        return rows, laws
    kept = np.sort(np.lexsort((rows, -laws[0]))[:most])
    return rows[kept], laws[:, kept]


def _judge(
    functions: FunctionDraws,
    fitted: Positions | None,
    n_draws: int,
    join: Callable[[_Judgements, _Judgements], _Judgements],
    position: int,
    blocks: Blocks,
) -> _Judgements:
    """Judge rows, of which those ``fitted``, or all, had a part in the draws."""
    found = np.empty(0, np.int64), np.empty((3, 0))
    for X, y in blocks:
        rows = np.arange(position, position + len(y))
        is_fitted = np.ones(len(y), bool) if fitted is None else np.isin(rows, fitted)
        laws = target_laws(functions, X, y, is_fitted, n_draws)
        found = join(found, (rows, np.array([laws.wrong, laws.mean, laws.std])))
        position += len(y)
    return found


def _judged(
    rows: TrainingRows, kernel_rows: int | None, shared: dict[str, Any], options: RunOptions
) -> tuple[Positions, TargetLaws]:
    """Say how probably targets are wrong, and of which rows."""
    n, late = rows.n_rows, is_late(options.deadline)
    n_draws = max(min(DRAWS_THAT_JUDGE, _MOST_JUDGED // n), _FEWEST_DRAWS)
    if late and n_draws > _FEWEST_DRAWS:
        n_draws = _FEWEST_DRAWS
        shared["notes"] = (*shared["notes"], _HASTY.format(n, n_draws))
    most = n if isinstance(rows, MemoryRows) else _MOST_NAMED
    if n > most:
        shared["notes"] = (*shared["notes"], _NAMED.format(n, most))
    fitted = None if kernel_rows is None else _subset(n, kernel_rows, options.entropy)
    join = functools.partial(_likeliest, most)
    judge = functools.partial(_judge, shared["functions"], fitted, n_draws, join)
    chosen, found = rows.total(judge, plus=join)
    return chosen, TargetLaws(*found)


def _subset(n_rows: int, limit: int, entropy: int) -> Positions:
    """Positions of the rows, of so many at most, that the spectrum is learned from."""
    return some_positions(stream(entropy, "rows", 3), n_rows, limit)


Target = TypeVar("Target", bound=TargetTransform)


def learn_spectrum(
    model: Any,
    table: Table,
    settings: Any,
    options: RunOptions,
    *,
    has_linear_part: bool,
    learn_target: Callable[[Array], Target],
    sample_rows: Callable[[TrainingRows, Any, RunOptions], FittedSpectral],
    functions_of: Callable[[Draws], Any],
    complete_draws: Callable[..., tuple[Any, str] | None] | None,
    rows_of_warp: int = ROWS_OF_WARP,
    numbers_of: Callable[[Array], Array] | None = None,
    draws_missing: bool = False,
) -> tuple[Target, dict[str, Any]]:
    """Standardise, sample and, where only some rows gave the spectrum, complete from all of them.

    ``numbers_of`` turns targets that are classes into numbers, for a comparison of scales.
    Where there is nothing to complete draws with, these are as those rows had them. NaN in inputs
    is for the sampler to draw, if it does.
    Returns what was learned of the targets, and the fields of `SpectralResult`.
    """
    names = model._labels()
    limit = model.kernel_rows or _ROWS_OF_SCALES
    subset = _subset(table.n_rows, limit, options.entropy)
    X_some, y_some = table.take(subset)
    target, is_missing = learn_target(y_some), None
    y_some = target.transform(y_some)
    if draws_missing:
        if table.n_rows > len(subset):
            raise UsageError(_TOO_MANY.format(table.n_rows, limit))
        X_some, is_missing = fill_at_random(stream(options.entropy, "missing"), X_some)
    standardizer, notes = choose_standardizer(
        X_some,
        y_some,
        model.standardize,
        names,
        settings,
        options.entropy,
        rows_of_warp,
        options.deadline_before_chains(TIME_OF_WARPS),
        None if numbers_of is None else numbers_of(y_some),
    )
    if is_missing is not None:
        is_missing &= standardizer.scale != 0.0  # what is constant is 0, there or not
    is_partial = model.kernel_rows is not None and table.n_rows > model.kernel_rows
    rows: TrainingRows
    if is_partial or table.n_rows == len(subset):
        X_some = standardizer.transform(X_some)
        rows = MemoryRows(X_some, y_some, has_linear_part, table.device, is_missing)
    else:
        rows = table.rows(standardizer, target, has_linear_part)
    with within_memory(table.device):
        fitted = sample_rows(rows, settings, options)
        functions, said = functions_of(fitted.draws), ""
        if is_partial and complete_draws is None:
            said = _ALL_FROM_SOME.format(len(subset), table.n_rows)
        elif is_partial and complete_draws is not None:
            said = _LATE.format(len(subset), table.n_rows)
            completed = complete_draws(
                table.rows(standardizer, target, has_linear_part),
                subset,
                fitted.draws,
                settings,
                full_draws=model.full_draws,
                entropy=options.entropy,
                n_jobs=options.n_jobs,
                deadline=options.deadline,
            )
            if completed is not None:
                functions, said = completed
    return target, {
        "feature_labels": names,
        "standardizer": standardizer,
        "n_rows": table.n_rows,
        "start_scales": fitted.start.scales,
        "draws": fitted.draws,
        "diagnostics": fitted.diagnostics,
        "notes": (*notes, *fitted.notes, *([said] if said else [])),
        "mixture": settings.mixture(fitted.start),
        "functions": functions,
    }


# Compiling the loops, before the user waits for them unawares: those of the mixture, of numbers,
# and of classes.


def compile_mixture_now() -> None:
    """Take a step on a tiny problem."""
    rng = np.random.default_rng(0)
    mixture = Mixture(DiagonalBase(np.ones(1)))
    state, W = mixture.draw_prior(rng, 3)
    mixture.step(rng, state, W)


def compile_loops(tell: Callable[[str], None]) -> None:
    """Compile or do nothing; ``tell`` is told a line first if there is something to compile."""
    compile_first(tell, compile_now)


def compile_now() -> None:
    """Call every loop that the method uses with tiny arguments."""
    compile_mixture_now()
    fill_features(np.ones((2, 1)), np.ones((4, 1)), np.empty((4, 4)))
    m = 26  # one halving by BLAS, the rest by the compiled loop
    gram, among, across = np.eye(2 * m + 2), np.eye(2 * m), np.zeros((2 * m, 2 * m + 2))
    joint, linear = np.empty((4 * m + 1, 4 * m + 1), order="F"), np.empty((1, 4 * m + 1), order="F")
    loops.assemble(gram, among, across, 1.0, 1, joint, linear)
    decisions = decide(joint, np.zeros(m), 1.0, 1.0)
    decide_together((joint, joint), np.zeros(m))
    loops.select(gram, among, across, decisions.is_accepted)
    chosen = np.empty(gram.shape, order="F")
    loops.select_lower(gram, among, across, decisions.is_accepted, np.zeros(len(gram)), chosen)
    loops.read_factor(chosen, np.ones(2 * m + 1), np.empty(1))
    loops.tridiagonal_evidence(np.ones(3), np.zeros(2), np.ones(3), 1.0)
    gaps = MissingInputs(np.eye(2, dtype=bool))
    gaps.init(np.random.default_rng(0), MemoryRows(np.eye(2), np.ones(2), False))


def compile_class_loops(tell: Callable[[str], None]) -> None:
    """Compile or do nothing; ``tell`` is told a line first if there is something to compile."""
    compile_first(tell, compile_classes_now)


def compile_classes_now() -> None:
    """Call every loop that the method uses with tiny arguments."""
    compile_now()
    rng = np.random.default_rng(0)
    polya_gamma_loops.fill_polya_gamma(rng, np.zeros(2), 2, np.empty(2))
    polya_gamma_loops.fill_polya_gamma_of_shapes(rng, np.ones(2), np.zeros(2), 2, np.empty(2))
    features, once = np.zeros((2, 3)), np.zeros((1, 3))
    move_jointly(
        features, features, once, np.zeros((1, 2)), np.ones(1), np.zeros((1, 1, 2)), np.zeros(1),
        once.copy(), np.zeros(1, dtype=bool), np.zeros(1),
    )  # fmt: skip
    pull_of_phases(features, once, np.zeros((1, 2)), once.copy())
    loops.slope_of_sticks(once, np.zeros(3), np.empty(3), once.copy())
