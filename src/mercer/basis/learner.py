"""Learning numbers or classes, a table or a stream: rows are held until scales are known."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mercer.basis.class_filter import (
    ClassFilter,
    ClassOutlook,
    ClassSchedule,
    StickBreaking,
    StickState,
    default_prior,
    forgetting_schedule,
)
from mercer.basis.ensemble import Ensemble, EnsembleState, Outlook, filter_law, mean_function
from mercer.basis.length_scales import (
    MOST_LINEAR,
    LengthScaleGrid,
    all_alike,
    chosen_lengthscales,
    n_lengthscales,
    n_linear,
)
from mercer.basis.model import Array, Integers, Reservoir, SetPrior
from mercer.basis.settings import FilterSettings, GivenScales, Scales, leaving_columns
from mercer.errors import DataError, NumericalError, RowsError
from mercer.estimation.run import run_options
from mercer.estimation.standardize import Standardizer, indicators
from mercer.numerics.compilation import compile_first
from mercer.posterior.predictive import StudentMixture
from mercer.random import stream
from mercer.sampling.checkpoint import digest_arrays
from mercer.sampling.driver import RunOptions, run_to_end
from mercer.sampling.progress import tell
from mercer.sampling.sampler import Sampler
from mercer.sampling.signals import check_stop, hold_interrupts, is_late

# A stream being learned, whatever its targets: rows held back until scales are known.
#
# Then these are learned in order, so that nothing depends on how the rows were cut into calls.

Targets = NDArray[Any]
Seen = TypeVar("Seen")


class RunningFilters(Protocol[Seen]):
    """What there is once the scales are known."""

    def standardise(self, X: Array) -> Array:
        """Standardise rows (n, d)."""
        ...

    def scaled(self, y: Targets) -> Sequence[Any]:
        """Return targets (n,) as the filters take them."""
        ...

    def learn(self, z: Array, target: Any) -> Seen:
        """Learn a standardised row (d,); say what was said of it before."""
        ...

    def score(self, seen: Seen) -> float:
        """Log predictive density of a row that was learned, in nats and the user's units."""
        ...

    def leaving(self, X: Array, y: Targets, names: tuple[str, ...]) -> list[str]:
        """Name what leaves ten scales."""
        ...


AnyRunning = TypeVar("AnyRunning", bound=RunningFilters[Any])


@dataclass(kw_only=True)
class RowLearner(ABC, Generic[AnyRunning, Seen]):
    """Learns rows one after the other, once the first ``scale_rows`` have given the scales."""

    settings: Any  # those of the subclass
    given: GivenScales
    scale_rows: int
    entropy: int
    names: tuple[str, ...]  # of the inputs
    held_X: list[Array] = field(default_factory=list)  # waiting for the scales, in the user's units
    held_y: list[Any] = field(default_factory=list)
    running: AnyRunning | None = None  # None while rows are held back
    n_scored: int = 0  # rows that were predicted and then learned
    sum_log_density: float = 0.0  # of these rows, in the user's units
    told: set[str] = field(default_factory=set)  # columns whose leaving of ten scales has been said
    is_whole: bool = True  # False once an error has left the arrays in the middle of a row

    def check_whole(self) -> None:
        """Refuse to go on, or to be saved, in the middle of a row."""
        if not self.is_whole:
            raise NumericalError(
                f"the model failed in the middle of row {self.n_scored + 1} and cannot be used any "
                "more; go on from one that was saved before"
            )

    @abstractmethod
    def check(self, X: Array, y: Targets) -> None:
        """Refuse rows (n, d) that cannot be computed with, by a ValueError that names one."""

    @abstractmethod
    def begin_stream(self, X: Array, y: Targets) -> AnyRunning:
        """Set ``running`` up, with scales learned from the first rows (n, d)."""

    @property
    def n_seen(self) -> int:
        """Rows learned or held back."""
        return self.n_scored + len(self.held_y)

    def learn(self, X: Array, y: Targets, see: Callable[[Seen], Any]) -> None:
        """Learn rows X (n, d), y (n,); ``see`` is given what was said of each before.

        Rows that are held back count when they are learned. Rows that are refused leave
        everything as it was.
        """
        self.check_whole()
        self.check(X, y)
        n_held = self._hold(X, y) if self.running is None else 0
        if self.running is None and (len(self.held_y) >= self.scale_rows or self.given.is_complete):
            self._begin_held(X, y, n_held)
            self._learn_held(see)
        if self.running is not None:
            self._learn(self.running, X[n_held:], y[n_held:], see)

    def foresee(self, X: Array, y: Targets, see: Callable[[Seen], Any]) -> None:
        """Fix the scales for rows X (n, d), y (n,) that are learned later, unless that is done.

        They are those that `learn` and `release` would give. Rows held back before are learned.
        """
        self.check_whole()
        self.check(X, y)
        if self.running is None and self.n_seen + len(y):
            n_held = self._hold(X, y)
            self._begin_held(X, y, n_held)
            self._let_go(n_held)
            self._learn_held(see)

    def release(self, see: Callable[[Seen], Any]) -> AnyRunning:
        """Fix the scales from the rows held back and learn these, unless that is done.

        Without a row nothing is fixed: what is returned is thrown away.
        """
        self.check_whole()
        if self.running is None:
            running = self.begin_stream(*self._held())
            self.running = running if self.held_y else None
            if self.running is None:
                return running
            self._learn_held(see)
        assert self.running is not None
        return self.running

    def leaving(self, X: Array, y: Targets) -> list[str]:
        """Name columns that leave ten scales for the first time."""
        if self.running is None:
            return []
        far = self.running.leaving(X, y, self.names)
        new = [name for name in far if name not in self.told]
        self.told.update(new)
        return new

    def _hold(self, X: Array, y: Targets) -> int:
        """Hold rows back, as many as the scales need; return their number."""
        n_wanted = 1 if self.given.is_complete else self.scale_rows - len(self.held_y)
        n = min(len(y), max(n_wanted, 0))
        self.held_X.extend(np.array(X[:n]))
        self.held_y.extend(y[:n].tolist())
        return n

    def _held(self) -> tuple[Array, Targets]:
        return np.array(self.held_X).reshape(-1, len(self.names)), np.array(self.held_y)

    def _let_go(self, n: int) -> None:
        """Take the last n rows out of those held back."""
        n_left = len(self.held_y) - n
        del self.held_X[n_left:], self.held_y[n_left:]

    def _begin_held(self, X: Array, y: Targets, n_held: int) -> None:
        """Fix the scales, for rows X, y of which the first ``n_held`` are held back."""
        try:
            self.begin_stream(*self._held())
            self.check(X, y)  # as they are in these scales
        except BaseException:
            self._let_go(n_held)
            self.running = None
            raise

    def _learn_held(self, see: Callable[[Seen], Any]) -> None:
        assert self.running is not None
        X, y = self._held()
        self.held_X, self.held_y = [], []
        self._learn(self.running, X, y, see)

    def _learn(self, running: AnyRunning, X: Array, y: Targets, see: Callable[[Seen], Any]) -> None:
        """Learn rows; Ctrl-C is heeded after a whole one, since states are changed in place."""
        with hold_interrupts() as interrupts:
            for z, target in zip(running.standardise(X), running.scaled(y), strict=True):
                self.is_whole = False
                try:
                    seen = running.learn(z, target)
                except ValueError as error:  # of linear algebra: nothing is wrong with the row
                    raise NumericalError(f"row {self.n_scored + 1}: {error}") from error
                self.n_scored += 1
                self.sum_log_density += running.score(seen)
                self.is_whole = True
                see(seen)
                interrupts.check()


_LARGEST = 1e100


@dataclass
class Running:
    """What there is once the scales are known; state and generator after the last row."""

    scales: Scales
    ensemble: Ensemble
    state: EnsembleState
    rng: np.random.Generator

    def standardise(self, X: Array) -> Array:
        """Standardise rows (n, d)."""
        return self.scales.standardizer.transform(X)

    def raw_inputs(self, Z: Array) -> Array:
        """Return standardised inputs in the user's units."""
        return self.scales.standardizer.inverse(Z)

    def law(self, Z: Array, *, has_noise: bool = True) -> StudentMixture:
        """Law of the targets of standardised rows Z (m, d), or of the function, in user's units."""
        target = self.scales.target
        law = self.ensemble.law(self.state, Z, has_noise=has_noise)
        return law.in_units(target.scale, target.centre)

    def scaled(self, y: NDArray[Any]) -> list[float]:
        """Standardise targets (n,)."""
        values: list[float] = self.scales.target.transform(y).tolist()
        return values

    def learn(self, z: Array, target: float) -> Outlook:
        """Learn a standardised row."""
        self.state, outlook = self.ensemble.learn(self.rng, self.state, z, target)
        return outlook

    def score(self, seen: Outlook) -> float:
        """Log predictive density of a row that was learned, in nats and the user's units."""
        return seen.log_density - math.log(self.scales.target.scale)

    def leaving(self, X: Array, y: NDArray[Any], names: tuple[str, ...]) -> list[str]:
        """Name the columns of X (n, d), and the target, that leave ten scales."""
        return leaving_columns(self.standardise(X), self.scales.target.transform(y), names)


@dataclass(kw_only=True)
class Learner(RowLearner[Running, Outlook]):
    """Learns rows with numbers as targets."""

    settings: FilterSettings

    def check(self, X: Array, y: NDArray[Any]) -> None:
        """Refuse targets whose squares overflow."""
        self.check_size(y)

    def check_size(self, y: Array) -> None:
        """Refuse targets (n,) whose squares overflow, before anything is learned."""
        values = y if self.running is None else self.running.scales.target.transform(y)
        is_large = ~(np.abs(values) < _LARGEST)
        if is_large.any():
            raise RowsError([int(np.argmax(is_large))], ": the target is too large to compute with")

    def begin_stream(self, X: Array, y: NDArray[Any]) -> Running:
        """Set up the filters, with scales learned from the first rows (n, d)."""
        compile_loops(lambda line: tell(line, "auto"))
        return self.begin(self.given.of_first_rows(X, y, self.names), X, y)

    def begin(
        self, scales: Scales, X: Array, y: Array, deadline: float | None = None, n_rows: int = 0
    ) -> Running:
        """Set up the filters, length scales learned from rows X (n, d), y (n,), by a deadline.

        ``n_rows`` are those of a table, 0 for a stream.
        """
        Z, z = scales.standardizer.transform(X), scales.target.transform(y)
        late = functools.partial(is_late, deadline)
        grid = self.settings.grid(Z, z, self.entropy, late)
        ensemble = self.settings.ensemble(grid, self.entropy, n_rows)
        state = ensemble.init(stream(self.entropy, "start"))
        self.running = Running(scales, ensemble, state, stream(self.entropy, "chain"))
        return self.running


# All rows of a training set as steps of the one driver, which keeps the last state only.


class RowFilters(Protocol):
    """Filters side by side, which learn row after row."""

    def init(self, rng: np.random.Generator) -> Any:
        """Draw the populations before the first row."""
        ...

    def learn(self, rng: np.random.Generator, state: Any, x: Array, y: Any) -> tuple[Any, Any]:
        """Learn a row; the arrays of ``state`` are used up."""
        ...

    def copied(self, state: Any) -> Any:
        """Return a state that shares no array with this one."""
        ...


@dataclass(frozen=True, eq=False)
class BatchState:
    """The filters after some rows, and the predictive log densities of these (n,), in nats."""

    filters: Any
    log_density: Array


@dataclass(frozen=True)
class BatchInfo:
    """What a progress bar shows: mean predictive log density of the rows of the step."""

    log_density: float


@dataclass(frozen=True, eq=False)
class BatchSampler(Sampler[BatchState, BatchInfo]):
    """Learns standardised rows in order, ``n_at_once`` a step."""

    filters: RowFilters
    Z: Array
    y: NDArray[Any]  # standardised, or positions among the classes
    n_at_once: int

    @property
    def n_steps(self) -> int:
        """Steps to the last row."""
        return -(-len(self.y) // self.n_at_once)

    def init(self, rng: np.random.Generator) -> BatchState:
        """Draw the populations before the first row."""
        return BatchState(self.filters.init(rng), np.zeros(len(self.y)))

    def step(self, rng: np.random.Generator, state: BatchState) -> tuple[BatchState, BatchInfo]:
        """Learn the next rows."""
        filters, densities = self.filters.copied(state.filters), state.log_density.copy()
        first = filters.n_seen
        last = min(first + self.n_at_once, len(self.y))
        for t in range(first, last):
            check_stop()
            filters, outlook = self.filters.learn(rng, filters, self.Z[t], self.y[t].item())
            densities[t] = outlook.log_density
        mean = float(densities[first:last].mean()) if last > first else 0.0
        return BatchState(filters, densities), BatchInfo(mean)

    def record(self, state: BatchState) -> Mapping[str, NDArray[Any]]:
        """Return the number of centres of each particle of the first filter."""
        return {"n_centres": state.filters.states[0].particles.size}


# From a table to a learner that has learned its rows, through the one driver.

#: Memory above which a fit is refused.
MOST_BYTES = 8 * 2**30
_ROWS_AT_ONCE = 32
# Share of the time that the search for scalings of the inputs may take.
_TIME_OF_SCALINGS = 0.25
_NO_LINE = f"the mean is not linear in the inputs: more than {MOST_LINEAR} take long (linear_part)"
_CUT_SCALINGS = (
    "search for scalings of the inputs cut short by max_seconds: those proposed are less near to "
    "what the rows say"
)

Learned = TypeVar("Learned", bound=RowLearner[Any, Any])


@dataclass(frozen=True, eq=False)
class Fitted(Generic[Learned]):
    """A learner after all rows, the predictive log density of each in nats, and notes."""

    learner: Learned
    log_density: Array
    notes: tuple[str, ...]

    def noted(self, first: tuple[str, ...]) -> Fitted[Learned]:
        """Put notes before the others."""
        return replace(self, notes=(*first, *self.notes))


def fit_learner(
    learner: Learner, X: Array, y: Array, started: float, estimator: Any
) -> Fitted[Learner]:
    """Learn the rows of a table (n, d) in their order, with a new learner.

    The estimator's arguments identify the checkpoint. A `DataError` where that would take more
    memory than is reasonable.
    """
    _check_memory(learner, *X.shape)
    options = run_options(estimator, digest_arrays(X, y), started)
    compile_loops(lambda line: tell(line, options.progress))
    learner = replace(learner, entropy=options.entropy)
    scales = learner.given.of_table(X, y, learner.names)
    deadline = options.deadline_before_chains(_TIME_OF_SCALINGS)
    running = learner.begin(scales, X, y, deadline, len(X))
    Z, z = running.standardise(X), scales.target.transform(y)
    fitted = learn_table(learner, running.ensemble, Z, z, options, math.log(scales.target.scale))
    if running.ensemble.filters[0].grid.is_cut:
        fitted = fitted.noted((_CUT_SCALINGS,))
    return fitted.noted(scales.notes)


def learn_table(
    learner: Learned,
    filters: RowFilters,
    Z: Array,
    y: NDArray[Any],
    options: RunOptions,
    log_unit: float,
) -> Fitted[Learned]:
    """Learn standardised rows Z (n, d), y (n,) through the driver, with a learner that has begun.

    ``log_unit``, that of the target's scale, is subtracted from the log density of each target.
    """
    sampler = BatchSampler(filters, Z, y, _ROWS_AT_ONCE)
    end = run_to_end(sampler, replace(options, n_draws=sampler.n_steps))
    running: Any = learner.running
    running.state, running.rng = filters.copied(end.state.filters), end.rng
    n = running.state.n_seen
    log_density = end.state.log_density[:n] - log_unit
    learner.n_scored, learner.sum_log_density = n, sum(log_density.tolist())
    late = (f"stopped by max_seconds: {n} of {len(y)} rows learned",) if n < len(y) else ()
    flat = (_NO_LINE,) * (learner.settings.linear_part == "auto" and Z.shape[1] > MOST_LINEAR)
    return Fitted(learner, log_density, (*end.notes, *late, *flat))


def _check_memory(learner: Learner, n: int, d: int) -> None:
    n_bytes = learner.settings.n_bytes(n, d)
    if n_bytes > MOST_BYTES:
        raise DataError(
            f"{n} rows with {learner.settings.max_candidates} candidates take about "
            f"{n_bytes / 2**30:.0f} GiB; use max_candidates=256"
        )


# From a classifier's arguments and rows to its filters: settings, learner, training.

#: Candidates where ``max_candidates`` is None.
MOST_CANDIDATES = 128


@dataclass(frozen=True)
class ClassSettings:
    """Arguments of the estimator, checked; ``n_buffered``: rows of a stream that are held.

    ``forgetting`` is the weight of a row after the next.
    """

    kernel: str
    lengthscale: str | tuple[float, ...]
    n_particles: int
    expected_centres: float
    max_centres: int
    max_candidates: int
    centres_prior: str
    linear_part: bool | int | str
    resampling: str
    n_buffered: int
    forgetting: float = 1.0

    def sticks(
        self, lengthscales: Array, d: int, n_classes: int, n_rows: int, entropy: int
    ) -> StickBreaking:
        """Build the filters, for W length scales (falling, in standardised units) and d inputs.

        ``n_rows`` are the rows of a table, all to be held; 0 for a stream. ``entropy``
        seeds the reservoirs' random streams.
        """
        grid = LengthScaleGrid(lengthscales, np.ones((1, d)), self.kernel, self.linear_part)
        keys = stream(entropy, "rows", 4).integers(2**63, size=n_classes - 1)
        n_buffered = max(self.n_buffered, n_rows)
        is_stream = n_buffered == self.n_buffered or self.forgetting < 1.0
        # Several classes need their candidates soon: each filter has some of the rows only.
        schedule = ClassSchedule(n_buffered=n_buffered, is_rare=n_classes == 2 and is_stream)
        return StickBreaking(
            tuple(
                ClassFilter(
                    n_particles=self.n_particles,
                    prior=default_prior(grid.n_mean),
                    sets=SetPrior(self.centres_prior, self.expected_centres, self.max_centres),
                    grid=grid,
                    reservoir=Reservoir(self.max_candidates, int(key), is_stream),
                    schedule=forgetting_schedule(schedule, self.forgetting),
                    scheme=self.resampling,
                    retention=self.forgetting,
                )
                for key in keys
            )
        )

    def lengthscales(self, Z: Array) -> Array:
        """Return the length scales to choose among, falling; Z (n, d) are standardised rows."""
        return chosen_lengthscales(self.lengthscale, Z)

    def n_bytes(self, n_rows: int, d: int, n_classes: int) -> int:
        """Estimate the memory that a fit of so many rows takes, in bytes."""
        n_levels = n_lengthscales(self.lengthscale)
        n_columns = 1 + n_linear(self.linear_part, d) + self.max_candidates
        return 16 * (n_classes - 1) * n_levels * n_columns * n_rows


# A stream of rows with classes being learned: scales, filters, random stream.


@dataclass
class ClassRunning:
    """What there is once the scales are known; state and generator after the last row."""

    standardizer: Standardizer
    sticks: StickBreaking
    state: StickState
    rng: np.random.Generator

    def standardise(self, X: Array) -> Array:
        """Standardise rows (n, d)."""
        return self.standardizer.transform(X)

    def proba(self, Z: Array) -> Array:
        """Probabilities (m, C) of the classes at standardised rows Z (m, d)."""
        return self.sticks.proba(self.state, Z)

    def scaled(self, y: NDArray[Any]) -> list[int]:
        """Return positions (n,) among the classes as they are."""
        positions: list[int] = y.astype(np.int64).tolist()
        return positions

    def learn(self, z: Array, target: int) -> ClassOutlook:
        """Learn a standardised row."""
        self.state, outlook = self.sticks.learn(self.rng, self.state, z, target)
        return outlook

    def score(self, seen: ClassOutlook) -> float:
        """Log probability of the class of a row that was learned, in nats."""
        return seen.log_density

    def leaving(self, X: Array, y: NDArray[Any], names: tuple[str, ...]) -> list[str]:
        """Name the columns of X (n, d) that leave ten scales."""
        return leaving_columns(self.standardise(X), np.zeros(0), names)


@dataclass(kw_only=True)
class ClassLearner(RowLearner[ClassRunning, ClassOutlook]):
    """Learns rows with positions among the classes as targets."""

    settings: ClassSettings
    n_classes: int

    def check(self, X: Array, y: NDArray[Any]) -> None:
        """Refuse inputs whose products overflow."""
        check_size(X if self.running is None else self.running.standardise(X))

    def begin_stream(self, X: Array, y: NDArray[Any]) -> ClassRunning:
        """Set up the filters, with scales learned from the first rows (n, d)."""
        compile_class_loops(lambda line: tell(line, "auto"))
        scales = self.given.of_first_rows(X, indicators(y), self.names)
        return self.begin(scales.standardizer, X, 0)

    def begin(self, standardizer: Standardizer, X: Array, n_rows: int) -> ClassRunning:
        """Set up the filters: length scales from rows X (n, d), ``n_rows`` of a table to hold."""
        lengthscales = self.settings.lengthscales(standardizer.transform(X))
        sticks = self.settings.sticks(
            lengthscales, X.shape[1], self.n_classes, n_rows, self.entropy
        )
        state = sticks.init(stream(self.entropy, "start"))
        self.running = ClassRunning(standardizer, sticks, state, stream(self.entropy, "chain"))
        return self.running


def check_size(Z: Array) -> None:
    """Refuse inputs Z (n, d) whose products overflow; the error names the row."""
    is_large = (~(np.abs(Z) < _LARGEST)).any(axis=1)
    if is_large.any():
        raise RowsError([int(np.argmax(is_large))], ": an input is too large to compute with")


# From a table with classes to a learner that has learned its rows, through the one driver.


def fit_classes(
    learner: ClassLearner, X: Array, labels: Integers, started: float, estimator: Any
) -> Fitted[ClassLearner]:
    """Learn the rows of a table in their order, with a new learner; all are held.

    The estimator's arguments identify the checkpoint. A `DataError` where that would take more
    memory than is reasonable.
    """
    n_bytes = learner.settings.n_bytes(len(X), X.shape[1], learner.n_classes)
    if n_bytes > MOST_BYTES:
        raise DataError(
            f"to hold {len(X)} rows takes about {n_bytes / 2**30:.0f} GiB; use partial_fit, which "
            "holds n_buffered of them, or a smaller max_candidates"
        )
    options = run_options(estimator, digest_arrays(X, labels), started)
    compile_class_loops(lambda line: tell(line, options.progress))
    learner = replace(learner, entropy=options.entropy)
    scales = learner.given.of_table(X, indicators(labels), learner.names)
    running = learner.begin(scales.standardizer, X, len(X))
    Z = running.standardise(X)
    check_size(Z)
    fitted = learn_table(learner, running.sticks, Z, labels, options, 0.0)
    return fitted.noted(scales.notes)


# Compiling the loops of numbers and of classes, before the user waits for them unawares.


def compile_loops(tell: Callable[[str], None]) -> None:
    """Compile or do nothing; ``tell`` is told a line first if there is something to compile."""
    compile_first(tell, compile_now)


def compile_now() -> None:
    """Learn a few rows with so few candidates that one retires, and predict one."""
    settings = FilterSettings(
        kernel="rbf", lengthscale=(1.0,), n_particles=4, expected_centres=1.0, max_centres=2,
        max_candidates=2, centres_prior="poisson", variances="sampled", linear_part=False,
        resampling="systematic", forgetting=(0.9,), robust=True,
    )  # fmt: skip
    ensemble = settings.ensemble(settings.grid_of(np.ones(1), all_alike(1)), 0)
    rng = np.random.default_rng(0)
    state = ensemble.init(rng)
    for t in range(20):
        state, _ = ensemble.learn(rng, state, np.array([float(t)]), 0.0)
    filter_law(ensemble.filters[0], state.states[0], np.ones((1, 1)))
    mean_function(ensemble.filters[0], state.states[0], np.ones((1, 1)))


def compile_class_loops(tell: Callable[[str], None]) -> None:
    """Compile or do nothing; ``tell`` is told a line first if there is something to compile."""
    compile_first(tell, compile_classes_now)


def compile_classes_now() -> None:
    """Learn a few rows with so few candidates that one retires."""
    settings = ClassSettings(
        kernel="rbf", lengthscale=(1.0,), n_particles=4, expected_centres=1.0, max_centres=2,
        max_candidates=2, centres_prior="poisson", linear_part=False, resampling="systematic",
        n_buffered=8, forgetting=0.9,
    )  # fmt: skip
    sticks = settings.sticks(np.ones(1), 1, 2, 0, 0)
    rng = np.random.default_rng(0)
    state = sticks.init(rng)
    for t in range(20):
        state, _ = sticks.learn(rng, state, np.array([float(t)]), t % 2)
