"""Compiling the loops of the classifier, before the user waits for them unawares."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer.likelihoods.polya_gamma import compiled as polya_gamma_loops
from mercer.numerics.compilation import compile_first
from mercer.spectral import compilation as shared
from mercer.spectral.classes.compiled import move_jointly, pull_of_phases

__all__ = ["compile_loops", "compile_now"]


def compile_loops(tell: Callable[[str], None]) -> None:
    """Compile or do nothing; ``tell`` is told a line first if there is something to compile."""
    compile_first(tell, compile_now)


def compile_now() -> None:
    """Call every loop that the method uses with tiny arguments."""
    shared.compile_now()
    polya_gamma_loops.fill_polya_gamma(np.random.default_rng(0), np.zeros(2), 2, np.empty(2))
    features, once = np.zeros((2, 3)), np.zeros((1, 3))
    move_jointly(
        features, features, once, np.zeros((1, 2)), np.ones(1), np.zeros((1, 1, 2)), np.zeros(1),
        once.copy(), np.zeros(1, dtype=bool), np.zeros(1),
    )  # fmt: skip
    pull_of_phases(features, once, np.zeros((1, 2)), once.copy())
