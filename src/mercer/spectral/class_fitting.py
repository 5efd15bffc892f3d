"""BaNK for classes from arguments to results: settings, chains, all rows, predictions."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import delayed
from numpy.typing import NDArray

from mercer.errors import NumericalError, UsageError
from mercer.estimation.run import run_options
from mercer.estimation.standardize import TargetScale, indicators
from mercer.estimation.tasks import ORDER_TAKEN, classes_of, ordered_categories
from mercer.numerics.cholesky import one_blas_thread
from mercer.posterior.draws import Draws
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
from mercer.spectral.class_model import (
    CLASSES,
    ClassCodes,
    ClassLaw,
    ClassTuning,
    CountModel,
    Law,
    LogisticModel,
    OrderedLaw,
    class_codes,
    log_posterior,
    maximise,
    newton,
)
from mercer.spectral.class_sampler import ClassAdaptation, ClassChain, ClassSampler, JointSampler
from mercer.spectral.fitting import (
    CUT_START,
    FIRST_STEP,
    GLOBAL_SHARE,
    N_DEVIATIONS,
    ROWS_OF_START,
    TIME_OF_START,
    FittedSpectral,
    Result,
    SpectralResult,
    affordable,
    check_rows,
    compile_class_loops,
    learn_spectrum,
    make_probe,
    missing_of,
    resolve,
    right_targets,
)
from mercer.spectral.missing import InputLaws
from mercer.spectral.mixture import Mixture, Start
from mercer.spectral.model import COUNTS, GammaPrior, Scales, design
from mercer.spectral.prediction import function_draws, spread
from mercer.spectral.rows import (
    MemoryRows,
    RowsWithout,
    TrainingRows,
    check_table,
    some_positions,
)
from mercer.spectral.settings import MANY_ROWS, SpectralSettings
from mercer.spectral.trajectory import Ascent, prepare_ascent

Array = NDArray[np.float64]

SAMPLERS: Mapping[str, type[ClassChain]] = {"polya-gamma": ClassSampler, "joint": JointSampler}
# Each function takes (4 M)^2 numbers of memory several times over.
MOST_CLASSES = 20
# Steps of a trajectory, and the rows from which it is not worth its time: see docs/performance.md.
_N_LEAPFROG, _MANY_ROWS = 20, 1500
_FEW_FREQUENCIES = 48  # whose sweeps take a tenth of the time of those of all
_LINEAR_PRIOR = GammaPrior(1.0, 0.1)
_FIRST_RIDGE, _FIRST_LINEAR_PRECISION = 0.1, 1.0
# Weak: what is held out says when to stop.
_RIDGE_OF_ASCENT = 0.01
# Times |log c|^2 in the search for the start: 0 and 1 are not numbers with normal noise, whose
# evidence makes too much of what a few hundred of them say.
_PENALTY = 2.0
# Ridges at which numbers of frequencies are compared, and the share of their log evidence that
# fewer may lose: where nearly all rows are told apart, thousandths of a nat count.
_RIDGES_TRIED, _SHARE_LOST = np.geomspace(3.0, 0.03, 4), 0.05


@dataclass(frozen=True)
class ClassSettings:
    """What numbers and classes have in common, and what classes have besides."""

    spectral: SpectralSettings
    n_sticks: int  # K, the number of functions
    sampler: str = "polya-gamma"  # one of `SAMPLERS`
    n_leapfrog: int = 0  # steps of the trajectory before each sweep; 0 for none
    law: Law = CLASSES  # of the targets, with its parameters where chains start
    carries: bool = False  # whether components move with all their members as well

    @property
    def n_sweeps(self) -> int:
        """How many make a step: several of few frequencies, if nothing goes before a sweep.

        Half as many where components carry their members, which takes more than half of the time.
        """
        if self.n_leapfrog > 0 or self.law.is_firm:
            return 1
        if self.carries:
            return max(self.spectral.n_sweeps // 2, 1)
        return self.spectral.n_sweeps if self.spectral.n_frequencies <= _FEW_FREQUENCIES else 1

    def may_carry(self, n_rows: int) -> bool:
        """Whether so many rows, which are in memory, are few enough for moves of several passes."""
        return self.spectral.proposals == "pcn" and n_rows < MANY_ROWS

    def model(self, n_inputs: int) -> LogisticModel:
        """Return the regressions."""
        n_linear = 1 + n_inputs if self.spectral.linear_part else 0
        prior = self.law.ridge_prior if self.spectral.ridge_precision == "learn" else None
        return LogisticModel(n_linear, prior, _LINEAR_PRIOR, self.law.level_precision)

    def climb(
        self,
        rng: np.random.Generator,
        X: Array,
        codes: Array,
        *,
        deadline: float | None = None,
        beginnings: tuple[float, ...] = (1.0,),
    ) -> Scales:
        """Search for the start on standardised rows X (n, d) with their targets (n,)."""

        def climb(chosen: Any, numbers: Array) -> Scales:
            given = X[chosen], numbers, _PENALTY, deadline
            return self.spectral.climb(rng, *given, beginnings=beginnings)

        first = self.spectral.first_scales(X.shape[1])
        return self.law.climb(codes, climb, deadline) or replace(first, log_evidence=0.0)

    def log_evidence(
        self, W: Array, X: Array, codes: Array, deadline: float | None = None
    ) -> float:
        """Laplace's log evidence of frequencies W (m, d) given rows X (n, d), in nats.

        At the best of some ridges, or at that which is given; of one by the ``deadline``.
        """
        rows, model = MemoryRows(X, codes, self.spectral.linear_part), self.model(X.shape[1])
        ones, m2, best = np.ones(self.n_sticks), 2 * len(W), -math.inf
        coef: Array = np.zeros((self.n_sticks, m2 + model.n_linear))
        for ridge in self.spectral.ridges_tried(_RIDGES_TRIED):
            if best > -math.inf and is_late(deadline):
                break
            precisions = model.precisions_of_all(m2, ridge * ones, _FIRST_LINEAR_PRECISION * ones)
            try:
                coef = maximise(W, coef, self.law, precisions, rows)
                laws = newton(W, coef, self.law, precisions, rows)
            except NumericalError:  # of a ridge that is too small
                continue
            volume = sum(float(np.log(law.factor.diagonal()).sum()) for law in laws)
            density = log_posterior(rows, W, coef, self.law, precisions) - volume
            best = max(best, density + 0.5 * float(np.log(precisions).sum()))
        return best

    def start(self, found: Scales) -> Start:
        """Return where chains start."""
        start = self.spectral.start(found)
        given = self.spectral.ridge_precision
        ridge = _FIRST_RIDGE if isinstance(given, str) else float(given)
        return Start(start.scales, start.factors, ridge, _FIRST_LINEAR_PRECISION)

    def precisions_of_ascent(self, n_inputs: int) -> Array:
        """Prior precisions of the coefficients on the way to the start, shape (2 M + p,)."""
        given = self.spectral.ridge_precision
        ridge = _RIDGE_OF_ASCENT if isinstance(given, str) else float(given)
        n_features = 2 * self.spectral.n_frequencies
        return self.model(n_inputs).prior_precisions(n_features, ridge, _FIRST_LINEAR_PRECISION)

    def mixture(self, found: Scales) -> Mixture:
        """Return the prior of the frequencies."""
        return self.spectral.mixture(found)


def default_leapfrog(n_rows: int) -> int:
    """Steps of the trajectories before sweeps over so many rows; 0 for none."""
    return _N_LEAPFROG if n_rows < _MANY_ROWS else 0


# From standardised rows with places of classes to the draws of BaNK.

# Share of trajectories whose end is taken, below which they are not worth their time.
_FEW_ACCEPTED = 0.2
# Share of a chain's time that it may take to climb to its start.
_TIME_OF_ASCENT = 0.5
_CUT_ASCENT = (
    "climb of chains to their start cut short by max_seconds: they start at the best point so far"
)
_MONITORED = ("log_likelihood", "n_components", "kernel", "function")


def fit_classes(rows: TrainingRows, settings: ClassSettings, options: RunOptions) -> FittedSpectral:
    """Draw frequencies and coefficients given standardised rows."""
    compile_class_loops(lambda line: tell(line, options.progress))
    common = settings.spectral
    with one_blas_thread():
        rng = stream(options.entropy, "rows")
        X, codes = rows.take(some_positions(rng, rows.n_rows, ROWS_OF_START))
        found = common.first_scales(rows.n_inputs)
        if common.is_scale_learned:
            deadline = options.deadline_before_chains(TIME_OF_START)
            found = settings.climb(stream(options.entropy, "scales"), X, codes, deadline=deadline)
        n_auto = common.n_frequencies if common.rows_to_resolve > 0 else 0
        common = resolve(common, settings.log_evidence, rows, X, found, options, _SHARE_LOST)
        settings = replace(settings, spectral=common)
        sampler = _sampler_of(rows, X, found, settings, options)
        if isinstance(sampler, ClassSampler) and settings.may_carry(rows.n_rows):
            settings = held(settings, sampler, options, n_auto)
            sampler = _sampler_of(rows, X, found, settings, options)
    adaptation = ClassAdaptation(common.proposals == "pcn")
    sampled, diagnostics = sample_long_enough(
        sampler,
        affordable(options, settings.spectral, rows.n_rows),
        adaptation=adaptation,
        labels=Labels({}, (*_MONITORED, *settings.law.names)),
        note_of=lambda state: _CUT_ASCENT if state.is_start_cut else "",
    )
    words = () if settings.law.is_firm else _words_of_trajectories(sampled.draws)
    notes = (*sampled.notes, *words)
    if found.is_cut:
        notes = (CUT_START, *notes)
    return FittedSpectral(found, sampled.draws, diagnostics, notes)


def _sampler_of(
    rows: TrainingRows, X: Array, found: Scales, settings: ClassSettings, options: RunOptions
) -> ClassChain:
    """Put the sampler together with the climb of its chains to their start."""
    ascent = None
    if settings.spectral.proposals == "pcn" and not settings.law.is_firm:
        precisions = settings.precisions_of_ascent(rows.n_inputs)
        rng, seconds = stream(options.entropy, "rows", 4), _seconds_of_ascent(options)
        ascent = prepare_ascent(rng, rows, precisions, seconds)
    return make_class_sampler(rows, X, found, settings, ascent)


# Where rows hold few frequencies.
#
# Nearly any other frequency would then do in place of one. Most are there for nothing: sweeps are
# dear, and how many a component has is a walk of all. Fewer are as good, and what holds the kernel
# in its place is what the mixture has from its members, so that components move with these. At the
# start that cannot be told, as chains may still find where frequencies matter: a short run tells.

# Sweeps of that run for each of a draw, of which the last ones count; the least share of accepted
# proposals from the whole mixture, and frequencies for each that is refused.
_SWEEPS_OF_LOOK, _LAST_SWEEPS = 40, 10
_MOSTLY_ACCEPTED, _A_REFUSAL, _FEWEST_HELD = 0.65, 3.0, 32


def held(
    settings: ClassSettings, sampler: ClassChain, options: RunOptions, n_auto: int
) -> ClassSettings:
    """Have fewer frequencies, and components that carry them, where rows hold few of them.

    Of a sampler over few rows; ``n_auto`` is how many they might have been, 0 where that is given.
    Settings stay as they are where time is up before that is known.
    """
    m, deadline = sampler.n_frequencies, options.deadline_before_chains(TIME_OF_START)
    sampler = replace(sampler, n_leapfrog=0)
    rng, accepted = stream(options.entropy, "scales", 7), list[float]()
    state = sampler.init(rng)
    for _ in range(_SWEEPS_OF_LOOK * settings.spectral.n_sweeps // sampler.tuning.n_sweeps):
        if is_late(deadline):
            return settings
        state, info = sampler.step(rng, state)
        accepted.append(info.global_acceptance)
    share = float(np.mean(accepted[-_LAST_SWEEPS:]))
    if share < _MOSTLY_ACCEPTED:
        return settings
    spectral = settings.spectral
    number = max(math.ceil(_A_REFUSAL * (1.0 - share) * m), _FEWEST_HELD)
    if n_auto > 0 and number < m:
        spectral = replace(spectral, n_frequencies=n_auto).reduced(number)
    return replace(settings, spectral=spectral, carries=True)


def _seconds_of_ascent(options: RunOptions) -> float | None:
    """How long a chain may climb to its start: a share of what the driver allows it."""
    n_jobs = min(count_workers(options.n_jobs), options.n_chains)
    share = _TIME_OF_ASCENT / -(-options.n_chains // n_jobs)
    deadline = options.deadline_before_chains(share)
    return None if deadline is None else deadline - time.monotonic()


def _words_of_trajectories(draws: Draws) -> tuple[str, ...]:
    """Say how many chains hardly ever take the end of a trajectory."""
    rates = draws.stats.get("trajectory_acceptance")
    if rates is None:
        return ()
    n_still = int((rates.mean(axis=1) < _FEW_ACCEPTED).sum())
    if n_still == 0:
        return ()
    return (
        f"in {n_still} of {len(rates)} chains trajectories were mostly refused: a longer n_warmup "
        "finds shorter steps, n_leapfrog=0 saves the time",
    )


def make_class_sampler(
    rows: TrainingRows,
    some_rows: Array,
    found: Scales,
    settings: ClassSettings,
    ascent: Ascent | None = None,
) -> ClassChain:
    """Put the sampler together; it looks at the functions at some of ``some_rows``."""
    common = settings.spectral
    is_tuned = common.proposals == "pcn"
    return SAMPLERS[settings.sampler](
        rows=rows,
        n_sticks=settings.n_sticks,
        model=settings.model(rows.n_inputs),
        mixture=settings.mixture(found),
        start=settings.start(found),
        n_frequencies=common.n_frequencies,
        n_deviations=common.n_deviations,
        tuning=ClassTuning(
            FIRST_STEP if is_tuned else 1.0,
            global_share=GLOBAL_SHARE if is_tuned else 0.0,
            trajectory=settings.law.first_trajectory,
            n_sweeps=settings.n_sweeps,
        ),
        probe=make_probe(some_rows, common.linear_part),
        ascent=ascent,
        n_leapfrog=settings.n_leapfrog,
        law=settings.law,
        missing=missing_of(rows),
        carries=settings.carries,
    )


# Probabilities of classes: one draw after the other, all rows of a block at a time.
#
# Each kept draw stores the means of its coefficients given Polya-Gamma variables and k deviations
# e from them; mean + e and mean - e are draws of the coefficients, and probabilities are averaged
# over draws, deviations and signs.


@dataclass(frozen=True, eq=False)
class ClassDraws:
    """Draws of the K functions that tell classes apart, on standardised inputs."""

    frequencies: Array  # (S, M, d)
    mean: Array  # (S, K, 2 M + p)
    deviations: Array  # (S, K, k, 2 M + p)
    thresholds: Array | None = None  # (S, C - 1), of ordered classes
    inputs: InputLaws | None = field(default=None, kw_only=True)  # where missing ones are drawn

    @property
    def has_linear_part(self) -> bool:
        """Whether there are coefficients beyond those of the features."""
        return bool(self.mean.shape[2] > 2 * self.frequencies.shape[1])

    @property
    def n_classes(self) -> int:
        """Number C of classes."""
        found = self.mean if self.thresholds is None else self.thresholds
        return 1 + int(found.shape[1])

    def law(self, i: int) -> ClassLaw | OrderedLaw:
        """Return the law of one draw."""
        return CLASSES if self.thresholds is None else OrderedLaw(self.thresholds[i], False)

    def probabilities(self, X: Array) -> Array:
        """Class probabilities, in the order of the sticks, for rows X (m, d): (m, C)."""
        n_draws, total = len(self.mean), np.zeros((self.n_classes, len(X)))
        for i in range(n_draws):
            centre, spread = self._functions(i, X)
            centre = centre[:, np.newaxis]
            f = np.concatenate([centre + spread, centre - spread], axis=1)
            total += self.law(i).masses(f).mean(axis=1)
        return np.ascontiguousarray(total.T / n_draws)

    def drawn_probabilities(
        self, parts: Sequence[Array], n_draws: int, rng: np.random.Generator
    ) -> list[Array]:
        """Draw functions, and return class probabilities at parts of rows: (n_draws, C, m)."""
        n_sticks, n_deviations = self.deviations.shape[1:3]
        which = np.resize(rng.permutation(len(self.mean)), n_draws)
        signs = rng.choice([-1.0, 1.0], size=(n_draws, n_sticks, 1))
        own = rng.integers(n_deviations, size=(n_draws, n_sticks))
        found = []
        for X in parts:
            proba = np.empty((n_draws, self.n_classes, len(X)))
            for s, i in enumerate(which):
                centre, spread = self._functions(int(i), X)
                f = centre + signs[s] * spread[np.arange(n_sticks), own[s]]
                proba[s] = self.law(int(i)).masses(f)
            found.append(proba)
        return found

    def moments(self, X: Array) -> tuple[Array, Array]:
        """Posterior mean and variance of the functions at rows X (m, d): both (m, K)."""
        n_draws, n_sticks = self.mean.shape[:2]
        first, second = np.zeros((n_sticks, len(X))), np.zeros((n_sticks, len(X)))
        for i in range(n_draws):
            centre, spread = self._functions(i, X)
            step = centre - first
            first += step / (i + 1)
            second += step * (centre - first) + np.square(spread).mean(axis=1)
        return first.T, second.T / n_draws

    def _functions(self, i: int, X: Array) -> tuple[Array, Array]:
        """Means (K, m) and deviations (K, k, m) of the functions of one draw."""
        X = X if self.inputs is None else self.inputs.filled(i, X)
        F = design(self.frequencies[i], X, self.has_linear_part)
        return self.mean[i] @ F, self.deviations[i] @ F


def class_draws(draws: Draws) -> ClassDraws:
    """Take what predictions need out of the draws of a fit."""
    names = "frequencies", "coef_mean", "coef_deviation", "thresholds"
    given = (draws.flat(name) for name in names if name in draws.variables)
    return ClassDraws(*given, inputs=InputLaws.of(draws))


# Coefficients from all rows, where the spectrum was learned on some of them.
#
# For a few kept draws the coefficients' posterior given frequencies and precisions is maximised
# over all rows by Newton's method, from where the subset had them: a few passes over the data
# each. There are far more rows than coefficients, so their law is taken as the normal one around
# the maximum.
#
# Some rows outside the subset are left out at first, so that both sets of coefficients can be
# scored on rows that neither has seen; then they are added, by one more Newton step.

Positions = NDArray[np.int64]

_SMALLEST_PROBA = 1e-12


# A draw to complete: its place among all, frequencies, coefficients, precisions on the diagonal
# (K, 2 M + p), and law. What comes of it: coefficients from all rows but those left out, then from
# all, and deviations around the last.
_Task = tuple[int, Array, Array, Array, Law]
_Completed = tuple[Array, Array, Array]


def complete_classes(
    rows: TrainingRows,
    subset: Positions,
    draws: Draws,
    settings: ClassSettings,
    *,
    full_draws: int,
    entropy: int,
    n_jobs: int | None,
    deadline: float | None = None,
) -> tuple[ClassDraws, str] | None:
    """Learn the coefficients of a few draws from all rows; None where time is up before the first.

    ``subset`` are the positions, ascending, of the rows that the draws come from;
    ``full_draws`` of them, evenly over all chains, are learned in ``n_jobs`` processes, each of
    which reads the rows for its draws. Draws not done by the ``deadline`` (of `time.monotonic`,
    looked at before each pass) are left out. Where coefficients from all rows predict worse on
    rows that neither has seen, by two standard errors, the draws stay as they are. The note says
    what changed.
    """
    model = settings.model(rows.n_inputs)
    some = class_draws(draws)
    ridges, linear = draws.flat("ridge_precision"), draws.flat("linear_precision")
    of_features = 2 * some.frequencies.shape[1]
    tasks: list[_Task] = [
        (int(i), some.frequencies[i], some.mean[i],
         model.precisions_of_all(of_features, ridges[i], linear[i]), some.law(i))
        for i in spread(draws.n_total, full_draws)
    ]  # fmt: skip
    check = check_rows(rows.n_rows, subset, entropy)
    X, codes = rows.take(check)
    others = RowsWithout(rows, check)
    added = MemoryRows(X, codes, rows.has_linear_part, rows.device)
    run = functools.partial(_complete, others, added, entropy, deadline=deadline)
    ends = in_processes(count_workers(n_jobs), [delayed(run)(task) for task in tasks])
    done = [task[0] for task, end in zip(tasks, ends, strict=True) if end is not None]
    if not done:
        return None
    before, mean, deviations = map(np.stack, zip(*filter(None, ends), strict=True))
    thresholds = None if some.thresholds is None else some.thresholds[done]
    after = ClassDraws(some.frequencies[done], mean, deviations, thresholds)
    unseen = replace(after, mean=before)
    losses, new_losses = (_log_losses(each, X, codes) for each in (some, unseen))
    loss, new_loss, gap = losses.mean(), new_losses.mean(), new_losses - losses
    held = f"({len(X)} rows held out for this)"
    # Of classes that are all but separable the law around the maximum is far from normal.
    if gap.mean() > 2.0 * gap.std() / math.sqrt(len(gap)):
        return some, (
            f"all was learned from {len(subset)} of {rows.n_rows} rows: with coefficients from all "
            f"a log loss of {loss:.4g} would have become {new_loss:.4g} {held}"
        )
    note = (
        f"the spectrum was learned on {len(subset)} of {rows.n_rows} rows, the coefficients of "
        f"{len(done)} draws on all: log loss {loss:.4g} became {new_loss:.4g} {held}"
    )
    if len(done) < len(ends):
        note += f"; max_seconds left no time for {len(ends) - len(done)} more draws"
    return after, note


def _complete(
    others: TrainingRows,
    added: MemoryRows,
    entropy: int,
    task: _Task,
    deadline: float | None = None,
) -> _Completed | None:
    """Learn the coefficients of one draw; None where time ends before that."""
    index, W, coef, precisions, law = task
    with one_blas_thread():
        coef = maximise(W, coef, law, precisions, others, deadline)
        if is_late(deadline):
            return None
        laws = newton(W, coef, law, precisions, others, added)
    rng = stream(entropy, "coefficients", index)
    deviations = [each.draw(rng, N_DEVIATIONS) for each in laws]
    return coef, np.stack([each.mean for each in laws]), np.stack(deviations)


def _log_losses(functions: ClassDraws, X: Array, codes: Array) -> Array:
    of_labels = functions.probabilities(X)[np.arange(len(X)), codes.astype(np.int64)]
    return -np.log(np.maximum(of_labels, _SMALLEST_PROBA))


# What a fit of BaNK to classes leaves behind.


@dataclass(frozen=True, eq=False)
class ClassResult(SpectralResult[ClassDraws]):
    """A fit of classes: their labels, sorted, and the order in which they are told apart."""

    classes: NDArray[Any]
    order: NDArray[np.int64]

    def _own_attributes(self) -> dict[str, Any]:
        return {
            "classes_": self.classes,
            "class_order_": self.classes[self.order],
            "_order": self.order,
        }


# From the arguments of `fit` to a result: check, standardise, sample, complete.

# A class says less than a number, and rare ones are what a warp can hide: more rows than for
# numbers decide.
_ROWS_OF_WARP = 6000


def fit_class_result(model: Any, X: Any, y: Any, started: float) -> ClassResult:
    """Fit a classifier whose arguments have been checked; sets what scikit-learn's checks set."""
    table = check_table(model, X, y)
    values, counts = table.labels(MOST_CLASSES)
    classes = classes_of(model, values)
    settings, digest = model._class_settings(table.n_rows, len(values)), table.digest()
    if model.ordered is False:
        codes = class_codes(values, counts)
    else:
        codes = ClassCodes(values, order_of_labels(model.ordered, classes, y, table.order))
        has_level = settings.spectral.linear_part
        law = OrderedLaw.of(counts[codes.order], has_level=has_level)
        settings, digest = replace(settings, law=law), f"{digest} {codes.order}"
    options = run_options(model, digest, started)
    _, shared = learn_spectrum(
        model,
        table,
        settings,
        options,
        has_linear_part=settings.spectral.linear_part,
        learn_target=lambda _: codes,
        sample_rows=fit_classes,
        functions_of=class_draws,
        complete_draws=complete_classes,
        rows_of_warp=_ROWS_OF_WARP,
        numbers_of=indicators,
        draws_missing=model.missing == "posterior",
    )
    if model.ordered is True:
        is_told = table.order or ordered_categories(y) is not None
        how = "that of the Categorical" if is_told else "sorted"
        said = f"{ORDER_TAKEN}: {', '.join(map(str, classes[codes.order]))} ({how})"
        shared["notes"] = (*shared["notes"], said)
    return ClassResult(**shared, classes=classes, order=codes.order)


def order_of_labels(
    ordered: Any, classes: NDArray[Any], y: Any, order: Sequence[str] = ()
) -> NDArray[np.int64]:
    """Positions among classes from the lowest to the highest.

    Parameters
    ----------
    ordered : True or list
        True for the order of an ordered pandas Categorical ``y``, else ``order``, of a target that
        is read from files, else the sorted one, numerals by their value; or all labels from lowest
        to highest.

    Raises
    ------
    UsageError
        If a label is missing, unknown or there twice, or labels are the same number.
    """
    labels = classes.tolist()
    if ordered is not True:
        given = labels_of(ordered)
    elif categories := ordered_categories(y) or order:
        given = [label for label in categories if label in labels]
    else:
        given, keys = labels, [_key(label) for label in labels]
        if classes.dtype.kind in "UO" and all(isinstance(key, float) for key in keys):
            _refuse_equal(keys, labels)
            given = [labels[i] for i in np.argsort(keys)]
    # As they are, as they are written, or by what they mean: the first by which all are found.
    for read in (lambda label: label, str, _key):
        here, there = ([read(label) for label in side] for side in (given, labels))
        if all(key in there for key in here) and all(key in here for key in there):
            break
    for words, own, others, names in (
        ("holds {}, no class", here, there, given),
        ("lacks {}", there, here, labels),
    ):
        if unknown := [str(n) for n, key in zip(names, own, strict=True) if key not in others]:
            raise UsageError(f"ordered {words.format(', '.join(unknown))} of the target")
    _refuse_equal(there, labels)
    if len(given) > len(labels):
        raise UsageError(f"ordered holds a label twice: {', '.join(map(str, given))}")
    return np.array([there.index(key) for key in here])


def _refuse_equal(keys: list[Any], labels: list[Any]) -> None:
    """Raise a `UsageError` where labels have the same key."""
    if same := [str(label) for label, key in zip(labels, keys, strict=True) if keys.count(key) > 1]:
        raise UsageError(f"ordered cannot tell {', '.join(same)} apart: list them as they are")


def labels_of(ordered: Any) -> list[Any]:
    """The labels that ``ordered`` names: of a list, or of text with commas."""
    if isinstance(ordered, str):
        return ordered.split(",")
    is_list = isinstance(ordered, Sequence) or hasattr(ordered, "__array__")
    return list(ordered) if is_list else []


def _key(label: Any) -> float | str:
    """What tells labels apart, whether they are numbers or numerals."""
    try:
        return float(label)
    except (TypeError, ValueError):
        return str(label).strip()


# Counts, whose regressor has one function and Polya-Gamma variables.

_LARGEST_COUNT = 1e12
_NO_COUNT = f"noise={COUNTS!r} is for counts, whole numbers from 0 to {_LARGEST_COUNT:g}"


def _are_counts(y: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray((y >= 0.0) & (y <= _LARGEST_COUNT) & (y == np.rint(y)))


def fit_count_result(model: Any, X: Any, y: Any, started: float) -> Result:
    """Fit a regressor of counts whose arguments have been checked."""
    table = check_table(model, X, y)
    targets = right_targets(table, _are_counts, _NO_COUNT)
    spectral = model._settings(table.n_rows)
    law = CountModel.of(targets, has_level=spectral.linear_part)
    target = TargetScale(0.0, 1.0)
    _, shared = learn_spectrum(
        model,
        table,
        ClassSettings(spectral, 1, law=law),
        run_options(model, table.digest(), started),
        has_linear_part=spectral.linear_part,
        learn_target=lambda _: target,
        sample_rows=fit_classes,
        functions_of=function_draws,
        complete_draws=None,
        draws_missing=model.missing == "posterior",
    )
    return Result(**shared, noise=COUNTS, target_centre=target.centre, target_scale=target.scale)
