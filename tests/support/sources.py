"""Source files of the package, read and parsed once for all tests of their shape."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import mercer

SOURCE = Path(mercer.__file__).parent


@cache
def texts() -> dict[str, str]:
    """Source files by name, such as "gp/laplace.py"."""
    paths = sorted(SOURCE.rglob("*.py"))
    return {path.relative_to(SOURCE).as_posix(): path.read_text() for path in paths}


@cache
def trees() -> dict[str, ast.Module]:
    """The same, parsed."""
    return {name: ast.parse(text) for name, text in texts().items()}
