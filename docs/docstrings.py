"""Docstrings as they are once the package is imported, for the reference.

An estimator takes over what its bases describe: `mercer.estimation.run.AnyEstimator`.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
from typing import Any

import griffe

from mercer.estimation.run import AnyEstimator


class CompletedDocstrings(griffe.Extension):
    """Give estimators the docstrings that they have completed."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Replace the docstrings of an estimator and of its methods."""
        if cls.docstring is None or not cls.bases:
            return
        found = None
        with contextlib.suppress(ImportError):  # of what is not installed
            found = getattr(importlib.import_module(cls.module.path), cls.name, None)
        if inspect.isclass(found) and issubclass(found, AnyEstimator):
            for name, described in {"": cls, **cls.functions}.items():
                own = getattr(found, name) if name else found
                if described.docstring is not None:
                    described.docstring.value = inspect.cleandoc(own.__doc__ or "")
