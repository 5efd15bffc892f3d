"""Evidence of noise, wrong labels, distances from Laplace, drawn."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from mercer.errors import UsageError
from mercer.plot import evidence_curve, label_errors, laplace_distance
from mercer.plot.style import bare_figure, to_svg
from mercer.sphere.tempering import EvidenceCurve

# Labels.


def _axes():
    return bare_figure(5, 4).subplots()


def test_rows_come_sorted_and_the_list_is_shaded():
    p = np.array([0.1, 1.0, 0.0, 0.9, 0.95])
    ax = label_errors(p, fdr=0.06, ax=_axes())
    (dots,) = ax.lines
    assert dots.get_gid() == "mark-rows"
    assert dots.get_ydata().tolist() == [1.0, 0.95, 0.9, 0.1, 0.0]
    (band,) = ax.patches
    assert (band.get_x(), band.get_x() + band.get_width()) == (0.5, 3.5)
    assert ax.texts[0].get_text() == "list: 3 rows at 6 % expected false"


def test_of_many_rows_the_list_and_as_many_more_are_shown():
    p = np.concatenate([np.ones(30), np.zeros(970)])
    ax = label_errors(p, fdr=0.01, ax=_axes())
    assert len(ax.lines[0].get_xdata()) == 60
    assert "first 60 of 1000" in ax.get_xlabel()


def test_without_a_list_nothing_is_shaded():
    ax = label_errors([0.2, 0.1], ax=_axes())
    assert not ax.patches
    assert ax.texts[0].get_text().startswith("list: 0 rows")


@pytest.mark.parametrize("p", [[], [1.2], [float("nan")]])
def test_what_is_no_probability_is_refused(p):
    with pytest.raises(UsageError, match="probabilities"):
        label_errors(p, ax=_axes())


# Noise evidence.


def _curve(depth):
    q = np.linspace(0.01, 0.5, 50)
    return EvidenceCurve(q, -depth * np.abs(q - 0.1), np.full(50, 0.3))


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


def test_dollars_in_a_class_are_no_mathematics():
    ax = evidence_curve(_curve(20.0), noise_rate={"$\\frac{$": 0.12, "b": 0.2}, ax=_axes())
    assert r"$\frac{$" in to_svg(ax.figure)


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


# Laplace's error against rows per region.


def test_a_point_a_row_and_a_line_of_medians() -> None:
    rng = np.random.default_rng(0)
    x = np.exp(rng.uniform(0.0, 4.0, 120))
    y = 0.1 / x * rng.choice([-1.0, 1.0], 120)
    ax = laplace_distance(x, y, ax=Figure().subplots())
    points, line = ax.lines
    np.testing.assert_allclose(points.get_ydata(), np.abs(y))
    assert len(line.get_xdata()) == 6
    assert np.all(np.diff(line.get_ydata()) < 0.0)


def test_no_difference_has_a_place_too() -> None:
    ax = laplace_distance([1.0, 2.0], [0.0, 0.0], ax=Figure().subplots())
    assert (ax.lines[0].get_ydata() > 0.0).all()


@pytest.mark.parametrize(
    ("x", "y"), [([1.0], [0.1, 0.2]), ([0.0], [0.1]), ([1.0], [np.nan]), ([], [])]
)
def test_refusals(x: list[float], y: list[float]) -> None:
    with pytest.raises(UsageError, match="rows per region"):
        laplace_distance(x, y)
