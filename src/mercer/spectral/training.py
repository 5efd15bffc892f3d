"""From the arguments of `fit` to a result: check, standardise, sample, complete."""

from __future__ import annotations

import time
from typing import Any

from mercer.estimation.run import CommonArguments, run_options
from mercer.estimation.target_scale import scale_target
from mercer.random import stream
from mercer.sampling.driver import RunOptions
from mercer.spectral.completion import complete
from mercer.spectral.fitting import fit_spectral
from mercer.spectral.predict import function_draws
from mercer.spectral.results import Result
from mercer.spectral.rows import MemoryRows, TrainingRows, some_positions
from mercer.spectral.scaling import choose_standardizer
from mercer.spectral.table import check_table

__all__ = ["LATE", "ROWS_OF_SCALES", "fit_result"]

# Rows from which the standardisation is learned, where all rows are on a disk and more than these.
ROWS_OF_SCALES = 200_000
LATE = "out of time before the pass over all rows: all was learned from {} of {} rows"


def fit_result(model: Any, X: Any, y: Any, common: CommonArguments, started: float) -> Result:
    """Fit an estimator whose arguments have been checked; sets what scikit-learn's checks set."""
    table = check_table(model, X, y)
    names = model._labels()
    settings = model._settings(table.n_rows)
    options = run_options(common, model, table.digest(), started)
    limit = model.kernel_rows or ROWS_OF_SCALES
    subset = some_positions(stream(options.entropy, "rows", 3), table.n_rows, limit)
    X_some, y_some = table.take(subset)
    target = scale_target(y_some)
    y_some = target.transform(y_some)
    standardizer, notes = choose_standardizer(
        X_some, y_some, model.standardize, names, settings, options.entropy
    )
    is_partial = model.kernel_rows is not None and table.n_rows > model.kernel_rows
    rows: TrainingRows
    if is_partial or table.n_rows == len(subset):
        rows = MemoryRows(standardizer.transform(X_some), y_some, settings.linear_part)
    else:
        rows = table.rows(standardizer, target, settings.linear_part)
    fitted = fit_spectral(rows, settings, options)
    functions, said = function_draws(fitted.draws), ""
    if is_partial and _is_late(options):
        said = LATE.format(len(subset), table.n_rows)
    elif is_partial:
        everything = table.rows(standardizer, target, settings.linear_part)
        functions, said = complete(
            everything,
            subset,
            fitted.draws,
            settings,
            full_draws=model.full_draws,
            entropy=options.entropy,
            n_jobs=common.n_jobs,
        )
    return Result(
        feature_labels=names,
        standardizer=standardizer,
        target_centre=target.centre,
        target_scale=target.scale,
        n_rows=table.n_rows,
        start_scales=fitted.start.scales,
        draws=fitted.draws,
        diagnostics=fitted.diagnostics,
        notes=(*notes, *fitted.notes, *([said] if said else [])),
        mixture=settings.mixture(fitted.start),
        functions=functions,
    )


def _is_late(options: RunOptions) -> bool:
    return options.deadline is not None and time.monotonic() > options.deadline
