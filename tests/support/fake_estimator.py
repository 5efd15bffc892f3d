"""A stand-in for a fitted GP classifier: simulated draws and scores in the shape of Pima's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.special import expit

from mercer.estimation.cross_validate import Result
from mercer.estimation.standardize import Standardizer, identity
from mercer.estimation.tasks import CLASSIFICATION
from mercer.kernels.base import Kernel
from mercer.kernels.names import name_of_kernel
from mercer.kernels.stationary import SquaredExponentialARD
from mercer.posterior.diagnostics import Diagnostics, diagnose
from mercer.posterior.draws import Draws
from mercer.posterior.evaluation import Evaluation, HeldClasses, Provenance

__all__ = [
    "INPUTS",
    "GPClassifier",
    "fake_draws",
    "fake_estimator",
    "fake_evaluation",
    "provenance",
]

INPUTS = ("npreg", "glu", "bp", "skin", "bmi", "ped", "age")
_KERNEL = SquaredExponentialARD()
_MEANS = np.array([-4.2, -1.6, -5.0, -4.6, -2.4, -2.9, -3.2])
_SPREADS = np.array([1.3, 0.7, 1.5, 1.4, 0.8, 1.0, 1.1])


@dataclass(frozen=True)
class GPClassifier:
    """What a report reads of a fitted estimator; the name is the real one's."""

    classes_: tuple[str, ...]
    n_features_in_: int
    feature_labels_: tuple[str, ...]
    posterior_: Draws
    diagnostics_: Diagnostics
    relevance_: NDArray[np.float64]
    prior_weight_interval_: tuple[float, float] | None = (3.6e-4, 6.9)
    standardize: str | bool = "auto"
    integration: str = "laplace"
    shared_kernel_: bool = False
    kernel_: Kernel = _KERNEL

    @property
    def standardizer_(self) -> Standardizer:
        return identity(self.n_features_in_)

    @property
    def kernel_weights_(self) -> dict[str, float]:
        return {name_of_kernel(self.kernel_): 1.0}

    @property
    def kernel_posteriors_(self) -> dict[str, Draws]:
        return {name_of_kernel(self.kernel_): self.posterior_}

    def get_params(self) -> dict[str, Any]:
        return {
            "inference": "hmc",
            "integration": self.integration,
            "kernel": "rbf",
            "n_chains": self.posterior_.n_chains,
            "n_draws": self.posterior_.n_draws,
            "n_warmup": 200,
            "random_state": 1,
            "standardize": self.standardize,
        }


def fake_draws(
    *, n_chains: int = 4, n_draws: int = 250, labels: tuple[str, ...] = INPUTS, shift: float = 0.0
) -> Draws:
    """Return autocorrelated draws; ``shift`` moves the first chain's weights (bad mixing)."""
    rng = np.random.default_rng(20)
    d = len(labels)

    def wander(*shape: int, memory: float = -0.2) -> NDArray[np.float64]:
        noise = rng.standard_normal((n_chains, n_draws + 50, *shape))
        path = lfilter([np.sqrt(1 - memory**2)], [1, -memory], noise, axis=1)
        return np.asarray(path[:, 50:])

    log_weight = np.resize(_MEANS, d) + np.resize(_SPREADS, d) * wander(d)
    log_weight[0] += shift
    log_density = -102.0 - 0.5 * np.square(wander(8)).sum(axis=2)
    stats = {
        "acceptance_rate": np.clip(0.86 + 0.1 * rng.standard_normal((n_chains, n_draws)), 0, 1),
        "is_divergent": np.zeros((n_chains, n_draws), dtype=bool),
        "energy": -log_density + rng.gamma(4.0, 1.0, (n_chains, n_draws)),
    }
    variables = {
        "log_signal_variance": 1.1 + 0.8 * wander(),
        "log_weight": log_weight,
        "log_density": log_density,
        "latent": 1.5 * rng.standard_normal(20) + 0.3 * wander(20),
    }
    return Draws(variables, stats, {"log_weight": labels}, tuple(variables))


def fake_estimator(
    *,
    n_chains: int = 4,
    n_draws: int = 250,
    labels: tuple[str, ...] = INPUTS,
    shift: float = 0.0,
    prior: tuple[float, float] | None = (3.6e-4, 6.9),
) -> GPClassifier:
    draws = fake_draws(n_chains=n_chains, n_draws=n_draws, labels=labels, shift=shift)
    return GPClassifier(
        classes_=("no", "yes"),
        n_features_in_=len(labels),
        feature_labels_=labels,
        posterior_=draws,
        diagnostics_=diagnose(draws),
        relevance_=np.exp(draws.flat("log_weight")),
        prior_weight_interval_=prior,
    )


def fake_evaluation(
    *, n_rows: int = 332, noise: float = 0.0, baseline_noise: float = 0.25
) -> Evaluation:
    """Return scores of simulated rows; ``noise`` spoils the model, the other the baselines."""
    rng = np.random.default_rng(7)
    logit = -0.9 + 1.6 * rng.standard_normal(n_rows)
    y = (rng.random(n_rows) < expit(logit)).astype(np.int64)

    def proba(spoilt: float) -> NDArray[np.float64]:
        p = expit(logit + spoilt * rng.standard_normal(n_rows))
        return np.column_stack([1 - p, p])

    model = proba(noise)
    often = np.tile([1 - y.mean(), y.mean()], (n_rows, 1))
    others = (
        ("logistic regression", proba(baseline_noise), 0.0213),
        ("random forest", proba(2.5 * baseline_noise), 1.874),
        ("k nearest neighbours", proba(4 * baseline_noise), 0.0341),
        ("most frequent class", often, 0.0008),
    )
    named = (("GPClassifier", model, 14.21), *others)
    results = [Result(n, n != "GPClassifier", (HeldClasses(y, p),), s) for n, p, s in named]
    found = CLASSIFICATION.evaluate("the test file pima_te.csv", ("no", "yes"), results)
    assert isinstance(found, Evaluation)
    return found


def provenance() -> Provenance:
    return Provenance(
        source="pima_tr.csv",
        target="diabetic",
        n_rows=200,
        n_inputs=7,
        input_names=INPUTS,
        notes=(
            "Target “diabetic”: 2 distinct whole numbers, so classification.",
            "Inputs are standardised by mean and standard deviation.",
        ),
        command="mercer fit pima_tr.csv --target diabetic --test pima_te.csv --seed 1 "
        "--out model.mercer --report report.html",
        seed=1,
        seconds=14.21,
        created="2025-11-20",
        versions=(
            ("mercer", "0.1.0"),
            ("numpy", "2.4.6"),
            ("python", "3.12.3"),
            ("scipy", "1.17.1"),
        ),
    )
