"""The baselines of each task."""

from __future__ import annotations

from typing import Final

from mercer.baselines.peers import PEERS, Peer
from mercer.baselines.regression_peers import REGRESSION_PEERS

__all__ = ["peers_of"]

_PEERS: Final = {"classification": PEERS, "regression": REGRESSION_PEERS}


def peers_of(task: str) -> tuple[Peer, ...]:
    """Return the baselines of "classification" or of "regression"."""
    return _PEERS[task]
