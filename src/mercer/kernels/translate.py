"""Kernels of scikit-learn as kernels of mercer: their structure, without their values."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.errors import UsageError
from mercer.kernels.base import Isotropic, Kernel, Product
from mercer.kernels.linear import Constant, Linear, Polynomial
from mercer.kernels.stationary import (
    MaternARD,
    Periodic,
    RationalQuadraticARD,
    SquaredExponentialARD,
)

__all__ = ["from_scikit_learn"]

_REFUSED = {
    "WhiteKernel": "the noise is part of the regressor, and a classifier has none: leave it out",
    "CompoundKernel": "it is several kernels in one; give one",
    "PairwiseKernel": "most of its metrics are no covariances",
}
_MATERN: dict[float, Kernel] = {
    0.5: MaternARD(0.5),
    1.5: MaternARD(1.5),
    2.5: MaternARD(2.5),
    np.inf: SquaredExponentialARD(),
}


def from_scikit_learn(kernel: Any, n_inputs: int) -> Kernel:
    """Return the kernel of mercer with the structure of one of `sklearn.gaussian_process.kernels`.

    Values and bounds of hyperparameters are not used: mercer has priors, and draws all
    parameters. Each leaf and each term of a sum has a variance of its own, also where
    scikit-learn has none, and a constant factor is part of it.

    ============================  ================================================
    scikit-learn                  mercer
    ============================  ================================================
    RBF, Matern                   of the same name; nu 0.5, 1.5, 2.5 or infinite
    RationalQuadratic             isotropic(rational_quadratic)
    ExpSineSquared                periodic, of one input only
    DotProduct                    constant + linear; sigma_0 = 0: linear
    ConstantKernel                constant; as a factor, nothing
    k1 + k2, k1 * k2              the same
    DotProduct ** degree          polynomial(degree), where sigma_0^2 is fixed at n_inputs
    ============================  ================================================

    RBF and Matern with one length scale for all inputs are isotropic(..), a vector is one weight
    per input.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    n_inputs : int
        Columns of the inputs.

    Raises
    ------
    UsageError
        If there is no counterpart, or a hyperparameter is fixed (other than a constant), with the
        reason.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, ConstantKernel
    >>> from_scikit_learn(ConstantKernel() * RBF([1.0, 1.0]), n_inputs=2)
    SquaredExponentialARD()
    """
    from sklearn.gaussian_process import kernels as sk

    if not isinstance(kernel, sk.Kernel):
        raise UsageError(
            "kernel must be a name, a kernel of mercer, or one of "
            f"sklearn.gaussian_process.kernels; got {kernel!r}"
        )
    kind = type(kernel)
    if kind is sk.Sum:
        return from_scikit_learn(kernel.k1, n_inputs) + from_scikit_learn(kernel.k2, n_inputs)
    if kind is sk.Product:
        return _product(
            from_scikit_learn(kernel.k1, n_inputs), from_scikit_learn(kernel.k2, n_inputs)
        )
    if kind is sk.ConstantKernel:
        return Constant()
    if kind is sk.Exponentiation:
        return _power(kernel, n_inputs, sk.DotProduct)
    if kind is sk.DotProduct and kernel.sigma_0 == 0.0:
        return Linear()
    if kind not in (sk.RBF, sk.Matern, sk.RationalQuadratic, sk.ExpSineSquared, sk.DotProduct):
        raise _refusal(kernel, _REFUSED.get(kind.__name__, "mercer does not know it"))
    return _leaf(kernel, n_inputs)


def _leaf(kernel: Any, n_inputs: int) -> Kernel:
    fixed = [each.name for each in kernel.hyperparameters if each.fixed]
    if fixed:
        raise _refusal(kernel, f"{fixed[0]} is fixed, and mercer draws all but a constant factor")
    match type(kernel).__name__:
        case "RBF":
            return _with_weights(SquaredExponentialARD(), kernel, n_inputs)
        case "Matern":
            return _matern(kernel, n_inputs)
        case "RationalQuadratic":
            return Isotropic(RationalQuadraticARD())
        case "ExpSineSquared":
            return _periodic(kernel, n_inputs)
    return Constant() + Linear()


def _product(one: Kernel, other: Kernel) -> Kernel:
    """A constant factor is part of the variances of the other."""
    factors = [k for k in (one, other) if not isinstance(k, Constant)]
    return Product(tuple(factors)) if len(factors) == 2 else (factors or [one])[0]


def _with_weights(kernel: Kernel, given: Any, n_inputs: int) -> Kernel:
    """One weight for all inputs, or one for each, as the length scales that are given."""
    n_scales = np.size(given.length_scale)
    if n_scales == 1:
        return Isotropic(kernel)
    if n_scales != n_inputs:
        raise _refusal(given, f"{n_scales} length scales for {n_inputs} inputs")
    return kernel


def _matern(given: Any, n_inputs: int) -> Kernel:
    if given.nu not in _MATERN:
        raise _refusal(given, "nu must be 0.5, 1.5, 2.5 or infinite")
    return _with_weights(_MATERN[given.nu], given, n_inputs)


def _periodic(given: Any, n_inputs: int) -> Kernel:
    if n_inputs != 1:
        raise _refusal(given, f"of {n_inputs} inputs it is no covariance; there is periodic")
    return Periodic()


def _power(given: Any, n_inputs: int, dot_product: Any) -> Kernel:
    """(d + x.x')^degree is d^degree times (1 + x.x' / d)^degree, which is `Polynomial`."""
    base, degree = given.kernel, given.exponent
    is_dot = type(base) is dot_product and base.hyperparameter_sigma_0.fixed
    if not is_dot or not np.isclose(base.sigma_0**2, n_inputs, rtol=1e-12, atol=0.0):
        raise _refusal(
            given,
            "the only powers are those of DotProduct(sigma_0, 'fixed') with sigma_0 the root of "
            f"the number of inputs, {n_inputs}",
        )
    if degree != int(degree):
        raise _refusal(given, "the exponent must be a whole number")
    return Polynomial(int(degree))


def _refusal(kernel: Any, reason: str) -> UsageError:
    return UsageError(f"no kernel of mercer for scikit-learn's {kernel!r}: {reason}")
