"""Records name commit, machine, versions and seed, and belong to a scenario that is still there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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
