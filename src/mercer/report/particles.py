"""The section of a report on a population of weighted particles, in the place of chains."""

from __future__ import annotations

from typing import Any, Final

from mercer.posterior.diagnostics import Diagnostics
from mercer.report.figures import particles_svg
from mercer.report.section import Figure, Section
from mercer.report.words import count

__all__ = ["particles_section", "weights_text"]

_MOST: Final = 9  # panels


def particles_section(estimator: Any) -> Section:
    """Build the section: what is known of each monitored quantity, as the weights have it."""
    draws = estimator.posterior_
    names = [each for name in draws.monitored for each in draws.entry_names(name)][:_MOST]
    text = (
        f"The posterior is held by {count(draws.n_total)} particles: each is a set of centres with "
        "a length scale, and has a weight. The drawings show how probable each value is.",
        "Rows are learned one after the other. Particles that predicted a row well gain weight; "
        "when few carry most of it, the light ones are replaced by copies of the heavy ones, and "
        "all are moved.",
    )
    figure = Figure(
        particles_svg(draws, names),
        "Probability of each value, as the weights of the particles have it.",
        f"Bars of {', '.join(names)}.",
    )
    return Section("chains", "Particles", text, figures=(figure,))


def weights_text(diagnostics: Diagnostics) -> tuple[str, ...]:
    """Say in words what the diagnostics of weighted particles mean."""
    n_found = len(diagnostics.warnings)
    found = (
        "No problem was found. (No check can prove that the particles have found all of the "
        "posterior.)"
        if diagnostics.is_converged
        else f"{n_found} problem{'s were' if n_found > 1 else ' was'} found. Until solved, take "
        "the numbers of this report as provisional."
    )
    return (
        found,
        "The effective sample size (ESS) is how many particles of equal weight these are worth. "
        "The Monte Carlo standard error (mcse) is how far a mean may be off because there are "
        "finitely many.",
    )
