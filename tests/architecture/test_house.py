"""How much a person must hold in mind: files, lines, imports.

``python tests/architecture/test_house.py`` prints the figures of the installed package; the limits
below are where it stands, so that it does not grow back unnoticed.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import mercer

SOURCE = Path(mercer.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))


def name_of(path: Path) -> str:
    """Dotted name of a module of the package."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package, parsed."""
    return {name_of(path): ast.parse(path.read_text()) for path in FILES}


@cache
def statements(name: str) -> list[ast.AST]:
    """Imports of a module, at its top or anywhere."""
    return [
        each for each in ast.walk(modules()[name]) if isinstance(each, ast.Import | ast.ImportFrom)
    ]


@cache
def imports(name: str, *, at_top: bool) -> set[str]:
    """Modules of the package that one imports, at its top or anywhere."""
    found = set()
    for node in modules()[name].body if at_top else statements(name):
        if isinstance(node, ast.ImportFrom) and node.module:
            named = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {
                node.module if not named & modules().keys() else "",
                *(named & modules().keys()),
            }
    return found & modules().keys() - {name}


@cache
def chain(name: str) -> int:
    """How many modules the longest chain of imports below one has, itself counted."""
    return 1 + max((chain(other) for other in imports(name, at_top=True)), default=0)


def needed_by(statement: str) -> int:
    """How many modules of the package a statement loads."""
    code = f"import sys; {statement}; print(sum(n.split('.')[0] == 'mercer' for n in sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(out.stdout)


def figures() -> dict[str, float]:
    """What is measured."""
    lines = sum(path.read_text().count("\n") for path in FILES)
    n_statements = sum(len(statements(name)) for name in modules())
    importers = {
        name: sum(name in imports(other, at_top=False) for other in modules()) for name in modules()
    }
    folders = {
        f"files of {folder}": len(list((SOURCE / folder).rglob("*.py")))
        for folder in ("gp", "sphere", "basis", "spectral", "cli")
    }
    return {
        "files": len(FILES),
        "lines": lines,
        **folders,
        "levels of folders": max(len(path.relative_to(SOURCE).parts) - 1 for path in FILES),
        "modules with one importer": sum(count == 1 for count in importers.values()),
        "imports in 100 lines": round(100.0 * n_statements / lines, 1),
        "longest chain of imports": max(map(chain, modules())),
        "modules that a GPClassifier needs": needed_by("from mercer import GPClassifier"),
    }


LIMITS = {
    "files": 200,
    "lines": 80_484,
    "files of gp": 15,
    "files of sphere": 15,
    "files of basis": 16,
    "files of spectral": 18,
    "files of cli": 27,
    "levels of folders": 1,
    "modules with one importer": 41,
    "imports in 100 lines": 4.0,
    "longest chain of imports": 10,
    "modules that a GPClassifier needs": 48,
}


def test_the_house_does_not_grow_back() -> None:
    found = figures()
    assert {name: found[name] for name in LIMITS if found[name] > LIMITS[name]} == {}


if __name__ == "__main__":
    for name, value in figures().items():
        sys.stdout.write(f"{name}: {value:g}\n")
