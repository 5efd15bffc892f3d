"""Barber & Williams, Table 1, crabs: sex from five measurements, 80 training and 120 test rows.

The rows of the published split are not known, and one split is noise: random splits of 40 crabs
of each sex, the same for all methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from reproduce.papers.gp_cells import Repeat, Split, column
from reproduce.papers.gp_methods import (
    AT_MAXIMUM,
    DEFAULT,
    IN_R,
    LINEAR_DISCRIMINANT,
    LOGISTIC,
    METROPOLIS,
    NETWORKS,
    PAPER,
    TABLE_1,
)
from reproduce.papers.gp_part import Part, log_score_notes, run_methods
from reproduce.papers.matrices import named_arrays
from reproduce.papers.reproduction import Claim, Reproduction, Settings, judged, mean_and_error

__all__ = ["half", "random_split", "reproduce"]

Array = NDArray[np.float64]

_N_TEST = 120
_SIMILAR = 1.0  # errors of 120


def reproduce(settings: Settings) -> Reproduction:
    """Run the half of Table 1 that is about crabs.

    Raises
    ------
    StorageError
        If the data set is not at hand.
    """
    part = half(settings)
    return Reproduction(
        name="gp-crabs",
        title="Leptograpsus crabs, test errors of 120",
        source="Barber & Williams (1997), Table 1",
        command="mercer reproduce gp-crabs" + (" --quick" if settings.is_quick else ""),
        claims=part.claims,
        measured=part.errors,
        unit=part.unit,
        published=part.published,
        notes=log_score_notes(part.rows),
    )


def half(settings: Settings) -> Part:
    """Fit every method on every split."""
    n_splits = 3 if settings.is_quick else 20
    repeats = [Repeat([random_split(seed)], seed) for seed in range(n_splits)]
    rows = run_methods("gp-table-1", "crabs", TABLE_1, repeats, settings)
    part = Part(
        title="crabs",
        unit="test errors of 120",
        scale=_N_TEST,
        rows=rows,
        published={
            PAPER: 3.0,
            AT_MAXIMUM: 3.0,
            LOGISTIC: 4.0,
            LINEAR_DISCRIMINANT: 8.0,
            NETWORKS[1]: 3.0,
        },
        not_run={
            "network, two hidden units, predictive approach": 3.0,
            IN_R[0]: 4.0,
            IN_R[1]: 6.0,
        },
    )
    rejected = float(column(rows[PAPER], "rejected").max())
    claims = (*_claims(part.errors, n_splits), *_sampler_claims(part.errors, rejected, settings))
    return replace(part, claims=claims)


def random_split(seed: int) -> Split:
    """Return one of the random splits, five measurements of each crab."""
    X, y = named_arrays("crabs", without=("colour",))
    train, test = _rows(y, seed)
    return Split(X[train], y[train], X[test], y[test])


def _rows(y: NDArray[np.int64], seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """40 rows of each sex to train on, the others to test on."""
    rng = np.random.default_rng(seed)
    train = np.concatenate([rng.permutation(np.flatnonzero(y == label))[:40] for label in (0, 1)])
    return train, np.setdiff1d(np.arange(len(y)), train)


def _claims(errors: Mapping[str, Array], n_splits: int) -> tuple[Claim, ...]:
    described = {
        method: "{:.2f} +- {:.2f}".format(*mean_and_error(values))
        for method, values in errors.items()
    }
    claims = [
        Claim(
            "GP (HMC) makes 3 errors of 120, logistic regression 4, linear discriminant 8",
            "3; 4; 8",
            "; ".join(described[method] for method in (PAPER, LOGISTIC, LINEAR_DISCRIMINANT)),
            "not judged",
            f"one unknown split in the paper, means over {n_splits} random splits here",
        )
    ]
    for method in (PAPER, DEFAULT):
        gap, error = mean_and_error(errors[method] - errors[LOGISTIC])
        claims.append(
            Claim(
                f"{method}: mean errors at most those of logistic regression, same splits",
                "3 against 4",
                f"{described[method]} against {described[LOGISTIC]}, "
                f"difference {gap:+.2f} +- {error:.2f}",
                "holds" if gap <= 0.0 else "fails",
            )
        )
    return tuple(claims)


def _sampler_claims(
    errors: Mapping[str, Array], rejected: float, settings: Settings
) -> tuple[Claim, ...]:
    gap, error = mean_and_error(errors[METROPOLIS] - errors[PAPER])
    return (
        Claim(
            "fewer than 5 % of trajectories are rejected",
            "< 5 %",
            f"{100 * rejected:.1f} % at most",
            "holds" if rejected < 0.05 else "fails",
        ),
        judged(
            settings,
            "Metropolis finds similar results",
            "similar",
            f"{errors[METROPOLIS].mean():.2f} against {errors[PAPER].mean():.2f}, "
            f"difference {gap:+.2f} +- {error:.2f}",
            abs(gap) <= _SIMILAR,
            "similar: within one error of 120, same splits",
        ),
    )
