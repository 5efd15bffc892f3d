"""Single chains of BaNK with the defaults of the estimator, for scenarios that look below it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import BaNKRegressor
from mercer.sampling.sampler import Adaptation
from mercer.spectral.fitting import make_sampler
from mercer.spectral.rows import TrainingRows
from mercer.spectral.sampler import SpectralSampler, StepAdaptation

__all__ = ["spectral_chain", "standardised", "warmed_up"]


def spectral_chain(rows: TrainingRows, n_frequencies: int) -> SpectralSampler:
    """Return the sampler of standardised rows, without the search for where chains start."""
    settings = BaNKRegressor(n_frequencies=n_frequencies)._settings(rows.n_rows)
    some, _ = rows.take(np.arange(min(rows.n_rows, 1000), dtype=np.int64))
    return make_sampler(rows, some, settings.first_scales(rows.n_inputs), settings)


def warmed_up(
    sampler: Any, n_warmup: int, seed: int, adaptation: Adaptation | None = None
) -> tuple[Any, Any]:
    """Take some sweeps that tune the step: the sampler and where it then stands."""
    rng, adaptation = np.random.default_rng(seed), adaptation or StepAdaptation()
    state, learned = sampler.init(rng), adaptation.init(sampler)
    for _ in range(n_warmup):
        state, info = sampler.step(rng, state)
        learned, sampler = adaptation.update(learned, sampler, state, info)
    return adaptation.finish(learned, sampler), state


def standardised(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Subtract the mean of each column and divide by its standard deviation."""
    wide = np.asarray(values, dtype=np.float64)
    return np.asarray((wide - wide.mean(axis=0)) / wide.std(axis=0))
