"""Records name commit, machine, versions and seed, and belong to a scenario that is still there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDS = sorted((ROOT / "benchmarks" / "results").glob("*.json"))


@pytest.mark.parametrize("path", RECORDS, ids=[path.stem for path in RECORDS])
def test_a_record_says_where_it_comes_from(path: Path) -> None:
    record = json.loads(path.read_text())
    assert record["scenario"] == path.stem
    assert (ROOT / "benchmarks" / "scenarios" / f"{path.stem.replace('-', '_')}.py").exists()
    for key in ("seed", "date", "commit", "machine", "versions", "metrics"):
        assert key in record
    assert "+changes" not in record["commit"]


def test_every_scenario_has_a_record() -> None:
    scenarios = {
        path.stem.replace("_", "-")
        for path in (ROOT / "benchmarks" / "scenarios").glob("*.py")
        if path.stem != "__init__"
    }
    assert scenarios == {path.stem for path in RECORDS}
