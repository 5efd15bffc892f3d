"""Many runs of the filter, and their evidence and cells against enumeration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.basis.filter import Filter
from mercer.basis.model import Schedule
from support.basis_cases import make_filter, masks_of, plain_design, problem, run
from support.basis_enumeration import Enumerated
from support.statistics import largest_z, z_limit

# The standard deviation of Zhat / Z is .08 to .5 below (.13 in most): limits are 5.1 standard
# errors, so that N_RUNS see 13 % nearly always in most cases.
N_RUNS, MORE_RUNS = 100, 3000
LEAST_PROBABILITY = 0.02
_LATE = {"n_redraws": 1, "n_changes": 2, "n_eager": 2, "block": 2, "later_fraction": 0.5}

_EVICTIONS = {"n_slots": 3, "slots": (0, 1, 2, 1, None, 0, 2, 1)}

#: Name -> (rows, settings of the filter, dimension).
CASES: dict[str, tuple[int, dict, int]] = {
    "integrated": (6, {}, 1),
    "sampled": (6, {"variances": "sampled"}, 1),
    "linear part, two scalings": (
        5,
        {"has_linear_part": True, "scalings": ((1.0, 1.0), (0.3, 1.5)), "scheme": "multinomial"},
        2,
    ),
    "scalings shaped by rows": (
        6,
        {
            "scalings": ((1.0, 1.0), (0.3, 1.5)),
            "log_prior": (-0.7, -2.5),
            "n_shaping": 4,
            "largest": 2,
        },
        2,
    ),
    "blocks": (7, {"schedule": Schedule(**_LATE), "largest": 2}, 1),
    "poisson, cut": (6, {"largest": 2, "expected": 4.0}, 1),
    "negative binomial, cut": (6, {"largest": 2, "kind": "negative_binomial"}, 1),
    "evictions": (8, {"largest": 2, **_EVICTIONS}, 1),
    "evictions, sampled": (8, {"largest": 3, **_EVICTIONS, "variances": "sampled"}, 1),
    "evictions, rows gone": (
        8,
        {
            "largest": 2,
            **_EVICTIONS,
            "schedule": Schedule(n_redraws=1, n_changes=2, n_buffered=3),
        },
        1,
    ),
    "forgetting": (6, {"retention": 0.8}, 1),
    "forgetting, all else": (
        8,
        {
            "retention": 0.8,
            "largest": 2,
            **_EVICTIONS,
            "schedule": Schedule(n_buffered=3, **_LATE),
        },
        1,
    ),
}


@dataclass(frozen=True)
class Estimates:
    """Of many runs: estimated over true evidence (n,), and the same of each cell (n, L 2^r)."""

    ratios: np.ndarray
    cells: np.ndarray


def case(name: str) -> tuple[Filter, np.ndarray, np.ndarray]:
    """The filter of a case and its rows."""
    n, settings, d = CASES[name]
    return make_filter(**settings), *problem(n, d)


def truth(filter_: Filter, X: np.ndarray, y: np.ndarray) -> Enumerated:
    """The posterior given the candidates that are held in the end."""
    return Enumerated(filter_, plain_design(filter_, X), y)


def estimates(
    filter_: Filter, X: np.ndarray, y: np.ndarray, exact: Enumerated, n_runs: int, seed: int = 0
) -> Estimates:
    """Run the filter many times."""
    rng = np.random.default_rng(seed)
    L, n_sets = exact.probability.shape
    ratios, cells = np.empty(n_runs), np.empty((n_runs, L * n_sets))
    for i in range(n_runs):
        state = run(filter_, X, y, rng)
        particles = state.particles
        which = particles.level * n_sets + masks_of(particles, filter_.grid.n_mean)
        W = np.exp(particles.log_weight)
        ratios[i] = np.exp(state.log_evidence - exact.log_evidence)
        cells[i] = ratios[i] * np.bincount(which, W, L * n_sets)
    return Estimates(ratios, cells)


def evidence_z(found: Estimates) -> float:
    """|t| of E[Zhat] / Z = 1, over its limit."""
    n = len(found.ratios)
    return largest_z(found.ratios[:, None], np.ones(1), n) / z_limit(n, 1)


def cells_z(found: Estimates, exact: Enumerated) -> float:
    """Largest |t| of the cells that are not too rare, over its limit."""
    p, n = exact.probability.ravel(), len(found.ratios)
    common = p > LEAST_PROBABILITY
    return largest_z(found.cells[:, common], p[common], n) / z_limit(n, int(common.sum()))


def excess(name: str, n_runs: int, seed: int = 0) -> tuple[float, float]:
    """|t| of the evidence and the largest of the cells, each over its limit."""
    filter_, X, y = case(name)
    exact = truth(filter_, X, y)
    found = estimates(filter_, X, y, exact, n_runs, seed)
    return evidence_z(found), cells_z(found, exact)
