"""The failures of mercer, each with its own type; the command line turns them into exit codes."""

from __future__ import annotations

__all__ = [
    "DataError",
    "MercerError",
    "MercerWarning",
    "ModelFileError",
    "NumericalError",
    "StorageError",
    "UsageError",
]


class MercerError(Exception):
    """Base of every error that mercer raises on purpose."""

    exit_code = 1


class UsageError(MercerError, ValueError):
    """An option, an argument or their combination cannot be used (exit code 2)."""

    exit_code = 2


class DataError(MercerError, ValueError):
    """The data cannot be used as they are: says file, row, column and remedy (exit code 3)."""

    exit_code = 3


class ModelFileError(MercerError, ValueError):
    """A model or checkpoint file is damaged, foreign, too new, or of another run (exit code 4)."""

    exit_code = 4


class NumericalError(MercerError, ArithmeticError):
    """A factorisation or an iteration failed, or a strict check did (exit code 5)."""

    exit_code = 5


class StorageError(MercerError, OSError):
    """A file or folder cannot be read or written (exit code 6)."""

    exit_code = 6


class MercerWarning(UserWarning):
    """Base of every warning that mercer issues."""
