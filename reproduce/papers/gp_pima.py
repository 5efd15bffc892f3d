"""Barber & Williams, Table 1, Pima: Ripley's split, 200 training and 332 test rows.

The split is the one of the paper; what is random is repeated with several seeds.
"""

from __future__ import annotations

from dataclasses import replace

from reproduce.papers.gp_cells import Repeat, Split, column
from reproduce.papers.gp_methods import (
    AT_MAXIMUM,
    DEFAULT,
    IN_R,
    LINEAR_DISCRIMINANT,
    LOGISTIC,
    MIXTURE,
    NETWORKS,
    PAPER,
    TABLE_1,
)
from reproduce.papers.gp_part import Part, log_score_notes, run_methods
from reproduce.papers.matrices import named_arrays
from reproduce.papers.reproduction import Claim, Reproduction, Settings

__all__ = ["half", "reproduce", "split_of_rows"]

_N_TEST = 332
_LIMIT_LOG_SCORE = 0.44


def reproduce(settings: Settings) -> Reproduction:
    """Run the half of Table 1 that is about Pima.

    Raises
    ------
    StorageError
        If the data sets are not at hand.
    """
    part = half(settings)
    return Reproduction(
        name="gp-pima",
        title="Pima Indians diabetes, test errors of 332",
        source="Barber & Williams (1997), Table 1",
        command="mercer reproduce gp-pima" + (" --quick" if settings.is_quick else ""),
        claims=part.claims,
        measured=part.errors,
        unit=part.unit,
        published=part.published,
        notes=log_score_notes(part.rows),
    )


def half(settings: Settings) -> Part:
    """Fit every method, the random ones with several seeds."""
    splits = [split_of_rows()]
    repeats = [Repeat(splits, seed) for seed in range(2 if settings.is_quick else 5)]
    rows = run_methods("gp-table-1", "pima", TABLE_1, repeats, settings)
    part = Part(
        title="Pima",
        unit="test errors of 332",
        scale=_N_TEST,
        rows=rows,
        published={
            PAPER: 68.0,
            AT_MAXIMUM: 69.0,
            LOGISTIC: 66.0,
            LINEAR_DISCRIMINANT: 67.0,
            MIXTURE: 64.0,
            NETWORKS[0]: 75.0,
        },
        not_run=dict.fromkeys(IN_R, 75.0),
    )
    return replace(part, claims=_claims(part))


def split_of_rows() -> Split:
    """Ripley's split."""
    X, y = named_arrays("pima_tr")
    X_test, y_test = named_arrays("pima_te")
    return Split(X, y, X_test, y_test)


def _claims(part: Part) -> tuple[Claim, ...]:
    hmc, at_maximum = part.errors[PAPER], part.errors[AT_MAXIMUM][0]
    rejected = column(part.rows[PAPER], "rejected").max()
    default = column(part.rows[DEFAULT], "log_score").mean()
    return (
        Claim(
            "GP (HMC) makes no more errors than published, mean over seeds",
            "68",
            f"{hmc.mean():.1f} ({', '.join(f'{value:.0f}' for value in hmc)})",
            "holds" if hmc.mean() <= 68 else "fails",
        ),
        Claim(
            "GP (MAP) makes no more errors than published",
            "69",
            f"{at_maximum:.0f}",
            "holds" if at_maximum <= 69 else "fails",
        ),
        Claim(
            "fewer than 5 % of trajectories are rejected",
            "< 5 %",
            f"{100 * rejected:.1f} % at most",
            "holds" if rejected < 0.05 else "fails",
        ),
        Claim(
            f"the default's log score is at most {_LIMIT_LOG_SCORE}",
            "-",
            f"{default:.4f}",
            "holds" if default <= _LIMIT_LOG_SCORE else "fails",
            "a promise of mercer, not of the paper",
        ),
    )
