"""Extra resources of a drill's guest: memory for its lab and its client, memory mappings, wall time.

Measured in virtual time (Linux 6.12): a converged lab takes 64 MB of a guest for 32 links and 272 MB for 384. That is
0.6 MB a link. On a host it takes twice that at 1,536 links, as routes grow faster than links.
"""

from __future__ import annotations

from pathlib import Path

from hpn.scenarios.drill.model import Drill
from hpn.scenarios.run import client_site
from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.build import build

_LINKS_INCLUDED = 512
"""Number of links that fit every guest, alongside the records of a drill."""
_MB_PER_LINK = 1.2
_MAPS_PER_LINK = 25
"""Mappings per link. Nearly each page of the lab's process is one: 68,202 were seen for 3,136 links.

A process that exceeds the limit is killed by SIGSEGV.
"""
_MAP_LIMIT = Path("/proc/sys/vm/max_map_count")


def more_mb(drill: Drill) -> int:
    """Return the memory in MB that the drill needs beyond what hpn itself takes."""
    return round(max(0, _links(drill) - _LINKS_INCLUDED) * _MB_PER_LINK) + client_site.memory_mb(drill)


def times_as_long(drill: Drill) -> float:
    """Return the factor, at least 1, by which a run may exceed the wall time of a usual lab; it grows with links."""
    return max(1.0, _links(drill) / _LINKS_INCLUDED)


def check_maps(drill: Drill) -> None:
    """Raise MachineError when the limit on mappings per process is too low for the largest process in the guest."""
    links = _links(drill)
    need, limit = links * _MAPS_PER_LINK, _map_limit()
    if limit is not None and need > limit:
        raise MachineError(
            f"a guest with a lab of {links:,} links needs {need} mappings in one process and this machine allows"
            f" {limit}: as root, sysctl -w vm.max_map_count={2 * need}; or take fewer hosts or rails, or another engine"
        )


def _map_limit() -> int | None:
    try:
        return int(_MAP_LIMIT.read_text())
    except (OSError, ValueError):
        return None


def _links(drill: Drill) -> int:
    return len(build(drill.topology).links)
