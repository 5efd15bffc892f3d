"""Warnings of the package, said when they come: a stream may never end."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mercer.errors import MercerWarning

__all__ = ["warnings_at_once"]


@contextmanager
def warnings_at_once(tell: Callable[[str, str], None]) -> Iterator[None]:
    """Say each warning of the package once; leave out those of others.

    Parameters
    ----------
    tell : callable
        Takes a label and words.
    """
    said: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: object) -> None:
        words = str(message)
        if issubclass(category, MercerWarning) and words not in said:
            said.add(words)
            tell("warning", words)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show  # type: ignore[assignment]
        yield
