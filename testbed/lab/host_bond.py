"""The LAG of a NIC by the Linux bonding driver: it speaks LACP and moves frames, we follow what it decides.

The driver notifies the host's link monitor when a member becomes active or idle; each time its state is read anew.
A member that loses its carrier or is put down it leaves out at once, before the kernel tells of the interface, and
says so itself only at miimon's next look: what the interface says counts (``bond.MemberState``). For members that LACP
takes in or out it rewrites its slave array in a work queued when its machines have run, as it tells of them: there
the moment reported and the driver's are apart by what a work item waits, and by the event loop's lag.
It says nothing when LACP comes to terms over a port that it held active already, for want of a better one; so while
a port with carrier does not distribute, the state is read at the pace of the driver's own machines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from testbed.events import Event, EventKind, EventSink, now_ns
from testbed.fabric.model import Nic
from testbed.kernel.nft import Nft
from testbed.kernel.ns import NetNs
from testbed.lab.host_lag import OnActive
from testbed.lag.kernel_datapath import KernelDatapath, Member
from testbed.lag.states import Mux, Rx

_MACHINES_S = 0.1
"""The driver runs its LACP machines ten times a second (AD_TIMER_INTERVAL)."""


class BondLag:
    """A bond that wiring made."""

    def __init__(self, nic: Nic, space: NetNs, nft: Nft, sink: EventSink, on_active: OnActive) -> None:
        self._host = nic.host
        self._sink = sink
        members = [Member(link.lower.name, link.lower.ifindex) for link in nic.links]
        self._datapath = KernelDatapath(space, nft, Member(nic.lag, nic.lag_ifindex), members)
        self._on_active = on_active
        self._active: tuple[str, ...] = ()
        self._machines: Mapping[str, tuple[Rx, Mux]] = {}
        self._again: asyncio.TimerHandle | None = None
        self._closed = False
        self.set_active = self._datapath.set_active
        self.port_for = self._datapath.port_for
        self.status = self._datapath.status
        self.driver_text = self._datapath.text

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
        ports = self._datapath.ports()
        if not ports.settled:
            self._again = asyncio.get_running_loop().call_later(_MACHINES_S, self.look)
        if ports.active != self._active:
            self._active = ports.active
            self._on_active(ports.active)
        self._tell(ports.machines)

    def _tell(self, machines: Mapping[str, tuple[Rx, Mux]]) -> None:
        """Put on the timeline which LACP states changed since the last look; those in between are not seen."""
        for port, states in machines.items():
            before = self._machines.get(port, ())
            for state in states:
                if state not in before:
                    self._sink(Event(now_ns(), EventKind.LACP, self._host, port, state.value))
        self._machines = machines

    def _wait_no_more(self) -> None:
        if self._again is not None:
            self._again.cancel()
            self._again = None
