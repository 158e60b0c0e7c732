"""Keys below a topology's ``srv6:``: static paths through the switches, beside BGP."""

from __future__ import annotations

from ipaddress import IPv6Network
from typing import Annotated

from pydantic import BeforeValidator, Field

from hpn.testbed.fabric.values import Strict
from hpn.testbed.files.words import OneOf

BLOCK_BITS = 32
"""Length of a locator block. With 16 bits for each uSID, 96 bits are left for six of them."""

_TAKEN = tuple(map(IPv6Network, ("::/8", "fd00::/14", "fe80::/10", "ff00::/8")))
"""Of the kernel and of the lab: loopback, NICs, neighbours and ways, link-local, multicast."""
_HINT = "write one such as fc00:0::/32"


def _block(value: object) -> str:
    """Normalise a locator block. ValueError if it is none."""
    try:
        block = IPv6Network(value) if isinstance(value, str) else None
    except ValueError:
        block = None
    if block is None or block.prefixlen != BLOCK_BITS:
        raise ValueError(f"{value!r} is no IPv6 prefix of {BLOCK_BITS} bits; {_HINT}")
    taken = next((each for each in _TAKEN if block.overlaps(each)), None)
    if taken is not None:
        raise ValueError(f"{value!r} is within {taken}, which is in use otherwise; {_HINT}")
    return str(block)


ROUTINGS = {
    "minimal": "shortest paths",
    "valiant": "detours by each other switch too",
    "k-shortest": "the shortest ones, longer ones among them, up to a number",
}
"""Paths that senders choose from; ``testbed.routing.srv6.switch_paths`` has an entry for each."""


K_PATHS = 8
"""Of Jellyfish (Singla et al., NSDI 2012, section 5)."""


class Srv6Spec(Strict):
    """SRv6 with compressed SIDs (NEXT-CSID of RFC 9800, micro-SIDs): static tables in the kernel of every switch."""

    block: Annotated[str, BeforeValidator(_block, json_schema_input_type=str)] = Field(
        default="fc00::/32", description="locator block, 32 bits; each uSID has 16", examples=["fc00:0::/32"]
    )
    routing: Annotated[str, OneOf(ROUTINGS)] = Field(
        default="minimal", description="; ".join(f"{name}: {what}" for name, what in ROUTINGS.items())
    )
    paths: int | None = Field(
        default=None, ge=1, le=64, description=f"k-shortest: from switch to switch; left out: {K_PATHS}", examples=[16]
    )

    @property
    def most_paths(self) -> int:
        """Most paths from switch to switch of ``k-shortest``."""
        return K_PATHS if self.paths is None else self.paths
