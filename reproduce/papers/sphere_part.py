"""What the parts of `sphere-claims` hand back, and the spaces that they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from mercer.kernels.names import kernel_named
from mercer.sphere.space import KernelSpace, fit_covariance, median_distance
from reproduce.papers.reproduction import Claim, is_clearly_below_zero, mean_and_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Part", "correlation_claim", "rank_correlation", "space_of"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Part:
    """Some of the claims, with their panels of the picture and their test errors in per cent."""

    claims: tuple[Claim, ...]
    panels: tuple[Callable[[Axes], None], ...]
    measured: Mapping[str, Array] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def space_of(kernel: str, factor: float | None, X: Array, constant: float) -> KernelSpace:
    """Span of the rows X; the length scale is ``factor`` median distances between them."""
    lengthscale = None if factor is None else factor * median_distance(X)
    return KernelSpace(fit_covariance(kernel_named(kernel), lengthscale, X, constant), X, 0.0)


def rank_correlation(x: Array, y: Array) -> float:
    """Spearman's, of the pairs without a nan."""
    is_known = np.isfinite(x) & np.isfinite(y)
    return float(spearmanr(x[is_known], y[is_known]).statistic)


def correlation_claim(words: str, paper: str, values: Array, sign: int, note: str) -> Claim:
    """A claim that rank correlations, one a data set, have a sign."""
    mean, error = mean_and_error(values)
    is_clear = is_clearly_below_zero(-sign * values)
    is_undecided = not is_clear and sign * mean > 0.0
    return Claim(
        words,
        paper,
        f"rank correlation {mean:+.2f} +- {error:.2f}",
        "holds" if is_clear else "not judged" if is_undecided else "fails",
        note,
    )
