"""Question and answer of a method of location: packets by path, and who is accused. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hpn.failover.locating.parts import Suspect, Suspects

Counts = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]
Row = npt.NDArray[np.bool_]
"""True for each path that crosses something."""

MOST_FAULTS = 8
"""Suspects that a method names at most."""


HEALTHY_LOSS = 1e-6
"""Share of packets that a healthy path loses: far below the faults that are looked for."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Packets sent and lost on each path of ``suspects`` in an interval, or observations made and bad ones.

    ``healthy``: share of bad ones on a healthy path, of all or of each.
    """

    suspects: Suspects
    sent: Counts
    lost: Counts
    healthy: float | Reals = HEALTHY_LOSS


@dataclass(frozen=True, slots=True)
class Accused:
    """A suspect with the loss that the method estimates (0 .. 1) and its confidence (0 .. 1)."""

    suspect: Suspect
    loss: float
    confidence: float
