"""Entropy values of multipath queue pairs on a running lab, and the ports of their NICs that they lead to now.

Values are chosen once, and stay. In a lab with SRv6 they stand for its static paths, each in turn. Elsewhere a LAG and
ECMP hash them: when a LAG's ports change, or its steering, the workers learn where they lead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, islice

from hpn.scenarios.run.lab_router import LabRouter
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.srv6_carriers import Carriers
from hpn.testbed.routing.srv6.packet import IPV6_BYTES
from hpn.testbed.routing.srv6.plan import UsidPath
from hpn.testbed.routing.trace import Flow
from hpn.traffic.flows.entropy import drawn, entropy_values
from hpn.traffic.flows.flow import ROCE_PORT, FlowSpec, answering
from hpn.traffic.flows.framing import wire_bytes
from hpn.traffic.multipath.settings import EntropyValue, Multipath
from hpn.traffic.transport.work import Transport

_REPLIES_PER_PORT = 4
_LOOKED = 16
BROKEN = "a link of the static path is down"

Tell = Callable[[Mapping[int, tuple[EntropyValue, ...]]], None]


def carried_share(spec: FabricSpec, transport: Transport) -> float:
    """Return the share of a port's rate that is left for full-size packets themselves, without carriers around them."""
    if spec.srv6 is None or transport.multipath is None:
        return 1
    own = wire_bytes(transport.path_mtu)
    return own / (own + IPV6_BYTES)


class LabValues:
    """Entropy values by connection: 2 x flow for data, 2 x flow + 1 for ACKs. ``tell`` sends them to the workers."""

    def __init__(self, lab: Lab, settings: Multipath, tell: Tell) -> None:
        self._lab = lab
        self._settings = settings
        self._tell = tell
        self._values: dict[int, tuple[EntropyValue, ...]] = {}
        self._carriers = None if lab.srv6 is None else Carriers(lab)
        self._static: dict[tuple[int, int], UsidPath] = {}  # by connection and source port

    def choose(self, flows: Sequence[FlowSpec]) -> None:
        """Choose the values of these flows."""
        news: dict[int, tuple[EntropyValue, ...]] = {}
        for flow in flows:
            back = answering(flow)
            replies = _REPLIES_PER_PORT * len(self._lab.fabric.nic(back.src_nic).links)
            news[2 * flow.id] = self._chosen(2 * flow.id, flow, self._settings.paths)
            news[2 * flow.id + 1] = self._chosen(2 * flow.id + 1, back, replies)
        self._values.update(news)
        self._tell(news)

    def look(self, flows: Sequence[FlowSpec]) -> None:
        """Find out by which ports the values of these flows lead now; those of a NIC without a port stay."""
        if self._carriers is not None:
            return  # static
        news = {}
        for flow in flows:
            for connection, way in ((2 * flow.id, flow), (2 * flow.id + 1, answering(flow))):
                found = tuple(self._now(way, value) for value in self._values.get(connection, ()))
                if found != self._values.get(connection, ()):
                    news[connection] = found
        self._values.update(news)
        # A receiver learns both directions at once.
        self._tell({at: self._values[at] for one in news for at in (one // 2 * 2, one // 2 * 2 + 1)})

    def ways(self, flow: FlowSpec) -> Iterator[tuple[tuple[str, ...], str | None]]:
        """Yield the links of a flow's data, and why they do not lead to its end, for the first few values of all."""
        for value in self._values.get(2 * flow.id, ())[:_LOOKED]:
            static = self._static.get((2 * flow.id, value.sport))
            if static is None:
                found = self._lab.path(Flow(flow.src_nic, flow.dst_nic, value.sport))
                yield found.links, found.dropped
            else:
                at = next((at for at, link in enumerate(static.links, 1) if not self._lab.link_up(link)), None)
                yield static.links[:at], None if at is None else BROKEN

    def close(self) -> None:
        """Take back what the values needed of the lab."""
        if self._carriers is not None:
            self._carriers.close()

    def _chosen(self, connection: int, flow: FlowSpec, count: int) -> tuple[EntropyValue, ...]:
        seed = self._lab.fabric.spec.seed
        if self._carriers is None:
            return entropy_values(flow, count, LabRouter(self._lab), seed)
        found = self._carriers.paths(flow.src_nic, flow.dst_nic)
        values = []
        for sport, carried in zip(drawn(flow, count, seed), islice(cycle(found), count), strict=True):
            values.append(EntropyValue(sport, carried.path.port, carried.via, carried.mark))
            self._static[connection, sport] = carried.path
        return tuple(values)

    def _now(self, flow: FlowSpec, value: EntropyValue) -> EntropyValue:
        port = self._lab.nics[flow.src_nic].port_for(flow.dst_ip, value.sport, ROCE_PORT)
        return value if port is None else value._replace(port=port)
