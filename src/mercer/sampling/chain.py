"""One chain: warm-up, kept draws, checkpoints, and stopping between or within steps."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import ModelFileError
from mercer.random import generator_from_json, generator_to_json
from mercer.sampling.board import Board
from mercer.sampling.checkpoint import ChainFile
from mercer.sampling.codec import pack, unpack
from mercer.sampling.sampler import Adaptation, Sampler
from mercer.sampling.signals import StopRequestedError, StopSignals

__all__ = ["Chain", "ChainPlan", "finished_chain", "run_chain"]

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

    def result(self) -> tuple[Arrays, Arrays]:
        """Stack the kept draws and their statistics: first axis the draws."""
        variables = {name: np.stack(values) for name, values in self.variables.items()}
        return variables, {name: np.array(self.stats[name]) for name in sorted(self.stats)}

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
    file: ChainFile | None,
) -> Chain:
    """Run one chain to its end, its deadline or a stop; resume it if its file says so.

    Parameters
    ----------
    rngs : pair of Generator
        For the start and for the steps.
    """
    start, steps = rngs
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
    info = None
    while chain.n_done < plan.n_steps and not _is_time_up(plan, board, info is not None):
        before = chain.rng.bit_generator.state
        try:
            with signals.interruptible():
                outcome = chain.sampler.step(chain.rng, chain.state)
        except StopRequestedError:
            chain.rng.bit_generator.state = before
            break
        info = outcome[1]
        _advance(chain, adaptation, plan, *outcome)
        board.report(plan.index, chain.n_done, info)
        if file is not None and file.is_due:
            _save(chain, adaptation, file)
    if file is not None and chain.n_done > n_start:
        _save(chain, adaptation, file)
    if not chain.variables and info is not None and not plan.is_last_kept:
        chain.keep(info)  # out of time in warm-up: better than nothing, and said by the driver
    return chain


def _is_time_up(plan: ChainPlan, board: Board, has_stepped: bool) -> bool:
    """Whether to stop: asked to, or past the deadline with at least one step taken now."""
    is_late = plan.deadline is not None and time.monotonic() > plan.deadline
    return board.is_stopping or (is_late and has_stepped)


def _advance(
    chain: Chain, adaptation: Adaptation | None, plan: ChainPlan, state: Any, info: Any
) -> None:
    """Take in the outcome of a step: adapt in warm-up, keep a draw after it."""
    chain.state = state
    chain.n_done += 1
    n_kept_steps = chain.n_done - plan.n_warmup
    if n_kept_steps <= 0 and adaptation is not None:
        chain.learned, chain.sampler = adaptation.update(chain.learned, chain.sampler, state, info)
        if n_kept_steps == 0:
            chain.sampler = adaptation.finish(chain.learned, chain.sampler)
    if n_kept_steps > 0 and n_kept_steps % plan.thin == 0 and not plan.is_last_kept:
        chain.keep(info)


def _save(chain: Chain, adaptation: Adaptation | None, file: ChainFile) -> None:
    variables, stats = chain.result() if chain.variables else ({}, {})
    arrays = pack(chain.state, "state")
    if adaptation is not None:
        arrays |= pack(chain.learned, "learned")
        arrays |= pack(adaptation.tuning(chain.sampler), "tuning")
    arrays |= {f"draws/{name}": value for name, value in variables.items()}
    arrays |= {f"stats/{name}": value for name, value in stats.items()}
    manifest = {
        "n_done": chain.n_done,
        "variables": list(variables),
        "rng": generator_to_json(chain.rng),
    }
    file.save(manifest, arrays)


def _restore(
    chain: Chain, adaptation: Adaptation | None, manifest: dict[str, Any], arrays: Arrays
) -> None:
    """Put a chain where its checkpoint left it."""
    chain.state = unpack(chain.state, arrays, "state")
    if adaptation is not None:
        chain.learned = unpack(chain.learned, arrays, "learned")
        tuning = unpack(adaptation.tuning(chain.sampler), arrays, "tuning")
        chain.sampler = adaptation.with_tuning(chain.sampler, tuning)
    try:
        chain.n_done = int(manifest["n_done"])
        chain.rng = generator_from_json(manifest["rng"])
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError("inconsistent checkpoint: no state of the random numbers") from error
    _restore_draws(chain, manifest, arrays)


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
    """Read a chain whose checkpoint says that all its steps are done; None if it is not."""
    saved = file.load()
    if saved is None or saved[0].get("n_done") != plan.n_steps:
        return None
    chain = Chain(None, None, np.random.default_rng(0), None, plan.n_steps, {}, {})
    with file.remedied():
        _restore_draws(chain, *saved)
    return chain
