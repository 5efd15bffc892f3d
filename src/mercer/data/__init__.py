"""Tables, their encoding as matrices, rows on disk, and data sets by name.

pandas and pyarrow stay unloaded.
"""

from __future__ import annotations

from mercer.data.frame import Column, Frame
from mercer.data.named import list_named, load_named
from mercer.data.opening import open_rows as open
from mercer.data.source import RowSource
from mercer.data.tables import read_frame

__all__ = ["Column", "Frame", "RowSource", "list_named", "load_named", "open", "read_frame"]
