"""Compiling the loops of BaNK, before the user waits for them unawares."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer.features.products import fill_features
from mercer.likelihoods import polya_gamma as polya_gamma_loops
from mercer.numerics.compilation import compile_first
from mercer.spectral import loops
from mercer.spectral.base_measure import DiagonalBase
from mercer.spectral.loops import move_jointly, pull_of_phases
from mercer.spectral.mixture import Mixture
from mercer.spectral.sampler import decide, decide_together


def compile_mixture_now() -> None:
    """Take a step on a tiny problem."""
    rng = np.random.default_rng(0)
    mixture = Mixture(DiagonalBase(np.ones(1)))
    state, W = mixture.draw_prior(rng, 3)
    mixture.step(rng, state, W)


# Compiling the loops that BaNK uses, before the user waits for them unawares.


def compile_loops(tell: Callable[[str], None]) -> None:
    """Compile or do nothing; ``tell`` is told a line first if there is something to compile."""
    compile_first(tell, compile_now)


def compile_now() -> None:
    """Call every loop that the method uses with tiny arguments."""
    compile_mixture_now()
    fill_features(np.ones((2, 1)), np.ones((4, 1)), np.empty((4, 4)))
    m = 26  # one halving by BLAS, the rest by the compiled loop
    gram, among, across = np.eye(2 * m + 2), np.eye(2 * m), np.zeros((2 * m, 2 * m + 2))
    joint, linear = np.empty((4 * m + 1, 4 * m + 1), order="F"), np.empty((1, 4 * m + 1), order="F")
    loops.assemble(gram, among, across, 1.0, 1, joint, linear)
    decisions = decide(joint, np.zeros(m), 1.0, 1.0)
    decide_together((joint, joint), np.zeros(m))
    loops.select(gram, among, across, decisions.is_accepted)
    loops.tridiagonal_evidence(np.ones(3), np.zeros(2), np.ones(3), 1.0)


# Compiling the loops of the classifier, before the user waits for them unawares.


def compile_class_loops(tell: Callable[[str], None]) -> None:
    """Compile or do nothing; ``tell`` is told a line first if there is something to compile."""
    compile_first(tell, compile_classes_now)


def compile_classes_now() -> None:
    """Call every loop that the method uses with tiny arguments."""
    compile_now()
    polya_gamma_loops.fill_polya_gamma(np.random.default_rng(0), np.zeros(2), 2, np.empty(2))
    features, once = np.zeros((2, 3)), np.zeros((1, 3))
    move_jointly(
        features, features, once, np.zeros((1, 2)), np.ones(1), np.zeros((1, 1, 2)), np.zeros(1),
        once.copy(), np.zeros(1, dtype=bool), np.zeros(1),
    )  # fmt: skip
    pull_of_phases(features, once, np.zeros((1, 2)), once.copy())
