"""How inputs and target are standardised: which columns are warped, the evidence decides.

Where a column is skewed there are several ways to take it: as it is, clipped (if it holds
artefacts), by Yeo-Johnson's warp, or by the inverse hyperbolic sine of its robustly scaled values,
a line up to a knee and a logarithm beyond. Each is tried on all skewed columns at once, with a few
steps up the evidence on some rows (`mercer.spectral.start`), and the highest evidence of the
targets is taken.
"""

from __future__ import annotations

import warnings
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.errors import MercerWarning
from mercer.estimation.standardize import Standardizer, fit_standardizer
from mercer.random import stream
from mercer.spectral.rows import some_positions
from mercer.spectral.start import Scales

__all__ = ["choose_standardizer"]

Array = NDArray[np.float64]

_ROWS = 2000
_FEWEST_ROWS = 20  # below, no skewness is worth the name
# Of the inverse hyperbolic sine, in interquartile ranges. Thresholds may lie close together where
# most values are: the sharper ones are for that. Few rows do not show it: the evidence, of classes
# as if they were numbers, then prefers them where they predict worse.
_KNEE, _SHARPER_KNEES = 1.0, (0.3, 0.1)
_ROWS_OF_SHARPER_KNEES = 3000


class _Climber(Protocol):
    """What takes a few steps up the evidence of some rows."""

    def climb(self, rng: np.random.Generator, X: Array, y: Array) -> Scales: ...


def choose_standardizer(
    X: Array,
    y: Array,
    method: object,
    names: tuple[str, ...],
    settings: _Climber,
    entropy: int,
    most_rows: int = _ROWS,
) -> tuple[Standardizer, tuple[str, ...]]:
    """Learn the standardisation of inputs X (n, d), given standardised targets y (n,).

    The evidence is that of ``most_rows`` rows at most.

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
    candidates = _candidates(X, first, plain, which)
    chosen = some_positions(stream(entropy, "rows", 1), len(X), most_rows)
    evidence = {
        how: settings.climb(
            stream(entropy, "scales", 1), each.transform(X[chosen]), y[chosen]
        ).log_evidence
        for how, each in candidates.items()
    }
    best = max(evidence, key=lambda how: evidence[how])
    listed = ", ".join(repr(names[j]) for j in np.flatnonzero(which)[:5])
    more = int(which.sum()) - 5
    listed += f" and {more} more" if more > 0 else ""
    return candidates[best], (f"skewed columns, {best} by evidence: {listed}",)


def _candidates(
    X: Array, first: Standardizer, plain: Standardizer, which: NDArray[np.bool_]
) -> dict[str, Standardizer]:
    """Standardisations of training rows X (n, d) to choose among, by what they do.

    Parameters
    ----------
    first, plain : Standardizer
        The one that may clip columns, and the one that does not.
    which : ndarray of shape (d,)
        The columns to warp.
    """
    found = {
        "taken as they are": plain,
        "warped (Yeo-Johnson)": plain.warped(X, "yeo-johnson", which),
    }
    sharper = _SHARPER_KNEES if len(X) >= _ROWS_OF_SHARPER_KNEES else ()
    for knee in (_KNEE, *sharper):
        where = "" if knee == _KNEE else f", knee at {knee:g} interquartile ranges"
        how = f"warped (inverse hyperbolic sine{where})"
        found[how] = plain.warped(X, "arcsinh", which, knee)
    if first.is_clipped.any():
        found["scaled by their quartiles and clipped"] = first
    return found
