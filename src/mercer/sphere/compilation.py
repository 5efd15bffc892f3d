"""Compiling the loops of the kernel Gibbs sampler, before the user waits for them unawares."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.names import kernel_named
from mercer.likelihoods.label_noise import fixed_rate
from mercer.numerics.compilation import compile_first
from mercer.sphere.sampler import SphereModel, first_moves
from mercer.sphere.several import SeveralModel, SeveralSampler, make_several_start
from mercer.sphere.several import first_moves as first_several_moves

__all__ = ["compile_circle", "compile_loops", "compile_now", "compile_several"]


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
    """Take a step of several classes on a tiny problem."""
    rng = np.random.default_rng(0)
    X, labels = rng.standard_normal((6, 2)), np.array([0, 1, 2, 0, 1, 2])
    model = SeveralModel(X, labels, fixed_rate(0.2, 6, 3))
    start = make_several_start(model)
    SeveralSampler(model, first_several_moves(model), start, _keep_nothing).init(rng)


def _keep_nothing(
    g: NDArray[np.float64], f: NDArray[np.float64]
) -> Mapping[str, NDArray[np.float64]]:
    return {}


def _pass(names: tuple[str, ...]) -> None:
    rng = np.random.default_rng(0)
    model = SphereModel(rng.standard_normal((6, 2)), fixed_rate(0.2, 6))
    drawn = model.extended(rng.standard_normal((1, 2)))
    point = model.point(rng.standard_normal(2))
    first_moves(names, model).apply(rng, model, model.noise, point, drawn)
