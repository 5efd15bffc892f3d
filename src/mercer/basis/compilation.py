"""Compiling the loops of the filters, before the user waits for them unawares."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer.basis.class_learner import ClassSettings
from mercer.basis.ensemble import filter_law, mean_function
from mercer.basis.length_scales import all_alike
from mercer.basis.settings import FilterSettings
from mercer.numerics.compilation import compile_first


def compile_loops(tell: Callable[[str], None]) -> None:
    """Compile or do nothing; ``tell`` is told a line first if there is something to compile."""
    compile_first(tell, compile_now)


def compile_now() -> None:
    """Learn a few rows with so few candidates that one retires, and predict one."""
    settings = FilterSettings(
        kernel="rbf", lengthscale=(1.0,), n_particles=4, expected_centres=1.0, max_centres=2,
        max_candidates=2, centres_prior="poisson", variances="sampled", linear_part=False,
        resampling="systematic", forgetting=(0.9,),
    )  # fmt: skip
    ensemble = settings.ensemble(settings.grid_of(np.ones(1), all_alike(1)), 0)
    rng = np.random.default_rng(0)
    state = ensemble.init(rng)
    for t in range(20):
        state, _ = ensemble.learn(rng, state, np.array([float(t)]), 0.0)
    filter_law(ensemble.filters[0], state.states[0], np.ones((1, 1)))
    mean_function(ensemble.filters[0], state.states[0], np.ones((1, 1)))


# Compiling the loops of the classifier, before the user waits for them unawares.


def compile_class_loops(tell: Callable[[str], None]) -> None:
    """Compile or do nothing; ``tell`` is told a line first if there is something to compile."""
    compile_first(tell, compile_classes_now)


def compile_classes_now() -> None:
    """Learn a few rows with so few candidates that one retires."""
    settings = ClassSettings(
        kernel="rbf", lengthscale=(1.0,), n_particles=4, expected_centres=1.0, max_centres=2,
        max_candidates=2, centres_prior="poisson", linear_part=False, resampling="systematic",
        n_buffered=8,
    )  # fmt: skip
    sticks = settings.sticks(np.ones(1), 1, 2, 0, 0)
    rng = np.random.default_rng(0)
    state = sticks.init(rng)
    for t in range(20):
        state, _ = sticks.learn(rng, state, np.array([float(t)]), t % 2)
