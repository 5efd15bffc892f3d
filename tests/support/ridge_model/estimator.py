"""Bayesian ridge regression with exact draws: what a regressor of mercer shows to the outside."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.estimation.base import KernelEstimator
from mercer.estimation.model_file import (
    ModelParts,
    diagnostics_from_dict,
    draws_from_parts,
    draws_to_parts,
    json_params,
)
from mercer.estimation.run import check_common
from mercer.estimation.standardize import Standardizer, fit_standardizer
from mercer.models import ModelEntry
from mercer.posterior.diagnostics import diagnose
from mercer.posterior.draws import Draws
from mercer.posterior.predictive import NormalMixture

__all__ = ["ENTRY", "RidgeRegressor"]

_PRECISION = 1e-3  # of the coefficients, in units of the noise

ENTRY = ModelEntry(
    name="ridge-draws",
    task="regression",
    estimator="RidgeRegressor",
    home="support.ridge_model.estimator",
    summary="straight lines, for tests",
)


class RidgeRegressor(RegressorMixin, KernelEstimator):
    """beta | s2 ~ N(0, s2 / precision), s2 ~ 1/s2: exact draws, standardised inputs."""

    def __init__(
        self,
        *,
        standardize: str | bool = "auto",
        n_draws: int = 50,
        n_warmup: int = 0,
        n_chains: int = 2,
        thin: int = 1,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | str = "auto",
        checkpoint: Any = None,
        max_seconds: float | None = None,
    ) -> None:
        self.standardize = standardize
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.n_chains = n_chains
        self.thin = thin
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.checkpoint = checkpoint
        self.max_seconds = max_seconds

    def _check_arguments(self) -> Any:
        check_common(self)

    def fit(self, X, y) -> RidgeRegressor:
        self._check_arguments()
        self._forget()
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        self.feature_labels_ = self._labels()
        self.standardizer_ = fit_standardizer(X, self.standardize, self.feature_labels_)
        Phi = self._design(X)
        y = np.asarray(y, dtype=np.float64)
        factor = np.linalg.cholesky(Phi.T @ Phi + _PRECISION * np.eye(Phi.shape[1]))
        coef = np.linalg.solve(factor.T, np.linalg.solve(factor, Phi.T @ y))
        rest = max(float(np.sum(np.square(y - Phi @ coef))), 1e-12)
        rng = np.random.default_rng(self.random_state)
        shape = (self.n_chains, self.n_draws)
        noise_std = np.sqrt(rest / rng.chisquare(len(y), size=shape))
        moves = np.linalg.solve(factor.T, rng.standard_normal((*shape, len(coef), 1)))[..., 0]
        variables = {"coef": coef + noise_std[..., np.newaxis] * moves, "noise_std": noise_std}
        self.posterior_ = Draws(variables, {}, {}, ("noise_std",))
        self.diagnostics_ = diagnose(self.posterior_)
        self.notes_ = ()
        return self

    def _design(self, X) -> np.ndarray:
        Z = self.standardizer_.transform(np.asarray(X, dtype=np.float64))
        return np.column_stack([np.ones(len(Z)), Z])

    def predictive(self, X) -> NormalMixture:
        check_is_fitted(self)
        Phi = self._design(self._new_rows(X))
        coef = self.posterior_.flat("coef")
        return NormalMixture(Phi @ coef.T, self.posterior_.flat("noise_std"))

    def predict(self, X, return_std: bool = False):
        law = self.predictive(X)
        return (law.mean, law.std) if return_std else law.mean

    def _function_draws(self, parts, n_draws, rng) -> list[np.ndarray]:
        coef = rng.permutation(self.posterior_.flat("coef"))
        coef = np.resize(coef, (n_draws, coef.shape[1]))
        return [(coef @ np.column_stack([np.ones(len(Z)), Z]).T)[:, np.newaxis] for Z in parts]

    def _to_parts(self) -> ModelParts:
        values, arrays = draws_to_parts(self.posterior_)
        values |= {
            "diagnostics": self.diagnostics_.to_dict(),
            "names": list(self.feature_labels_),
        }
        arrays |= {f"standardizer/{k}": v for k, v in vars(self.standardizer_).items()}
        return ModelParts(json_params(self.get_params()), values, arrays)

    @classmethod
    def _from_parts(cls, parts: ModelParts) -> RidgeRegressor:
        model = cls(**parts.params)
        columns = {
            name.partition("/")[2]: values
            for name, values in parts.arrays.items()
            if name.startswith("standardizer/")
        }
        model.standardizer_ = Standardizer(**columns)
        model.feature_labels_ = tuple(parts.fields["names"])
        model.n_features_in_ = len(model.feature_labels_)
        model.posterior_ = draws_from_parts(parts.fields, parts.arrays)
        model.diagnostics_ = diagnostics_from_dict(parts.fields["diagnostics"])
        model.notes_ = ()
        return model
