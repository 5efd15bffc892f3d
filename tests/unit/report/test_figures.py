from __future__ import annotations

import re

import numpy as np
import pytest

from mercer.posterior.scores import (
    error_coverage_curve,
    interval_coverage,
    pit_histogram,
    reliability_curve,
)
from mercer.report.figures import (
    boundaries_svg,
    centres_svg,
    coverage_svg,
    evidence_svg,
    interval_coverage_svg,
    kernel_svg,
    label_errors_svg,
    particles_svg,
    pit_svg,
    predicted_band_svg,
    predictions_svg,
    prequential_svg,
    ranks_svg,
    relevance_svg,
    reliability_svg,
    residuals_svg,
    spectral_density_svg,
    trace_svg,
)
from support.audited import audited, two_clusters
from support.fake_estimator import fake_draws
from support.fake_regression import held_rows
from support.followed import followed
from support.learned import learned

_NAMES = ("log_density", "log_weight[glu]")


@pytest.mark.parametrize(
    "draw",
    [
        lambda: reliability_svg(reliability_curve([0, 1, 1], [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9]),
        lambda: coverage_svg(error_coverage_curve([0, 1, 1], [[0.6, 0.4]] * 3)),
        lambda: evidence_svg(audited().evidence_curve_, 0.1),
        lambda: label_errors_svg([0.9, 0.1], 0.2),
        lambda: boundaries_svg(audited(), *two_clusters(), np.zeros(40, dtype=bool)),
        lambda: relevance_svg(np.ones((3, 1)), ("a",), (0.1, 10.0)),
        lambda: relevance_svg(np.ones((3, 60)), [f"x{i}" for i in range(60)], None),
        lambda: kernel_svg(learned(d=1), 1),
        lambda: kernel_svg(learned(), 3),
        lambda: spectral_density_svg(learned(), 1),
        lambda: predicted_band_svg(learned(d=1), [-1.0, 1.0]),
        lambda: predictions_svg(held_rows(), np.arange(5)),
        lambda: residuals_svg(held_rows(), 50),
        lambda: pit_svg(pit_histogram(held_rows().pit)),
        lambda: interval_coverage_svg(interval_coverage(held_rows().pit)),
        lambda: centres_svg(followed(), 3),
        lambda: centres_svg(followed(d=2), 3),
        lambda: prequential_svg(followed().log_predictive_),
        lambda: particles_svg(followed().posterior_, ("n_centres", "lengthscale")),
        lambda: trace_svg(fake_draws(n_draws=20), _NAMES),
        lambda: ranks_svg(fake_draws(n_draws=20), _NAMES),
    ],
)
def test_each_is_as_wide_as_a_phone_and_has_marks(draw):
    svg = draw()
    assert re.search(r'viewBox="0 0 360 [\d.]+"', svg)
    assert 'id="mark-' in svg


def test_a_long_chain_does_not_make_a_large_file():
    assert len(trace_svg(fake_draws(n_draws=5000), _NAMES)) < 150_000
