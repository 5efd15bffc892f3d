"""From standardised rows and settings to the draws of BaNK."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer.posterior.diagnostics import Diagnostics, diagnose
from mercer.posterior.draws import Draws
from mercer.random import stream
from mercer.sampling.driver import Labels, RunOptions, sample
from mercer.sampling.progress import tell
from mercer.spectral.compilation import compile_loops
from mercer.spectral.probe import Probe
from mercer.spectral.proposals import ProposalTuning, StepAdaptation
from mercer.spectral.rows import MemoryRows, TrainingRows, some_positions
from mercer.spectral.sampler import SpectralSampler
from mercer.spectral.settings import SpectralSettings
from mercer.spectral.start import Scales

__all__ = [
    "FIRST_STEP",
    "ROWS_OF_START",
    "FittedSpectral",
    "few_rows",
    "fit_spectral",
    "make_probe",
    "make_sampler",
]

Array = NDArray[np.float64]

ROWS_OF_START = 2000
FIRST_STEP = 0.5
_PROBE_ROWS, _PROBE_LAGS = 20, 10
_MONITORED = ("log_evidence", "noise_std", "n_components", "kernel", "function")
# Warm-up first looks at an eighth of the rows, then a quarter, then a half, for this share of its
# sweeps in equal parts; not at fewer rows than these, nor at more than fit into memory easily.
_PARTS, _SHARE_OF_FEW = (8, 4, 2), 0.7
_FEWEST_ROWS, _MOST_ROWS_IN_MEMORY = 1500, 200_000
_SHORTEST_WARMUP = 20


@dataclass(frozen=True)
class FittedSpectral:
    """What a fit leaves behind; ``start`` says where chains started."""

    start: Scales
    draws: Draws
    diagnostics: Diagnostics
    notes: tuple[str, ...]


def fit_spectral(
    rows: TrainingRows, settings: SpectralSettings, options: RunOptions
) -> FittedSpectral:
    """Draw frequencies and coefficients given standardised rows."""
    compile_loops(lambda line: tell(line, options.progress))
    with threadpool_limits(limits=1, user_api="blas"):
        rng = stream(options.entropy, "rows")
        X, y = rows.take(some_positions(rng, rows.n_rows, ROWS_OF_START))
        found = settings.first_scales(rows.n_inputs)
        if settings.is_scale_learned:
            found = settings.climb(stream(options.entropy, "scales"), X, y)
    few, more_rows_after = few_rows(rows, settings.proposals, options)
    sampler = make_sampler(rows, X, found, settings, few)
    adaptation = StepAdaptation(more_rows_after) if settings.proposals == "pcn" else None
    sampled = sample(sampler, options, adaptation=adaptation, labels=Labels({}, _MONITORED))
    return FittedSpectral(found, sampled.draws, diagnose(sampled.draws), sampled.notes)


def few_rows(
    rows: TrainingRows, proposals: str, options: RunOptions
) -> tuple[tuple[TrainingRows, ...], tuple[int, ...]]:
    """Take the parts of the rows that warm-up looks at first, and say until which sweep."""
    sizes = [rows.n_rows // part for part in _PARTS]
    sizes = [n for n in sizes if _FEWEST_ROWS <= n <= _MOST_ROWS_IN_MEMORY]
    if proposals != "pcn" or options.n_warmup < _SHORTEST_WARMUP:
        sizes = []
    few: list[TrainingRows] = []
    for k, n in enumerate(sizes):
        rng = stream(options.entropy, "rows", 10 + k)
        chosen = some_positions(rng, rows.n_rows, n)
        few.append(MemoryRows(*rows.take(chosen), rows.has_linear_part))
    each = int(_SHARE_OF_FEW * options.n_warmup / max(len(few), 1))
    return tuple(few), tuple(each * (k + 1) for k in range(len(few)))


def make_sampler(
    rows: TrainingRows,
    some_rows: Array,
    found: Scales,
    settings: SpectralSettings,
    few: tuple[TrainingRows, ...] = (),
) -> SpectralSampler:
    """Put the sampler together; it looks at the function at some of ``some_rows``."""
    d = rows.n_inputs
    is_tuned = settings.proposals == "pcn"
    return SpectralSampler(
        rows=rows,
        model=settings.model(rows.n_rows, d),
        mixture=settings.mixture(found),
        start=settings.start(found),
        n_frequencies=settings.n_frequencies,
        n_deviations=settings.n_deviations,
        tuning=ProposalTuning(FIRST_STEP if is_tuned else 1.0),
        probe=make_probe(some_rows, settings.linear_part),
        few=few,
    )


def make_probe(X: Array, has_linear_part: bool) -> Probe:
    """Look at the function at rows, and at the kernel at differences between rows.

    The differences are those of neighbours in the order of the rows, made shorter and shorter: at
    those of ordinary pairs a kernel of many inputs is all but 0.
    """
    n = len(X)
    first = np.arange(_PROBE_LAGS) % n
    shrink = 2.0 ** (-0.4 * np.arange(_PROBE_LAGS))
    lags = (X[first] - X[(first + n // 2) % n]) * shrink[:, np.newaxis]
    return Probe(lags, X[: min(n, _PROBE_ROWS)], has_linear_part)
