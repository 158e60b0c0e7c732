"""Fabrics in formats of other tools: containerlab's topology and a CSV of cables. Pure.

Rates are the real ones, as far as the scale divides them. ``testbed.importing`` reads both back: nodes, roles, NICs,
links, rates and stacks are the same.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from io import StringIO

from hpn.testbed.fabric.exporting import topology_text
from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Node, Port
from hpn.testbed.fabric.wired.text import rate_text
from hpn.testbed.files.document import Plain
from hpn.testbed.files.one_line import one_line
from hpn.testbed.importing.formats.csv_cables import COLUMNS

SWITCH_IMAGE = "quay.io/frrouting/frr:10.5.1"
HOST_IMAGE = "ghcr.io/srl-labs/network-multitool:latest"
"""Images of containers that containerlab would start: FRR's and its own tools. Nothing configures them."""


def containerlab_text(fabric: Fabric) -> str:
    """Return a containerlab topology. Labels ``hpn-...`` have what containerlab has no key for."""
    lines = [
        "# Written by hpn. Containers come up with links and addresses; their routing is yours to configure.",
        f"name: {fabric.spec.name}",
        "topology:",
        "  groups:",
        f"    hosts: {{kind: linux, image: {one_line(HOST_IMAGE)}}}",
        f"    switches: {{kind: linux, image: {one_line(SWITCH_IMAGE)}}}",
        "  nodes:",
        *(f"    {one_line(node.name)}: {one_line(_clab_node(fabric, node))}" for node in fabric.nodes),
        "  links:",
        *(f"    - {one_line(_clab_link(fabric, link))}" for link in fabric.links),
        "",
    ]
    return "\n".join(lines)


def csv_text(fabric: Fabric) -> str:
    """Return a row per cable: both ends with role and LAG, the rate, and the primary on a stack's peer link."""
    out = StringIO()
    writer = csv.DictWriter(out, (*COLUMNS, "primary"), lineterminator="\n")
    writer.writeheader()
    writer.writerows(_row(fabric, link) for link in fabric.links)
    return out.getvalue()


EXPORTERS: Mapping[str, Callable[[Fabric], str]] = {
    "hpn": topology_text,
    "containerlab": containerlab_text,
    "csv": csv_text,
}
"""Text of a fabric by the name of the format; hpn's own comes first."""


def _clab_node(fabric: Fabric, node: Node) -> dict[str, Plain]:
    labels: dict[str, Plain] = {"hpn-role": str(node.role)}
    if node.spare:
        labels["hpn-spare"] = "yes"
    if fabric.spec.bgp.valleys and node.asn is not None:
        labels["hpn-asn"] = str(node.asn)
    nics = [f"{nic.lag}={'+'.join(link.lower.name for link in nic.links)}" for nic in fabric.nics_of(node.name)]
    if nics:
        labels["hpn-nics"] = " ".join(nics)
    return {"group": "switches" if node.is_switch else "hosts", "labels": labels}


def _clab_link(fabric: Fabric, link: Link) -> dict[str, Plain]:
    labels: dict[str, Plain] = {"hpn-rate": rate_text(_rate(fabric, link))}
    primary = _primary(fabric, link)
    if primary is not None:
        labels["hpn-primary"] = primary
    data: dict[str, Plain] = {"endpoints": [link.lower.label, link.upper.label]}
    if link.is_routed and link.lower.address and link.upper.address:
        data["ipv4"] = [link.lower.address, link.upper.address]
    return {**data, "labels": labels}


def _row(fabric: Fabric, link: Link) -> dict[str, str]:
    row = {"rate": rate_text(_rate(fabric, link)), "primary": _primary(fabric, link) or ""}
    for side, port in (("a", link.lower), ("b", link.upper)):
        row |= {f"{side}_{key}": value for key, value in _columns(fabric, link, port)}
    return row


def _columns(fabric: Fabric, link: Link, port: Port) -> Iterator[tuple[str, str]]:
    node = fabric.node(port.node)
    yield "node", port.node
    yield "port", port.name
    yield "role", str(node.role)
    yield "nic", "" if node.is_switch else fabric.nic_of_link(link.name).lag
    yield "ip", port.address or "" if link.is_routed else ""


def _rate(fabric: Fabric, link: Link) -> int:
    """Return the real rate of a link: the emulated one is scaled down."""
    return link.rate_bps * fabric.spec.scale


def _primary(fabric: Fabric, link: Link) -> str | None:
    return fabric.stack_of[link.upper.node].primary if link.kind is LinkKind.PEER else None
