"""The shape of the source files (STYLE, section 2)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import mercer

SOURCE = Path(mercer.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

each_file = pytest.mark.parametrize(
    "path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix()
)


def exported(tree: ast.Module) -> list[str] | None:
    """What ``__all__`` lists, or None."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets):
            return [ast.literal_eval(element) for element in node.value.elts]
    return None


@each_file
def test_public_names_are_listed(path: Path) -> None:
    tree = ast.parse(path.read_text())
    names = exported(tree)
    if names is None:
        assert path.name in ("__init__.py", "__main__.py")
        return
    assert len(set(names)) == len(names)


@each_file
def test_length(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


@each_file
def test_docstring_and_annotations_import(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree)
    if len(tree.body) > 1:
        assert "from __future__ import annotations" in path.read_text()


@each_file
def test_no_global_random_state(path: Path) -> None:
    """``np.random.seed`` and its like, and generators made at import, do not occur."""
    text = path.read_text()
    assert not re.search(r"np\.random\.(seed|rand|randn|normal|uniform|choice|shuffle)\b", text)
    for node in ast.parse(text).body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            assert "np.random.default_rng" not in ast.unparse(node)


def test_every_source_folder_is_a_package() -> None:
    folders = {path.parent for path in FILES}
    assert all((folder / "__init__.py").exists() for folder in folders)
