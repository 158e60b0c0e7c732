"""How much memory a drill's guest needs beyond what every guest has: for its lab, and for its client.

Measured in virtual time (Linux 6.12): what a converged lab takes of a guest is 64 MB for 32 links and 272 MB for 384,
so 0.6 MB a link; on a host, twice that at 1,536 links, as routes grow faster than links.
"""

from __future__ import annotations

from scenarios.drill.model import Drill
from scenarios.run import client_site
from testbed.fabric.build import build

_LINKS_INCLUDED = 512
"""Which every guest has room for, beside the records of a drill."""
_MB_PER_LINK = 1.2


def more_mb(drill: Drill) -> int:
    """Beyond what hpn itself takes."""
    links = len(build(drill.topology).links)
    return round(max(0, links - _LINKS_INCLUDED) * _MB_PER_LINK) + client_site.memory_mb(drill)
