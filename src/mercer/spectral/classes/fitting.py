"""From standardised rows with places of classes to the draws of BaNK."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer.posterior.diagnostics import diagnose
from mercer.posterior.draws import Draws
from mercer.random import stream
from mercer.sampling.driver import Labels, RunOptions, sample
from mercer.sampling.progress import tell
from mercer.spectral.classes.adaptation import ClassAdaptation
from mercer.spectral.classes.ascent import Ascent, prepare_ascent
from mercer.spectral.classes.chain import ClassChain
from mercer.spectral.classes.compilation import compile_loops
from mercer.spectral.classes.settings import SAMPLERS, ClassSettings
from mercer.spectral.classes.state import ClassTuning
from mercer.spectral.fitting import (
    FIRST_STEP,
    ROWS_OF_START,
    FittedSpectral,
    make_probe,
)
from mercer.spectral.rows import TrainingRows, some_positions
from mercer.spectral.start import Scales

__all__ = ["fit_classes", "make_class_sampler"]

Array = NDArray[np.float64]

# Share of trajectories whose end is taken, below which they are not worth their time.
_FEW_ACCEPTED = 0.2
_MONITORED = ("log_likelihood", "n_components", "kernel", "function")


def fit_classes(rows: TrainingRows, settings: ClassSettings, options: RunOptions) -> FittedSpectral:
    """Draw frequencies and coefficients given standardised rows."""
    compile_loops(lambda line: tell(line, options.progress))
    common = settings.spectral
    with threadpool_limits(limits=1, user_api="blas"):
        rng = stream(options.entropy, "rows")
        X, codes = rows.take(some_positions(rng, rows.n_rows, ROWS_OF_START))
        found = common.first_scales(rows.n_inputs)
        if common.is_scale_learned:
            found = settings.climb(stream(options.entropy, "scales"), X, codes)
    ascent = None
    if common.proposals == "pcn":
        precisions = settings.precisions_of_ascent(rows.n_inputs)
        ascent = prepare_ascent(stream(options.entropy, "rows", 4), rows, precisions)
    sampler = make_class_sampler(rows, X, found, settings, ascent)
    adaptation = ClassAdaptation(common.proposals == "pcn")
    sampled = sample(sampler, options, adaptation=adaptation, labels=Labels({}, _MONITORED))
    notes = (*sampled.notes, *_words_of_trajectories(sampled.draws))
    return FittedSpectral(found, sampled.draws, diagnose(sampled.draws), notes)


def _words_of_trajectories(draws: Draws) -> tuple[str, ...]:
    """Say how many chains hardly ever take the end of a trajectory."""
    rates = draws.stats.get("trajectory_acceptance")
    if rates is None:
        return ()
    n_still = int((rates.mean(axis=1) < _FEW_ACCEPTED).sum())
    if n_still == 0:
        return ()
    return (
        f"in {n_still} of {len(rates)} chains trajectories were mostly refused: a longer n_warmup "
        "finds shorter steps, n_leapfrog=0 saves the time",
    )


def make_class_sampler(
    rows: TrainingRows,
    some_rows: Array,
    found: Scales,
    settings: ClassSettings,
    ascent: Ascent | None = None,
) -> ClassChain:
    """Put the sampler together; it looks at the functions at some of ``some_rows``."""
    common = settings.spectral
    return SAMPLERS[settings.sampler](
        rows=rows,
        n_sticks=settings.n_sticks,
        model=settings.model(rows.n_inputs),
        mixture=settings.mixture(found),
        start=settings.start(found),
        n_frequencies=common.n_frequencies,
        n_deviations=common.n_deviations,
        tuning=ClassTuning(FIRST_STEP if common.proposals == "pcn" else 1.0),
        probe=make_probe(some_rows, common.linear_part),
        ascent=ascent,
        n_leapfrog=settings.n_leapfrog,
    )
