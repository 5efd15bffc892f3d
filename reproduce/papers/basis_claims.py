"""Vermaak, Godsill & Doucet: what is claimed in words, and what the printed weights do.

Order of the rows (sections 1 and 4.1), number of particles and the fixed parameters (4.1), and the
importance weight, eq. (9), as printed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from threadpoolctl import threadpool_limits

from reproduce.papers import basis_fixed, basis_order, basis_weight
from reproduce.papers.basis_figure_1 import gain_claim
from reproduce.papers.basis_part import Part
from reproduce.papers.reproduction import Reproduction, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["reproduce"]

_PARTS: tuple[Callable[[Settings], Part], ...] = (
    basis_order.part,
    basis_fixed.part,
    basis_weight.part,
)


def reproduce(settings: Settings) -> Reproduction:
    """Run the parts one after the other."""
    with threadpool_limits(limits=1, user_api="blas"):
        parts = [run(settings) for run in _PARTS]
        gain = gain_claim(settings)
    claims = [claim for part in parts for claim in part.claims]
    return Reproduction(
        name="basis-claims",
        title="Claims in words, held against figures",
        source="Vermaak, Godsill & Doucet (2003), sections 1, 3 and 4.1",
        command="mercer reproduce basis-claims" + (" --quick" if settings.is_quick else ""),
        claims=(claims[0], gain, *claims[1:]),
        measured={name: values for part in parts for name, values in part.measured.items()},
        unit="test error",
        published={},
        notes=tuple(note for part in parts for note in part.notes),
        number=".4f",
        draw=lambda figure: _draw(figure, parts),
    )


def _draw(figure: Figure, parts: list[Part]) -> None:
    from mercer.plot.style import dress

    panels = [draw for part in parts for draw in part.panels]
    figure.set_size_inches(4.6 * len(panels), 3.8)
    for axes, draw in zip(figure.subplots(1, len(panels)), panels, strict=True):
        dress(axes)
        draw(axes)
