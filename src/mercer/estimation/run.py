"""From an estimator's common arguments to a run of the driver."""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mercer.errors import UsageError
from mercer.estimation.options import check_count, check_positive
from mercer.random import entropy_of
from mercer.sampling.checkpoint import RunIdentity, open_run
from mercer.sampling.driver import RunOptions

__all__ = ["CommonArguments", "mercer_version", "run_options"]


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
        if self.progress not in ("auto", True, False):
            raise UsageError(f"progress must be 'auto', True or False; got {self.progress!r}")


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
    """
    entropy = entropy_of(common.random_state)
    run = None
    if common.checkpoint is not None:
        seed = None if common.random_state is None else str(entropy)
        identity = RunIdentity(data_digest, {**options, "seed": seed}, mercer_version())
        run = open_run(Path(common.checkpoint), identity, entropy)
        entropy = run.entropy
    left = None
    if common.max_seconds is not None:
        left = max(0.0, common.max_seconds - (time.monotonic() - started))
    return RunOptions(
        n_draws=common.n_draws,
        n_warmup=common.n_warmup,
        n_chains=common.n_chains,
        thin=common.thin,
        entropy=entropy,
        n_jobs=common.n_jobs,
        progress=common.progress,
        max_seconds=left,
        run=run,
    )
