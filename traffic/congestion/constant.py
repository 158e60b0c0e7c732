"""No congestion control: a queue pair always sends at the rate of its port, or at a share of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hpn.traffic.congestion.control import Inert, Parameters
from hpn.traffic.congestion.scale import Scale


@dataclass(frozen=True, slots=True)
class ConstantParameters(Parameters):
    """Constant rate: ``share`` of the port's rate that one queue pair sends at, 0 to 1."""

    share: float = 1.0

    def control(self, line_rate_bps: float, scale: Scale) -> Constant:
        """Return a constant rate."""
        return Constant(line_rate_bps * self.share)

    def problems(self, real_rate_bps: float) -> Iterator[tuple[str, str]]:
        """Yield the problem of a share that is 0 or less, or more than 1."""
        if not 0 < self.share <= 1:
            yield "share", f"{self.share:g} is no share of a port's rate; write more than 0, at most 1"


class Constant(Inert):
    """A rate that never changes."""

    def __init__(self, rate_bps: float) -> None:
        self.rate_bps = rate_bps
