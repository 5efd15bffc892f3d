"""Barber & Williams, Table 1: test errors on Pima and crabs, and what is said of the chains.

The methods of the table that scikit-learn or R has are run on the same rows. With ``--out`` every
method on every repeat is kept in a folder beside the page; remove it to run all of them again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduce.papers import gp_crabs, gp_pima
from reproduce.papers.gp_part import Part, figures_table
from reproduce.papers.gp_race import race, race_claims, race_table
from reproduce.papers.reproduction import Claim, Reproduction, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["reproduce"]

_NOTES = (
    "Pima: one split, that of the paper; repeats are seeds. Crabs: repeats are random splits, "
    "since the paper's is not known.",
    "Metropolis: the paper's prior, one chain of 500 steps of ten proposals, tuned in warm-up. "
    "Networks: maximum likelihood, the likeliest of five starts. The published one of two hidden "
    "units also had direct connections from inputs to outputs, which scikit-learn's has not. The "
    "published 75 of one hidden unit is 75 or more.",
    "MARS and projection pursuit: earth and ppr of R, least squares on indicators of the classes, "
    "shares cut to [0.01, 0.99]; run where Rscript with the package earth is at hand. The network "
    "of the predictive approach is not run: no library has it.",
)


def reproduce(settings: Settings) -> Reproduction:
    """Run both halves, and the chains in turn.

    Raises
    ------
    StorageError
        If the data sets are not at hand.
    """
    parts = (gp_pima.half(settings), gp_crabs.half(settings))
    splits = {"crabs": gp_crabs.random_split(0)}
    if not settings.is_quick:
        splits["Pima"] = gp_pima.split_of_rows()
    laps = race(splits, settings)
    return Reproduction(
        name="gp-table-1",
        title="Gaussian-process classification: Pima and crabs",
        source="Barber & Williams (1997), Table 1",
        command="mercer reproduce gp-table-1" + (" --quick" if settings.is_quick else ""),
        claims=(*_named_claims(parts), *race_claims(laps, settings)),
        measured={
            f"{part.title}: {name}": values
            for part in parts
            for name, values in part.errors.items()
        },
        unit="test errors, of 332 (Pima) or 120 (crabs)",
        published={},
        notes=_NOTES,
        draw=lambda figure: _draw(figure, parts),
        tables=(*(figures_table(part, number=".2f") for part in parts), race_table(laps)),
    )


def _named_claims(parts: tuple[Part, ...]) -> list[Claim]:
    return [
        Claim(f"{part.title}: {c.claim}", c.paper, c.ours, c.verdict, c.note)
        for part in parts
        for c in part.claims
    ]


def _draw(figure: Figure, parts: tuple[Part, ...]) -> None:
    """Draw a panel for each data set."""
    from mercer.plot import repeats

    figure.set_size_inches(8.0, 3.6 * len(parts))
    for axes, part in zip(figure.subplots(len(parts)), parts, strict=True):
        repeats(part.errors, published=part.published, ax=axes)
        axes.set_title(part.title, loc="left")
        axes.set_xlabel(part.unit)
