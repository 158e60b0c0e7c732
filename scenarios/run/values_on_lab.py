"""Entropy values of multipath queue pairs on a running lab, and the ports of their NICs that they lead to now.

Values are chosen once, and stay. In a lab with SRv6 they stand for its static paths, each in turn. Elsewhere a LAG and
ECMP hash them: when a LAG's ports change, or its steering, the workers learn where they lead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from hpn.scenarios.run.lab_router import LabRouter
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.srv6_carriers import Carried, Carriers
from hpn.testbed.routing.srv6.packet import CARRIED_BYTES
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

Values = tuple[tuple[EntropyValue, ...], tuple[EntropyValue, ...]]
"""Of a flow's data, and of its acknowledgements."""

Tell = Callable[[Mapping[int, tuple[EntropyValue, ...]]], None]


def _value(sport: int, carried: Carried, back: int) -> EntropyValue:
    return EntropyValue(sport, carried.path.port, carried.via, carried.mark, back)


def carried_share(spec: FabricSpec, transport: Transport) -> float:
    """Return the share of a port's rate that is left for full-size packets themselves, without carriers around them."""
    if spec.srv6 is None or transport.multipath is None:
        return 1
    own = wire_bytes(transport.path_mtu)
    return own / (own + CARRIED_BYTES)


def carried_addresses(lab: Lab, transport: Transport) -> Mapping[str, str] | None:
    """Return the IPv6 address of each NIC where packets of a job travel in carriers; None elsewhere."""
    return None if lab.srv6 is None or transport.multipath is None else lab.srv6.plan.inner


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
            choose = self._hashed if self._carriers is None else partial(self._carried, self._carriers)
            news[2 * flow.id], news[2 * flow.id + 1] = choose(flow)
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

    def _hashed(self, flow: FlowSpec) -> Values:
        """Return values for data and acknowledgements that LAGs and ECMP hash."""
        router, seed, back = LabRouter(self._lab), self._lab.fabric.spec.seed, answering(flow)
        replies = _REPLIES_PER_PORT * router.ports(back.src_nic)
        return entropy_values(flow, self._settings.paths, router, seed), entropy_values(back, replies, router, seed)

    def _carried(self, carriers: Carriers, flow: FlowSpec) -> Values:
        """Return values that stand for static paths; each path of data has one for its way back."""
        seed, back, count = self._lab.fabric.spec.seed, answering(flow), self._settings.paths
        there = carriers.paths(flow.src_nic, flow.dst_nic)[:count]
        by_links = {each.path.links: each for each in carriers.paths(back.src_nic, back.dst_nic)}
        data = tuple(
            _value(sport, there[at % len(there)], at % len(there)) for at, sport in enumerate(drawn(flow, count, seed))
        )
        self._static.update(((2 * flow.id, value.sport), there[value.back].path) for value in data)
        ways_back = (by_links[each.path.links[::-1]] for each in there)
        sports = drawn(back, len(there), seed)
        return data, tuple(_value(sport, each, -1) for sport, each in zip(sports, ways_back, strict=True))

    def _now(self, flow: FlowSpec, value: EntropyValue) -> EntropyValue:
        port = self._lab.nics[flow.src_nic].port_for(flow.dst_ip, value.sport, ROCE_PORT)
        return value if port is None else value._replace(port=port)
