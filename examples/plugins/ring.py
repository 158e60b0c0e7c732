"""A pattern: every NIC sends to that of the next host, as a ring collective does."""

from __future__ import annotations

from hpn.testbed.errors import InputError
from hpn.traffic.flows.patterns import PATTERNS, Demand, Pattern, PatternRequest, Stream


def _ring(asked: PatternRequest) -> Demand:
    found: list[Stream] = []
    fabric = asked.fabric
    hosts = [host for host in fabric.hosts if not host.spare]
    if len(hosts) < 2:
        raise InputError("the pattern 'ring' needs two active hosts; raise hosts or segments")
    for host, following in zip(hosts, [*hosts[1:], hosts[0]], strict=True):
        found += map(Stream, fabric.nics_of(host.name), fabric.nics_of(following.name))
    return found


PATTERNS.add(Pattern("ring", "every NIC sends to that of the next host", _ring))
