"""Writing a file whole or not at all, from bytes that are at hand."""

from __future__ import annotations

import os
from collections.abc import Iterable

from mercer.atomic import replacing

__all__ = ["write_atomically"]


def write_atomically(path: str | os.PathLike[str], parts: Iterable[bytes]) -> None:
    """Put bytes into a file, or leave the old one as it is.

    Parameters
    ----------
    path : str or path
        The file; a symbolic link is followed, the permissions of an existing file are kept.
    parts : iterable of bytes
        Written one after the other.

    Raises
    ------
    StorageError
        As `mercer.atomic.replacing`.
    """
    with replacing(path) as file:
        for part in parts:
            file.write(part)
