"""Gaussian processes of GPyTorch: random features and SVGP by the clock, spectral mixtures.

The first two in single precision, the default of GPyTorch, on standardised inputs and target; Adam,
one thread. Their clock runs while steps are taken; it stands still for predictions at the end of
each budget.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import gpytorch
import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["random_feature_process", "spectral_mixture_process", "variational_process"]

Array = NDArray[np.float64]
# (CPU seconds, steps, means of the test rows, their -log predictive densities)
Point = tuple[float, int, Array, Array]

_ROWS_AT_ONCE = 1000


def random_feature_process(
    X: Array,
    y: Array,
    X_test: Array,
    y_test: Array,
    *,
    n_frequencies: int,
    rate: float,
    budgets: Sequence[float],
    seed: int,
) -> list[Point]:
    """`RFFKernel` with a lengthscale for each input, by the marginal likelihood of all rows.

    Parameters
    ----------
    X, X_test : ndarray of shape (n, d) and (m, d)
    y, y_test : ndarray of shape (n,) and (m,)
    n_frequencies : int
    rate : float
        Of Adam.
    budgets : sequence of float
        CPU seconds, ascending.
    seed : int

    Returns
    -------
    list of (seconds, steps, means, log scores)
        For each budget, once it is used up; shorter if the factorisation fails.
    """
    rows, targets = _tensors(seed, X, y)
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = _Exact(rows, targets, likelihood, n_frequencies)
    evidence = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)

    def losses() -> Any:
        while True:
            yield -evidence(model(rows), targets)

    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    return _curve(model, likelihood, losses(), optimiser, X_test, y_test, budgets)


def variational_process(
    X: Array,
    y: Array,
    X_test: Array,
    y_test: Array,
    *,
    n_inducing: int,
    rate: float,
    budgets: Sequence[float],
    seed: int,
) -> list[Point]:
    """SVGP: inducing points are learned, beginning at some rows; 1024 rows a step.

    Parameters and result are those of `random_feature_process`.
    """
    rows, targets = _tensors(seed, X, y)
    first = rows[torch.randperm(len(rows))[:n_inducing]].clone()
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = _Sparse(first)
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(rows))

    def losses() -> Any:
        while True:
            for batch in torch.randperm(len(rows)).split(1024):
                yield -bound(model(rows[batch]), targets[batch])

    parameters = [*model.parameters(), *likelihood.parameters()]
    optimiser = torch.optim.Adam(parameters, lr=rate)
    return _curve(model, likelihood, losses(), optimiser, X_test, y_test, budgets)


def _tensors(seed: int, X: Array, y: Array) -> tuple[torch.Tensor, torch.Tensor]:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    return torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y, dtype=torch.float32)


class _Exact(gpytorch.models.ExactGP):
    """Constant mean; `RFFKernel` draws its frequencies once, and learns their scales."""

    def __init__(
        self, X: torch.Tensor, y: torch.Tensor, likelihood: Any, n_frequencies: int
    ) -> None:
        super().__init__(X, y, likelihood)
        d = X.shape[1]
        self.mean = gpytorch.means.ConstantMean()
        features = gpytorch.kernels.RFFKernel(n_frequencies, num_dims=d, ard_num_dims=d)
        features.lengthscale = d**0.5
        self.covariance = gpytorch.kernels.ScaleKernel(features)

    def forward(self, X: torch.Tensor) -> Any:
        return gpytorch.distributions.MultivariateNormal(self.mean(X), self.covariance(X))


class _Sparse(gpytorch.models.ApproximateGP):
    """Constant mean; squared exponential kernel with a lengthscale for each input."""

    def __init__(self, inducing: torch.Tensor) -> None:
        law = gpytorch.variational.CholeskyVariationalDistribution(len(inducing))
        super().__init__(
            gpytorch.variational.VariationalStrategy(
                self, inducing, law, learn_inducing_locations=True
            )
        )
        d = inducing.shape[1]
        self.mean = gpytorch.means.ConstantMean()
        kernel = gpytorch.kernels.RBFKernel(ard_num_dims=d)
        kernel.lengthscale = d**0.5
        self.covariance = gpytorch.kernels.ScaleKernel(kernel)

    def forward(self, X: torch.Tensor) -> Any:
        return gpytorch.distributions.MultivariateNormal(self.mean(X), self.covariance(X))


def _curve(
    model: Any,
    likelihood: Any,
    losses: Any,
    optimiser: Any,
    X_test: Array,
    y_test: Array,
    budgets: Sequence[float],
) -> list[Point]:
    points: list[Point] = []
    spent, n_steps = 0.0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for budget in budgets:
            model.train()
            likelihood.train()
            try:
                while spent < budget:
                    begin = time.process_time()
                    optimiser.zero_grad()
                    next(losses).backward()
                    optimiser.step()
                    spent += time.process_time() - begin
                    n_steps += 1
                mean, score = _predicted(model, likelihood, X_test, y_test)
            except (RuntimeError, ValueError) as error:  # not positive definite, or not a number
                print(f"GPyTorch stopped after {spent:.0f} s: {error}", flush=True)
                return points
            points.append((spent, n_steps, mean, score))
    return points


def _predicted(model: Any, likelihood: Any, X: Array, y: Array) -> tuple[Array, Array]:
    model.eval()
    likelihood.eval()
    means, scores = [], []
    with torch.no_grad():
        for begin in range(0, len(X), _ROWS_AT_ONCE):
            rows = slice(begin, begin + _ROWS_AT_ONCE)
            law = likelihood(model(torch.as_tensor(X[rows], dtype=torch.float32)))
            mean, variance = (np.asarray(v, np.float64) for v in (law.mean, law.variance))
            scores.append(0.5 * (np.log(2.0 * np.pi * variance) + (y[rows] - mean) ** 2 / variance))
            means.append(mean)
    return np.concatenate(means), np.concatenate(scores)


def spectral_mixture_process(
    X: Array,
    y: Array,
    X_test: Array,
    *,
    n_components: int,
    n_starts: int,
    n_steps: int,
    rate: float,
    seed: int,
) -> tuple[Array, Array, float]:
    """Spectral mixture kernel of one input around a straight line, by maximum likelihood.

    Double precision. Of several starts, the first from the empirical spectrum, the one with the
    largest marginal likelihood counts.

    Parameters
    ----------
    X, X_test : ndarray of shape (n, 1) and (m, 1)
    y : ndarray of shape (n,)
    n_components, n_starts, n_steps, seed : int
    rate : float
        Of Adam.

    Returns
    -------
    mean, std : ndarray of shape (m,)
        Of new targets.
    period : float
        Of the component with the largest weight, in units of X.
    """
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    first, reach = float(X.min()), float(np.ptp(X))
    rows, new = (torch.as_tensor((Z - first) / reach, dtype=torch.float64) for Z in (X, X_test))
    targets = torch.as_tensor(y, dtype=torch.float64)
    best: tuple[float, Any, Any] | None = None
    for start in range(n_starts):
        likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
        model = _Mixture(rows, targets, likelihood, n_components, is_drawn=start > 0).double()
        evidence = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
        optimiser = torch.optim.Adam(model.parameters(), lr=rate)
        model.train()
        try:
            for _ in range(n_steps):
                optimiser.zero_grad()
                loss = -evidence(model(rows), targets)
                loss.backward()
                optimiser.step()
        except (RuntimeError, ValueError) as error:  # not positive definite, or not a number
            print(f"GPyTorch stopped: {error}", flush=True)
            continue
        if np.isfinite(loss.item()) and (best is None or loss.item() < best[0]):
            best = loss.item(), model, likelihood
    if best is None:
        raise RuntimeError("no start of the spectral mixture came to its end")
    _, model, likelihood = best
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        law = likelihood(model(new))
        weights = model.covariance.mixture_weights
        frequency = model.covariance.mixture_means[torch.argmax(weights)].item()
    period = reach / frequency if frequency > 0.0 else float("inf")
    return law.mean.numpy(), law.variance.sqrt().numpy(), period


class _Mixture(gpytorch.models.ExactGP):
    """A straight line and a spectral mixture kernel."""

    def __init__(
        self, X: torch.Tensor, y: torch.Tensor, likelihood: Any, n: int, *, is_drawn: bool
    ) -> None:
        super().__init__(X, y, likelihood)
        self.mean = gpytorch.means.LinearMean(1)
        self.covariance = gpytorch.kernels.SpectralMixtureKernel(num_mixtures=n)
        begin = self.covariance.initialize_from_data
        (begin if is_drawn else self.covariance.initialize_from_data_empspect)(X, y)

    def forward(self, X: torch.Tensor) -> Any:
        return gpytorch.distributions.MultivariateNormal(self.mean(X), self.covariance(X))
