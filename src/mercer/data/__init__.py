"""Tables, their encoding as matrices, and data sets by name; pandas and pyarrow stay unloaded."""

from __future__ import annotations

from mercer.data.frame import Column, Frame
from mercer.data.named import list_named, load_named
from mercer.data.tables import read_frame

__all__ = ["Column", "Frame", "list_named", "load_named", "read_frame"]
