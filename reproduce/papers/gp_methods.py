"""Methods that both halves of Table 1 of Barber & Williams have."""

from __future__ import annotations

from functools import partial
from typing import Any

from mercer.gp.estimator import GPClassifier
from reproduce.papers import gp_rivals
from reproduce.papers.gp_cells import Method

__all__ = [
    "AT_MAXIMUM",
    "DEFAULT",
    "IN_R",
    "LINEAR_DISCRIMINANT",
    "LOGISTIC",
    "METROPOLIS",
    "MIXTURE",
    "NETWORKS",
    "PAPER",
    "TABLE_1",
]

PAPER, DEFAULT = "GP (HMC), paper's settings", "GP (HMC), default"
AT_MAXIMUM, METROPOLIS = "GP (MAP), paper's prior", "GP (Metropolis)"
LOGISTIC, LINEAR_DISCRIMINANT = "logistic regression", "linear discriminant"
MIXTURE = "two Gaussians a class"
NETWORKS = ("network, one hidden unit", "network, two hidden units")
IN_R = ("MARS (degree 1)", "projection pursuit (4 ridge functions)")


# Beside the sampler; `GPClassifier.paper` has them too.
_AS_THE_PAPER: dict[str, Any] = {
    "kernel": "rbf", "prior": "paper", "predictive_mean": "mode", "standardize": "std"
}  # fmt: skip


def _paper(seed: int, is_quick: bool) -> Any:
    return GPClassifier.paper().set_params(random_state=seed, progress=False)


def _default(seed: int, is_quick: bool) -> Any:
    return GPClassifier(kernel="rbf", random_state=seed, progress=False)


def _at_maximum(seed: int, is_quick: bool) -> Any:
    return GPClassifier(inference="map", **_AS_THE_PAPER)


def _metropolis(seed: int, is_quick: bool) -> Any:
    """One chain of 500 steps of ten proposals."""
    return GPClassifier(
        inference="metropolis", n_chains=1, n_draws=100 if is_quick else 500,
        random_state=seed, progress=False, **_AS_THE_PAPER,
    )  # fmt: skip


TABLE_1 = (
    Method("paper", PAPER, _paper, is_random=True),
    Method("map", AT_MAXIMUM, _at_maximum),
    Method("metropolis", METROPOLIS, _metropolis, is_random=True),
    Method("default", DEFAULT, _default, is_random=True),
    Method("logistic", LOGISTIC, gp_rivals.logistic_regression),
    Method("discriminant", LINEAR_DISCRIMINANT, gp_rivals.linear_discriminant),
    Method("mixture", MIXTURE, gp_rivals.mixture_discriminant, is_random=True),
    *(
        Method(f"network-{k}", name, partial(gp_rivals.likeliest_network, k), is_random=True)
        for k, name in enumerate(NETWORKS, start=1)
    ),
    Method("mars", IN_R[0], gp_rivals.mars, needs_r=True),
    Method("pursuit", IN_R[1], partial(gp_rivals.projection_pursuit, 4), needs_r=True),
)
