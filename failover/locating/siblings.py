"""Links that stand in for one another. Pure, no numpy: drill files are checked with it."""

from __future__ import annotations

from collections.abc import Sequence

from hpn.testbed.fabric.model import Fabric, Link, LinkKind


def siblings(fabric: Fabric, link: Link) -> Sequence[Link]:
    """Return the links that may carry what a link carries, itself included: those of its NIC, or up from its switch."""
    if link.kind is LinkKind.ACCESS:
        return fabric.nic_of_link(link.name).links
    below = link.lower.node
    return [each for each in fabric.links_of(below) if each.lower.node == below and each.kind is link.kind]
