"""One tempered run over noise levels, from the prior down to labels that are all but certain.

What it yields is the law of the number of errors under the prior, and with it the evidence at
every noise rate: E_W[L] of the paper's section 4, for all q at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.likelihoods.label_noise import fixed_rate
from mercer.sphere.adaptation import QUARTER, first_moves
from mercer.sphere.evidence import ErrorLaw, error_law, place_rungs
from mercer.sphere.model import SphereModel
from mercer.sphere.moves import Moves, default_moves
from mercer.sphere.start import PriorStart
from mercer.sphere.tempering import TemperedSampler

__all__ = ["Ladder", "measure_errors"]

Array = NDArray[np.float64]

# Cost of an error on the last rung, in nats: a noise rate of 1e-4.
_TOP = math.log(9999.0)
# Costs of the pilot, before rungs are placed by what it sees.
_PILOT = np.concatenate([[0.0], np.geomspace(0.02, _TOP, 11)])


@dataclass(frozen=True)
class Ladder:
    """How long the tempered run is: sweeps of the pilot and of the run itself."""

    n_pilot: int = 24
    n_sweeps: int = 150


def measure_errors(rng: np.random.Generator, L: Array, ladder: Ladder | None = None) -> ErrorLaw:
    """Estimate P(number of errors) under the prior.

    Parameters
    ----------
    rng : Generator
    L : ndarray of shape (n, r)
        Rows of the feature space, labels multiplied in.
    ladder : Ladder, optional
    """
    ladder = ladder or Ladder()
    model = SphereModel(L, fixed_rate(1.0 / (1.0 + math.exp(_TOP)), len(L)))
    moves = first_moves(default_moves(model.rank), model)
    moves = Moves(moves.names, max(moves.duration, _shortest(model)), moves.directions)
    pilot = _run(rng, model, _PILOT, moves, ladder.n_pilot)
    costs = place_rungs(_PILOT, pilot[ladder.n_pilot // 3 :])
    n_burn = max(ladder.n_sweeps // 8, 5)
    errors = _run(rng, model, costs, moves, n_burn + ladder.n_sweeps)[n_burn:]
    return error_law(errors, costs[:, np.newaxis] * np.arange(len(L) + 1))


def _shortest(model: SphereModel) -> float:
    return QUARTER if model.n_rows <= 20 * model.rank else 0.0


def _run(
    rng: np.random.Generator, model: SphereModel, costs: Array, moves: Moves, n_sweeps: int
) -> NDArray[np.int64]:
    """Errors of every rung after every sweep: shape (n_sweeps, n_rungs)."""
    sampler = TemperedSampler(
        model, tuple((costs / _TOP).tolist()), (moves,) * len(costs), PriorStart(model.rank), _none
    )
    state = sampler.init(rng)
    errors = np.empty((n_sweeps, len(costs)), np.int64)
    for sweep in range(n_sweeps):
        state, _ = sampler.step(rng, state)
        errors[sweep] = np.count_nonzero(state.points[:, : model.n_rows] <= 0.0, axis=1)
    return errors


def _none(f: Array, g: Array) -> Mapping[str, Array]:
    return {}
