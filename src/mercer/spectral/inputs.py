"""Which inputs the learned kernel depends on: how fast it falls along each of them.

Along input l alone the kernel of M frequencies is k(t) = (1/M) sum_j cos(w_jl t). On average over
lags t in [0, 1], in standardised units, it has fallen by

    1 - (1/M) sum_j sin(w_jl) / w_jl,

which, unlike 1 - k(1), no period hides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["InputScales", "input_scales"]

Array = NDArray[np.float64]

_MOST_DRAWS: Final = 200
# A kernel is looked at over so many standardised units, or over so many periods of its highest
# frequencies if these are shorter: then it has gone where it goes.
_LONGEST: Final = 3.0
_PERIODS: Final = 4.0
_HIGH: Final = 0.9


@dataclass(frozen=True, eq=False)
class InputScales:
    """How the kernel depends on each input, over draws.

    Attributes
    ----------
    falls : ndarray of shape (S, d)
        Mean fall of the kernel over lags up to one standardised unit: about 0 where it does not
        depend on the input, about 1 where it is gone long before.
    frequency_scales : ndarray of shape (S, d)
        Root mean square of the frequencies, in radians per standardised unit.
    longest_lags : ndarray of shape (d,)
        Lags up to which it is worth looking at, in standardised units.
    is_constant : ndarray of shape (d,)
        Inputs that were the same in all training rows: their frequencies mean nothing.
    """

    falls: Array
    frequency_scales: Array
    longest_lags: Array
    is_constant: NDArray[np.bool_]

    @property
    def order(self) -> tuple[int, ...]:
        """Inputs that are not constant, the one along which the kernel falls fastest first."""
        order = np.argsort(-self.falls.mean(axis=0), kind="stable")
        return tuple(int(j) for j in order if not self.is_constant[j])


def input_scales(model: Any) -> InputScales:
    """Look at the frequencies of a fitted BaNK model, of at most 200 of its draws."""
    W = model.posterior_.flat("frequencies")
    chosen = np.unique(np.linspace(0, len(W) - 1, min(len(W), _MOST_DRAWS)).astype(int))
    falls = [1.0 - np.sinc(W[i] / np.pi).mean(axis=0) for i in chosen]
    squares = [np.square(W[i]).mean(axis=0) for i in chosen]
    high = np.quantile(np.abs(W[chosen]).reshape(-1, W.shape[2]), _HIGH, axis=0)
    periods = 2.0 * math.pi / np.maximum(high, 1e-100)
    return InputScales(
        falls=np.stack(falls),
        frequency_scales=np.sqrt(np.stack(squares)),
        longest_lags=np.minimum(_LONGEST, _PERIODS * periods),
        is_constant=np.asarray(model.standardizer_.scale == 0.0),
    )
