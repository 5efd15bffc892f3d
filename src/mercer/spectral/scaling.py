"""How inputs and target are standardised: which columns are warped, the evidence decides.

Where a column is skewed there are several ways to take it: as it is, clipped (if it holds
artefacts), by Yeo-Johnson's warp, or by the inverse hyperbolic sine of its robustly scaled values.
Each is tried on all skewed columns at once, with a few steps up the evidence on some rows
(`mercer.spectral.start`), and the highest evidence of the targets is taken. The target is centred
and scaled.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from mercer.errors import DataError, MercerWarning
from mercer.estimation.standardize import WARPS, Standardizer, fit_standardizer
from mercer.random import stream
from mercer.spectral.rows import TargetScale, some_positions
from mercer.spectral.settings import SpectralSettings

__all__ = ["choose_standardizer", "scale_target"]

Array = NDArray[np.float64]

_ROWS = 2000
_FEWEST_ROWS = 20  # below, no skewness is worth the name
_HOW = {
    "as they are": "taken as they are",
    "clipped": "scaled by their quartiles and clipped",
    "yeo-johnson": "warped (Yeo-Johnson)",
    "arcsinh": "warped (inverse hyperbolic sine)",
}


def scale_target(y: Array) -> TargetScale:
    """Learn mean and standard deviation of finite targets.

    Warns
    -----
    MercerWarning
        If all targets are the same.

    Raises
    ------
    DataError
        If the targets are too large to compute with.
    """
    if np.ptp(y) == 0.0:
        warnings.warn(
            "the target is constant, and so is the prediction", MercerWarning, stacklevel=4
        )
        return TargetScale(float(y[0]), 1.0)
    largest = float(np.abs(y).max())
    centre = float((y / largest).mean()) * largest
    deviations = y / largest - centre / largest
    scale = float(deviations.std()) * largest
    if not (np.isfinite(scale) and scale > 1e-150) or largest > 1e150:
        raise DataError("the target's values are too large or too small; rescale them")
    return TargetScale(centre, scale)


def choose_standardizer(
    X: Array,
    y: Array,
    method: object,
    names: tuple[str, ...],
    settings: SpectralSettings,
    entropy: int,
) -> tuple[Standardizer, tuple[str, ...]]:
    """Learn the standardisation of inputs X (n, d), given standardised targets y (n,).

    Returns
    -------
    Standardizer
    notes : tuple of str
        What was decided, where something was.
    """
    first = fit_standardizer(X, method, names)
    if method != "auto":
        return first, ()
    which = first.is_skewed(X) | first.is_clipped
    if not which.any() or len(X) < _FEWEST_ROWS:
        return first, ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)  # of constant columns, a second time
        plain = fit_standardizer(X, "std", names)
    candidates = {"as they are": plain} | {warp: plain.warped(X, warp, which) for warp in WARPS}
    if first.is_clipped.any():
        candidates["clipped"] = first
    chosen = some_positions(stream(entropy, "rows", 1), len(X), _ROWS)
    evidence = {
        warp: settings.climb(
            stream(entropy, "scales", 1), each.transform(X[chosen]), y[chosen]
        ).log_evidence
        for warp, each in candidates.items()
    }
    best = max(evidence, key=lambda warp: evidence[warp])
    listed = ", ".join(repr(names[j]) for j in np.flatnonzero(which)[:5])
    more = int(which.sum()) - 5
    listed += f" and {more} more" if more > 0 else ""
    return candidates[best], (f"skewed columns, {_HOW[best]} by evidence: {listed}",)
