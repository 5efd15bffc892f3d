"""The arguments that both estimators have: their ranges, and what is fitted by them."""

from __future__ import annotations

from typing import Any

from mercer.errors import UsageError
from mercer.estimation.options import check_choice, check_count, check_positive
from mercer.estimation.standardize import METHODS
from mercer.spectral.ridge import RIDGE_LIMITS
from mercer.spectral.settings import SpectralSettings

__all__ = ["check_arguments", "settings_of"]

# Beyond these, nothing is left of the digits of a double.
_RANGES = {
    "concentration": (1e-6, 1e6),
    "frequency_scale": (1e-6, 1e6),
    "ridge_precision": RIDGE_LIMITS,
}
_MANY_ROWS = 5000
# Of the function in all, at least: draws of the coefficients are cheaper than those of frequencies.
_FUNCTIONS = 128


def check_arguments(model: Any) -> None:
    """Raise `UsageError` for the first argument out of its range."""
    if model.n_frequencies != "auto":
        check_count("n_frequencies", model.n_frequencies, 1)
    for name, (lowest, highest) in _RANGES.items():
        value = getattr(model, name)
        if value == "learn":
            continue
        if not lowest <= check_positive(name, value) <= highest:
            raise UsageError(f"{name} must lie between {lowest:g} and {highest:g}; got {value!r}")
    check_choice("proposals", model.proposals, ("pcn", "prior"))
    check_choice("base_measure", model.base_measure, ("diagonal", "full"))
    check_choice("linear_part", model.linear_part, (True, False))
    check_choice("standardize", model.standardize, METHODS)
    if model.kernel_rows is not None:
        check_count("kernel_rows", model.kernel_rows, 2)
    check_count("full_draws", model.full_draws, 1)


def settings_of(model: Any, n_rows: int) -> SpectralSettings:
    """Return what is fitted to so many rows by arguments that have been checked."""
    n_frequencies = model.n_frequencies
    if n_frequencies == "auto":
        n_frequencies = 160 if n_rows < _MANY_ROWS else 384
    n_total = int(model.n_draws) * int(model.n_chains)
    return SpectralSettings(
        n_frequencies=int(n_frequencies),
        concentration=model.concentration,
        proposals=model.proposals,
        base_measure=model.base_measure,
        frequency_scale=model.frequency_scale,
        ridge_precision=model.ridge_precision,
        linear_part=bool(model.linear_part),
        n_deviations=-(-_FUNCTIONS // n_total),
    )
