"""What importing mercer loads, and by which doors heavy packages enter (STYLE, section 1)."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache

import pytest

from support.sources import trees

HEAVY = ("torch", "dask", "matplotlib", "pandas", "polars", "pyarrow", "sklearn")


def imported(tree: ast.AST) -> set[str]:
    """Top-level names of all packages that a file imports, at its top or inside functions."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.split(".")[0])
        elif isinstance(node, ast.Call) and _is_import_call(node):
            argument = node.args[0]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                names.add(argument.value.split(".")[0])
    return names


def _is_import_call(node: ast.Call) -> bool:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in ("import_module", "__import__") and bool(node.args)


def at_top(tree: ast.Module) -> set[str]:
    """Packages that are imported when the file is."""
    body = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    return imported(ast.Module(body, []))


@cache
def imported_by_files() -> dict[str, set[str]]:
    return {name: imported(tree) for name, tree in trees().items()}


def trespassers(package: str, is_allowed) -> list[str]:
    return [
        path
        for path, names in imported_by_files().items()
        if package in names and not is_allowed(path)
    ]


def test_import_mercer_loads_nothing_heavy() -> None:
    code = (
        "import sys, mercer; "
        f"print([name for name in {HEAVY!r} if name in sys.modules], mercer.__name__)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert out.stdout.strip() == "[] mercer"


@pytest.mark.parametrize(
    "module", ["mercer.errors", "mercer.posterior.container", "mercer.sampling.driver",
               "mercer.data.tables", "mercer.plot"],
)  # fmt: skip
def test_optional_packages_are_loaded_on_demand(module: str) -> None:
    optional = ("torch", "dask", "matplotlib", "pandas", "polars", "pyarrow", "arviz")
    code = f"import sys, {module}; print([name for name in {optional!r} if name in sys.modules])"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert out.stdout.strip() == "[]"


def _may_import_sklearn(path: str) -> bool:
    return (
        path.startswith(("estimation/", "baselines/", "stacking/"))
        or path.endswith(
            ("/estimator.py", "/regressor.py", "/classifier.py", "/base.py", "prediction.py")
        )
        or path in ("kernels/translate.py", "data/named.py")
    )


DOORS = {
    "numba": lambda path: path in ("numerics/compilation.py", "sphere/loops.py"),
    "torch": lambda path: path == "features/device.py",
    "array_api_compat": lambda path: path == "features/device.py",
    "dask": lambda path: path in ("data/dask.py", "data/dask_collections.py"),
    "distributed": lambda path: path == "data/dask.py",
    "starlette": lambda path: path == "review/server.py",
    "uvicorn": lambda path: path == "review/server.py",
    "matplotlib": lambda path: path.startswith("plot/"),
    "sklearn": _may_import_sklearn,
}


@pytest.mark.parametrize("package", DOORS)
def test_heavy_packages_enter_by_their_door(package: str) -> None:
    assert trespassers(package, DOORS[package]) == []


def test_the_door_keeper_sees_a_trespasser() -> None:
    """The check itself: without its door Numba's importers are named."""
    assert "numerics/compilation.py" in trespassers("numba", lambda path: False)
    tree = ast.parse("def f():\n    import matplotlib.pyplot as plt\n")
    assert imported(tree) == {"matplotlib"}
    assert at_top(tree) == set()
    assert imported(ast.parse("importlib.import_module('torch.nn')")) == {"torch"}


def test_optional_packages_are_imported_inside_functions() -> None:
    found = {
        path: names
        for path, tree in trees().items()
        if (names := at_top(tree) & {"pandas", "polars", "pyarrow", "arviz"})
    }
    assert found == {}


def test_nothing_unpickles() -> None:
    """P4, F3: no loader that can run code; a pipe between a process and its own child may."""
    own_pipe = "estimation/workers.py"
    for package in ("pickle", "cloudpickle", "dill", "shelve", "marshal"):
        assert trespassers(package, lambda path: path == own_pipe) == []
