"""Every regressor with tiny settings; a new one joins by one line in ``REGRESSORS``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from support.spectral_fits import PAPER, tiny, waves

REGRESSORS: dict[str, Callable[..., Any]] = {
    "spectral": lambda **own: tiny(**own),
    "spectral, as in the paper": lambda **own: tiny(**{**PAPER, **own}),
}
TRAIN_Y = waves(40)[1]
TRAIN_X = np.round(8.0 * waves(40)[0])  # whole numbers: exact in every type
NEW_X = np.round(8.0 * waves(9, seed=4)[0])
