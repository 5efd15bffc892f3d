"""Classification by a variational Gaussian process of GPyTorch, every training row inducing.

With all rows inducing nothing is sparse: what is approximate is the Gaussian for the latent values.
Two classes have one function and a probit likelihood, several one function each with a length scale
for each input, and a softmax. Adam, all rows a step, double precision, one thread.
"""

from __future__ import annotations

import warnings
from typing import Any

import gpytorch
import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["variational_probabilities"]

Array = NDArray[np.float64]

_RATE, _N_SAMPLES = 0.05, 512


def variational_probabilities(
    X: Array, codes: NDArray[np.int64], X_test: Array, *, n_steps: int, seed: int
) -> Array:
    """Train on standardised rows; return probabilities of all classes.

    Parameters
    ----------
    X, X_test : ndarray of shape (n, d) and (m, d)
    codes : ndarray of shape (n,)
        From 0 to C - 1.
    n_steps : int
        Of Adam.
    seed : int
        Of the samples that the softmax is averaged over.

    Returns
    -------
    ndarray of shape (m, C)
    """
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    rows, new = (torch.as_tensor(values, dtype=torch.float64) for values in (X, X_test))
    n_classes = int(codes.max()) + 1
    is_binary = n_classes == 2
    model = _Process(rows, 1 if is_binary else n_classes).double()
    likelihood: Any = (
        gpytorch.likelihoods.BernoulliLikelihood()
        if is_binary
        else gpytorch.likelihoods.SoftmaxLikelihood(num_classes=n_classes, mixing_weights=False)
    )
    targets = torch.as_tensor(codes, dtype=torch.float64 if is_binary else torch.int64)
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(rows))
    optimiser = torch.optim.Adam(model.parameters(), lr=_RATE)
    with warnings.catch_warnings(), gpytorch.settings.num_likelihood_samples(_N_SAMPLES // 16):
        warnings.simplefilter("ignore")
        for _ in range(n_steps):
            optimiser.zero_grad()
            (-bound(model(rows), targets)).backward()
            optimiser.step()
    model.eval()
    with torch.no_grad(), gpytorch.settings.num_likelihood_samples(_N_SAMPLES):
        p = np.asarray(likelihood(model(new)).probs, np.float64)
    return np.column_stack([1.0 - p, p]) if is_binary else p.mean(axis=0)


class _Process(gpytorch.models.ApproximateGP):
    """Constant means; squared exponential kernels with a length scale for each input."""

    def __init__(self, rows: torch.Tensor, n_functions: int) -> None:
        batch = torch.Size([n_functions] if n_functions > 1 else [])
        strategy: Any = gpytorch.variational.VariationalStrategy(
            self,
            rows.clone(),
            gpytorch.variational.CholeskyVariationalDistribution(len(rows), batch_shape=batch),
            learn_inducing_locations=False,
        )
        if n_functions > 1:
            strategy = gpytorch.variational.IndependentMultitaskVariationalStrategy(
                strategy, num_tasks=n_functions
            )
        super().__init__(strategy)
        d = rows.shape[1]
        self.mean = gpytorch.means.ConstantMean(batch_shape=batch)
        kernel = gpytorch.kernels.RBFKernel(ard_num_dims=d, batch_shape=batch)
        kernel.lengthscale = d**0.5
        self.covariance = gpytorch.kernels.ScaleKernel(kernel, batch_shape=batch)

    def forward(self, X: torch.Tensor) -> Any:
        return gpytorch.distributions.MultivariateNormal(self.mean(X), self.covariance(X))
