"""Results of the parts of a long reproduction, kept in a file each: a stopped run goes on there."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mercer.posterior.container import mercer_version, write_atomically
from reproduce.papers.reproduction import Settings

__all__ = ["kept", "parts_folder"]


def parts_folder(settings: Settings, name: str) -> Path | None:
    """Where the parts of a reproduction lie: beside its page; None where nothing is kept."""
    if settings.folder is None:
        return None
    return settings.folder / f"{name}{'-quick' if settings.is_quick else ''}-parts"


def kept(
    folder: Path | None, name: str, stamp: Mapping[str, Any], run: Callable[[], Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what an earlier run found, or run, and keep what is found.

    Parameters
    ----------
    folder : Path or None
        None keeps nothing.
    name : str
        Of the part: its file is NAME.json.
    stamp : mapping
        What a file must agree in to be taken, beside the version of mercer.
    run : callable
        Returns what JSON can hold.

    Returns
    -------
    dict

    Raises
    ------
    StorageError
        If the file cannot be written.
    """
    if folder is None:
        return dict(run())
    path = folder / f"{name}.json"
    full = {**stamp, "mercer": mercer_version()}
    found = _read(path, full)
    if found is None:
        found = dict(run())
        path.parent.mkdir(parents=True, exist_ok=True)
        content = json.dumps({"of": full, "found": found}, indent=1)
        write_atomically(path, [content.encode()])
    return found


def _read(path: Path, stamp: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a file holds, or None if it is missing, damaged or of something else."""
    try:
        content = json.loads(path.read_bytes())
        return dict(content["found"]) if content["of"] == stamp else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
