"""One NIC of a running host: it acts on its LAG's decisions by announcements and path control.

The LAG decides which member ports carry traffic. Whenever that set grows the host announces itself (``announce``),
because a ToR forgets hosts behind a port without carrier. Linux bonding does the same since 6.17 (peer notification
on recovery in 802.3ad mode), without checking for an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hpn.testbed.events import Event, EventKind, EventSink, now_ns
from hpn.testbed.fabric.model import Fabric, Nic
from hpn.testbed.kernel.nftables.nft import Nft
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink.rtnl_events import LinkEvent
from hpn.testbed.lab.adapter import Adapter
from hpn.testbed.lab.announce import Announcer
from hpn.testbed.lab.watch import Message
from hpn.testbed.lag.datapath import UDP, LagKind, LagPlace
from hpn.testbed.lag.machine import PortStatus
from hpn.testbed.lag.speakers import HERE, Speakers
from hpn.testbed.lag.steering import Steering
from hpn.testbed.routing.pathcontrol.actions import Move
from hpn.testbed.routing.pathcontrol.agent_io import AgentIo
from hpn.testbed.routing.pathcontrol.destinations import HostSettings
from hpn.testbed.routing.pathcontrol.host_agent import Connection
from hpn.testbed.routing.pathcontrol.policies import HostPlace, HostPolicy


@dataclass(frozen=True, slots=True)
class _Control:
    """Path control of a NIC: the policy, and its input and output."""

    agent: HostPolicy
    io: AgentIo


class HostNic:
    """One NIC with a LAG of ``kind``; ``on_move`` is called to move a connection."""

    def __init__(
        self,
        fabric: Fabric,
        nic: Nic,
        kind: LagKind,
        space: NetNs,
        nft: Nft,
        sink: EventSink,
        on_move: Callable[[Move], None],
        lacp: Speakers = HERE,
    ) -> None:
        self.nic = nic
        self._sink = sink
        self._ports = tuple(link.lower.name for link in nic.links)
        self._ifindexes = {nic.lag_ifindex, *(link.lower.ifindex for link in nic.links)}
        self._active: tuple[str, ...] = ()
        self._avoided: set[str] = set()  # ports by which no queue pair is to leave
        self.announcer = Announcer(nic, space)
        self._lag = kind.make(LagPlace(fabric, nic, space, nft, sink, self._set_active, lacp))
        self._moves_itself = kind.moves_itself
        control = fabric.spec.path_control
        settings = HostSettings(control.refresh_ms, control.hold_ms, control.hold_max_ms)
        place = HostPlace(nic.name, self._ports, settings, self.port_among, fabric.spec.seed, nic.ip)
        tors = {link.lower.name: link.upper.mac for link in nic.links}
        self.steering = Steering(nft, nic.lag, self._ports) if control.chosen.steers else None
        self.adapter = Adapter(fabric.spec, nic, nft, sink) if fabric.spec.nic.binds else None
        self._control: _Control | None = None
        if control.chosen.agent is not None:
            agent = control.chosen.agent(place)
            steer = None if self.steering is None else self.steering.apply
            rebind = None if self.adapter is None else self.adapter.rebind
            io = AgentIo(nic.host, space, agent, self._ports, sink, on_move, tors, self._lag.look, steer, rebind)
            self._control = _Control(agent, io)

    def start(self) -> None:
        """Start path control and the LAG; no port carries traffic yet."""
        if self.steering is not None:
            self.steering.setup()
        if self.adapter is not None:
            self.adapter.start()
        if self._control is not None:
            self._control.io.start()
        self._lag.start()

    def close(self) -> None:
        """Stop all protocols and close the sockets; the interfaces stay as they are."""
        self._lag.close()
        self.announcer.close()
        if self._control is not None:
            self._control.io.stop()
        if self.steering is not None:
            self.steering.close()
        if self.adapter is not None:
            self.adapter.close()

    def port_of_bound(self, port: int) -> int | None:
        """Return the index of the port by which queue pairs bound to ``port`` leave now; None while none is active."""
        if not self._active or self.adapter is None:
            return None
        return self._ports.index(self.adapter.affinity.instead[self._ports[port]])

    def connect(self, connections: Iterable[Connection]) -> None:
        """Put queue pairs under path control; no-op if it is disabled."""
        if self._control is not None:
            self._control.io.perform(self._control.agent.add(connections, now_ns()))

    def disconnect(self, connections: Iterable[int]) -> None:
        """Remove finished queue pairs from path control."""
        if self._control is not None:
            self._control.agent.remove(connections)

    def carrier(self, port: str, up: bool) -> None:
        """Handle a carrier change of a member port, as the link monitor reported it."""
        self._lag.carrier(port, up)

    def on_messages(self, messages: Iterable[Message]) -> None:
        """Handle messages of the host's link monitor."""
        if any(isinstance(message, LinkEvent) and message.ifindex in self._ifindexes for message in messages):
            self._lag.look()

    @property
    def held_until_ns(self) -> int:
        """Time until which path control holds a flapping destination away from its port; 0 if it never flapped."""
        return 0 if self._control is None else self._control.io.held_until_ns

    def look(self) -> None:
        """Read the LAG's active ports now: the monitor lost messages, or a decision is due."""
        self._lag.look()

    @property
    def active(self) -> tuple[int, ...]:
        """Indexes of the ports that collect and distribute."""
        return tuple(self._ports.index(port) for port in self._active)

    def port_for(self, dst_ip: str, sport: int, dport: int, proto: int = UDP) -> int | None:
        """Return the index of a packet's egress port; None while none is active. Call ``look`` first if in doubt.

        The port of a bound queue pair may have left the LAG, until the adapter acts.
        """
        if not self._active:
            return None
        bound = None if self.adapter is None or proto != UDP else self.adapter.affinity.port_for(dst_ip, sport)
        if bound is not None:
            return self._ports.index(bound)
        chosen = self._lag.port_for(self.nic.ip, dst_ip, sport, dport, proto, self._active)
        return self._ports.index(chosen if self.steering is None else self.steering.port_for(chosen, dst_ip))

    def status(self) -> tuple[PortStatus, ...]:
        """Return the LACP state of each port."""
        return self._lag.status()

    def driver_text(self) -> str:
        """Return the LAG driver's status text (/proc/net/bonding), evidence for a run folder; '' without a driver."""
        return self._lag.driver_text()

    def _set_active(self, ports: tuple[str, ...], stamped: Mapping[str, float]) -> None:
        grown = bool(set(ports) - set(self._active))
        seen_ns = now_ns()
        self._lag.set_active(ports)
        self._active = ports
        at_ns = seen_ns if self._moves_itself else now_ns()
        detail: dict[str, str | int | float] = {"ports": ",".join(ports), **stamped}
        self._sink(Event(at_ns, EventKind.LAG, self.nic.host, self.nic.lag, "active", detail))
        self._place()
        self.announcer.carry(len(ports), grown=grown)

    def avoid(self, port: str, *, avoided: bool) -> None:
        """Have bound queue pairs leave by other ports than this one, or no longer; the LAG still receives by it."""
        (self._avoided.add if avoided else self._avoided.discard)(port)
        self._place()

    def _place(self) -> None:
        """Tell the adapter and path control which ports queue pairs may leave by."""
        ports = tuple(port for port in self._active if port not in self._avoided) or self._active
        if self.adapter is not None:
            self.adapter.set_active(ports)
        if self._control is not None:
            self._control.io.perform(self._control.agent.set_active(ports, now_ns()))

    def port_among(self, sport: int, dst_ip: str, dport: int, active: Sequence[str]) -> str:
        """Return the LAG's port for such a packet while these are active, before any steering or binding."""
        return self._lag.port_for(self.nic.ip, dst_ip, sport, dport, UDP, active)
