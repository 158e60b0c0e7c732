"""Wiring that direct networks share: every switch has hosts, and links to others of its kind; nothing is above them.

Switch n is the ToR of segment n modulo ``segments``, in pod n over ``segments``. BGP finds minimal paths: each switch
has an ASN of its own, so the length of an AS path counts the switches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hpn.testbed.fabric.architectures.architecture import Problem
from hpn.testbed.fabric.architectures.wiring import NOT_STACKED, ONE_PLANE, ONE_PORT, ONE_TOR, racks
from hpn.testbed.fabric.builder import Builder, scaled
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import BgpSpec, FabricSpec

Pair = tuple[int, int]
"""Numbers of two switches that are joined, the smaller first."""

_NOTHING_ABOVE = "its switches are joined with each other and nothing is above them; leave it out"

MEANINGLESS: Mapping[str, str] = {
    **dict.fromkeys(("aggs", "cores", "core_groups", "core_rate", "core_ports"), _NOTHING_ABOVE),
    "planes": ONE_PLANE,
    "nic_ports": ONE_PORT,
    "nic": ONE_PORT,
    "stack": NOT_STACKED,
    "lacp.port_id_offset": ONE_TOR,
}
"""Keys that no direct network can honour."""

PER_SWITCH = BgpSpec(asn="per-switch")
"""BGP of the presets."""


def built(spec: FabricSpec, pairs: Iterable[Pair]) -> Fabric:
    """Return a fabric with one ToR per segment, for all NICs of its hosts, and links between these pairs of ToRs."""
    builder = Builder(spec)
    switches = [tor for (tor,) in racks(builder, tors=1, planes=1, per_rail=False)]
    rate_bps = scaled(spec.uplink_rate, spec)
    for one, other in sorted(pairs):
        builder.mesh(switches[one], switches[other], rate_bps, spec.uplinks)
    return builder.finish(planes=1, core_ports="hash")


def pair(one: int, other: int) -> Pair:
    """Return two switches in order."""
    return min(one, other), max(one, other)


def counted(spec: FabricSpec, pods: int, segments: int, why: str) -> Iterator[Problem]:
    """Yield the numbers that differ from those that another key implies; ``why`` has the words for both."""
    for key, count in (("pods", pods), ("segments", segments)):
        given = getattr(spec, key)
        if given != count:
            yield (key,), f"{key} is {given}, but {why}; write {count}"
