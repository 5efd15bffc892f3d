"""What an audit of several classes costs and finds: by rows, classes, and how labels are judged.

Classes are the largest of as many smooth functions of six standard normal inputs; 10 % of the
labels are replaced by another. "chains" are default fits, above 5000 rows with 512 features;
"propagation" has sampler="propagation", above 5000 rows with 512 features, of six classes 256,
which is what `mercer audit` runs there. Columns are those of `audit_rows_v2`. A quarter of an hour.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from reproduce.cells import measured
from reproduce.scenarios.audit_rows_v2 import FLIPPED, N_INPUTS, RANK, SEED, audited

CELLS = [
    (1000, 3, "chains"),
    (1000, 3, "propagation"),
    (3000, 3, "propagation"),
    (20_000, 3, "chains"),
    (20_000, 3, "propagation"),
    (20_000, 6, "chains"),
    (20_000, 6, "propagation"),
]


def run() -> dict[str, object]:
    """CPU seconds and what was found, by rows, classes and how."""
    with threadpool_limits(limits=1):
        return {"rows": measured("audit-classes-v1", CELLS, _cell)}


def _cell(n: int, n_classes: int, how: str) -> list[dict[str, Any]]:
    rng = np.random.default_rng([SEED, n, n_classes])
    X = rng.standard_normal((n, N_INPUTS))
    slopes = rng.standard_normal((2, N_INPUTS, n_classes))
    y = (np.sin(X @ slopes[0]) + X @ slopes[1]).argmax(axis=1)
    is_flipped = rng.random(n) < FLIPPED
    y = np.where(is_flipped, (y + rng.integers(1, n_classes, n)) % n_classes, y)
    rank = RANK // 2 if n_classes > 4 and how == "propagation" else RANK
    found = audited(X, y, is_flipped, how, rank)
    return [{"n": n, "classes": n_classes, "how": how, **found}]
