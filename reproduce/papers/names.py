"""The names of ``mercer reproduce``: one line and one file for each."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from mercer.errors import UsageError
from mercer.estimation.run import nearest_hint
from reproduce.papers.reproduction import Reproduction, Settings, unjudged

__all__ = ["NAMES", "NamedReproduction", "reproduce"]


@dataclass(frozen=True)
class NamedReproduction:
    """One table or figure: its module has a function ``reproduce(settings)``."""

    name: str
    home: str
    summary: str


NAMES = (
    NamedReproduction(
        "gp-pima", "reproduce.papers.gp_pima", "Barber & Williams, Table 1, Pima: errors of 332"
    ),
    NamedReproduction(
        "gp-crabs", "reproduce.papers.gp_crabs", "Barber & Williams, Table 1, crabs: errors of 120"
    ),
    NamedReproduction(
        "gp-table-1",
        "reproduce.papers.gp_table_1",
        "Barber & Williams, Table 1: Pima and crabs, all methods; the chains",
    ),
    NamedReproduction(
        "gp-table-2",
        "reproduce.papers.gp_table_2",
        "Barber & Williams, Table 2, forensic glass: errors of ten-fold cross-validation",
    ),
    NamedReproduction(
        "gp-claims",
        "reproduce.papers.gp_claims",
        "Barber & Williams, section 2.3: conjugate gradients against Cholesky factors",
    ),
    NamedReproduction(
        "sphere-figure-1",
        "reproduce.papers.sphere_figure_1",
        "Graepel & Herbrich, Figure 1: modes of the posterior on the sphere",
    ),
    NamedReproduction(
        "sphere-figure-3",
        "reproduce.papers.sphere_figure_3",
        "Graepel & Herbrich, Figure 3: decision boundaries at three noise levels",
    ),
    NamedReproduction(
        "sphere-figure-4",
        "reproduce.papers.sphere_figure_4",
        "Graepel & Herbrich, Figure 4: Bayes point against soft margin",
    ),
    NamedReproduction(
        "sphere-claims",
        "reproduce.papers.sphere_claims",
        "Graepel & Herbrich, sections 4 to 6: what is claimed in words",
    ),
    NamedReproduction(
        "basis-table-1",
        "reproduce.papers.basis_table_1",
        "Vermaak et al., Table 1, sinc: errors, kernels and noise of sequential regression",
    ),
    NamedReproduction(
        "basis-table-2",
        "reproduce.papers.basis_table_2",
        "Vermaak et al., Table 2, Boston housing: errors and kernels",
    ),
    NamedReproduction(
        "basis-figure-1",
        "reproduce.papers.basis_figure_1",
        "Vermaak et al., Figure 1: error against particles, and a typical fit",
    ),
    NamedReproduction(
        "basis-claims",
        "reproduce.papers.basis_claims",
        "Vermaak et al., what is claimed in words, and the printed weights",
    ),
    NamedReproduction(
        "spectral-table-1",
        "reproduce.papers.spectral_table_1",
        "Oliva et al., Table 1: regression errors of BaNK and its rivals",
    ),
    NamedReproduction(
        "spectral-table-2",
        "reproduce.papers.spectral_table_2",
        "Oliva et al., Table 2: classification errors of BaNK and its rivals",
    ),
    NamedReproduction(
        "spectral-figure-3",
        "reproduce.papers.spectral_figure_3",
        "Oliva et al., Figure 3: a kernel recovered from data",
    ),
    NamedReproduction(
        "spectral-figure-4",
        "reproduce.papers.spectral_figure_4",
        "Oliva et al., Figure 4: error and time against rows and frequencies",
    ),
    NamedReproduction(
        "spectral-figure-5",
        "reproduce.papers.spectral_figure_5",
        "Oliva et al., Figure 5: times of all methods on all data sets",
    ),
    NamedReproduction(
        "spectral-claims",
        "reproduce.papers.spectral_claims",
        "Oliva et al., Proposition 2.2: errors of the approximated kernel",
    ),
)


def reproduce(name: str, settings: Settings) -> Reproduction:
    """Run one reproduction; a quick run judges no claim.

    Raises
    ------
    UsageError
        If there is no such name.
    StorageError
        If its data are not at hand.
    """
    homes = {entry.name: entry.home for entry in NAMES}
    if name not in homes:
        hint = nearest_hint(name, list(homes))
        raise UsageError(f"nothing is called {name!r}; see `mercer reproduce --list`{hint}")
    outcome: Reproduction = importlib.import_module(homes[name]).reproduce(settings)
    return unjudged(outcome) if settings.is_quick else outcome
