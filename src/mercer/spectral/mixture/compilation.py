"""Compiling the loop over assignments before it is needed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer.numerics.compilation import compile_first
from mercer.spectral.mixture.diagonal import DiagonalBase
from mercer.spectral.mixture.gibbs import Mixture

__all__ = ["compile_loops", "compile_now"]


def compile_loops(tell: Callable[[str], None]) -> None:
    """Compile or do nothing; ``tell`` is told a line first if there is something to compile."""
    compile_first(tell, compile_now)


def compile_now() -> None:
    """Take a step on a tiny problem."""
    rng = np.random.default_rng(0)
    mixture = Mixture(DiagonalBase(np.ones(1)))
    state, W = mixture.draw_prior(rng, 3)
    mixture.step(rng, state, W)
