"""Expected state of a healthy lab, from the Fabric alone, compared with kernels and LACP partners.

The comparison is absolute instead of before against after, so that it also detects errors from the start.

Changes when the fabric defines another property that a lab could silently get wrong.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

from hpn.testbed.fabric.model import Fabric, LinkKind, Node
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.markers import MarkerKind
from hpn.testbed.lab.srv6_state import actual_tables, expected_tables
from hpn.testbed.lab.state import NOT_BOUND, NOT_STEERED, State, bound, steered
from hpn.testbed.lag.datapath import LagKind
from hpn.testbed.lag.datapaths import DATAPATHS
from hpn.testbed.lag.lacpdu import PortInfo
from hpn.testbed.routing.srv6.plan import UsidPlan

_SEED = "net/ipv4/fib_multipath_hash_seed"
_PRIORITY = 65535  # of a system, the standard's default


def deviations(lab: Lab) -> tuple[str, ...]:
    """Return the deviations of a lab from its fabric, one line each; empty in a healthy lab."""
    wanted, found = expected(lab.fabric, DATAPATHS[lab.datapath], lab.marking), actual(lab)
    wrong = (f"{key}: is {found[key]}, should be {value}" for key, value in wanted.items() if found[key] != value)
    return (*contradictions(lab.fabric), *wrong)


_CLASSES = ", classes of a shared buffer"


def expected(fabric: Fabric, datapath: LagKind, marking: MarkerKind | None = None) -> State:
    """Return a healthy lab's state on ``datapath``: LACP partner and rate by port, ECMP seed by switch; pure.

    If LAGs can steer by destination, none is steered. Where adapters bind queue pairs, there are none.

    Each port serves control frames first. If switches mark by their queues, each of their ports has such a queue; with
    a second traffic class, two. Linux bonding numbers its ports and creates its key by itself: of such a host only the
    system is known.
    """
    found: State = {}
    for link in fabric.links:
        for port in (link.lower, link.upper):
            marks = marking is not None and marking.queue is not None and fabric.node(port.node).is_switch
            divided = fabric.spec.second_class is not None and fabric.node(port.node).is_switch
            behind = ", control first" + ", two queues" * divided + ", marking" * marks
            if fabric.spec.switch is not None:
                behind = _CLASSES
            found[f"rate of {port.label}"] = f"{link.rate_bps // 8 * 8} bit/s{behind}"
        if link.kind is not LinkKind.ACCESS:
            continue
        nic = fabric.nic_of_link(link.name)
        partner = _partner(fabric.node(link.upper.node).actor_system, link.upper.key, link.upper.port_id)
        found[f"LACP partner of {link.lower.label}"] = partner
        host = _partner(nic.mac, nic.rail + 1, link.lower.port_id) if datapath.numbered else f"system {nic.mac}"
        found[f"LACP partner of {link.upper.label}"] = host
    for node in fabric.switches:
        found[f"ECMP seed of {node.name}"] = str(node.ecmp_seed)
    if fabric.spec.path_control.chosen.steers:
        found |= {f"steering of {nic.name}": NOT_STEERED for nic in fabric.nics}
    if fabric.spec.nic.binds:
        found |= {f"queue pairs of {nic.name}": NOT_BOUND for nic in fabric.nics}
    if fabric.spec.srv6 is not None:
        found |= expected_tables(UsidPlan(fabric))
    return found


def contradictions(fabric: Fabric) -> tuple[str, ...]:
    """Return where the fabric itself violates HPN's rules: port IDs beyond each ToR's offset, unique seeds. Pure."""
    return (*_port_ids(fabric), *_seeds(fabric))


def actual(lab: Lab) -> State:
    """Return the same properties as the kernel of each node and the LACPDUs of each partner report them."""
    found: State = dict(_partners(lab)) | actual_tables(lab)
    for nic in lab.nics.values():
        if nic.steering is not None:
            found[f"steering of {nic.nic.name}"] = steered(nic.steering)
        if nic.adapter is not None:
            found[f"queue pairs of {nic.nic.name}"] = bound(nic.adapter.affinity)
    absent = {item.path for item in lab.wiring.missing}
    for node in lab.fabric.nodes:
        found |= _rates(lab, node)
        if node.is_switch:
            # A kernel without the setting is noted during wiring and in the manifest.
            seed = str(node.ecmp_seed) if _SEED in absent else _sysctl(lab.wiring.namespaces[node.name], _SEED)
            found[f"ECMP seed of {node.name}"] = seed
    return found


def _partner(system: str, key: int, port: int) -> str:
    return f"system {system}, priority {_PRIORITY}, key {key}, port {port}"


def _heard(partner: PortInfo) -> str:
    system = f"system {partner.system}, priority {partner.system_priority}"
    return f"{system}, key {partner.key}, port {partner.port}"


def _partners(lab: Lab) -> Iterator[tuple[str, str]]:
    numbered = DATAPATHS[lab.datapath].numbered
    for nic in lab.nics.values():
        for status, link in zip(nic.status(), nic.nic.links, strict=True):
            yield f"LACP partner of {link.lower.label}", _heard(status.partner)
    for name, tor in lab.tors.items():
        heard = {port: status.partner for port, status in tor.status().items()}
        for link in lab.fabric.links_of(name):
            if link.kind is LinkKind.ACCESS:
                partner = heard.get(link.upper.name)
                words = _heard(partner) if partner is not None and numbered else _system_of(partner)
                yield f"LACP partner of {link.upper.label}", words


def _system_of(partner: PortInfo | None) -> str:
    return "none, the ToR is dead" if partner is None else f"system {partner.system}"


def _rates(lab: Lab, node: Node) -> State:
    """Return the token bucket rate of every port of a node, and the qdiscs behind it (netem, HTB, RED)."""
    ports = {link.end_at(node.name).ifindex: link.end_at(node.name) for link in lab.fabric.links_of(node.name)}
    queues = lab.requests(node.name).queues()
    rates = {bucket.ifindex: bucket.rate_bps for bucket in queues.buckets if bucket.ifindex in ports}
    found = {}
    for number, port in ports.items():
        rate = f"{rates[number]} bit/s" if number in rates else "not shaped"
        behind = ", with delay" * (number in queues.delayed) + ", control first" * (number in queues.controlled)
        behind += ", two queues" * (number in queues.divided)
        behind += ", stuck" * (number in queues.stuck)
        behind += _CLASSES if number in queues.classes else ", marking" * (number in queues.marked)
        found[f"rate of {port.label}"] = rate + behind
    return found


def _sysctl(space: NetNs, path: str) -> str:
    with space.entered():
        fd = os.open(f"/proc/sys/{path}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(fd, 64).decode().strip()
        finally:
            os.close(fd)


def _port_ids(fabric: Fabric) -> Iterator[str]:
    offset = fabric.spec.lacp.port_id_offset
    for link in fabric.links:
        if link.kind is LinkKind.ACCESS:
            least = offset * (fabric.node(link.upper.node).index + 1)
            if link.upper.port_id <= least:
                yield f"LACP port ID of {link.upper.label}: is {link.upper.port_id}, should be above {least}"
    for nic in fabric.nics:
        numbers = [link.upper.port_id for link in nic.links]
        if len(set(numbers)) < len(numbers):
            yield f"LACP port IDs of the ToRs of {nic.name}: {numbers}, should differ"
        keys = [link.upper.key for link in nic.links]
        if len(set(keys)) > 1:
            yield f"LACP keys of the ToRs of {nic.name}: {keys}, should be equal"


def _seeds(fabric: Fabric) -> Iterator[str]:
    if fabric.spec.ecmp_seeds == "one":
        return
    counted = Counter(node.ecmp_seed for node in fabric.switches)
    for seed, times in counted.items():
        if times > 1:
            first = next(node.name for node in fabric.switches if node.ecmp_seed == seed)
            yield f"ECMP seed of {first}: is {seed} as on {times - 1} other switches, should be its own"
