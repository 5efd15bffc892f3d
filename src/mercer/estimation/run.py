"""From an estimator's common arguments to a run of the driver."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mercer.errors import UsageError
from mercer.estimation.options import check_choice, check_count, check_positive
from mercer.random import entropy_of
from mercer.sampling.checkpoint import RunIdentity, open_run
from mercer.sampling.driver import RunOptions, SamplingStoppedError
from mercer.sampling.signals import StopRequestedError, StopSignals

__all__ = ["CommonArguments", "fitting", "mercer_version", "run_options"]

# What the ``fit`` of this thread has in hand.
_IN_HAND: ContextVar[ExitStack | None] = ContextVar("in_hand", default=None)


@contextmanager
def fitting() -> Iterator[None]:
    """Decorate ``fit``: signals stop it where that is safe, and its checkpoint is locked.

    Both until it returns or fails. What signals did before is done again then; in other threads
    than the main one they are left alone.
    """
    with ExitStack() as held:
        before = _IN_HAND.set(held)
        try:
            with StopSignals(manner="patient"):
                yield
        except SamplingStoppedError:
            raise
        except StopRequestedError as error:
            raise SamplingStoppedError(error.signal_number, None) from error
        finally:
            _IN_HAND.reset(before)


@dataclass(frozen=True)
class CommonArguments:
    """The arguments that mean the same for every estimator; see `mercer.gp.GPClassifier`."""

    n_draws: int
    n_warmup: int
    n_chains: int
    thin: int
    random_state: Any
    n_jobs: int | None
    progress: bool | str
    checkpoint: Any
    max_seconds: float | None

    def check(self) -> None:
        """Raise `UsageError` for the first argument out of its range."""
        check_count("n_draws", self.n_draws, 1)
        check_count("n_warmup", self.n_warmup, 0)
        check_count("n_chains", self.n_chains, 1)
        check_count("thin", self.thin, 1)
        if self.max_seconds is not None:
            check_positive("max_seconds", self.max_seconds)
        check_choice("progress", self.progress, ("auto", True, False))
        if self.n_jobs is not None and (check_count("n_jobs", self.n_jobs, -(2**31)) == 0):
            raise UsageError("n_jobs must be None or a whole number other than 0; got 0")
        if not isinstance(self.checkpoint, (str, os.PathLike, type(None))):
            raise UsageError(f"checkpoint must be a path or None; got {self.checkpoint!r}")


def mercer_version() -> str:
    """Version of the installed package."""
    return importlib.metadata.version("mercer")


def run_options(
    common: CommonArguments, data_digest: str, options: Mapping[str, Any], started: float
) -> RunOptions:
    """Fix the entropy of a run, or take it from the checkpoint that the run continues.

    Parameters
    ----------
    common : CommonArguments
    data_digest : str
        `digest_arrays` of all training data.
    options : mapping
        Every option that the draws depend on, as JSON can hold it.
    started : float
        `time.monotonic` when ``fit`` began: ``max_seconds`` counts from there.

    Raises
    ------
    ModelFileError
        If the checkpoint is damaged or of another version.
    StorageError
        If it cannot be written, or another fit has it in hand.
    """
    entropy = entropy_of(common.random_state)
    run = None
    if common.checkpoint is not None:
        seed = None if common.random_state is None else str(entropy)
        identity = RunIdentity(data_digest, {**options, "seed": seed}, mercer_version())
        run = open_run(Path(common.checkpoint), identity, entropy, _IN_HAND.get())
        entropy = run.entropy
    deadline = None if common.max_seconds is None else started + common.max_seconds
    return RunOptions(
        n_draws=common.n_draws,
        n_warmup=common.n_warmup,
        n_chains=common.n_chains,
        thin=common.thin,
        entropy=entropy,
        n_jobs=common.n_jobs,
        progress=common.progress,
        deadline=deadline,
        run=run,
    )
