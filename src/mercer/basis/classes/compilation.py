"""Compiling the loops of the classifier, before the user waits for them unawares."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer.basis.classes.candidates import compiled as candidate_loops
from mercer.basis.classes.moves import compiled as move_loops
from mercer.basis.classes.population import compiled as population_loops
from mercer.basis.classes.settings import ClassSettings
from mercer.basis.levels import compiled as level_loops
from mercer.basis.particle import compiled as particle_loops
from mercer.numerics.compilation import compile_first

__all__ = ["compile_loops", "compile_now"]

_LOOPS = (
    candidate_loops.admit,
    candidate_loops.retire,
    level_loops.kernel_levels,
    level_loops.squared_distances,
    move_loops.move_particles,
    particle_loops.draw_scale,
    population_loops.fill_latent,
    population_loops.weigh_row,
)


def compile_loops(tell: Callable[[str], None]) -> None:
    """Compile or do nothing; ``tell`` is told a line first if there is something to compile."""
    compile_first(_LOOPS, __name__, tell)


def compile_now() -> None:
    """Learn a few rows with so few candidates that one retires."""
    settings = ClassSettings(
        kernel="rbf",
        lengthscale=(1.0,),
        n_particles=4,
        expected_centres=1.0,
        max_centres=2,
        max_candidates=2,
        centres_prior="poisson",
        linear_part=False,
        resampling="systematic",
        n_buffered=8,
    )
    sticks = settings.sticks(np.ones(1), 1, 2, 0, 0)
    rng = np.random.default_rng(0)
    state = sticks.init(rng)
    for t in range(20):
        state, _ = sticks.learn(rng, state, np.array([float(t)]), t % 2)
