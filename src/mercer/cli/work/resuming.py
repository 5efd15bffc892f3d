"""``--checkpoint DIR``: the identity of a command, so that only the same one goes on from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mercer.atomic import locked
from mercer.cli.work.table import TrainingTable
from mercer.data.wording import printable
from mercer.errors import ModelFileError, StorageError
from mercer.estimation.run import mercer_version
from mercer.posterior.atomic import write_atomically
from mercer.posterior.manifest import load_json
from mercer.sampling.checkpoint import digest_arrays

__all__ = ["claim_folder", "data_digest", "kept_to_this"]

_LIMIT = 2**20  # bytes of run.json


@contextmanager
def kept_to_this(folder: Path | None) -> Iterator[None]:
    """Keep a checkpoint folder, if there is one, to this command.

    Raises
    ------
    StorageError
        If another command has it in hand, or it cannot be made.
    """
    if folder is None:
        yield
        return
    name, is_new = printable(str(folder)), not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{name}: cannot make the folder: {error.strerror}") from error
    try:
        with locked(folder):
            yield
    finally:
        if is_new:
            with suppress(OSError):  # something was kept in it
                folder.rmdir()


def data_digest(table: TrainingTable) -> str:
    """SHA-256 of what a model sees of a table: names, inputs, classes and targets."""
    import numpy as np

    words = json.dumps([table.encoder.to_dict(), [str(label) for label in table.classes]])
    return digest_arrays(np.frombuffer(words.encode(), dtype=np.uint8), table.X, table.y)


def claim_folder(folder: Path, table: TrainingTable, options: dict[str, Any]) -> bool:
    """Write the identity of a command into a folder, or check the one that is there.

    Returns
    -------
    bool
        Whether the folder was there already, so that the run goes on.

    Raises
    ------
    ModelFileError
        If it belongs to other data, other options or another version; the difference is named.
    StorageError
        If it cannot be read or written.
    """
    mine = {"mercer": mercer_version(), "data": data_digest(table), "options": options}
    path = folder / "run.json"
    name = printable(str(path))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            write_atomically(path, (json.dumps(mine, indent=2).encode(),))
            return False
        with open(path, "rb") as stream:
            found = load_json(stream.read(_LIMIT), "run file")
    except ValueError as error:
        raise ModelFileError(f"{name}: {error}; remove the folder to begin again") from None
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(f"{name}: {error.strerror}") from error
    difference = _difference(found, json.loads(json.dumps(mine)))
    if difference:
        raise ModelFileError(
            f"{name}: begun with {difference}; use another --checkpoint folder, or remove this one"
        )
    return True


def _difference(found: dict[str, Any], mine: dict[str, Any]) -> str:
    """Name the first difference: "seed 1, and this is seed 2"."""
    if found.get("mercer") != mine["mercer"]:
        return f"mercer {found.get('mercer')}, and this is {mine['mercer']}"
    if found.get("data") != mine["data"]:
        then, now = str(found.get("data"))[:12], mine["data"][:12]
        return f"other data (SHA-256 {then}..., now {now}...)"
    before = found.get("options")
    before = before if isinstance(before, dict) else {}
    for key in sorted({*before, *mine["options"]}):
        old, new = before.get(key), mine["options"].get(key)
        if old != new:
            return f"{key} {old!r}, and this is {new!r}"
    return ""
