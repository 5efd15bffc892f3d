"""Compiling the loops of the kernel Gibbs sampler, before the user waits for them unawares."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.names import kernel_named
from mercer.likelihoods.label_noise import fixed_rate, learned_class_rates, learned_confusion
from mercer.numerics.compilation import compile_first
from mercer.sphere.sampler import PriorStart, SphereModel, first_moves
from mercer.sphere.several import SeveralModel, SeveralSampler, make_several_start
from mercer.sphere.several import default_moves as default_several_moves
from mercer.sphere.several import first_moves as first_several_moves
from mercer.sphere.tempering import TemperedSampler


def compile_loops(tell: Callable[[str], None], n_classes: int = 2, sampler: str = "auto") -> None:
    """Compile or do nothing; ``tell`` is told a line first if there is something to compile.

    Loops of several classes and of the great circle are compiled where they are needed.
    """
    compile_first(tell, compile_now)
    if n_classes > 2:
        compile_first(tell, compile_several)
    if sampler == "great_circle":
        compile_first(tell, compile_circle)


def compile_now() -> None:
    """Take a pass of trajectory and lines on a tiny problem."""
    X = np.random.default_rng(0).standard_normal((6, 2))
    kernel_named("rbf").gram(np.zeros(3), X)
    _pass(("hmc", "lines"))


def compile_circle() -> None:
    """Take a great circle on a tiny problem."""
    _pass(("great_circle",))


def compile_several() -> None:
    """Take a step of several classes on a tiny problem, at one rate and at a matrix of rates."""
    rng = np.random.default_rng(0)
    X, labels = rng.standard_normal((6, 2)), np.array([0, 1, 2, 0, 1, 2])
    for noise in (fixed_rate(0.2, 6, 3), learned_confusion((1.0, 1.0), labels, 3)):
        model = SeveralModel(X, labels, noise)
        moves = first_several_moves(model, default_several_moves(model))
        start = make_several_start(model)
        SeveralSampler(model, moves, start, _keep_nothing).init(rng)


def _keep_nothing(
    f: NDArray[np.float64], g: NDArray[np.float64]
) -> Mapping[str, NDArray[np.float64]]:
    return {}


def _pass(names: tuple[str, ...]) -> None:
    """At one known rate, and at two that are learned: their costs are arrays of another shape."""
    rng, labels = np.random.default_rng(0), np.array([0, 1, 0, 1, 0, 1])
    L = rng.standard_normal((6, 2))
    for noise in (fixed_rate(0.2, 6), learned_class_rates((1.0, 1.0), labels)):
        model = SphereModel(L, noise)
        drawn = model.extended(rng.standard_normal((len(names), 2)))
        moves, point = first_moves(names, model), model.point(rng.standard_normal(2))
        moves.apply(rng, model, model.noise, point, drawn)
        if "hmc" in names:
            start = PriorStart(model.rank)
            TemperedSampler(model, (0.0, 1.0), moves, start, _keep_nothing).init(rng)
