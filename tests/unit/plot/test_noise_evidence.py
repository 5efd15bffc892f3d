from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import UsageError
from mercer.plot import evidence_curve
from mercer.plot.style import bare_figure
from mercer.sphere.evidence import EvidenceCurve


def _curve(depth):
    q = np.linspace(0.01, 0.5, 50)
    return EvidenceCurve(q, -depth * np.abs(q - 0.1), np.full(50, 0.3))


def _axes():
    return bare_figure(5, 4).subplots()


def test_line_band_and_rate():
    curve = _curve(20.0)
    ax = evidence_curve(curve, noise_rate=0.12, ax=_axes())
    line, rate = ax.lines
    assert (line.get_gid(), rate.get_gid()) == ("mark-curve", "mark-rate")
    np.testing.assert_array_equal(line.get_xdata(), curve.noise_rates)
    np.testing.assert_array_equal(line.get_ydata(), curve.log_evidence)
    (band,) = ax.collections
    ends = band.get_datalim(ax.transData)
    assert ends.y1 == pytest.approx(curve.log_evidence.max() + 0.6)
    assert rate.get_xdata()[0] == 0.12
    assert ax.texts[0].get_text() == "posterior mean 12.0 %"


def test_a_rate_of_each_class():
    ax = evidence_curve(_curve(20.0), noise_rate={"no": 0.12, "yes": 0.31}, ax=_axes())
    assert [line.get_xdata()[0] for line in ax.lines[1:]] == [0.12, 0.31]
    said = [text.get_text() for text in ax.texts]
    assert said == ["posterior mean of no 12.0 %", "posterior mean of yes 31.0 %"]
    assert ax.texts[0].xyann[1] != ax.texts[1].xyann[1]


def test_what_is_hopeless_is_left_out_but_for_a_neighbour():
    curve = _curve(1000.0)
    ax = evidence_curve(curve, ax=_axes())
    shown = ax.lines[0].get_ydata()
    assert np.count_nonzero(shown < curve.log_evidence.max() - 30.0) == 2
    assert ax.get_ylim()[0] > curve.log_evidence.max() - 40.0
    assert len(ax.lines) == 1


def test_one_rate_is_a_point_and_none_an_error():
    curve = EvidenceCurve(np.array([0.3]), np.array([-5.0]), np.array([0.1]))
    assert evidence_curve(curve, ax=_axes()).lines[0].get_xdata().tolist() == [0.3]
    none = EvidenceCurve(np.empty(0), np.empty(0), np.empty(0))
    with pytest.raises(UsageError, match="no noise rate"):
        evidence_curve(none, ax=_axes())
