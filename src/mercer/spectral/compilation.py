"""Compiling the loops that BaNK uses, before the user waits for them unawares."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer.features.products import fill_features
from mercer.numerics.compilation import compile_first
from mercer.spectral import compiled
from mercer.spectral.halving import decide, decide_together
from mercer.spectral.mixture import compilation as mixture_compilation

__all__ = ["compile_loops", "compile_now"]


def compile_loops(tell: Callable[[str], None]) -> None:
    """Compile or do nothing; ``tell`` is told a line first if there is something to compile."""
    compile_first(tell, compile_now)


def compile_now() -> None:
    """Call every loop that the method uses with tiny arguments."""
    mixture_compilation.compile_now()
    fill_features(np.ones((2, 1)), np.ones((4, 1)), np.empty((4, 4)))
    m = 26  # one halving by BLAS, the rest by the compiled loop
    gram, among, across = np.eye(2 * m + 2), np.eye(2 * m), np.zeros((2 * m, 2 * m + 2))
    joint, linear = np.empty((4 * m + 1, 4 * m + 1), order="F"), np.empty((1, 4 * m + 1), order="F")
    compiled.assemble(gram, among, across, 1.0, 1, joint, linear)
    decisions = decide(joint, np.zeros(m), 1.0, 1.0)
    decide_together((joint, joint), np.zeros(m))
    compiled.select(gram, among, across, decisions.is_accepted)
    compiled.tridiagonal_evidence(np.ones(3), np.zeros(2), np.ones(3), 1.0)
