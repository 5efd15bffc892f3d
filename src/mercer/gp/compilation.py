"""Compiling the loops that Gaussian processes use, before the user waits for them unawares."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer.gp.hyperparameters import kernel_prior
from mercer.gp.laplace import HyperparameterPosterior
from mercer.gp.softmax import fit_softmax
from mercer.kernels.stationary import SpectralMixture, SquaredExponentialARD
from mercer.numerics.compilation import compile_first

__all__ = ["compile_loops", "compile_now", "compile_softmax_loops", "compile_softmax_now"]


def compile_loops(tell: Callable[[str], None]) -> None:
    """Compile or do nothing; ``tell`` is told a line first if there is something to compile."""
    compile_first(tell, compile_now)


def compile_now() -> None:
    """Solve a tiny problem with every loop of the method."""
    X, y = np.arange(12.0).reshape(6, 2), np.array([0.0, 1.0, 0.0, 1.0, 1.0, 0.0])
    for kernel in (SquaredExponentialARD(), SpectralMixture(1)):
        prior = kernel_prior(2, kernel=kernel)
        model = HyperparameterPosterior(X, y, kernel, prior)
        model.evaluate(prior.mean)
        kernel.cross_gram(prior.mean, X[:2], X)


# Compiling the loops for several classes, before the user waits for them unawares.


def compile_softmax_loops(tell: Callable[[str], None]) -> None:
    """Compile or do nothing; ``tell`` is told a line first if there is something to compile."""
    compile_first(tell, compile_softmax_now)


def compile_softmax_now() -> None:
    """Solve a tiny problem with every loop."""
    n_classes, n = 3, 6
    fit_softmax(np.stack([np.eye(n)] * n_classes), np.eye(n_classes)[:, np.arange(n) % n_classes])
