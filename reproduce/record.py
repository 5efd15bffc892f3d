"""A record: what was measured, on which machine, by which versions, from which commit and code.

The code of a record is a digest of the statements of the modules of mercer and reproduce that its
scenario depends on: those that it imports, inside functions too, those that they import, and so on.
Comments, docstrings, white space, imports and the order of the statements of a module do not count,
nor does what only draws and prints: `mercer.plot`, `mercer.report`, `mercer.cli`.
"""

from __future__ import annotations

import ast
import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

__all__ = ["RESULTS", "code_digest", "machine", "read_record", "stale_records", "write_record"]

RESULTS = Path(__file__).parent / "results"
_ROOT = Path(__file__).parents[1]
_SOURCES = {"mercer": _ROOT / "src", "reproduce": _ROOT}
_DRAWING = ("mercer.plot", "mercer.report", "mercer.cli")
# A table of names and homes: whoever names an entry depends on that home, not on all of them.
_TABLE_OF_NAMES = "reproduce.papers.names"
_PACKAGES = ("mercer", "numpy", "scipy", "scikit-learn", "numba", "joblib", "arviz-stats")


def machine() -> dict[str, Any]:
    """Describe where a record is made."""
    from threadpoolctl import threadpool_info

    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = lines[0].partition(":")[2].strip() if lines else cpu
    blas = [
        f"{i['internal_api']} {i['version']}" for i in threadpool_info() if i["user_api"] == "blas"
    ]
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "blas": sorted(set(blas)),
        "blas_threads": 1,
        "load_average": round(os.getloadavg()[0], 2),
    }


def write_record(
    scenario: str, seed: int, metrics: dict[str, Any], peers: Sequence[str] = ()
) -> Path:
    """Write ``results/SCENARIO.json``, in place of the last record of that scenario.

    Parameters
    ----------
    peers : sequence of str
        Packages that mercer was measured beside, by the name that is installed.
    """
    record = {
        "scenario": scenario,
        "seed": seed,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": _commit(),
        "code": code_digest(f"reproduce.scenarios.{scenario.replace('-', '_')}"),
        "machine": machine(),
        "versions": {name: importlib.metadata.version(name) for name in (*_PACKAGES, *peers)},
        "metrics": metrics,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{scenario}.json"
    path.write_text(json.dumps(record, indent=2) + "\n")
    return path


def read_record(scenario: str) -> dict[str, Any] | None:
    """Read the committed record of a scenario, if there is one."""
    path = RESULTS / f"{scenario}.json"
    return json.loads(path.read_text()) if path.exists() else None


def _commit() -> str:
    run = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    status = subprocess.run(["git", "status", "--porcelain", "src"], capture_output=True, text=True)
    return run.stdout.strip() + ("+changes" if status.stdout.strip() else "")


def stale_records() -> list[tuple[str, str]]:
    """Records whose code has changed since, or that do not say what it was.

    Returns
    -------
    list of (name of the scenario, why)
    """
    stale = []
    for path in sorted(RESULTS.glob("*.json")):
        record = json.loads(path.read_text())
        home = f"reproduce.scenarios.{path.stem.replace('-', '_')}"
        since = f"record of {record['date']}, commit {record['commit']}"
        if "code" not in record:
            stale.append((path.stem, f"unknown: made before records knew their code; {since}"))
        elif record["code"] != code_digest(home):
            stale.append((path.stem, f"stale: its code has changed; {since}"))
    return stale


def code_digest(module: str) -> str:
    """SHA-256 of the statements that a module depends on, with those of its own."""
    statements = {each for name in _family(module) for each in _statements(_file_of(name))}
    return hashlib.sha256("\n".join(sorted(statements)).encode()).hexdigest()


def _family(module: str) -> set[str]:
    """The module, what it imports, what that imports, and so on."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in seen or _file_of(name) is None or name.startswith(_DRAWING):
            continue
        seen.add(name)
        waiting += _needed(name)
    return seen


def _file_of(module: str) -> Path | None:
    """Where the source of a module of ours is, if it is one."""
    root = _SOURCES.get(module.partition(".")[0])
    if root is None:
        return None
    place = root.joinpath(*module.split("."))
    files = (place / "__init__.py", place.with_suffix(".py"))
    return next((file for file in files if file.exists()), None)


@cache
def _needed(module: str) -> tuple[str, ...]:
    """Modules that one names: imported, as a string, or in a program that is a string."""
    file = _file_of(module)
    tree = _Bare().visit(ast.parse(file.read_text()))
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    names = [module.rpartition(".")[0], *_imported(tree, package)]
    if module.startswith("reproduce.") and module != _TABLE_OF_NAMES:
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                names += _named_in(node.value)
    return tuple(dict.fromkeys(names))


def _imported(tree: ast.AST, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            home = node.module if node.level == 0 else f"{package}.{node.module}"
            yield home
            yield from (_exported(home, alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr":
            # An estimator whose name is put together: any of that package.
            owner = {"mercer": "mercer", "baselines": "mercer.baselines"}.get(
                ast.unparse(node.args[0]), ""
            )
            yield from (_exported(owner, name) for name in _table_of_homes(owner))


def _named_in(text: str) -> list[str]:
    """Modules that a string stands for: a name, a home, a program with imports."""
    home = _homes_of_names().get(text, text)
    if "import" in text:
        try:
            return list(_imported(ast.parse(text), ""))
        except SyntaxError:
            return []
    return [home]


def _exported(home: str, name: str) -> str:
    """The module that ``from home import name`` loads beside ``home``: by its table, if any."""
    listed = _table_of_homes(home).get(name, name)
    return listed if listed.startswith("mercer.") else f"{home}.{listed}"


@cache
def _table_of_homes(package: str) -> dict[str, str]:
    """Where a package finds the names that it loads when they are first used."""
    file = _file_of(package)
    if file is not None and file.name == "__init__.py":
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES":
                return ast.literal_eval(node.value)
    return {}


@lru_cache(maxsize=1)
def _homes_of_names() -> dict[str, str]:
    """Home of each name of ``mercer reproduce``."""
    strings = [
        [each.value for each in node.args if isinstance(each, ast.Constant)]
        for node in ast.walk(ast.parse(_file_of(_TABLE_OF_NAMES).read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "NamedReproduction"
    ]
    return {name: home for name, home, _ in strings}


@cache
def _statements(file: Path) -> tuple[str, ...]:
    """Each statement of a module as a digest of its syntax tree."""
    tree = _Bare(without_imports=True).visit(ast.parse(file.read_text()))
    return tuple(hashlib.sha256(ast.dump(each).encode()).hexdigest() for each in tree.body)


class _Bare(ast.NodeTransformer):
    """Leaves out docstrings, imports that only a type checker sees, and all imports if asked.

    Also what says that there is no record yet: it goes when the record comes.
    """

    def __init__(self, *, without_imports: bool = False) -> None:
        self.without_imports = without_imports

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | None:
        is_for_types = "TYPE_CHECKING" in ast.unparse(node.test)
        return None if is_for_types else self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> ast.AST | None:
        return None if self.without_imports else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return None if self.without_imports else node

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        return None if ast.unparse(node.targets[0]) in ("__all__", "HAS_NO_RECORD_YET") else node
