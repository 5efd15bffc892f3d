"""How to do it again: the command as typed, the seed, the versions."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import shlex

import click

from mercer.cli.work.fitting import Fitted, Plan
from mercer.cli.work.table import TrainingTable
from mercer.posterior.evaluation import Provenance

__all__ = ["make_provenance", "provenance_of", "versions"]

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


def provenance_of(plan: Plan, fitted: Fitted, target: str) -> Provenance:
    """Say of a model that a plan was fitted to where it came from."""
    # A run that was resumed gives the same file as one that was not.
    notes = [note for note in fitted.estimator.notes_ if not note.startswith("resumed")]
    return make_provenance(
        plan.table,
        target=target,
        n_rows=fitted.n_rows,
        seed=plan.seed,
        seconds=fitted.seconds,
        notes=(plan.table.reason, *plan.table.notes, *notes),
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
