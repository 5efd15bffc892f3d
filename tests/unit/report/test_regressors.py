from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from mercer.estimation.standardize import fit_standardizer
from mercer.report.section import curve_figures, noise_words
from support.process_fits import tiny


@pytest.mark.parametrize(
    ("noise", "words"), [(1.0, "25 %"), (0.12, "0.4 %"), (5.0, "100 %")], ids=["some", "few", "all"]
)
def test_noise_is_said_as_a_share_of_the_variance(noise: float, words: str) -> None:
    said = noise_words(SimpleNamespace(noise_std_=noise, target_scale_=2.0))
    assert f"about {words} of the target" in said.replace("\xa0", " ")


def test_the_curve_is_drawn_where_there_is_one_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a warped one over what the warp takes to two standard deviations, or to its end."""
    x = np.exp(np.linspace(-2.0, 2.0, 30))[:, np.newaxis]
    model = tiny(inference="map").fit(x, x[:, 0])
    (figure,) = curve_figures(model)
    assert "against x0" in figure.alt
    ends = list[np.ndarray]()
    monkeypatch.setattr("mercer.report.section.svg", lambda *given: ends.append(given[-1]) or "")
    for standardizer in ("std", "arcsinh", "yeo-johnson"):
        model.standardizer_ = fit_standardizer(x, standardizer, ("x0",))
        assert len(curve_figures(model)) == 1
        if standardizer != "yeo-johnson":  # which ends before two
            z = model.standardizer_.transform(ends[-1][:, np.newaxis])
            np.testing.assert_allclose(z[:, 0], [-2.0, 2.0], rtol=1e-9)
    assert np.isfinite(ends[-1]).all()
    assert curve_figures(tiny(inference="map").fit(np.hstack([x, x]), x[:, 0])) == ()
