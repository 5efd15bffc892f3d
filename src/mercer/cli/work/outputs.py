"""Files that a command will write: looked at before the work, written whole after it."""

from __future__ import annotations

import os
from pathlib import Path

from mercer.data.wording import printable
from mercer.errors import StorageError

__all__ = ["check_outputs"]


def check_outputs(*paths: Path | None) -> None:
    """Refuse, before any work, a file that could not be written.

    Raises
    ------
    StorageError
        If the folder is missing or cannot be written to, or the path is not a regular file.
    """
    for path in paths:
        if path is None:
            continue
        name = printable(str(path))
        folder = Path(os.path.realpath(path)).parent
        if path.exists() and not path.is_file():
            raise StorageError(f"{name}: cannot be written, it is not a regular file")
        if not folder.is_dir():
            raise StorageError(
                f"{name}: there is no folder {printable(str(folder))}; make it first"
            )
        if not os.access(folder, os.W_OK):
            raise StorageError(f"{name}: no permission to write in {printable(str(folder))}")
