from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reproduce.papers import basis_figure_1
from reproduce.papers.basis_figure_1 import gain_claim, sizes_of
from reproduce.papers.reproduction import Settings, write_reproduction


def test_the_sizes_are_those_of_the_figure() -> None:
    assert sizes_of(Settings())[0] == 10
    assert sizes_of(Settings())[-1] == 1000
    assert 250 in sizes_of(Settings())


@pytest.mark.parametrize(("gain", "verdict"), [(0.0, "holds"), (0.002, "holds"), (0.01, "fails")])
def test_a_clear_gain_beyond_250_is_against_the_claim(
    gain: float, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = 1e-4 * np.random.default_rng(0).standard_normal(25)
    found = {250: np.full(25, 0.056), 1000: 0.056 - gain + noise}
    monkeypatch.setattr(basis_figure_1, "_errors", lambda kind, n, settings: found[n])
    assert gain_claim(Settings()).verdict == verdict


def test_a_quick_run_draws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(basis_figure_1, "_QUICK_SIZES", (3, 6))
    lines: list[str] = []
    settings = Settings(is_quick=True, tell=lines.append, folder=tmp_path)
    outcome = basis_figure_1.reproduce(settings)
    assert len(lines) == 8
    assert {claim.verdict for claim in outcome.claims} == {"not judged"}
    assert outcome.tables[0].splitlines()[2].startswith("| 3 | 0.")
    paths = write_reproduction(outcome, tmp_path)
    assert paths[2].read_bytes().startswith(b"\x89PNG")
    assert basis_figure_1.reproduce(settings).to_markdown() == outcome.to_markdown()
    assert len(lines) == 8
