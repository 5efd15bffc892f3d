"""Graepel & Herbrich, sections 4 to 6: what is claimed in words, held against figures.

Diversity and noise (section 5), margin and evidence (4), evidence and generalisation (4), vote and
Bayes point (4), rejection by votes (4), cost and accuracy (6).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from threadpoolctl import threadpool_limits

from reproduce.papers import sphere_margin, sphere_seconds, sphere_selection, sphere_votes
from reproduce.papers.reproduction import Reproduction, Settings
from reproduce.papers.sphere_part import Part

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["reproduce"]

_PARTS: tuple[Callable[[Settings], Part], ...] = (
    sphere_votes.diversity_part,
    sphere_margin.part,
    sphere_selection.part,
    sphere_votes.part,
    sphere_seconds.part,
)


def reproduce(settings: Settings) -> Reproduction:
    """Run the parts one after the other."""
    with threadpool_limits(limits=1, user_api="blas"):
        parts = [run(settings) for run in _PARTS]
    return Reproduction(
        name="sphere-claims",
        title="Claims in words, held against figures",
        source="Graepel & Herbrich (2001), sections 4 to 6",
        command="mercer reproduce sphere-claims" + (" --quick" if settings.is_quick else ""),
        claims=tuple(claim for part in parts for claim in part.claims),
        measured={name: values for part in parts for name, values in part.measured.items()},
        unit="test error, %",
        published={},
        notes=tuple(note for part in parts for note in part.notes),
        draw=lambda figure: _draw(figure, parts),
    )


def _draw(figure: Figure, parts: Sequence[Part]) -> None:
    """Six panels."""
    from mercer.plot.style import dress

    figure.set_size_inches(12.0, 7.6)
    panels = [draw for part in parts for draw in part.panels]
    for axes, draw in zip(figure.subplots(2, 3).ravel(), panels, strict=True):
        dress(axes)
        draw(axes)
