"""MARS and projection pursuit of R on the rows of Barber & Williams' tables; needs ``MERCER_DATA``.

The cells that Tables 1 and 2 have where ``Rscript`` is at hand, without the rest of them.
"""

from __future__ import annotations

import subprocess

from reproduce.papers.gp_cells import Repeat, column
from reproduce.papers.gp_crabs import random_split
from reproduce.papers.gp_glass import glass_repeats
from reproduce.papers.gp_methods import TABLE_1
from reproduce.papers.gp_part import run_methods
from reproduce.papers.gp_pima import split_of_rows
from reproduce.papers.gp_rivals import has_r
from reproduce.papers.gp_table_2 import METHODS
from reproduce.papers.reproduction import Settings, mean_and_error

SEED = 0
NEEDS_DATA = True
_VERSIONS = 'cat(R.version.string, "earth", as.character(packageVersion("earth")))'


def run() -> dict[str, object]:
    """Errors and log scores: Pima once, crabs on 20 splits, glass in five shuffles of ten folds."""
    if not has_r():
        raise FileNotFoundError("there is no Rscript with the package earth")
    said = subprocess.run(["Rscript", "-e", _VERSIONS], capture_output=True, text=True, check=True)
    first = [method for method in TABLE_1 if method.needs_r]
    second = [method for method in METHODS if method.needs_r]
    crabs = [Repeat([random_split(seed)], seed) for seed in range(20)]
    parts = {
        "Pima, errors of 332": (first, [Repeat([split_of_rows()], 0)], 332.0, (75.0, 75.0)),
        "crabs, errors of 120": (first, crabs, 120.0, (4.0, 6.0)),
        "glass, errors in %": (second, glass_repeats(5, 10), 100.0, (32.2, 35.0)),
    }
    rows = []
    for data, (methods, repeats, scale, published) in parts.items():
        found = run_methods("gp-r-rows", data, methods, repeats, Settings(n_jobs=1))
        for (name, figures), paper in zip(found.items(), published, strict=True):
            mean, error = mean_and_error(scale * column(figures, "error_rate"))
            score = float(column(figures, "log_score").mean())
            rows.append({
                "data": data, "method": name, "repeats": len(figures), "errors": round(mean, 3),
                "standard_error": round(error, 3), "log_score": round(score, 4), "published": paper,
            })  # fmt: skip
    return {"r": said.stdout, "rows": rows}
