"""The failures of mercer, each with its own type; the command line turns them into exit codes."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

__all__ = [
    "INSTALL",
    "ClusterError",
    "ConvergenceWarning",
    "DataError",
    "MercerError",
    "MercerWarning",
    "ModelFileError",
    "NumericalError",
    "RowsError",
    "StorageError",
    "UsageError",
    "rows_without_names",
    "warn_user",
]

#: How an extra is installed beside a mercer that is there: a fresh environment would ask an index.
INSTALL = "pip install 'mercer[{}]'"


class MercerError(Exception):
    """Base of every error that mercer raises on purpose."""

    exit_code = 1


class UsageError(MercerError, ValueError):
    """An option, an argument or their combination cannot be used (exit code 2)."""

    exit_code = 2


class DataError(MercerError, ValueError):
    """The data cannot be used as they are: says file, row, column and remedy (exit code 3)."""

    exit_code = 3


class RowsError(DataError):
    """Some rows of an array cannot be used as they are.

    Whoever knows where the rows come from turns the positions into names: see
    `mercer.data.row_names.RowNames`.

    Attributes
    ----------
    rows : tuple of int
        Positions in the array, the first is 0.
    words : str
        What is wrong with them: the message without its beginning.
    """

    def __init__(self, rows: Sequence[int], words: str) -> None:
        self.rows, self.words = tuple(int(row) for row in rows), words
        super().__init__(self.rows, words)  # so that it is pickled whole

    def __str__(self) -> str:
        noun = "row" if len(self.rows) == 1 else "rows"
        listed = " and ".join(map(str, self.rows))
        return f"{noun} {listed} of X (positions, the first is 0){self.words}"


class ModelFileError(MercerError, ValueError):
    """A model or checkpoint file is damaged, foreign, too new, or of another run (exit code 4)."""

    exit_code = 4


class NumericalError(MercerError, ArithmeticError):
    """A factorisation or an iteration failed, or a strict check did (exit code 5)."""

    exit_code = 5


class StorageError(MercerError, OSError):
    """A file or folder cannot be read or written (exit code 6)."""

    exit_code = 6


class ClusterError(StorageError):
    """Workers that hold or read the rows are lost, or are not what they should be (exit code 6)."""


class MercerWarning(UserWarning):
    """Base of every warning that mercer issues."""


class ConvergenceWarning(MercerWarning):
    """The draws of a fit cannot be trusted yet: names the worst quantity and the remedy.

    ``fit`` issues at most one; all that was found is in ``diagnostics_.warnings``. A fit whose
    chains are in order issues it with a probability of at most 1 %.

    Examples
    --------
    To make it an error, or to silence it:

    >>> import warnings, mercer
    >>> warnings.simplefilter("error", mercer.ConvergenceWarning)  # doctest: +SKIP
    """


class DataWarning(MercerWarning):
    """Something in new rows was not there in training, and what it is taken for."""


def warn_user(message: str, category: type[MercerWarning]) -> None:
    """Warn at the line outside mercer that led here, however deep this is called."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and _is_inside(str(frame.f_globals.get("__name__", ""))):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_inside(module: str) -> bool:
    """Whether a module is mercer's, or what wraps a decorated ``fit`` or ``transform``."""
    return module.partition(".")[0] in ("mercer", "contextlib", "sklearn")


@contextmanager
def rows_without_names() -> Iterator[None]:
    """Keep scikit-learn quiet about a model of a frame that is given rows without names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield
