"""Scenarios at tiny sizes: cells are measured in this process and kept nowhere."""

from __future__ import annotations

import joblib
import pytest

from support.quick_start import quick_start

__all__ = ["one_process", "quick_start"]


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process for each of a few small cells would take longer to start than they take."""
    monkeypatch.delenv("MERCER_BENCH_CACHE", raising=False)
    for home in ("cells", "papers.gp_cells"):
        monkeypatch.setattr(
            f"reproduce.{home}.Parallel", lambda n_jobs=1, **own: joblib.Parallel(1, **own)
        )
