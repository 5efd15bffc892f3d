"""Runs of the driver for tests: options, checkpoint folders and digests of results."""

from __future__ import annotations

import time
from pathlib import Path

from mercer.posterior.draws import Draws
from mercer.sampling.checkpoint import RunFolder, RunIdentity, digest_arrays, open_run
from mercer.sampling.driver import RunOptions

ENTROPY = 1234


def identity(version: str = "1.0", **options) -> RunIdentity:
    """Return an identity for toy data."""
    return RunIdentity("d" * 64, {"n": 1, **options}, version)


def open_folder(folder: Path) -> RunFolder:
    """Open the checkpoint folder of the toy run."""
    return open_run(folder, identity(), ENTROPY)


def options(n_draws=60, n_warmup=30, n_chains=2, thin=1, seconds=None, **rest) -> RunOptions:
    """Return quiet options of a short run with a fixed seed, and so many seconds from now."""
    deadline = None if seconds is None else time.monotonic() + seconds
    return RunOptions(
        n_draws, n_warmup, n_chains, thin, ENTROPY, progress=False, deadline=deadline, **rest
    )


def digest(draws: Draws) -> str:
    """SHA-256 of all variables and statistics, names included."""
    parts = {**draws.variables, **{f"stats/{k}": v for k, v in draws.stats.items()}}
    names = sorted(parts)
    return digest_arrays(*(parts[name] for name in names)) + ",".join(names)
