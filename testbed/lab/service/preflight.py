"""Before a lab starts: does this machine have what it needs? One line each with the way out, all at once (exit 3)."""

from __future__ import annotations

import os
from pathlib import Path

from testbed.doctor import neighbour_limit
from testbed.errors import MachineError
from testbed.fabric.model import Fabric, LinkKind
from testbed.lab.service import registry
from testbed.routing.daemons import DAEMONS

_BYTES_PER_NODE = 1_000_000  # namespace and interfaces (measured)


def check(fabric: Fabric) -> None:
    """MachineError with every reason why the lab cannot run here. Call it outside the sandbox, which hides limits."""
    missing = DAEMONS[fabric.spec.bgp.daemon].missing()
    problems = [*([missing] if missing else []), *_neighbours(fabric), *_memory(fabric)]
    if problems:
        raise MachineError("\n".join(problems))


def neighbour_entries(fabric: Fabric) -> int:
    """Neighbour entries that count against the machine-wide limit: gateways on hosts, hosts on ToRs (FACTS trap 4)."""
    return len(fabric.nics) + sum(link.kind is LinkKind.ACCESS for link in fabric.links)


def _neighbours(fabric: Fabric) -> list[str]:
    others = sum(lab.neighbours for _, lab in registry.running())
    need, limit = neighbour_entries(fabric) + others, neighbour_limit()
    if need <= limit:
        return []
    raise_it = " ".join(f"net.ipv4.neigh.default.gc_thresh{i}={need * factor}" for i, factor in ((2, 2), (3, 4)))
    return [
        f"your labs would need {need} neighbour entries but the machine starts to discard at {limit}, its own included;"
        f" as root: sysctl -w {raise_it}, or take fewer hosts or rails"
    ]


def _memory(fabric: Fabric) -> list[str]:
    daemon = DAEMONS[fabric.spec.bgp.daemon].memory
    need = len(fabric.nodes) * _BYTES_PER_NODE + len(fabric.switches) * daemon
    available = available_memory()
    if available is None or need <= available:
        return []
    return [f"the lab needs about {need >> 20} MB of memory and {available >> 20} MB are free; take a smaller preset"]


def available_memory() -> int | None:
    """What programs may still take, bytes; None where the kernel does not say."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        return None
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
