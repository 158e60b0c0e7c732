"""Data of ``hpn inspect srv6`` and ``hpn trace --srv6``, as plain JSON values."""

from __future__ import annotations

from collections.abc import Callable

from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.service.control import JsonValue
from hpn.testbed.lab.srv6_probe import probe, srv6_of
from hpn.testbed.lab.srv6_state import entries
from hpn.testbed.routing.srv6.plan import UsidPath

SRV6 = "srv6"
"""Section of labs that have it, so that it is asked for by name alone."""


def tables_report(lab: Lab, concerns: Callable[[str], bool]) -> list[JsonValue]:
    """Return a row for each static IPv6 route of each node; ``packets`` are None where the kernel does not count.

    InputError for a lab without SRv6.
    """
    srv6_of(lab)
    rows: list[JsonValue] = []
    for node in filter(lambda each: concerns(each.name), lab.fabric.nodes):
        for prefix, words, counts in entries(lab, node.name):
            packets, errors = (None, None) if counts is None else (counts.packets, counts.errors)
            rows.append({"node": node.name, "prefix": prefix, "entry": words, "packets": packets, "errors": errors})
    return rows


async def paths_report(lab: Lab, src: str, dst: str, *, send: bool) -> JsonValue:
    """Return a row for each path from NIC to NIC; ``send``: whether its probe arrived. InputError as ``paths``."""
    if send:
        return [_row(each.path) | {"arrived": each.arrived} for each in await probe(lab, src, dst)]
    return [_row(path) for path in srv6_of(lab).plan.paths(src, dst)]


def _row(path: UsidPath) -> dict[str, JsonValue]:
    return {"port": path.port, "carrier": path.carrier, "links": list(path.links)}
