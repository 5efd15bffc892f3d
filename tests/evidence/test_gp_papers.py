"""The scenarios of Barber & Williams' tables with a stand-in for what they run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from reproduce.papers.reproduction import Claim, Reproduction, Settings


@pytest.mark.parametrize("k", [1, 2])
def test_tables(k: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import importlib

    from reproduce import reproductions
    from reproduce.tables import _TABLES

    settings: list[Settings] = []

    def reproduce(name: str, given: Settings) -> Reproduction:
        settings.append(given)
        return Reproduction(
            name=name, title="", source="", command="", unit="%", published={},
            claims=(Claim("at most 23.3 %", "23.3 %", "22.5 %", "holds", "five shuffles"),),
            measured={"GP": np.array([22.0, 23.0])}, notes=("A note.",), tables=("| a |\n|---|",),
        )  # fmt: skip

    monkeypatch.setattr(reproductions, "reproduce", reproduce)
    monkeypatch.setenv("MERCER_BENCH_CACHE", str(tmp_path))
    module = importlib.import_module(f"reproduce.scenarios.gp_table_{k}_v1")
    metrics = json.loads(json.dumps(module.run()))
    assert settings[0].folder == tmp_path / f"gp-table-{k}-v1"
    assert not settings[0].is_quick
    assert metrics["errors"] == {"GP": [22.0, 23.0]}
    assert _TABLES[f"gp-table-{k}"][1](metrics) == [
        "| claim | paper | ours | verdict |",
        "|---|---|---|---|",
        "| at most 23.3 % | 23.3 % | 22.5 % | holds (five shuffles) |",
        "",
        "| a |",
        "|---|",
        "",
        "A note.",
    ]
