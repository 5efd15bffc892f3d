"""Compiling the loops of the kernel Gibbs sampler, before the user waits for them unawares."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer.kernels import compiled as kernel_loops
from mercer.kernels.names import kernel_named
from mercer.likelihoods.label_noise import fixed_rate
from mercer.numerics.compilation import compile_first
from mercer.sphere import compiled
from mercer.sphere.adaptation import first_moves
from mercer.sphere.model import SphereModel

__all__ = ["compile_loops", "compile_now"]

_LOOPS = (
    kernel_loops.exponent_from_products,
    compiled.count_errors,
    compiled.line_moves,
    compiled.reflect_and_refract,
)


def compile_loops(tell: Callable[[str], None]) -> None:
    """Compile or do nothing; ``tell`` is told a line first if there is something to compile."""
    compile_first(_LOOPS, __name__, tell)


def compile_now() -> None:
    """Take a pass of every move on a tiny problem."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 2))
    kernel_named("rbf").gram(np.zeros(3), X)
    model = SphereModel(X, fixed_rate(0.2, 6))
    moves = first_moves(("hmc", "lines"), model)
    point = model.point(rng.standard_normal(2))
    moves.apply(rng, model, model.noise, point, model.extended(rng.standard_normal((1, 2))))
