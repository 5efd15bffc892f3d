"""A kernel with one weight for all inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mercer.errors import UsageError
from mercer.kernels.algebra import Product, Sum
from mercer.kernels.base import Array, Kernel, Parameter

__all__ = ["Isotropic"]


@dataclass(frozen=True)
class Isotropic(Kernel):
    """The same kernel with w_1 = .. = w_d = w: theta has one log weight in the place of d.

    Other parameters, such as periods, stay one per input.

    Attributes
    ----------
    kernel : Kernel
        With one weight per input: not a sum, a product, or a kernel without weights.

    Notes
    -----
    d/dlog w is the sum of the derivatives with respect to all log w_l. Cost as of the kernel.
    """

    kernel: Kernel

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise UsageError(f"isotropic needs a kernel; got {self.kernel!r}")
        weights = [p for p in self.kernel.parameters() if p.kind == "weight"]
        if isinstance(self.kernel, (Sum, Product)) or not weights or not weights[0].per_input:
            raise UsageError(
                "isotropic needs a single kernel with one weight per input, neither a sum nor a "
                f"product; got {self.kernel!r}"
            )

    def parameters(self) -> tuple[Parameter, ...]:
        """Those of the kernel, of which the weight is no longer one per input."""
        return tuple(
            replace(parameter, per_input=False) if parameter.kind == "weight" else parameter
            for parameter in self.kernel.parameters()
        )

    def gram(self, theta: Array, X: Array, out: Array | None = None) -> Array:
        """All pairs of rows."""
        return self.kernel.gram(self._repeated(theta, X), X, out)

    def cross_gram(self, theta: Array, X: Array, Z: Array) -> Array:
        """Rows of X against those of Z."""
        return self.kernel.cross_gram(self._repeated(theta, X), X, Z)

    def diagonal(self, theta: Array, X: Array) -> Array:
        """Variances of the rows."""
        return self.kernel.diagonal(self._repeated(theta, X), X)

    def gradient(self, theta: Array, X: Array, K: Array, A: Array) -> Array:
        """Derivatives with respect to the weights are summed."""
        gradient = self.kernel.gradient(self._repeated(theta, X), X, K, A)
        weights = self._weights(X)
        total = [gradient[weights].sum()]
        return np.concatenate((gradient[: weights.start], total, gradient[weights.stop :]))

    def _weights(self, X: Array) -> slice:
        """Where the kernel's own theta has its weights."""
        (name,) = (p.name for p in self.kernel.parameters() if p.kind == "weight")
        return self.kernel.slices(X.shape[1])[name]

    def _repeated(self, theta: Array, X: Array) -> Array:
        """Theta of the kernel."""
        place, d = self._weights(X).start, X.shape[1]
        return np.concatenate((theta[:place], np.repeat(theta[place], d), theta[place + 1 :]))
