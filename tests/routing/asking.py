"""What a BGP daemon says of itself when it is asked, whichever program it is."""

from __future__ import annotations

import json

from hpn.testbed.fabric.model import Fabric
from hpn.testbed.routing.bgp import BgpDaemon
from hpn.testbed.routing.bird.daemon import BirdDaemon
from hpn.testbed.routing.frr.daemon import FrrDaemon, command_now
from hpn.testbed.routing.neighbours import neighbours
from tests.routing import birdwords


def as_paths(daemon: BgpDaemon, prefix: str) -> list[tuple[int, ...]]:
    """Of every candidate that it has for exactly ``prefix``; empty tuples for routes of its own."""
    if isinstance(daemon, BirdDaemon):
        return [route.as_path for route in birdwords.routes(daemon.control, prefix)]
    assert isinstance(daemon, FrrDaemon)
    found = json.loads(command_now(daemon.folder / "bgpd.vty", [f"show bgp ipv4 unicast {prefix} json"]) or "{}")
    return [tuple(map(int, path["aspath"]["string"].replace("Local", "").split())) for path in found.get("paths", ())]


def sessions(fabric: Fabric, daemon: BgpDaemon) -> list[tuple[str, bool, int]]:
    """Port, whether established, and the neighbour's ASN, sorted."""
    if isinstance(daemon, BirdDaemon):
        found = birdwords.protocols(daemon.control)
        return sorted((session.name, session.established, session.neighbour_as) for session in found)
    assert isinstance(daemon, FrrDaemon)
    said = json.loads(command_now(daemon.folder / "bgpd.vty", ["show bgp summary json"]))["ipv4Unicast"]["peers"]
    return sorted(
        (one.port, said[one.address]["state"] == "Established", said[one.address]["remoteAs"])
        for one in neighbours(fabric, daemon.node)
    )
