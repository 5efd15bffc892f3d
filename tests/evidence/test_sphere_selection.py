from __future__ import annotations

import numpy as np
import pytest

from mercer.sphere.tempering import Tempering
from reproduce.papers import sphere_selection
from reproduce.papers.sphere_problems import split_of


def test_note_compares_with_hindsight() -> None:
    """Two splits, three kernels: evidence takes those with errors 4 and 6."""
    values = np.array([[[-3.0, 4.0], [-5.0, 2.0], [-9.0, 9.0]], [[-4, 3], [-2, 6], [-8, 9]]])
    note = sphere_selection._note("toy", values)
    assert "5.0 +- 1.0 for the kernel of most evidence" in note
    assert "2.5 +- 0.5 for the best" in note
    assert "5.5 +- 0.5 on average" in note


def test_evidence_and_error_of_every_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A length scale of a tenth of the median distance is hopeless on both counts."""
    monkeypatch.setattr(
        sphere_selection, "_KERNELS", (("rbf", 0.1), ("rbf", 1.0), ("linear", None))
    )
    split = split_of("breast cancer", 0, 60, 300, 0.1)
    rows = sphere_selection._evidence_and_error(split, np.random.default_rng(1), Tempering(12, 30))
    (short, short_error), (median, median_error), (linear, linear_error) = rows
    assert short < median - 5.0
    assert short < linear - 5.0
    assert short_error > 2.0 * max(median_error, linear_error)
