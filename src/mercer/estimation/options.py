"""Checks of constructor arguments, made at ``fit``; messages name the parameter and its range."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Sequence

from mercer.errors import UsageError

__all__ = ["check_choice", "check_count", "check_positive", "nearest_hint"]


def check_count(name: str, value: object, minimum: int) -> int:
    """Return a whole number of at least ``minimum``, or raise `UsageError`."""
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_whole or int(value) < minimum:  # type: ignore[call-overload]
        raise UsageError(f"{name} must be a whole number of at least {minimum}; got {value!r}")
    return int(value)  # type: ignore[call-overload, no-any-return]


def check_positive(name: str, value: object) -> float:
    """Return a finite number above zero, or raise `UsageError`."""
    is_real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_real or not (math.isfinite(float(value)) and float(value) > 0.0):  # type: ignore[arg-type]
        raise UsageError(f"{name} must be a number above 0; got {value!r}")
    return float(value)  # type: ignore[arg-type]


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Raise `UsageError` unless ``value`` is one of the choices."""
    texts = [choice for choice in choices if isinstance(choice, str)]
    is_known = value in texts if isinstance(value, str) else any(value is c for c in choices)
    if not is_known:
        listed = ", ".join(repr(choice) for choice in choices)
        hint = nearest_hint(str(value), [str(choice) for choice in choices])
        raise UsageError(f"{name} must be one of {listed}; got {value!r}{hint}")


def nearest_hint(word: str, known: Sequence[str]) -> str:
    """Return "; did you mean 'x'?" for a misspelt word, or an empty string."""
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
