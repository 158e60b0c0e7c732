"""SRv6 in a running lab: the static tables of switches and hosts, installed at the start and after a port's return.

The kernel forgets the IPv6 routes and neighbours of an interface that goes down. A switch's static configuration does
not, so they are put back when the interface is up again. Own uNs hang on no port: they are of the loopback interface.

IPv6 is quiet here: no link-local addresses, no duplicate address detection, no router solicitations. Neighbours are
permanent, by MACs that the fabric knows, so that they do not count against the machine's limit (FACTS trap 4).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator

from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.model import Fabric, Link, Node
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.fabric.srv6_spec import BLOCK_BITS
from hpn.testbed.kernel import ns
from hpn.testbed.kernel.rtnetlink import rtnl, seg6
from hpn.testbed.kernel.rtnetlink.netlink import Netlink, NetlinkError
from hpn.testbed.kernel.rtnetlink.rtnl_events import LinkEvent
from hpn.testbed.kernel.rtnetlink.seg6 import Seg6Local
from hpn.testbed.kernel.rtnetlink.seg6_support import LOOPBACK, REMEDY, seg6_problem
from hpn.testbed.routing.ecmp import Sysctl
from hpn.testbed.routing.srv6.numbers import USID_BITS
from hpn.testbed.routing.srv6.plan import Behaviour, Entry, UsidPlan, port_table

BITS = (BLOCK_BITS, USID_BITS)
_OFF = "disable_ipv6"
_CONF = "net/ipv6/conf/{}/"


def with_ipv6(settings: Iterable[Sysctl], *, forwards: bool) -> tuple[Sysctl, ...]:
    """Return the settings of a namespace with IPv6 on and quiet in place of off."""
    quiet = (
        ("disable_ipv6", 0), ("addr_gen_mode", 1), ("accept_dad", 0), ("dad_transmits", 0), ("accept_ra", 0),
        ("router_solicitations", 0),
    )  # fmt: skip
    why = "uSIDs are IPv6 addresses, and its own messages are noise"
    ours = [Sysctl(_CONF.format("default") + name, str(value), True, why) for name, value in quiet]
    ours.append(Sysctl(_CONF.format("all") + "disable_ipv6", "0", True, why))
    if forwards:
        ours.append(Sysctl(_CONF.format("all") + "forwarding", "1", True, "a switch forwards"))
    return (*(each for each in settings if not each.path.endswith(_OFF)), *ours)


def requests(plan: UsidPlan, node: Node) -> Iterator[bytes]:
    """Yield the requests for a node's whole table, once its interfaces exist. Pure."""
    if not node.is_switch:
        for nic in plan.fabric.nics_of(node.name):
            yield seg6.add_address6(nic.lag_ifindex, plan.inner[nic.name])
            yield from (seg6.look_up_marked(mark, mark) for mark in map(port_table, (link.lower for link in nic.links)))
    for entry in plan.table(node.name):
        yield from _requests(entry)


def _requests(entry: Entry) -> Iterator[bytes]:
    if entry.gateway:
        yield seg6.add_neighbour6(entry.ifindex, entry.gateway, entry.mac)
    yield seg6.add_route6(
        entry.prefix,
        entry.ifindex or LOOPBACK,
        gateway=entry.gateway,
        treatment=_treatment(entry),
        local=not entry.ifindex,
        table=entry.table or rtnl.RT_TABLE_MAIN,
    )


def _treatment(entry: Entry) -> Seg6Local | None:
    match entry.behaviour:
        case Behaviour.ROUTE:
            return None
        case Behaviour.END:
            return Seg6Local(seg6.END, BITS)
        case Behaviour.END_X:
            return Seg6Local(seg6.END_X, BITS, nh6=entry.nh6)
        case Behaviour.END_DT6:
            return Seg6Local(seg6.END_DT6, table=rtnl.RT_TABLE_LOCAL)


def check(spec: FabricSpec) -> None:
    """Raise MachineError, with a remedy, if the topology has ``srv6:`` and this kernel cannot forward by uSIDs."""
    if spec.srv6 is None:
        return
    probe = ns.create("srv6-probe")
    try:
        problem = seg6_problem(probe)
    finally:
        os.close(probe.fd)
    if problem is not None:
        raise MachineError(f"this kernel cannot forward by SRv6 uSIDs, which srv6: asks for ({problem}); take {REMEDY}")


class Srv6:
    """The tables of one running lab; ``requests_of`` returns a node's netlink socket."""

    def __init__(self, fabric: Fabric, requests_of: Callable[[str], Netlink]) -> None:
        self.plan = UsidPlan(fabric)
        self._requests_of = requests_of
        self._links: dict[tuple[str, int], Link] = {
            (node.name, link.end_at(node.name).ifindex): link
            for node in fabric.nodes
            for link in fabric.links_of(node.name)
        }
        self._down: set[tuple[str, int]] = set()

    def on_link(self, node: str, event: LinkEvent) -> None:
        """Put back what sends by a port that was down and is up, with carrier or without."""
        key = node, event.ifindex
        if key not in self._links:
            return  # an interface that no link ends at, as a LAG's
        if not event.up or event.gone:
            self._down.add(key)
        elif key in self._down:
            self._down.discard(key)
            self._put_back(node, [self._links[key]])

    def resync(self, node: str) -> None:
        """Put back everything that sends by ports of a node which are up: messages of their changes were lost."""
        up = [event.ifindex for event in self._requests_of(node).links() if event.up]
        self._put_back(node, [self._links[node, ifindex] for ifindex in up if (node, ifindex) in self._links])

    def _put_back(self, node: str, links: Iterable[Link]) -> None:
        wanted = [entry for link in links for entry in self.plan.entries_at(link, node)]
        try:
            self._requests_of(node).run([request for entry in wanted for request in _requests(entry)])
        except NetlinkError as error:
            if error.errno not in (errno.ENETDOWN, errno.ENODEV):  # down once more: its return will be told, too
                raise
