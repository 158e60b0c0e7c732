"""Parts of a running lab that are needed to break it, repair it and check convergence.

Changes when one of these tasks needs another part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hpn.testbed.events import EventSink
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.lab.host_nic import HostNic
from hpn.testbed.lab.tor import Tor
from hpn.testbed.lab.watch import Watcher
from hpn.testbed.lag.speakers import Speakers
from hpn.testbed.routing.bgp import BgpDaemon


class Requests:
    """Netlink request socket of each node, opened on first use and kept open."""

    def __init__(self, spaces: Mapping[str, NetNs]) -> None:
        self._spaces = spaces
        self._opened: dict[str, Netlink] = {}

    def __call__(self, node: str) -> Netlink:
        """Return the socket of a node."""
        if node not in self._opened:
            self._opened[node] = Netlink(self._spaces[node])
        return self._opened[node]


@dataclass(frozen=True, slots=True)
class LabParts:
    """The parts of one lab; each mapping is by the name of its node or NIC."""

    fabric: Fabric
    spaces: Mapping[str, NetNs]
    requests: Requests
    nics: Mapping[str, HostNic]
    tors: Mapping[str, Tor]
    bgp: Mapping[str, BgpDaemon]
    watcher: Watcher
    lacp: Speakers
    emit: EventSink
