"""What a file looked like when it was opened, to notice that it changed since."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from mercer.data.files import reading
from mercer.data.wording import printable
from mercer.errors import DataError

__all__ = ["Stamp", "changed"]


@dataclass(frozen=True)
class Stamp:
    """Size and time of a file.

    Parameters
    ----------
    name : str
        The file, as the user named it.
    path : str
        The same, absolute: processes in other folders find it too.
    size : int
        In bytes.
    mtime : int
        Time of the last change of the contents, in nanoseconds.
    """

    name: str
    path: str
    size: int
    mtime: int

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Stamp:
        """Look at a file.

        Raises
        ------
        StorageError
            It is not there, or may not be looked at.
        """
        with reading(Path(path)):
            status = os.stat(path)
        name = os.fspath(path)
        return cls(name, os.path.abspath(path), status.st_size, status.st_mtime_ns)

    def check(self) -> None:
        """Refuse a file that is not what it was.

        Raises
        ------
        DataError
            Size or time differ.
        StorageError
            The file is gone.
        """
        now = Stamp.of(self.path)
        if (now.size, now.mtime) != (self.size, self.mtime):
            raise changed(self.name)


def changed(name: str) -> DataError:
    """Make the error for a file, or an array, whose contents changed."""
    return DataError(
        f"{printable(name)}: changed while it was being read; start again, and leave it alone "
        "until the end"
    )
