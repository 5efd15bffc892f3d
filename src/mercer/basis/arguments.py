"""Checks of the arguments that take several forms; messages name the parameter and its range."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.basis.levels.levels import KINDS
from mercer.basis.scales import GivenScales
from mercer.errors import UsageError
from mercer.estimation.options import check_choice, check_count, check_positive
from mercer.estimation.run import CommonArguments
from mercer.estimation.standardize import METHODS
from mercer.estimation.target_scale import TargetScale
from mercer.sampling.resampling import SCHEMES

__all__ = [
    "checked_common",
    "checked_forgetting",
    "checked_given",
    "checked_lengthscale",
    "checked_share",
]


def checked_common(model: Any) -> CommonArguments:
    """Check the arguments that mean the same for numbers and classes; return those of the run.

    Raises
    ------
    UsageError
        Naming one that is out of its range.
    """
    check_choice("kernel", model.kernel, KINDS)
    check_count("n_particles", model.n_particles, 2)
    check_positive("expected_centres", model.expected_centres)
    check_count("max_centres", model.max_centres, 1)
    if model.max_candidates is not None:
        check_count("max_candidates", model.max_candidates, 1)
    check_choice("centres_prior", model.centres_prior, ("negative_binomial", "poisson"))
    check_choice("linear_part", model.linear_part, (True, False))
    check_choice("resampling", model.resampling, tuple(SCHEMES))
    check_choice("standardize", model.standardize, METHODS)
    check_count("scale_rows", model.scale_rows, 1)
    common = CommonArguments(
        1, 0, 1, 1, model.random_state, 1, model.progress, model.checkpoint, model.max_seconds
    )
    common.check()
    return common


def checked_lengthscale(value: Any) -> str | tuple[float, ...]:
    """Return "learn", "median", or numbers.

    Raises
    ------
    UsageError
        If it is none of those.
    """
    if isinstance(value, str) and value in ("learn", "median"):
        return value
    numbers_ = _numbers(value)
    if not numbers_ or not all(1e-6 <= each <= 1e6 for each in numbers_):
        raise UsageError(
            "lengthscale must be 'learn', 'median' or numbers between 1e-06 and 1e+06; "
            f"got {value!r}"
        )
    return numbers_


def checked_forgetting(value: Any) -> tuple[float, ...]:
    """Return the weights that rows keep, one for each filter.

    Raises
    ------
    UsageError
        If one is outside [0.5, 1], or there is none.
    """
    numbers_ = _numbers(value)
    if not numbers_ or not all(0.5 <= each <= 1.0 for each in numbers_):
        raise UsageError(f"forgetting must be one or several numbers in [0.5, 1]; got {value!r}")
    return numbers_


def checked_share(value: Any) -> float | None:
    """Return the share of the particles that is moved after each row; None for "auto".

    Raises
    ------
    UsageError
        If it is outside (0, 1].
    """
    if isinstance(value, str) and value == "auto":
        return None
    share = _numbers(value)
    if len(share) != 1 or not 0.0 < share[0] <= 1.0:
        raise UsageError(f"move_fraction must be 'auto' or a number in (0, 1]; got {value!r}")
    return share[0]


def checked_given(method: Any, input_scale: Any, target_scale: Any) -> GivenScales:
    """Return what was said of the scales.

    Raises
    ------
    UsageError
        If a scale is not a positive number.
    """
    scale = None
    if input_scale is not None:
        numbers_ = _numbers(input_scale)
        if not numbers_ or not all(0.0 < each < math.inf for each in numbers_):
            raise UsageError(f"input_scale must be numbers above 0; got {input_scale!r}")
        scale = np.array(numbers_ if np.ndim(input_scale) else numbers_[0])
    return GivenScales(method, scale, _target(target_scale))


def _target(value: Any) -> TargetScale | None:
    if value is None:
        return None
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2:
        centre, scale = value
        if not (isinstance(centre, numbers.Real) and math.isfinite(centre)):
            raise UsageError(f"the centre of target_scale must be a number; got {centre!r}")
        return TargetScale(float(centre), check_positive("target_scale", scale))
    return TargetScale(0.0, check_positive("target_scale", value))


def _numbers(value: Any) -> tuple[float, ...]:
    """Return a number, or the numbers of a sequence; none where something else is among them."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    each = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    is_right = all(isinstance(v, numbers.Real) and not isinstance(v, bool) for v in each)
    return tuple(float(v) for v in each) if is_right else ()
