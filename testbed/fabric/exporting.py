"""Any fabric as a wiring, from which the same fabric is built again: every number that a part has is written. Pure."""

from __future__ import annotations

from hpn.testbed.fabric.load import TopologyFile
from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Nic, Node, Role
from hpn.testbed.fabric.spec import WIRED, FabricSpec
from hpn.testbed.fabric.wired.cables import cabling_of
from hpn.testbed.fabric.wired.structure import structure_of
from hpn.testbed.fabric.wired.text import wiring_lines
from hpn.testbed.fabric.wired.wiring_spec import WiredLink, WiredNic, WiredNode, WiredStack, WiringSpec
from hpn.testbed.fabric.writing import setting_lines
from hpn.testbed.files.document import Plain

_SIZES = {
    "pods", "segments", "hosts", "spare_hosts", "rails", "planes", "nic_ports", "aggs", "uplinks", "cores",
    "core_groups", "dimensions", "global_links", "preset",
}  # fmt: skip
"""Keys that the wiring takes the place of."""


def topology_text(fabric: Fabric) -> str:
    """Return a topology file with every node and link of ``fabric``; it loads as the same fabric."""
    head = "# Every node and link. hpn plan FILE shows the fabric; all keys: docs/your-network.md"
    lines = (head, *setting_lines(settings_of(fabric), TopologyFile), *wiring_lines(wiring_of(fabric)))
    return "\n".join((*lines, ""))


def settings_of(fabric: Fabric) -> dict[str, Plain]:
    """Return the keys of a topology file for ``fabric``, but for ``wiring``: those that its own file sets."""
    given: dict[str, Plain] = fabric.spec.model_dump(mode="json", exclude_unset=True, exclude={*_SIZES, "wiring"})
    head: dict[str, Plain] = {"name": fabric.spec.name, "architecture": WIRED}
    control: dict[str, Plain] = fabric.spec.path_control.model_dump(mode="json", exclude_unset=True)
    ports: dict[str, Plain] = {"core_ports": fabric.core_ports, "path_control": control or {"enabled": True}}
    return {**head, **{key: value for key, value in given.items() if key not in head}, **ports}


def wiring_of(fabric: Fabric) -> WiringSpec:
    """Return the wiring of a fabric: ``build`` of it gives the same nodes, links and NICs."""
    given = fabric.spec.wiring
    if given is not None:
        return given
    found = WiringSpec(
        nodes={node.name: _node(fabric, node) for node in fabric.nodes},
        links=[_link(fabric, link) for link in fabric.links],
        stacks=[WiredStack(primary=stack.primary, secondary=stack.secondary) for stack in fabric.stacks],
    )
    derived = structure_of(found, cabling_of(found)).rails_meet
    return found if derived == fabric.rails_meet else found.model_copy(update={"rails_meet": fabric.rails_meet})


def _node(fabric: Fabric, node: Node) -> WiredNode:
    found: dict[str, object] = {"role": node.role.value, "index": node.index}
    if node.role is not Role.CORE:
        found["pod"] = node.pod
    if node.role in (Role.HOST, Role.TOR):
        found["segment"] = node.segment
    if node.is_switch:
        found |= {"plane": node.plane}
    if node.rail is not None:
        found["rail"] = node.rail
    if node.spare:
        found["spare"] = True
    if node.role is Role.TOR and node.lacp_system != fabric.spec.lacp.system_id:
        found["system_id"] = node.lacp_system
    nics = {nic.lag: _nic(nic) for nic in fabric.nics_of(node.name)}
    return WiredNode.model_validate({**found, **({"nics": nics} if nics else {})})


def _nic(nic: Nic) -> WiredNic:
    return WiredNic(ports=[link.lower.name for link in nic.links], rail=nic.rail)


def _link(fabric: Fabric, link: Link) -> WiredLink:
    ends = [link.lower.label, link.upper.label]
    rate_bps, usual_bps = link.rate_bps * fabric.spec.scale, _usual(fabric.spec, link)
    found: dict[str, object] = {"ends": ends, "name": link.name}
    if rate_bps != usual_bps:
        found["rate"] = rate_bps
    return WiredLink.model_validate(found)


def _usual(spec: FabricSpec, link: Link) -> int:
    """Return the (real) rate of a link's tier, which a file need not write."""
    usual = {LinkKind.ACCESS: spec.nic_port_rate, LinkKind.CORE: spec.core_rate}
    return usual.get(link.kind, spec.uplink_rate)
