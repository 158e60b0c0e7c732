"""Notes on a fabric before anything starts: what will not work, and what is not as it seems. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.wired.host_rules import host_notes
from hpn.testbed.fabric.wired.link_notes import link_notes
from hpn.testbed.routing.missing_routes import route_notes
from hpn.testbed.routing.own.notes import config_notes


def plan_notes(fabric: Fabric) -> Iterator[str]:
    """Yield notes on links, hosts, configurations and routes, a line each."""
    yield from config_notes(fabric)
    yield from host_notes(fabric.spec)
    yield from link_notes(fabric)
    yield from route_notes(fabric)
