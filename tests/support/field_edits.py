"""Model files in which one field was edited and the sums were mended: every field, every edit."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

Edited = tuple[str, dict[str, Any], dict[str, np.ndarray]]

_HUGE = 1e300
_DELETE = object()
_JSON_EDITS = {
    "deleted": lambda _: _DELETE,
    "null": lambda _: None,
    "text": lambda _: "x",
    "zero": lambda _: 0,
    "negative": lambda _: -1,
    "fraction": lambda _: 0.5,
    "huge": lambda _: _HUGE,
    "large count": lambda _: 2**62,
    "empty list": lambda _: [],
    "empty object": lambda _: {},
    "nested": lambda value: [value],
    "flipped": lambda value: not value,
    "reversed": lambda value: value[::-1] if isinstance(value, list | str) else value,
    "twice": lambda value: value * 2 if isinstance(value, list) else value,
}
_ARRAY_EDITS = {
    "deleted": lambda _: _DELETE,
    "half as wide": lambda a: _narrowed(a),
    "another kind": lambda a: a.astype(np.int64 if a.dtype.kind == "f" else np.float64),
    "shorter": lambda a: a[:-1],
    "narrower": lambda a: a[..., :-1],
    "one more axis": lambda a: a[np.newaxis],
    "flat": np.ravel,
    "empty": lambda a: a[:0],
    "nan": lambda a: _with(a, np.nan),
    "inf": lambda a: _with(a, np.inf),
    "zero": lambda a: a * 0,
    "one zero": lambda a: _with(a, 0),
    "negative": lambda a: _with(a, -1),
    "huge": lambda a: _with(a, _HUGE if a.dtype.kind == "f" else 2**62),
    "reversed": lambda a: a[::-1],
}


def edits_of(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Iterator[Edited]:
    """Every edit of every field of the manifest and of every array, each named."""
    for path in _paths(manifest):
        for name, edit in _JSON_EDITS.items():
            changed = copy.copy(manifest)
            if _put(changed, path, edit):
                yield f"{'/'.join(map(str, path))}: {name}", changed, arrays
    for array, values in arrays.items():
        for name, edit in _ARRAY_EDITS.items():
            if values.ndim == 0 and name in ("shorter", "narrower", "empty", "reversed"):
                continue
            with np.errstate(invalid="ignore"):
                new = edit(values)
            if new is _DELETE:
                yield f"{array}: {name}", manifest, {k: v for k, v in arrays.items() if k != array}
            elif new is not None:
                yield f"{array}: {name}", manifest, {**arrays, array: np.ascontiguousarray(new)}


def _narrowed(a: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # what does not fit becomes infinite: an edit as good as any
        return a.astype(np.float32 if a.dtype.kind == "f" else np.int32)


def _with(values: np.ndarray, new: float) -> np.ndarray | None:
    """The first entry is another one; None where the type cannot hold it or nothing changes."""
    if not values.size or (values.dtype.kind != "f" and not np.isfinite(new)):
        return None
    if values.dtype.kind == "b" and new not in (0, 1):
        return None
    if values.dtype.kind in "iu":
        new = min(int(new), np.iinfo(values.dtype).max)
    changed = values.copy()
    changed.flat[0] = new
    return changed


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where each entry stands: all of an object, the first and the last of a list."""
    if path:
        yield path
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _paths(each, (*path, name))
    elif isinstance(value, list) and value:
        for position in sorted({0, len(value) - 1}):
            yield from _paths(value[position], (*path, position))


def _put(manifest: dict[str, Any], path: tuple[Any, ...], edit: Any) -> bool:
    """Edit one entry of a manifest, all on the way to it copied; whether that changed anything."""
    holder: Any = manifest
    for step in path[:-1]:
        holder[step] = copy.copy(holder[step])
        holder = holder[step]
    old = holder[path[-1]]
    new = edit(old)
    if new is _DELETE:
        del holder[path[-1]]
        return True
    holder[path[-1]] = new
    return type(new) is not type(old) or new != old
