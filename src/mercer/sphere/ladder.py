"""One tempered run over noise levels, from the prior down to labels that are all but certain.

What it yields is the law of the number of errors under the prior, and with it the evidence at
every noise rate: E_W[L] of the paper's section 4, for all q at once. Where rates differ between
classes a run over powers of their likelihood gives the evidence of those.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.errors import MercerError
from mercer.likelihoods.label_noise import LabelNoise, fixed_rate
from mercer.sphere.adaptation import QUARTER, first_moves
from mercer.sphere.evidence import ErrorLaw, error_law, log_evidence_of, place_rungs
from mercer.sphere.model import SphereModel
from mercer.sphere.moves import Moves, default_moves
from mercer.sphere.start import PriorStart
from mercer.sphere.tempering import TemperedSampler

__all__ = ["Ladder", "OutOfTimeError", "measure_errors", "measure_noise"]

Array = NDArray[np.float64]

# Cost of an error on the last rung, in nats: a noise rate of 1e-4.
_TOP = math.log(9999.0)
# Costs of the pilot, before rungs are placed by what it sees.
_PILOT = np.concatenate([[0.0], np.geomspace(0.02, _TOP, 11)])
# Powers of the pilot of another likelihood.
_PILOT_POWERS = np.concatenate([[0.0], np.geomspace(0.004, 1.0, 11)])
# Sweeps without which a run says nothing.
_FEWEST_SWEEPS = 10


class OutOfTimeError(MercerError):
    """The clock has run out before a run had enough sweeps to say anything."""


@dataclass(frozen=True)
class Ladder:
    """How long the tempered run is: sweeps of the pilot and of the run itself."""

    n_pilot: int = 24
    n_sweeps: int = 150


def measure_errors(
    rng: np.random.Generator,
    L: Array,
    ladder: Ladder | None = None,
    deadline: float | None = None,
) -> ErrorLaw:
    """Estimate P(number of errors) under the prior.

    Parameters
    ----------
    rng : Generator
    L : ndarray of shape (n, r)
        Rows of the feature space, labels multiplied in.
    ladder : Ladder, optional
    deadline : float, optional
        Of `time.monotonic`; after it the run ends with the sweeps that there are.

    Raises
    ------
    OutOfTimeError
        If those are too few.
    """
    noise = fixed_rate(1.0 / (1.0 + math.exp(_TOP)), len(L))
    is_wrong, costs = _climb(rng, SphereModel(L, noise), _PILOT / _TOP, ladder, deadline)
    errors = np.count_nonzero(is_wrong, axis=2)
    return error_law(errors, (_TOP * costs)[:, np.newaxis] * np.arange(len(L) + 1))


def measure_noise(
    rng: np.random.Generator,
    L: Array,
    noise: LabelNoise,
    ladder: Ladder | None = None,
    deadline: float | None = None,
) -> tuple[float, float]:
    """Log evidence of noise of any kind, in nats, and its standard error; as `measure_errors`."""
    is_wrong, powers = _climb(rng, SphereModel(L, noise), _PILOT_POWERS, ladder, deadline)
    cost = noise.cost(is_wrong)
    value, error = log_evidence_of(cost, cost[:, :, np.newaxis] * powers)
    return value + noise.log_no_errors, error


def _climb(
    rng: np.random.Generator,
    model: SphereModel,
    pilot: Array,
    ladder: Ladder | None,
    deadline: float | None,
) -> tuple[NDArray[np.bool_], Array]:
    """Wrong rows of every draw, (n_sweeps, n_rungs, n), and the powers of the rungs."""
    ladder = ladder or Ladder()
    moves = first_moves(default_moves(model.rank), model)
    moves = Moves(moves.names, max(moves.duration, _shortest(model)), moves.directions)
    seen = _run(rng, model, pilot, moves, ladder.n_pilot, deadline)
    if len(seen) < ladder.n_pilot:
        raise OutOfTimeError("no time for a pilot run")
    costs = model.noise.cost(seen[ladder.n_pilot // 3 :])
    powers = place_rungs(pilot, costs)
    n_burn = max(ladder.n_sweeps // 8, 5)
    seen = _run(rng, model, powers, moves, n_burn + ladder.n_sweeps, deadline)
    if len(seen) < n_burn + _FEWEST_SWEEPS:
        raise OutOfTimeError("no time for a run over noise levels")
    return seen[n_burn:], powers


def _shortest(model: SphereModel) -> float:
    return QUARTER if model.n_rows <= 20 * model.rank else 0.0


def _run(
    rng: np.random.Generator,
    model: SphereModel,
    powers: Array,
    moves: Moves,
    n_sweeps: int,
    deadline: float | None,
) -> NDArray[np.bool_]:
    """Wrong rows after every sweep, as many as time allows: shape (n_sweeps, n_rungs, n)."""
    start = PriorStart(model.rank)
    sampler = TemperedSampler(model, tuple(powers.tolist()), (moves,) * len(powers), start, _none)
    state = sampler.init(rng)
    is_wrong = np.empty((n_sweeps, len(powers), model.n_rows), np.bool_)
    for sweep in range(n_sweeps):
        if deadline is not None and time.monotonic() > deadline:
            return is_wrong[:sweep]
        state, _ = sampler.step(rng, state)
        is_wrong[sweep] = state.points[:, : model.n_rows] <= 0.0
    return is_wrong


def _none(f: Array, g: Array) -> Mapping[str, Array]:
    return {}
