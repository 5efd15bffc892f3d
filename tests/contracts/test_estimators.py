"""scikit-learn's own checks, on every estimator with tiny settings; none is expected to fail."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer.gp.estimator import GPClassifier

TINY = {"n_draws": 20, "n_warmup": 10, "n_chains": 1, "random_state": 0, "progress": False}

ESTIMATORS = [
    GPClassifier(**TINY),
    GPClassifier(inference="nuts", **TINY),
    GPClassifier(inference="map", **TINY),
    GPClassifier(
        prior="paper",
        predictive_mean="mode",
        n_leapfrog=3,
        step_size=0.1,
        standardize="std",
        **TINY,
    ),
]


# Its data hold constant columns, and mercer warns of them.
@pytest.mark.filterwarnings("ignore::mercer.errors.MercerWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check) -> None:
    check(estimator)
