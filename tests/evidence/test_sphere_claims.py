"""The parts put together; their verdicts are judged in files of their own, quick runs are slow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reproduce.papers import sphere_claims, sphere_votes
from reproduce.papers.reproduction import Claim, Settings, write_reproduction
from reproduce.papers.sphere_part import Part


def test_parts_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cheap parts as they are, and one that fills the other three panels."""
    drawn = []
    other = Part((Claim("c", "yes", "1", "fails"),), (drawn.append,) * 3, notes=("n",))
    parts = (sphere_votes.diversity_part, lambda settings: other, sphere_votes.part)
    monkeypatch.setattr(sphere_claims, "_PARTS", parts)
    outcome = sphere_claims.reproduce(Settings(is_quick=True))
    assert [claim.verdict for claim in outcome.claims] == ["holds"] * 2 + ["fails"] + ["holds"] * 4
    assert set(outcome.measured) >= {"plane: vote", "breast cancer: vote, 50 % of the rows"}
    assert all(np.isfinite(values).all() for values in outcome.measured.values())
    assert outcome.notes == ("n",)
    assert write_reproduction(outcome, tmp_path)[2].read_bytes().startswith(b"\x89PNG")
    assert len(drawn) == 3
