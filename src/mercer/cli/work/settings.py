"""``--set NAME=VALUE``: from words to arguments of an estimator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mercer.data.wording import nearest, quoted
from mercer.errors import UsageError

__all__ = ["always", "make_estimator", "parse_settings", "parse_value"]

_WORDS: dict[str, Any] = {"true": True, "false": False, "none": None}
_OWN_OPTIONS = {"random_state": "--seed", "checkpoint": "--checkpoint"}


def parse_value(text: str) -> Any:
    """Read a whole number, a number, numbers with commas, true, false, none, or else text.

    Examples
    --------
    >>> [parse_value(text) for text in ("3", "0.1", "true", "none", "nuts", "1,9")]
    [3, 0.1, True, None, 'nuts', (1.0, 9.0)]
    """
    for read in (int, float, _numbers):
        try:
            return read(text)
        except ValueError:
            continue
    return _WORDS.get(text.lower(), text)


def _numbers(text: str) -> tuple[float, ...]:
    parts = text.split(",")
    if len(parts) < 2:
        raise ValueError
    return tuple(float(part) for part in parts)


def parse_settings(texts: Iterable[str]) -> dict[str, Any]:
    """Read NAME=VALUE pairs; the last of a name counts.

    Raises
    ------
    UsageError
        If one is not of this form.
    """
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set takes NAME=VALUE, such as n_draws=500; got {quoted(text)}")
        settings[name.strip()] = parse_value(value.strip())
    return settings


def always(seed: int) -> dict[str, Any]:
    """Arguments that the command line gives to every model, unless ``--set`` does."""
    return {"random_state": seed, "standardize": "auto"}


def make_estimator(estimator_class: Any, settings: dict[str, Any], common: dict[str, Any]) -> Any:
    """Construct an unfitted estimator and have it check its arguments.

    Parameters
    ----------
    estimator_class : class
    settings : dict
        From ``--set``; goes before ``common``.
    common : dict
        What the command line decides; what the model does not know is left out.

    Raises
    ------
    UsageError
        If an argument is unknown (the nearest is named), has an option of its own, or is out of
        its range.
    """
    estimator = estimator_class()
    known = estimator.get_params()
    for name in settings:
        if name in _OWN_OPTIONS:
            raise UsageError(f"--set {name}: use {_OWN_OPTIONS[name]}")
        if name not in known:
            hint = nearest(name, known) or f"; there is: {', '.join(known)}"
            raise UsageError(
                f"--set {quoted(name)}: {estimator_class.__name__} has no such argument{hint}"
            )
    taken = {name: value for name, value in common.items() if name in known}
    estimator.set_params(**{**taken, **settings})
    try:
        estimator._check_arguments()
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from error
    return estimator
