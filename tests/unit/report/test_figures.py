from __future__ import annotations

import re

import numpy as np
import pytest

from mercer import plot
from mercer.posterior.scores import (
    error_coverage_curve,
    gains_curve,
    interval_coverage,
    pit_histogram,
    reliability_curve,
)
from mercer.report.section import svg
from support.audited import audited, two_clusters
from support.fake_estimator import fake_draws
from support.fake_regression import held_rows
from support.followed import followed
from support.learned import learned

_NAMES = ("log_density", "log_weight[glu]")
P = [0.1, 0.5, 0.9]
HELD = held_rows()


@pytest.mark.parametrize(
    "draw",
    [
        lambda: svg(plot.reliability, 5.35, reliability_curve([0, 1, 1], P), probabilities=P),
        lambda: svg(plot.error_coverage, 3.6, error_coverage_curve([0, 1, 1], [[0.6, 0.4]] * 3)),
        lambda: svg(plot.gains, 3.6, gains_curve([0, 1, 1], P)),
        lambda: svg(plot.evidence_curve, 3.6, audited().evidence_curve_, noise_rate=0.1),
        lambda: svg(plot.label_errors, 3.4, [0.9, 0.1], fdr=0.2),
        lambda: svg(plot.boundaries, 4.8, audited(), *two_clusters(), ringed=np.zeros(40, bool)),
        lambda: svg(plot.relevance, 1.46, np.ones((3, 1)), ("a",), prior_interval=(0.1, 10.0)),
        lambda: svg(plot.relevance, 11.9, np.ones((3, 60)), [f"x{i}" for i in range(60)]),
        lambda: svg(plot.learned_kernel, 3.6, learned(d=1)),
        lambda: svg(plot.learned_kernel, 2.1, learned()),
        lambda: svg(plot.spectral_density, 3.6, learned(), 1),
        lambda: svg(plot.predicted_band, 3.6, learned(d=1), [-1.0, 1.0]),
        lambda: svg(plot.predictions, 4.6, *(HELD.y, HELD.mean, HELD.lower, HELD.upper)),
        lambda: svg(plot.residuals, 3.6, HELD.y, HELD.mean, n_shown=50),
        lambda: svg(plot.pit, 4.4, pit_histogram(HELD.pit)),
        lambda: svg(plot.interval_coverage, 4.4, interval_coverage(HELD.pit)),
        lambda: svg(plot.centres, 4.4, followed(), 3),
        lambda: svg(plot.centres, 4.4, followed(d=2), 3),
        lambda: svg(plot.prequential, 3.4, followed().log_predictive_),
        lambda: svg(plot.particles, 2.3, followed().posterior_, ("n_centres", "lengthscale")),
        lambda: svg(plot.trace, 2.3, fake_draws(n_draws=20), _NAMES),
        lambda: svg(plot.ranks, 2.3, fake_draws(n_draws=20), _NAMES),
    ],
)
def test_each_is_as_wide_as_a_phone_and_has_marks(draw):
    svg = draw()
    assert re.search(r'viewBox="0 0 360 [\d.]+"', svg)
    assert 'id="mark-' in svg


def test_a_long_chain_does_not_make_a_large_file():
    assert len(svg(plot.trace, 2.3, fake_draws(n_draws=5000), _NAMES)) < 150_000
