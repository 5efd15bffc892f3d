"""What a fit compared and what came of it: a table, a sentence, the evidence of noise rates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.posterior.table import Table, finite_or_none
from mercer.sphere.evidence import EvidenceCurve
from mercer.sphere.fitting import FittedSphere

__all__ = [
    "COMPARED",
    "CURVE_RATES",
    "comparison_table",
    "evidence_curve",
    "mean_rates",
    "say_comparison",
]

Array = NDArray[np.float64]

# Models whose shares of wrong labels differ by more are worth a warning.
_RATES_DIFFER = 0.03

CURVE_RATES = np.concatenate([[0.001, 0.002, 0.005], np.linspace(0.01, 0.5, 50)])

COMPARED = (
    "kernel", "lengthscale", "nugget", "log_evidence", "standard_error", "n_rows", "share",
)  # fmt: skip


def comparison_table(fitted: FittedSphere) -> Table:
    """One row for each model that was compared, the best first; share is of the draws."""
    model = fitted.draws.flat("model")
    share = {id(m): float(np.mean(model == j)) for j, m in enumerate(fitted.models)}
    rows = []
    for one in fitted.compared:
        c = one.candidate
        rows.append(
            (c.kernel, c.lengthscale, c.nugget, finite_or_none(one.log_evidence),
             finite_or_none(one.standard_error), one.n_rows, share.get(id(c), 0.0))
        )  # fmt: skip
    return Table(COMPARED, tuple(rows))


def say_comparison(fitted: FittedSphere) -> tuple[str, ...]:
    """Say in a sentence what was compared and what the draws come from."""
    if len(fitted.compared) < 2:
        return ()
    model = fitted.draws.flat("model")
    parts = []
    for j, one in enumerate(fitted.models):
        scale = "" if one.lengthscale is None else f" lengthscale {one.lengthscale:.3g}"
        share = np.mean(model == j)
        parts.append(f"{one.kernel}{scale} nugget {one.nugget:.3g} ({share:.0%})")
    said = f"by evidence, of {len(fitted.compared)} models: {', '.join(parts)}"
    return (said, *_say_where_rates_differ(fitted, model))


def _say_where_rates_differ(fitted: FittedSphere, model: NDArray[Any]) -> tuple[str, ...]:
    """Warn where the nugget, which takes overlap, decides how many labels are said to be wrong."""
    if "is_wrong" not in fitted.draws.variables:
        return ()
    share = fitted.draws.flat("is_wrong").mean(axis=1)
    by_nugget = {
        nugget: float(share[np.isin(model, used)].mean())
        for nugget in sorted({one.nugget for one in fitted.models})
        if (used := [j for j, one in enumerate(fitted.models) if one.nugget == nugget])
    }
    high = max(by_nugget, key=lambda nugget: by_nugget[nugget])
    low = min(by_nugget, key=lambda nugget: by_nugget[nugget])
    if by_nugget[high] - by_nugget[low] < _RATES_DIFFER:
        return ()
    return (
        "overlap and wrong labels are hard to tell apart here: "
        f"{by_nugget[high]:.0%} of the labels are wrong with nugget {high:.3g}, "
        f"{by_nugget[low]:.0%} with nugget {low:.3g}; a noise_rate or a nugget that is known helps",
    )


def evidence_curve(fitted: FittedSphere) -> EvidenceCurve | None:
    """Evidence of noise rates for the best model; None where there is no law of errors."""
    if not fitted.compared or fitted.compared[0].law is None:
        return None
    return fitted.compared[0].law.curve(CURVE_RATES)


def mean_rates(rates: Array, classes: NDArray[Any]) -> float | dict[Any, float]:
    """Posterior mean of the noise rate, by true class where the draws (k, C[, C]) of it are."""
    means = rates.mean(axis=0)
    if means.ndim == 2:
        means = 1.0 - means.diagonal()
    if len(means) == 1:
        return float(means[0])
    return dict(zip(classes.tolist(), means.tolist(), strict=True))
