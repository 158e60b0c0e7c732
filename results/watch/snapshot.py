"""State of a running lab at one moment: the only input of all displays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hpn.testbed.condition import Condition
from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Port
from hpn.testbed.kernel.rtnetlink.qdisc import Rate

_NOTHING = Rate(0.0, 0.0, 0)


@dataclass(frozen=True)
class Snapshot:
    """A lab by its name, its problems, and the traffic of its ports since the previous reading.

    ``rates`` are by interface number; empty before the second reading. ``up_s``: seconds since the lab was started.
    """

    lab: str
    datapath: str
    up_s: float
    fabric: Fabric
    condition: Condition
    rates: Mapping[int, Rate] = field(default_factory=dict)

    def rate(self, port: Port) -> Rate:
        """Return the rate of traffic sent by this port."""
        return self.rates.get(port.ifindex, _NOTHING)

    def is_dark(self, link: Link) -> bool:
        """Return True if an end of the link has no carrier."""
        return link.lower.label in self._dark or link.upper.label in self._dark

    def state(self, link: Link) -> str:
        """Return the state of LACP for an access link, of BGP for a routed one, of the carrier for others."""
        if self.is_dark(link):
            return "no carrier"
        if link.kind is LinkKind.ACCESS:
            return self._lacp(link)
        if not link.is_routed:
            return "up"
        down = [end.node for end in (link.lower, link.upper) if end.label in self._sessions_down]
        if down:
            return f"no session ({' and '.join(down)})" if len(down) == 1 else "no session"
        dead = any(end.label in self.condition.bfd_down for end in (link.lower, link.upper))
        return "established, BFD down" if dead else "established"

    def is_well(self, link: Link) -> bool:
        """Return True if the link is in its normal state."""
        return self.state(link) in {"distributing", "established", "up"}

    def load(self, link: Link) -> float:
        """Return the load as a share of the link's rate, in its busier direction; 1.0 is full."""
        return max(self.rate(link.lower).sent_bps, self.rate(link.upper).sent_bps) / link.rate_bps

    def _lacp(self, link: Link) -> str:
        for end in (link.lower, link.upper):
            if end.label in self.condition.idle:
                mux, why = self.condition.idle[end.label]
                where = "" if end is link.lower else "ToR "
                return f"{where}{mux}: {why}" if why else f"{where}{mux}"
        return "distributing"

    @cached_property
    def _dark(self) -> frozenset[str]:
        return frozenset(self.condition.dark)

    @cached_property
    def _sessions_down(self) -> frozenset[str]:
        return frozenset(self.condition.sessions_down)
