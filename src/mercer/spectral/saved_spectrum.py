"""What the files of both estimators hold of spectra, checked when they are read."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from mercer.estimation.model_file import ModelParts
from mercer.estimation.saved import is_finite, require
from mercer.posterior.draws import Draws
from mercer.posterior.schema import Array, Fields, Whole, check_arrays

__all__ = ["check_numbers", "check_scales", "check_spectra"]

_LARGEST_FREQUENCY = 1e50  # radians per standardised unit
_FIELDS = Fields({"n_training_rows": Whole(1)}, is_closed=False)
_START = {"start_scales": Array(("d",), least=0.0, most=_LARGEST_FREQUENCY, is_open=True)}


def check_scales(parts: ModelParts, d: int) -> NDArray[np.float64]:
    """Return the scales of the start, shape (d,)."""
    _FIELDS.check(parts.fields, "fields", {})
    check_arrays(parts.arrays, _START, {"d": d})
    return np.asarray(parts.arrays["start_scales"])


def check_numbers(draws: Draws, names: Iterable[str]) -> None:
    """Raise ValueError unless there are finite draws of all these."""
    missing = [name for name in (*names, "assignment") if name not in draws.variables]
    require(not missing, f"draws of {', '.join(missing)}")
    for name in names:
        values = draws.variables[name]
        require(values.dtype == np.float64 and is_finite(values), f"draws of {name}")


def check_spectra(draws: Draws, d: int, n_scales: int) -> int:
    """Check frequencies of d inputs and their mixtures; return how many frequencies there are."""
    W, Z = draws.variables["frequencies"], draws.variables["assignment"]
    require(W.ndim == 4 and W.shape[2] > 0 and W.shape[3] == d, "draws of frequencies")
    require(bool((np.abs(W) <= _LARGEST_FREQUENCY).all()), "draws of frequencies")
    m = int(W.shape[2])
    for name in ("concentration", "base_scale"):
        require(bool((draws.variables[name] > 0.0).all()), f"draws of {name}")
    require(draws.variables["concentration"].ndim == 2, "draws of concentration")
    require(draws.variables["base_scale"].shape[2:] == (n_scales,), "draws of base_scale")
    is_right = Z.dtype == np.int64 and Z.shape[2:] == (m,) and Z.min() >= 0 and Z.max() < m
    require(bool(is_right), "draws of assignment")
    return m
