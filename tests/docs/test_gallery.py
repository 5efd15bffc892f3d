"""The examples of the gallery run without a warning, within seconds, and draw something."""

from __future__ import annotations

import importlib.util
import sys
import time
import warnings
from pathlib import Path

import nbformat
import pytest

DOCS = Path(__file__).parents[2] / "docs"
_spec = importlib.util.spec_from_file_location("site_hooks", DOCS / "site_hooks.py")
assert _spec is not None
assert _spec.loader is not None
hooks = importlib.util.module_from_spec(_spec)
sys.modules["site_hooks"] = hooks  # dataclasses look their module up
_spec.loader.exec_module(hooks)


LONG = {"a_kernel_that_is_learned", "from_noisy_labels_to_a_model", "row_after_row", "wrong_labels"}
EXAMPLES = [
    pytest.param(path, marks=[pytest.mark.slow] if path.stem in LONG else [], id=path.stem)
    for path in hooks.EXAMPLES
]


@pytest.mark.parametrize("path", EXAMPLES)
def test_an_example_runs(path: Path) -> None:
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        example = hooks.run_example(path)
    assert time.process_time() - began < 30.0
    assert example.title
    assert example.lead
    pictures = example.pictures()
    assert pictures
    assert all(picture.startswith(b"\x89PNG") for picture in pictures.values())
    assert f"({example.name}-1.png)" in example.page()
    notebook = nbformat.reads(example.notebook(), as_version=4)
    nbformat.validate(notebook)
    drawn = [o for cell in notebook.cells for o in cell.get("outputs", ()) if "data" in o]
    assert len(drawn) == len(pictures)
    assert "".join(cell.source for cell in notebook.cells if cell.cell_type == "code") == "".join(
        cell.code for cell in example.cells
    )


def test_the_nav_names_every_example() -> None:
    config = (DOCS.parent / "mkdocs.yml").read_text()
    assert [path.stem for path in hooks.EXAMPLES if f"gallery/{path.stem}.md" not in config] == []
