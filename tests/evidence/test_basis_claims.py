from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reproduce.papers import basis_claims
from reproduce.papers.basis_part import Part
from reproduce.papers.reproduction import Claim, Settings, write_reproduction


def test_parts_are_put_together(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def part(name: str) -> Part:
        claim = Claim(name, "yes", "yes", "holds")
        return Part((claim,), (lambda axes: axes.plot([0, 1]),), {name: np.ones(2)}, (name,))

    parts = tuple(lambda settings, name=name: part(name) for name in ("order", "fixed", "weight"))
    monkeypatch.setattr(basis_claims, "_PARTS", parts)
    monkeypatch.setattr(
        basis_claims, "gain_claim", lambda settings: Claim("gain", "yes", "yes", "holds")
    )
    outcome = basis_claims.reproduce(Settings())
    assert [claim.claim for claim in outcome.claims] == ["order", "gain", "fixed", "weight"]
    assert list(outcome.measured) == list(outcome.notes) == ["order", "fixed", "weight"]
    assert write_reproduction(outcome, tmp_path)[2].read_bytes().startswith(b"\x89PNG")


def test_the_parts_are_those_of_the_page() -> None:
    homes = [run.__module__ for run in basis_claims._PARTS]
    assert homes == [f"reproduce.papers.basis_{name}" for name in ("order", "fixed", "weight")]
