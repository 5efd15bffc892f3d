"""Records name commit, machine, versions and seed, and belong to a scenario that is still there."""

from __future__ import annotations

import ast
import json
from importlib import import_module
from pathlib import Path

import pytest

from reproduce import record

ROOT = Path(__file__).parents[2]
SCENARIOS = sorted((ROOT / "reproduce" / "scenarios").glob("*_v*.py"))
RECORDS = sorted((ROOT / "reproduce" / "results").glob("*.json"))


@pytest.mark.parametrize("path", RECORDS, ids=[path.stem for path in RECORDS])
def test_a_record_says_where_it_comes_from(path: Path) -> None:
    record = json.loads(path.read_text())
    assert record["scenario"] == path.stem
    assert (ROOT / "reproduce" / "scenarios" / f"{path.stem.replace('-', '_')}.py").exists()
    for key in ("seed", "date", "commit", "machine", "versions", "metrics"):
        assert key in record
    assert "+changes" not in record["commit"]


def test_every_scenario_has_a_record_or_says_that_it_has_none_yet() -> None:
    scenarios = {
        path.stem.replace("_", "-"): "HAS_NO_RECORD_YET = True" in path.read_text()
        for path in (ROOT / "reproduce" / "scenarios").glob("*.py")
        if path.stem != "__init__"
    }
    assert {name for name, waits in scenarios.items() if not waits} == {p.stem for p in RECORDS}


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_what_a_scenario_replaces_is_there(path: Path) -> None:
    """Names in texts are seen by no other check."""
    tree = ast.parse(path.read_text())
    homes = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "mock.patch.object":
            module, name = homes[ast.unparse(node.args[0])]
            owner = getattr(import_module(module), name, None) or import_module(f"{module}.{name}")
            assert hasattr(owner, ast.literal_eval(node.args[1]))


HOME = "reproduce.scenarios.toy_v1"
SOURCES = {
    "reproduce/scenarios/toy_v1.py": (
        '"""A scenario."""\nfrom reproduce.helper import twice\n\ndef run():\n'
        '    """Run."""\n    return twice(2)  # four\n'
    ),
    "reproduce/helper.py": (
        "from typing import TYPE_CHECKING\nimport numpy as np\n"
        "if TYPE_CHECKING:\n    from mercer.other import Other\n"
        "def twice(x):\n    from mercer.inner import add\n    return add(x, x)\n"
    ),
    "reproduce/papers/names.py": 'NAMES = (NamedReproduction("toy", "reproduce.toy", "A toy"),)\n',
    "reproduce/toy.py": "RATE = 1\n",
    "src/mercer/__init__.py": "",
    "src/mercer/inner.py": "def add(x, y):\n    return x + y\n",
    "src/mercer/other.py": "class Other:\n    pass\n",
}


def _digest(folder: Path, monkeypatch: pytest.MonkeyPatch, **changes: tuple[str, str]) -> str:
    """Digest of a scenario of toys, some text in some files replaced."""
    changed = {name.replace("__", "/") + ".py": change for name, change in changes.items()}
    for name, text in SOURCES.items():
        old, new = changed.pop(name, ("", ""))
        assert old in text
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.replace(old, new, 1) if old else text)
    assert not changed
    monkeypatch.setattr(record, "_SOURCES", {"mercer": folder / "src", "reproduce": folder})
    for cached in (record._needed, record._statements, record._table_of_homes):
        cached.cache_clear()
    record._homes_of_names.cache_clear()
    try:
        return record.code_digest(HOME)
    finally:
        for cached in (record._needed, record._statements, record._table_of_homes):
            cached.cache_clear()
        record._homes_of_names.cache_clear()


SEEN = [
    ("reproduce__scenarios__toy_v1", ("twice(2)", "twice(3)")),
    ("reproduce__helper", ("add(x, x)", "add(x, 2)")),
    ("src__mercer__inner", ("x + y", "x - y")),
]
NOT_SEEN = [
    ("reproduce__scenarios__toy_v1", ("  # four", "  # 2 + 2")),
    ("reproduce__scenarios__toy_v1", ("  # four", "\n\n\nHAS_NO_RECORD_YET = True")),
    ("reproduce__scenarios__toy_v1", ('"""Run."""', '"""Run it\n\n    all."""')),
    ("reproduce__helper", ("import numpy as np\n", "\n\nimport numpy as np\n")),
    ("src__mercer__other", ("pass", "x = 1")),
    ("reproduce__toy", ("RATE = 1", "RATE = 2")),
]


@pytest.mark.parametrize(("name", "change"), SEEN)
def test_a_changed_statement_is_seen(
    name: str, change: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _digest(tmp_path, monkeypatch)
    assert _digest(tmp_path, monkeypatch, **{name: change}) != before


@pytest.mark.parametrize(("name", "change"), NOT_SEEN)
def test_a_changed_comment_or_a_file_that_nobody_imports_is_not_seen(
    name: str, change: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _digest(tmp_path, monkeypatch)
    assert _digest(tmp_path, monkeypatch, **{name: change}) == before


def test_a_scenario_depends_on_the_reproduction_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = {"reproduce__scenarios__toy_v1": ("twice(2)", 'twice("toy")')}
    before = _digest(tmp_path, monkeypatch, **named)
    changed = {**named, "reproduce__toy": ("RATE = 1", "RATE = 2")}
    assert _digest(tmp_path, monkeypatch, **changed) != before


@pytest.mark.parametrize(
    ("scenario", "needed"),
    [
        ("gp_accuracy_v1", "reproduce.papers.gp_pima"),
        ("gp_accuracy_v1", "mercer.sampling.hmc"),
        ("gp_memory_v1", "mercer.gp"),
        ("spectral_figure_5_v1", "mercer.spectral"),
        ("sphere_many_v1", "mercer.sphere"),
    ],
)
def test_what_scenarios_depend_on(scenario: str, needed: str) -> None:
    assert needed in record._family(f"reproduce.scenarios.{scenario}")


def test_records_without_code_or_of_other_code_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    digest = record.code_digest("reproduce.scenarios.gp_size_v1")
    base = {"date": "2026-01-01", "commit": "abc"}
    for name, more in {
        "gp-size-v1": {"code": digest},
        "gp-ess-v1": {"code": digest},
        "gp-map-v1": {},
    }.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({**base, **more}))
    listed = dict(record.stale_records())
    assert set(listed) == {"gp-ess-v1", "gp-map-v1"}
    assert listed["gp-ess-v1"].startswith("stale")
    assert listed["gp-map-v1"].startswith("unknown")
