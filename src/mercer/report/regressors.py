"""What the reports of all regressors share: the noise in words, the curve along one input."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mercer.report.figures import predicted_band_svg
from mercer.report.section import Figure
from mercer.report.words import number, percent

__all__ = ["curve_figures", "noise_words"]

_DRAWN_RAW: Final = 1  # kinds of standardisation up to this one can be undone: plain and clipped


def noise_words(estimator: Any) -> str:
    """Say how large the noise of a fitted regressor is."""
    noise = estimator.noise_std_
    share = min(1.0, (noise / estimator.target_scale_) ** 2)
    return (
        f"The noise has a standard deviation of {number(noise)}, in units of the target: about "
        f"{percent(share, 0 if share > 0.02 else 1)} of the target's variance is noise, or due to "
        "what the inputs do not tell."
    )


def curve_figures(estimator: Any) -> tuple[Figure, ...]:
    """Draw the prediction along the input of a fitted regressor; nothing where it has several."""
    standardizer = estimator.standardizer_
    if estimator.n_features_in_ != 1 or standardizer.kind[0] > _DRAWN_RAW:
        return ()
    half = 2.0 * standardizer.units[0]
    ends = np.array([standardizer.centre[0] - half, standardizer.centre[0] + half])
    name = estimator.feature_labels_[0]
    drawing = Figure(
        predicted_band_svg(estimator, ends),
        "The prediction, up to two standard deviations from the middle of the input; its ends may "
        "lie beyond the data. Band: 90 % interval of a new observation.",
        f"Prediction against {name} with its 90 % interval.",
    )
    return (drawing,)
