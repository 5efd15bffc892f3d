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


def test_the_curve_is_drawn_where_there_is_one_input_as_it_is() -> None:
    x = np.exp(np.linspace(-2.0, 2.0, 30))[:, np.newaxis]
    model = tiny(inference="map").fit(x, x[:, 0])
    (figure,) = curve_figures(model)
    assert "against x0" in figure.alt
    model.standardizer_ = fit_standardizer(x, "yeo-johnson", ("x0",))
    assert curve_figures(model) == ()
    assert curve_figures(tiny(inference="map").fit(np.hstack([x, x]), x[:, 0])) == ()
