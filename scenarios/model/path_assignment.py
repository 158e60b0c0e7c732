"""Path assignment: path of each queue pair after LAGs, BGP and path control have reacted to failed links. PURE.

Path control follows ``testbed.routing.pathcontrol.host_agent``. It prefers the home source port if the destination is
reachable from its port, then the current one. Otherwise it takes the first free source port that the LAG maps to a
working port. A queue pair that its adapter bound to a port follows ``rebind`` in the same order, or stays.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from hpn.scenarios.model.router import Lag
from hpn.testbed.fabric.model import Fabric, Nic
from hpn.testbed.routing.pathcontrol.host_agent import port_instead
from hpn.testbed.routing.pathcontrol.policies import DEFAULT
from hpn.testbed.routing.pathcontrol.source_ports import SourcePorts
from hpn.traffic.flows.flow import ROCE_PORT, FlowSpec
from hpn.traffic.fluid.forwarding import Forwarding


@dataclass(frozen=True, eq=False)
class AssignedPath:
    """Directed links of each flow's data (-1: none), and whether it arrives; it does not if dropped on the path.

    A flow whose NIC has no port left has no links. ``answers``: links of its acknowledgements; ``answered``: whether
    these arrive.
    """

    links: NDArray[np.int32]  # (flows, hops) as of ``Forwarding``
    arrives: NDArray[np.bool_]
    answers: NDArray[np.int32]  # (flows, hops)
    answered: NDArray[np.bool_]


class PathAssignment:
    """Flows of a drill and their current source ports; each ``settle`` starts from the result of the last one."""

    def __init__(self, fabric: Fabric, lag: Lag, flows: Sequence[FlowSpec], *, known: bool) -> None:
        """Take ``known``: True if path control, where the topology has it, knows the flows."""
        self._fabric, self._lag, self._flows = fabric, lag, flows
        policy = fabric.spec.path_control.chosen
        self._control = known and policy.name == DEFAULT
        self._rebinds = known and policy.binds
        self._sports: dict[str, SourcePorts] = {}
        self._ends = [(fabric.nic(flow.src_nic), fabric.nic(flow.dst_nic)) for flow in flows]
        for flow in flows:
            self._of(flow.src_nic).add(2 * flow.id, flow.sport)
        for flow in flows:
            self._of(flow.dst_nic).add(2 * flow.id + 1, flow.ack_sport)
        homes = ((at, port) for flow in flows for at, port in enumerate((flow.port, flow.ack_port), 2 * flow.id))
        self._home = {connection: port for connection, port in homes if port is not None}
        self._bound = dict(self._home)

    def settle(self, down: Collection[str]) -> AssignedPath:
        """Return the final paths of the flows while these links are down."""
        forwarding = Forwarding(self._fabric, down)
        for flow, (src, dst) in zip(self._flows, self._ends, strict=True):
            if self._rebinds:
                self._bind(2 * flow.id, src, dst, forwarding)
                self._bind(2 * flow.id + 1, dst, src, forwarding)
            elif self._control and flow.port is None:
                self._place(2 * flow.id, flow.sport, src, dst, forwarding)
                self._place(2 * flow.id + 1, flow.ack_sport, dst, src, forwarding)
        links, arrives = self._walk(self._ends, 0, forwarding)
        answers, answered = self._walk([(dst, src) for src, dst in self._ends], 1, forwarding)
        return AssignedPath(links, arrives, answers, answered)

    def _walk(
        self, ends: Sequence[tuple[Nic, Nic]], which: int, forwarding: Forwarding
    ) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Return the paths of all flows' data (0) or acknowledgements (1), from the first end to the other."""
        sports = [self._of(src.name)[2 * flow.id + which] for flow, (src, _) in zip(self._flows, ends, strict=True)]
        bound = [self._bound.get(2 * flow.id + which) for flow in self._flows]
        ports = [
            self._port(src, dst, sport, forwarding, to)
            for (src, dst), sport, to in zip(ends, sports, bound, strict=True)
        ]
        sending = [at for at, port in enumerate(ports) if port is not None]
        arrives = np.zeros(len(ports), dtype=np.bool_)
        found = forwarding.walk(
            [ends[at][0] for at in sending],
            [ends[at][1] for at in sending],
            [port for port in ports if port is not None],
            [sports[at] for at in sending],
        )
        links = np.full((len(ports), found.links.shape[1]), -1, dtype=np.int32)
        links[sending], arrives[sending] = found.links, found.arrives
        return links, arrives

    def _port(self, src: Nic, dst: Nic, sport: int, forwarding: Forwarding, bound: int | None) -> int | None:
        """Return the member port for outgoing packets, or None if the NIC has no active port."""
        active = _active(src, forwarding)
        return self._lag.port(src, dst.ip, sport, ROCE_PORT, active, bound) if active else None

    def _place(self, connection: int, home: int, src: Nic, dst: Nic, forwarding: Forwarding) -> None:
        active, sports = _active(src, forwarding), self._of(src.name)
        good = {port for port in active if forwarding.reaches(src.links[port].upper.node, dst)}
        now = sports[connection]

        def fits(sport: int) -> bool:
            return self._lag.port(src, dst.ip, sport, ROCE_PORT, active) in good

        if not good or (fits(now) and not fits(home)):
            return
        found = next((sport for sport in chain((home,), sports.candidates(connection)) if fits(sport)), now)
        if found != now:
            sports.change(connection, found)

    def _bind(self, connection: int, src: Nic, dst: Nic, forwarding: Forwarding) -> None:
        if connection not in self._home:
            return
        active, ports = _active(src, forwarding), range(len(src.links))
        good = [port for port in active if forwarding.reaches(src.links[port].upper.node, dst)]
        choices = (self._home[connection], self._bound[connection], *good)
        fitting = (port for port in choices if port_instead(port, ports, active) in good)
        self._bound[connection] = next(fitting, self._bound[connection])

    def _of(self, nic: str) -> SourcePorts:
        if nic not in self._sports:
            self._sports[nic] = SourcePorts(nic, self._fabric.spec.seed)
        return self._sports[nic]


def _active(nic: Nic, forwarding: Forwarding) -> list[int]:
    return [port for port, link in enumerate(nic.links) if link.name not in forwarding.down]
