"""LAG of a NIC by the Linux bonding driver: it runs LACP and forwards frames; this follows its decisions.

The driver notifies the host's link monitor when a member becomes active or idle; each time its state is read again.
It drops a member that loses carrier or is put down at once, before the kernel reports the interface. It reports that
only at miimon's next poll, so the interface's state counts (``bond.MemberState``).

For members that LACP adds or removes, the driver rewrites its slave array in a work item after its machines have run,
which also notify. The reported moment differs from the driver's by the delay of a work item and the event loop's lag.
Both need RTNL: while it is taken the array waits for a jiffy, the notification for the machines' next run. Such an
event carries its uncertainty.

The driver does not notify when LACP agrees on a port that was already active as a fallback. Nor does it when its
machines leave a port that lost its carrier. So the state is polled at the pace of the driver's own machines while a
port with carrier does not distribute, or one without still does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.fabric.architectures.architecture import Problem
from hpn.testbed.fabric.bonding import Bonding
from hpn.testbed.fabric.model import Fabric, Nic
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.lag import bond
from hpn.testbed.lag.datapath import UDP, LagKind, LagPlace
from hpn.testbed.lag.kernel_datapath import BondPorts, KernelDatapath, Member
from hpn.testbed.lag.machine import PortStatus
from hpn.testbed.lag.states import Mux, Rx

_MACHINES_S = 0.1
"""Period of the driver's LACP machines, ten times a second (AD_TIMER_INTERVAL)."""
_JIFFY_MS = 10.0
"""The longest possible jiffy (HZ=100): the driver's delay in rewriting its slave array when RTNL is taken."""


class BondLag:
    """A bond created by wiring."""

    def __init__(self, place: LagPlace) -> None:
        nic = place.nic
        self._host = nic.host
        self._sink = place.sink
        members = [Member(link.lower.name, link.lower.ifindex) for link in nic.links]
        bonding = place.fabric.bonding(nic)
        lag, chooses = Member(nic.lag, nic.lag_ifindex), xmit_hash(place.fabric, nic)
        self._datapath = KernelDatapath(place.space, place.nft, lag, members, chooses, bonding.min_links)
        self._on_active = place.on_active
        self._active: tuple[str, ...] = ()
        self._machines: Mapping[str, tuple[Rx, Mux]] = {}
        self._looked_ns = now_ns()
        self._again: asyncio.TimerHandle | None = None
        self._closed = False

    def start(self) -> None:
        """Make ARP go to every port; the driver has been running LACP since it has ports."""
        self._datapath.setup()
        self.look()

    def carrier(self, _port: str, _up: bool) -> None:
        """Do nothing: the driver detects carrier itself."""

    def close(self) -> None:
        """Stop following the driver."""
        self._closed = True
        self._wait_no_more()
        self._datapath.close()

    def look(self) -> None:
        """Read which ports the driver uses."""
        self._wait_no_more()
        if self._closed:
            return
        looked_ns, self._looked_ns = self._looked_ns, now_ns()
        ports = self._datapath.ports()
        # The driver notifies of its machines' decisions in the same tick, in the next while RTNL is taken, or never.
        late = {"late_ms": min((self._looked_ns - looked_ns) / 1e6, _MACHINES_S * 1e3)}
        if not ports.settled:
            self._again = asyncio.get_running_loop().call_later(_MACHINES_S, self.look)
        if ports.active != self._active:
            by_lacp = ports.running.intersection(set(self._active) ^ set(ports.active))
            self._active = ports.active
            self._on_active(ports.active, late | {"early_ms": _JIFFY_MS} if by_lacp else {})
        self._tell(ports, late)

    def set_active(self, ports: Sequence[str]) -> None:
        """Mirror ARP to these ports if the driver does not; it has moved all other traffic already."""
        self._datapath.set_active(ports)

    def port_for(self, src_ip: str, dst_ip: str, sport: int, dport: int, proto: int, active: Sequence[str]) -> str:
        """Return the port chosen by the driver's hash."""
        return self._datapath.port_for(src_ip, dst_ip, sport, dport, proto, active)

    def status(self) -> tuple[PortStatus, ...]:
        """Return LACP of each port, as far as the driver reports it."""
        return self._datapath.status()

    def driver_text(self) -> str:
        """Return /proc/net/bonding of this LAG. OSError when the bond is gone."""
        return self._datapath.text()

    def _tell(self, ports: BondPorts, late: Mapping[str, float]) -> None:
        """Emit the LACP states that changed since the last look; those in between are missed."""
        for port, states in ports.machines.items():
            before = self._machines.get(port, ())
            detail = late if port in ports.running else {}
            for state in states:
                if state not in before:
                    self._sink(Event(now_ns(), EventKind.LACP, self._host, port, state.value, detail))
        self._machines = ports.machines

    def _wait_no_more(self) -> None:
        if self._again is not None:
            self._again.cancel()
            self._again = None


def xmit_hash(fabric: Fabric, nic: Nic) -> bond.XmitHash:
    """Return the hash by which the driver chooses the port of a NIC's packets, all of which go to its gateway."""
    return bond.XmitHash(fabric.bonding(nic).hash_policy, nic.mac, nic.gateway_mac)


def _port_of(fabric: Fabric, nic: Nic, dst_ip: str, sport: int, dport: int, active: int) -> int:
    return xmit_hash(fabric, nic)(nic.ip, dst_ip, sport, dport, UDP) % active


def _problem(probe: NetNs) -> str | None:
    netlink = Netlink(probe)
    try:
        netlink.run([bond.create_bond("probe0", 100, mac="02:00:00:00:00:01", mtu=1500, bonding=Bonding("fast"))])
    except OSError as error:
        return f"no Linux bonding here ({error.strerror or error}): modprobe bonding, or write lag: nft"
    finally:
        netlink.close()
    return None


def _nothing(_fabric: Fabric, _nic: Nic, _space: NetNs) -> Iterable[bytes]:
    return ()


def _bonded(fabric: Fabric, nic: Nic) -> Iterable[bytes]:
    members = [link.lower.ifindex for link in nic.links]
    bonding = fabric.bonding(nic)
    return bond.make(nic.lag, nic.lag_ifindex, members, mac=nic.mac, mtu=fabric.spec.mtu, bonding=bonding)


def _contradictions(spec: FabricSpec) -> Iterator[Problem]:
    if spec.lacp.miimon_ms == 0:
        text = "lacp.miimon_ms is 0, but Linux bonding then takes no port out of use that loses carrier;"
        yield ("lacp", "miimon_ms"), f"{text} write 1 or more, or lag: nft"
    delay_ms = spec.lacp.down_delay_ms
    if delay_ms:
        text = f"lacp.down_delay_ms is {delay_ms}, but Linux bonding sends nothing through a port without carrier,"
        yield ("lacp", "down_delay_ms"), f"{text} whatever its downdelay; write lag: nft"


KERNEL = LagKind(
    name="kernel",
    unasked=True,
    problem=_problem,
    contradictions=_contradictions,
    interfaces=_nothing,
    raised=_bonded,
    make=BondLag,
    moves_itself=True,
    numbered=False,
    at_failure="miimon: Linux bonding looks at carrier every 10 ms, or lacp.miimon_ms, and writes its ports when"
    " it next gets the lock",
    at_repair="LACP timers: Linux bonding selects a repaired port anew and waits 2 s before it aggregates"
    " (802.1AX 6.4.4), in steps of 100 ms",
    failure_within_ms=10,
    repair_within_ms=2100,
    port_of=_port_of,
)
