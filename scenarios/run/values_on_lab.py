"""Entropy values of multipath queue pairs on a running lab, and the ports of their NICs that they lead to now.

Values are chosen once, and stay. When a LAG's ports change, or its steering, the workers learn where they lead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hpn.scenarios.run.lab_router import LabRouter
from hpn.testbed.lab.lab import Lab
from hpn.traffic.flows.entropy import entropy_values
from hpn.traffic.flows.flow import ROCE_PORT, FlowSpec, answering
from hpn.traffic.multipath.settings import EntropyValue, Multipath

_REPLIES_PER_PORT = 4
_LOOKED = 16

Tell = Callable[[Mapping[int, tuple[EntropyValue, ...]]], None]


class LabValues:
    """Entropy values by connection: 2 x flow for data, 2 x flow + 1 for ACKs. ``tell`` sends them to the workers."""

    def __init__(self, lab: Lab, settings: Multipath, tell: Tell) -> None:
        self._lab = lab
        self._settings = settings
        self._tell = tell
        self._values: dict[int, tuple[EntropyValue, ...]] = {}

    def choose(self, flows: Sequence[FlowSpec]) -> None:
        """Choose the values of these flows."""
        router, seed, news = LabRouter(self._lab), self._lab.fabric.spec.seed, {}
        for flow in flows:
            back = answering(flow)
            news[2 * flow.id] = entropy_values(flow, self._settings.paths, router, seed)
            news[2 * flow.id + 1] = entropy_values(back, _REPLIES_PER_PORT * router.ports(back.src_nic), router, seed)
        self._values.update(news)
        self._tell(news)

    def look(self, flows: Sequence[FlowSpec]) -> None:
        """Find out by which ports the values of these flows lead now; those of a NIC without a port stay."""
        news = {}
        for flow in flows:
            for connection, way in ((2 * flow.id, flow), (2 * flow.id + 1, answering(flow))):
                found = tuple(self._now(way, value) for value in self._values.get(connection, ()))
                if found != self._values.get(connection, ()):
                    news[connection] = found
        self._values.update(news)
        # A receiver learns both directions at once.
        self._tell({at: self._values[at] for one in news for at in (one // 2 * 2, one // 2 * 2 + 1)})

    def source_ports(self, flow: int) -> tuple[int, ...]:
        """Return the source ports of a flow's data whose paths are looked at: the first few, for all of them."""
        return tuple(value.sport for value in self._values.get(2 * flow, ())[:_LOOKED])

    def _now(self, flow: FlowSpec, value: EntropyValue) -> EntropyValue:
        port = self._lab.nics[flow.src_nic].port_for(flow.dst_ip, value.sport, ROCE_PORT)
        return value if port is None else value._replace(port=port)
