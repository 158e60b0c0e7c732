"""How busy the links of a running lab are, counted from outside."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from testbed.errors import MachineError
from testbed.fabric.model import Fabric
from testbed.kernel import sandbox
from testbed.kernel.netlink import Netlink
from testbed.kernel.qdisc import BucketReading
from testbed.lab.service.capture import space_of


def measure(first_pid: int, fabric: Fabric, for_ns: int) -> dict[str, float]:
    """The share of each link's rate that passed in its busier direction for so long: 1.0 is all of it.

    The calling process is in the lab's network from then on. MachineError when the lab or a node cannot be entered.
    """
    sandbox.enter(first_pid, for_its_network=True)
    asked = {node.name: Netlink(space_of(first_pid, node.name)) for node in fabric.nodes}
    try:
        before = _read(fabric, asked)
        time.sleep(for_ns / 1e9)  # what is counted is what passes in the meantime
        after = _read(fabric, asked)
    except OSError as error:
        raise MachineError(f"the ports of the lab cannot be read: {error.strerror}; start it anew") from error
    finally:
        for each in asked.values():
            each.close()
    return loads(fabric, before, after)


def _read(fabric: Fabric, asked: Mapping[str, Netlink]) -> list[BucketReading]:
    ends = {node: {link.end_at(node).ifindex for link in fabric.links_of(node)} for node in asked}
    return [reading for node, netlink in asked.items() for reading in netlink.buckets(ends[node])]


def loads(fabric: Fabric, before: Iterable[BucketReading], after: Iterable[BucketReading]) -> dict[str, float]:
    """What passed between two readings of all ports, each interface of a lab having a number of its own. Pure."""
    first = {reading.ifindex: reading for reading in before}
    shares = {}
    for reading in after:
        since = first.get(reading.ifindex)
        if since is not None and reading.at_ns > since.at_ns:
            bits = 8 * max(0, reading.sent_bytes - since.sent_bytes)
            shares[reading.ifindex] = bits * 1e9 / (reading.at_ns - since.at_ns)
    return {
        link.name: max(found) / link.rate_bps
        for link in fabric.links
        if (found := [shares[end.ifindex] for end in (link.lower, link.upper) if end.ifindex in shares])
    }
