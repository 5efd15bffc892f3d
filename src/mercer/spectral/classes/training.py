"""From the arguments of `fit` to a result: check, standardise, sample, complete."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import DataError
from mercer.estimation.run import CommonArguments, run_options
from mercer.random import stream
from mercer.spectral.classes.completion import complete_classes
from mercer.spectral.classes.fitting import fit_classes
from mercer.spectral.classes.labels import class_codes
from mercer.spectral.classes.predict import class_draws
from mercer.spectral.classes.results import ClassResult
from mercer.spectral.classes.settings import MOST_CLASSES
from mercer.spectral.rows import MemoryRows, TrainingRows, some_positions
from mercer.spectral.scaling import choose_standardizer
from mercer.spectral.table import check_table
from mercer.spectral.training import LATE, ROWS_OF_SCALES

__all__ = ["fit_class_result"]

# A class says less than a number, and rare ones are what a warp can hide: more rows than for
# numbers decide.
_ROWS_OF_WARP = 6000


def fit_class_result(
    model: Any, X: Any, y: Any, common: CommonArguments, started: float
) -> ClassResult:
    """Fit a classifier whose arguments have been checked; sets what scikit-learn's checks set."""
    table = check_table(model, X, y)
    names = model._labels()
    values, counts = table.labels(MOST_CLASSES)
    if len(values) < 2:
        raise DataError(f"the target holds one class only: {values[0]:g}; two are needed")
    codes = class_codes(values, counts)
    settings = model._class_settings(table.n_rows, len(values))
    options = run_options(common, model, table.digest(), started)
    limit = model.kernel_rows or ROWS_OF_SCALES
    subset = some_positions(stream(options.entropy, "rows", 3), table.n_rows, limit)
    X_some, y_some = table.take(subset)
    y_some = codes.transform(y_some)
    standardizer, notes = choose_standardizer(
        X_some, y_some, model.standardize, names, settings, options.entropy, _ROWS_OF_WARP
    )
    linear = settings.spectral.linear_part
    is_partial = model.kernel_rows is not None and table.n_rows > model.kernel_rows
    rows: TrainingRows
    if is_partial or table.n_rows == len(subset):
        rows = MemoryRows(standardizer.transform(X_some), y_some, linear)
    else:
        rows = table.rows(standardizer, codes, linear)
    fitted = fit_classes(rows, settings, options)
    functions, said = class_draws(fitted.draws), ""
    if is_partial and options.deadline is not None and time.monotonic() > options.deadline:
        said = LATE.format(len(subset), table.n_rows)
    elif is_partial:
        functions, said = complete_classes(
            table.rows(standardizer, codes, linear),
            subset,
            fitted.draws,
            settings,
            full_draws=model.full_draws,
            entropy=options.entropy,
            n_jobs=common.n_jobs,
        )
    return ClassResult(
        classes=_classes(model, values),
        order=codes.order,
        feature_labels=names,
        standardizer=standardizer,
        n_rows=table.n_rows,
        start_scales=fitted.start.scales,
        draws=fitted.draws,
        diagnostics=fitted.diagnostics,
        notes=(*notes, *fitted.notes, *([said] if said else [])),
        mixture=settings.mixture(fitted.start),
        functions=functions,
    )


def _classes(model: Any, values: NDArray[np.float64]) -> NDArray[Any]:
    """Labels in the type in which they were given; those of a source are numbers."""
    if hasattr(model, "classes_"):
        return np.asarray(model.classes_)
    whole = values.astype(np.int64)
    return whole if np.array_equal(whole, values) else values
