"""The LAG of a NIC by the Linux bonding driver: it speaks LACP and moves frames, we follow what it decides.

The driver notifies the host's link monitor when a member becomes active or idle; each time its state is read anew.
A member that loses its carrier or is put down it leaves out at once, before the kernel tells of the interface, and
says so itself only at miimon's next look: what the interface says counts (``bond.MemberState``). For members that LACP
takes in or out it rewrites its slave array in a work queued when its machines have run, as it tells of them: there
the moment reported and the driver's are apart by what a work item waits, and by the event loop's lag. Both want RTNL:
while that is taken the array waits for a jiffy, the telling for the machines' next run. Such an event says so itself.
It says nothing when LACP comes to terms over a port that it held active already, for want of a better one, nor when
its machines leave a port that lost its carrier; so while a port with carrier does not distribute, or one without still
does, the state is read at the pace of the driver's own machines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.fabric.architectures.architecture import Problem
from hpn.testbed.fabric.model import Fabric, Nic
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.lag import bond
from hpn.testbed.lag.datapath import LagKind, LagPlace
from hpn.testbed.lag.kernel_datapath import BondPorts, KernelDatapath, Member
from hpn.testbed.lag.machine import PortStatus
from hpn.testbed.lag.states import Mux, Rx

_MACHINES_S = 0.1
"""The driver runs its LACP machines ten times a second (AD_TIMER_INTERVAL)."""
_JIFFY_MS = 10.0
"""The longest there is (HZ=100): by so much the driver puts off rewriting its slave array when RTNL is taken."""


class BondLag:
    """A bond that wiring made."""

    def __init__(self, place: LagPlace) -> None:
        nic = place.nic
        self._host = nic.host
        self._sink = place.sink
        members = [Member(link.lower.name, link.lower.ifindex) for link in nic.links]
        self._datapath = KernelDatapath(place.space, place.nft, Member(nic.lag, nic.lag_ifindex), members)
        self._on_active = place.on_active
        self._active: tuple[str, ...] = ()
        self._machines: Mapping[str, tuple[Rx, Mux]] = {}
        self._looked_ns = now_ns()
        self._again: asyncio.TimerHandle | None = None
        self._closed = False

    def start(self) -> None:
        """Have ARP go to every port; the driver has been speaking LACP since it has ports."""
        self._datapath.setup()
        self.look()

    def carrier(self, _port: str, _up: bool) -> None:
        """The driver sees carrier itself."""

    def close(self) -> None:
        """Follow it no longer."""
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
        # What its machines decided the driver tells in the same tick, in the next while RTNL is taken, or never.
        late = {"late_ms": min((self._looked_ns - looked_ns) / 1e6, _MACHINES_S * 1e3)}
        if not ports.settled:
            self._again = asyncio.get_running_loop().call_later(_MACHINES_S, self.look)
        if ports.active != self._active:
            by_lacp = ports.running.intersection(set(self._active) ^ set(ports.active))
            self._active = ports.active
            self._on_active(ports.active, late | {"early_ms": _JIFFY_MS} if by_lacp else {})
        self._tell(ports, late)

    def set_active(self, ports: Sequence[str]) -> None:
        """Mirror ARP to these ports where the driver does not; it has moved all else already."""
        self._datapath.set_active(ports)

    def port_for(self, src_ip: str, dst_ip: str, sport: int, dport: int, proto: int, active: Sequence[str]) -> str:
        """The port by the driver's hash."""
        return self._datapath.port_for(src_ip, dst_ip, sport, dport, proto, active)

    def status(self) -> tuple[PortStatus, ...]:
        """LACP of each port, as far as the driver tells."""
        return self._datapath.status()

    def driver_text(self) -> str:
        """/proc/net/bonding of this LAG. OSError when the bond is gone."""
        return self._datapath.text()

    def _tell(self, ports: BondPorts, late: Mapping[str, float]) -> None:
        """Put on the timeline which LACP states changed since the last look; those in between are not seen."""
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


def _problem(probe: NetNs) -> str | None:
    netlink = Netlink(probe)
    try:
        netlink.run([bond.create_bond("probe0", 100, mac="02:00:00:00:00:01", mtu=1500, fast=True)])
    except OSError as error:
        return f"no Linux bonding here ({error.strerror or error}): modprobe bonding, or write lag: nft"
    finally:
        netlink.close()
    return None


def _nothing(_fabric: Fabric, _nic: Nic, _space: NetNs) -> Iterable[bytes]:
    return ()


def _bonded(fabric: Fabric, nic: Nic) -> Iterable[bytes]:
    members = [link.lower.ifindex for link in nic.links]
    fast = fabric.spec.lacp.rate == "fast"
    return bond.make(nic.lag, nic.lag_ifindex, members, mac=nic.mac, mtu=fabric.spec.mtu, fast=fast)


def _contradictions(spec: FabricSpec) -> Iterator[Problem]:
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
    at_failure="miimon: Linux bonding looks at carrier every 10 ms and writes its ports when it next gets the lock",
    at_repair="LACP timers: Linux bonding selects a repaired port anew and waits 2 s before it aggregates"
    " (802.1AX 6.4.4), in steps of 100 ms",
    failure_within_ms=10,
    repair_within_ms=2100,
)
