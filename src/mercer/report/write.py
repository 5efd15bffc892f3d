"""Writing a report: the whole file or none."""

from __future__ import annotations

import os

from mercer.posterior.atomic import write_atomically

__all__ = ["write_report"]


def write_report(path: str | os.PathLike[str], html: str) -> None:
    """Write a rendered report.

    Parameters
    ----------
    path : str or path
        An existing file is replaced, as a whole.
    html : str
        From `mercer.report.html.render`.

    Raises
    ------
    StorageError
        If the file cannot be written; an existing one is then as it was.
    """
    # "replace": a lone surrogate from an undecodable file name becomes a question mark.
    write_atomically(path, (html.encode("utf-8", errors="replace"),))
