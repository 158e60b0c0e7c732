"""Load on the ports of a running lab, measured from outside its supervisor."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import closing

from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.process import sandbox
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.kernel.rtnetlink.qdisc import BucketReading, rates
from hpn.testbed.lab.service.capture import space_of


class PortReader:
    """Reader of the counters of every port of a lab; it does not involve the supervisor."""

    def __init__(self, fabric: Fabric, space: Callable[[str], NetNs]) -> None:
        """Open a socket per node; ``space`` opens a node's network namespace, which is closed again afterwards."""
        self._asked: dict[str, Netlink] = {}
        self._ends = {n.name: {link.end_at(n.name).ifindex for link in fabric.links_of(n.name)} for n in fabric.nodes}
        try:
            for node in self._ends:
                self._asked[node] = _socket_in(space(node))
        except OSError as error:
            self.close()
            raise MachineError(f"the ports of the lab cannot be read: {error.strerror}; start it anew") from error

    def read(self) -> list[BucketReading]:
        """Read every port, one node after the other. MachineError when the lab is gone."""
        try:
            return [reading for node, asked in self._asked.items() for reading in asked.buckets(self._ends[node])]
        except OSError as error:
            raise MachineError(f"the ports of the lab cannot be read: {error.strerror}; start it anew") from error

    def close(self) -> None:
        """Close its sockets."""
        for asked in self._asked.values():
            asked.close()


def _socket_in(space: NetNs) -> Netlink:
    try:
        return Netlink(space)
    finally:
        os.close(space.fd)


def reader_outside(first_pid: int, fabric: Fabric) -> PortReader:
    """Return a reader for a process outside the lab, which stays in the lab's network afterwards.

    MachineError when the lab or a node cannot be entered.
    """
    sandbox.enter(first_pid, for_its_network=True)
    return PortReader(fabric, lambda node: space_of(first_pid, node))


def measure(first_pid: int, fabric: Fabric, for_ns: int) -> dict[str, float]:
    """Measure each link's utilisation in its busier direction during ``for_ns``: 1.0 is its full rate.

    The calling process stays in the lab's network afterwards. MachineError when the lab or a node cannot be entered.
    """
    with closing(reader_outside(first_pid, fabric)) as ports:
        before = ports.read()
        time.sleep(for_ns / 1e9)  # the measured interval
        return loads(fabric, before, ports.read())


def loads(fabric: Fabric, before: Iterable[BucketReading], after: Iterable[BucketReading]) -> dict[str, float]:
    """Return each link's utilisation between two readings of all ports. Pure."""
    found = rates(before, after)
    return {
        link.name: max(busy) / link.rate_bps
        for link in fabric.links
        if (busy := [found[end.ifindex].sent_bps for end in (link.lower, link.upper) if end.ifindex in found])
    }
