"""Tiny stacks: two quick members, two folds."""

from __future__ import annotations

from typing import Any

from mercer.stacking.estimator import MercerClassifier, MercerRegressor
from support import basis_fits, class_fits

TINY: dict[str, Any] = {
    "n_folds": 2,
    "n_draws": 6,
    "n_warmup": 4,
    "n_chains": 1,
    "random_state": 0,
    "progress": False,
}


def of_numbers(**own: Any) -> MercerRegressor:
    """An unfitted stack of two sequential regressors."""
    models = tuple(basis_fits.tiny(n_particles=n, max_candidates=16) for n in (12, 8))
    return MercerRegressor(**{"models": models, **TINY, **own})


def of_classes(**own: Any) -> MercerClassifier:
    """An unfitted stack of two sequential classifiers."""
    models = (class_fits.tiny(n_particles=12), class_fits.tiny(n_particles=8))
    return MercerClassifier(**{"models": models, **TINY, **own})
