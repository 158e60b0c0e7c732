"""Links of a fabric that lose some packets as they are. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from hpn.testbed.fabric.model import Fabric


def link_notes(fabric: Fabric) -> Iterator[str]:
    """Yield a line for each link whose packets may be smaller than those of hosts."""
    for link in fabric.links:
        if link.mtu is not None and link.mtu < fabric.spec.mtu:
            yield f"link {link.name} has mtu {link.mtu}, hosts have {fabric.spec.mtu}: it loses larger packets"
