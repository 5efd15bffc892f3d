"""What the parts of `basis-claims` hand back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reproduce.papers.reproduction import Claim

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Part"]


@dataclass(frozen=True)
class Part:
    """Some of the claims, with their panels of the picture and their test errors."""

    claims: tuple[Claim, ...]
    panels: tuple[Callable[[Axes], None], ...]
    measured: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
