from __future__ import annotations

import pytest

from mercer.gp.hyperparameters import kernel_prior
from mercer.gp.laplace import HyperparameterPosterior
from mercer.kernels.stationary import SquaredExponentialARD
from support.gp_cases import problem


def test_the_prior_must_be_of_the_kernels_parameters() -> None:
    X, y = problem(6, 2)
    with pytest.raises(ValueError, match="3 parameters for a kernel of 2"):
        HyperparameterPosterior(X[:, :1], y, SquaredExponentialARD(), kernel_prior(2))
