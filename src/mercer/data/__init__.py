"""Tables, their encoding as matrices, rows on disk, and data sets by name.

Names are loaded when they are first used; pandas and pyarrow stay unloaded.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer.data.frame import Column as Column
    from mercer.data.frame import Frame as Frame
    from mercer.data.named import list_named as list_named
    from mercer.data.named import load_named as load_named
    from mercer.data.opening import open_rows as open
    from mercer.data.source import RowSource as RowSource
    from mercer.data.tables import read_frame as read_frame

__all__ = ["Column", "Frame", "RowSource", "list_named", "load_named", "open", "read_frame"]

_HOMES = {
    "Column": ("frame", "Column"),
    "Frame": ("frame", "Frame"),
    "RowSource": ("source", "RowSource"),
    "list_named": ("named", "list_named"),
    "load_named": ("named", "load_named"),
    "open": ("opening", "open_rows"),
    "read_frame": ("tables", "read_frame"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, own = _HOMES[name]
    return getattr(importlib.import_module(f"{__name__}.{home}"), own)


def __dir__() -> list[str]:
    return sorted(__all__)
