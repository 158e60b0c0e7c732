"""Links that stand in for one another. Pure, no numpy: drill files are checked with it."""

from __future__ import annotations

from collections.abc import Sequence

from hpn.testbed.fabric.model import Fabric, Link, LinkKind


def siblings(fabric: Fabric, link: Link) -> Sequence[Link]:
    """Return the links that may carry what a link carries, itself included.

    Those of its NIC, those up from its switch, or all mesh links of its lower switch.
    """
    if link.kind is LinkKind.ACCESS:
        return fabric.nic_of_link(link.name).links
    below = link.lower.node
    alike = [each for each in fabric.links_of(below) if each.kind is link.kind]
    return alike if link.kind is LinkKind.MESH else [each for each in alike if each.lower.node == below]
