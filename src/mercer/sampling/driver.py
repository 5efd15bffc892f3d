"""The one driver: several chains of any sampler, with warm-up, thinning, progress and checkpoints.

It knows nothing of any model: a sampler gives it ``init``, ``step`` and ``record``.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import (
    LokyBackend,
    MultiprocessingBackend,
    SequentialBackend,
    ThreadingBackend,
    get_active_backend,
)
from numpy.typing import NDArray

from mercer.errors import ClusterError, MercerError, ModelFileError
from mercer.numerics.cholesky import one_blas_thread
from mercer.posterior.diagnostics import Diagnostics, diagnose
from mercer.posterior.draws import IN_WARMUP, Draws
from mercer.random import generator_from_json, generator_to_json, stream
from mercer.sampling.checkpoint import ChainFile, RunFolder, pack, unpack
from mercer.sampling.progress import Board, ProgressBar, is_wanted
from mercer.sampling.sampler import Adaptation, Sampler
from mercer.sampling.signals import (
    StopRequestedError,
    StopSignals,
    call_deaf,
    is_late,
    part_of_time,
)

# One chain: warm-up, kept draws, checkpoints, and stopping between or within steps.

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class ChainPlan:
    """What a chain is to do."""

    index: int
    n_warmup: int
    n_draws: int
    thin: int
    deadline: float | None  # in seconds of time.monotonic
    is_last_kept: bool = False  # only the last state is a result: `sample(keep="last")`
    is_part: bool = False  # more steps follow where this ends

    @property
    def n_steps(self) -> int:
        """Steps in all."""
        return self.n_warmup + self.n_draws * self.thin


@dataclass
class Chain:
    """Where a chain stands; everything that the next step and the result depend on."""

    sampler: Any
    state: Any
    rng: np.random.Generator
    learned: Any
    n_done: int
    variables: dict[str, list[NDArray[Any]]]
    stats: dict[str, list[Any]]
    info: Any = None  # of the last step that was taken now
    carried: _Carried | None = None  # from where it can go on, if it is to

    def result(self) -> tuple[Arrays, Arrays]:
        """Stack the kept draws and their statistics: first axis the draws."""
        variables = {name: np.stack(values) for name, values in self.variables.items()}
        return variables, {name: np.array(self.stats[name]) for name in sorted(self.stats)}

    def prepend(self, before: Chain) -> None:
        """Put the draws of an earlier part of the chain before its own."""
        self.variables = _joined(before.variables, self.variables)
        self.stats = _joined(before.stats, self.stats)
        self.info = before.info if self.info is None else self.info

    def keep(self, info: Any) -> None:
        """Record the state as a draw."""
        for name, value in self.sampler.record(self.state).items():
            self.variables.setdefault(name, []).append(np.asarray(value))
        for f in dataclasses.fields(info):
            self.stats.setdefault(f.name, []).append(getattr(info, f.name))


def run_chain(
    sampler: Sampler[Any, Any],
    adaptation: Adaptation | None,
    plan: ChainPlan,
    rngs: tuple[np.random.Generator, np.random.Generator],
    board: Board,
    signals: StopSignals,
    file: ChainFile | _Carried | None,
) -> Chain:
    """Run one chain to its end, its deadline or a stop; resume it if its file says so.

    Of the two generators one is for the start, one for the steps.
    """
    start, steps = rngs
    state = file.state if isinstance(file, _Carried) else None
    if state is None:
        with signals.interruptible():
            state = sampler.init(start)
    learned = None if adaptation is None else adaptation.init(sampler)
    chain = Chain(sampler, state, steps, learned, 0, {}, {})
    saved = None if file is None else file.load()
    if saved is not None and file is not None:
        with file.remedied():
            _restore(chain, adaptation, *saved)
        board.resume(plan.index, chain.n_done)
    n_start = chain.n_done
    while chain.n_done < plan.n_steps and not _is_time_up(plan, board, chain.n_done > n_start):
        before = chain.rng.bit_generator.state
        try:
            with signals.interruptible():
                outcome = chain.sampler.step(chain.rng, chain.state)
        except StopRequestedError:
            chain.rng.bit_generator.state = before
            break
        except Exception:  # such as a lost cluster: what was done before is whole
            chain.rng.bit_generator.state = before
            if file is not None and chain.n_done > n_start:
                _save(chain, adaptation, file)
            raise
        _advance(chain, adaptation, plan, *outcome)
        board.report(plan.index, chain.n_done, chain.info)
        if file is not None and file.is_due:
            _save(chain, adaptation, file)
    if file is not None and chain.n_done > n_start:
        _save(chain, adaptation, file)
    if isinstance(file, _Carried):
        file.state, chain.carried = chain.state, file
    if not plan.is_part:
        _keep_one(chain, plan)
    return chain


def _keep_one(chain: Chain, plan: ChainPlan) -> None:
    """Keep a draw of a chain out of time in warm-up: better than none, and said by the driver."""
    if not chain.variables and chain.info is not None and not plan.is_last_kept:
        chain.keep(chain.info)


def _is_time_up(plan: ChainPlan, board: Board, has_stepped: bool) -> bool:
    """Whether to stop: asked to, or past the deadline with at least one step taken now."""
    return board.is_stopping or (has_stepped and is_late(plan.deadline))


def _advance(
    chain: Chain, adaptation: Adaptation | None, plan: ChainPlan, state: Any, info: Any
) -> None:
    """Take in the outcome of a step: adapt in warm-up, keep a draw after it."""
    chain.state, chain.info = state, info
    chain.n_done += 1
    n_kept_steps = chain.n_done - plan.n_warmup
    if n_kept_steps <= 0 and adaptation is not None:
        chain.learned, chain.sampler = adaptation.update(chain.learned, chain.sampler, state, info)
        if n_kept_steps == 0:
            chain.sampler = adaptation.finish(chain.learned, chain.sampler)
    if n_kept_steps > 0 and n_kept_steps % plan.thin == 0 and not plan.is_last_kept:
        chain.keep(info)


def _save(chain: Chain, adaptation: Adaptation | None, file: ChainFile | _Carried) -> None:
    arrays = pack(chain.state, "state")
    if adaptation is not None:
        arrays |= pack(chain.learned, "learned")
        arrays |= pack(adaptation.tuning(chain.sampler), "tuning")
    _save_with_draws(chain, arrays, file)


def _save_with_draws(chain: Chain, arrays: Arrays, file: ChainFile | _Carried) -> None:
    """Save arrays that the next step depends on, and the draws."""
    variables, stats = chain.result() if chain.variables else ({}, {})
    manifest = {
        "n_done": chain.n_done,
        "variables": list(variables),
        "rng": generator_to_json(chain.rng),
    }
    draws = {f"draws/{name}": value for name, value in variables.items()}
    draws |= {f"stats/{name}": value for name, value in stats.items()}
    file.save(manifest, {**arrays, **draws})


def _restore(
    chain: Chain, adaptation: Adaptation | None, manifest: dict[str, Any], arrays: Arrays
) -> None:
    """Put a chain where its checkpoint left it."""
    chain.state = unpack(chain.state, arrays, "state")
    if adaptation is not None:
        chain.learned = unpack(chain.learned, arrays, "learned")
        tuning = unpack(adaptation.tuning(chain.sampler), arrays, "tuning")
        chain.sampler = adaptation.with_tuning(chain.sampler, tuning)
    _restore_place(chain, manifest)
    _restore_draws(chain, manifest, arrays)


def _restore_place(chain: Chain, manifest: dict[str, Any]) -> None:
    """Put back the number of steps done, and the random numbers of the next one."""
    try:
        chain.n_done = int(manifest["n_done"])
        chain.rng = generator_from_json(manifest["rng"])
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError("inconsistent checkpoint: no state of the random numbers") from error


def _restore_draws(chain: Chain, manifest: dict[str, Any], arrays: Arrays) -> None:
    """Put back the kept draws, variables in the order in which they were recorded."""
    try:
        for name in manifest["variables"]:
            chain.variables[name] = list(arrays[f"draws/{name}"])
    except (KeyError, TypeError) as error:
        raise ModelFileError("inconsistent checkpoint: draws are missing") from error
    for name, values in arrays.items():
        kind, _, rest = name.partition("/")
        if kind == "stats":
            chain.stats[rest] = values.tolist()


def finished_chain(plan: ChainPlan, file: ChainFile) -> Chain | None:
    """Read a chain whose checkpoint has all its steps, or more; None if it has not."""
    saved = file.load()
    if saved is None or saved[0].get("n_done", 0) < plan.n_steps:
        return None
    with file.remedied():
        return _without_state(*saved)


def _without_state(manifest: dict[str, Any], arrays: Arrays) -> Chain:
    """Make a chain that knows its draws and its place, and can take no step."""
    chain = Chain(None, None, np.random.default_rng(0), None, 0, {}, {})
    _restore_place(chain, manifest)
    _restore_draws(chain, manifest, arrays)
    return chain


_TICK = 0.2  # seconds between two looks at signals


class SamplingStoppedError(StopRequestedError):
    """Ctrl-C or SIGTERM stopped a fit; what a checkpoint folder holds can be resumed."""

    def __init__(self, number: int, folder: Path | None) -> None:
        where = "" if folder is None else f"; the state is saved in {folder}"
        super().__init__(number, f"stopped by {signal.Signals(number).name}{where}")
        self.folder = folder


@dataclass(frozen=True)
class RunOptions:
    """How a run is done; the first four and the entropy decide what the draws are."""

    n_draws: int
    n_warmup: int
    n_chains: int
    thin: int
    entropy: int
    n_jobs: int | None = None
    progress: bool | str = "auto"
    deadline: float | None = None  # of time.monotonic
    run: RunFolder | None = None
    most_times: int = 1  # as long as ``n_draws`` that chains may become where diagnostics warn
    first_chain: int = 0  # number of the first chain, where several runs share entropy and folder
    part: str = ""  # which of several runs it is, in words for the bar

    def chain_file(self, index: int) -> ChainFile | None:
        """Checkpoint of one chain of this run, if there are checkpoints."""
        return None if self.run is None else self.run.chain(self.first_chain + index)

    def deadline_before_chains(self, share: float) -> float | None:
        """When that share of the time left has passed: for what is computed before the chains.

        None where there is a checkpoint: a run that is resumed computes it again, and must find
        the same however long it was given before.
        """
        return None if self.run is not None else part_of_time(self.deadline, share)


@dataclass(frozen=True)
class Labels:
    """What the names of the recorded variables mean to `Draws`."""

    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    monitored: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class End:
    """Where a run of one chain ended."""

    state: Any  # after the last step
    rng: np.random.Generator  # as that step left it
    notes: tuple[str, ...]  # what a user should be told, a line each


@dataclass(frozen=True)
class Sampled:
    """Draws of a run, with what a user should be told about it, a line each."""

    draws: Draws
    notes: tuple[str, ...]


def sample(
    sampler: Sampler[Any, Any],
    options: RunOptions,
    *,
    adaptation: Adaptation | None = None,
    labels: Labels | None = None,
    note_of: Callable[[Any], str] | None = None,
) -> Sampled:
    """Run the chains and return their draws.

    Without an adaptation, warm-up steps are only dropped. ``note_of`` says what a user should be
    told given the state that a chain ended with, empty for nothing; several chains with the same
    line are told of once. After Ctrl-C or SIGTERM, `SamplingStoppedError`, a KeyboardInterrupt, is
    raised once checkpoints are written.
    """
    lengths = (options.n_draws,)
    runs = sample_longer(
        sampler, options, lengths, adaptation=adaptation, labels=labels, note_of=note_of
    )
    return next(runs)


def sample_longer(
    sampler: Sampler[Any, Any],
    options: RunOptions,
    lengths: Sequence[int],
    *,
    adaptation: Adaptation | None = None,
    labels: Labels | None = None,
    note_of: Callable[[Any], str] | None = None,
) -> Iterator[Sampled]:
    """Yield what `sample` gives of so many draws a chain, then of the same chains gone on to more.

    ``lengths`` rise; ``options.n_draws`` is not used. Chains go on when the next is asked for.
    """
    chains: list[Chain] = []
    for number, n_draws in enumerate(lengths, start=1):
        part = options.part if number == 1 else f"{options.part} longer".strip()
        own = replace(options, n_draws=n_draws, part=part)
        sampled = load_finished(own, labels=labels)
        if sampled is None:
            goes_on = number < len(lengths)
            chains = _run(sampler, own, adaptation, before=chains, goes_on=goes_on)
            sampled = _gather(chains, own, labels or Labels())
            notes = dict.fromkeys(note_of(chain.state) for chain in chains) if note_of else ()
            sampled = replace(sampled, notes=(*filter(None, notes), *sampled.notes))
        yield sampled


# Chains that go on where their diagnostics warn and longer ones may end that.

FEWEST_TO_GO_ON = 100  # draws of each chain
_LONGER = "chains became {} times as long, as their diagnostics warned, and keep as many draws"
_CUT_LONGER = "chains were to go on, as their diagnostics warn, but for max_seconds"


def sample_long_enough(
    sampler: Sampler[Any, Any], options: RunOptions, *, hope: float = 2.0, **how: Any
) -> tuple[Sampled, Diagnostics]:
    """Draw; where diagnostics warn and chains ``hope`` times as long may end that, go on with them.

    To two, three, .., ``options.most_times`` times as many steps, if there are several chains of a
    hundred draws or more. One draw in so many is kept. The rest is as `sample_longer` has it.
    """
    can_go_on = options.n_chains > 1 and options.n_draws >= FEWEST_TO_GO_ON
    most = options.most_times if can_go_on else 1
    lengths = [options.n_draws * times for times in range(1, most + 1)]
    runs = sample_longer(sampler, options, lengths, **how)
    sampled = next(runs)
    words: tuple[str, ...] = ()
    diagnostics = diagnose(sampled.draws)
    for times in range(2, most + 1):
        ahead = min(hope, most / (times - 1))
        is_enough = not diagnostics.is_worth_longer(sampled.draws.n_total, ahead)
        if is_enough or is_late(options.deadline):
            break
        longer = next(runs)
        if longer.draws.n_draws < options.n_draws * times:
            words = (*words, _CUT_LONGER)
            break
        sampled = replace(longer, draws=longer.draws.every(times))
        diagnostics, words = diagnose(sampled.draws), (_LONGER.format(times),)
    return replace(sampled, notes=(*sampled.notes, *words)), diagnostics


def run_to_end(sampler: Sampler[Any, Any], options: RunOptions) -> End:
    """Run one chain of which only the last state is wanted: a population that learns row by row.

    Options are those of one chain without warm-up; ``n_draws`` is the number of steps. The
    sampler's ``record`` is not used. It is stopped as `sample` is.
    """
    run = options.run
    notes = (f"resumed from {run.path}",) if run is not None and run.is_resumed else ()
    chain = _run(sampler, options, None, is_last_kept=True)[0]
    return End(chain.state, chain.rng, notes)


def _run(
    sampler: Sampler[Any, Any],
    options: RunOptions,
    adaptation: Adaptation | None,
    *,
    before: Sequence[Chain] = (),
    goes_on: bool = False,
    is_last_kept: bool = False,
) -> list[Chain]:
    """Run all chains, with progress, signals and checkpoints.

    Without a checkpoint they go on from those ``before``, and tell where others can go on.
    """
    n_jobs = min(count_workers(options.n_jobs), options.n_chains)
    is_away = n_jobs > 1 and uses_other_engine()
    with _board(options.n_chains, 1 if is_away else n_jobs) as board:
        n_at_once = options.n_chains if is_away else n_jobs
        plans = [replace(p, is_last_kept=is_last_kept) for p in _plans(options, n_at_once)]
        n_steps = options.n_warmup + options.n_draws * options.thin
        board.begin(options.n_warmup)
        is_shown = is_wanted(options.progress)
        bar = ProgressBar(board, n_steps, options.n_warmup, is_shown=is_shown, part=options.part)
        starts: list[_Carried | None] = [chain.carried for chain in before]
        if not starts:
            starts = [_Carried() if goes_on and options.run is None else None for _ in plans]
        with StopSignals(board) as signals, bar:
            run_one = functools.partial(_run_one, sampler, adaptation, options)
            run_all = _run_here if n_jobs == 1 else functools.partial(_run_elsewhere, n_jobs)
            if is_away:
                run_all = functools.partial(_run_away, sampler, options, n_jobs)
            chains = run_all(run_one, plans, starts, signals)
    if signals.received is not None:
        raise SamplingStoppedError(
            signals.received, None if options.run is None else options.run.path
        )
    if options.run is None:
        for chain, old in zip(chains, before, strict=False):
            chain.prepend(old)
    return chains


@contextmanager
def _board(n_chains: int, n_jobs: int) -> Iterator[Board]:
    """Give a board in memory, or in a temporary folder where other processes write on it too."""
    if n_jobs == 1:
        yield Board.in_memory(n_chains)
        return
    with tempfile.TemporaryDirectory(prefix="mercer-") as folder:
        yield Board.shared(n_chains, Path(folder))


def load_finished(options: RunOptions, *, labels: Labels | None = None) -> Sampled | None:
    """Return the draws of a run whose checkpoint is complete, without a sampler; else None."""
    if options.run is None or not options.run.is_resumed:
        return None
    plans = _plans(replace(options, deadline=None), 1)
    files = [options.chain_file(plan.index) for plan in plans]
    chains = [finished_chain(p, f) for p, f in zip(plans, files, strict=True) if f is not None]
    whole = [chain for chain in chains if chain is not None]
    if len(whole) < len(chains):
        return None
    draws = _gather(whole, options, labels or Labels()).draws
    return Sampled(draws, (f"loaded the finished run in {options.run.path}",))


def _plans(options: RunOptions, n_jobs: int) -> list[ChainPlan]:
    """Give every chain its share of the time: rounds of ``n_jobs`` chains at a time."""
    n_rounds = -(-options.n_chains // n_jobs)
    now = time.monotonic()
    plans = []
    for index in range(options.n_chains):
        deadline = None
        if options.deadline is not None:
            deadline = now + (options.deadline - now) * (index // n_jobs + 1) / n_rounds
        plans.append(ChainPlan(index, options.n_warmup, options.n_draws, options.thin, deadline))
    return plans


def _run_one(
    sampler: Sampler[Any, Any],
    adaptation: Adaptation | None,
    options: RunOptions,
    plan: ChainPlan,
    board: Board,
    signals: StopSignals,
    carried: _Carried | None = None,
) -> Chain:
    number = options.first_chain + plan.index
    rngs = stream(options.entropy, "start", number), stream(options.entropy, "chain", number)
    file = carried or options.chain_file(plan.index)
    with one_blas_thread():
        return run_chain(sampler, adaptation, plan, rngs, board, signals, file)


def _run_here(
    run_one: Callable[..., Chain],
    plans: list[ChainPlan],
    starts: list[_Carried | None],
    signals: StopSignals,
) -> list[Chain]:
    chains = []
    for plan, carried in zip(plans, starts, strict=True):
        with suppress(StopRequestedError):  # said by whoever called
            chains.append(run_one(plan, signals.board, signals, carried))
    return chains


def _run_elsewhere(
    n_jobs: int,
    run_one: Callable[..., Chain],
    plans: list[ChainPlan],
    starts: list[_Carried | None],
    signals: StopSignals,
) -> list[Chain]:
    calls = [
        delayed(_run_in_worker)(run_one, plan, signals.board, carried)
        for plan, carried in zip(plans, starts, strict=True)
    ]
    try:
        chains = signals.wait_for(functools.partial(in_processes, n_jobs, calls))
    except StopRequestedError:
        return []
    return [chain for chain in chains if chain is not None]


def _run_in_worker(
    run_one: Callable[..., Chain], plan: ChainPlan, board: Board, carried: _Carried | None
) -> Chain | None:
    """Run a chain in another process, which leaves Ctrl-C and SIGTERM to its parent's board."""
    try:
        with StopSignals(board) as signals:  # installs nothing: both are ignored
            chain = run_one(plan, board, signals, carried)
    except StopRequestedError:  # before the first step
        return None
    chain.sampler = None  # holds the data, which the parent has
    return chain


# Chains on an engine that `joblib.parallel_config` names (Dask, Ray, Spark), whose workers may be
# other machines: in slices of a few seconds, from state to state. A slice begins and ends with what
# a checkpoint holds but the draws; checkpoints, progress and stops stay in the process that fits.

_SLICE = 5.0  # seconds until chains say where they are
_LAST_WORDS = 5.0  # seconds that joblib has to say what an engine that is gone has lost
_OWN = (LokyBackend, MultiprocessingBackend, SequentialBackend, ThreadingBackend)
_REMEDY = "what a checkpoint holds goes on by the same call"
_MODULES = ("distributed", "dask", "ray", "pyspark")  # whose errors are those of an engine


def uses_other_engine() -> bool:
    """Whether `joblib.parallel_config` names an engine that is not joblib's own."""
    return not isinstance(get_active_backend()[0], _OWN)


def in_processes(n_jobs: int, calls: list[Any]) -> list[Any]:
    """Return the results of delayed calls, by processes, or the engine of `parallel_config`.

    They are pure: where a process is lost they are made again, once. ``n_jobs`` is as
    `count_workers` has it.

    Raises
    ------
    ClusterError
        What makes them is gone.
    """
    if n_jobs == 1:
        return [call(*given, **named) for call, given, named in calls]
    if uses_other_engine():
        return on_engine(n_jobs, calls)
    deaf = [delayed(call_deaf)(os.getpid(), *each) for each in calls]
    parallel = Parallel(n_jobs=n_jobs, backend="loky")
    with suppress(BrokenProcessPool):
        return list(parallel(deaf))
    try:
        return list(parallel(deaf))
    except BrokenProcessPool as error:
        raise ClusterError(
            "a process that worked for this one was killed, twice; too little memory is the usual "
            f"reason (a smaller n_jobs, --jobs, needs less); {_REMEDY}"
        ) from error


def count_workers(n_jobs: int | None) -> int:
    """Return how many work at a time; a `ClusterError` where an engine cannot be asked any more."""
    with _of_engine():
        return int(effective_n_jobs(n_jobs))


def on_engine(n_jobs: int, calls: list[Any]) -> list[Any]:
    """Let the engine that `joblib.parallel_config` names make the calls."""
    with _of_engine():
        return _results_of_engine(n_jobs, calls)


@contextmanager
def _of_engine() -> Iterator[None]:
    """Errors of an engine that is gone become a `ClusterError`."""
    try:
        yield
    except MercerError:
        raise
    except Exception as error:
        module = type(error).__module__.partition(".")[0]
        if not isinstance(error, (CancelledError, OSError)) and module not in _MODULES:
            raise
        raise ClusterError(
            f"the engine of joblib.parallel_config has lost its work ({type(error).__name__}: "
            f"{error}); {_REMEDY}, on one machine too"
        ) from error


def _results_of_engine(n_jobs: int, calls: list[Any]) -> list[Any]:
    """Wait for results as long as the engine is there.

    joblib may wait for ever for a Dask client that has closed, so that it waits in a thread.
    """
    parallel = Parallel(n_jobs=n_jobs)  # here, where it knows what parallel_config says
    client = getattr(get_active_backend()[0], "client", None)
    if client is None:
        return list(parallel(calls))
    outcome: dict[str, Any] = {}

    def wait() -> None:
        try:
            outcome["results"] = parallel(calls)
        except BaseException as error:
            outcome["error"] = error

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    while waiting.is_alive():
        waiting.join(_TICK)
        if client.status == "closed":
            waiting.join(_LAST_WORDS)
            if waiting.is_alive():
                raise CancelledError("its client has closed")
    if "error" in outcome:
        raise outcome["error"]
    return list(outcome["results"])


@dataclass
class _Carried:
    """What a slice of a chain begins with: the contents of a checkpoint but the draws."""

    content: tuple[dict[str, Any], Arrays] | None = None
    state: Any = None  # of the same, for the steps to go on from without another start
    is_due: bool = False  # it is enough to save when the slice ends

    def load(self) -> tuple[dict[str, Any], Arrays] | None:
        """Return manifest and arrays, or None where the chain has not begun."""
        return self.content

    def save(self, manifest: dict[str, Any], arrays: Arrays) -> None:
        """Keep what the next slice begins with."""
        kept = {k: v for k, v in arrays.items() if not k.startswith(("draws/", "stats/"))}
        self.content = {**manifest, "variables": []}, kept

    def remedied(self) -> AbstractContextManager[None]:
        """Add nothing to what is said of it: there is no file to remove."""
        return nullcontext()


class _Away:
    """A chain whose steps are taken elsewhere."""

    def __init__(
        self, plan: ChainPlan, file: ChainFile | None, carried: _Carried | None, board: Board
    ) -> None:
        self.plan, self._file = plan, file
        self.carried = carried or _Carried()
        self.chain: Chain | None = None  # with all its draws
        self.is_over = False
        saved = None if file is None else file.load()
        if saved is not None and file is not None:
            with file.remedied():
                self.chain = _without_state(*saved)
            self.carried.save(*saved)
        if self.carried.content is not None:
            board.resume(plan.index, self.carried.content[0]["n_done"])

    @property
    def seconds(self) -> float:
        """How long the next slice may take."""
        deadline = math.inf if self.plan.deadline is None else self.plan.deadline
        return max(0.0, min(_SLICE, deadline - time.monotonic()))

    def take(self, chain: Chain, carried: _Carried) -> None:
        """Take in what a slice ended with, and save it."""
        if self.chain is not None:
            chain.prepend(self.chain)
        self.chain, self.carried = chain, carried
        self.is_over = chain.n_done == self.plan.n_steps or is_late(self.plan.deadline)
        if self._file is not None and carried.content is not None:
            _save_with_draws(chain, carried.content[1], self._file)


def _joined(before: dict[str, list[Any]], after: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {name: before.get(name, []) + after.get(name, []) for name in before | after}


def _run_away(
    sampler: Sampler[Any, Any],
    options: RunOptions,
    n_jobs: int,
    run_one: Callable[..., Chain],
    plans: list[ChainPlan],
    starts: list[_Carried | None],
    signals: StopSignals,
) -> list[Chain]:
    board = signals.board or Board.in_memory(len(plans))
    away = [
        _Away(plan, options.chain_file(plan.index), carried, board)
        for plan, carried in zip(plans, starts, strict=True)
    ]
    with suppress(StopRequestedError):  # said by whoever called
        while left := [each for each in away if not each.is_over]:
            signals.check()
            calls = [
                delayed(_run_slice)(run_one, each.plan, each.carried, each.seconds, len(plans))
                for each in left
            ]
            found = signals.wait_for(functools.partial(in_processes, n_jobs, calls))
            for each, (chain, carried, rows) in zip(left, found, strict=True):
                each.take(chain, carried)
                board.take_over(each.plan.index, rows)
    chains = []
    for each in away:
        if each.chain is not None:
            each.chain.sampler, each.chain.carried = sampler, each.carried
            _keep_one(each.chain, each.plan)
            chains.append(each.chain)
    return chains


def _run_slice(
    run_one: Callable[..., Chain], plan: ChainPlan, carried: _Carried, seconds: float, n_chains: int
) -> tuple[Chain, _Carried, Board]:
    """Take the steps of a few seconds, at least one."""
    board = Board.in_memory(n_chains)
    board.begin(plan.n_warmup)
    plan = replace(plan, deadline=time.monotonic() + seconds, is_part=True)
    chain = run_one(plan, board, StopSignals(board), carried)
    chain.sampler = None  # holds the data, which the parent has
    return chain, carried, board


def _gather(chains: list[Chain], options: RunOptions, labels: Labels) -> Sampled:
    """Cut the chains to the length of the shortest and stack them."""
    notes: list[str] = []
    if options.run is not None and options.run.is_resumed:
        notes.append(f"resumed from {options.run.path}")
    warm = [chain for chain in chains if chain.n_done > options.n_warmup]
    if not warm:
        notes.append(
            f"stopped by max_seconds {IN_WARMUP}: one draw from each chain, not yet from the "
            "posterior"
        )
    elif len(warm) < len(chains):
        n_cold = len(chains) - len(warm)
        notes.append(f"{n_cold} chain{'s' * (n_cold > 1)} left out: out of time {IN_WARMUP}")
    results = [chain.result() for chain in warm or chains]
    kept = [len(next(iter(variables.values()))) for variables, _ in results]
    n_kept = min(*kept, options.n_draws)
    if warm and n_kept < options.n_draws:
        notes.append(
            f"stopped by max_seconds: {n_kept} of {options.n_draws} draws kept in each chain"
        )
    variables = {
        name: np.stack([result[0][name][:n_kept] for result in results]) for name in results[0][0]
    }
    stats = {
        name: np.stack([result[1][name][:n_kept] for result in results]) for name in results[0][1]
    }
    return Sampled(Draws(variables, stats, labels.labels, labels.monitored), tuple(notes))
