"""Adapter of one NIC with queue affinity: it binds queue pairs, and moves those of a port that left the LAG.

Changes when an adapter reacts to its LAG in another way. It acts some time after the LAG's decision, drawn for each
change between ``nic.rebind_least_ms`` and ``rebind_most_ms`` (``NicSpec`` says where they come from). A change while
one is pending waits with it, as the driver's one work item does; then the present ports count.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import count

from hpn.testbed.events import Event, EventKind, EventSink, now_ns
from hpn.testbed.fabric.model import Nic
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.kernel.nftables.nft import Nft
from hpn.testbed.lag.affinity import Affinity, BoundQueuePair
from hpn.testbed.routing.pathcontrol.actions import Rebind
from hpn.testbed.routing.pathcontrol.host_agent import Connection, port_instead
from hpn.testbed.routing.pathcontrol.source_ports import digest

REMAPPED = "remapped"
"""Timeline word: the queue pairs bound to ``port`` leave by ``to_port``."""
_DRAWS = 1 << 32


class Adapter:
    """Queue affinity of a NIC; its LAG reports active ports by ``set_active``."""

    def __init__(self, spec: FabricSpec, nic: Nic, nft: Nft, sink: EventSink) -> None:
        self.affinity = Affinity(nft, nic.lag, [link.lower.name for link in nic.links])
        self._spec, self._nic, self._sink = spec, nic, sink
        self._ports = tuple(link.lower.name for link in nic.links)
        self._active: tuple[str, ...] = ()
        self._changes = count()
        self._pending: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Create the bindings' rules. NftError when the kernel refuses."""
        self.affinity.setup()

    def close(self) -> None:
        """Cancel what is pending, and remove the rules."""
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None
        self.affinity.close()

    def bind(self, connections: Iterable[Connection], also: Sequence[int] = ()) -> None:
        """Bind queue pairs to their ports, with the source ports ``also`` besides their own."""
        self.affinity.bind(
            BoundQueuePair(each.id, each.dst_ip, (each.home_sport, *also), each.bound_to)
            for each in connections
            if each.bound_to is not None
        )

    def rebind(self, changes: Sequence[Rebind]) -> None:
        """Bind queue pairs to other ports, as path control asks."""
        self.affinity.rebind({change.connection: change.to_port for change in changes})

    def set_active(self, ports: tuple[str, ...]) -> None:
        """Handle a change of the LAG's ports, after a drawn time."""
        self._active = ports
        if self._pending is None:
            self._pending = asyncio.get_running_loop().call_later(self._drawn_ms() / 1000, self._remap)

    def _drawn_ms(self) -> float:
        least, most = self._spec.nic.rebind_least_ms, self._spec.nic.rebind_most_ms
        share = digest(self._spec.seed, self._nic.name, f"rebind {next(self._changes)}") / _DRAWS
        return least + share * (most - least)

    def _remap(self) -> None:
        self._pending = None
        before = dict(self.affinity.instead)
        after = {port: port_instead(port, self._ports, self._active) for port in self._ports}
        if after == before:
            return
        self.affinity.remap(after)
        at_ns = now_ns()
        for port in self._ports:
            if after[port] != before[port]:
                detail: dict[str, str | int | float] = {"port": port, "to_port": after[port]}
                self._sink(Event(at_ns, EventKind.LAG, self._nic.host, self._nic.lag, REMAPPED, detail))
