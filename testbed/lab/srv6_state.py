"""SRv6 tables of a running lab as words, by node and prefix: as the fabric wants them and as the kernel has them."""

from __future__ import annotations

from collections.abc import Iterator

from hpn.testbed.kernel.rtnetlink import seg6
from hpn.testbed.kernel.rtnetlink.rtnl import RT_TABLE_MAIN, RTPROT_STATIC
from hpn.testbed.kernel.rtnetlink.seg6 import Counts, Route6
from hpn.testbed.kernel.rtnetlink.seg6_support import LOOPBACK
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.srv6 import BITS
from hpn.testbed.routing.srv6.plan import Behaviour, Entry, UsidPlan

_ABSENT = "absent"
_ACTIONS = {
    seg6.END: Behaviour.END,
    seg6.END_X: Behaviour.END_X,
    seg6.END_DT6: Behaviour.END_DT6,
}


def expected_tables(plan: UsidPlan) -> dict[str, str]:
    """Return every entry of a fabric, and how many each node has. Pure."""
    found: dict[str, str] = {}
    for node in plan.fabric.nodes:
        table = plan.table(node.name)
        found |= {_key(_prefix(entry.prefix, entry.table), node.name): _wanted(entry) for entry in table}
        found[_count(node.name)] = str(len(table))
    return found


def actual_tables(lab: Lab) -> dict[str, str]:
    """Return the same as each node's kernel has it; what is wanted and not there is 'absent'. Empty without SRv6."""
    if lab.srv6 is None:
        return {}
    found = dict.fromkeys(expected_tables(lab.srv6.plan), _ABSENT)
    for node in lab.fabric.nodes:
        present = [(prefix, words) for prefix, words, _ in entries(lab, node.name)]
        found |= {_key(prefix, node.name): words for prefix, words in present}
        found[_count(node.name)] = str(len(present))
    return found


def entries(lab: Lab, node: str) -> Iterator[tuple[str, str, Counts | None]]:
    """Yield prefix, words and counters of each static IPv6 route of a node's kernel."""
    request = lab.requests(node)
    names = {event.ifindex: event.name for event in request.links()}
    macs = request.neighbours6()
    for route in request.routes6():
        if route.protocol == RTPROT_STATIC:
            table = 0 if route.table == RT_TABLE_MAIN else route.table
            yield _prefix(route.prefix, table), _found(route, names, macs), route.counts


def _found(route: Route6, names: dict[int, str], macs: dict[tuple[int, str], str]) -> str:
    port = "" if route.local and route.oif == LOOPBACK else names.get(route.oif, str(route.oif))
    if route.treatment is None:
        mac = macs.get((route.oif, route.gateway), "an unknown neighbour")
        return _words(Behaviour.ROUTE, port, mac if route.gateway else "")
    behaviour = _ACTIONS.get(route.treatment.action)
    if behaviour is None or (behaviour is not Behaviour.END_DT6 and route.treatment.bits != BITS):
        return f"another treatment: {route.treatment}"
    return _words(behaviour, port, route.treatment.nh6)


def _wanted(entry: Entry) -> str:
    return _words(entry.behaviour, entry.port, entry.mac or entry.nh6)


def _words(behaviour: Behaviour, port: str, to: str) -> str:
    return behaviour.value + (f" by {port}" if port else "") + (f" to {to}" if to else "")


def _prefix(prefix: str, table: int) -> str:
    return f"{prefix} in table {table}" if table else prefix


def _key(prefix: str, node: str) -> str:
    return f"SRv6 {prefix} on {node}"


def _count(node: str) -> str:
    return f"static IPv6 routes of {node}"
