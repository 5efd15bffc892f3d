"""JSON that may come from a stranger: finite, shallow, plain, without repeated keys."""

from __future__ import annotations

import json
import math
from typing import Any

__all__ = ["json_fault", "load_json"]

MAX_DEPTH = 32  # of lists and objects
MAX_INT = 2**63  # integers are below it in size


def load_json(text: str | bytes, what: str) -> dict[str, Any]:
    """Parse a JSON object.

    Parameters
    ----------
    text : str or bytes
        UTF-8 if bytes. Its length must have been limited by the caller.
    what : str
        The name of this text in messages.

    Returns
    -------
    dict

    Raises
    ------
    ValueError
        When it is not JSON, not an object, repeats a key, or has a fault (`json_fault`).
    """
    try:
        decoded = text if isinstance(text, str) else text.decode()
        value = json.loads(decoded, object_pairs_hook=_unique_keys)
    except RecursionError:
        raise ValueError(f"the {what} is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"the {what} is not JSON ({type(error).__name__})") from None
    fault = json_fault(value)
    if fault is None and not isinstance(value, dict):
        fault = "not an object"
    if fault is not None:
        raise ValueError(f"the {what} is refused: {fault}")
    return dict(value)


def json_fault(value: Any, depth: int = 1) -> str | None:
    """Say why a value may not stand in a manifest.

    Parameters
    ----------
    value : object
        Allowed are None, bool, int below 2^63 in size, finite float, valid Unicode text, and lists,
        tuples and dicts of these, with text for keys, at most 32 deep.
    depth : int, default 1
        Depth at which the value stands.

    Returns
    -------
    str or None
        None when there is nothing to say.
    """
    if not isinstance(value, dict | list | tuple):
        return _scalar_fault(value)
    if depth > MAX_DEPTH:
        return f"nested more than {MAX_DEPTH} deep"
    if isinstance(value, dict):
        for key in value:
            if type(key) is not str:
                return "a key is not text"
            if (fault := _scalar_fault(key)) is not None:
                return fault
    for item in value.values() if isinstance(value, dict) else value:
        if (fault := json_fault(item, depth + 1)) is not None:
            return fault
    return None


def _scalar_fault(item: Any) -> str | None:
    """Say why a single value may not stand in a manifest."""
    if item is None or type(item) is bool:
        return None
    if type(item) is int:
        return None if abs(item) < MAX_INT else "a whole number is too large"
    if type(item) is float:
        return None if math.isfinite(item) else "a number is not finite"
    if type(item) is str:
        return None if _is_unicode(item) else "a text is not valid Unicode"
    return f"it holds a {type(item).__name__}"


def _is_unicode(text: str) -> bool:
    """Whether a text can be encoded (a lone surrogate cannot)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object, refusing a key that comes twice."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key comes twice")
    return result
