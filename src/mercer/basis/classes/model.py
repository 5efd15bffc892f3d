"""The model of two classes: what a particle's target is made of.

**Target.** p(y_s = 1) = 1 / (1 + e^-f(x_s)), f(x) = mean(x) + sum_j beta_j k(x, c_j), the centres a
subset of the candidates with the prior of `mercer.basis.model.SetPrior`; beta_j | g ~ N(0, g),
g ~ IG(2, 20) cut to [1e-6, 1e6], the mean's coefficients N(0, 10), the length scale uniform on its
levels. A particle is (set, level, g, beta).

**Rows held.** The target after t rows is the posterior given the rows in the buffer and the
candidates held, nothing else: of a stream that is longer than the buffer only its last rows count,
as if the others had never been seen. A row that leaves is divided out. With a buffer that holds
all rows it is the posterior.

**Several classes** in the order 0 .. C - 1: class c has probability s_c prod_(b < c) (1 - s_b),
s_c = 1 / (1 + e^-f_c), s_(C-1) = 1. Each f_c is a model of two classes on the rows of class c and
later ones, so that likelihood, evidence and predictive probability are products. The prior depends
on the order of the classes.
"""

from __future__ import annotations

from mercer.basis.classes.arrays import ClassPrior

__all__ = ["default_prior"]

_SCALE = 2.0, 20.0
_MEAN_PRECISION = 0.1


def default_prior(n_mean: int) -> ClassPrior:
    """Return the priors of the default, for a mean with so many columns."""
    return ClassPrior(*_SCALE, _MEAN_PRECISION, n_mean)
