"""Every regressor with tiny settings; a new one joins by one line in ``REGRESSORS``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from support import basis_fits, process_fits, spectral_fits
from support.spectral_fits import waves

#: Those that learn a kernel, with chains.
KERNEL_LEARNERS: dict[str, Callable[..., Any]] = {
    "spectral": spectral_fits.tiny,
    "spectral, as in the paper": lambda **own: spectral_fits.tiny(**{**spectral_fits.PAPER, **own}),
}
#: Gaussian processes, with chains.
PROCESSES: dict[str, Callable[..., Any]] = {
    "gp": process_fits.tiny,
    "gp, as in the paper": lambda **own: process_fits.tiny(**{**process_fits.PAPER, **own}),
}
#: Those that learn row after row.
STREAMERS: dict[str, Callable[..., Any]] = {
    "basis": basis_fits.tiny,
    "basis, as in the paper": lambda **own: basis_fits.tiny(**{**basis_fits.PAPER, **own}),
}
WITH_CHAINS = {**KERNEL_LEARNERS, **PROCESSES}
REGRESSORS = {**WITH_CHAINS, **STREAMERS}
TRAIN_Y = waves(40)[1]
TRAIN_X = np.round(8.0 * waves(40)[0])  # whole numbers: exact in every type
NEW_X = np.round(8.0 * waves(9, seed=4)[0])
