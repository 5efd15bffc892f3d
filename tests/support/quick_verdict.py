"""Fits whose chains nobody judges: R-hat and effective sizes as of independent draws.

For twenty quantities they take longer than the chains of a test do; what they are is tested in
`unit/posterior`. A file whose tests are about the verdict defines a fixture of the same name.
"""

from __future__ import annotations

import numpy as np
import pytest
from arviz_stats.base import array_stats


def _all_count(z: np.ndarray, **_: object) -> np.ndarray:
    return np.full(len(z), float(z[0].size))


@pytest.fixture(autouse=True)
def quick_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count every draw of (n, n_chains, n_draws), and let every R-hat be 1."""
    monkeypatch.setattr(array_stats, "ess", _all_count)
    monkeypatch.setattr(array_stats, "rhat", lambda z: np.ones(len(z)))
