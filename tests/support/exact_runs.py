"""Exact samplers on small problems, for contracts and unit tests."""

from __future__ import annotations

import numpy as np

from mercer.gp.exact import DelayedAcceptance, make_exact_sampler
from mercer.sampling.hmc import HMC, HamiltonianTuning, unit_mass
from mercer.sampling.nuts import NUTS
from support.gp_cases import posterior
from support.targets import At, record_position


def exact_sampler(inference: str = "hmc", **own) -> DelayedAcceptance:
    """Delayed acceptance on twelve rows with two inputs."""
    model, tuning = posterior(12, 2), HamiltonianTuning(0.5, unit_mass(3))
    make = NUTS if inference == "nuts" else HMC
    inner = make(model, At((1.0, -1.0, -1.0)), record_position, tuning)
    return make_exact_sampler(inner, model, np.arange(5), **own)
