"""The report of a model that is one point: no chains, and it says so."""

from __future__ import annotations

import numpy as np

from mercer import GPClassifier
from mercer.report import build_report, render


def test_a_maximum_has_a_report_without_chains() -> None:
    rng = np.random.default_rng(0)
    model = GPClassifier(kernel="rbf", inference="map").fit(
        rng.standard_normal((20, 2)), np.arange(20) % 2
    )
    page = render(build_report(model, evaluation=None, provenance=None))
    assert "no chains to look at" in page
    assert "Nothing was sampled" in page
