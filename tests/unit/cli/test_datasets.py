from __future__ import annotations

import json

import pytest


def test_known_sets_are_listed(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MERCER_DATA", raising=False)
    code, out, _ = run("datasets")
    assert code == 0
    assert "breast_cancer" in out
    assert "MERCER_DATA" in out
    code, out, _ = run("datasets", "--json")
    names = [entry["name"] for entry in json.loads(out)["datasets"]]
    assert {"iris", "pima_tr"} <= set(names)
