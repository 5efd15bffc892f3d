"""How to do it again: the command as typed, the seed, the versions."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import shlex

import click

from mercer.cli.work.table import TrainingTable
from mercer.posterior.evaluation import Provenance

__all__ = ["make_provenance", "versions"]

_PACKAGES = ("mercer", "numpy", "scipy", "scikit-learn", "numba")


def versions() -> tuple[tuple[str, str], ...]:
    """Return the versions that the numbers depend on."""
    packages = [(name, importlib.metadata.version(name)) for name in _PACKAGES]
    return (
        packages[0],
        ("python", platform.python_version()),
        *packages[1:],
        ("platform", platform.platform(terse=True) + " " + platform.machine()),
    )


def make_provenance(
    table: TrainingTable,
    *,
    target: str,
    n_rows: int,
    seed: int,
    seconds: float,
    notes: tuple[str, ...],
) -> Provenance:
    """Put together what a model file keeps of its making."""
    typed = click.get_current_context().find_root().obj or ()
    return Provenance(
        source=table.source,
        target=target,
        n_rows=n_rows,
        n_inputs=table.X.shape[1],
        input_names=table.encoder.feature_names,
        notes=notes,
        command=shlex.join(["mercer", *typed]),
        seed=seed,
        seconds=seconds,
        created=datetime.date.today().isoformat(),
        versions=versions(),
    )
